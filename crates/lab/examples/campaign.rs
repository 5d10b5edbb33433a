//! Runs random scenarios by the hundred thousand, and resumes where it stopped: `campaign DIRECTORY COUNT [FIRST]`.
//! `campaign plan NUMBER` prints the plan of one scenario.
//!
//! The scenarios are those of the integrity test. Each failure is made smaller for as long as it fails in the same way.
//! Its plan is kept as `failure-NUMBER.json`, which `examples/run_plan.rs` runs. `progress.json` records how far the
//! campaign came and what it has seen.

#[path = "../tests/integrity/air.rs"]
mod air;
#[path = "../tests/integrity/draw.rs"]
mod draw;
#[path = "../tests/integrity/network.rs"]
mod network;
#[path = "../tests/integrity/over_quic.rs"]
mod over_quic;
#[path = "../tests/integrity/reduce.rs"]
mod reduce;
#[path = "../tests/integrity/runner.rs"]
mod runner;
#[allow(dead_code, reason = "the test uses more of it")]
#[path = "../tests/integrity/scenario.rs"]
mod scenario;
#[path = "../tests/integrity/verdict.rs"]
mod verdict;
#[path = "../tests/integrity/verdict_quic.rs"]
mod verdict_quic;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use scenario::Scenario;
use serde::{Deserialize, Serialize};
use verdict::Seen;

/// Scenarios between two notes of how far it came.
const BLOCK: u64 = 2_000;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    first: u64,
    next: u64,
    seen: Seen,
    /// Number and reason of each failure.
    failures: Vec<(u64, String)>,
}

impl Progress {
    fn load(file: &Path, first: u64) -> Result<Self, Box<dyn Error>> {
        match std::fs::read(file) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self {
                first,
                next: first,
                ..Self::default()
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// All of it or nothing, however the campaign ends.
    fn save(&self, file: &Path) -> Result<(), Box<dyn Error>> {
        let aside = file.with_extension("new");
        std::fs::write(&aside, serde_json::to_vec_pretty(self)?)?;
        Ok(std::fs::rename(aside, file)?)
    }
}

fn campaign(directory: PathBuf, count: u64, first: u64) -> Result<Progress, Box<dyn Error>> {
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("progress.json");
    let mut progress = Progress::load(&file, first)?;
    let end = progress.first + count;
    while progress.next < end {
        let block = progress.next..(progress.next + BLOCK).min(end);
        let (seen, failures) = runner::judge_all(block.clone());
        for failure in failures {
            println!("scenario {}: {}", failure.seed, failure.why);
            let small = reduce::reduce(Scenario::new(failure.seed));
            let name = format!("failure-{}.json", failure.seed);
            std::fs::write(directory.join(name), serde_json::to_string(&small.plan)?)?;
            progress.failures.push((failure.seed, failure.why));
        }
        progress.seen.add(seen);
        progress.next = block.end;
        progress.save(&file)?;
        let done = progress.next - progress.first;
        println!(
            "{done} of {count} scenarios, {} failed",
            progress.failures.len()
        );
    }
    Ok(progress)
}

fn print_plan(number: u64) -> ExitCode {
    match serde_json::to_string(&Scenario::new(number).plan) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("campaign: {error}");
            ExitCode::from(2)
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next();
    let mut number = || arguments.next().and_then(|text| text.parse().ok());
    let (count, first) = (number(), number());
    let (Some(target), Some(count)) = (target, count) else {
        eprintln!("usage: campaign DIRECTORY COUNT [FIRST], or campaign plan NUMBER");
        return ExitCode::from(2);
    };
    if target == "plan" {
        return print_plan(count);
    }
    // A panic is told of as a failure.
    std::panic::set_hook(Box::new(|_| {}));
    match campaign(PathBuf::from(target), count, first.unwrap_or(0)) {
        Ok(progress) => {
            println!("{:?}", progress.seen);
            ExitCode::from(u8::from(!progress.failures.is_empty()))
        }
        Err(error) => {
            eprintln!("campaign: {error}");
            ExitCode::from(2)
        }
    }
}

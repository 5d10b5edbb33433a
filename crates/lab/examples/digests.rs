//! Prints hashes that identify the recordings of plans and of random scenarios: `digests FOLDER COUNT`.
//!
//! It prints one line for each plan among FOLDER's JSON files. It prints one line per hundred of COUNT scenarios over
//! TCP, and as many over QUIC. Run it before and after a change that must not alter any result.

#[path = "../tests/integrity/air.rs"]
mod air;
#[path = "../tests/integrity/draw.rs"]
mod draw;
#[path = "../tests/integrity/network.rs"]
mod network;
#[allow(dead_code, reason = "the test uses more of it")]
#[path = "../tests/integrity/over_quic.rs"]
mod over_quic;
#[allow(dead_code, reason = "the test uses more of it")]
#[path = "../tests/integrity/scenario.rs"]
mod scenario;

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use polypath_lab::plan::Plan;
use polypath_lab::{CaptureMode, Simulation};

/// Scenarios of one line.
const BLOCK: u64 = 100;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(plan: Plan) -> Result<String, Box<dyn Error>> {
    let mut simulation = Simulation::from_plan(plan, CaptureMode::None, None)?;
    simulation.step_until(u64::MAX)?;
    Ok(hexadecimal(&simulation.finish()?.hash()))
}

/// A line's name and what it says.
enum Task {
    Plan(std::path::PathBuf),
    Scenarios(u64),
}

impl Task {
    fn name(&self) -> String {
        match self {
            Self::Plan(file) => file
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into(),
            Self::Scenarios(first) if *first >= over_quic::FIRST => {
                format!("quic-scenarios-{:06}", first - over_quic::FIRST)
            }
            Self::Scenarios(first) => format!("scenarios-{first:06}"),
        }
    }

    fn run(&self) -> String {
        let outcome = match self {
            Self::Plan(file) => std::fs::read_to_string(file)
                .map_err(Box::from)
                .and_then(|text| digest(serde_json::from_str(&text)?)),
            Self::Scenarios(first) => {
                let each = (*first..first + BLOCK).map(|seed| {
                    digest(scenario::Scenario::new(seed).plan)
                        .unwrap_or_else(|error| error.to_string())
                });
                let all: Vec<String> = each.collect();
                Ok(all.join(" "))
            }
        };
        outcome.unwrap_or_else(|error| error.to_string())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: digests FOLDER COUNT";
    let folder = arguments.next().ok_or(usage)?;
    let count: u64 = arguments.next().ok_or(usage)?.parse()?;
    let blocks = |first: u64| (first..first + count).step_by(BLOCK as usize);
    let mut tasks: Vec<Task> = blocks(0)
        .chain(blocks(over_quic::FIRST))
        .map(Task::Scenarios)
        .collect();
    for entry in std::fs::read_dir(folder)? {
        tasks.push(Task::Plan(entry?.path()));
    }
    let next = AtomicUsize::new(0);
    let lines = Mutex::new(BTreeMap::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let line = task.run();
                    let mut lines = lines
                        .lock()
                        .unwrap_or_else(|poisoned| poisoned.into_inner());
                    lines.insert(task.name(), line);
                }
            });
        }
    });
    for (name, line) in lines.into_inner()? {
        println!("{name} {line}");
    }
    Ok(())
}

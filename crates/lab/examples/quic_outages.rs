//! Runs transfers over Multipath QUIC whose paths go dark: `quic_outages COUNT [FIRST]`. `quic_outages plan NUMBER`
//! prints the plan of one case, and its bound.
//!
//! The cases are those of the test of outages.

#[path = "../tests/outages/case.rs"]
mod case;
#[path = "../tests/integrity/draw.rs"]
#[allow(dead_code, reason = "the scenarios of integrity use more of it")]
mod draw;
#[path = "../tests/outages/runner.rs"]
mod runner;

use std::process::ExitCode;

/// Cases between two notes of how far it came.
const BLOCK: u64 = 1_000;

fn campaign(count: u64, first: u64) -> ExitCode {
    let mut failed = 0;
    let mut taken = std::collections::BTreeMap::<u64, u64>::new();
    for begin in (first..first + count).step_by(BLOCK as usize) {
        let end = (begin + BLOCK).min(first + count);
        let outcome = runner::judge_all(begin..end);
        for (seed, why) in &outcome.failures {
            println!("case {seed}: {why}\n  {:?}", case::Case::new(*seed));
        }
        failed += outcome.failures.len();
        for (timeouts, runs) in outcome.timeouts {
            *taken.entry(timeouts).or_default() += runs;
        }
        println!("{} of {count} cases, {failed} failed", end - first);
    }
    println!(
        "runs by the probe timeouts that they took beyond what the working path explains: {taken:?}"
    );
    ExitCode::from(u8::from(failed > 0))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| {
        arguments
            .get(index)
            .and_then(|text| text.parse::<u64>().ok())
    };
    match (arguments.first().map(String::as_str), number(0), number(1)) {
        (Some("plan"), _, Some(seed)) => {
            let case = case::Case::new(seed);
            println!("{}", case.plan());
            eprintln!("{case:?}\nover by {:.3} s", case.bound() as f64 / 1e9);
            ExitCode::SUCCESS
        }
        (_, Some(count), first) => {
            // A panic is told of as a failure.
            std::panic::set_hook(Box::new(|_| {}));
            campaign(count, first.unwrap_or(0))
        }
        _ => {
            eprintln!("usage: quic_outages COUNT [FIRST], or quic_outages plan NUMBER");
            ExitCode::from(2)
        }
    }
}

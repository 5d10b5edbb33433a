//! Prints the memory that a benchmark's work takes as it runs, in MB: `memory W5 [SECONDS] [idle]`.
//!
//! With `idle` each connection sends one byte and no more, so its subflows are established and nothing is in flight. It
//! runs on Linux only.

use std::time::Instant;

use polypath_lab::bench::WORKS;
use polypath_lab::plan::{Stream, Work};
use polypath_lab::{CaptureMode, Simulation};

const PARTS: u64 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments
        .next()
        .ok_or("usage: memory NAME [SECONDS] [idle]")?;
    let work = WORKS.iter().find(|work| work.name == name);
    let work = work.ok_or("no such work")?;
    let seconds = arguments.next().map(|text| text.parse()).transpose()?;
    let seconds: f64 = seconds.unwrap_or(work.seconds);
    let began = Instant::now();
    let tell = |place: &str, subflows: usize| {
        let (now, most) = (megabytes("VmRSS:"), megabytes("VmHWM:"));
        let passed = began.elapsed().as_secs_f64();
        println!("{place:>12} {subflows:>9} {now:>9} {most:>9} {passed:>7.2}");
    };
    println!("          at  subflows  resident      most    wall");
    let mut plan = (work.plan)(seconds);
    if arguments.next().is_some_and(|word| word == "idle") {
        for application in &mut plan.applications {
            application.work = Work::Stream(Stream {
                rate_bps: 1,
                block_bytes: 1,
                duration_ns: None,
                reverse: false,
            });
        }
    }
    tell("plan", 0);
    let mut simulation = Simulation::from_plan(plan, CaptureMode::None, None)?;
    tell("0 ms", 0);
    let end = (seconds * 1e9) as u64;
    for part in 1..=PARTS {
        let at = end / PARTS * part;
        simulation.step_until(at)?;
        tell(
            &format!("{} ms", at as f64 / 1e6),
            simulation.established_subflows(),
        );
    }
    let recording = simulation.finish()?;
    tell("end", recording.subflow_ends.len());
    Ok(())
}

fn megabytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1000
}

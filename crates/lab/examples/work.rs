//! Runs a benchmark's work and prints its packet-hops and their cost: `work W1 [SECONDS]`. It is also meant to run
//! under valgrind.

mod spent;

use polypath_lab::bench::{self, Report};
use serde::Serialize;
use spent::cpu_seconds;

#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    report: Report,
    /// Of the simulation without set-up.
    cpu_seconds: f64,
    set_up_cpu_seconds: f64,
    /// Most resident so far; on Linux alone.
    memory_mb: Option<f64>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: work NAME [SECONDS]")?;
    let seconds = arguments.next().map(|text| text.parse()).transpose()?;
    let began = cpu_seconds();
    let mut prepared = bench::prepare(&name, seconds).ok_or("no such work")??;
    let ready = cpu_seconds();
    prepared.simulate()?;
    let cpu_seconds = cpu_seconds() - ready;
    let memory_mb = peak_megabytes();
    let measured = Measured {
        report: prepared.report()?,
        cpu_seconds,
        set_up_cpu_seconds: ready - began,
        memory_mb,
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0 / 1e6)
}

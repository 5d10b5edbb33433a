//! The simulated network in real time.

use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use polypath_lab::plan::Plan;
use polypath_live::{Carrier, Clock, Port, carry as run};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::PlanError;
use crate::panics::guarded;

/// Carries frames between TAP interfaces until `stop` can be read; gives carried, ignored and expired packets and the latest one's delay in
/// nanoseconds. It takes the descriptors over.
#[pyfunction]
pub fn carry(
    py: Python<'_>,
    plan_json: &str,
    ports_json: &str,
    interfaces: Vec<RawFd>,
    stop: RawFd,
    now_ns: i64,
    log: PathBuf,
) -> PyResult<(u64, u64, u64, u64)> {
    let clock = Clock::starting_at(now_ns);
    // SAFETY: the caller opened them for this call and does not use them any more.
    let owned = |descriptor: RawFd| unsafe { OwnedFd::from_raw_fd(descriptor) };
    let interfaces: Vec<File> = interfaces
        .into_iter()
        .map(|one| owned(one).into())
        .collect();
    let stop = owned(stop);
    let plan: Plan = serde_json::from_str(plan_json).map_err(refused)?;
    let ports: Vec<Port> = serde_json::from_str(ports_json).map_err(refused)?;
    let carrier = Carrier::new(&plan, ports).map_err(refused)?;
    let mut log = BufWriter::new(
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .map_err(failed)?,
    );
    let tally = py
        .detach(|| {
            guarded(|| {
                let interval = plan.record.interval_ns.max(1);
                run(carrier, &interfaces, &stop, clock, interval, &mut log)
            })
        })?
        .map_err(failed)?;
    Ok((tally.carried, tally.ignored, tally.expired, tally.latest))
}

fn refused(error: impl ToString) -> PyErr {
    PlanError::new_err(error.to_string())
}

fn failed(error: impl ToString) -> PyErr {
    PyOSError::new_err(error.to_string())
}

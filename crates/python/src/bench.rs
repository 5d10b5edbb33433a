//! The works that measure the simulator's speed.

use polypath_lab::bench;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::PlanError;
use crate::panics::guarded;

/// Name, description and simulated seconds of each work.
#[pyfunction]
pub fn works() -> Vec<(&'static str, &'static str, f64)> {
    bench::WORKS
        .iter()
        .map(|work| (work.name, work.description, work.seconds))
        .collect()
}

/// Runs a work for some simulated seconds; what it did as a JSON object.
#[pyfunction]
#[pyo3(name = "bench")]
pub fn run(py: Python<'_>, name: &str, seconds: f64) -> PyResult<String> {
    if !(seconds > 0.0 && seconds <= 1e6) {
        return Err(PyValueError::new_err(
            "seconds must be above 0 and at most 1,000,000",
        ));
    }
    let report = py
        .detach(|| guarded(|| bench::run(name, Some(seconds))))?
        .ok_or_else(|| PyKeyError::new_err(format!("no work '{name}'")))?
        .map_err(|error| PlanError::new_err(error.to_string()))?;
    serde_json::to_string(&report).map_err(|error| PyValueError::new_err(error.to_string()))
}

//! A run in progress.

use std::path::PathBuf;
use std::sync::Mutex;

use polypath_lab::{CaptureMode, Simulation as Lab};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::PlanError;
use crate::panics::guarded;
use crate::recording::Recording;

/// Steps a simulation on Python's behalf; Python's other threads go on meanwhile.
#[pyclass(module = "polypath._core")]
pub struct Simulation {
    /// Absent once the recording was taken, or after a panic. Never locked: the mutex makes it [`Sync`], as a class must be.
    lab: Mutex<Option<Lab>>,
    now_ns: u64,
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (plan_json, captures = "none", directory = None))]
    fn new(
        py: Python<'_>,
        plan_json: &str,
        captures: &str,
        directory: Option<PathBuf>,
    ) -> PyResult<Self> {
        let mode = capture_mode(captures)?;
        let lab = py
            .detach(|| guarded(|| Lab::new(plan_json, mode, directory)))?
            .map_err(plan_error)?;
        Ok(Self {
            now_ns: lab.now(),
            lab: Mutex::new(Some(lab)),
        })
    }

    #[getter]
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn step(&mut self, py: Python<'_>, until_ns: u64) -> PyResult<bool> {
        let mut lab = self.take()?;
        let (lab, finished) = py.detach(|| {
            guarded(move || {
                let finished = lab.step_until(until_ns);
                (lab, finished)
            })
        })?;
        self.now_ns = lab.now();
        self.lab = Mutex::new(Some(lab));
        Ok(finished)
    }

    fn recording(&mut self, py: Python<'_>) -> PyResult<Recording> {
        let lab = self.take()?;
        py.detach(|| {
            guarded(move || {
                lab.finish()
                    .map(|recording| Recording::new(recording.tables(), recording.hash()))
            })
        })?
        .map_err(plan_error)
    }
}

impl Simulation {
    fn take(&mut self) -> PyResult<Lab> {
        self.lab
            .get_mut()
            .ok()
            .and_then(Option::take)
            .ok_or_else(|| PyRuntimeError::new_err("the run has ended"))
    }
}

fn plan_error(error: polypath_lab::PlanError) -> PyErr {
    PlanError::new_err(error.to_string())
}

fn capture_mode(name: &str) -> PyResult<CaptureMode> {
    match name {
        "none" => Ok(CaptureMode::None),
        "hosts" => Ok(CaptureMode::Hosts),
        "links" => Ok(CaptureMode::Links),
        _ => Err(PyValueError::new_err(format!(
            "captures are none, hosts or links, not '{name}'"
        ))),
    }
}

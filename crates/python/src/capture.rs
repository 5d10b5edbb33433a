//! Captures of real traffic as a Recording.

use std::path::PathBuf;

use polypath_capture::Options;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::panics::guarded;
use crate::recording::Recording;

/// What captures tell: the tables, the time of the last packet, and the rest in JSON. Ctrl-C ends it with what
/// was read until then.
#[pyfunction]
#[pyo3(signature = (paths, interval_ns, segments = false, keys = String::new()))]
pub fn trace(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    interval_ns: i64,
    segments: bool,
    keys: String,
) -> PyResult<(Recording, i64, String)> {
    let options = Options {
        interval_ns,
        segments,
        keys,
    };
    let traced = py
        .detach(|| {
            guarded(|| {
                polypath_capture::trace(&paths, &options, |_| {
                    Python::attach(|py| py.check_signals()).is_ok()
                })
            })
        })?
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    let told = serde_json::to_string(&traced.told)
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((
        Recording::new(traced.tables, traced.hash),
        traced.end_ns,
        told,
    ))
}

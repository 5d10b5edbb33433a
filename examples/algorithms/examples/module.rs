//! The native module of the Python package, with these algorithms added.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    polypath_example::add().map_err(|error| PyImportError::new_err(error.to_string()))?;
    polypath_python::fill(module)
}

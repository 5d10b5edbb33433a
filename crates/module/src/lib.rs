//! The native module `polypath._core` with the algorithms that the crates have. One with more is another crate like this.

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    polypath_python::fill(module)
}

//! The native module `polypath._core` with the algorithms of the crates. A module with more algorithms is another crate
//! like this.

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    polypath_python::fill(module)
}

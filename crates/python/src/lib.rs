//! The native module `polypath._core`: what Python sees of the simulator, and nothing else.

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;

    /// The version of the native code, which `polypath` compares with its own.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

//! The native module `polypath._core`: what Python sees of the simulator, and nothing else.

mod bench;
mod live;
mod panics;
mod recording;
mod simulation;

use pyo3::prelude::*;

pyo3::create_exception!(
    polypath._core,
    PlanError,
    pyo3::exceptions::PyValueError,
    "The plan is not one that the simulator can run; the message is one line."
);

#[pymodule]
mod _core {
    use pyo3::exceptions::PyKeyError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::PlanError;
    #[pymodule_export]
    use crate::bench::{run, works};
    #[pymodule_export]
    use crate::live::carry;
    #[pymodule_export]
    use crate::recording::Recording;
    #[pymodule_export]
    use crate::simulation::Simulation;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::panics::note_quietly();
        Ok(())
    }

    /// The algorithms of a kind as a JSON list.
    #[pyfunction]
    fn registry(kind: &str) -> PyResult<String> {
        polypath_lab::registry(kind).ok_or_else(|| PyKeyError::new_err(format!("no kind '{kind}'")))
    }

    /// The version of the native code, which `polypath` compares with its own.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

//! The native module `polypath._core`: what Python sees of the simulator, and nothing else.

mod bench;
mod capture;
mod control;
mod live;
mod panics;
mod parquet;
mod quic;
mod recording;
mod routes;
mod scripts;
mod simulation;
mod views;

use pyo3::prelude::*;

pyo3::create_exception!(
    polypath._core,
    ScriptError,
    pyo3::exceptions::PyRuntimeError,
    "An algorithm in Python failed: what, the instance, the method, the time in seconds; the cause is what it raised."
);

pyo3::create_exception!(
    polypath._core,
    PlanError,
    pyo3::exceptions::PyValueError,
    "The plan is not one that the simulator can run; the message is one line."
);

pyo3::create_exception!(
    polypath._core,
    Undetermined,
    pyo3::exceptions::PyValueError,
    "Which of several paths is taken is up to the run."
);

#[pymodule]
mod _core {
    use pyo3::exceptions::PyKeyError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::bench::{run, works};
    #[pymodule_export]
    use crate::capture::trace;
    #[pymodule_export]
    use crate::control::{Acknowledgement, ControlledPath, DeliverySample, Idleness};
    #[pymodule_export]
    use crate::live::carry;
    #[pymodule_export]
    use crate::parquet::parquet_size;
    #[pymodule_export]
    use crate::quic::{quic_fetch, quic_serve};
    #[pymodule_export]
    use crate::recording::Recording;
    #[pymodule_export]
    use crate::routes::Routes;
    #[pymodule_export]
    use crate::simulation::{Simulation, check};
    #[pymodule_export]
    use crate::views::{Address, Flow, Path, PathManagerView, View};
    #[pymodule_export]
    use crate::{PlanError, ScriptError, Undetermined};

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

    /// What is wrong with the parameters of an algorithm, in JSON; nothing where the engine takes them.
    #[pyfunction]
    fn fault(kind: &str, name: &str, parameters: &str) -> Option<String> {
        polypath_lab::fault(kind, name, parameters)
    }

    /// The rate in bit/s of each MCS of a Wi-Fi standard, where there is one; nothing for another standard.
    #[pyfunction]
    fn wifi_rates(
        standard: &str,
        width_mhz: u32,
        streams: u32,
        short_guard: bool,
    ) -> Option<Vec<Option<u64>>> {
        polypath_lab::wifi_rates(standard, width_mhz, streams, short_guard)
    }

    /// The version of the native code, which `polypath` compares with its own.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}

//! The native module `polypath._core`: everything that Python sees of the simulator, and nothing else.

mod bench;
mod capture;
mod control;
mod figures;
#[cfg(unix)]
mod live;
mod panics;
mod parquet;
#[cfg(unix)]
mod quic;
mod recording;
mod routes;
mod rows;
mod scripts;
mod simulation;
mod stacks;
mod views;

use pyo3::exceptions::PyKeyError;
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

/// Fills the module `_core`.
///
/// # Errors
/// Those of Python.
pub fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    panics::note_quietly();
    let py = module.py();
    module.add("PlanError", py.get_type::<PlanError>())?;
    module.add("ScriptError", py.get_type::<ScriptError>())?;
    module.add("Undetermined", py.get_type::<Undetermined>())?;
    module.add_class::<control::Acknowledgement>()?;
    module.add_class::<control::ControlledPath>()?;
    module.add_class::<control::DeliverySample>()?;
    module.add_class::<figures::Figures>()?;
    module.add_class::<control::Idleness>()?;
    module.add_class::<recording::Recording>()?;
    module.add_class::<routes::Routes>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<stacks::Bytes>()?;
    module.add_class::<views::Address>()?;
    module.add_class::<views::Flow>()?;
    module.add_class::<views::Path>()?;
    module.add_class::<views::PathManagerView>()?;
    module.add_class::<views::View>()?;
    module.add_function(wrap_pyfunction!(bench::run, module)?)?;
    module.add_function(wrap_pyfunction!(bench::works, module)?)?;
    module.add_function(wrap_pyfunction!(capture::trace, module)?)?;
    module.add_function(wrap_pyfunction!(figures::charge_sentence, module)?)?;
    module.add_function(wrap_pyfunction!(figures::charge_title, module)?)?;
    module.add_function(wrap_pyfunction!(parquet::parquet_size, module)?)?;
    #[cfg(unix)]
    fill_with_sockets(module)?;
    module.add_function(wrap_pyfunction!(simulation::check, module)?)?;
    module.add_function(wrap_pyfunction!(plan_schema, module)?)?;
    module.add_function(wrap_pyfunction!(recording::tables, module)?)?;
    module.add_function(wrap_pyfunction!(registry, module)?)?;
    module.add_function(wrap_pyfunction!(fault, module)?)?;
    module.add_function(wrap_pyfunction!(wifi_rates, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)
}

/// What needs the sockets and descriptors of Unix.
#[cfg(unix)]
fn fill_with_sockets(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(live::carry, module)?)?;
    module.add_function(wrap_pyfunction!(quic::quic_fetch, module)?)?;
    module.add_function(wrap_pyfunction!(quic::quic_serve, module)?)
}

/// The algorithms of a kind as a JSON list.
#[pyfunction]
fn registry(kind: &str) -> PyResult<String> {
    polypath_lab::registry(kind).ok_or_else(|| PyKeyError::new_err(format!("no kind '{kind}'")))
}

/// The JSON Schema of a plan.
#[pyfunction]
fn plan_schema() -> String {
    polypath_lab::plan_schema().to_string()
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

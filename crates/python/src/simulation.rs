//! A run in progress.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use polypath_lab::plan::Plan;
use polypath_lab::transport::Algorithms;
use polypath_lab::written::Elsewhere;
use polypath_lab::{Aside, CaptureMode, Simulation as Lab, Step};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::panics::guarded;
use crate::recording::Recording;
use crate::rows;
use crate::scripts::{Fate, Scripts};
use crate::{PlanError, ScriptError};

/// The registries' algorithms, and before them those in Python.
fn algorithms(scripts: Option<&Arc<Scripts>>) -> Algorithms {
    scripts.map_or_else(Algorithms::default, |scripts| {
        Algorithms::with(scripts.clone())
    })
}

/// What makes a plan impossible, as [`Simulation`] would say it; nothing where it can run.
#[pyfunction]
#[pyo3(signature = (plan_json, load = None))]
pub fn check(py: Python<'_>, plan_json: &str, load: Option<Py<PyAny>>) -> PyResult<Option<String>> {
    let scripts = load.map(Scripts::new).map(Arc::new);
    let algorithms = algorithms(scripts.as_ref());
    let elsewhere = scripts.as_deref().map(|scripts| scripts as &dyn Elsewhere);
    let found = py.detach(|| guarded(|| polypath_lab::check(plan_json, algorithms, elsewhere)))?;
    Ok(found.err().map(|error| error.to_string()))
}

/// Steps a simulation on Python's behalf; Python's other threads go on meanwhile.
#[pyclass(module = "polypath._core")]
pub struct Simulation {
    /// Absent once the recording was taken, or after a panic. Never locked: the mutex makes it [`Sync`], as a class must be.
    lab: Mutex<Option<Lab>>,
    now_ns: u64,
    /// Of the algorithms in Python.
    fate: Option<Arc<Fate>>,
    aside: Aside,
}

#[pymethods]
impl Simulation {
    #[new]
    #[pyo3(signature = (plan_json, captures = "none", directory = None, load = None, aside = Vec::new(), qlogs = None))]
    fn new(
        py: Python<'_>,
        plan_json: &str,
        captures: &str,
        directory: Option<PathBuf>,
        load: Option<Py<PyAny>>,
        aside: Vec<String>,
        qlogs: Option<PathBuf>,
    ) -> PyResult<Self> {
        let mode = capture_mode(captures)?;
        let scripts = load.map(Scripts::new);
        let fate = scripts.as_ref().map(Scripts::fate);
        let scripts = scripts.map(Arc::new);
        let algorithms = algorithms(scripts.as_ref());
        let (lab, aside) = py
            .detach(|| {
                guarded(|| {
                    let mut plan: Plan = serde_json::from_str(plan_json)?;
                    let asked = |name: &str| aside.iter().any(|it| it == name);
                    let aside = Aside::ask(&mut plan, asked("segments"), asked("account"));
                    let mut lab = Lab::with_algorithms(
                        plan,
                        mode,
                        directory,
                        algorithms,
                        scripts.as_deref().map(|scripts| scripts as &dyn Elsewhere),
                    )?;
                    if let Some(qlogs) = qlogs {
                        lab.write_qlogs(qlogs)?;
                    }
                    Ok((lab, aside))
                })
            })?
            .map_err(plan_error)?;
        Ok(Self {
            now_ns: lab.now(),
            lab: Mutex::new(Some(lab)),
            fate,
            aside,
        })
    }

    #[getter]
    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn step(&mut self, py: Python<'_>, until_ns: u64) -> PyResult<bool> {
        self.advance(py, move |lab| lab.step(until_ns))
    }

    fn step_to_event(&mut self, py: Python<'_>, until_ns: u64) -> PyResult<bool> {
        self.advance(py, move |lab| lab.step_to_event(until_ns))
    }

    fn observe<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        rows::of(py, self.lab()?.observe())
    }

    #[getter]
    fn recorded_events(&mut self) -> PyResult<usize> {
        Ok(self.lab()?.recorded_events())
    }

    fn events_since<'py>(&mut self, py: Python<'py>, known: usize) -> PyResult<Bound<'py, PyDict>> {
        rows::of(py, self.lab()?.events_since(known))
    }

    fn change(&mut self, action_json: &str) -> PyResult<()> {
        let action = serde_json::from_str(action_json);
        let action = action.map_err(|error| PlanError::new_err(error.to_string()))?;
        self.lab()?.change(&action).map_err(plan_error)
    }

    /// What has come to a controller in Python: datapaths and messages, in order.
    fn controller_receives<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
        let arrived = self.lab()?.controller_receives().into_iter();
        let arrived = arrived.map(|(datapath, bytes)| (datapath, PyBytes::new(py, &bytes)));
        Ok(arrived.collect())
    }

    /// A controller in Python sends bytes to a datapath now.
    fn controller_sends(&mut self, datapath: u64, bytes: Vec<u8>) -> PyResult<bool> {
        Ok(self.lab()?.controller_sends(datapath, bytes))
    }

    fn recording(&mut self, py: Python<'_>) -> PyResult<Recording> {
        let lab = self.take()?;
        let aside = self.aside;
        py.detach(|| {
            guarded(move || {
                lab.finish().map(|mut recording| {
                    let hash = aside.hash(&mut recording);
                    Recording::new(recording.into_tables(), hash)
                })
            })
        })?
        .map_err(plan_error)
    }
}

impl Simulation {
    fn advance(
        &mut self,
        py: Python<'_>,
        step: impl FnOnce(&mut Lab) -> Result<Step, polypath_lab::PlanError> + Send,
    ) -> PyResult<bool> {
        let mut lab = self.take()?;
        let (lab, step) = py.detach(|| {
            guarded(move || {
                let step = step(&mut lab);
                (lab, step)
            })
        })?;
        let finished = step.map_err(plan_error)? == Step::Over;
        self.now_ns = lab.now();
        self.lab = Mutex::new(Some(lab));
        self.check_scripts(py, finished)?;
        Ok(finished)
    }

    /// What an algorithm in Python raised; Ctrl-C as it is.
    fn check_scripts(&self, py: Python<'_>, finished: bool) -> PyResult<()> {
        let Some(fate) = &self.fate else {
            return Ok(());
        };
        if finished {
            fate.judge(self.now_ns);
        }
        let Some(failure) = fate.take() else {
            return Ok(());
        };
        if failure.error.is_instance_of::<PyKeyboardInterrupt>(py) {
            return Err(failure.error);
        }
        let seconds = failure.at as f64 / 1e9;
        let what = failure.error.value(py).to_string();
        let error = ScriptError::new_err((what, failure.object, failure.method, seconds));
        error.set_cause(py, Some(failure.error));
        Err(error)
    }

    fn lab(&mut self) -> PyResult<&mut Lab> {
        let lab = self.lab.get_mut().ok().and_then(Option::as_mut);
        lab.ok_or_else(|| PyRuntimeError::new_err("the run has ended"))
    }

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
            "captures must be none, hosts or links, not '{name}'"
        ))),
    }
}

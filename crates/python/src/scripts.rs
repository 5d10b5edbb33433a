//! Algorithms that are written in Python: schedulers, path managers and the routing of controllers. This module finds
//! them and keeps their exceptions.
//!
//! An exception is kept until the run's next step returns. Until then the algorithm is not asked again.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use polypath_lab::transport::RegistryError;
use polypath_lab::transport::congestion::CongestionControl;
use polypath_lab::transport::path_manager::{Action, Occasion, Pair, PathManager, PmView};
use polypath_lab::transport::scheduler::{
    self, Carried, Decision, PacketKind, Scheduler, View, candidates_of_class, lowest_rtt, ready,
};
use polypath_lab::transport::{Choice, Foreign, NEVER, Nanos, SECOND};
use polypath_lab::{Chooser, Choosers, NewFlow};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use crate::control::Controller;
use crate::views;

/// The name under which a plan chooses an algorithm in Python.
const NAME: &str = "python";

/// How long a scheduler may leave idle paths idle with data to send. Nothing is in flight then whose acknowledgement would prompt it.
const PATIENCE: Nanos = SECOND;

/// Where a run's algorithms in Python come from, and what became of them.
#[derive(Debug)]
pub struct Scripts {
    /// Makes an instance from the kind and the parameters in JSON.
    load: Py<PyAny>,
    fate: Arc<Fate>,
}

#[derive(Debug, Default)]
pub struct Fate {
    failed: AtomicBool,
    failure: Mutex<Option<Failure>>,
    waiting: Mutex<Vec<Arc<Mutex<Waiting>>>>,
}

/// What went wrong in an algorithm.
#[derive(Debug)]
pub struct Failure {
    pub error: PyErr,
    pub at: Nanos,
    /// The instance and the method.
    pub object: Py<PyAny>,
    pub method: &'static str,
}

/// A scheduler that sends nothing although it could.
#[derive(Debug)]
struct Waiting {
    since: Nanos,
    unsent: u64,
    object: Option<Py<PyAny>>,
}

impl Fate {
    pub fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub fn fail(&self, failure: Failure) {
        if !self.failed.swap(true, Ordering::Relaxed) {
            *lock(&self.failure) = Some(failure);
        }
    }

    /// The first failure, once.
    pub fn take(&self) -> Option<Failure> {
        lock(&self.failure).take()
    }

    /// At the end of a run: a scheduler that would have gone on sending nothing.
    pub fn judge(&self, now: Nanos) {
        for waiting in lock(&self.waiting).iter() {
            let waiting = lock(waiting);
            if let Some(object) = &waiting.object
                && now.saturating_sub(waiting.since) >= PATIENCE
            {
                self.fail(Python::attach(|py| waiting.failure(py, object, now)));
            }
        }
    }
}

impl Waiting {
    fn failure(&self, py: Python<'_>, object: &Py<PyAny>, now: Nanos) -> Failure {
        let (from, to) = (self.since as f64 / 1e9, now as f64 / 1e9);
        let what = format!(
            "sends nothing from {from:.3} s to {to:.3} s, with {} bytes to send and idle paths",
            self.unsent
        );
        Failure {
            error: PyValueError::new_err(what),
            at: now,
            object: object.clone_ref(py),
            method: "select",
        }
    }
}

/// What Python shows of a value.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or("?".into(), |text| text.to_string())
}

/// A whole number, which truth values are not.
pub fn whole(value: &Bound<'_, PyAny>) -> Option<i64> {
    (!value.is_instance_of::<PyBool>())
        .then(|| value.extract().ok())
        .flatten()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scripts {
    pub fn new(load: Py<PyAny>) -> Self {
        Self {
            load,
            fate: Arc::default(),
        }
    }

    pub fn fate(&self) -> Arc<Fate> {
        self.fate.clone()
    }

    fn knows(choice: &Choice) -> bool {
        choice.name == NAME
    }

    /// What the run has of a kind, from its description in JSON.
    pub fn load(&self, py: Python<'_>, kind: &str, description: String) -> PyResult<Py<PyAny>> {
        self.load.call1(py, (kind, description))
    }

    fn instance(&self, kind: &str, choice: &Choice) -> Result<Py<PyAny>, RegistryError> {
        let parameters = serde_json::Value::Object(choice.parameters.clone()).to_string();
        Python::attach(|py| {
            self.load(py, kind, parameters)
                .map_err(|error| RegistryError::Foreign(error.value(py).to_string()))
        })
    }
}

impl Foreign for Scripts {
    fn congestion(
        &self,
        choice: &Choice,
    ) -> Option<Result<Box<dyn CongestionControl>, RegistryError>> {
        Self::knows(choice).then(|| {
            let object = self.instance("congestion", choice)?;
            let fate = self.fate.clone();
            let made = Python::attach(|py| Controller::new(py, object, fate));
            Ok(Box::new(made) as Box<dyn CongestionControl>)
        })
    }

    fn scheduler(&self, choice: &Choice) -> Option<Result<Box<dyn Scheduler>, RegistryError>> {
        Self::knows(choice).then(|| {
            let object = self.instance("scheduler", choice)?;
            Ok(Python::attach(|py| {
                let has = |name: &str| object.bind(py).hasattr(name).unwrap_or(false);
                Box::new(Script {
                    repeats: object
                        .getattr(py, "repeats")
                        .is_ok_and(|answer| answer.is_truthy(py).unwrap_or(false)),
                    carried: has("carried"),
                    datagrams: 0,
                    object,
                    fate: self.fate.clone(),
                    waiting: None,
                    now: 0,
                }) as Box<dyn Scheduler>
            }))
        })
    }

    fn path_manager(&self, choice: &Choice) -> Option<Result<Box<dyn PathManager>, RegistryError>> {
        Self::knows(choice).then(|| {
            Ok(Box::new(Manager {
                object: self.instance("path-manager", choice)?,
                fate: self.fate.clone(),
                wake: NEVER,
            }) as Box<dyn PathManager>)
        })
    }
}

impl Choosers for Scripts {
    fn chooser(&self, choice: &Choice) -> Option<Result<Box<dyn Chooser>, RegistryError>> {
        (choice.name == NAME).then(|| {
            Ok(Box::new(Ruler {
                object: self.instance("controller", choice)?,
                fate: self.fate.clone(),
            }) as Box<dyn Chooser>)
        })
    }
}

/// A controller in Python.
struct Ruler {
    object: Py<PyAny>,
    fate: Arc<Fate>,
}

impl Ruler {
    fn ask(&self, py: Python<'_>, flow: &NewFlow, ways: &[Vec<&str>]) -> PyResult<Option<usize>> {
        let answer = (self.object).call_method1(py, "choose", (views::Flow::new(flow), ways))?;
        let answer = answer.bind(py);
        if answer.is_none() {
            return Ok(None);
        }
        let index = whole(answer).and_then(|number| usize::try_from(number).ok());
        let index = index.filter(|index| *index < ways.len());
        index.map(Some).ok_or_else(|| {
            let shown = shown(answer);
            let last = ways.len().saturating_sub(1);
            PyValueError::new_err(format!(
                "choose returned {shown}; it must return the index of a path, 0 to {last}, or None to drop the packet"
            ))
        })
    }
}

impl Chooser for Ruler {
    fn choose(&mut self, flow: &NewFlow, ways: &[Vec<&str>]) -> Option<usize> {
        if self.fate.failed() {
            return None;
        }
        Python::attach(|py| match self.ask(py, flow, ways) {
            Ok(index) => index,
            Err(error) => {
                self.fate.fail(Failure {
                    error,
                    at: flow.at,
                    object: self.object.clone_ref(py),
                    method: "choose",
                });
                None
            }
        })
    }
}

struct Script {
    object: Py<PyAny>,
    /// Asked too when there is nothing new to send.
    repeats: bool,
    /// Wants to know what came of its decisions.
    carried: bool,
    /// Bytes in DATAGRAM frames of the packet that it is told of next.
    datagrams: u32,
    fate: Arc<Fate>,
    /// Since it first sent nothing although it could.
    waiting: Option<Arc<Mutex<Waiting>>>,
    now: Nanos,
}

impl Script {
    fn fail(&self, py: Python<'_>, error: PyErr, method: &'static str) {
        self.fate.fail(Failure {
            error,
            at: self.now,
            object: self.object.clone_ref(py),
            method,
        });
    }

    fn ask(&self, py: Python<'_>, view: &View) -> PyResult<Decision> {
        let answer = self
            .object
            .call_method1(py, "select", (views::View::new(py, view)?,))?;
        let answer = answer.bind(py);
        if answer.is_none() {
            return Ok(Decision::Wait);
        }
        let count = view.paths.len();
        let path = |answer: &Bound<'_, PyAny>| -> PyResult<usize> {
            let number = whole(answer).ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "select returned {}; it must return the index of a path, None to wait, or (index, offset) to repeat",
                    shown(answer)
                ))
            })?;
            usize::try_from(number)
                .ok()
                .filter(|index| *index < count)
                .ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "select returned path {number}; the connection has paths 0 to {}",
                        count - 1
                    ))
                })
        };
        if let Ok(pair) = answer.cast::<PyTuple>()
            && pair.len() == 2
        {
            let index = path(&pair.get_item(0)?)?;
            let second = pair.get_item(1)?;
            let offset = whole(&second).and_then(|number| u64::try_from(number).ok());
            let within = |offset: &u64| (view.una..view.sent).contains(offset);
            let offset = offset.filter(within).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "select repeats offset {}; it may repeat offsets {} to {}",
                    shown(&second),
                    view.una,
                    view.sent
                ))
            })?;
            let able = scheduler::usable(&view.paths[index]) && ready(&view.paths[index]);
            return Ok(if able {
                Decision::Repeat {
                    path: index,
                    offset,
                }
            } else {
                Decision::Wait
            });
        }
        let index = path(answer)?;
        let able = scheduler::usable(&view.paths[index]) && ready(&view.paths[index]);
        Ok(if able && view.next.is_some() {
            Decision::Send(index)
        } else {
            Decision::Wait
        })
    }

    /// Notes since when nothing is sent although nothing else will happen.
    fn note(&mut self, py: Python<'_>, view: &View, decision: Decision) {
        let idle = |index: usize| {
            let path = &view.paths[index];
            path.in_flight == 0 && path.queued == 0
        };
        let stuck = decision == Decision::Wait
            && view.next.is_some()
            && candidates_of_class(view.paths).any(|index| ready(&view.paths[index]))
            && (0..view.paths.len()).all(idle);
        let begun = || Waiting {
            since: view.now,
            unsent: view.unsent,
            object: Some(self.object.clone_ref(py)),
        };
        let Some(waiting) = &self.waiting else {
            if stuck {
                let waiting = Arc::new(Mutex::new(begun()));
                lock(&self.fate.waiting).push(waiting.clone());
                self.waiting = Some(waiting);
            }
            return;
        };
        let mut waiting = lock(waiting);
        match (&waiting.object, stuck) {
            (None, true) => *waiting = begun(),
            (Some(object), true) if view.now - waiting.since >= PATIENCE => {
                self.fate.fail(waiting.failure(py, object, view.now));
            }
            (Some(_), false) => waiting.object = None,
            _ => {}
        }
    }
}

impl Scheduler for Script {
    fn select(&mut self, view: &View) -> Decision {
        self.now = view.now;
        if self.fate.failed() {
            return Decision::Wait;
        }
        match &view.next {
            Some(next) if next.reinjection => return lowest_rtt::place(view, next),
            None if !self.repeats => return Decision::Wait,
            _ => {}
        }
        Python::attach(|py| {
            let decision = self.ask(py, view).unwrap_or_else(|error| {
                self.fail(py, error, "select");
                Decision::Wait
            });
            // A packet without data leaves in any case.
            if view.kind == PacketKind::Data {
                self.note(py, view, decision);
            }
            decision
        })
    }

    fn carries_datagrams(&mut self, _path: usize, bytes: u32) {
        self.datagrams = bytes;
    }

    fn carried(&mut self, segment: Carried) {
        let bytes = segment.bytes + std::mem::take(&mut self.datagrams);
        if !self.carried || self.fate.failed() {
            return;
        }
        Python::attach(|py| {
            let told = (segment.path, bytes, segment.new);
            if let Err(error) = self.object.call_method1(py, "carried", told) {
                self.fail(py, error, "carried");
            }
        });
    }
}

struct Manager {
    object: Py<PyAny>,
    fate: Arc<Fate>,
    wake: Nanos,
}

impl PathManager for Manager {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        self.wake = NEVER;
        if self.fate.failed() {
            return Vec::new();
        }
        Python::attach(|py| {
            self.ask(py, view).unwrap_or_else(|error| {
                self.fate.fail(Failure {
                    error,
                    at: view.clock,
                    object: self.object.clone_ref(py),
                    method: "manage",
                });
                Vec::new()
            })
        })
    }

    fn minds(&self, occasion: Occasion) -> bool {
        let of_addresses = matches!(
            occasion,
            Occasion::AddressReceived(_)
                | Occasion::AddressRemoved { .. }
                | Occasion::AddressUp(_)
                | Occasion::AddressDown { .. }
        );
        of_addresses || occasion == Occasion::Turn
    }

    fn wake(&self) -> Nanos {
        self.wake
    }
}

impl Manager {
    fn ask(&mut self, py: Python<'_>, view: &PmView) -> PyResult<Vec<Action>> {
        let answer =
            self.object
                .call_method1(py, "manage", (views::PathManagerView::new(py, view)?,))?;
        let mut actions = Vec::new();
        let answer = answer.bind(py);
        if !answer.is_none() {
            let listed = answer.try_iter().map_err(|_| {
                PyTypeError::new_err(format!(
                    "manage returned {}; it must return a list of actions",
                    shown(answer)
                ))
            });
            for action in listed? {
                actions.push(decode(&action?, view)?);
            }
        }
        if let Some(wake) = self.object.bind(py).getattr_opt("wake")?
            && let Some(seconds) = wake.extract::<Option<f64>>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "wake is {}; it must be a number of seconds, or None",
                    shown(&wake)
                ))
            })?
            && seconds >= 0.0
        {
            self.wake = (seconds * 1e9).round() as Nanos;
        }
        Ok(actions)
    }
}

const ACTIONS: &str = "open, close, backup, normal (with a local and a remote address), announce and withdraw (with a local one)";

fn decode(action: &Bound<'_, PyAny>, view: &PmView) -> PyResult<Action> {
    let shown = || shown(action);
    let words: Vec<Bound<'_, PyAny>> = action.extract().unwrap_or_default();
    let texts: Vec<String> = words
        .iter()
        .take(3)
        .map_while(|word| word.extract().ok())
        .collect();
    let address = |text: &str| {
        text.parse::<IpAddr>()
            .map_err(|_| PyValueError::new_err(format!("'{text}' is no address, in {}", shown())))
    };
    let local = |text: &str| {
        let address = address(text)?;
        let known = view.local.iter().find(|local| local.address == address);
        known.map(|local| local.id).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{address} is no address of this host, in {}",
                shown()
            ))
        })
    };
    let remote = |text: &str| {
        let address = address(text)?;
        let known = view.remote.iter().find(|remote| remote.address == address);
        known.map(|remote| remote.id).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{address} is no address of the peer, in {}",
                shown()
            ))
        })
    };
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let pair = |from: &str, to: &str| {
        Ok::<Pair, PyErr>(Pair {
            local: local(from)?,
            remote: remote(to)?,
        })
    };
    // One that the peer opened may be from an address that it never told of.
    let existing = |from: &str, to: &str| {
        let wanted = (address(from)?, address(to)?);
        let mut subflows = view.subflows.iter().zip(view.addresses);
        let found = subflows.find(|(_, (own, other))| (*own, other.ip()) == wanted);
        found.map_or_else(|| pair(from, to), |(pair, _)| Ok(*pair))
    };
    match (&texts[..], &words[texts.len()..]) {
        (["announce", own], []) => Ok(Action::announce(local(own)?)),
        (["withdraw", own], []) => Ok(Action::Withdraw(local(own)?)),
        (["open", _, _], _) if !view.opens => Err(PyValueError::new_err(format!(
            "over Multipath QUIC only the client opens paths (RFC 10069 section 3.1), but this is the server, in {}",
            shown()
        ))),
        (["open", own, other], []) => Ok(Action::Open(pair(own, other)?)),
        (["open", own, other], [gateways]) => {
            let gateways = gateways.extract::<Vec<String>>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "manage returned {}; gateways must be a list of addresses",
                    shown()
                ))
            })?;
            let gateways = gateways.iter().map(|text| address(text));
            Ok(Action::OpenVia(
                pair(own, other)?,
                gateways.collect::<PyResult<_>>()?,
            ))
        }
        (["close", own, other], []) => Ok(Action::Close(existing(own, other)?)),
        ([verb @ ("backup" | "normal"), own, other], []) => Ok(Action::Priority {
            pair: existing(own, other)?,
            backup: *verb == "backup",
        }),
        _ => Err(PyTypeError::new_err(format!(
            "manage returned {}; an action must be a tuple: {ACTIONS}",
            shown()
        ))),
    }
}

//! Congestion controls that are written in Python.

use std::sync::Arc;

use polypath_lab::transport::Nanos;
use polypath_lab::transport::congestion::{
    self, Ack, CongestionControl, RateSample, Restart, additive_increase,
};
use polypath_lab::transport::path::{self, CaState, INFINITE_SSTHRESH, Member};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::scripts::{Failure, Fate, shown, whole};
use crate::views::{self, path_class, seconds, state};

/// The largest window, in packets.
const LARGEST: u32 = 1 << 30;

/// The path that a controller is of.
#[pyclass(module = "polypath._core")]
pub struct ControlledPath {
    index: usize,
    /// All of the connection.
    paths: Vec<path::Path>,
    random: Pcg64Mcg,
}

impl ControlledPath {
    fn own(&self) -> &path::Path {
        &self.paths[self.index]
    }

    fn own_mut(&mut self) -> &mut path::Path {
        &mut self.paths[self.index]
    }
}

/// A number of packets within the bounds of a window.
fn packets(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    let number = whole(value).and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| (1..=LARGEST).contains(number));
    number.ok_or_else(|| {
        PyValueError::new_err(format!(
            "{what} {}; it must be a whole number of packets, 1 to {LARGEST}",
            shown(value)
        ))
    })
}

path_class!(ControlledPath, self => self.own(), {
    #[getter]
    fn multipath(&self) -> bool {
        self.own().multipath
    }

    #[getter]
    fn in_slow_start(&self) -> bool {
        self.own().in_slow_start()
    }

    #[getter]
    fn between_losses(&self) -> u64 {
        self.own().between_losses
    }

    #[getter]
    fn paths(&self, py: Python<'_>) -> PyResult<Py<PyTuple>> {
        views::paths(py, &self.paths)
    }

    #[setter]
    fn set_cwnd(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.own_mut().cwnd = packets("cwnd is set to", value)?;
        Ok(())
    }

    #[setter]
    fn set_ssthresh(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.own_mut().ssthresh = match value.is_none() {
            true => INFINITE_SSTHRESH,
            false => packets("ssthresh is set to", value)?,
        };
        Ok(())
    }

    #[setter]
    fn set_pacing_rate(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let rate = value.extract::<f64>().ok().filter(|rate| *rate >= 1.0 && rate.is_finite());
        self.own_mut().pacing_rate = rate.ok_or_else(|| {
            PyValueError::new_err(format!(
                "pacing_rate is set to {}; it must be a number of bytes per second, at least 1",
                shown(value)
            ))
        })? as u64;
        Ok(())
    }

    /// Slow start (RFC 5681 section 3.1). Gives the packets that are left for congestion avoidance.
    fn slow_start(&mut self, packets: u32) -> u32 {
        congestion::slow_start(self.own_mut(), packets)
    }

    /// Packets that leave together at the pacing rate.
    #[getter]
    fn burst(&self) -> u32 {
        path::burst(self.own().pacing_rate, self.own().mss)
    }

    /// A number drawn from the run's seed.
    fn below(&mut self, count: usize) -> PyResult<usize> {
        if count == 0 {
            return Err(PyValueError::new_err("below(0): there is no whole number below 0"));
        }
        Ok(self.random.random_range(0..count))
    }

    /// One packet more for every `per_packet` acknowledged (Linux `tcp_cong_avoid_ai`).
    fn additive_increase(&mut self, per_packet: u32, packets: u32) {
        additive_increase(self.own_mut(), per_packet, packets);
    }
});

/// What an acknowledgement brought.
#[pyclass(frozen, get_all, module = "polypath._core")]
pub struct Acknowledgement {
    now: f64,
    packets: u32,
    rtt: Option<f64>,
    cwnd_limited: bool,
    una: u64,
    next_seq: u64,
}

impl From<&Ack> for Acknowledgement {
    fn from(ack: &Ack) -> Self {
        Self {
            now: seconds(ack.now),
            packets: ack.packets,
            rtt: ack.rtt.map(seconds),
            cwnd_limited: ack.cwnd_limited,
            una: ack.una,
            next_seq: ack.next_seq,
        }
    }
}

/// What an acknowledgement says of the rate of delivery.
#[pyclass(frozen, get_all, module = "polypath._core")]
pub struct DeliverySample {
    rate: Option<f64>,
    packets: u64,
    prior_delivered: u64,
    interval: Option<f64>,
    app_limited: bool,
    delivered: u64,
    lost: u64,
    newly_lost: u32,
    in_flight_before: u32,
    delivered_at: f64,
    maybe_delayed: bool,
    departure: f64,
}

impl DeliverySample {
    fn new(sample: &RateSample, mss: u32) -> Self {
        let timed = sample.interval.filter(|interval| interval.time > 0);
        let rate = timed.map(|it| (it.packets * u64::from(mss)) as f64 / seconds(it.time));
        let interval = sample.interval;
        Self {
            rate,
            packets: interval.map_or(0, |it| it.packets),
            prior_delivered: interval.map_or(0, |it| it.prior_delivered),
            interval: interval.map(|it| seconds(it.time)),
            app_limited: interval.is_some_and(|it| it.app_limited),
            delivered: sample.delivered,
            lost: sample.lost,
            newly_lost: sample.newly_lost,
            in_flight_before: sample.in_flight_before,
            delivered_at: seconds(sample.delivered_at),
            maybe_delayed: sample.maybe_delayed,
            departure: seconds(sample.departure),
        }
    }
}

/// How a path sends again that has nothing in flight.
#[pyclass(frozen, get_all, module = "polypath._core")]
pub struct Idleness {
    now: f64,
    idle: f64,
    outdated: bool,
    app_limited: bool,
}

/// Which of the methods that may be left out a class has.
struct Has {
    established: bool,
    ssthresh: bool,
    sample: bool,
    ack: bool,
    control: bool,
    state: bool,
    restart: bool,
    undo: bool,
}

/// A congestion control in Python.
pub struct Controller {
    object: Py<PyAny>,
    fate: Arc<Fate>,
    has: Has,
    paces: bool,
    now: Nanos,
    random: Pcg64Mcg,
}

impl Controller {
    pub fn new(py: Python<'_>, object: Py<PyAny>, fate: Arc<Fate>) -> Self {
        let has = |name: &str| object.bind(py).hasattr(name).unwrap_or(false);
        Self {
            has: Has {
                established: has("on_established"),
                ssthresh: has("ssthresh"),
                sample: has("on_sample"),
                ack: has("on_ack"),
                control: has("control"),
                state: has("on_state"),
                restart: has("on_restart"),
                undo: has("undo"),
            },
            paces: object
                .getattr(py, "paces")
                .is_ok_and(|answer| answer.is_truthy(py).unwrap_or(false)),
            object,
            fate,
            now: 0,
            random: Pcg64Mcg::seed_from_u64(0),
        }
    }

    /// Calls a method with the path and what else it takes, and sets the path as it leaves it. What it raises ends the run.
    fn call<T>(
        &mut self,
        method: &'static str,
        path: &mut Member,
        rest: impl FnOnce(Python<'_>) -> PyResult<Vec<Py<PyAny>>>,
        answer: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if self.fate.failed() {
            return None;
        }
        let called = Python::attach(|py| {
            let called = || {
                let own = Py::new(
                    py,
                    ControlledPath {
                        index: path.index,
                        paths: path.paths.to_vec(),
                        random: self.random.clone(),
                    },
                )?;
                let mut arguments = vec![own.clone_ref(py).into_any()];
                arguments.extend(rest(py)?);
                let given = (self.object)
                    .call_method1(py, method, PyTuple::new(py, arguments)?)
                    .and_then(|given| answer(given.bind(py)))?;
                let own = own.borrow(py);
                let random = own.random.clone();
                let own = own.own();
                path.cwnd = own.cwnd;
                path.cwnd_count = own.cwnd_count;
                path.ssthresh = own.ssthresh;
                path.pacing_rate = own.pacing_rate;
                Ok((given, random))
            };
            called()
                .map_err(|error| {
                    self.fate.fail(Failure {
                        error,
                        at: self.now,
                        object: self.object.clone_ref(py),
                        method,
                    });
                })
                .ok()
        });
        let (given, random) = called?;
        self.random = random;
        Some(given)
    }

    fn tell(&mut self, method: &'static str, path: &mut Member) {
        self.call(method, path, |_| Ok(Vec::new()), |_| Ok(()));
    }

    fn acknowledge(&mut self, method: &'static str, path: &mut Member, ack: &Ack) {
        self.now = ack.now;
        let told = |py: Python<'_>| Ok(vec![Py::new(py, Acknowledgement::from(ack))?.into_any()]);
        self.call(method, path, told, |_| Ok(()));
    }
}

impl CongestionControl for Controller {
    fn on_established(&mut self, path: &mut Member) {
        if self.has.established {
            self.tell("on_established", path);
        }
    }

    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        let half = (path.cwnd / 2).max(2);
        if !self.has.ssthresh {
            return half;
        }
        let given = self.call(
            "ssthresh",
            path,
            |_| Ok(Vec::new()),
            |given| match given.is_none() {
                true => Ok(INFINITE_SSTHRESH),
                false => packets("ssthresh returned", given),
            },
        );
        given.unwrap_or(half)
    }

    fn on_sample(&mut self, path: &mut Member, ack: &Ack) {
        if self.has.sample {
            self.acknowledge("on_sample", path, ack);
        }
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if self.has.ack {
            self.acknowledge("on_ack", path, ack);
        }
    }

    fn paces(&self) -> bool {
        self.paces
    }

    fn seed(&mut self, seed: u64) {
        self.random = Pcg64Mcg::seed_from_u64(seed);
    }

    fn control(&mut self, path: &mut Member, ack: &Ack, sample: &RateSample) -> bool {
        self.now = ack.now;
        if !self.has.control {
            return false;
        }
        let mss = path.mss;
        let told = |py: Python<'_>| {
            Ok(vec![
                Py::new(py, Acknowledgement::from(ack))?.into_any(),
                Py::new(py, DeliverySample::new(sample, mss))?.into_any(),
            ])
        };
        let answer = |given: &Bound<'_, PyAny>| {
            given
                .extract::<Option<bool>>()
                .map(Option::unwrap_or_default)
                .map_err(|_| {
                    PyTypeError::new_err(format!(
                        "control returned {}; it must return None or a bool: whether what is in flight says nothing about the path",
                        shown(given)
                    ))
                })
        };
        self.call("control", path, told, answer).unwrap_or(false)
    }

    fn on_state(&mut self, path: &mut Member, entered: CaState) {
        if self.has.state {
            let told = |py: Python<'_>| {
                let name = state(entered).into_pyobject(py)?;
                Ok(vec![name.into_any().unbind()])
            };
            self.call("on_state", path, told, |_| Ok(()));
        }
    }

    fn on_restart(&mut self, path: &mut Member, restart: &Restart) {
        self.now = restart.now;
        if self.has.restart {
            let told = |py: Python<'_>| {
                let idleness = Idleness {
                    now: seconds(restart.now),
                    idle: seconds(restart.idle),
                    outdated: restart.outdated,
                    app_limited: restart.app_limited,
                };
                Ok(vec![Py::new(py, idleness)?.into_any()])
            };
            self.call("on_restart", path, told, |_| Ok(()));
        }
    }

    fn undo(&mut self, path: &Member, prior: u32) -> u32 {
        let larger = path.cwnd.max(prior);
        if !self.has.undo {
            return larger;
        }
        let mut paths = path.paths.to_vec();
        let told = |py: Python<'_>| Ok(vec![prior.into_pyobject(py)?.into_any().unbind()]);
        self.call(
            "undo",
            &mut Member::new(&mut paths, path.index),
            told,
            |given| packets("undo returned", given),
        )
        .unwrap_or(larger)
    }
}

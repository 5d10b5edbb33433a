//! What algorithms in Python see. Times are in seconds, sizes in bytes, windows in packets.

use polypath_lab::NewFlow;
use polypath_lab::transport::path::{self, CaState, INFINITE_SSTHRESH};
use polypath_lab::transport::path_manager::PmView;
use polypath_lab::transport::scheduler;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// A flow that a controller has to give a path.
#[pyclass(frozen, get_all, module = "polypath._core")]
pub struct Flow {
    time: f64,
    source: String,
    source_port: u16,
    destination: String,
    destination_port: u16,
    protocol: &'static str,
    hash: u64,
}

impl Flow {
    pub fn new(flow: &NewFlow) -> Self {
        Self {
            time: seconds(flow.at),
            source: flow.source.ip().to_string(),
            source_port: flow.source.port(),
            destination: flow.destination.ip().to_string(),
            destination_port: flow.destination.port(),
            protocol: match flow.protocol {
                6 => "tcp",
                17 => "udp",
                _ => "icmp",
            },
            hash: flow.hash,
        }
    }
}

/// A path of a connection at a decision.
#[pyclass(frozen, module = "polypath._core")]
pub struct Path {
    #[pyo3(get)]
    index: usize,
    path: path::Path,
}

#[pymethods]
impl Path {
    #[getter]
    fn established(&self) -> bool {
        self.path.established
    }

    #[getter]
    fn backup(&self) -> bool {
        self.path.backup
    }

    #[getter]
    fn potentially_failed(&self) -> bool {
        self.path.potentially_failed
    }

    #[getter]
    fn usable(&self) -> bool {
        scheduler::usable(&self.path)
    }

    #[getter]
    fn ready(&self) -> bool {
        scheduler::usable(&self.path) && scheduler::ready(&self.path)
    }

    #[getter]
    fn state(&self) -> &'static str {
        match self.path.state {
            CaState::Open => "Open",
            CaState::Disorder => "Disorder",
            CaState::Cwr => "CWR",
            CaState::Recovery => "Recovery",
            CaState::Loss => "Loss",
        }
    }

    #[getter]
    fn mss(&self) -> u32 {
        self.path.mss
    }

    #[getter]
    fn cwnd(&self) -> u32 {
        self.path.cwnd
    }

    #[getter]
    fn ssthresh(&self) -> Option<u32> {
        (self.path.ssthresh != INFINITE_SSTHRESH).then_some(self.path.ssthresh)
    }

    #[getter]
    fn in_flight(&self) -> u32 {
        self.path.in_flight
    }

    #[getter]
    fn room(&self) -> u32 {
        self.path.room()
    }

    #[getter]
    fn paced(&self) -> bool {
        self.path.paced
    }

    #[getter]
    fn queued(&self) -> u64 {
        self.path.queued
    }

    #[getter]
    fn pacing_rate(&self) -> u64 {
        self.path.pacing_rate
    }

    #[getter]
    fn srtt(&self) -> f64 {
        seconds(self.path.srtt)
    }

    #[getter]
    fn rttvar(&self) -> f64 {
        seconds(self.path.rttvar)
    }

    #[getter]
    fn min_rtt(&self) -> f64 {
        seconds(self.path.min_rtt)
    }

    #[getter]
    fn latest_rtt(&self) -> f64 {
        seconds(self.path.latest_rtt)
    }

    #[getter]
    fn acked(&self) -> u64 {
        self.path.acked
    }

    fn __repr__(&self) -> String {
        format!(
            "Path(index={}, state={}, srtt={:.6}, cwnd={}, in_flight={}, queued={}, backup={}, ready={})",
            self.index,
            self.state(),
            self.srtt(),
            self.cwnd(),
            self.in_flight(),
            self.queued(),
            if self.backup() { "True" } else { "False" },
            if self.ready() { "True" } else { "False" },
        )
    }
}

/// A connection at a decision.
#[pyclass(frozen, get_all, module = "polypath._core")]
pub struct View {
    now: f64,
    paths: Py<PyTuple>,
    kind: &'static str,
    offset: Option<u64>,
    length: u64,
    una: u64,
    sent: u64,
    unsent: u64,
    window: u64,
    head: Option<(u64, usize)>,
}

impl View {
    pub fn new(py: Python<'_>, view: &scheduler::View) -> PyResult<Self> {
        let paths = view.paths.iter().enumerate().map(|(index, path)| Path {
            index,
            path: path.clone(),
        });
        let paths: Vec<Py<Path>> = paths
            .map(|path| Py::new(py, path))
            .collect::<PyResult<_>>()?;
        Ok(Self {
            now: seconds(view.now),
            paths: PyTuple::new(py, paths)?.unbind(),
            kind: view.kind.name(),
            offset: view.next.as_ref().map(|next| next.offset),
            length: view.next.as_ref().map_or(0, |next| next.len),
            una: view.una,
            sent: view.sent,
            unsent: view.unsent,
            window: view.window,
            head: view.head.as_ref().map(|head| (head.offset, head.holder)),
        })
    }
}

/// An address of a host.
#[pyclass(frozen, get_all, module = "polypath._core")]
pub struct Address {
    id: u8,
    address: String,
    backup: bool,
    up: bool,
}

#[pymethods]
impl Address {
    fn __repr__(&self) -> String {
        format!("Address(id={}, address='{}')", self.id, self.address)
    }
}

/// A connection as its path manager sees it.
#[pyclass(frozen, get_all, module = "polypath._core")]
pub struct PathManagerView {
    now: f64,
    client: bool,
    local: Py<PyTuple>,
    remote: Py<PyTuple>,
    subflows: Vec<(String, String)>,
    announced: Vec<String>,
}

impl PathManagerView {
    pub fn new(py: Python<'_>, view: &PmView) -> PyResult<Self> {
        let local = view.local.iter().map(|local| Address {
            id: local.id,
            address: local.address.to_string(),
            backup: local.backup,
            up: local.up,
        });
        let remote = view.remote.iter().map(|remote| Address {
            id: remote.id,
            address: remote.address.to_string(),
            backup: false,
            up: true,
        });
        let local: Vec<Py<Address>> = local.map(|one| Py::new(py, one)).collect::<PyResult<_>>()?;
        let remote: Vec<Py<Address>> = remote
            .map(|one| Py::new(py, one))
            .collect::<PyResult<_>>()?;
        let own = |id: &u8| view.local.iter().find(|local| local.id == *id);
        Ok(Self {
            now: seconds(view.now),
            client: view.client,
            local: PyTuple::new(py, local)?.unbind(),
            remote: PyTuple::new(py, remote)?.unbind(),
            subflows: view
                .addresses
                .iter()
                .map(|(own, other)| (own.to_string(), other.to_string()))
                .collect(),
            announced: (view.announced.iter().filter_map(own))
                .map(|local| local.address.to_string())
                .collect(),
        })
    }
}

//! The views that algorithms in Python see. Times are in seconds, sizes in bytes, windows in packets.

use polypath_lab::NewFlow;
use polypath_lab::transport::path::{self, CaState, INFINITE_SSTHRESH};
use polypath_lab::transport::path_manager::PmView;
use polypath_lab::transport::scheduler;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub fn seconds(nanos: u64) -> f64 {
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

/// Gives a class what algorithms in Python read of a path, and `$own`. `$path` is where it has that.
macro_rules! path_class {
    ($class:ident, $self:ident => $path:expr, { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            #[getter]
            fn index(&self) -> usize {
                self.index
            }

            #[getter]
            fn established(&$self) -> bool {
                $path.established
            }

            #[getter]
            fn backup(&$self) -> bool {
                $path.backup
            }

            #[getter]
            fn potentially_failed(&$self) -> bool {
                $path.potentially_failed
            }

            #[getter]
            fn usable(&$self) -> bool {
                polypath_lab::transport::scheduler::usable(&$path)
            }

            #[getter]
            fn ready(&$self) -> bool {
                polypath_lab::transport::scheduler::usable(&$path) && polypath_lab::transport::scheduler::ready(&$path)
            }

            #[getter]
            fn state(&$self) -> &'static str {
                state($path.state)
            }

            #[getter]
            fn mss(&$self) -> u32 {
                $path.mss
            }

            #[getter]
            fn cwnd(&$self) -> u32 {
                $path.cwnd
            }

            #[getter]
            fn ssthresh(&$self) -> Option<u32> {
                ($path.ssthresh != INFINITE_SSTHRESH).then_some($path.ssthresh)
            }

            #[getter]
            fn in_flight(&$self) -> u32 {
                $path.in_flight
            }

            #[getter]
            fn room(&$self) -> u32 {
                $path.room()
            }

            #[getter]
            fn paced(&$self) -> bool {
                $path.paced
            }

            #[getter]
            fn queued(&$self) -> u64 {
                $path.queued
            }

            #[getter]
            fn pacing_rate(&$self) -> u64 {
                $path.pacing_rate
            }

            #[getter]
            fn srtt(&$self) -> f64 {
                seconds($path.srtt)
            }

            #[getter]
            fn rttvar(&$self) -> f64 {
                seconds($path.rttvar)
            }

            #[getter]
            fn min_rtt(&$self) -> f64 {
                seconds($path.min_rtt)
            }

            #[getter]
            fn latest_rtt(&$self) -> f64 {
                seconds($path.latest_rtt)
            }

            #[getter]
            fn acked(&$self) -> u64 {
                $path.acked
            }

            fn __repr__(&$self) -> String {
                format!(
                    "{}(index={}, state={}, srtt={:.6}, cwnd={}, in_flight={}, queued={}, backup={}, ready={})",
                    stringify!($class),
                    $self.index,
                    state($path.state),
                    seconds($path.srtt),
                    $path.cwnd,
                    $path.in_flight,
                    $path.queued,
                    if $path.backup { "True" } else { "False" },
                    if polypath_lab::transport::scheduler::usable(&$path) && polypath_lab::transport::scheduler::ready(&$path) { "True" } else { "False" },
                )
            }

            $($own)*
        }
    };
}

pub(crate) use path_class;

pub fn state(state: CaState) -> &'static str {
    match state {
        CaState::Open => "Open",
        CaState::Disorder => "Disorder",
        CaState::Cwr => "CWR",
        CaState::Recovery => "Recovery",
        CaState::Loss => "Loss",
    }
}

/// A path of a connection at a decision.
#[pyclass(frozen, module = "polypath._core")]
pub struct Path {
    index: usize,
    path: path::Path,
}

impl Path {
    pub fn new(index: usize, path: &path::Path) -> Self {
        Self {
            index,
            path: path.clone(),
        }
    }
}

path_class!(Path, self => self.path, {});

/// All paths of a connection, for Python.
pub fn paths(py: Python<'_>, paths: &[path::Path]) -> PyResult<Py<PyTuple>> {
    let paths = paths.iter().enumerate();
    let paths: Vec<Py<Path>> = paths
        .map(|(index, path)| Py::new(py, Path::new(index, path)))
        .collect::<PyResult<_>>()?;
    Ok(PyTuple::new(py, paths)?.unbind())
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
        Ok(Self {
            now: seconds(view.now),
            paths: paths(py, view.paths)?,
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
                .map(|(own, other)| (own.to_string(), other.ip().to_string()))
                .collect(),
            announced: (view.announced.iter().filter_map(own))
                .map(|local| local.address.to_string())
                .collect(),
        })
    }
}

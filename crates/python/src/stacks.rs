//! Stacks of QUIC that are written in Python, usually around a library. `polypath.stacks` has them.
//!
//! As with algorithms, an exception is kept until the run's next step returns. Until then the stack is not asked again.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use polypath_lab::transport::quic::crypto::certificate::{certificate, key};
use polypath_lab::transport::{CloseReason, Codepoint, NEVER, Nanos, Tuple};
use polypath_lab::written::{
    Asked, Beginning, Content, Elsewhere, Figures, News, Polled, WrittenEnd, WrittenStack,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::scripts::{Failure, Fate, Scripts};

/// An address and port as Python has it.
type Place = (String, u16);

impl Elsewhere for Scripts {
    fn stack(&self, name: &str, asked: &Asked) -> Option<Result<Arc<dyn WrittenStack>, String>> {
        let settings = serde_json::json!({
            "name": name,
            "multipath": asked.multipath,
            "congestion": asked.congestion,
            "initial_window": asked.initial_window,
            "receive_window": asked.receive_window,
            "longest_datagram": asked.longest_datagram,
            "keepalive_ns": asked.keepalive,
            "retry": asked.retry,
            // What every server here shows, in DER (RFC 5280, RFC 5958).
            "certificate": certificate().as_ref(),
            "key": key().secret_der(),
        });
        let made = Python::attach(|py| {
            let made = self.load(py, "stack", settings.to_string());
            made.map(|object| (!object.is_none(py)).then_some(object))
                .map_err(|error| error.value(py).to_string())
        });
        match made {
            Ok(None) => None,
            Ok(Some(object)) => Some(Ok(Arc::new(Stack {
                object,
                fate: self.fate(),
            }))),
            Err(problem) => Some(Err(problem)),
        }
    }
}

/// Makes ends of connections.
struct Stack {
    object: Py<PyAny>,
    fate: Arc<Fate>,
}

impl WrittenStack for Stack {
    fn begin(&self, beginning: Beginning) -> Box<dyn WrittenEnd> {
        let Beginning {
            client,
            tuple,
            seed,
            backup,
            content,
            now,
        } = beginning;
        Python::attach(|py| {
            let made = self.object.call_method1(
                py,
                "begin",
                (
                    client,
                    place(tuple.local),
                    place(tuple.remote),
                    seed,
                    backup,
                    Bytes(content),
                    now,
                ),
            );
            let object = made.unwrap_or_else(|error| {
                self.fate.fail(Failure {
                    error,
                    at: now,
                    object: self.object.clone_ref(py),
                    method: "begin",
                });
                py.None()
            });
            Box::new(End {
                object,
                fate: self.fate.clone(),
                now,
            })
        })
    }
}

/// The bytes that an end sends on its streams.
#[pyclass(frozen, name = "StreamContent", module = "polypath._core")]
pub struct Bytes(Content);

#[pymethods]
impl Bytes {
    /// Bytes from an offset of a stream on.
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        stream: u64,
        offset: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, length, |bytes| {
            self.0.fill(stream, offset, bytes);
            Ok(())
        })
    }
}

/// An end of a connection.
struct End {
    object: Py<PyAny>,
    fate: Arc<Fate>,
    now: Nanos,
}

impl End {
    /// Calls a method, and gives `otherwise` where it failed or something has failed before.
    fn call<T>(
        &self,
        method: &'static str,
        otherwise: T,
        of: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<T>,
    ) -> T {
        if self.fate.failed() {
            return otherwise;
        }
        Python::attach(|py| {
            of(py, self.object.bind(py)).unwrap_or_else(|error| {
                self.fate.fail(Failure {
                    error,
                    at: self.now,
                    object: self.object.clone_ref(py),
                    method,
                });
                otherwise
            })
        })
    }
}

impl WrittenEnd for End {
    fn receive(&mut self, tuple: Tuple, bytes: &[u8], ecn: Codepoint, now: Nanos) {
        self.now = now;
        self.call("receive", (), |py, object| {
            let (local, remote) = (place(tuple.local), place(tuple.remote));
            let bytes = PyBytes::new(py, bytes);
            object.call_method1("receive", (local, remote, bytes, field(ecn), now))?;
            Ok(())
        });
    }

    fn on_time(&mut self, now: Nanos) {
        self.now = now;
        self.call("on_time", (), |_, object| {
            object.call_method1("on_time", (now,)).map(drop)
        });
    }

    fn open(&mut self, bidirectional: bool) -> Option<u64> {
        self.call("open", None, |_, object| {
            object.call_method1("open", (bidirectional,))?.extract()
        })
    }

    fn write(&mut self, stream: u64, bytes: u64) {
        self.call("write", (), |_, object| {
            object.call_method1("write", (stream, bytes)).map(drop)
        });
    }

    fn finish(&mut self, stream: u64) {
        self.call("finish", (), |_, object| {
            object.call_method1("finish", (stream,)).map(drop)
        });
    }

    fn cancel(&mut self, stream: u64) -> u64 {
        self.call("cancel", 0, |_, object| {
            object.call_method1("cancel", (stream,))?.extract()
        })
    }

    fn set_priority(&mut self, stream: u64, priority: i32) {
        self.call("set_priority", (), |_, object| {
            object
                .call_method1("set_priority", (stream, priority))
                .map(drop)
        });
    }

    fn open_path(&mut self, tuple: Tuple, backup: bool, now: Nanos) -> bool {
        self.now = now;
        self.call("open_path", false, |_, object| {
            let (local, remote) = (place(tuple.local), place(tuple.remote));
            object
                .call_method1("open_path", (local, remote, backup, now))?
                .extract()
        })
    }

    fn abandon(&mut self, path: u64, now: Nanos) {
        self.now = now;
        self.call("abandon", (), |_, object| {
            object.call_method1("abandon", (path, now)).map(drop)
        });
    }

    fn set_backup(&mut self, path: u64, backup: bool, now: Nanos) -> bool {
        self.now = now;
        self.call("set_backup", false, |_, object| {
            object
                .call_method1("set_backup", (path, backup, now))?
                .extract()
        })
    }

    fn migrate(&mut self, tuple: Tuple, now: Nanos) -> bool {
        self.now = now;
        self.call("migrate", false, |_, object| {
            let (local, remote) = (place(tuple.local), place(tuple.remote));
            object
                .call_method1("migrate", (local, remote, now))?
                .extract()
        })
    }

    fn close(&mut self, now: Nanos) {
        self.now = now;
        self.call("close", (), |_, object| {
            object.call_method1("close", (now,)).map(drop)
        });
    }

    fn poll(&mut self, now: Nanos) -> Polled {
        self.now = now;
        let nothing = Polled {
            deadline: NEVER,
            ..Polled::default()
        };
        self.call("poll", nothing, |_, object| {
            polled(&object.call_method1("poll", (now,))?)
        })
    }
}

/// What `poll` returned: datagrams, news, paths, deadline, unwritten bytes, whether it is idle, whether it is multipath.
fn polled(answer: &Bound<'_, PyAny>) -> PyResult<Polled> {
    type Datagram<'py> = (Place, Place, Bound<'py, PyBytes>, u8);
    type Path = (u64, Option<Place>, u32, u64, u64, u64, u64, u64, u64);
    type Answer<'py> = (
        Vec<Datagram<'py>>,
        Vec<Bound<'py, PyTuple>>,
        Vec<Path>,
        Option<u64>,
        u64,
        bool,
        bool,
    );
    let (datagrams, news, paths, deadline, unwritten, idle, multipath): Answer<'_> =
        answer.extract()?;
    let datagrams = datagrams.into_iter().map(|(local, remote, bytes, ecn)| {
        let tuple = tuple(&local, &remote)?;
        Ok((tuple, bytes.as_bytes().to_vec(), codepoint(ecn)))
    });
    let paths = paths.into_iter().map(
        |(path, remote, mtu, cwnd, srtt, in_flight, sent, received, lost)| {
            Ok(Figures {
                path,
                remote: remote.as_ref().map(socket).transpose()?,
                mtu,
                cwnd,
                srtt,
                in_flight,
                sent,
                received,
                lost,
            })
        },
    );
    Ok(Polled {
        datagrams: datagrams.collect::<PyResult<_>>()?,
        news: news.iter().map(told).collect::<PyResult<_>>()?,
        paths: paths.collect::<PyResult<_>>()?,
        deadline: deadline.unwrap_or(NEVER),
        unwritten,
        idle,
        multipath,
    })
}

/// One event: its name, and what belongs to it.
fn told(event: &Bound<'_, PyTuple>) -> PyResult<News> {
    let name: String = event.get_item(0)?.extract()?;
    let number = || event.get_item(1)?.extract::<u64>();
    Ok(match name.as_str() {
        "established" => News::Established,
        "confirmed" => News::Confirmed,
        "closed" => News::Closed(reason(&event.get_item(1)?.extract::<String>()?)),
        "opened" => News::Opened(number()?),
        "came" => News::Came(number()?, event.get_item(2)?.extract::<Vec<u8>>()?),
        "ended" => News::Ended(number()?),
        "path-open" => {
            let (local, remote) = (event.get_item(2)?.extract()?, event.get_item(3)?.extract()?);
            News::PathOpen(number()?, tuple(&local, &remote)?)
        }
        "path-closed" => News::PathClosed(number()?),
        "path-backup" => News::PathBackup(number()?, event.get_item(2)?.extract()?),
        "secret" => News::Secret(event.get_item(1)?.extract()?),
        _ => {
            return Err(PyValueError::new_err(format!(
                "poll returned an event '{name}' that is unknown"
            )));
        }
    })
}

fn reason(name: &str) -> CloseReason {
    match name {
        "finished" => CloseReason::Finished,
        "reset" => CloseReason::Reset,
        "timed-out" => CloseReason::TimedOut,
        _ => CloseReason::Aborted,
    }
}

fn place(address: SocketAddr) -> Place {
    (address.ip().to_string(), address.port())
}

fn socket((address, port): &Place) -> PyResult<SocketAddr> {
    let address = IpAddr::from_str(address)
        .map_err(|_| PyValueError::new_err(format!("'{address}' is no address")))?;
    Ok((address, *port).into())
}

fn tuple(local: &Place, remote: &Place) -> PyResult<Tuple> {
    Ok(Tuple {
        local: socket(local)?,
        remote: socket(remote)?,
    })
}

/// The two bits of IP's header (RFC 3168 section 5).
fn field(ecn: Codepoint) -> u8 {
    match ecn {
        Codepoint::NotEct => 0,
        Codepoint::Ect1 => 1,
        Codepoint::Ect0 => 2,
        Codepoint::Ce => 3,
    }
}

fn codepoint(field: u8) -> Codepoint {
    match field & 3 {
        1 => Codepoint::Ect1,
        2 => Codepoint::Ect0,
        3 => Codepoint::Ce,
        _ => Codepoint::NotEct,
    }
}

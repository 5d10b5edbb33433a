//! Files over our QUIC endpoint, on real sockets.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use polypath_live::quic::{Fetch, News, Serve, fetch, serve};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::panics::guarded;

/// Signals are looked for so often.
const LOOK: Duration = Duration::from_millis(50);

/// Asks whether a signal has come that ends the process, or a call into Python has failed.
#[derive(Default)]
struct Signals {
    raised: Option<PyErr>,
    looked: Option<Instant>,
}

impl Signals {
    fn stop(&mut self) -> bool {
        if self.looked.is_none_or(|at| at.elapsed() > LOOK) {
            self.looked = Some(Instant::now());
            let looked = Python::attach(|py| py.check_signals());
            self.raised = self.raised.take().or(looked.err());
        }
        self.raised.is_some()
    }
}

/// Fetches a file and writes it to a descriptor, which it takes over. Gives what came of it, in JSON.
#[pyfunction]
pub fn quic_fetch(py: Python<'_>, settings_json: &str, into: RawFd) -> PyResult<String> {
    // SAFETY: the caller opened it for this call and does not use it any more.
    let into: File = unsafe { OwnedFd::from_raw_fd(into) }.into();
    let settings: Fetch = serde_json::from_str(settings_json).map_err(failed)?;
    let mut into = BufWriter::new(into);
    let mut signals = Signals::default();
    let fetched = py.detach(|| {
        guarded(|| {
            let fetched = fetch(&settings, &mut into, &mut || signals.stop())?;
            into.flush()?;
            Ok::<_, polypath_live::LiveError>(fetched)
        })
    })?;
    if let Some(raised) = signals.raised {
        return Err(raised);
    }
    serde_json::to_string(&fetched.map_err(failed)?).map_err(failed)
}

/// Serves files until a signal comes; `tell` is called with each piece of news, in JSON.
#[pyfunction]
pub fn quic_serve(py: Python<'_>, settings_json: &str, tell: Py<PyAny>) -> PyResult<()> {
    let settings: Serve = serde_json::from_str(settings_json).map_err(failed)?;
    let mut signals = Signals::default();
    let mut refused = None;
    let mut hear = |news: News| {
        let told = Python::attach(|py| {
            let text = serde_json::to_string(&news).map_err(failed)?;
            tell.call1(py, (text,)).map(drop)
        });
        refused = refused.take().or(told.err());
    };
    let served = py.detach(|| guarded(|| serve(&settings, &mut hear, &mut || signals.stop())))?;
    match signals.raised.or(refused) {
        Some(raised) => Err(raised),
        None => served.map_err(failed),
    }
}

fn failed(error: impl ToString) -> PyErr {
    PyOSError::new_err(error.to_string())
}

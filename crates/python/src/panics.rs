//! A panic is a defect of the simulator. Python receives it as an exception, and standard error stays clean.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

thread_local! {
    /// What the thread's last panic was and where.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes panics instead of printing them, from now on and for the whole process.
pub fn note_quietly() {
    panic::set_hook(Box::new(|info| LAST.set(Some(describe(info)))));
}

/// Does the work; a panic in it becomes a RuntimeError that says what and where.
pub fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        let what = LAST.take().unwrap_or_default();
        PyRuntimeError::new_err(format!("the simulator has a defect: {what}"))
    })
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let what = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    match info.location() {
        Some(place) => format!("{what} ({}:{})", place.file(), place.line()),
        None => what.to_owned(),
    }
}

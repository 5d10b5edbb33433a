//! qlogs of a run: one for each side of each connection of QUIC.

mod metrics;
mod owner;
mod trace;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

use polypath_transport::Nanos;
use polypath_transport::quic::Connection;

use crate::error::{PlanError, Unwritten};
pub(crate) use owner::Owner;
use trace::Trace;

/// The logs that are written; none unless a directory was given.
#[derive(Default)]
pub(crate) struct Qlogs {
    directory: Option<PathBuf>,
    /// By endpoint.
    logs: BTreeMap<usize, (PathBuf, Trace)>,
    failure: Option<Unwritten>,
}

impl Qlogs {
    /// Writes logs to `directory`.
    ///
    /// # Errors
    /// It cannot be made, or holds files.
    pub fn open(directory: PathBuf) -> Result<Self, PlanError> {
        let used = std::fs::create_dir_all(&directory)
            .and_then(|()| std::fs::read_dir(&directory))
            .map_err(|error| Unwritten::new(&directory, &error))?
            .next()
            .is_some();
        if used {
            return Err(PlanError::Occupied(directory));
        }
        Ok(Self {
            directory: Some(directory),
            ..Self::default()
        })
    }

    /// The endpoint with this number begins its connection.
    pub fn begin(
        &mut self,
        index: usize,
        owner: &Owner<'_>,
        connection: &mut Connection,
        now: Nanos,
    ) {
        let Some(directory) = &self.directory else {
            return;
        };
        let name = format!("connection{}_{}.sqlog", index / 2, owner.side.name());
        let path = directory.join(name);
        let begun = File::create_new(&path)
            .and_then(|file| Trace::begin(BufWriter::new(file), owner, connection, now));
        match begun {
            Ok(trace) => {
                self.logs.insert(index, (path, trace));
            }
            Err(error) => {
                self.failure.get_or_insert(Unwritten::new(&path, &error));
            }
        }
    }

    /// Some endpoint has a log.
    #[inline]
    pub fn active(&self) -> bool {
        self.directory.is_some()
    }

    /// Adds to an endpoint's log, if there is one.
    #[inline]
    pub fn with(&mut self, index: usize, add: impl FnOnce(&mut Trace) -> io::Result<()>) {
        if self.directory.is_some() {
            self.add(index, add);
        }
    }

    #[cold]
    fn add(&mut self, index: usize, add: impl FnOnce(&mut Trace) -> io::Result<()>) {
        let Some((path, trace)) = self.logs.get_mut(&index) else {
            return;
        };
        if let Err(error) = add(trace) {
            self.failure.get_or_insert(Unwritten::new(path, &error));
        }
    }

    /// What kept any file from being written so far.
    pub fn require_written(&mut self) -> Result<(), Unwritten> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Completes the files.
    ///
    /// # Errors
    /// What kept any of them from being written.
    pub fn finish(&mut self) -> Result<(), Unwritten> {
        for (path, trace) in self.logs.values_mut() {
            if let Err(error) = trace.flush() {
                self.failure.get_or_insert(Unwritten::new(path, &error));
            }
        }
        self.require_written()
    }
}

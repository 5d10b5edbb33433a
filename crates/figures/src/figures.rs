//! The tables of a run, and the values that are computed from them once.

use std::sync::OnceLock;

use crate::connection::{self, Connection};
use crate::delays::Requests;
use crate::plan::Plan;
use crate::samples::{ConnectionSamples, DatagramSamples, SubflowSamples};
use crate::subflow::SubflowEnds;
use crate::table::{NAMES, Table, TableError};

/// A run: its plan, its tables, and when it ended.
///
/// Each kind of sample is sorted into groups when it is first asked for.
pub struct Figures {
    plan: Plan,
    tables: Vec<Table>,
    end_ns: i64,
    interrupted: bool,
    connections: OnceLock<Vec<Connection>>,
    subflow_ends: OnceLock<SubflowEnds>,
    subflow_samples: OnceLock<SubflowSamples>,
    connection_samples: OnceLock<ConnectionSamples>,
    datagram_samples: OnceLock<DatagramSamples>,
    requests: OnceLock<Requests>,
}

impl Figures {
    /// Of tables by name: those that are missing have no rows, others than [`NAMES`] are left out.
    pub fn new(
        plan: Plan,
        tables: impl IntoIterator<Item = (String, Vec<arrow_array::RecordBatch>)>,
        end_ns: i64,
        interrupted: bool,
    ) -> Self {
        let mut found: Vec<Table> = NAMES.map(|name| Table::new(name, Vec::new())).into();
        for (name, batches) in tables {
            if let Some(place) = NAMES.iter().position(|known| *known == name) {
                found[place] = Table::new(NAMES[place], batches);
            }
        }
        Self {
            plan,
            tables: found,
            end_ns,
            interrupted,
            connections: OnceLock::new(),
            subflow_ends: OnceLock::new(),
            subflow_samples: OnceLock::new(),
            connection_samples: OnceLock::new(),
            datagram_samples: OnceLock::new(),
            requests: OnceLock::new(),
        }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// When the run ended.
    pub fn end_ns(&self) -> i64 {
        self.end_ns
    }

    /// Whether the run was stopped before its end.
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// One of [`NAMES`].
    pub fn table(&self, name: &str) -> &Table {
        let place = NAMES.iter().position(|known| *known == name);
        &self.tables[place.expect("figures are made of the tables in NAMES")]
    }

    /// Every application's connection, in the plan's order.
    pub fn connections(&self) -> Result<&[Connection], TableError> {
        once(&self.connections, || connection::connections(self)).map(Vec::as_slice)
    }

    pub(crate) fn subflow_ends(&self) -> Result<&SubflowEnds, TableError> {
        once(&self.subflow_ends, || {
            SubflowEnds::of(self.table("subflow_ends"))
        })
    }

    pub(crate) fn subflow_samples(&self) -> Result<&SubflowSamples, TableError> {
        once(&self.subflow_samples, || {
            SubflowSamples::of(self.table("subflows"))
        })
    }

    pub(crate) fn connection_samples(&self) -> Result<&ConnectionSamples, TableError> {
        once(&self.connection_samples, || {
            ConnectionSamples::of(self.table("connections"))
        })
    }

    pub(crate) fn requests(&self) -> Result<&Requests, TableError> {
        let work = || Requests::of(self.table("requests"), self.table("events"));
        once(&self.requests, work)
    }

    pub(crate) fn datagrams(&self) -> Result<&DatagramSamples, TableError> {
        once(&self.datagram_samples, || {
            DatagramSamples::of(self.table("datagram_samples"))
        })
    }
}

fn once<T>(
    cell: &OnceLock<T>,
    work: impl FnOnce() -> Result<T, TableError>,
) -> Result<&T, TableError> {
    if let Some(found) = cell.get() {
        return Ok(found);
    }
    let found = work()?;
    Ok(cell.get_or_init(|| found))
}

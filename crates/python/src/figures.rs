//! The figures of a run, as `polypath.results.metrics` has them.

use std::collections::BTreeMap;

use polypath_figures::{Charge, Connection, Figures as Of, NAMES, Plan, Side, Subflow, TableError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3_arrow::PyTable;

/// What is worked out of a run's tables; the arguments `of` and `subflow` are the dataclasses of `metrics`.
#[pyclass(frozen, module = "polypath._core")]
pub struct Figures(Of);

/// A `metrics.Connection`.
#[derive(FromPyObject, IntoPyObject)]
struct ConnectionOf {
    application: usize,
    id: Option<i64>,
    name: String,
    transport: String,
    receiver: String,
    bytes: i64,
    start_ns: i64,
    established_ns: Option<i64>,
    end_ns: Option<i64>,
    last_byte_ns: Option<i64>,
    until_ns: i64,
    finished: Option<bool>,
    failure: Option<String>,
}

impl From<&Connection> for ConnectionOf {
    fn from(of: &Connection) -> Self {
        Self {
            application: of.application,
            id: of.id,
            name: of.name.clone(),
            transport: of.transport.clone(),
            receiver: of.receiver.name().to_owned(),
            bytes: of.bytes,
            start_ns: of.start_ns,
            established_ns: of.established_ns,
            end_ns: of.end_ns,
            last_byte_ns: of.last_byte_ns,
            until_ns: of.until_ns,
            finished: of.finished,
            failure: of.failure.clone(),
        }
    }
}

impl TryFrom<ConnectionOf> for Connection {
    type Error = PyErr;

    fn try_from(of: ConnectionOf) -> PyResult<Self> {
        Ok(Self {
            application: of.application,
            id: of.id,
            name: of.name,
            transport: of.transport,
            receiver: side(&of.receiver)?,
            bytes: of.bytes,
            start_ns: of.start_ns,
            established_ns: of.established_ns,
            end_ns: of.end_ns,
            last_byte_ns: of.last_byte_ns,
            until_ns: of.until_ns,
            finished: of.finished,
            failure: of.failure,
        })
    }
}

/// A `metrics.Subflow`.
#[derive(FromPyObject, IntoPyObject)]
struct SubflowOf {
    id: i64,
    source: String,
    destination: String,
    interface: String,
    backup: bool,
    established_ns: Option<i64>,
    closed_ns: Option<i64>,
    bytes: Option<i64>,
    share: Option<f64>,
    sent_bytes: i64,
    retransmitted_bytes: i64,
    reinjected_bytes: Option<i64>,
    kind: String,
}

impl From<Subflow> for SubflowOf {
    fn from(of: Subflow) -> Self {
        Self {
            id: of.id,
            source: of.source,
            destination: of.destination,
            interface: of.interface,
            backup: of.backup,
            established_ns: of.established_ns,
            closed_ns: of.closed_ns,
            bytes: of.bytes,
            share: of.share,
            sent_bytes: of.sent_bytes,
            retransmitted_bytes: of.retransmitted_bytes,
            reinjected_bytes: of.reinjected_bytes,
            kind: of.kind.to_owned(),
        }
    }
}

impl From<SubflowOf> for Subflow {
    fn from(of: SubflowOf) -> Self {
        Self {
            id: of.id,
            source: of.source,
            destination: of.destination,
            interface: of.interface,
            backup: of.backup,
            established_ns: of.established_ns,
            closed_ns: of.closed_ns,
            bytes: of.bytes,
            share: of.share,
            sent_bytes: of.sent_bytes,
            retransmitted_bytes: of.retransmitted_bytes,
            reinjected_bytes: of.reinjected_bytes,
            kind: if of.kind == "path" { "path" } else { "subflow" },
        }
    }
}

/// An `account.Charge`.
#[derive(FromPyObject, IntoPyObject)]
pub struct ChargeOf {
    cause: String,
    path: String,
    bytes: i64,
    at: Option<String>,
    head: Option<String>,
    worst_ns: i64,
    reset: bool,
}

impl From<Charge> for ChargeOf {
    fn from(of: Charge) -> Self {
        Self {
            cause: of.cause,
            path: of.path,
            bytes: of.bytes,
            at: of.at,
            head: of.head,
            worst_ns: of.worst_ns,
            reset: of.reset,
        }
    }
}

impl From<ChargeOf> for Charge {
    fn from(of: ChargeOf) -> Self {
        Self {
            cause: of.cause,
            path: of.path,
            bytes: of.bytes,
            at: of.at,
            head: of.head,
            worst_ns: of.worst_ns,
            reset: of.reset,
        }
    }
}

/// An `account.Account`.
#[derive(IntoPyObject)]
struct AccountOf {
    capacity_bytes: i64,
    delivered_bytes: i64,
    charges: Vec<ChargeOf>,
    since_ns: i64,
    until_ns: i64,
}

/// What a charge is called in a table.
#[pyfunction]
pub fn charge_title(charge: ChargeOf) -> String {
    Charge::from(charge).title()
}

/// What happened, without how much.
#[pyfunction]
pub fn charge_sentence(charge: ChargeOf) -> String {
    Charge::from(charge).sentence()
}

#[pymethods]
impl Figures {
    #[new]
    fn new(
        plan_json: &str,
        tables: BTreeMap<String, PyTable>,
        end_ns: i64,
        interrupted: bool,
    ) -> PyResult<Self> {
        let plan: Plan = serde_json::from_str(plan_json)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let tables = tables
            .into_iter()
            .map(|(name, table)| (name, table.into_inner().0));
        Ok(Self(Of::new(plan, tables, end_ns, interrupted)))
    }

    /// The tables that it reads.
    #[staticmethod]
    fn tables() -> Vec<&'static str> {
        NAMES.to_vec()
    }

    fn connections(&self) -> PyResult<Vec<ConnectionOf>> {
        let found = self.0.connections().map_err(error)?;
        Ok(found.iter().map(ConnectionOf::from).collect())
    }

    fn subflows(&self, of: ConnectionOf) -> PyResult<Vec<SubflowOf>> {
        let found = self.0.subflows(&of.try_into()?).map_err(error)?;
        Ok(found.into_iter().map(SubflowOf::from).collect())
    }

    /// Times and running totals of bytes delivered in order.
    fn delivered(&self, of: ConnectionOf) -> PyResult<(Vec<i64>, Vec<i64>)> {
        let found = self.0.delivered(&of.try_into()?).map_err(error)?;
        let totals = found.totals.into_iter().map(|total| total as i64);
        Ok((found.times, totals.collect()))
    }

    /// Bit/s between two times.
    fn goodput_between(&self, of: ConnectionOf, since: i64, until: i64) -> PyResult<Option<f64>> {
        let of = of.try_into()?;
        self.0.goodput_between_bps(&of, since, until).map_err(error)
    }

    /// Ends of the sampling intervals in ns, and Mbps in each.
    fn goodput_series(&self, of: ConnectionOf) -> PyResult<Vec<(i64, f64)>> {
        let found = self.0.delivered(&of.try_into()?).map_err(error)?;
        Ok(found.rates_mbps())
    }

    /// As [`Self::goodput_series`] and over the same intervals, of a subflow.
    fn subflow_series(&self, of: ConnectionOf, subflow: SubflowOf) -> PyResult<Vec<(i64, f64)>> {
        let of = of.try_into()?;
        let edges = self.0.delivered(&of).map_err(error)?.times;
        let found = self.0.subflow_course(&of, &subflow.into(), &edges);
        Ok(found.map_err(error)?.rates_mbps())
    }

    /// Bit/s.
    fn subflow_goodput(&self, of: ConnectionOf, subflow: SubflowOf) -> PyResult<Option<f64>> {
        let found = self.0.subflow_goodput_bps(&of.try_into()?, &subflow.into());
        found.map_err(error)
    }

    fn silent_since_ns(&self, of: ConnectionOf, subflow: SubflowOf) -> PyResult<Option<i64>> {
        let found = self.0.silent_since_ns(&of.try_into()?, &subflow.into());
        found.map_err(error)
    }

    fn srtt_us(&self, of: ConnectionOf, subflow: SubflowOf) -> PyResult<Vec<i64>> {
        let found = self.0.srtt_us(&of.try_into()?, &subflow.into());
        found.map_err(error)
    }

    /// A connection's charts, in JSON.
    fn charts(&self, of: ConnectionOf, coarse: bool) -> PyResult<String> {
        let of = of.try_into()?;
        let lanes = self.0.subflows(&of).map_err(error)?;
        json(&self.0.charts(&of, &lanes, coarse).map_err(error)?)
    }

    /// The account of a connection's sender over a stretch of time; nothing where none was kept.
    fn account(
        &self,
        of: ConnectionOf,
        since_ns: i64,
        until_ns: Option<i64>,
    ) -> PyResult<Option<AccountOf>> {
        let found = self.0.account(&of.try_into()?, since_ns, until_ns);
        Ok(found.map_err(error)?.map(|account| AccountOf {
            capacity_bytes: account.capacity_bytes,
            delivered_bytes: account.delivered_bytes,
            charges: account.charges.into_iter().map(ChargeOf::from).collect(),
            since_ns: account.since_ns,
            until_ns: account.until_ns,
        }))
    }

    /// A connection's figures with those of its subflows, in JSON.
    fn summary(&self, of: ConnectionOf) -> PyResult<String> {
        json(&self.0.summary(&of.try_into()?).map_err(error)?)
    }

    /// The figures of each direction of each link, in JSON.
    fn links(&self) -> PyResult<String> {
        json(&self.0.links().map_err(error)?)
    }

    /// Use and queue of each direction of each link over time, in JSON.
    fn link_courses(&self) -> PyResult<Option<String>> {
        let found = self.0.link_courses().map_err(error)?;
        found.as_ref().map(json).transpose()
    }

    /// The names of the paths that connections use, in the order of the plan's links.
    fn paths(&self) -> PyResult<Vec<&str>> {
        self.0.paths().map_err(error)
    }

    /// The longest queues over time, in JSON; nothing where none was longer than a packet.
    fn queues(&self, coarse: bool) -> PyResult<Option<String>> {
        let found = self.0.queues(coarse).map_err(error)?;
        found.as_ref().map(json).transpose()
    }
}

fn json(found: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(found).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn side(name: &str) -> PyResult<Side> {
    Side::named(name)
        .ok_or_else(|| PyValueError::new_err(format!("a side is client or server, not '{name}'")))
}

fn error(error: TableError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

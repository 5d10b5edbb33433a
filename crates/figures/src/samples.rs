//! Samples of connections, subflows and applications, grouped by their owner and in the order of time.

use rustc_hash::FxHashMap;

use crate::connection::Side;
use crate::table::{Table, TableError, grouped};

/// Running totals over time.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub times: Vec<i64>,
    pub totals: Vec<i64>,
}

/// Samples of each end of a connection.
pub(crate) struct ConnectionSamples {
    groups: FxHashMap<(i64, Side), Vec<usize>>,
    times: Vec<i64>,
    delivered: Vec<i64>,
    reassembly: Vec<Option<i64>>,
}

impl ConnectionSamples {
    pub fn of(table: &Table) -> Result<Self, TableError> {
        let times = table.counts("time_ns")?;
        let keys = table
            .counts("connection")?
            .into_iter()
            .zip(sides(table)?)
            .collect::<Vec<_>>();
        Ok(Self {
            groups: grouped(keys, &times),
            times,
            delivered: table.counts("delivered_bytes")?,
            reassembly: table.integers("reassembly_bytes")?,
        })
    }

    /// When an end was sampled.
    pub fn times(&self, connection: i64, side: Side) -> Vec<i64> {
        let rows = self.groups.get(&(connection, side));
        rows.into_iter()
            .flatten()
            .map(|row| self.times[*row])
            .collect()
    }

    /// Bytes delivered in order at an end.
    pub fn delivered(&self, connection: i64, side: Side) -> Totals {
        totals(
            self.groups.get(&(connection, side)),
            &self.times,
            &self.delivered,
        )
    }

    /// Times and bytes that waited there for what comes before them.
    pub fn reassembly(&self, connection: i64, side: Side) -> Vec<(i64, Option<i64>)> {
        let rows = self.groups.get(&(connection, side));
        rows.into_iter()
            .flatten()
            .map(|row| (self.times[*row], self.reassembly[*row]))
            .collect()
    }
}

/// What is sampled of a subflow at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampled {
    Cwnd,
    Srtt,
    InFlight,
    Received,
    OutOfOrder,
}

/// Samples of each end of a subflow.
pub(crate) struct SubflowSamples {
    groups: FxHashMap<(i64, i64, Side), Vec<usize>>,
    times: Vec<i64>,
    columns: [Vec<Option<i64>>; 5],
}

impl SubflowSamples {
    pub fn of(table: &Table) -> Result<Self, TableError> {
        let times = table.counts("time_ns")?;
        let connections = table.counts("connection")?.into_iter();
        let subflows = table.counts("subflow")?;
        let keys = connections
            .zip(subflows)
            .zip(sides(table)?)
            .map(|((connection, subflow), side)| (connection, subflow, side));
        Ok(Self {
            groups: grouped(keys, &times),
            times,
            columns: [
                table.integers("cwnd_packets")?,
                table.integers("srtt_us")?,
                table.integers("in_flight_packets")?,
                table.integers("received_bytes")?,
                table.integers("out_of_order_bytes")?,
            ],
        })
    }

    /// Times and values at one end.
    pub fn rows(
        &self,
        connection: i64,
        subflow: i64,
        side: Side,
        what: Sampled,
    ) -> impl Iterator<Item = (i64, Option<i64>)> {
        let column = &self.columns[what as usize];
        let rows = self.groups.get(&(connection, subflow, side));
        rows.into_iter()
            .flatten()
            .map(|row| (self.times[*row], column[*row]))
    }

    /// Bytes that had arrived at one end.
    pub fn received(&self, connection: i64, subflow: i64, side: Side) -> Totals {
        let rows = self.rows(connection, subflow, side, Sampled::Received);
        let (times, totals) = rows.map(|(time, total)| (time, total.unwrap_or(0))).unzip();
        Totals { times, totals }
    }
}

/// Samples of applications over UDP.
pub(crate) struct DatagramSamples {
    groups: FxHashMap<i64, Vec<usize>>,
    times: Vec<i64>,
    received: Vec<i64>,
}

impl DatagramSamples {
    pub fn of(table: &Table) -> Result<Self, TableError> {
        let times = table.counts("time_ns")?;
        Ok(Self {
            groups: grouped(table.counts("application")?, &times),
            times,
            received: table.counts("received_bytes")?,
        })
    }

    /// Bytes that had arrived.
    pub fn received(&self, application: i64) -> Totals {
        totals(self.groups.get(&application), &self.times, &self.received)
    }

    /// About when the last datagram arrived: in the interval that it is of, as far in as that one's share of the bytes
    /// of the interval before.
    pub fn last_ns(&self, application: i64) -> i64 {
        let Totals { times, totals } = self.received(application);
        let Some(all) = totals.last() else {
            return 0;
        };
        let last = totals.partition_point(|total| total < all);
        if last < 2 {
            return times[last];
        }
        let grown = totals[last] - totals[last - 1];
        let before = totals[last - 1] - totals[last - 2];
        let part = match before {
            0 => 1.0,
            before => (grown as f64 / before as f64).min(1.0),
        };
        let interval = (times[last] - times[last - 1]) as f64;
        times[last - 1] + (part * interval).round_ties_even() as i64
    }
}

fn totals(rows: Option<&Vec<usize>>, times: &[i64], totals: &[i64]) -> Totals {
    let rows = || rows.into_iter().flatten();
    Totals {
        times: rows().map(|row| times[*row]).collect(),
        totals: rows().map(|row| totals[*row]).collect(),
    }
}

fn sides(table: &Table) -> Result<Vec<Side>, TableError> {
    let names = table.texts("side")?.into_iter();
    Ok(names
        .map(|name| Side::named(name).unwrap_or(Side::Server))
        .collect())
}

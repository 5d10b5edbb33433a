//! The figures of each subflow, or path of QUIC.

use rustc_hash::FxHashMap;

use crate::connection::{Connection, Side};
use crate::figures::Figures;
use crate::rates::{Course, rate_bps, within};
use crate::samples::{Sampled, Totals};
use crate::table::{Table, TableError, grouped};

/// A subflow's totals in its connection's main direction. `polypath.results.metrics.Subflow` tells of each field.
#[derive(Clone, Debug)]
pub struct Subflow {
    pub id: i64,
    /// Address and port.
    pub source: String,
    pub destination: String,
    pub interface: String,
    pub backup: bool,
    pub established_ns: Option<i64>,
    pub closed_ns: Option<i64>,
    /// What arrived on it; this and `share` are absent where bytes are not counted by path.
    pub bytes: Option<i64>,
    pub share: Option<f64>,
    /// Bytes that the sender sent on it, each once.
    pub sent_bytes: i64,
    pub retransmitted_bytes: i64,
    /// Absent as well where the engine does not count them.
    pub reinjected_bytes: Option<i64>,
    /// "subflow", or "path" of QUIC.
    pub kind: &'static str,
}

impl Subflow {
    /// Its name in legends.
    pub fn label(&self) -> String {
        let backup = if self.backup { ", backup" } else { "" };
        format!("{} {} ({}{backup})", self.kind, self.id, self.interface)
    }

    /// Part of all bytes sent on it that were sent again; absent where nothing was sent.
    pub fn resent(&self) -> Option<f64> {
        let sent = self.sent_bytes + self.retransmitted_bytes;
        (sent > 0).then(|| self.retransmitted_bytes as f64 / sent as f64)
    }
}

/// Of one side: bytes sent, received, retransmitted, reinjected.
struct Bytes {
    sent: Vec<i64>,
    received: Vec<i64>,
    retransmitted: Vec<i64>,
    reinjected: Vec<Option<i64>>,
}

/// The table of subflows, by connection.
pub(crate) struct SubflowEnds {
    groups: FxHashMap<i64, Vec<usize>>,
    ids: Vec<i64>,
    sources: Vec<String>,
    destinations: Vec<String>,
    interfaces: Vec<String>,
    backup: Vec<bool>,
    established: Vec<Option<i64>>,
    closed: Vec<Option<i64>>,
    client: Bytes,
    server: Bytes,
}

impl SubflowEnds {
    pub fn of(table: &Table) -> Result<Self, TableError> {
        let ids = table.counts("subflow")?;
        let places = |address, port| -> Result<Vec<String>, TableError> {
            let addresses = table.texts(address)?.into_iter();
            let ports = table.counts(port)?;
            Ok(addresses
                .zip(ports)
                .map(|(address, port)| format!("{}:{port}", host(address)))
                .collect())
        };
        let client = Bytes {
            sent: table.counts("client_sent_bytes")?,
            received: table.counts("client_received_bytes")?,
            retransmitted: table.counts("client_retransmitted_bytes")?,
            reinjected: table.integers("client_reinjected_bytes")?,
        };
        let server = Bytes {
            sent: table.counts("server_sent_bytes")?,
            received: table.counts("server_received_bytes")?,
            retransmitted: table.counts("server_retransmitted_bytes")?,
            reinjected: table.integers("server_reinjected_bytes")?,
        };
        Ok(Self {
            groups: grouped(table.counts("connection")?, &ids),
            sources: places("source", "source_port")?,
            destinations: places("destination", "destination_port")?,
            interfaces: table
                .texts("interface")?
                .into_iter()
                .map(str::to_owned)
                .collect(),
            backup: table.flags("backup")?,
            established: table.integers("established_ns")?,
            closed: table.integers("closed_ns")?,
            client,
            server,
            ids,
        })
    }

    /// Of the client, one for each subflow.
    pub fn interfaces_of(&self, of: &Connection) -> impl Iterator<Item = &str> {
        let rows = of.id.and_then(|id| self.groups.get(&id));
        rows.into_iter()
            .flatten()
            .map(|row| self.interfaces[*row].as_str())
    }

    fn bytes(&self, side: Side) -> &Bytes {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

fn host(address: &str) -> String {
    if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    }
}

impl Figures {
    /// The connection's subflows by id.
    pub fn subflows(&self, of: &Connection) -> Result<Vec<Subflow>, TableError> {
        let Some(connection) = of.id else {
            return Ok(Vec::new());
        };
        let ends = self.subflow_ends()?;
        let rows = ends.groups.get(&connection).map_or(&[][..], Vec::as_slice);
        let (to, from) = (ends.bytes(of.receiver), ends.bytes(of.receiver.other()));
        let total: i64 = rows.iter().map(|row| to.received[*row]).sum();
        let counted = total > 0 || of.bytes == 0;
        let share = |received: i64| match total {
            0 => 0.0,
            total => received as f64 / total as f64,
        };
        let subflow = |&row: &usize| Subflow {
            id: ends.ids[row],
            source: ends.sources[row].clone(),
            destination: ends.destinations[row].clone(),
            interface: ends.interfaces[row].clone(),
            backup: ends.backup[row],
            established_ns: ends.established[row],
            closed_ns: ends.closed[row],
            bytes: counted.then(|| to.received[row]),
            share: counted.then(|| share(to.received[row])),
            sent_bytes: from.sent[row],
            retransmitted_bytes: from.retransmitted[row],
            reinjected_bytes: from.reinjected[row].filter(|_| counted),
            kind: of.lane(),
        };
        Ok(rows.iter().map(subflow).collect())
    }

    /// Running totals of what arrived on a subflow, at the times of `edges`: those of [`Figures::delivered`].
    pub fn subflow_course(
        &self,
        of: &Connection,
        subflow: &Subflow,
        edges: &[i64],
    ) -> Result<Course, TableError> {
        let arrived = self.arrived(of, subflow)?;
        let inner = within(of, &arrived);
        let begin = subflow
            .established_ns
            .map_or(of.start_ns, |established| of.start_ns.max(established));
        let late = late_ns(of, subflow, &arrived).is_some();
        let mut course = Course {
            times: vec![begin],
            totals: vec![0.0],
        };
        for (time, total) in inner.times.into_iter().zip(inner.totals) {
            if time > begin {
                course.times.push(time);
                course.totals.push(total as f64);
            }
        }
        let last = if late {
            Course::from(arrived).at(of.until_ns)
        } else {
            subflow.bytes.unwrap_or(0) as f64
        };
        course.times.push(of.until_ns);
        course.totals.push(last);
        Ok(Course {
            times: edges.to_vec(),
            totals: edges.iter().map(|edge| course.at(*edge)).collect(),
        })
    }

    /// Bit/s that arrived on a subflow: its bytes over the connection's time, or the time until the last of them came.
    ///
    /// Absent where no time passed, or its bytes are not counted.
    pub fn subflow_goodput_bps(
        &self,
        of: &Connection,
        subflow: &Subflow,
    ) -> Result<Option<f64>, TableError> {
        let late = late_ns(of, subflow, &self.arrived(of, subflow)?);
        let passed = late.unwrap_or(of.until_ns) - of.start_ns;
        Ok(subflow.bytes.and_then(|bytes| rate_bps(bytes, passed)))
    }

    /// From when on nothing arrived on a subflow, to the precision of the samples; absent where nothing ever did.
    pub fn silent_since_ns(
        &self,
        of: &Connection,
        subflow: &Subflow,
    ) -> Result<Option<i64>, TableError> {
        let Some(bytes) = subflow.bytes.filter(|bytes| *bytes > 0) else {
            return Ok(None);
        };
        let Totals { times, totals } = self.arrived(of, subflow)?;
        let complete = totals.iter().position(|total| *total >= bytes);
        Ok(Some(complete.map_or(of.until_ns, |place| times[place])))
    }

    /// Times and values of a subflow's samples at one end while it lasts: until it closes, or the transfer is over.
    pub fn sampled(
        &self,
        of: &Connection,
        subflow: &Subflow,
        what: Sampled,
        side: Side,
    ) -> Result<Vec<(i64, Option<i64>)>, TableError> {
        let Some(connection) = of.id else {
            return Ok(Vec::new());
        };
        let until = lasts_until_ns(of, subflow);
        let samples = self.subflow_samples()?;
        let rows = samples.rows(connection, subflow.id, side, what);
        Ok(rows.filter(|(time, _)| *time <= until).collect())
    }

    /// The sender's samples of a subflow's smoothed RTT while it lasts, those before the first measurement left out.
    ///
    /// One that was over before its first sample has the value that came next.
    pub fn srtt_us(&self, of: &Connection, subflow: &Subflow) -> Result<Vec<i64>, TableError> {
        let Some(connection) = of.id else {
            return Ok(Vec::new());
        };
        let sender = of.receiver.other();
        let own = self.sampled(of, subflow, Sampled::Srtt, sender)?;
        let measured = |(_, value): (i64, Option<i64>)| value.filter(|value| *value != 0);
        let known: Vec<i64> = own.into_iter().filter_map(measured).collect();
        if !known.is_empty() {
            return Ok(known);
        }
        let samples = self.subflow_samples()?;
        let mut later = samples.rows(connection, subflow.id, sender, Sampled::Srtt);
        Ok(later.find_map(measured).into_iter().collect())
    }

    fn arrived(&self, of: &Connection, subflow: &Subflow) -> Result<Totals, TableError> {
        Ok(match of.id {
            None => Totals::default(),
            Some(id) => self
                .subflow_samples()?
                .received(id, subflow.id, of.receiver),
        })
    }
}

/// Until when a subflow's samples say something.
pub fn lasts_until_ns(of: &Connection, subflow: &Subflow) -> i64 {
    subflow
        .closed_ns
        .map_or(of.until_ns, |closed| of.until_ns.min(closed))
}

/// When all bytes of a subflow had arrived, by the samples, if the connection had everything before.
///
/// What others carried first goes on arriving then, under `redundant` for as long again.
fn late_ns(of: &Connection, subflow: &Subflow, arrived: &Totals) -> Option<i64> {
    let bytes = subflow.bytes?;
    let at_end = arrived.times.partition_point(|time| *time < of.until_ns);
    let complete = arrived.totals.partition_point(|total| *total < bytes);
    (at_end < complete)
        .then(|| arrived.times.get(complete).copied())
        .flatten()
}

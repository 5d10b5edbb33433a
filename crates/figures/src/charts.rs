//! The charts of a connection and of links over time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::asked::Asked;
use crate::chart::{Chart, Column, MOST_VALUES, Packed};
use crate::connection::{Connection, Side};
use crate::figures::Figures;
use crate::samples::Sampled;
use crate::subflow::{Subflow, lasts_until_ns};
use crate::table::TableError;

/// Links with a queue whose length is drawn over time.
const QUEUES: usize = 8;

/// A connection's charts; those without data are absent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Charts {
    /// Goodput, then the rate of each subflow whose bytes are counted, in bit/s over the time since the row before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Packed>,
    /// Bytes delivered in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Packed>,
    /// Packets, by subflow, at the sender: the congestion window and what is in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Packed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flight: Option<Packed>,
    /// Smoothed, in microseconds, by subflow, at the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Packed>,
    /// Bytes that wait at the receiver: between subflows, then within each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reassembly: Option<Packed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<Asked>,
}

/// The longest queues over time, in packets.
#[derive(Clone, Debug, Serialize)]
pub struct Queues {
    #[serde(flatten)]
    pub chart: Packed,
    pub links: Vec<QueueOf>,
}

#[derive(Clone, Debug, Serialize)]
pub struct QueueOf {
    pub link: i64,
    pub direction: String,
}

/// Values of a chart: a quarter where `coarse`.
fn most(coarse: bool) -> usize {
    if coarse { MOST_VALUES / 4 } else { MOST_VALUES }
}

impl Figures {
    /// A connection's charts. `coarse`: a quarter of the resolution.
    pub fn charts(
        &self,
        of: &Connection,
        lanes: &[Subflow],
        coarse: bool,
    ) -> Result<Charts, TableError> {
        let most = most(coarse);
        let sender = of.receiver.other();
        let packed = |chart: Chart| chart.says_something().then(|| chart.packed(most));
        let sampled = |what, zero_is_none| -> Result<Option<Packed>, TableError> {
            match of.id {
                None => Ok(None),
                Some(_) => Ok(packed(self.by_lane(
                    of,
                    lanes,
                    what,
                    sender,
                    zero_is_none,
                )?)),
            }
        };
        let requests = self.asked(of, lanes)?;
        if of.transport == "icmp" {
            return Ok(Charts {
                requests,
                ..Charts::default()
            });
        }
        let rates = self.rates(of, lanes)?;
        let course = self.delivered(of)?;
        Ok(Charts {
            requests,
            rate: rates.says_something().then(|| rates.averaged(most)),
            delivered: packed(Chart {
                times: course.times,
                series: vec![course.totals.into_iter().map(Some).collect()],
            }),
            window: sampled(Sampled::Cwnd, false)?,
            flight: sampled(Sampled::InFlight, false)?,
            rtt: sampled(Sampled::Srtt, true)?,
            reassembly: packed(self.waiting(of, lanes)?),
        })
    }

    /// Where the first interval begins there is its rate, too.
    fn rates(&self, of: &Connection, lanes: &[Subflow]) -> Result<Chart, TableError> {
        let course = self.delivered(of)?;
        let goodput = course.rates_mbps();
        let Some((_, first)) = goodput.first() else {
            return Ok(Chart::default());
        };
        let column = |first: f64, rates: &[(i64, f64)]| -> Column {
            let rates = rates.iter().map(|(_, rate)| *rate);
            std::iter::once(first)
                .chain(rates)
                .map(|mbps| Some(mbps * 1e6))
                .collect()
        };
        let mut series = vec![column(*first, &goodput)];
        for lane in lanes.iter().filter(|lane| lane.bytes.is_some()) {
            let own = self.subflow_course(of, lane, &course.times)?.rates_mbps();
            series.push(column(own[0].1, &own));
        }
        let ends = goodput.iter().map(|(end, _)| *end);
        let times = std::iter::once(of.start_ns).chain(ends).collect();
        Ok(Chart { times, series })
    }

    /// A column of the samples by subflow; absent where a subflow has none at a time, or has 0 and that says nothing.
    fn by_lane(
        &self,
        of: &Connection,
        lanes: &[Subflow],
        what: Sampled,
        side: Side,
        zero_is_none: bool,
    ) -> Result<Chart, TableError> {
        let Some(connection) = of.id else {
            return Ok(Chart::default());
        };
        let samples = self.subflow_samples()?;
        let mut rows: BTreeMap<i64, Column> = BTreeMap::new();
        for (place, lane) in lanes.iter().enumerate() {
            let until = lasts_until_ns(of, lane);
            for (time, value) in samples.rows(connection, lane.id, side, what) {
                if zero_is_none && value.unwrap_or(0) == 0 {
                    continue;
                }
                let row = rows.entry(time).or_insert_with(|| vec![None; lanes.len()]);
                if time <= until {
                    row[place] = value.map(|value| value as f64);
                }
            }
        }
        Ok(chart(rows, lanes.len()))
    }

    /// Nothing where no byte ever waits, or nobody knows.
    fn waiting(&self, of: &Connection, lanes: &[Subflow]) -> Result<Chart, TableError> {
        let Some(connection) = of.id else {
            return Ok(Chart::default());
        };
        let whole = self
            .connection_samples()?
            .reassembly(connection, of.receiver);
        if whole.iter().all(|(_, bytes)| bytes.is_none()) {
            return Ok(Chart::default());
        }
        let within = self.by_lane(of, lanes, Sampled::OutOfOrder, of.receiver, false)?;
        let count = 1 + lanes.len();
        let mut rows: BTreeMap<i64, Column> = BTreeMap::new();
        for (time, bytes) in whole {
            let row = rows.entry(time).or_insert_with(|| vec![None; count]);
            row[0] = bytes.map(|bytes| bytes as f64);
        }
        for (place, time) in within.times.iter().enumerate() {
            let row = rows.entry(*time).or_insert_with(|| vec![None; count]);
            for (lane, column) in within.series.iter().enumerate() {
                row[1 + lane] = column[place];
            }
        }
        let waits = |value: &Option<f64>| value.is_some_and(|bytes| bytes > 0.0);
        if !rows.values().flatten().any(waits) {
            return Ok(Chart::default());
        }
        Ok(chart(rows, count))
    }

    /// The queues that were longest, in the order of the links; absent where none was ever longer than a packet.
    pub fn queues(&self, coarse: bool) -> Result<Option<Queues>, TableError> {
        let ends = self.table("link_ends");
        let (links, directions) = (ends.counts("link")?, ends.texts("direction")?);
        let lengths = ends.counts("max_queue_packets")?;
        let mut longest: Vec<usize> = (0..links.len()).filter(|row| lengths[*row] > 1).collect();
        longest.sort_by_key(|row| std::cmp::Reverse(lengths[*row]));
        longest.truncate(QUEUES);
        if longest.is_empty() {
            return Ok(None);
        }
        // forward before backward
        longest.sort_by(|one, other| {
            links[*one]
                .cmp(&links[*other])
                .then(directions[*other].cmp(directions[*one]))
        });
        let samples = self.table("links");
        let times = samples.counts("time_ns")?;
        let (of_link, of_way) = (samples.counts("link")?, samples.texts("direction")?);
        let queued = samples.integers("queue_packets")?;
        let mut rows: BTreeMap<i64, Column> = BTreeMap::new();
        for (row, time) in times.into_iter().enumerate() {
            let column = rows
                .entry(time)
                .or_insert_with(|| vec![None; longest.len()]);
            let is_it =
                |end: &&usize| links[**end] == of_link[row] && directions[**end] == of_way[row];
            if let Some(place) = longest.iter().position(|end| is_it(&end)) {
                column[place] = queued[row].map(|packets| packets as f64);
            }
        }
        let chart = chart(rows, longest.len());
        Ok(chart.says_something().then(|| Queues {
            chart: chart.packed(most(coarse)),
            links: longest
                .iter()
                .map(|row| QueueOf {
                    link: links[*row],
                    direction: directions[*row].to_owned(),
                })
                .collect(),
        }))
    }
}

fn chart(rows: BTreeMap<i64, Column>, count: usize) -> Chart {
    let times = rows.keys().copied().collect();
    let mut series = vec![Vec::with_capacity(rows.len()); count];
    for row in rows.into_values() {
        for (column, value) in series.iter_mut().zip(row) {
            column.push(value);
        }
    }
    Chart { times, series }
}

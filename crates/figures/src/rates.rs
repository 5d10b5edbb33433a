//! What was delivered over time, and how fast.

use crate::connection::Connection;
use crate::figures::Figures;
use crate::samples::Totals;
use crate::table::TableError;

pub(crate) const SECOND: f64 = 1e9;

/// Running totals that may lie between samples.
#[derive(Clone, Debug, Default)]
pub struct Course {
    pub times: Vec<i64>,
    pub totals: Vec<f64>,
}

impl From<Totals> for Course {
    fn from(of: Totals) -> Self {
        Self {
            times: of.times,
            totals: of.totals.into_iter().map(|total| total as f64).collect(),
        }
    }
}

impl Course {
    /// The total at a time; the first and the last beyond the ends.
    pub fn at(&self, time: i64) -> f64 {
        let Self { times, totals } = self;
        let after = times.partition_point(|known| *known < time);
        if after == 0 {
            return totals[0];
        }
        if after == times.len() {
            return totals[after - 1];
        }
        let part = (time - times[after - 1]) as f64 / (times[after] - times[after - 1]) as f64;
        totals[after - 1] + part * (totals[after] - totals[after - 1])
    }

    /// Mbps in each interval, beside its end.
    pub fn rates_mbps(&self) -> Vec<(i64, f64)> {
        let pairs = self.times.windows(2).zip(self.totals.windows(2));
        pairs
            .map(|(times, totals)| {
                let bits = (totals[1] - totals[0]) * 8.0 * SECOND;
                (times[1], bits / (times[1] - times[0]) as f64 / 1e6)
            })
            .collect()
    }
}

/// The samples between start and until; of several at the same time the last.
pub(crate) fn within(of: &Connection, samples: &Totals) -> Totals {
    let mut found = Totals::default();
    for (&time, &total) in samples.times.iter().zip(&samples.totals) {
        if !(of.start_ns < time && time < of.until_ns) {
            continue;
        }
        if found.times.last() == Some(&time) {
            found.totals.pop();
            found.times.pop();
        }
        found.times.push(time);
        found.totals.push(total);
    }
    found
}

impl Figures {
    /// Times and running totals of bytes delivered in order, from (start, 0) to (until, all).
    ///
    /// A last sample that leaves less than half an interval to the end is left out: a rate over so little says nothing.
    pub fn delivered(&self, of: &Connection) -> Result<Course, TableError> {
        let samples = match of.id {
            None => self.datagrams()?.received(of.application as i64),
            Some(id) => self.connection_samples()?.delivered(id, of.receiver),
        };
        let Totals {
            mut times,
            mut totals,
        } = within(of, &samples);
        times.insert(0, of.start_ns);
        totals.insert(0, 0);
        if let [.., before, last] = times[..] {
            if 2 * (of.until_ns - last) < last - before {
                times.pop();
                totals.pop();
            }
        }
        if of.until_ns > of.start_ns {
            times.push(of.until_ns);
            totals.push(of.bytes);
        }
        Ok(Totals { times, totals }.into())
    }

    /// Bit/s delivered in order over the whole connection, as iperf counts; absent where no time passed.
    pub fn goodput_bps(&self, of: &Connection) -> Option<f64> {
        rate_bps(of.bytes, of.until_ns - of.start_ns)
    }

    /// Bit/s between two times, from the sampled totals, interpolated; absent where no time passed.
    pub fn goodput_between_bps(
        &self,
        of: &Connection,
        since_ns: i64,
        until_ns: i64,
    ) -> Result<Option<f64>, TableError> {
        if until_ns <= since_ns {
            return Ok(None);
        }
        let course = self.delivered(of)?;
        let amount = course.at(until_ns) - course.at(since_ns);
        Ok(Some(amount * 8.0 * SECOND / (until_ns - since_ns) as f64))
    }
}

pub(crate) fn rate_bps(bytes: i64, passed_ns: i64) -> Option<f64> {
    (passed_ns > 0).then(|| bytes as f64 * 8.0 * SECOND / passed_ns as f64)
}

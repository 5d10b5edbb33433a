//! Figures as summary.json has them: seconds, Mbps, six decimals. docs/summary.md defines each.

use serde::Serialize;

use crate::connection::Connection;
use crate::delays::Delays;
use crate::figures::Figures;
use crate::subflow::Subflow;
use crate::table::TableError;

#[derive(Clone, Debug, Serialize)]
pub struct ConnectionSummary {
    pub name: String,
    pub transport: String,
    pub goodput_mbps: Option<f64>,
    pub bytes: i64,
    pub start_s: f64,
    pub end_s: f64,
    pub finished: Option<bool>,
    pub completion_s: Option<f64>,
    pub reassembly_max_bytes: Option<i64>,
    pub requests: RequestSummary,
    pub subflows: Vec<SubflowSummary>,
}

/// Of requests, or of messages.
#[derive(Clone, Debug, Serialize)]
pub struct RequestSummary {
    pub count: usize,
    pub unanswered: usize,
    pub refused: usize,
    pub median_s: Option<f64>,
    pub p95_s: Option<f64>,
    pub p99_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SubflowSummary {
    pub id: i64,
    pub source: String,
    pub destination: String,
    pub interface: String,
    pub backup: bool,
    pub established_s: Option<f64>,
    pub closed_s: Option<f64>,
    pub bytes: Option<i64>,
    pub share: Option<f64>,
    pub goodput_mbps: Option<f64>,
    pub retransmitted_bytes: i64,
    pub resent: Option<f64>,
    pub reinjected_bytes: Option<i64>,
    pub srtt_ms: Option<Spread>,
}

/// Of samples; percentiles are linearly interpolated.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub max: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct LinkSummary {
    pub name: String,
    pub direction: String,
    /// Part of the run's time that it was sending.
    pub utilisation: f64,
    pub dropped_packets: i64,
    pub max_queue_packets: i64,
}

impl Figures {
    /// A connection's figures with those of its subflows.
    pub fn summary(&self, of: &Connection) -> Result<ConnectionSummary, TableError> {
        let subflows = self.subflows(of)?;
        let subflows = subflows.into_iter().map(|each| self.of_subflow(of, each));
        Ok(ConnectionSummary {
            name: of.name.clone(),
            transport: of.transport.clone(),
            goodput_mbps: self.goodput_bps(of).map(mbps),
            bytes: of.bytes,
            start_s: seconds(of.start_ns),
            end_s: seconds(of.until_ns),
            finished: of.finished,
            completion_s: of.completion_ns().map(seconds),
            reassembly_max_bytes: self.reassembly_max_bytes(of)?,
            requests: self.of_requests(of)?,
            subflows: subflows.collect::<Result<_, _>>()?,
        })
    }

    /// Of each direction of each link.
    pub fn links(&self) -> Result<Vec<LinkSummary>, TableError> {
        let ends = self.table("link_ends");
        let (names, directions) = (ends.texts("name")?, ends.texts("direction")?);
        let busy = ends.counts("busy_ns")?;
        let dropped = ends.counts("dropped_packets")?;
        let longest = ends.counts("max_queue_packets")?;
        let link = |row: usize| LinkSummary {
            name: names[row].to_owned(),
            direction: directions[row].to_owned(),
            utilisation: match self.end_ns() {
                0 => 0.0,
                end => rounded(busy[row] as f64 / end as f64),
            },
            dropped_packets: dropped[row],
            max_queue_packets: longest[row],
        };
        Ok((0..names.len()).map(link).collect())
    }

    /// Most bytes that waited at the receiver for what comes before them, of the samples; absent without any.
    fn reassembly_max_bytes(&self, of: &Connection) -> Result<Option<i64>, TableError> {
        let Some(id) = of.id else {
            return Ok(None);
        };
        let samples = self.connection_samples()?.reassembly(id, of.receiver);
        Ok(samples.into_iter().filter_map(|(_, bytes)| bytes).max())
    }

    fn of_requests(&self, of: &Connection) -> Result<RequestSummary, TableError> {
        let delays = self.delays(of)?.into_iter();
        let delays = Delays::of(delays.map(|delay| delay.map(|delay| delay as f64)));
        let quantile = |part| delays.quantile(part).map(|delay| delay / 1e9);
        Ok(RequestSummary {
            count: delays.sent(),
            unanswered: delays.unanswered(),
            refused: self.refused(of)?,
            median_s: quantile(0.5),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
        })
    }

    fn of_subflow(&self, of: &Connection, each: Subflow) -> Result<SubflowSummary, TableError> {
        let goodput = self.subflow_goodput_bps(of, &each)?;
        let samples = self.srtt_us(of, &each)?;
        Ok(SubflowSummary {
            id: each.id,
            backup: each.backup,
            established_s: each.established_ns.map(seconds),
            closed_s: each.closed_ns.map(seconds),
            bytes: each.bytes,
            share: each.share.map(rounded),
            goodput_mbps: goodput.map(mbps),
            retransmitted_bytes: each.retransmitted_bytes,
            resent: each.resent().map(rounded),
            reinjected_bytes: each.reinjected_bytes,
            srtt_ms: spread(samples.into_iter().map(|us| us as f64 / 1000.0)),
            source: each.source,
            destination: each.destination,
            interface: each.interface,
        })
    }
}

fn spread(samples: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut samples: Vec<f64> = samples.collect();
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    samples.sort_by(f64::total_cmp);
    let max = *samples.last()?;
    let delays = Delays::of(samples.into_iter().map(Some));
    Some(Spread {
        mean: rounded(mean),
        p50: rounded(delays.quantile(0.5)?),
        p95: rounded(delays.quantile(0.95)?),
        max: rounded(max),
    })
}

fn seconds(time_ns: i64) -> f64 {
    time_ns as f64 / 1e9
}

fn mbps(bits_per_second: f64) -> f64 {
    rounded(bits_per_second / 1e6)
}

/// Six decimals: below any figure's meaning, above the last bits of its arithmetic. Of two equally near the even one, as
/// the exact value has it.
pub(crate) fn rounded(value: f64) -> f64 {
    let text = format!("{value:.6}");
    text.parse().expect("what is printed as a number is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_six_decimals() {
        assert_eq!(rounded(18.123_456_78), 18.123_457);
        assert_eq!(rounded(0.000_000_4), 0.0);
        // its exact value is a little less than it looks
        assert_eq!(rounded(0.123_456_5), 0.123_456);
        assert_eq!(rounded(-1.5), -1.5);
    }

    #[test]
    fn percentiles_of_samples_are_interpolated() {
        let found = spread([10.0, 40.0, 20.0, 30.0].into_iter()).unwrap();
        assert_eq!((found.mean, found.max), (25.0, 40.0));
        assert_eq!((found.p50, found.p95), (25.0, 38.5));
        assert!(spread(std::iter::empty()).is_none());
    }
}

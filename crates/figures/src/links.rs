//! Use and queue of each direction of each link over time.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::chart::{differences, micros, whole};
use crate::figures::Figures;
use crate::plan::{Channel, Plan};
use crate::table::{TableError, grouped};

/// Steps of the network's animation at most, and values.
const STEPS: usize = 2000;
const MOST_VALUES: usize = 120_000;
/// Bytes of a trace's delivery opportunity, headers included.
const OPPORTUNITY_BYTES: i64 = 1500;
const SECOND: i64 = 1_000_000_000;

/// Columns in the order of links, forward before backward; of several samples in a step the greatest. Each number is less
/// the one before that is there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LinkCourses {
    /// Microseconds.
    pub t: Vec<Option<i64>>,
    /// The part of the rate in thousandths; absent of a link without a rate.
    #[serde(rename = "use")]
    pub used: Vec<Vec<Option<i64>>>,
    pub kbps: Vec<Vec<Option<i64>>>,
    /// Packets.
    pub queue: Vec<Vec<Option<i64>>>,
}

const WAYS: [&str; 2] = ["forward", "backward"];

/// What a direction did in a sampling interval, or in several.
#[derive(Clone, Copy, Default)]
struct Step {
    used: Option<i64>,
    kbps: Option<i64>,
    queue: Option<i64>,
}

/// Beside the ends of their intervals.
type Steps = Vec<(i64, Step)>;

impl Step {
    fn greatest(self, other: Self) -> Self {
        Self {
            used: self.used.max(other.used),
            kbps: self.kbps.max(other.kbps),
            queue: self.queue.max(other.queue),
        }
    }
}

impl Figures {
    /// The courses of all links; none where no time passed.
    pub fn link_courses(&self) -> Result<Option<LinkCourses>, TableError> {
        let mut steps = self.link_steps()?;
        let mut times: Vec<i64> = steps.values().flatten().map(|(time, _)| *time).collect();
        times.sort_unstable();
        times.dedup();
        if times.is_empty() {
            return Ok(None);
        }
        let directions = || (0..self.plan().links.len()).flat_map(|link| [(link, 0), (link, 1)]);
        let most = (MOST_VALUES / directions().count().max(1)).clamp(1, STEPS);
        if times.len() > most {
            let length = steps_up(self.end_ns(), most as i64);
            let late = |time: i64| steps_up(time, length) * length;
            for rows in steps.values_mut() {
                let mut together: BTreeMap<i64, Step> = BTreeMap::new();
                for (time, step) in rows.iter() {
                    let of = together.entry(late(*time)).or_default();
                    *of = of.greatest(*step);
                }
                *rows = together.into_iter().collect();
            }
            times = times.into_iter().map(late).collect();
            times.dedup();
        }
        let column = |direction: &(usize, usize), value: fn(&Step) -> Option<i64>| {
            let Some(rows) = steps.get(direction) else {
                return Vec::new();
            };
            let known: FxHashMap<i64, &Step> =
                rows.iter().map(|(time, step)| (*time, step)).collect();
            differences(
                times
                    .iter()
                    .map(|time| known.get(time).and_then(|step| value(step))),
            )
        };
        let columns = |value: fn(&Step) -> Option<i64>| {
            directions()
                .map(|direction| column(&direction, value))
                .collect()
        };
        Ok(Some(LinkCourses {
            t: differences(times.iter().map(|time| Some(micros(*time)))),
            used: columns(|step| step.used),
            kbps: columns(|step| step.kbps),
            queue: columns(|step| step.queue),
        }))
    }

    /// What each direction did in the interval that ends at a time.
    fn link_steps(&self) -> Result<FxHashMap<(usize, usize), Steps>, TableError> {
        let samples = self.table("links");
        let times = samples.counts("time_ns")?;
        let sent = samples.counts("sent_bytes")?;
        let queued = samples.integers("queue_packets")?;
        let ways = samples.texts("direction")?.into_iter();
        let keys = samples
            .counts("link")?
            .into_iter()
            .zip(ways)
            .map(|(link, way)| (link as usize, usize::from(way != WAYS[0])));
        let groups = grouped(keys, &times);
        let mut found = FxHashMap::default();
        for (direction, rows) in groups {
            let rates = Rates::of(self.plan(), direction, self.end_ns());
            let (mut before, mut total) = (0, 0);
            let mut steps = Steps::with_capacity(rows.len());
            for row in rows {
                let (since, bytes) = (before, sent[row] - total);
                (before, total) = (times[row], sent[row]);
                if times[row] <= since {
                    continue;
                }
                let bits = (bytes * 8 * SECOND) as f64 / (times[row] - since) as f64;
                let used = rates.at(since).map(|rate| 1000.0 * bits / rate as f64);
                steps.push((
                    times[row],
                    Step {
                        used: used
                            .filter(|part| !part.is_nan())
                            .map(|part| whole(part.clamp(0.0, 1000.0))),
                        kbps: Some(whole(bits / 1000.0)),
                        queue: queued[row],
                    },
                ));
            }
            found.insert(direction, steps);
        }
        Ok(found)
    }
}

/// How many of a length it takes to reach a time.
fn steps_up(time: i64, length: i64) -> i64 {
    (time + length - 1) / length
}

/// The rate of a direction from a time on; of a trace its mean over each sampling interval.
struct Rates(Vec<(i64, Option<i64>)>);

impl Rates {
    fn of(plan: &Plan, (link, way): (usize, usize), end_ns: i64) -> Self {
        let mut rates = match plan.links.get(link) {
            None => vec![(0, None)],
            Some(of) => {
                let channel = [&of.forward, &of.backward][way];
                of_channel(channel, plan.record.interval_ns, end_ns)
            }
        };
        for event in &plan.events {
            let action = &event.action;
            let here = action.kind == "link" && action.link == Some(link);
            let direction = action.direction.as_deref();
            if here && (direction == Some("both") || direction == Some(WAYS[way])) {
                rates.extend(action.rate_bps.map(|rate| (event.at_ns, Some(rate))));
            }
        }
        rates.sort_by_key(|(time, _)| *time);
        Self(rates)
    }

    fn at(&self, time: i64) -> Option<i64> {
        let after = self.0.partition_point(|(since, _)| *since <= time);
        after.checked_sub(1).and_then(|place| self.0[place].1)
    }
}

fn of_channel(channel: &Channel, interval_ns: i64, end_ns: i64) -> Vec<(i64, Option<i64>)> {
    let Some(trace) = &channel.trace else {
        return vec![(0, channel.rate_bps)];
    };
    let mut now = 0;
    let gaps = trace
        .gaps_ms
        .iter()
        .flat_map(|(gap, count)| std::iter::repeat_n(*gap, *count));
    let times: Vec<i64> = gaps
        .map(|gap| {
            now += gap * 1_000_000;
            now
        })
        .collect();
    let Some(&period) = times
        .last()
        .filter(|period| **period > 0 && interval_ns > 0)
    else {
        return vec![(0, None)];
    };
    let bits = 8 * (OPPORTUNITY_BYTES + channel.overhead_bytes);
    let until = |now: i64| {
        let within = times.partition_point(|time| *time <= now % period);
        now / period * times.len() as i64 + within as i64
    };
    let begins = (0..).map(|number| number * interval_ns);
    begins
        .take_while(|begin| *begin < end_ns)
        .map(|begin| {
            let count = until(begin + interval_ns) - until(begin);
            let rate = count * bits * SECOND / interval_ns;
            (begin, (rate != 0).then_some(rate))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Trace;

    const MS: i64 = 1_000_000;

    /// Opportunities after 2, 5 and 8 ms, and so on from there.
    fn traced(overhead_bytes: i64) -> Channel {
        Channel {
            trace: Some(Trace {
                gaps_ms: vec![(2, 1), (3, 2)],
            }),
            overhead_bytes,
            ..Channel::default()
        }
    }

    #[test]
    fn each_interval_has_the_opportunities_up_to_its_end() {
        let found = of_channel(&traced(0), 4 * MS, 32 * MS);
        let mbps: Vec<_> = found
            .iter()
            .map(|(begin, rate)| (begin / MS, rate.unwrap() / 1_000_000))
            .collect();
        let counted = [
            (0, 3),
            (4, 6),
            (8, 3),
            (12, 6),
            (16, 3),
            (20, 6),
            (24, 3),
            (28, 6),
        ];
        assert_eq!(mbps, counted);
    }

    #[test]
    fn an_interval_without_an_opportunity_has_no_rate() {
        let found = of_channel(&traced(0), MS, 20 * MS);
        let there: Vec<_> = found
            .iter()
            .filter_map(|(begin, rate)| rate.map(|_| begin / MS))
            .collect();
        assert_eq!(there, [1, 4, 7, 9, 12, 15, 17]);
    }

    #[test]
    fn the_last_interval_may_end_later() {
        let found = of_channel(&traced(0), 4 * MS, 9 * MS);
        let begins: Vec<_> = found.iter().map(|(begin, _)| begin / MS).collect();
        assert_eq!(begins, [0, 4, 8]);
    }

    #[test]
    fn what_layers_below_add_counts() {
        for (overhead, rate) in [(0, 12_000_000), (100, 12_800_000), (1500, 24_000_000)] {
            let found = of_channel(&traced(overhead), 2 * MS, 2 * MS);
            assert_eq!(found, [(0, Some(rate / 2))]);
        }
    }

    #[test]
    fn a_rate_holds_until_an_event_changes_it() {
        let plan: Plan = serde_json::from_str(
            r#"{"links": [{"name": "one", "forward": {"rate_bps": 8}, "backward": {"rate_bps": 9}}],
                "events": [{"at_ns": 50, "action": {"kind": "link", "link": 0, "direction": "forward", "rate_bps": 4}}]}"#,
        )
        .unwrap();
        let forward = Rates::of(&plan, (0, 0), 100);
        assert_eq!(
            [0, 49, 50, 90].map(|time| forward.at(time)),
            [8, 8, 4, 4].map(Some)
        );
        let backward = Rates::of(&plan, (0, 1), 100);
        assert_eq!([0, 90].map(|time| backward.at(time)), [Some(9), Some(9)]);
    }
}

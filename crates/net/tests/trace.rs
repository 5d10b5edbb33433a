//! Channels that follow a trace of delivery opportunities, against mm-link's loop written out naively.

mod common;

use std::collections::VecDeque;
use std::sync::Arc;

use common::{Event, FORWARD, MS, Pair, config, drop_tail};
use polypath_net::{
    Change, ChannelConfig, CodelConfig, ConfigError, DropReason, DrrConfig, FqCodelConfig,
    QueueConfig, Trace,
};
use proptest::prelude::*;

/// A channel with these opportunities, in ms.
fn following(times: &[u64]) -> ChannelConfig {
    let before = [0].into_iter().chain(times.iter().copied());
    let gaps: Vec<(u64, u64)> = before.zip(times).map(|(a, b)| (b - a, 1)).collect();
    let trace = Trace::from_gaps(&gaps).unwrap();
    ChannelConfig {
        rate_bps: Some(trace.mean_rate_bps(0)),
        trace: Some(Arc::new(trace)),
        ..config()
    }
}

/// Departures in ms: a millisecond of propagation is taken off.
fn departures(pair: &Pair) -> Vec<(u64, u32)> {
    let delivered = pair.delivered();
    delivered
        .iter()
        .map(|(at, body)| ((at - MS) / MS, *body))
        .collect()
}

#[test]
fn a_saturated_link_delivers_a_packet_at_each_opportunity_in_every_round() {
    let times = [0, 1, 1, 4, 9, 9, 9, 10];
    let mut pair = Pair::new(following(&times));
    pair.send(&[1500; 100]);
    pair.run(41 * MS);
    let rounds = 0..4;
    let mut wanted: Vec<u64> = rounds
        .flat_map(|round| times.iter().map(move |time| round * 10 + time))
        .collect();
    // A packet that comes at the time of an opportunity has missed it, and the one at 40 ms opens the fifth round.
    wanted.remove(0);
    wanted.push(40);
    let found: Vec<u64> = departures(&pair).iter().map(|(at, _)| *at).collect();
    assert_eq!(found, wanted);
    // At 41 ms two more left, which have not arrived; of 35 opportunities only the first was missed.
    let stats = pair.network.stats(FORWARD);
    assert_eq!(stats.sent_packets, 34);
    assert_eq!(stats.busy, 41 * MS * 34 / 35);
}

#[test]
fn queues_by_flow_wait_for_opportunities_too() {
    let drr = QueueConfig::Drr(DrrConfig {
        limit: 100,
        quantum_bytes: 1514,
        flows: 16,
    });
    let fq_codel = QueueConfig::FqCodel(FqCodelConfig {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        limit: 100,
        quantum_bytes: 1514,
        flows: 16,
        drop_batch: 64,
        ecn: false,
    });
    for queue in [drr, fq_codel] {
        let mut pair = Pair::new(ChannelConfig {
            queue,
            ..following(&[10, 10, 25])
        });
        pair.send(&[1500; 4]);
        assert_eq!(pair.network.backlog(FORWARD), (4, 6000));
        pair.run(60 * MS);
        assert_eq!(departures(&pair), [(10, 0), (10, 1), (25, 2), (35, 3)]);
        pair.check();
    }
}

#[test]
fn small_packets_share_an_opportunity_and_a_large_one_takes_two() {
    let mut pair = Pair::new(following(&[10, 20, 30, 40]));
    pair.send(&[500, 500, 500, 100, 1400, 100, 3000]);
    pair.run(60 * MS);
    let wanted = [
        (10, 0),
        (10, 1),
        (10, 2),
        (20, 3),
        (20, 4),
        (30, 5),
        (50, 6),
    ];
    assert_eq!(departures(&pair), wanted);
}

#[test]
fn a_packet_goes_on_in_the_next_opportunity_and_others_use_what_it_leaves() {
    let mut pair = Pair::new(following(&[10, 20]));
    pair.send(&[1000; 4]);
    pair.run(50 * MS);
    assert_eq!(departures(&pair), [(10, 0), (20, 1), (20, 2), (30, 3)]);
}

#[test]
fn an_idle_link_loses_its_opportunities_and_what_is_left_of_one() {
    let mut pair = Pair::new(following(&[10, 10, 20]));
    pair.run(15 * MS);
    pair.send(&[100]);
    pair.run(20 * MS);
    // At the time of an opportunity that has bytes left: they are lost already.
    pair.send(&[100]);
    pair.run(40 * MS);
    assert_eq!(departures(&pair), [(20, 0), (30, 1)]);
    // Of the opportunities at 10, 10, 20, 30, 30 and 40 ms, 200 bytes were used.
    assert_eq!(pair.network.stats(FORWARD).busy, 40 * MS * 200 / 9000);
}

#[test]
fn the_overhead_is_counted_with_packets_and_opportunities() {
    for (overhead, wanted) in [(0, [10, 10, 10]), (4, [10, 10, 20])] {
        let of = following(&[10, 20]);
        let rate_bps = of.trace.as_ref().map(|it| it.mean_rate_bps(overhead));
        let mut pair = Pair::new(ChannelConfig {
            overhead,
            rate_bps,
            ..of
        });
        pair.send(&[500; 3]);
        pair.run(30 * MS);
        let found: Vec<u64> = departures(&pair).iter().map(|(at, _)| *at).collect();
        assert_eq!(found, wanted);
    }
}

#[test]
fn packets_that_were_not_begun_all_count_as_waiting() {
    let mut pair = Pair::new(ChannelConfig {
        queue: drop_tail(Some(2), None),
        ..following(&[10])
    });
    pair.send(&[3000; 3]);
    assert_eq!(pair.network.backlog(FORWARD), (2, 6000));
    assert_eq!(pair.dropped(), [(0, 2, DropReason::QueueFull)]);
    pair.run(15 * MS);
    assert_eq!(pair.network.backlog(FORWARD), (1, 3000));
}

#[test]
fn a_channel_that_was_down_goes_on_with_the_opportunities_of_the_time() {
    let mut pair = Pair::new(following(&[3, 10]));
    pair.send(&[3000, 1500]);
    let up = |up| Change {
        up: Some(up),
        ..Change::default()
    };
    pair.network.schedule(5 * MS, FORWARD, up(false)).unwrap();
    pair.network.schedule(6 * MS, FORWARD, up(true)).unwrap();
    pair.run(6 * MS);
    pair.send(&[1500]);
    pair.run(30 * MS);
    assert_eq!(departures(&pair), [(10, 2)]);
}

#[test]
fn codel_decides_at_the_opportunity() {
    let mut pair = Pair::new(ChannelConfig {
        queue: QueueConfig::Codel(CodelConfig {
            target_ns: 5 * MS,
            interval_ns: 100 * MS,
            limit: 100,
            ecn: false,
        }),
        ..following(&[400])
    });
    // The first to leave has waited beyond the target at 400 ms for the first time, the second an interval later.
    pair.send(&[1500; 5]);
    pair.run(900 * MS);
    assert_eq!(departures(&pair), [(400, 0), (800, 2)]);
    assert_eq!(pair.dropped()[0].0, 800 * MS);
    assert_eq!(pair.dropped()[0].1, 1);
}

#[test]
fn a_channel_with_a_trace_has_no_rate_and_no_burst() {
    let mut pair = Pair::new(following(&[10]));
    let change = |rate, burst| Change {
        rate,
        burst,
        ..Change::default()
    };
    for wrong in [change(Some(1), None), change(None, Some(3000))] {
        let error = pair.network.schedule(MS, FORWARD, wrong).unwrap_err();
        assert_eq!(error, ConfigError::RateOfTrace.into());
    }
}

/// mm-link: at each opportunity, packets that have come by then are taken from the queue until its bytes are spent.
struct MmLink {
    limit: usize,
    queue: VecDeque<(u32, u32)>,
    in_transit: Option<(u32, u32)>,
    delivered: Vec<(u64, u32)>,
    dropped: Vec<u32>,
}

impl MmLink {
    fn opportunity(&mut self, at: u64) {
        let mut bytes = 1500;
        while bytes > 0 {
            let Some((body, rest)) = self.in_transit.take().or_else(|| self.queue.pop_front())
            else {
                return;
            };
            if rest > bytes {
                self.in_transit = Some((body, rest - bytes));
                return;
            }
            bytes -= rest;
            self.delivered.push((at, body));
        }
    }

    fn arrive(&mut self, body: u32, len: u32) {
        let idle = self.queue.is_empty() && self.in_transit.is_none();
        if self.queue.len() >= self.limit && !idle {
            self.dropped.push(body);
        } else {
            self.queue.push_back((body, len));
        }
    }

    /// Goes through every ns that matters; arrivals are (ns, lengths).
    fn run(times: &[u64], limit: usize, arrivals: &[(u64, Vec<u32>)], until: u64) -> Self {
        let mut link = Self {
            limit,
            queue: VecDeque::new(),
            in_transit: None,
            delivered: Vec::new(),
            dropped: Vec::new(),
        };
        let (mut base, mut next, mut body) = (0, 0, 0);
        let mut waiting = arrivals.iter().peekable();
        loop {
            let opportunity = base + times[next] * MS;
            match waiting.peek() {
                Some((at, lengths)) if *at < opportunity && *at <= until => {
                    for len in lengths {
                        link.arrive(body, *len);
                        body += 1;
                    }
                    waiting.next();
                }
                _ if opportunity > until => return link,
                _ => {
                    link.opportunity(opportunity);
                    next = (next + 1) % times.len();
                    if next == 0 {
                        base += times[times.len() - 1] * MS;
                    }
                }
            }
        }
    }
}

fn trace() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(0u64..6, 1..20).prop_map(|gaps| {
        let mut at = 0;
        let mut times: Vec<u64> = gaps
            .iter()
            .map(|gap| {
                at += gap;
                at
            })
            .collect();
        if at == 0 {
            times.push(3);
        }
        times
    })
}

/// Waits in quarters of a ms, so that arrivals often coincide with opportunities, and what is sent after each.
fn arrivals() -> impl Strategy<Value = Vec<(u64, Vec<u32>)>> {
    let one = (0u64..40, proptest::collection::vec(1u32..4000, 1..6));
    proptest::collection::vec(one, 1..40)
}

proptest! {
    #[test]
    fn it_is_mm_link_to_the_nanosecond(times in trace(), arrivals in arrivals(), limit in 1usize..30) {
        let mut pair = Pair::new(ChannelConfig {
            queue: drop_tail(Some(limit as u64), None),
            ..following(&times)
        });
        let mut at = 0;
        let arrivals: Vec<(u64, Vec<u32>)> = arrivals
            .into_iter()
            .map(|(wait, lengths)| { at += wait * MS / 4; (at, lengths) })
            .collect();
        for (at, lengths) in &arrivals {
            pair.run(*at);
            pair.send(lengths);
            pair.check();
        }
        let until = at + 100 * MS;
        pair.run(until + MS);
        let naive = MmLink::run(&times, limit, &arrivals, until + MS);
        let wanted: Vec<(u64, u32)> = naive.delivered.iter()
            .filter(|it| it.0 <= until)
            .map(|(at, body)| (at + MS, *body))
            .collect();
        prop_assert_eq!(pair.delivered(), wanted);
        let dropped: Vec<u32> = pair.dropped().iter().map(|it| it.1).collect();
        prop_assert_eq!(dropped, naive.dropped);
        // In = delivered + dropped + waiting, being sent and on the way.
        let sent = arrivals.iter().map(|it| it.1.len()).sum::<usize>();
        let enqueued = pair.log.0.iter().filter(|it| matches!(it, Event::Enqueued(..))).count();
        let stats = pair.network.stats(FORWARD);
        let waiting = pair.network.backlog(FORWARD).0;
        let begun = enqueued as u64 - stats.sent_packets - waiting;
        prop_assert_eq!(sent as u64, stats.sent_packets + stats.dropped_packets + waiting + begun);
        prop_assert_eq!(begun, u64::from(naive.in_transit.is_some()));
        prop_assert_eq!(waiting, naive.queue.len() as u64);
        prop_assert!(stats.busy <= until + MS);
    }
}

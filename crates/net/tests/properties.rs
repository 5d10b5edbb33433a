//! Properties of every channel under every sequence of packets and changes.

mod common;

use common::{Event, FORWARD, MS, Pair, config, drop_tail};
use polypath_net::events::{EventQueue, Heap};
use polypath_net::{
    Change, ChannelConfig, ChannelStats, CodelConfig, DrrConfig, DualPi2Config, Ecn, FqCodelConfig,
    FqPieConfig, LossConfig, Network, NodeKind, Output, PieConfig, QueueConfig, RandomConfig,
    RedConfig, Topology,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u32>),
    Wait(u64),
    Change(Box<Change>),
}

fn lengths() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(40u32..1600, 1..8)
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    prop_oneof![
        (
            proptest::option::of(0u64..12),
            proptest::option::of(0u64..12_000)
        )
            .prop_map(|(packets, bytes)| drop_tail(packets, bytes)),
        (
            1.0f64..6.0,
            0.1f64..6.0,
            0.0f64..=1.0,
            0.01f64..=1.0,
            any::<bool>(),
            1u64..20
        )
            .prop_map(
                |(min, more, probability, weight, gentle, limit)| QueueConfig::Red(RedConfig {
                    min,
                    max: min + more,
                    probability,
                    weight,
                    gentle,
                    limit,
                    ecn: gentle,
                })
            ),
    ]
}

fn codel() -> impl Strategy<Value = QueueConfig> {
    (1u64..4 * MS, 1u64..20 * MS, 1u64..30).prop_map(|(target, interval, limit)| {
        QueueConfig::Codel(CodelConfig {
            target_ns: target,
            interval_ns: interval,
            limit,
            ecn: limit % 2 == 0,
        })
    })
}

fn later_queue() -> impl Strategy<Value = QueueConfig> {
    let pie = (
        1u64..4 * MS,
        1u64..10 * MS,
        0.0f64..4.0,
        0.0f64..4.0,
        1u64..30,
    );
    let drr = (1u64..30, 256u32..4000, 1u32..5);
    let fq_codel = (
        1u64..4 * MS,
        1u64..20 * MS,
        1u64..30,
        256u32..4000,
        1u32..5,
        1u32..70,
    );
    let fq_pie = (
        1u64..4 * MS,
        1u64..10 * MS,
        1u64..30,
        256u32..4000,
        1u32..5,
        0.0f64..=1.0,
    );
    let dual_pi2 = (
        1u64..4 * MS,
        MS / 10..10 * MS,
        0.0f64..30.0,
        1u64..4 * MS,
        1u64..30,
        0.0f64..=1.0,
    );
    prop_oneof![
        fq_pie.prop_map(|(target, tupdate, limit, quantum, flows, ecn_prob)| {
            QueueConfig::FqPie(FqPieConfig {
                quantum_bytes: quantum,
                flows,
                target_ns: target,
                tupdate_ns: tupdate,
                alpha: 2.0,
                beta: 4.0,
                limit,
                ecn: limit % 2 == 0,
                ecn_prob,
            })
        }),
        dual_pi2.prop_map(|(target, tupdate, beta, step, limit, share)| {
            QueueConfig::DualPi2(DualPi2Config {
                target_ns: target,
                tupdate_ns: tupdate,
                alpha: 2.0,
                beta,
                step_ns: step,
                step_from: 1 + limit % 3,
                coupling: 2,
                classic_share: share,
                limit,
                drop_overload: limit % 2 == 0,
            })
        }),
        pie.prop_map(|(target, tupdate, alpha, beta, limit)| {
            QueueConfig::Pie(PieConfig {
                target_ns: target,
                tupdate_ns: tupdate,
                alpha,
                beta,
                limit,
                ecn: limit % 2 == 0,
            })
        }),
        drr.prop_map(|(limit, quantum, flows)| {
            QueueConfig::Drr(DrrConfig {
                limit,
                quantum_bytes: quantum,
                flows,
            })
        }),
        fq_codel.prop_map(|(target, interval, limit, quantum, flows, drop_batch)| {
            QueueConfig::FqCodel(FqCodelConfig {
                target_ns: target,
                interval_ns: interval,
                limit,
                quantum_bytes: quantum,
                flows,
                drop_batch,
                ecn: limit % 2 == 0,
            })
        }),
    ]
}

/// The packets of four flows are told apart by their lengths.
fn flow_of(len: u32) -> u32 {
    len % 4
}

/// Changes that both paths can follow.
fn shared_change() -> impl Strategy<Value = Change> {
    let none = Change::default;
    prop_oneof![
        (1_000u64..100_000_000).prop_map(move |rate| Change {
            rate: Some(rate),
            ..none()
        }),
        (0u64..5 * MS).prop_map(move |delay| Change {
            delay: Some(delay),
            ..none()
        }),
        queue().prop_map(move |queue| Change {
            queue: Some(queue),
            ..none()
        }),
        any::<bool>().prop_map(move |up| Change {
            up: Some(up),
            ..none()
        }),
        any::<bool>().prop_map(move |up| Change {
            sender_up: Some(up),
            ..none()
        }),
        any::<bool>().prop_map(move |up| Change {
            receiver_up: Some(up),
            ..none()
        }),
        (0.0f64..1.0).prop_map(move |p| Change {
            loss: Some(LossConfig::Random(RandomConfig { probability: p })),
            ..none()
        }),
        (0u64..MS).prop_map(move |jitter| Change {
            jitter: Some(jitter),
            ..none()
        }),
        (0.0f64..1.0).prop_map(move |p| Change {
            duplicate: Some(p),
            ..none()
        }),
    ]
}

fn any_change() -> impl Strategy<Value = Change> {
    let none = Change::default;
    prop_oneof![
        4 => shared_change(),
        1 => codel().prop_map(move |queue| Change { queue: Some(queue), ..none() }),
        2 => later_queue().prop_map(move |queue| Change { queue: Some(queue), ..none() }),
        1 => (0.0f64..1.0).prop_map(move |p| Change { reorder: Some(p), ..none() }),
        1 => (0u64..5000).prop_map(move |burst| Change { burst: Some(burst), ..none() }),
        1 => (0u64..6_000 * MS).prop_map(move |delay| Change { delay: Some(delay), ..none() }),
    ]
}

/// Changes that leave the packets of a flow in order.
fn flow_change() -> impl Strategy<Value = Change> {
    let queue = |queue| Change {
        queue: Some(queue),
        ..Change::default()
    };
    prop_oneof![3 => shared_change(), 1 => later_queue().prop_map(queue), 1 => codel().prop_map(queue)]
}

fn steps(change: impl Strategy<Value = Change>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => lengths().prop_map(Step::Send),
        4 => (0u64..4 * MS).prop_map(Step::Wait),
        1 => (0u64..10).prop_map(|ms| Step::Wait(ms * MS)),
        2 => change.prop_map(|change| Step::Change(Box::new(change))),
    ];
    proptest::collection::vec(step, 1..60)
}

fn start() -> impl Strategy<Value = ChannelConfig> {
    (queue(), 1_000_000u64..20_000_000, 0u64..3 * MS, 0u32..40).prop_map(
        |(queue, rate, delay, overhead)| ChannelConfig {
            rate_bps: Some(rate),
            delay,
            overhead,
            queue,
            ..config()
        },
    )
}

fn play<Q: EventQueue>(
    pair: &mut Pair<Q>,
    steps: &[Step],
) -> (Vec<Event>, Vec<ChannelStats>, Vec<(u64, u64)>) {
    play_with(pair, steps, Ecn::Ect0)
}

fn play_with<Q: EventQueue>(
    pair: &mut Pair<Q>,
    steps: &[Step],
    ecn: Ecn,
) -> (Vec<Event>, Vec<ChannelStats>, Vec<(u64, u64)>) {
    let (mut stats, mut backlogs) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Send(lengths) => {
                for len in lengths {
                    pair.send_of(flow_of(*len), &[*len], ecn);
                }
            }
            Step::Wait(time) => pair.run(pair.network.now() + time),
            Step::Change(change) => pair.network.apply(FORWARD, change, &mut pair.log).unwrap(),
        }
        pair.check();
        stats.push(pair.network.stats(FORWARD));
        backlogs.push(pair.network.backlog(FORWARD));
    }
    // Long enough for everything at the lowest rate.
    pair.run(pair.network.now() + 20_000_000 * MS);
    assert_eq!(pair.network.totals().in_flight, 0);
    stats.push(pair.network.stats(FORWARD));
    (std::mem::take(&mut pair.log.0), stats, backlogs)
}

fn becomes_dual_pi2(step: &Step) -> bool {
    matches!(step, Step::Change(change) if matches!(change.queue, Some(QueueConfig::DualPi2(_))))
}

/// As it is counted to the whole nanosecond on one path and a packet at a time on the other.
fn without_busy(mut stats: Vec<ChannelStats>) -> (Vec<ChannelStats>, Vec<u64>) {
    let busy = stats
        .iter_mut()
        .map(|stats| std::mem::take(&mut stats.busy));
    let busy = busy.collect();
    (stats, busy)
}

/// A change of rate, queue or state alone.
fn calm(step: Step) -> Step {
    match step {
        Step::Change(change) => Step::Change(Box::new(Change {
            rate: change.rate,
            queue: change.queue,
            up: change.up,
            ..Change::default()
        })),
        other => other,
    }
}

/// When which of the packets longer than this arrived, counted among those alone.
fn of_longer(events: &[Event], lengths: &[u32], than: u32) -> Vec<(u64, usize)> {
    let place = |body: u32| {
        let before = &lengths[..body as usize];
        before.iter().filter(|len| **len > than).count()
    };
    let arrived = events.iter().filter_map(|event| match event {
        Event::Delivered(at, body) if lengths[*body as usize] > than => Some((*at, place(*body))),
        _ => None,
    });
    arrived.collect()
}

proptest! {
    #[test]
    fn line_and_stages_agree(config in start(), steps in steps(shared_change()), seed in 0u64..100) {
        let staged = ChannelConfig { reorder: f64::MIN_POSITIVE, ..config.clone() };
        let general = ChannelConfig { corrupt: f64::MIN_POSITIVE, ..config.clone() };
        let by_line = play(&mut Pair::with_seed(config, seed), &steps);
        let by_general = play(&mut Pair::with_seed(general, seed), &steps);
        prop_assert_eq!(&by_line, &by_general);
        let by_stages = play(&mut Pair::with_seed(staged, seed), &steps);
        prop_assert_eq!(by_line.0, by_stages.0);
        prop_assert_eq!(by_line.2, by_stages.2);
        let (line, line_busy) = without_busy(by_line.1);
        let (stages, stages_busy) = without_busy(by_stages.1);
        prop_assert_eq!(line, stages);
        for (a, b) in line_busy.iter().zip(&stages_busy) {
            prop_assert!(a.abs_diff(*b) <= 500, "{} {}", a, b);
        }
    }

    /// Long packets meet what they would if nobody sent short ones, as long as none draws lots and all have one delay.
    #[test]
    fn long_packets_do_not_notice_what_passes_by(config in start(), steps in steps(shared_change()), seed in 0u64..100) {
        const SHORT: u32 = 600;
        let config = ChannelConfig { bypass: SHORT, ..config };
        let steps: Vec<Step> = steps.into_iter().map(calm).collect();
        let long = |lengths: &[u32]| lengths.iter().copied().filter(|len| *len > SHORT).collect();
        let alone = steps.iter().map(|step| match step {
            Step::Send(lengths) => Step::Send(long(lengths)),
            other => other.clone(),
        });
        let alone: Vec<Step> = alone.collect();
        let mut lengths = [Vec::new(), Vec::new()];
        for (steps, lengths) in [&steps, &alone].into_iter().zip(&mut lengths) {
            for step in steps {
                if let Step::Send(sent) = step {
                    lengths.extend(sent.iter().copied());
                }
            }
        }
        let (with, stats, _) = play(&mut Pair::with_seed(config.clone(), seed), &steps);
        let (without, alone, _) = play(&mut Pair::with_seed(config, seed), &alone);
        prop_assert_eq!(of_longer(&with, &lengths[0], SHORT), of_longer(&without, &lengths[1], SHORT));
        let dropped = |stats: &[ChannelStats]| stats.last().map(|it| (it.dropped_packets, it.max_queue_packets));
        prop_assert_eq!(dropped(&stats), dropped(&alone));
    }

    /// Nothing shows when a channel changes paths with packets on it.
    #[test]
    fn a_line_becomes_staged_unseen(
        config in start(), steps in steps(shared_change()), seed in 0u64..100, at in any::<prop::sample::Index>()
    ) {
        let change = |reorder| Step::Change(Box::new(Change { reorder: Some(reorder), ..Change::default() }));
        let at = at.index(steps.len());
        let with = |reorder| {
            let mut steps = steps.clone();
            steps.insert(at, change(reorder));
            play(&mut Pair::with_seed(config.clone(), seed), &steps)
        };
        let (line, staged) = (with(0.0), with(f64::MIN_POSITIVE));
        prop_assert_eq!(line.0, staged.0);
        prop_assert_eq!(line.2, staged.2);
        prop_assert_eq!(without_busy(line.1).0, without_busy(staged.1).0);
    }

    #[test]
    fn packets_are_accounted_for_and_runs_repeat(
        config in start(), steps in steps(any_change()), seed in any::<u64>()
    ) {
        let first = play(&mut Pair::with_seed(config.clone(), seed), &steps);
        prop_assert_eq!(&first, &play(&mut Pair::with_seed(config.clone(), seed), &steps));
        prop_assert_eq!(&first, &play(&mut Pair::<Heap>::on_queue(config, seed), &steps));
        let stats = first.1.last().copied().unwrap_or_default();
        let delivered = first.0.iter().filter(|event| matches!(event, Event::Delivered(..)));
        prop_assert!(stats.sent_packets >= delivered.count() as u64);
    }

    #[test]
    fn order_is_kept_without_reordering(config in start(), steps in steps(shared_change())) {
        let (log, ..) = play(&mut Pair::new(config), &steps);
        let delivered = log.iter().filter_map(|event| match event {
            Event::Delivered(_, body) => Some(*body),
            _ => None,
        });
        prop_assert!(delivered.is_sorted());
    }

    #[test]
    fn each_flow_stays_in_order(
        config in start(), first in later_queue(), steps in steps(flow_change()), seed in any::<u64>()
    ) {
        let config = ChannelConfig { queue: first, ..config };
        let mut pair = Pair::with_seed(config, seed);
        // A packet that another queue has marked overtakes in DualPI2 (RFC 9332 section 2.5.1.1).
        let ecn = if steps.iter().any(becomes_dual_pi2) { Ecn::NotEct } else { Ecn::Ect0 };
        play_with(&mut pair, &steps, ecn);
        for flow in 0..4 {
            let bodies = pair.packets.iter().filter(|packet| packet.flow == flow).map(|packet| packet.body);
            prop_assert!(bodies.is_sorted());
        }
    }

    /// What came in is out, dropped, being sent or waiting at any time.
    #[test]
    fn queues_lose_and_invent_nothing(
        config in start(), queue in later_queue(), bursts in proptest::collection::vec((lengths(), 0u64..4 * MS), 1..40)
    ) {
        let mut pair = Pair::new(ChannelConfig { queue, ..config });
        let mut entered = 0;
        for (lengths, pause) in bursts {
            for len in lengths {
                pair.send_of(flow_of(len), &[len], Ecn::Ect0);
                entered += 1;
            }
            pair.run(pair.network.now() + pause);
            let stats = pair.network.stats(FORWARD);
            let (waiting, bytes) = pair.network.backlog(FORWARD);
            let rest = entered - stats.sent_packets - stats.dropped_packets - waiting;
            prop_assert!(rest == 1 || rest == 0 && waiting == 0, "{rest} being sent, {waiting} waiting");
            prop_assert_eq!(waiting == 0, bytes == 0);
        }
    }

    /// Packets criss-cross a ring of switches; the results must not depend on the event queue.
    #[test]
    fn the_event_queue_plays_no_part(
        rates in proptest::collection::vec(1_000_000u64..50_000_000, 6),
        delays in proptest::collection::vec(0u64..3, 6),
        sends in proptest::collection::vec((0usize..6, 1usize..6, 0u64..2 * MS, 40u32..1500), 1..80),
    ) {
        let ring = Ring { rates, delays };
        let wheel = ring.run(Network::new(ring.topology(), 1), &sends);
        let heap = ring.run(Network::<u32, Heap>::with_event_queue(ring.topology(), 1), &sends);
        prop_assert_eq!(wheel, heap);
    }
}

struct Ring {
    rates: Vec<u64>,
    delays: Vec<u64>,
}

fn ring_address(host: usize) -> std::net::IpAddr {
    common::ip(host as u8 + 1)
}

impl Ring {
    fn topology(&self) -> Topology {
        let mut topology = Topology::new();
        let count = self.rates.len();
        let switches: Vec<_> = (0..count)
            .map(|_| topology.add_node(NodeKind::Switch))
            .collect();
        for number in 0..count {
            let config = ChannelConfig {
                rate_bps: Some(self.rates[number]),
                delay: self.delays[number] * MS / 2,
                queue: drop_tail(Some(4), None),
                duplicate: 0.05,
                ..ChannelConfig::default()
            };
            let host = topology.add_node(NodeKind::Host);
            let next = switches[(number + 1) % count];
            let mut link = |a, b| {
                let (a, b) = (topology.add_interface(a), topology.add_interface(b));
                topology
                    .connect(a, b, config.clone(), config.clone())
                    .unwrap();
                a
            };
            let port = link(host, switches[number]);
            link(switches[number], next);
            topology.add_address(port, ring_address(number)).unwrap();
        }
        topology
    }

    fn run<Q: EventQueue>(
        &self,
        mut network: Network<u32, Q>,
        sends: &[(usize, usize, u64, u32)],
    ) -> Vec<(u64, Output<u32>)> {
        let count = self.rates.len();
        let timers: Vec<_> = sends.iter().map(|_| network.new_timer()).collect();
        for (timer, (.., at, _)) in timers.iter().zip(sends) {
            network.set_timer(*timer, at / 1000 * 1000);
        }
        let mut outputs = Vec::new();
        while let Some(output) = network.poll(60_000 * MS, &mut ()) {
            if let Output::Timer(timer) = &output {
                let (from, distance, _, len) = sends[timer.index()];
                let (src, dst) = (ring_address(from), ring_address((from + distance) % count));
                let node = network.topology().owner(src).unwrap();
                let node = network.topology().node_of(node).unwrap();
                let route = network.route(node, src, dst, 0).unwrap();
                network.inject(route, len, 0, Ecn::NotEct, timer.0, &mut ());
            }
            outputs.push((network.now(), output));
        }
        let totals = network.totals();
        assert_eq!(
            totals.injected + totals.duplicated,
            totals.delivered + totals.dropped
        );
        outputs
    }
}

#[test]
fn another_channel_does_not_shift_the_losses_of_this_one() {
    let lossy = ChannelConfig {
        loss: LossConfig::Random(RandomConfig { probability: 0.5 }),
        ..config()
    };
    let losses = |links: usize| {
        let mut topology = Topology::new();
        let mut routes = Vec::new();
        for number in 0..links {
            let ends = [NodeKind::Host; 2].map(|kind| topology.add_node(kind));
            let [a, b] = ends.map(|node| topology.add_interface(node));
            let addresses = [2 * number as u8, 2 * number as u8 + 1].map(common::ip);
            topology
                .connect(a, b, lossy.clone(), lossy.clone())
                .unwrap();
            topology.add_address(a, addresses[0]).unwrap();
            topology.add_address(b, addresses[1]).unwrap();
            routes.push(
                topology
                    .route(ends[0], addresses[0], addresses[1], 0)
                    .unwrap(),
            );
        }
        let mut network: Network<u32> = Network::new(topology, 9);
        let mut delivered = Vec::new();
        for packet in 0..100 {
            for route in &routes {
                network.inject(*route, 100, 0, Ecn::NotEct, packet, &mut ());
            }
        }
        while let Some(output) = network.poll(1000 * MS, &mut ()) {
            if let Output::Delivered { packet, .. } = output {
                if packet.route == routes[0] {
                    delivered.push(packet.body);
                }
            }
        }
        delivered
    };
    let alone = losses(1);
    assert!(alone.len() > 30 && alone.len() < 70);
    assert_eq!(alone, losses(3));
}

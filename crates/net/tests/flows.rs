//! Disciplines that share a channel among flows, or steer its delay.

mod common;

use common::{FORWARD, MS, Pair, config};
use polypath_net::{
    Change, ChannelConfig, CodelConfig, DropReason, DrrConfig, DualPi2Config, Ecn, FqCodelConfig,
    FqPieConfig, Nanos, PieConfig, QueueConfig,
};

const SECOND: Nanos = 1_000 * MS;

fn fq_codel() -> FqCodelConfig {
    FqCodelConfig {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        limit: 10_240,
        quantum_bytes: 1514,
        flows: 1024,
        drop_batch: 64,
        ecn: false,
    }
}

fn fq_pie() -> FqPieConfig {
    FqPieConfig {
        quantum_bytes: 1514,
        flows: 1024,
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: 0.125,
        beta: 1.25,
        limit: 10_240,
        ecn: false,
        ecn_prob: 0.1,
    }
}

fn dual_pi2() -> DualPi2Config {
    DualPi2Config {
        target_ns: 15 * MS,
        tupdate_ns: 16 * MS,
        alpha: 0.16,
        beta: 3.2,
        step_ns: MS,
        step_from: 1,
        coupling: 2,
        classic_share: 0.1,
        limit: 10_000,
        drop_overload: true,
    }
}

fn drr(limit: u64) -> QueueConfig {
    QueueConfig::Drr(DrrConfig {
        limit,
        quantum_bytes: 1514,
        flows: 1024,
    })
}

fn pie() -> PieConfig {
    PieConfig {
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: 0.125,
        beta: 1.25,
        limit: 1000,
        ecn: false,
    }
}

/// 8 Mbit/s, so that a byte takes 1 us.
fn pair(queue: QueueConfig) -> Pair {
    Pair::new(ChannelConfig { queue, ..config() })
}

/// Keeps packets of each flow coming: a flow of `len` bytes offers the whole rate.
fn overload(pair: &mut Pair, flows: &[u32], until: Nanos) {
    let mut next: Vec<Nanos> = vec![0; flows.len()];
    loop {
        let flow = (0..flows.len()).min_by_key(|flow| next[*flow]).unwrap();
        if next[flow] >= until {
            break;
        }
        pair.run(next[flow]);
        pair.send_of(flow as u32, &[flows[flow]], Ecn::NotEct);
        next[flow] += u64::from(flows[flow]) * 1000;
    }
    pair.run(until);
}

fn delivered_bytes(pair: &Pair, flow: u32) -> u64 {
    let packets = pair.packets.iter().filter(|packet| packet.flow == flow);
    packets.map(|packet| u64::from(packet.len)).sum()
}

#[test]
fn flows_of_small_and_large_packets_get_equal_bytes() {
    let lengths = [100, 500, 1500];
    let flow_queues = [
        drr(127),
        QueueConfig::FqCodel(fq_codel()),
        QueueConfig::FqPie(fq_pie()),
    ];
    for queue in flow_queues {
        let mut pair = pair(queue.clone());
        overload(&mut pair, &lengths, 10 * SECOND);
        for flow in 0..3 {
            let share = delivered_bytes(&pair, flow) as f64 / 10_000_000.0;
            assert!(
                (share - 1.0 / 3.0).abs() < 0.005,
                "{queue:?} {flow}: {share}"
            );
        }
    }
}

#[test]
fn a_flow_below_its_share_loses_nothing() {
    let flow_queues = [
        drr(50),
        QueueConfig::FqCodel(fq_codel()),
        QueueConfig::FqPie(fq_pie()),
    ];
    for queue in flow_queues {
        let mut pair = pair(queue);
        let mut sent = 0;
        for ms in 0..5_000 {
            pair.run(ms * MS);
            // Twice the rate, and 4 % of it.
            pair.send_of(0, &[1000, 1000], Ecn::NotEct);
            if ms % 10 == 0 {
                pair.send_of(1, &[400], Ecn::NotEct);
                sent += 1;
            }
        }
        pair.run(10 * SECOND);
        let arrived = pair.packets.iter().filter(|packet| packet.flow == 1);
        assert_eq!(arrived.count(), sent);
        assert!(!pair.dropped().is_empty());
    }
}

#[test]
fn the_longest_queue_of_drr_loses_its_last_packet() {
    let mut pair = pair(drr(4));
    pair.send_of(0, &[1000; 4], Ecn::NotEct);
    pair.send_of(1, &[1000; 2], Ecn::NotEct);
    // One is being sent, four wait: 1 2 of flow 0 and the two of flow 1.
    assert_eq!(pair.dropped(), [(0, 3, DropReason::Longest)]);
    // Of two as long as each other, the first; and the arriving packet itself if it is the last there.
    pair.send_of(0, &[1000], Ecn::NotEct);
    assert_eq!(pair.dropped()[1], (0, 6, DropReason::Longest));
    pair.run(SECOND);
    let order: Vec<u32> = pair.packets.iter().map(|packet| packet.body).collect();
    // The quantum of a turn is enough for one packet; the first left no queue behind, so that flow 0 began again.
    assert_eq!(order, [0, 1, 4, 2, 5]);
}

#[test]
fn a_sparse_flow_goes_first_in_fq_codel() {
    let mut pair = pair(QueueConfig::FqCodel(fq_codel()));
    pair.send_of(0, &[1000; 20], Ecn::NotEct);
    // Flow 0 has had its quantum after the second packet and is old from then on.
    pair.run(3 * MS);
    pair.send_of(1, &[100], Ecn::NotEct);
    pair.run(SECOND);
    let at = pair.packets.iter().position(|packet| packet.flow == 1);
    // Three packets had left and the fourth was being sent.
    assert_eq!(at, Some(4));
}

#[test]
fn the_fattest_queue_of_fq_codel_loses_half_from_its_head() {
    let queue = FqCodelConfig {
        limit: 10,
        ..fq_codel()
    };
    let mut pair = pair(QueueConfig::FqCodel(queue));
    pair.send_of(1, &[1000; 2], Ecn::NotEct);
    pair.send_of(0, &[1000; 10], Ecn::NotEct);
    // One is being sent, one of flow 1 and ten of flow 0 wait, of which five go (RFC 8290 section 4.1).
    let dropped: Vec<u32> = pair.dropped().iter().map(|drop| drop.1).collect();
    assert_eq!(dropped, [2, 3, 4, 5, 6]);
    assert_eq!(pair.network.backlog(FORWARD), (6, 6000));

    let few = FqCodelConfig {
        drop_batch: 2,
        ..queue
    };
    let mut pair = self::pair(QueueConfig::FqCodel(few));
    pair.send_of(0, &[1000; 12], Ecn::NotEct);
    assert_eq!(pair.dropped().len(), 2);
}

#[test]
fn each_flow_of_fq_codel_has_a_codel_of_its_own() {
    let mut pair = pair(QueueConfig::FqCodel(fq_codel()));
    for ms in 0..3_000 {
        pair.run(ms * MS);
        pair.send_of(0, &[1100], Ecn::NotEct);
        pair.send_of(1, &[100], Ecn::NotEct);
    }
    pair.run(3 * SECOND);
    let dropped = pair.dropped();
    assert!(dropped.len() > 10);
    assert!(dropped.iter().all(|drop| drop.2 == DropReason::Codel));
    // Bodies alternate between the flows.
    assert!(dropped.iter().all(|drop| drop.1 % 2 == 0));
}

#[test]
fn fq_codel_marks_what_is_capable() {
    let queue = FqCodelConfig {
        ecn: true,
        ..fq_codel()
    };
    let mut pair = pair(QueueConfig::FqCodel(queue));
    for packet in 0..500 {
        pair.run(packet * MS * 9 / 10);
        pair.send_of(0, &[1000], Ecn::Ect0);
    }
    pair.run(SECOND);
    assert!(pair.dropped().is_empty());
    let marked = pair.packets.iter().filter(|packet| packet.ecn == Ecn::Ce);
    assert!(marked.count() > 4);
}

/// `fq_pie_qdisc_enqueue`: each flow has a probability of its own, and `ecn_prob` ends marking.
#[test]
fn each_flow_of_fq_pie_has_a_pie_of_its_own() {
    for (ecn_prob, marks) in [(1.0, true), (0.0, false)] {
        let queue = FqPieConfig {
            ecn: true,
            ecn_prob,
            ..fq_pie()
        };
        let mut pair = pair(QueueConfig::FqPie(queue));
        for ms in 0..5_000 {
            pair.run(ms * MS);
            pair.send_of(0, &[1100], Ecn::Ect0);
            pair.send_of(1, &[100], Ecn::Ect0);
        }
        pair.run(5 * SECOND);
        let dropped = pair.dropped();
        assert_eq!(dropped.is_empty(), marks);
        assert!(dropped.iter().all(|drop| drop.2 == DropReason::Pie));
        // Bodies alternate between the flows.
        assert!(dropped.iter().all(|drop| drop.1 % 2 == 0));
        let marked = |flow| {
            let of = pair.packets.iter().filter(|it| it.flow == flow);
            of.filter(|it| it.ecn == Ecn::Ce).count()
        };
        assert_eq!((marked(0) > 100, marked(1)), (marks, 0));
    }
}

#[test]
fn the_arriving_packet_does_not_fit_in_fq_pie() {
    let queue = FqPieConfig {
        limit: 3,
        ..fq_pie()
    };
    let mut pair = pair(QueueConfig::FqPie(queue));
    pair.send_of(0, &[1000; 4], Ecn::NotEct);
    pair.send_of(1, &[1000; 2], Ecn::NotEct);
    let full = DropReason::QueueFull;
    assert_eq!(pair.dropped(), [(0, 4, full), (0, 5, full)]);
}

/// RFC 9332 appendix A.2.
#[test]
fn dualpi2_drops_the_surplus_of_both_queues_on_overload() {
    let mut pair = pair(QueueConfig::DualPi2(dual_pi2()));
    for packet in 0..20_000u64 {
        pair.run(packet * MS / 2);
        let ecn = if packet % 4 == 0 {
            Ecn::Ect1
        } else {
            Ecn::Ect0
        };
        pair.send_of((packet % 4).min(1) as u32, &[1000], ecn);
    }
    pair.run(30 * SECOND);
    // Twice the rate comes and nothing gives way. The square of the probability is to be 50 %, twice the probability thus more
    // than 1: overload, in which ECN-capable packets are dropped as others are.
    let late = &pair.packets[pair.packets.len() / 2..];
    let marked = |flow| late.iter().any(|it| it.flow == flow && it.ecn == Ecn::Ce);
    let spared = late.iter().any(|it| it.flow == 0 && it.ecn != Ecn::Ce);
    assert_eq!((marked(0), spared, marked(1)), (true, false, false));
    let dropped = pair.dropped();
    let by_control = dropped.iter().filter(|it| it.2 == DropReason::Pi2).count();
    assert_eq!(dropped.len(), by_control);
    let rate = by_control as f64 / 20_000.0;
    assert!((rate - 0.5).abs() < 0.02, "{rate}");
}

/// RFC 9332 section 2.5.1.1: it cannot know that a mark was put on a packet of ECT(0).
#[test]
fn what_waits_with_a_mark_overtakes_once_dualpi2_takes_over() {
    let mut pair = pair(common::drop_tail(None, None));
    for ecn in [Ecn::Ect0, Ecn::Ect0, Ecn::Ce] {
        pair.send_of(0, &[1000], ecn);
    }
    let change = Change {
        queue: Some(QueueConfig::DualPi2(dual_pi2())),
        ..Change::default()
    };
    let log = &mut pair.log;
    pair.network.apply(FORWARD, &change, log).unwrap();
    pair.run(SECOND);
    let order: Vec<u32> = pair.packets.iter().map(|packet| packet.body).collect();
    assert_eq!(order, [0, 2, 1]);
}

#[test]
fn pie_lets_a_burst_pass_and_then_holds_the_delay() {
    let queue = PieConfig {
        limit: 10_000,
        ..pie()
    };
    let mut pair = pair(QueueConfig::Pie(queue));
    // 1.25 times the rate.
    let mut waiting = Vec::new();
    for packet in 0..50_000u64 {
        pair.run(packet * MS * 4 / 5);
        pair.send_of(0, &[1000], Ecn::NotEct);
        if pair.network.now() > 20 * SECOND {
            waiting.push(pair.network.backlog(FORWARD).0);
        }
    }
    let (first, _, reason) = pair.dropped()[0];
    assert_eq!(reason, DropReason::Pie);
    // No drop during the burst allowance of 150 ms (RFC 8033 section 4.4).
    assert!(first >= 150 * MS, "{first}");
    // A fifth is dropped, and 1 ms of delay is a packet.
    let mean = waiting.iter().sum::<u64>() as f64 / waiting.len() as f64;
    assert!((mean - 15.0).abs() < 1.0, "{mean}");
    let rate = pair.dropped().len() as f64 / 50_000.0;
    assert!((rate - 0.2).abs() < 0.01, "{rate}");
}

#[test]
fn pie_marks_up_to_a_tenth_and_drops_beyond() {
    let queue = PieConfig { ecn: true, ..pie() };
    let share = |gap: Nanos| {
        let mut pair = pair(QueueConfig::Pie(queue));
        for packet in 0..30_000 {
            pair.run(packet * gap);
            pair.send_of(0, &[1000], Ecn::Ect0);
        }
        let marked = pair.packets.iter().filter(|packet| packet.ecn == Ecn::Ce);
        (marked.count(), pair.dropped())
    };
    // Slightly more than the rate: marks do not slow this sender down, so that the probability passes 10 % and packets are dropped.
    let (marked, dropped) = share(MS * 19 / 20);
    assert!(marked > 20, "{marked}");
    assert!(dropped.iter().any(|drop| drop.2 == DropReason::Pie));
    let (marked, dropped) = share(MS * 21 / 20);
    assert_eq!((marked, dropped.len()), (0, 0));
}

#[test]
fn packets_that_wait_pass_to_a_new_discipline() {
    let mut pair = pair(QueueConfig::default());
    let change = |queue| Change {
        queue: Some(queue),
        ..Change::default()
    };
    for flow in [0, 1, 0, 0, 1, 2] {
        pair.send_of(flow, &[1000], Ecn::NotEct);
    }
    let (network, log) = (&mut pair.network, &mut pair.log);
    network.apply(FORWARD, &change(drr(100)), log).unwrap();
    assert_eq!(network.backlog(FORWARD), (5, 5000));
    network
        .apply(FORWARD, &change(QueueConfig::default()), log)
        .unwrap();
    assert_eq!(network.backlog(FORWARD), (5, 5000));
    network
        .apply(FORWARD, &change(QueueConfig::FqCodel(fq_codel())), log)
        .unwrap();
    assert_eq!(network.backlog(FORWARD), (5, 5000));
    pair.run(SECOND);
    assert_eq!(pair.packets.len(), 6);
}

fn codel(limit: u64) -> QueueConfig {
    QueueConfig::Codel(CodelConfig {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        limit,
        ecn: false,
    })
}

/// The packet at the head waits for tokens, and tbf's child counts it (`qdisc_peek_dequeued`).
#[test]
fn a_packet_that_waits_for_tokens_counts_for_the_limit() {
    for (queue, shorter) in std::iter::zip(steered(4), steered(2)) {
        let mut pair = Pair::new(ChannelConfig {
            burst: 1000,
            queue: queue.clone(),
            ..config()
        });
        // The first leaves with the tokens that there are.
        pair.send_of(0, &[1000; 5], Ecn::NotEct);
        assert_eq!(pair.network.backlog(FORWARD), (4, 4000), "{queue:?}");
        assert!(pair.dropped().is_empty());
        pair.send_of(0, &[1000], Ecn::NotEct);
        assert!(!pair.dropped().is_empty(), "{queue:?}");
        assert!(pair.network.stats(FORWARD).max_queue_packets <= 4);
        let change = Change {
            queue: Some(shorter),
            ..Change::default()
        };
        let (network, log) = (&mut pair.network, &mut pair.log);
        network.apply(FORWARD, &change, log).unwrap();
        assert_eq!(network.backlog(FORWARD).0, 2, "{queue:?}");
        pair.run(SECOND);
    }
}

/// Each discipline that goes on under new settings, with this limit.
fn steered(limit: u64) -> [QueueConfig; 4] {
    [
        codel(limit),
        QueueConfig::Pie(PieConfig { limit, ..pie() }),
        drr(limit),
        QueueConfig::FqCodel(FqCodelConfig {
            limit,
            ..fq_codel()
        }),
    ]
}

/// `codel_change`, `pie_change`, `sfq_change` and `fq_codel_change` leave what the control knows.
#[test]
fn a_discipline_goes_on_under_new_settings_of_its_kind() {
    for (queue, later) in std::iter::zip(steered(100_000), steered(99_999)) {
        let passed = |change: Option<QueueConfig>| {
            let mut pair = pair(queue.clone());
            if let Some(queue) = change {
                let change = Change {
                    queue: Some(queue),
                    ..Change::default()
                };
                let at = 1_700 * MS + 1;
                pair.network.schedule(at, FORWARD, change).unwrap();
            }
            overload(&mut pair, &[1200, 700], 3 * SECOND);
            (pair.delivered(), pair.dropped())
        };
        let untouched = passed(None);
        assert!(passed(Some(later.clone())) == untouched, "{later:?}");
    }
}

/// As those of Linux do, codel and pie from the head.
#[test]
fn what_is_beyond_a_shorter_limit_goes_at_once() {
    for (queue, shorter) in std::iter::zip(steered(100), steered(4)) {
        let mut pair = pair(queue);
        pair.send_of(0, &[1000; 9], Ecn::NotEct);
        let change = Change {
            queue: Some(shorter.clone()),
            ..Change::default()
        };
        let (network, log) = (&mut pair.network, &mut pair.log);
        network.apply(FORWARD, &change, log).unwrap();
        // One is being sent and four wait.
        assert_eq!(network.backlog(FORWARD), (4, 4000), "{shorter:?}");
        let of_drr = matches!(shorter, QueueConfig::Drr(_));
        let (reason, bodies) = if of_drr {
            (DropReason::Longest, [8, 7, 6, 5])
        } else {
            (DropReason::QueueFull, [1, 2, 3, 4])
        };
        let gone = bodies.map(|body| (0, body, reason));
        assert_eq!(pair.dropped(), gone, "{shorter:?}");
        pair.run(SECOND);
        assert_eq!(pair.packets.len(), 5);
    }
}

#[test]
fn a_link_that_goes_down_empties_every_queue() {
    let up = |up| Change {
        up: Some(up),
        ..Change::default()
    };
    for queue in [
        drr(100),
        QueueConfig::FqCodel(fq_codel()),
        QueueConfig::Pie(pie()),
    ] {
        let mut pair = pair(queue);
        pair.send_of(0, &[1000; 5], Ecn::NotEct);
        pair.send_of(1, &[1000; 5], Ecn::NotEct);
        pair.network
            .apply(FORWARD, &up(false), &mut pair.log)
            .unwrap();
        assert_eq!(pair.network.backlog(FORWARD), (0, 0));
        assert_eq!(pair.network.totals().lost, 10);
        pair.network
            .apply(FORWARD, &up(true), &mut pair.log)
            .unwrap();
        pair.send_of(1, &[1000; 5], Ecn::NotEct);
        pair.run(SECOND);
        assert_eq!(pair.packets.len(), 5);
    }
}

#[test]
fn what_no_queue_can_be_is_refused() {
    let mut pair = pair(QueueConfig::default());
    for (queue, why) in [
        (drr(0), "'limit' of drr must be at least 1, not 0"),
        (
            QueueConfig::FqCodel(FqCodelConfig {
                quantum_bytes: 255,
                ..fq_codel()
            }),
            "'quantum' of fq-codel must be at least 256, not 255",
        ),
        (
            QueueConfig::FqCodel(FqCodelConfig {
                flows: 65_537,
                ..fq_codel()
            }),
            "'flows' of fq-codel must be between 1 and 65536, not 65537",
        ),
        (
            QueueConfig::FqCodel(FqCodelConfig {
                drop_batch: 0,
                ..fq_codel()
            }),
            "'drop_batch' of fq-codel must be at least 1, not 0",
        ),
        (
            QueueConfig::Pie(PieConfig {
                tupdate_ns: 0,
                ..pie()
            }),
            "'tupdate' of pie must be at least 1, not 0",
        ),
        (
            QueueConfig::Pie(PieConfig {
                beta: f64::NAN,
                ..pie()
            }),
            "'beta' of pie must be between 0 and 1000, not NaN",
        ),
    ] {
        let change = Change {
            queue: Some(queue),
            ..Change::default()
        };
        let refused = pair.network.apply(FORWARD, &change, &mut pair.log);
        assert_eq!(refused.unwrap_err().to_string(), why);
    }
}

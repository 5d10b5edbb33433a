//! The effect of a channel on packets, to the nanosecond.

mod common;

use common::{FORWARD, MS, Pair, config, drop_tail};
use polypath_net::{
    Change, ChannelConfig, CodelConfig, DropReason, Ecn, FqCodelConfig, LossConfig, PieConfig,
    QueueConfig, RandomConfig, RedConfig,
};

const US: u64 = 1_000;

#[test]
fn packets_take_their_serialisation_and_propagation() {
    let mut pair = Pair::new(ChannelConfig {
        overhead: 14,
        ..config()
    });
    pair.send(&[1486, 486]);
    pair.run(10 * MS);
    assert_eq!(pair.delivered(), [(2_500 * US, 0), (3_000 * US, 1)]);
    let stats = pair.network.stats(FORWARD);
    assert_eq!((stats.sent_packets, stats.sent_bytes), (2, 2000));
    assert_eq!(stats.busy, 2_000 * US);
}

#[test]
fn without_a_rate_there_is_only_delay() {
    let mut pair = Pair::new(ChannelConfig {
        rate_bps: None,
        queue: drop_tail(Some(0), None),
        ..config()
    });
    pair.send(&[1500; 3]);
    pair.run(10 * MS);
    assert_eq!(pair.delivered(), [(MS, 0), (MS, 1), (MS, 2)]);
}

#[test]
fn the_packet_limit_does_not_count_the_packet_being_sent() {
    for limit in [0, 2] {
        let mut pair = Pair::new(ChannelConfig {
            queue: drop_tail(Some(limit), None),
            ..config()
        });
        pair.send(&[1000; 5]);
        assert_eq!(pair.network.backlog(FORWARD), (limit, limit * 1000));
        pair.run(10 * MS);
        assert_eq!(pair.delivered().len() as u64, limit + 1);
        let dropped = pair.dropped();
        assert_eq!(dropped[0], (0, limit as u32 + 1, DropReason::QueueFull));
        assert_eq!(dropped.len() as u64, 4 - limit);
        assert_eq!(pair.network.stats(FORWARD).max_queue_packets, limit);
    }
}

#[test]
fn a_packet_that_has_left_frees_its_place_at_that_nanosecond() {
    let mut pair = Pair::new(ChannelConfig {
        queue: drop_tail(Some(1), None),
        ..config()
    });
    pair.send(&[1000; 2]);
    pair.run(MS - 1);
    pair.send(&[1000]);
    pair.run(MS);
    pair.send(&[1000]);
    pair.run(10 * MS);
    assert_eq!(pair.dropped(), [(MS - 1, 2, DropReason::QueueFull)]);
}

#[test]
fn the_byte_limit_counts_overhead() {
    let mut pair = Pair::new(ChannelConfig {
        overhead: 100,
        queue: drop_tail(None, Some(2200)),
        ..config()
    });
    pair.send(&[1000, 1000, 1000, 1, 1]);
    assert_eq!(pair.network.backlog(FORWARD), (2, 2200));
    // The second packet is being sent from 1.1 ms on, so that there is room again.
    pair.run(1_100 * US);
    pair.send(&[1000, 1]);
    pair.run(20 * MS);
    let bodies: Vec<u32> = pair.delivered().iter().map(|(_, body)| *body).collect();
    assert_eq!(bodies, [0, 1, 2, 5]);
}

#[test]
fn a_token_bucket_lets_a_burst_through_and_then_the_rate() {
    let mut pair = Pair::new(ChannelConfig {
        burst: 2500,
        ..config()
    });
    pair.send(&[1000, 1000, 1000, 1000, 3000]);
    assert_eq!(pair.network.backlog(FORWARD), (2, 2000));
    pair.run(20 * MS);
    assert_eq!(
        pair.delivered(),
        [(MS, 0), (MS, 1), (1_500 * US, 2), (2_500 * US, 3)]
    );
    assert_eq!(pair.dropped(), [(0, 4, DropReason::TooLong)]);
}

/// A byte takes 1 us: 10 kB out of a full bucket leave at once, and the rate has made up for them 10 ms later.
#[test]
fn a_token_bucket_is_busy_no_longer_than_time_goes_on() {
    let mut pair = Pair::new(ChannelConfig {
        burst: 10_000,
        ..config()
    });
    pair.run(MS);
    pair.send(&[1000; 10]);
    pair.run(3 * MS);
    assert_eq!(pair.network.stats(FORWARD).sent_packets, 10);
    assert_eq!(pair.network.stats(FORWARD).busy, 2 * MS);
    pair.run(40 * MS);
    assert_eq!(pair.network.stats(FORWARD).busy, 10 * MS);
}

#[test]
fn jitter_keeps_the_order_and_has_its_spread() {
    let mut pair = Pair::new(ChannelConfig {
        rate_bps: None,
        delay: 50 * MS,
        jitter: 5 * MS,
        ..config()
    });
    let count = 4000;
    // Far enough apart that they cannot meet.
    for packet in 0..count {
        pair.run(packet * 200 * MS);
        pair.send(&[100]);
    }
    pair.run((count + 1) * 200 * MS);
    let delays: Vec<f64> = pair
        .delivered()
        .iter()
        .map(|(at, body)| (at - u64::from(*body) * 200 * MS) as f64 / MS as f64)
        .collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let variance = delays.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / delays.len() as f64;
    assert!((mean - 50.0).abs() < 0.4, "{mean}");
    assert!((variance.sqrt() - 5.0).abs() < 0.3, "{variance}");

    pair.send(&[100; 500]);
    pair.run((count + 3) * 200 * MS);
    let together = &pair.delivered()[count as usize..];
    assert_eq!(together.len(), 500);
    assert!(together.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1));
    assert!(together[0].0 < together[499].0);
}

#[test]
fn reordered_packets_skip_the_delay() {
    let mut pair = Pair::new(ChannelConfig {
        reorder: 0.25,
        ..config()
    });
    let count = 2000;
    pair.send(&vec![1000; count as usize]);
    pair.run((count + 2) * MS);
    let early = pair
        .delivered()
        .iter()
        .filter(|(at, body)| *at == u64::from(body + 1) * MS)
        .count();
    let late = pair
        .delivered()
        .iter()
        .filter(|(at, body)| *at == u64::from(body + 2) * MS)
        .count();
    assert_eq!(early + late, count as usize);
    // Four standard deviations of the binomial distribution.
    assert!((early as f64 - 500.0).abs() < 4.0 * (2000.0f64 * 0.25 * 0.75).sqrt());
}

#[test]
fn losses_copies_and_corruption_come_at_their_rates() {
    let count = 20_000u32;
    let close = |found: u64, expected: f64| {
        let deviation = (f64::from(count) * expected * (1.0 - expected)).sqrt();
        let distance = (found as f64 - f64::from(count) * expected).abs();
        assert!(
            distance < 4.0 * deviation,
            "{found} of {count} for {expected}"
        );
    };
    let run = |config: ChannelConfig| {
        let mut pair = Pair::new(config);
        pair.send(&vec![100; count as usize]);
        pair.run(u64::from(count) * MS);
        pair
    };
    let lossy = run(ChannelConfig {
        loss: LossConfig::Random(RandomConfig { probability: 0.03 }),
        ..config()
    });
    close(lossy.network.totals().lost, 0.03);
    let copying = run(ChannelConfig {
        duplicate: 0.1,
        ..config()
    });
    let totals = copying.network.totals();
    close(totals.duplicated, 0.1);
    assert_eq!(totals.delivered, u64::from(count) + totals.duplicated);
    let corrupting = run(ChannelConfig {
        corrupt: 0.01,
        ..config()
    });
    let corrupted = corrupting.packets.iter().filter(|packet| packet.corrupted);
    close(corrupted.count() as u64, 0.01);
}

#[test]
fn a_copy_follows_its_packet() {
    let mut pair = Pair::new(ChannelConfig {
        duplicate: 1.0,
        ..config()
    });
    pair.send(&[1000, 500]);
    pair.run(10 * MS);
    let expected = [(2_000, 0), (3_000, 0), (3_500, 1), (4_000, 1)];
    assert_eq!(pair.delivered(), expected.map(|(us, body)| (us * US, body)));
}

#[test]
fn delays_beyond_four_seconds_are_carried() {
    let mut pair = Pair::new(ChannelConfig {
        delay: 1_200_000 * MS,
        ..config()
    });
    pair.send(&[1000, 1000]);
    pair.run(1_300_000 * MS);
    assert_eq!(pair.delivered(), [(1_200_001 * MS, 0), (1_200_002 * MS, 1)]);
}

#[test]
fn codel_drops_packets_that_waited_too_long() {
    let queue = |ecn| {
        QueueConfig::Codel(CodelConfig {
            target_ns: 5 * MS,
            interval_ns: 100 * MS,
            limit: 150,
            ecn,
        })
    };
    let overload = |ecn, kind| {
        let mut pair = Pair::new(ChannelConfig {
            queue: queue(ecn),
            ..config()
        });
        for packet in 0..500 {
            pair.run(packet * 900 * US);
            pair.send_ecn(&[1000], kind);
        }
        pair.run(10_000 * MS);
        pair
    };
    // The queue grows by one packet in 9 ms, and packets wait 1 ms for each that is ahead of them. The sixth departs about 50 ms after
    // the start having waited 5 ms; a hundred milliseconds later the first one drops.
    let dropping = overload(false, Ecn::NotEct);
    let (first, _, reason) = dropping.dropped()[0];
    assert_eq!(reason, DropReason::Codel);
    assert!((140 * MS..160 * MS).contains(&first), "{first}");
    assert!(dropping.dropped().len() > 4);

    let marking = overload(true, Ecn::Ect0);
    assert!(marking.dropped().is_empty());
    let marked = marking
        .packets
        .iter()
        .filter(|packet| packet.ecn == Ecn::Ce);
    assert!(marked.count() > 4);
}

#[test]
fn red_keeps_the_queue_below_its_limit() {
    let mut pair = Pair::new(ChannelConfig {
        queue: QueueConfig::Red(RedConfig {
            min: 5.0,
            max: 15.0,
            probability: 0.1,
            weight: 0.02,
            gentle: true,
            limit: 60,
            ecn: false,
        }),
        ..config()
    });
    for packet in 0..3000 {
        pair.run(packet * 800 * US);
        pair.send(&[1000]);
    }
    pair.run(4_000 * MS);
    let stats = pair.network.stats(FORWARD);
    let early = pair
        .dropped()
        .iter()
        .filter(|(_, _, reason)| *reason == DropReason::Red)
        .count();
    // A fifth of the load is in excess.
    assert!((500..750).contains(&early), "{early}");
    assert!(stats.max_queue_packets < 60);
}

#[test]
fn short_packets_pass_by_what_waits() {
    let mut pair = Pair::new(ChannelConfig {
        overhead: 10,
        queue: drop_tail(Some(1), None),
        bypass: 100,
        ..config()
    });
    pair.send(&[990, 990, 100, 101]);
    pair.run(500 * US);
    pair.send(&[40]);
    assert_eq!(pair.network.backlog(FORWARD), (1, 1000));
    pair.run(10 * MS);
    let delivered = [(MS, 2), (1_500 * US, 4), (2 * MS, 0), (3 * MS, 1)];
    assert_eq!(pair.delivered(), delivered);
    assert_eq!(pair.dropped(), [(0, 3, DropReason::QueueFull)]);
    let stats = pair.network.stats(FORWARD);
    assert_eq!((stats.sent_packets, stats.sent_bytes), (4, 2160));
    assert_eq!((stats.max_queue_packets, stats.busy), (1, 2 * MS));
}

#[test]
fn short_packets_that_pass_by_are_lost_with_the_link() {
    let mut pair = Pair::new(ChannelConfig {
        bypass: 100,
        ..config()
    });
    let up = |up| Change {
        up: Some(up),
        ..Change::default()
    };
    pair.send(&[40]);
    pair.run(MS / 2);
    pair.network
        .apply(FORWARD, &up(false), &mut pair.log)
        .unwrap();
    pair.send(&[40]);
    pair.network
        .apply(FORWARD, &up(true), &mut pair.log)
        .unwrap();
    pair.send(&[40]);
    pair.run(10 * MS);
    assert_eq!(pair.delivered(), [(1_500 * US, 2)]);
    assert_eq!(pair.network.stats(FORWARD).lost_packets, 2);
}

#[test]
fn unknown_routes_and_impossible_lengths_do_no_harm() {
    let mut pair = Pair::new(config());
    pair.route = polypath_net::RouteId(77);
    pair.send(&[1000]);
    assert_eq!(pair.network.totals().lost, 1);
    let mut pair = Pair::new(config());
    pair.send(&[u32::MAX, u32::MAX]);
    pair.run(u64::MAX);
    assert_eq!(pair.network.totals().delivered, 2);
}

#[test]
fn a_longer_packet_than_the_mtu_goes_back_to_the_owner() {
    use common::Event;
    let mut pair = Pair::new(ChannelConfig {
        mtu: Some(1000),
        ..config()
    });
    pair.send(&[1000, 1001, 500, 1400]);
    pair.run(20 * MS);
    assert_eq!(pair.delivered(), [(2 * MS, 0), (2_500 * US, 2)]);
    assert_eq!(
        pair.dropped(),
        [(0, 1, DropReason::TooBig), (0, 3, DropReason::TooBig)]
    );
    let refused = |event: &&Event| matches!(event, Event::Refused(..));
    let told: Vec<_> = pair.log.0.iter().filter(refused).cloned().collect();
    assert_eq!(
        told,
        [Event::Refused(0, FORWARD, 1), Event::Refused(0, FORWARD, 3)]
    );
    assert_eq!(pair.network.stats(FORWARD).dropped_packets, 2);
}

/// `codel_should_drop` and `pie_drop_early`: what the link's own longest packets, not those that came, would fill is no standing queue.
#[test]
fn a_queue_of_one_long_packet_is_left_alone() {
    const LEN: u32 = 200;
    let codel = QueueConfig::Codel(CodelConfig {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        limit: 1000,
        ecn: false,
    });
    let fq_codel = QueueConfig::FqCodel(FqCodelConfig {
        quantum_bytes: 1514,
        flows: 1024,
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        limit: 1000,
        drop_batch: 64,
        ecn: false,
    });
    let pie = QueueConfig::Pie(PieConfig {
        target_ns: MS,
        tupdate_ns: 15 * MS,
        alpha: 0.125,
        beta: 1.25,
        limit: 1000,
        ecn: false,
    });
    // (queue, MTU, packets that always wait, whether that is a standing queue)
    for (queue, mtu, waiting, stands) in [
        (&codel, None, 8, false),
        (&codel, None, 9, true),
        (&codel, Some(1186), 7, false),
        (&codel, Some(1185), 7, true),
        (&fq_codel, None, 8, false),
        (&fq_codel, None, 9, true),
        (&pie, Some(1200), 11, false),
        (&pie, Some(900), 11, true),
    ] {
        let mut pair = Pair::new(ChannelConfig {
            rate_bps: Some(160_000),
            overhead: 14,
            mtu,
            queue: queue.clone(),
            ..config()
        });
        // One is sent while the others wait, and the next comes as it leaves.
        let one = u64::from(LEN) * 50 * US;
        pair.send(&vec![LEN - 14; waiting]);
        for packet in 0..1000 {
            pair.run(packet * one + 1);
            pair.send(&[LEN - 14]);
        }
        let dropped = !pair.dropped().is_empty();
        assert_eq!(dropped, stands, "{queue:?} {mtu:?} {waiting}");
    }
}

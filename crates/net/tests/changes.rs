//! Channels that change while packets are on them.

mod common;

use common::{Event, FORWARD, MS, Pair, config, drop_tail};
use polypath_net::{
    Change, ChangeError, ChannelConfig, ChannelId, CodelConfig, DropReason, Ecn, LossConfig,
    Network, QueueConfig, RandomConfig, RedConfig,
};

/// The same channel by the fast path, by the general path over the line, and by the staged path.
fn paths() -> [ChannelConfig; 3] {
    let never = f64::MIN_POSITIVE;
    [
        config(),
        ChannelConfig {
            corrupt: never,
            ..config()
        },
        ChannelConfig {
            reorder: never,
            ..config()
        },
    ]
}

fn delivered_with(config: ChannelConfig, at: u64, change: Change) -> Vec<(u64, u32)> {
    let mut pair = Pair::new(config);
    pair.send(&[1000, 1000, 1000]);
    pair.network.schedule(at, FORWARD, change).unwrap();
    pair.run(100 * MS);
    pair.delivered()
}

#[test]
fn a_new_rate_holds_for_the_remaining_bits() {
    for config in paths() {
        // At 1.5 ms half of the second packet is sent.
        let change = Change {
            rate: Some(2_000_000),
            ..Change::default()
        };
        assert_eq!(
            delivered_with(config.clone(), 3 * MS / 2, change),
            [(2 * MS, 0), (9 * MS / 2, 1), (17 * MS / 2, 2)]
        );
        let change = Change {
            rate: Some(16_000_000),
            ..Change::default()
        };
        assert_eq!(
            delivered_with(config, 3 * MS / 2, change),
            [(2 * MS, 0), (11 * MS / 4, 1), (13 * MS / 4, 2)]
        );
    }
}

#[test]
fn a_link_that_gets_a_rate_has_a_queue_with_its_limit_from_then_on() {
    for config in paths() {
        let mut pair = Pair::new(ChannelConfig {
            rate_bps: None,
            queue: drop_tail(Some(2), None),
            ..config
        });
        pair.send(&[1000; 5]);
        let change = Change {
            rate: Some(8_000_000),
            ..Change::default()
        };
        pair.network.schedule(MS, FORWARD, change).unwrap();
        pair.run(5 * MS);
        assert_eq!(pair.delivered().len(), 5);
        pair.send(&[1000; 5]);
        pair.run(20 * MS);
        let dropped: Vec<u32> = pair.dropped().iter().map(|(_, body, _)| *body).collect();
        assert_eq!(dropped, [8, 9]);
    }
}

#[test]
fn a_new_delay_is_for_packets_that_enter_later_and_keeps_the_order() {
    for config in paths() {
        for (delay, third) in [(5 * MS, 9 * MS), (0, 5 * MS)] {
            let mut pair = Pair::new(ChannelConfig {
                delay: 2 * MS,
                ..config.clone()
            });
            pair.send(&[1000, 1000]);
            let change = Change {
                delay: Some(delay),
                ..Change::default()
            };
            pair.network.schedule(MS, FORWARD, change).unwrap();
            pair.run(3 * MS / 2);
            pair.send(&[2000]);
            pair.run(100 * MS);
            let third = if delay == 0 { 4 * MS } else { third };
            assert_eq!(
                pair.delivered(),
                [(3 * MS, 0), (4 * MS, 1), (third, 2)],
                "{config:?}"
            );
        }
    }
}

#[test]
fn loss_spares_what_is_queued() {
    for config in paths() {
        let mut pair = Pair::new(config);
        pair.send(&[1000, 1000]);
        let change = Change {
            loss: Some(LossConfig::Random(RandomConfig { probability: 1.0 })),
            ..Change::default()
        };
        pair.network.apply(FORWARD, &change, &mut ()).unwrap();
        pair.send(&[1000]);
        pair.run(100 * MS);
        assert_eq!(pair.delivered(), [(2 * MS, 0), (3 * MS, 1)]);
        assert_eq!(pair.dropped(), [(0, 2, DropReason::Loss)]);
    }
}

fn link(up: bool) -> Change {
    Change {
        up: Some(up),
        ..Change::default()
    }
}

fn sender(up: bool) -> Change {
    Change {
        sender_up: Some(up),
        ..Change::default()
    }
}

fn receiver(up: bool) -> Change {
    Change {
        receiver_up: Some(up),
        ..Change::default()
    }
}

/// Four packets on a channel of which something is down between these times.
fn interrupted(config: ChannelConfig, change: fn(bool) -> Change, down: u64, up: u64) -> Pair {
    let mut pair = Pair::new(config);
    pair.send(&[1000; 4]);
    for (at, up) in [(down, false), (up, true)] {
        pair.network.schedule(at, FORWARD, change(up)).unwrap();
    }
    pair
}

#[test]
fn a_channel_that_goes_down_loses_everything_on_it() {
    for config in paths() {
        let mut pair = interrupted(config, link, 5 * MS / 2, 4 * MS);
        pair.run(3 * MS);
        pair.send(&[1000]);
        pair.run(4 * MS);
        pair.send(&[1000]);
        pair.run(100 * MS);
        assert_eq!(pair.delivered(), [(2 * MS, 0), (6 * MS, 5)]);
        let down = |at, body| (at, body, DropReason::Down);
        assert_eq!(
            pair.dropped(),
            [
                down(5 * MS / 2, 1),
                down(5 * MS / 2, 2),
                down(5 * MS / 2, 3),
                down(3 * MS, 4)
            ]
        );
        let stats = pair.network.stats(FORWARD);
        assert_eq!((stats.sent_packets, stats.lost_packets), (3, 4));
        assert_eq!(stats.sent_bytes, 3000);
        assert_eq!(stats.busy, 7 * MS / 2);
    }
}

#[test]
fn a_sender_that_goes_down_loses_only_what_it_sends() {
    for config in paths() {
        let mut pair = interrupted(config, sender, 5 * MS / 2, 4 * MS);
        pair.run(3 * MS);
        pair.send(&[1000]);
        pair.run(4 * MS);
        pair.send(&[1000]);
        pair.run(100 * MS);
        let delivered: Vec<_> = (2..6).map(|ms| ms * MS).zip(0..4).collect();
        assert_eq!(pair.delivered()[..4], delivered);
        assert_eq!(pair.delivered()[4..], [(6 * MS, 5)]);
        assert_eq!(pair.dropped(), [(3 * MS, 4, DropReason::Down)]);
    }
}

#[test]
fn a_queue_of_the_sender_goes_down_with_it() {
    for config in paths() {
        let of_sender = ChannelConfig {
            of_sender: true,
            ..config
        };
        let mut pair = interrupted(of_sender, sender, 5 * MS / 2, 4 * MS);
        pair.run(4 * MS);
        pair.send(&[1000]);
        pair.run(100 * MS);
        assert_eq!(pair.delivered(), [(2 * MS, 0), (3 * MS, 1), (6 * MS, 4)]);
        let lost = |body| (5 * MS / 2, body, DropReason::Down);
        assert_eq!(pair.dropped(), [lost(2), lost(3)]);
        let stats = pair.network.stats(FORWARD);
        assert_eq!((stats.sent_packets, stats.busy), (3, 7 * MS / 2));
    }
}

/// `qdisc_reset`: `red_restart` and `codel_vars_init`.
#[test]
fn a_queue_that_lost_all_its_packets_begins_anew() {
    let red = QueueConfig::Red(RedConfig {
        min: 2.0,
        max: 4.0,
        probability: 0.1,
        weight: 0.5,
        gentle: false,
        limit: 1000,
        ecn: false,
    });
    let codel = QueueConfig::Codel(CodelConfig {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        limit: 1000,
        ecn: false,
    });
    // RED's average is far beyond its maximum. CoDel has dropped four times; it drops anew at 456 ms, and would again at 513 ms if it
    // remembered that, where it has 100 ms until the next.
    for (queue, before, down, after, delivered) in
        [(red, 20, MS / 2, 1, 1), (codel, 450, 350 * MS, 180, 179)]
    {
        for config in paths() {
            let of_sender = ChannelConfig {
                queue: queue.clone(),
                of_sender: true,
                ..config
            };
            for change in [link, sender] {
                let mut pair = Pair::new(of_sender.clone());
                pair.send(&vec![1000; before]);
                for (at, up) in [(down, false), (down + 1, true)] {
                    pair.network.schedule(at, FORWARD, change(up)).unwrap();
                }
                pair.run(down + 1);
                pair.send(&vec![1000; after]);
                pair.run(1000 * MS);
                let all = pair.delivered();
                let fresh = all.iter().filter(|it| it.1 >= before as u32);
                assert_eq!(fresh.count(), delivered, "{queue:?}");
            }
        }
    }
}

#[test]
fn a_receiver_that_is_down_loses_what_arrives_meanwhile() {
    for config in paths() {
        let mut pair = interrupted(config, receiver, 5 * MS / 2, 9 * MS / 2);
        pair.run(3 * MS);
        pair.send(&[1000]);
        pair.run(100 * MS);
        assert_eq!(pair.delivered(), [(2 * MS, 0), (5 * MS, 3), (6 * MS, 4)]);
        let lost = |at, body| (at * MS, body, DropReason::Down);
        assert_eq!(pair.dropped(), [lost(3, 1), lost(4, 2)]);
        assert_eq!(pair.network.stats(FORWARD).sent_packets, 5);
    }
}

#[test]
fn interfaces_and_their_link_go_down_apart() {
    let mut pair = Pair::new(config());
    let ends = [link, sender, receiver];
    for change in ends {
        let down = change(false);
        pair.network.apply(FORWARD, &down, &mut ()).unwrap();
    }
    for change in ends {
        pair.send(&[1000]);
        pair.run(pair.network.now() + 10 * MS);
        assert_eq!(pair.delivered(), []);
        let up = change(true);
        pair.network.apply(FORWARD, &up, &mut ()).unwrap();
    }
    pair.send(&[1000]);
    pair.run(100 * MS);
    assert_eq!(pair.delivered().len(), 1);
}

#[test]
fn a_shorter_queue_drops_later_arrivals() {
    for config in paths() {
        let mut pair = Pair::new(config);
        pair.send(&[1000; 4]);
        let change = Change {
            queue: Some(drop_tail(Some(1), None)),
            ..Change::default()
        };
        pair.network.apply(FORWARD, &change, &mut ()).unwrap();
        pair.send(&[1000]);
        // From 2 ms on the third is being sent and the fourth waits, from 3 ms on nothing does.
        pair.run(2 * MS);
        pair.send(&[1000]);
        pair.run(3 * MS);
        pair.send(&[1000]);
        pair.run(100 * MS);
        let bodies: Vec<u32> = pair.delivered().iter().map(|(_, body)| *body).collect();
        assert_eq!(bodies, [0, 1, 2, 3, 6]);
    }
}

#[test]
fn byte_limits_can_come_and_go_while_packets_wait() {
    let mut pair = Pair::new(config());
    pair.send(&[1000; 3]);
    let limit = |bytes| Change {
        queue: Some(drop_tail(None, bytes)),
        ..Change::default()
    };
    pair.network
        .apply(FORWARD, &limit(Some(2500)), &mut ())
        .unwrap();
    pair.send(&[501, 500]);
    assert_eq!(pair.network.backlog(FORWARD), (3, 2500));
    pair.network.apply(FORWARD, &limit(None), &mut ()).unwrap();
    pair.send(&[1000]);
    assert_eq!(pair.network.backlog(FORWARD), (4, 3500));
    pair.run(100 * MS);
    assert_eq!(pair.delivered().len(), 5);
}

#[test]
fn a_line_can_become_staged_with_packets_on_it() {
    let expected = [(2 * MS, 0), (3 * MS, 1), (4 * MS, 2)];
    for change in [
        Change {
            queue: Some(QueueConfig::Codel(CodelConfig {
                target_ns: 5 * MS,
                interval_ns: 100 * MS,
                limit: 100,
                ecn: false,
            })),
            ..Change::default()
        },
        Change {
            reorder: Some(f64::MIN_POSITIVE),
            ..Change::default()
        },
    ] {
        for at in [0, 1, MS, 3 * MS / 2, 5 * MS / 2] {
            assert_eq!(delivered_with(config(), at, change.clone()), expected);
        }
    }
    // A full bucket of one packet: the one being sent leaves at once, the next when there are tokens again.
    let change = Change {
        burst: Some(1000),
        ..Change::default()
    };
    assert_eq!(
        delivered_with(config(), MS / 2, change),
        [(3 * MS / 2, 0), (5 * MS / 2, 1), (7 * MS / 2, 2)]
    );
}

/// Packets leave at once until there is a rate, and then as a full bucket lets them.
#[test]
fn a_burst_waits_for_a_rate() {
    let mut pair = Pair::new(ChannelConfig {
        rate_bps: None,
        burst: 1000,
        ..config()
    });
    pair.send(&[2000, 1000]);
    let change = Change {
        rate: config().rate_bps,
        ..Change::default()
    };
    pair.network.schedule(5 * MS, FORWARD, change).unwrap();
    pair.run(6 * MS);
    pair.send(&[1000, 1000, 2000]);
    pair.run(100 * MS);
    assert_eq!(
        pair.delivered(),
        [(MS, 0), (MS, 1), (7 * MS, 2), (8 * MS, 3)]
    );
    assert_eq!(pair.dropped(), [(6 * MS, 4, DropReason::TooLong)]);
}

#[test]
fn becoming_staged_between_two_arrivals_of_one_time_keeps_that_time() {
    let mut pair = Pair::new(config());
    let network = &mut pair.network;
    let send = |network: &mut Network<u32>| {
        network.inject(pair.route, 1000, 0, Ecn::NotEct, 0, &mut ());
    };
    let change = |delay, reorder| Change {
        delay,
        reorder,
        ..Change::default()
    };
    send(network);
    network
        .apply(FORWARD, &change(Some(0), None), &mut ())
        .unwrap();
    // The second leaves 8 us after the first, without delay, and waits for it.
    network.advance_to(MS / 2);
    send(network);
    network
        .apply(
            FORWARD,
            &Change {
                rate: Some(1_000_000_000),
                ..Change::default()
            },
            &mut (),
        )
        .unwrap();
    assert!(network.poll(100 * MS, &mut ()).is_some());
    let first = network.now();
    let staged = change(None, Some(f64::MIN_POSITIVE));
    network.apply(FORWARD, &staged, &mut ()).unwrap();
    assert!(network.poll(100 * MS, &mut ()).is_some());
    assert_eq!((first, network.now()), (1_504_000, 1_504_000));
}

#[test]
fn a_change_comes_before_packets_of_the_same_time() {
    let mut pair = Pair::new(config());
    pair.send(&[1000]);
    let change = Change {
        up: Some(false),
        ..Change::default()
    };
    pair.network.schedule(2 * MS, FORWARD, change).unwrap();
    pair.run(3 * MS);
    assert_eq!(
        pair.log.0[1..],
        [
            Event::Dropped(2 * MS, 0, DropReason::Down),
            Event::Changed(2 * MS)
        ]
    );
}

#[test]
fn impossible_changes_are_refused() {
    let mut pair = Pair::new(config());
    let rate = |rate| Change {
        rate: Some(rate),
        ..Change::default()
    };
    let network = &mut pair.network;
    assert!(matches!(
        network.schedule(0, FORWARD, rate(0)),
        Err(ChangeError::Config(_))
    ));
    assert_eq!(
        network.schedule(0, ChannelId(9), rate(1)),
        Err(ChangeError::UnknownChannel(ChannelId(9)))
    );
    network.advance_to(5);
    assert_eq!(
        network.schedule(4, FORWARD, rate(1)),
        Err(ChangeError::Past { at: 4, now: 5 })
    );
}

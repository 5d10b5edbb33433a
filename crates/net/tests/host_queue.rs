//! A queue of the sending host: its owner hears what it refuses.

mod common;

use common::{FORWARD, MS, Pair, config, drop_tail};
use polypath_net::{
    ChannelConfig, CodelConfig, DropReason, LossConfig, QueueConfig, RandomConfig, RedConfig,
};

fn of_sender(queue: QueueConfig) -> ChannelConfig {
    ChannelConfig {
        queue,
        of_sender: true,
        ..config()
    }
}

/// What the owner hears of packets of these lengths, sent one after the other now.
fn refusals(pair: &mut Pair, lengths: &[u32]) -> Vec<Option<DropReason>> {
    let send = |len: &u32| {
        pair.send(&[*len]);
        pair.network.refusal()
    };
    lengths.iter().map(send).collect()
}

#[test]
fn a_full_queue_refuses_until_it_has_room() {
    const FULL: Option<DropReason> = Some(DropReason::QueueFull);
    let mut pair = Pair::new(of_sender(drop_tail(Some(2), None)));
    assert_eq!(pair.network.refusal(), None);
    let heard = refusals(&mut pair, &[1000; 5]);
    assert_eq!(heard, [None, None, None, FULL, FULL]);
    // The first has left: one more fits.
    pair.run(MS);
    assert_eq!(refusals(&mut pair, &[1000; 2]), [None, FULL]);
    pair.run(100 * MS);
    let delivered: Vec<u32> = pair.delivered().iter().map(|(_, body)| *body).collect();
    assert_eq!(delivered, [0, 1, 2, 5]);
    // A refused packet was injected and dropped.
    let totals = pair.network.totals();
    assert_eq!((totals.injected, totals.dropped), (7, 3));
}

#[test]
fn every_discipline_tells_what_it_drops_at_the_entrance() {
    let red = QueueConfig::Red(RedConfig {
        min: 1.0,
        max: 2.0,
        probability: 1.0,
        weight: 1.0,
        gentle: false,
        limit: 100,
        ecn: false,
    });
    let codel = QueueConfig::Codel(CodelConfig {
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        limit: 2,
        ecn: false,
    });
    for (queue, reason) in [
        (drop_tail(None, Some(2000)), DropReason::QueueFull),
        (codel, DropReason::QueueFull),
        (red, DropReason::Red),
    ] {
        let mut pair = Pair::new(of_sender(queue.clone()));
        let heard = refusals(&mut pair, &[1000; 10]);
        assert_eq!(heard[0], None, "{queue:?}");
        assert_eq!(heard[9], Some(reason), "{queue:?}");
        pair.run(100 * MS);
    }
}

#[test]
fn the_owner_hears_nothing_of_the_link_behind_it() {
    let lossy = ChannelConfig {
        loss: LossConfig::Random(RandomConfig { probability: 0.5 }),
        duplicate: 0.5,
        ..of_sender(drop_tail(Some(1000), None))
    };
    let elsewhere = ChannelConfig {
        of_sender: false,
        ..of_sender(drop_tail(Some(1), None))
    };
    for config in [lossy, elsewhere] {
        let mut pair = Pair::new(config);
        assert!(refusals(&mut pair, &[1000; 20]).iter().all(Option::is_none));
        assert!(!pair.dropped().is_empty());
        pair.run(100 * MS);
    }
}

/// A copy that does not fit is no concern of the sender's.
#[test]
fn the_owner_hears_nothing_of_copies() {
    let copying = ChannelConfig {
        duplicate: 1.0,
        ..of_sender(drop_tail(Some(0), None))
    };
    let mut pair = Pair::new(copying);
    assert_eq!(refusals(&mut pair, &[1000]), [None]);
    assert_eq!(pair.dropped().len(), 1);
    pair.run(100 * MS);
}

/// A packet of 1000 bytes takes a millisecond, also on a channel whose delay is too long for the line. With a token bucket it depends on
/// what follows.
#[test]
fn it_is_known_when_a_packet_would_leave_the_queue() {
    let config = of_sender(drop_tail(Some(100), None));
    for delay in [MS, 5_000 * MS] {
        let mut pair = Pair::new(ChannelConfig {
            delay,
            ..config.clone()
        });
        for packets in 0..3 {
            assert_eq!(pair.network.queue_clear_at(FORWARD), Some(packets * MS));
            pair.send(&[1000]);
        }
        pair.run(3 * MS / 2);
        assert_eq!(pair.network.queue_clear_at(FORWARD), Some(3 * MS));
        pair.run(10 * MS);
        assert_eq!(pair.network.queue_clear_at(FORWARD), Some(10 * MS), "now");
    }
    let burst = ChannelConfig {
        burst: 10_000,
        ..config
    };
    let pair = Pair::new(burst);
    assert_eq!(pair.network.queue_clear_at(FORWARD), None);
}

//! Each side has its own set of paths for sending, and acknowledgements go where the host wants them.

use polypath_transport::{AckPath, Choice, Config, MILLISECOND as MS, SECOND};
use polypath_wire::quic::Frame;

use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath};

fn three(client: &Config, server: &Config) -> Pair {
    let links = vec![
        link(10 * MBPS, 20 * MS),
        link(10 * MBPS, 40 * MS),
        link(10 * MBPS, 20 * MS),
    ];
    let mut pair = Pair::new(client, server, links, 1);
    pair.establish();
    pair.run_until(SECOND, |_| false);
    pair
}

#[test]
fn the_outer_paths_carry_one_direction_each() {
    let sends_on = |paths: &[u64]| Config {
        send_paths: paths.to_vec(),
        ..multipath()
    };
    let mut pair = three(&sends_on(&[0, 1]), &sends_on(&[1, 2]));
    let before = pair.sent.len();
    let now = pair.now;
    pair.client.write(2_000_000, now);
    let server = pair.server_mut();
    server.write(3_000_000, now);
    pair.run_until(20 * SECOND, |pair| pair.read == [3_000_000, 2_000_000]);
    assert_eq!(pair.read, [3_000_000, 2_000_000]);
    let packets = |side: Side, link: usize| {
        let sent = pair.sent[before..].iter();
        sent.filter(|(_, from, on, _)| (*from, *on) == (side, link))
            .count()
    };
    assert_eq!((packets(Side::Server, 0), packets(Side::Client, 2)), (0, 0));
    for (side, link) in [
        (Side::Client, 0),
        (Side::Client, 1),
        (Side::Server, 1),
        (Side::Server, 2),
    ] {
        assert!(packets(side, link) > 300, "{side:?} on {link}");
    }
}

/// The client's packets that acknowledge, by link, over a download of 3 MB.
fn acknowledging(config: &Config) -> [usize; 2] {
    let links = vec![link(10 * MBPS, 20 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(config, &multipath(), links, 1);
    pair.establish();
    pair.run_until(SECOND, |_| false);
    let before = pair.sent.len();
    let now = pair.now;
    let server = pair.server_mut();
    server.write(3_000_000, now);
    pair.run_until(20 * SECOND, |pair| pair.read[0] == 3_000_000);
    let mut found = [0; 2];
    for (_, side, link, transmit) in &pair.sent[before..] {
        let mut frames = transmit
            .datagram
            .packets
            .iter()
            .flat_map(|packet| &packet.frames);
        if *side == Side::Client && frames.any(|frame| matches!(frame, Frame::Ack(_))) {
            found[*link] += 1;
        }
    }
    found
}

#[test]
fn a_weighted_scheduler_places_acknowledgements_by_weight() {
    let config = Config {
        ack_path: AckPath::Scheduler,
        scheduler: Choice {
            name: "weighted-roundrobin".into(),
            parameters: [("weights".to_string(), vec![1, 2].into())]
                .into_iter()
                .collect(),
        },
        ..multipath()
    };
    let [first, second] = acknowledging(&config);
    let share = first as f64 / (first + second) as f64;
    assert!((0.30..0.37).contains(&share), "{first} and {second}");
}

#[test]
fn acknowledgements_follow_their_path_or_go_the_fastest_way() {
    let [first, second] = acknowledging(&multipath());
    assert!(first.abs_diff(second) < first / 5, "{first} and {second}");
    let [first, second] = acknowledging(&Config {
        ack_path: AckPath::Fastest,
        ..multipath()
    });
    assert!(
        first > 0 && second > 0,
        "equal paths take turns as their RTTs do"
    );
}

#[test]
fn a_path_to_send_on_that_fails_leaves_its_data_to_others() {
    let server = Config {
        send_paths: vec![0],
        ..multipath()
    };
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&multipath(), &server, links, 1);
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    // Nothing of the server's comes through on the one path that it is to use, and everything of the client's does.
    pair.fate = Box::new(|side, link, _, _| {
        if side == Side::Server && link == 0 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let now = pair.now;
    pair.server_mut().write(100_000, now);
    pair.run_until(now + 5 * SECOND, |pair| pair.read[0] == 100_000);
    assert_eq!(pair.read[0], 100_000);
}

//! The handshake, and data over one path.

use polypath_transport::quic::Codepoint;
use polypath_transport::{CloseReason, EventKind, MILLISECOND as MS, SECOND};
use polypath_wire::quic::{Frame, Kind};
use proptest::prelude::*;

use crate::common::reversed;
use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, quic};

#[test]
fn the_handshake_takes_one_round_trip_and_datagrams_have_their_lengths() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    pair.run_until(SECOND, |pair| pair.client.established());
    assert_eq!(pair.now, 40 * MS);
    for (_, side, _, transmit) in &pair.sent {
        assert_eq!(transmit.len, transmit.datagram.len());
        let initial = transmit
            .datagram
            .packets
            .iter()
            .any(|packet| matches!(packet.header.kind, Kind::Initial { .. }));
        if initial && *side == Side::Client {
            assert_eq!(transmit.len, 1200, "RFC 9000 section 14.1");
        }
    }
}

#[test]
fn a_server_sends_three_times_what_came_until_the_address_is_validated() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    // The client's second datagram, and all others, never arrive.
    let mut count = 0;
    pair.fate = Box::new(move |side, _, _, _| {
        count += u32::from(side == Side::Client);
        if side == Side::Client && count > 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_until(20 * SECOND, |_| false);
    let sent: u32 = pair
        .sent
        .iter()
        .filter(|(_, side, ..)| *side == Side::Server)
        .map(|(.., transmit)| transmit.len)
        .sum();
    assert!(
        sent <= 3600,
        "{sent} bytes to an address that is not validated"
    );
}

/// RFC 9002 section 6.2.4.
#[test]
fn a_probe_of_the_servers_flight_has_both_levels() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    pair.fate = Box::new(|side, _, _, _| match side {
        Side::Client => Fate::Pass,
        Side::Server => Fate::Drop,
    });
    pair.run_until(500 * MS, |_| false);
    pair.fate = Box::new(|_, _, _, _| Fate::Pass);
    pair.run_until(SECOND + 500 * MS, |_| false);
    let probe = pair.sent.iter().find(|(at, side, _, transmit)| {
        let mut frames = transmit
            .datagram
            .packets
            .iter()
            .flat_map(|packet| &packet.frames);
        let crypto = frames.any(|frame| matches!(frame, Frame::Crypto { .. }));
        *side == Side::Server && *at > 500 * MS && crypto
    });
    let (.., transmit) = probe.expect("the probe timeout");
    let kinds: Vec<_> = transmit
        .datagram
        .packets
        .iter()
        .map(|packet| &packet.header.kind)
        .collect();
    assert!(
        matches!(kinds[..], [Kind::Initial { .. }, Kind::Handshake]),
        "{kinds:?}"
    );
    assert!(pair.client.established());
}

#[test]
fn a_lost_first_datagram_is_repeated_after_the_initial_probe_timeout() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    let mut first = true;
    pair.fate = Box::new(move |_, _, _, _| {
        if std::mem::take(&mut first) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_until(5 * SECOND, |pair| pair.client.established());
    // 333 ms and four times half of it (RFC 9002 section 6.2.2), and a round trip.
    assert_eq!(pair.now, (333 + 666 + 40) * MS);
}

#[test]
fn five_megabytes_over_one_path() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(100, now);
    pair.run_until(SECOND, |pair| pair.read[1] == 100);
    let server = pair.server.as_mut().expect("it answered");
    server.write(5_000_000, pair.now);
    let began = pair.now;
    pair.run_until(20 * SECOND, |pair| pair.read[0] == 5_000_000);
    assert_eq!(pair.read[0], 5_000_000);
    let goodput = 5_000_000 * 8 * 1000 / ((pair.now - began) / MS);
    assert!((9_100_000..9_700_000).contains(&goodput), "{goodput} bit/s");
}

#[test]
fn both_sides_close_in_order() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(1000, now);
    pair.client.close(now);
    pair.run_until(SECOND, |pair| {
        pair.server.as_ref().is_some_and(|server| server.at_end())
    });
    let server = pair.server.as_mut().expect("it answered");
    server.write(2000, pair.now);
    server.close(pair.now);
    pair.run_until(5 * SECOND, |_| false);
    assert_eq!(pair.read, [2000, 1000]);
    assert_eq!(pair.client.ended(), Some(CloseReason::Finished));
    assert_eq!(
        pair.server.and_then(|server| server.ended()),
        Some(CloseReason::Finished)
    );
}

#[test]
fn one_loss_halves_the_window_once() {
    let config = polypath_transport::Config {
        congestion: "reno".into(),
        ..quic()
    };
    let mut pair = Pair::new(&config, &config, vec![link(0, 20 * MS)], 1);
    pair.establish();
    let mut count = 0;
    pair.fate = Box::new(move |side, _, _, transmit| {
        let full = side == Side::Client && transmit.len > 1000;
        count += u32::from(full);
        if full && (30..34).contains(&count) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let now = pair.now;
    pair.client.write(200_000, now);
    pair.run_until(5 * SECOND, |pair| pair.read[1] == 200_000);
    let losses = pair
        .client
        .events()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Loss(_)))
        .count();
    assert_eq!((losses, pair.read[1]), (1, 200_000));
}

#[test]
fn marks_shrink_the_window_without_a_loss() {
    let config = polypath_transport::Config {
        ecn: true,
        congestion: "reno".into(),
        ..quic()
    };
    let mut pair = Pair::new(&config, &config, vec![link(0, 20 * MS)], 1);
    pair.establish();
    let mut count = 0;
    pair.fate = Box::new(move |side, _, _, transmit| {
        let full = side == Side::Client && transmit.len > 1000;
        count += u32::from(full);
        if full && count == 20 {
            Fate::Marked
        } else {
            Fate::Pass
        }
    });
    let now = pair.now;
    pair.client.write(400_000, now);
    pair.run_until(5 * SECOND, |pair| pair.read[1] == 400_000);
    assert_eq!(pair.client.members()[0].totals().retransmitted, 0);
    let reduced = pair
        .client
        .events()
        .iter()
        .any(|event| matches!(event.kind, EventKind::Loss(0)));
    assert!(reduced);
}

#[test]
fn the_search_finds_what_the_path_takes() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.fate = Box::new(|_, _, _, transmit| {
        if transmit.len > 1372 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.establish();
    let now = pair.now;
    pair.client.write(3_000_000, now);
    pair.run_until(20 * SECOND, |pair| pair.read[1] == 3_000_000);
    let found = pair.client.members()[0].datagram();
    assert!((1364..=1372).contains(&found), "{found}");
    let congested = pair
        .client
        .events()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Timeout { .. }))
        .count();
    assert_eq!(congested, 0, "the loss of a probe is nothing else");
}

#[test]
fn a_silent_peer_is_given_up() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    pair.establish();
    pair.fate = Box::new(|_, _, _, _| Fate::Drop);
    let now = pair.now;
    pair.client.write(1000, now);
    pair.run_until(200 * SECOND, |_| false);
    assert_eq!(pair.client.ended(), Some(CloseReason::TimedOut));
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    let streams: Vec<u64> = (0..4)
        .map(|_| pair.client.open(true).expect("admitted"))
        .collect();
    let mut dropped = false;
    let victim = streams[0];
    pair.fate = Box::new(move |_, _, _, transmit| {
        let frames = transmit
            .datagram
            .packets
            .iter()
            .flat_map(|packet| &packet.frames);
        let hit = frames
            .filter_map(|frame| match frame {
                Frame::Stream { stream, offset, .. } => Some((*stream, *offset)),
                _ => None,
            })
            .any(|it| it == (victim, 0));
        if hit && !std::mem::replace(&mut dropped, true) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let now = pair.now;
    for &stream in &streams {
        pair.client.write_to(stream, 2_000, now);
        pair.client.finish(stream, now);
    }
    let mut finished = Vec::new();
    pair.run_until(5 * SECOND, |pair| {
        if let Some(server) = &pair.server {
            for &stream in &streams {
                if pair.read[1] > 0 && server.stream_at_end(stream) && !finished.contains(&stream) {
                    finished.push(stream);
                }
            }
        }
        finished.len() == 4
    });
    assert_eq!(pair.read[1], 8_000);
    assert_eq!(
        finished.last(),
        Some(&victim),
        "only it waits: {finished:?}"
    );
}

#[test]
fn datagrams_arrive_or_not_and_hold_no_stream_up() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    let mut count = 0;
    pair.fate = Box::new(move |side, _, _, transmit| {
        let mut frames = transmit
            .datagram
            .packets
            .iter()
            .flat_map(|packet| &packet.frames);
        let holds = frames.any(|frame| matches!(frame, Frame::Datagram { .. }));
        count += u32::from(side == Side::Client && holds);
        if holds && count == 5 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let now = pair.now;
    assert!(!pair.client.send_datagram(1500, now), "no packet takes it");
    for _ in 0..40 {
        assert!(pair.client.send_datagram(900, now));
    }
    pair.client.write(50_000, now);
    pair.run_until(5 * SECOND, |_| false);
    assert_eq!(pair.read[1], 50_000);
    let server = pair.server_mut();
    assert!(server.has_datagrams());
    let arrived = server.received_datagrams();
    assert!(!server.has_datagrams());
    assert_eq!(arrived.len(), 39, "what is lost is not repeated");
    assert!(arrived.iter().all(|(_, len)| *len == 900));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, rng_seed: proptest::test_runner::RngSeed::Fixed(1), ..ProptestConfig::default() })]

    /// Through loss, reordering and duplication every byte arrives once, in both directions.
    #[test]
    fn everything_arrives(seed: u64, loss in 0u64..20, late in 0u64..20, twice in 0u64..20, up in 1u64..200_000, down in 1u64..200_000) {
        let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], u128::from(seed));
        let mut state = seed | 1;
        pair.fate = Box::new(move |_, _, _, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let draw = (state >> 33) % 100;
            if draw < loss { Fate::Drop }
            else if draw < loss + late { Fate::Late(15 * MS) }
            else if draw < loss + late + twice { Fate::Twice }
            else { Fate::Pass }
        });
        pair.run_until(60 * SECOND, |pair| pair.server.as_ref().is_some_and(|server| server.established()) && pair.client.established());
        let now = pair.now;
        pair.client.write(up, now);
        pair.client.close(now);
        let mut answered = false;
        pair.run_until(300 * SECOND, |pair| {
            let now = pair.now;
            if let Some(server) = &mut pair.server && !answered && pair.read[1] > 0 {
                answered = true;
                server.write(down, now);
                server.close(now);
            }
            pair.client.ended().is_some()
        });
        prop_assert_eq!(pair.read, [down, up]);
        prop_assert_eq!(pair.client.ended(), Some(CloseReason::Finished));
    }
}

#[test]
fn an_acknowledgement_that_comes_before_a_late_timer_lets_the_next_burst_go() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(100_000, now);
    pair.run_until(now + SECOND, |_| false);
    let now = pair.now;
    assert_eq!(pair.read[1], 100_000);
    let (client, server) = (&mut pair.client, pair.server.as_mut().expect("established"));
    client.write(5_000_000, now);
    let burst = std::mem::take(client.transmits());
    for sent in &burst {
        let tuple = reversed(sent.tuple);
        server.on_datagram(tuple, &sent.datagram, sent.len, Codepoint::NotEct, now);
    }
    let due = client.next_deadline();
    let held = server.next_deadline();
    assert!(
        due < held,
        "the pacer waits for {due}, the last packet's acknowledgement for {held}"
    );
    server.on_time(held);
    // All of it is acknowledged at once, and nothing but this datagram comes.
    for sent in std::mem::take(server.transmits()) {
        let tuple = reversed(sent.tuple);
        client.on_datagram(tuple, &sent.datagram, sent.len, Codepoint::NotEct, held);
    }
    assert!(
        !client.transmits().is_empty(),
        "{} packets before",
        burst.len()
    );
}

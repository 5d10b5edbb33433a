//! Sealed bytes between the endpoints instead of plain datagrams.

use std::collections::BTreeMap;

use polypath_transport::quic::Codepoint;
use polypath_transport::quic::bytes::{Dropped, Limits, first_destination};
use polypath_transport::{CloseReason, Config, MILLISECOND as MS, Nanos, SECOND};
use polypath_wire::quic::{Datagram, Frame, TransportError};

use crate::common::reversed;
use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

fn pair(config: &Config, paths: usize) -> Pair {
    let links = vec![link(10 * MBPS, 20 * MS); paths];
    let mut pair = Pair::new(config, config, links, 1);
    let mut state = 7u64;
    pair.fate = Box::new(move |_, _, _, _| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        match (state >> 33) % 40 {
            0 => Fate::Drop,
            1 => Fate::Late(15 * MS),
            2 => Fate::Twice,
            _ => Fate::Pass,
        }
    });
    pair
}

/// Every datagram that left, and when.
fn exchange(mut pair: Pair) -> (Pair, Vec<(Nanos, Side, usize, Datagram)>) {
    pair.establish();
    let now = pair.now;
    pair.client.write(300_000, now);
    pair.client.close(now);
    let mut answered = false;
    pair.run_until(30 * SECOND, |pair| {
        let now = pair.now;
        if let Some(server) = &mut pair.server
            && !std::mem::replace(&mut answered, true)
        {
            server.write(700_000, now);
            server.close(now);
        }
        pair.client.ended().is_some()
    });
    assert_eq!(pair.read, [700_000, 300_000]);
    let sent = pair
        .sent
        .iter()
        .map(|(at, side, link, transmit)| (*at, *side, *link, transmit.datagram.clone()));
    let sent = sent.collect();
    (pair, sent)
}

#[test]
fn bytes_and_plain_datagrams_give_the_same_packets_at_the_same_times() {
    for (config, paths) in [(quic(), 1), (multipath(), 2)] {
        let (_, plain) = exchange(pair(&config, paths));
        let (pair, sealed) = exchange(pair(&config, paths).through_bytes());
        assert!(plain == sealed);
        assert!(pair.compared >= 1_000_000, "{}", pair.compared);
        for protector in pair.protectors.into_iter().flatten().flatten() {
            let Dropped {
                malformed,
                not_authentic,
                ..
            } = protector.dropped();
            assert_eq!((malformed, not_authentic), (0, 0));
        }
    }
}

#[test]
fn what_comes_before_its_keys_is_dropped_and_counted() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1).through_bytes();
    // The client's second datagram ends its handshake, and is overtaken by data.
    let mut sent = 0;
    pair.fate = Box::new(move |side, _, _, _| {
        sent += u32::from(side == Side::Client);
        if side == Side::Client && sent == 2 {
            Fate::Late(5 * MS)
        } else {
            Fate::Pass
        }
    });
    pair.run_until(SECOND, |pair| pair.client.established());
    let now = pair.now;
    pair.client.write(1000, now);
    pair.run_until(SECOND, |pair| pair.read[1] == 1000);
    assert_eq!(pair.read[1], 1000);
    let protectors = pair.protectors.expect("bytes are exchanged");
    let server = protectors[1].as_ref().expect("the server's");
    assert!(server.dropped().without_keys > 0);
    assert_eq!(server.dropped().not_authentic, 0);
}

#[test]
fn a_short_datagram_begins_no_connection() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1).through_bytes();
    let transmit = pair.client.transmits()[0].clone();
    let protector = pair.protectors.as_mut().expect("bytes are exchanged")[0]
        .as_mut()
        .expect("the client's");
    let bytes = protector.seal(&mut pair.client, &transmit.datagram, &mut |_, _| {});
    let destination = transmit.datagram.packets[0].header.destination;
    assert_eq!(first_destination(&bytes), Some(destination));
    assert_eq!(
        first_destination(&bytes[..1199]),
        None,
        "RFC 9000 section 14.1"
    );
}

/// Transfers in both directions while a side updates its keys whenever it may.
fn updating(side: Side, config: &Config, paths: usize) -> Pair {
    let mut pair = pair(config, paths).through_bytes();
    pair.establish();
    let now = pair.now;
    pair.client.write(2_000_000, now);
    pair.run_until(SECOND, |pair| pair.read[1] > 0);
    let now = pair.now;
    pair.server
        .as_mut()
        .expect("established")
        .write(2_000_000, now);
    pair.run_until(30 * SECOND, |pair| {
        let now = pair.now;
        let connection = match side {
            Side::Client => &mut pair.client,
            Side::Server => pair.server.as_mut().expect("established"),
        };
        let protectors = pair.protectors.as_mut().expect("bytes are exchanged");
        let protector = protectors[side as usize]
            .as_mut()
            .expect("made with its side");
        protector.update_keys(connection, now);
        pair.read == [2_000_000; 2]
    });
    pair
}

#[test]
fn each_side_updates_its_keys_and_the_other_follows() {
    for (config, paths) in [(quic(), 1), (multipath(), 2)] {
        for side in [Side::Client, Side::Server] {
            let pair = updating(side, &config, paths);
            assert_eq!(pair.read, [2_000_000; 2]);
            let [client, server] = pair.protectors.expect("bytes are exchanged");
            let updates = [client, server].map(|it| it.expect("made").key_updates());
            assert!(
                updates[0] > 3 && updates[0].abs_diff(updates[1]) <= 1,
                "{updates:?}"
            );
        }
    }
}

#[test]
fn keys_are_not_updated_before_the_handshake_is_confirmed_nor_twice_at_once() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1).through_bytes();
    pair.fate = Box::new(|side, _, now, _| {
        if side == Side::Client && now >= 80 * MS {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let mut updates = Vec::new();
    pair.run_until(SECOND, |pair| {
        let now = pair.now;
        let protectors = pair.protectors.as_mut().expect("bytes are exchanged");
        let protector = protectors[0].as_mut().expect("the client's");
        if protector.update_keys(&mut pair.client, now) {
            updates.push(now);
        }
        false
    });
    // HANDSHAKE_DONE comes after two round trips. Then the client is silent.
    assert_eq!(updates, [80 * MS], "RFC 9001 section 6.1");
}

fn sealing_at_most(packets: u64) -> Limits {
    Limits {
        sealed: packets,
        not_authentic: u64::MAX,
    }
}

/// The code of the error that ended each side's connection, and whether the peer gave it.
fn causes(pair: &Pair) -> [Option<(u64, bool)>; 2] {
    let server = pair.server.as_ref().expect("established");
    [&pair.client, server].map(|it| {
        it.lifetime()
            .cause()
            .map(|cause| (cause.error, cause.by_peer))
    })
}

const AEAD_LIMIT_REACHED: u64 = TransportError::AEAD_LIMIT_REACHED.0;

#[test]
fn keys_that_have_sealed_half_of_what_is_safe_are_updated() {
    for (config, paths) in [(quic(), 1), (multipath(), 2)] {
        let mut pair = pair(&config, paths).through_bytes();
        let protectors = pair.protectors.as_mut().expect("bytes are exchanged");
        let client = protectors[0].as_mut().expect("the client's");
        client.lower_limits(sealing_at_most(1200));
        pair.establish();
        let now = pair.now;
        pair.client.write(3_000_000, now);
        pair.run_until(30 * SECOND, |pair| pair.read[1] == 3_000_000);
        assert_eq!(pair.read[1], 3_000_000);
        let protectors = pair.protectors.expect("bytes are exchanged");
        for protector in protectors.into_iter().flatten() {
            assert!((2..=6).contains(&protector.key_updates()));
        }
    }
}

#[test]
fn a_connection_that_cannot_update_its_keys_ends_before_their_limit() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1).through_bytes();
    // Without it the client may not update (RFC 9001 section 6.1).
    pair.fate = Box::new(|side, _, _, transmit| {
        let mut packets = transmit.datagram.packets.iter();
        let confirms = packets.any(|packet| packet.frames.contains(&Frame::HandshakeDone));
        if side == Side::Server && confirms {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let protectors = pair.protectors.as_mut().expect("bytes are exchanged");
    let client = protectors[0].as_mut().expect("the client's");
    client.lower_limits(sealing_at_most(400));
    pair.establish();
    let now = pair.now;
    pair.client.write(3_000_000, now);
    pair.run_until(10 * SECOND, |_| false);
    assert_eq!(
        causes(&pair),
        [
            Some((AEAD_LIMIT_REACHED, false)),
            Some((AEAD_LIMIT_REACHED, true))
        ]
    );
    let sealed = pair.sent.iter().filter(|sent| sent.1 == Side::Client);
    let sealed = sealed.count();
    assert!((300..=400).contains(&sealed), "{sealed} packets");
}

#[test]
fn a_connection_under_forgeries_ends_at_the_limit_of_integrity() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1).through_bytes();
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    let now = pair.now;
    pair.client.write(10, now);
    let transmit = pair.client.transmits().pop().expect("it may send");
    let from = reversed(transmit.tuple);
    let [client, protector] = pair.protectors.as_mut().expect("bytes are exchanged");
    let (client, protector) = (
        client.as_mut().expect("made"),
        protector.as_mut().expect("made"),
    );
    protector.lower_limits(Limits {
        sealed: u64::MAX,
        not_authentic: 5,
    });
    let mut bytes = client.seal(&mut pair.client, &transmit.datagram, &mut |_, _| {});
    *bytes.last_mut().expect("a tag") ^= 1;
    let server = pair.server.as_mut().expect("established");
    for forgery in 1..=6 {
        assert!(server.ended().is_none(), "before forgery {forgery}");
        protector.receive(server, from, &bytes, Codepoint::NotEct, now, &mut |_, _| {});
    }
    pair.run_until(now + SECOND, |_| false);
    assert_eq!(
        causes(&pair),
        [
            Some((AEAD_LIMIT_REACHED, true)),
            Some((AEAD_LIMIT_REACHED, false))
        ]
    );
}

#[test]
fn what_cannot_be_opened_counts_against_the_amplification_limit() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1).through_bytes();
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    let now = pair.now;
    pair.client.write(10, now);
    let transmit = pair.client.transmits().pop().expect("it may send");
    let mut from = reversed(transmit.tuple);
    from.remote.set_port(7);
    let [client, server] = pair.protectors.as_mut().expect("bytes are exchanged");
    let (client, protector) = (
        client.as_mut().expect("made"),
        server.as_mut().expect("made"),
    );
    let bytes = client.seal(&mut pair.client, &transmit.datagram, &mut |_, _| {});
    let server = pair.server.as_mut().expect("established");
    let ecn = Codepoint::NotEct;
    protector.receive(server, from, &bytes, ecn, now, &mut |_, _| {});
    assert_eq!(server.members()[0].tuple(), from);
    server.write(10_000, now);
    // The pacer holds nothing back any more, the limit does.
    let now = now + 50 * MS;
    server.on_time(now);
    server.transmits().clear();
    let mut forged = bytes.clone();
    forged.resize(1200, 7);
    protector.receive(server, from, &forged, ecn, now, &mut |_, _| {});
    assert_eq!(protector.dropped().not_authentic, 1);
    assert!(!server.transmits().is_empty(), "RFC 9000 section 8.1");
}

#[test]
fn a_stateless_reset_ends_a_connection_that_uses_the_id_of_its_token() {
    let links = vec![link(0, 20 * MS), link(0, 30 * MS)];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1).through_bytes();
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    let mut tokens = BTreeMap::new();
    for (_, side, _, transmit) in &pair.sent {
        for frame in transmit
            .datagram
            .packets
            .iter()
            .flat_map(|packet| &packet.frames)
        {
            if let (Side::Server, Frame::NewConnectionId(new)) = (side, frame) {
                tokens.insert((new.path, new.sequence), new.reset_token);
            }
        }
    }
    let (now, tuple) = (pair.now, pair.client.members()[1].tuple());
    let (used, unused) = (tokens[&(Some(1), 0)], tokens[&(Some(1), 1)]);
    let [protector, _] = pair.protectors.as_mut().expect("bytes are exchanged");
    let protector = protector.as_mut().expect("made");
    let mut resets = |token: [u8; 16], before: usize| {
        let bytes = [&vec![0x41; before][..], &token].concat();
        let client = &mut pair.client;
        client.transmits().clear();
        protector.receive(
            client,
            tuple,
            &bytes,
            Codepoint::NotEct,
            now,
            &mut |_, _| {},
        );
        (client.ended(), client.transmits().len())
    };
    assert_eq!(resets(unused, 30), (None, 0), "no id in use has this token");
    assert_eq!(resets(used, 4), (None, 0), "too short for a packet");
    assert_eq!(resets(used, 5), (Some(CloseReason::Reset), 0));
}

//! Requests for less frequent acknowledgements, and the other side's reaction (draft-ietf-quic-ack-frequency-14).

use polypath_transport::quic::Transmit;
use polypath_transport::{AckFrequency as Asked, Config, MILLISECOND as MS, Nanos, SECOND};
use polypath_wire::quic::{AckFrequency, Frame, TransportError};

use crate::pair::{Fate, Link, Pair, Side};
use crate::violations::answer;
use crate::{MBPS, link, multipath, quic};

const BYTES: u64 = 2_000_000;

fn asking(packets: u32, config: Config) -> Config {
    Config {
        ack_frequency: Some(Asked {
            packets,
            max_delay: None,
            reordering: 3,
        }),
        ..config
    }
}

fn frames(transmit: &Transmit) -> impl Iterator<Item = &Frame> {
    let packets = transmit.datagram.packets.iter();
    packets.flat_map(|packet| &packet.frames)
}

fn sent(pair: &Pair, from: Side, wanted: fn(&Frame) -> bool) -> usize {
    let own = pair.sent.iter().filter(|(_, side, ..)| *side == from);
    own.filter(|(.., transmit)| frames(transmit).any(wanted))
        .count()
}

fn asks(frame: &Frame) -> bool {
    matches!(frame, Frame::AckFrequency(_))
}

/// A download over so many links, at its end.
fn download(mut pair: Pair) -> Pair {
    pair.establish();
    pair.run_until(pair.now + SECOND, |_| false);
    let now = pair.now;
    let server = pair.server_mut();
    server.write(BYTES, now);
    pair.run_until(now + 20 * SECOND, |pair| pair.read[0] == BYTES);
    assert_eq!(pair.read[0], BYTES);
    pair
}

/// Queues are so long that nothing is lost.
fn pair(client: &Config, server: &Config, links: usize) -> Pair {
    let long = Link {
        queue: 10 * SECOND,
        ..link(10 * MBPS, 20 * MS)
    };
    Pair::new(client, server, vec![long; links], 1)
}

/// Packets of the client's that do nothing but acknowledge.
fn acknowledgements(pair: &Pair) -> usize {
    let alone = |transmit: &Transmit| frames(transmit).all(|frame| matches!(frame, Frame::Ack(_)));
    let own = pair
        .sent
        .iter()
        .filter(|(_, side, ..)| *side == Side::Client);
    own.filter(|(.., transmit)| alone(transmit)).count()
}

#[test]
fn acknowledgements_fall_to_what_was_asked_for() {
    for (config, links) in [(quic(), 1), (multipath(), 2)] {
        let usual = download(pair(&config, &config, links));
        let config = asking(10, config);
        let fewer = download(pair(&config, &config, links));
        let counts = (acknowledgements(&usual), acknowledgements(&fewer));
        assert!(4 * counts.1 < counts.0, "{links} links: {counts:?}");
        let took = (usual.now / MS, fewer.now / MS);
        assert!(took.1 < took.0 + 100, "{links} links: {took:?} ms");
        let requests = sent(&fewer, Side::Server, asks);
        assert_eq!(requests, links, "one for each path");
        let server = fewer.server.as_ref().expect("established");
        for member in server.members() {
            assert_eq!(member.totals().retransmitted, 0, "no spurious loss");
        }
    }
}

#[test]
fn it_is_the_same_as_bytes() {
    let config = asking(10, multipath());
    let plain = download(pair(&config, &config, 2));
    let sealed = download(pair(&config, &config, 2).through_bytes());
    assert_eq!(acknowledgements(&plain), acknowledgements(&sealed));
    assert_eq!(plain.now, sealed.now);
}

#[test]
fn nobody_is_asked_who_does_not_offer_it() {
    let config = asking(10, quic());
    let pair = download(pair(&quic(), &config, 1));
    assert_eq!(sent(&pair, Side::Server, asks), 0);
    assert!(acknowledgements(&pair) > 500, "{}", acknowledgements(&pair));
    let at_once = |frame: &Frame| matches!(frame, Frame::ImmediateAck);
    assert_eq!(sent(&pair, Side::Server, at_once), 0);
}

#[test]
fn a_lost_request_is_repeated() {
    let config = asking(10, quic());
    let mut pair = pair(&config, &config, 1);
    let mut lost = false;
    pair.fate = Box::new(move |side, _, _, transmit| {
        let hit = side == Side::Server && frames(transmit).any(asks);
        if hit && !std::mem::replace(&mut lost, true) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let pair = download(pair);
    assert_eq!(sent(&pair, Side::Server, asks), 2);
    assert!(acknowledgements(&pair) < 250, "{}", acknowledgements(&pair));
}

/// How long the server waited for the acknowledgement of its last packet, of an odd number of them.
fn last_acknowledged_after(max_delay: Option<Nanos>) -> Nanos {
    let mut config = asking(100, quic());
    config.ack_frequency.as_mut().expect("just set").max_delay = max_delay;
    let mut pair = pair(&config, &config, 1);
    pair.establish();
    pair.run_until(pair.now + SECOND, |_| false);
    let (now, before) = (pair.now, pair.sent.len());
    let server = pair.server_mut();
    server.write(100, now);
    pair.run_until(now + 10 * SECOND, |_| false);
    let mut later = pair.sent[before..].iter();
    let acknowledged = later.find(|(_, side, ..)| *side == Side::Client);
    acknowledged.expect("it does").0 - now
}

#[test]
fn the_longest_delay_is_the_peers_own_or_what_was_asked_for() {
    let at = |delay| last_acknowledged_after(delay) / MS - 20;
    assert_eq!(at(None), 25);
    assert_eq!(at(Some(5 * MS)), 5);
    assert_eq!(at(Some(300 * MS)), 300, "and nothing is probed before");
}

#[test]
fn a_probe_is_acknowledged_at_once() {
    let config = asking(100, quic());
    let mut pair = pair(&config, &config, 1);
    pair.establish();
    pair.run_until(pair.now + SECOND, |_| false);
    let (now, before) = (pair.now, pair.sent.len());
    let mut lost = false;
    pair.fate = Box::new(move |_, _, _, _| {
        if std::mem::replace(&mut lost, true) {
            Fate::Pass
        } else {
            Fate::Drop
        }
    });
    let server = pair.server_mut();
    server.write(100, now);
    pair.run_until(now + 10 * SECOND, |_| false);
    let later = &pair.sent[before..];
    let probed = later
        .iter()
        .find(|(.., transmit)| frames(transmit).any(|frame| matches!(frame, Frame::ImmediateAck)));
    let probed = probed.expect("what is lost is probed for").0;
    let acknowledged = later.iter().find(|(_, side, ..)| *side == Side::Client);
    let waited = acknowledged.expect("a packet came").0 - probed;
    assert_eq!(waited / MS, 20, "its way and nothing more");
}

fn request(sequence: u64, max_delay: u64) -> Frame {
    Frame::AckFrequency(AckFrequency {
        sequence,
        eliciting_threshold: 9,
        max_delay,
        reordering_threshold: 3,
    })
}

#[test]
fn a_request_out_of_bounds_or_not_offered_ends_the_connection() {
    const TOO_LONG: u64 = (1 << 14) * 1000;
    use TransportError as E;
    let offering = asking(10, quic());
    let cases = [
        (
            "3: not offered",
            quic(),
            request(1, 25_000),
            Some(E::FRAME_ENCODING_ERROR),
        ),
        (
            "3: not offered",
            quic(),
            Frame::ImmediateAck,
            Some(E::FRAME_ENCODING_ERROR),
        ),
        (
            "4: below min_ack_delay",
            offering.clone(),
            request(1, 999),
            Some(E::PROTOCOL_VIOLATION),
        ),
        ("4: at it", offering.clone(), request(1, 1000), None),
        (
            "4: 2^14 ms",
            offering.clone(),
            request(1, TOO_LONG),
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4: just below",
            offering.clone(),
            request(1, TOO_LONG - 1),
            None,
        ),
        (
            "4: as old as the last",
            offering.clone(),
            request(0, 999),
            None,
        ),
        ("5", offering, Frame::ImmediateAck, None),
    ];
    for (case, config, frame, code) in cases {
        let got = answer(&config, 1, Side::Client, |_| vec![frame]);
        assert_eq!(got, code, "{case}");
    }
}

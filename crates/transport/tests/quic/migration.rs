//! The client's address changes (RFC 9000 section 9).

use polypath_transport::quic::Codepoint;
use polypath_transport::{Config, MILLISECOND as MS, SECOND, Tuple};
use polypath_wire::quic::{Datagram, Frame};

use crate::common::reversed;
use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

fn established(config: &Config, paths: usize) -> Pair {
    let links = vec![link(10 * MBPS, 20 * MS); paths];
    let mut pair = Pair::new(config, config, links, 1);
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    pair
}

fn challenges(pair: &Pair) -> usize {
    let frames = |datagram: &Datagram| {
        let frames = datagram.packets.iter().flat_map(|packet| &packet.frames);
        frames
            .filter(|frame| matches!(frame, Frame::PathChallenge(_)))
            .count()
    };
    let of_server = pair
        .sent
        .iter()
        .filter(|(_, side, ..)| *side == Side::Server);
    of_server
        .map(|(.., transmit)| frames(&transmit.datagram))
        .sum()
}

/// The server's addresses as it knows them.
fn tuple(pair: &Pair) -> Tuple {
    pair.server().members()[0].tuple()
}

#[test]
fn a_new_port_is_challenged_and_the_transfer_goes_on() {
    for (config, paths) in [(quic(), 1), (multipath(), 2)] {
        let mut pair = established(&config, paths);
        let now = pair.now;
        pair.server_mut().write(4_000_000, now);
        // A client that only receives would not show its new port.
        pair.client.write(3_000_000, now);
        for change in 1..=3u16 {
            pair.run_until(now + u64::from(change) * 500 * MS, |_| false);
            pair.shift = change;
            // What is on its way from the former port comes first: 100 ms of queue and the link's delay.
            let (at, before) = (pair.now + 130 * MS, pair.read[0]);
            pair.run_until(at, |_| false);
            pair.run_until(at + 200 * MS, |pair| pair.read[0] > before);
            assert!(pair.read[0] > before, "nothing came after change {change}");
        }
        pair.run_until(20 * SECOND, |pair| pair.read == [4_000_000, 3_000_000]);
        assert_eq!(pair.read, [4_000_000, 3_000_000]);
        let client = pair.client.members()[0].tuple();
        assert_eq!(tuple(&pair).remote.port(), client.local.port() + 3);
        assert!(challenges(&pair) >= 3);
        let server = pair.server();
        assert!(server.members().iter().all(|member| member.validated()));
    }
}

#[test]
fn three_times_what_came_goes_to_a_new_address_until_it_answers() {
    let mut pair = established(&quic(), 1);
    let now = pair.now;
    pair.server_mut().write(1_000_000, now);
    pair.run_until(now + 200 * MS, |_| false);
    pair.shift = 1;
    pair.sent.clear();
    // One datagram of the client arrives from its new port, and no other.
    let mut came = 0;
    pair.fate = Box::new(move |side, _, _, _| {
        came += u32::from(side == Side::Client);
        if side == Side::Client && came > 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let port = pair.client.members()[0].tuple().local.port() + 1;
    let at = pair.now;
    pair.client.write(100, at);
    pair.run_until(now + 500 * MS, |_| false);
    let from_client = pair.sent.iter().find(|(_, side, ..)| *side == Side::Client);
    let limit = 3 * from_client.expect("it wrote").3.len;
    let to_new = pair.sent.iter().filter(|(_, side, _, transmit)| {
        *side == Side::Server && transmit.tuple.remote.port() == port
    });
    let sent: u32 = to_new.map(|(.., transmit)| transmit.len).sum();
    assert!(sent > 0 && sent <= limit, "{sent} of {limit} bytes");
}

#[test]
fn another_host_address_begins_with_the_initial_window() {
    let mut pair = established(&quic(), 1);
    let now = pair.now;
    pair.server_mut().write(1_000_000, now);
    pair.run_until(now + 400 * MS, |_| false);
    let server = pair.server();
    assert!(server.paths()[0].cwnd > 20 && server.paths()[0].srtt > 0);
    pair.fate = Box::new(|_, _, _, _| Fate::Drop);
    pair.run_until(now + 2 * SECOND, |_| false);
    let (packet, from) = non_probing(&mut pair, "10.0.0.9:7");
    let now = pair.now;
    let server = pair.server_mut();
    assert!(server.packets().metrics(0).pto_count > 1);
    server.on_datagram(from, &packet, packet.len(), Codepoint::NotEct, now);
    assert_eq!(server.members()[0].tuple(), from);
    assert_eq!(server.packets().metrics(0).pto_count, 0);
    assert_eq!(
        (server.paths()[0].cwnd, server.paths()[0].srtt),
        (10, 0),
        "RFC 9000 section 9.4"
    );
}

/// A packet of the client's that it has not sent, as if it came from `address`.
fn non_probing(pair: &mut Pair, address: &str) -> (Datagram, Tuple) {
    let now = pair.now;
    pair.client.write(10, now);
    let transmit = pair.client.transmits().pop().expect("it may send");
    let mut from = reversed(transmit.tuple);
    from.remote = address.parse().expect("an address");
    (transmit.datagram, from)
}

#[test]
fn a_probe_is_answered_where_it_came_from_and_moves_nothing() {
    let mut pair = established(&quic(), 1);
    let (mut datagram, from) = non_probing(&mut pair, "10.0.0.9:7");
    datagram.packets[0].frames = vec![Frame::PathChallenge(77), Frame::Padding(1100)];
    let (now, before) = (pair.now, tuple(&pair));
    let server = pair.server_mut();
    server.on_datagram(from, &datagram, datagram.len(), Codepoint::NotEct, now);
    assert_eq!(server.members()[0].tuple(), before);
    let answered: Vec<Tuple> = server
        .transmits()
        .iter()
        .filter(|transmit| {
            transmit.datagram.packets[0]
                .frames
                .contains(&Frame::PathResponse(77))
        })
        .map(|transmit| transmit.tuple)
        .collect();
    assert_eq!(answered, [from], "RFC 9000 section 8.2.2");
}

#[test]
fn the_peer_takes_back_what_a_copy_of_its_packet_moved() {
    let mut pair = established(&quic(), 1);
    let (copy, from) = non_probing(&mut pair, "10.0.0.9:7");
    let (now, before) = (pair.now, tuple(&pair));
    let server = pair.server_mut();
    server.on_datagram(from, &copy, copy.len(), Codepoint::NotEct, now);
    assert_eq!(server.members()[0].tuple(), from);
    // Nothing reaches whoever made the copy.
    pair.fate = Box::new(move |_, _, _, transmit| {
        if transmit.tuple == from {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_until(now + 100 * MS, |_| false);
    assert_eq!(tuple(&pair), before, "RFC 9000 section 9.3.3");
    let now = pair.now;
    pair.server_mut().write(500_000, now);
    pair.run_until(now + 2 * SECOND, |pair| pair.read[0] == 500_000);
    assert_eq!(pair.read[0], 500_000);
}

#[test]
fn an_address_that_does_not_answer_is_left() {
    let mut pair = established(&quic(), 1);
    let (copy, from) = non_probing(&mut pair, "10.0.0.9:7");
    let (now, before) = (pair.now, tuple(&pair));
    let server = pair.server_mut();
    server.on_datagram(from, &copy, copy.len(), Codepoint::NotEct, now);
    pair.fate = Box::new(move |_, _, at, transmit| {
        let silent = transmit.tuple == from || at < now + SECOND;
        if silent { Fate::Drop } else { Fate::Pass }
    });
    pair.run_until(now + 10 * SECOND, |_| false);
    assert_eq!(tuple(&pair), before, "RFC 9000 section 9.3.2");
    assert!(pair.server().members()[0].validated());
}

#[test]
fn a_client_takes_nothing_from_another_server_address() {
    let mut pair = established(&quic(), 1);
    let now = pair.now;
    let server = pair.server_mut();
    server.write(10, now);
    let transmit = server.transmits().pop().expect("it may send");
    let mut from = reversed(transmit.tuple);
    from.remote.set_port(81);
    let len = transmit.len;
    pair.client
        .on_datagram(from, &transmit.datagram, len, Codepoint::NotEct, now);
    assert_eq!(pair.client.streams().available(), 0, "RFC 9000 section 9");
    from.remote.set_port(80);
    pair.client
        .on_datagram(from, &transmit.datagram, len, Codepoint::NotEct, now);
    assert_eq!(pair.client.streams().available(), 10);
}

#[test]
fn an_address_that_may_be_sent_little_gets_no_packet_without_a_sample() {
    for len in 1..30 {
        let mut pair = established(&quic(), 1);
        let now = pair.now;
        pair.server_mut().write(10_000, now);
        let (datagram, from) = non_probing(&mut pair, "10.0.0.9:7");
        pair.fate = Box::new(|_, _, _, _| Fate::Drop);
        let server = pair.server_mut();
        server.on_datagram(from, &datagram, len, Codepoint::NotEct, now);
        // Its probes would be the shortest packets. The pair looks at each.
        pair.run_until(now + SECOND, |_| false);
    }
}

#[test]
fn an_address_that_is_not_validated_is_sent_no_probe_of_its_mtu() {
    let mut pair = established(&quic(), 1);
    let (datagram, from) = non_probing(&mut pair, "10.0.0.9:7");
    pair.fate = Box::new(|_, _, _, _| Fate::Drop);
    pair.sent.clear();
    let now = pair.now;
    let server = pair.server_mut();
    server.on_datagram(from, &datagram, datagram.len(), Codepoint::NotEct, now);
    pair.run_until(now + SECOND, |_| false);
    let to_it = pair
        .sent
        .iter()
        .filter(|(.., transmit)| transmit.tuple == from);
    let sent: u32 = to_it.map(|(.., transmit)| transmit.len).sum();
    assert!(sent > 0 && sent <= 3 * datagram.len(), "{sent} bytes");
}

#[test]
fn an_acknowledgement_that_has_no_room_is_sent_later() {
    let mut pair = established(&quic(), 1);
    let now = pair.now;
    let (datagram, from) = non_probing(&mut pair, "10.0.0.9:7");
    let number = datagram.packets[0].header.number;
    let server = pair.server_mut();
    // Thirty bytes may go back at first. The next datagram has nothing new in it.
    server.on_datagram(from, &datagram, 10, Codepoint::NotEct, now);
    server.on_time(now + 30 * MS);
    server.transmits().clear();
    server.on_datagram(from, &datagram, 1200, Codepoint::NotEct, now + 31 * MS);
    let packets = server
        .transmits()
        .iter()
        .flat_map(|transmit| &transmit.datagram.packets);
    let acknowledged = packets
        .flat_map(|packet| &packet.frames)
        .any(|frame| match frame {
            Frame::Ack(ack) => ack
                .ranges
                .iter()
                .any(|range| range.0 <= number && number <= range.1),
            _ => false,
        });
    assert!(acknowledged);
}

/// RFC 9000 section 8.2.3.
#[test]
fn an_address_that_answers_a_short_challenge_is_asked_again_with_a_full_one() {
    let mut pair = established(&quic(), 1);
    pair.shift = 1;
    pair.sent.clear();
    let now = pair.now;
    pair.client.write(10, now);
    pair.run_until(now + 500 * MS, |_| false);
    let challenges: Vec<u32> = pair
        .sent
        .iter()
        .filter(|(_, side, _, transmit)| {
            let packets = transmit.datagram.packets.iter();
            let mut frames = packets.flat_map(|packet| &packet.frames);
            let to_new = transmit.tuple.remote.port() == tuple(&pair).remote.port();
            let asks = frames.any(|frame| matches!(frame, Frame::PathChallenge(_)));
            *side == Side::Server && to_new && asks
        })
        .map(|(.., transmit)| transmit.len)
        .collect();
    assert!(challenges[0] < 1200, "{challenges:?}");
    assert_eq!(challenges[1..], [1200]);
}

/// RFC 9000 section 8.2.4.
#[test]
fn another_port_has_as_long_to_answer_as_a_path_of_which_nothing_is_known() {
    let mut pair = established(&quic(), 1);
    let (copy, from) = non_probing(&mut pair, "10.0.0.9:7");
    let from = Tuple {
        remote: (tuple(&pair).remote.ip(), from.remote.port()).into(),
        ..from
    };
    let now = pair.now;
    let server = pair.server_mut();
    server.on_datagram(from, &copy, copy.len(), Codepoint::NotEct, now);
    pair.fate = Box::new(|_, _, _, _| Fate::Drop);
    // Three times 333 ms, and twice that.
    pair.run_until(now + 2900 * MS, |_| false);
    assert_eq!(tuple(&pair), from);
    pair.run_until(now + 3500 * MS, |_| false);
    assert_ne!(tuple(&pair), from);
}

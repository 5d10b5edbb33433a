//! Ends of connections (RFC 9000 section 10.2).

use polypath_transport::quic::{Cause, Codepoint, Transmit};
use polypath_transport::{CloseReason, MILLISECOND as MS, SECOND};
use polypath_wire::quic::{Datagram, Frame};

use crate::common::{client_address, reversed};
use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

fn has(datagram: &Datagram, wanted: impl Fn(&Frame) -> bool) -> bool {
    let mut frames = datagram.packets.iter().flat_map(|packet| &packet.frames);
    frames.any(wanted)
}

fn closes(frame: &Frame) -> bool {
    matches!(frame, Frame::ConnectionClose { .. })
}

fn server_ended(pair: &Pair) -> Option<CloseReason> {
    pair.server.as_ref().and_then(|server| server.ended())
}

#[test]
fn a_close_that_was_lost_is_repeated_when_the_peer_sends_more() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    let now = pair.now;
    pair.server_mut().write(1_000_000, now);
    pair.run_until(now + 100 * MS, |_| false);
    let mut lost = 0;
    pair.fate = Box::new(move |_, _, _, transmit| {
        let first = has(&transmit.datagram, closes) && lost < 2;
        lost += u32::from(first);
        if first { Fate::Drop } else { Fate::Pass }
    });
    let now = pair.now;
    pair.sent.clear();
    pair.client.abort(now);
    pair.run_until(now + 5 * SECOND, |_| false);
    assert_eq!(server_ended(&pair), Some(CloseReason::Finished));
    let of_client = pair
        .sent
        .iter()
        .filter(|(_, side, ..)| *side == Side::Client);
    let told = of_client
        .filter(|(.., transmit)| has(&transmit.datagram, closes))
        .count();
    assert!((3..12).contains(&told), "{told} times");
    let said = |by_peer| Cause {
        by_peer,
        error: 0,
        reason: String::new(),
    };
    let server = pair.server();
    assert_eq!(pair.client.lifetime().cause(), Some(&said(false)));
    assert_eq!(server.lifetime().cause(), Some(&said(true)));
    assert!(pair.client.lifetime().closing_until() > now && server.lifetime().closing_until() == 0);
}

#[test]
fn a_stream_that_is_given_up_ends_with_its_error() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(1_000, now);
    pair.run_until(now + 100 * MS, |_| false);
    let now = pair.now;
    let server = pair.server_mut();
    server.write(5_000, now);
    pair.run_until(now + 200 * MS, |_| false);
    let now = pair.now;
    let server = pair.server_mut();
    server.reset_stream(0, 5, now);
    let sent = std::mem::take(server.transmits());
    let resets = |frame: &Frame| matches!(frame, Frame::ResetStream { .. });
    let reset = sent.iter().find(|sent| has(&sent.datagram, resets));
    let Transmit {
        tuple,
        datagram,
        len,
        ..
    } = reset.expect("nothing holds it back");
    let client = &mut pair.client;
    client.on_datagram(reversed(*tuple), datagram, *len, Codepoint::NotEct, now);
    assert_eq!(client.streams().reset_by_peer(0), Some(5));
    assert_eq!((pair.read[0], client.read(u64::MAX, now)), (5_000, 0));
    assert!(client.stream_at_end(0) && client.ended().is_none());
}

#[test]
fn a_close_takes_no_path_that_was_abandoned() {
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1);
    pair.establish();
    pair.run_until(500 * MS, |_| false);
    let now = pair.now;
    pair.client.set_address_up(client_address(0), false, now);
    pair.run_until(now + 200 * MS, |_| false);
    let now = pair.now;
    pair.client.abort(now);
    pair.run_until(now + 100 * MS, |_| false);
    assert_eq!(server_ended(&pair), Some(CloseReason::Finished));
}

#[test]
fn a_peer_within_the_handshake_is_told_at_a_level_that_it_can_read() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    // The client has nothing of the server's handshake, and no keys but those of Initial packets.
    pair.fate = Box::new(|side, _, _, transmit| {
        let crypto = |frame: &Frame| matches!(frame, Frame::Crypto { .. });
        let lost = side == Side::Server && has(&transmit.datagram, crypto);
        if lost { Fate::Drop } else { Fate::Pass }
    });
    pair.run_until(SECOND, |pair| pair.server.is_some());
    let now = pair.now;
    pair.server.as_mut().expect("a datagram came").abort(now);
    pair.run_until(now + 100 * MS, |_| false);
    assert_eq!(pair.client.ended(), Some(CloseReason::Reset));
}

#[test]
fn the_client_closes_when_it_has_read_everything() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    let now = pair.now;
    pair.client.write(1_000, now);
    pair.client.close(now);
    pair.run_until(now + 5 * SECOND, |_| false);
    let now = pair.now;
    pair.server_mut().close(now);
    pair.run_until(now + SECOND, |pair| pair.client.ended().is_some());
    assert_eq!(pair.client.ended(), Some(CloseReason::Finished));
    // The last byte that it read ended it: no timer has to come.
    assert!(pair.now < now + 30 * MS, "{} ms", (pair.now - now) / MS);
}

#[test]
fn a_receiver_closes_on_the_path_that_it_still_hears() {
    // It announces no limits, and so has nothing in flight that would tell it of the path that goes dark.
    let mut client = multipath();
    client.receive_buffer.default = 16_000_000;
    client.receive_buffer.maximum = 16_000_000;
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 20 * MS)];
    let mut pair = Pair::new(&client, &multipath(), links, 1);
    pair.establish();
    pair.run_until(pair.now + 200 * MS, |_| false);
    let now = pair.now;
    let server = pair.server_mut();
    server.write(2_000_000, now);
    let dark = now + 300 * MS;
    pair.fate = Box::new(move |_, path, at, _| {
        if path == 0 && at >= dark {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.run_until(now + 20 * SECOND, |pair| pair.read[0] == 2_000_000);
    assert_eq!(pair.read[0], 2_000_000);
    let now = pair.now;
    assert!(now > dark + SECOND);
    assert!(!pair.client.paths()[0].potentially_failed);
    pair.client.abort(now);
    pair.run_until(now + SECOND, |pair| server_ended(pair).is_some());
    assert_eq!(server_ended(&pair), Some(CloseReason::Finished));
}

//! The waits of arrived data, and reports of limits to the peer.

use polypath_transport::{Blocked, Buffer, Cause, Config, Level, MILLISECOND as MS, SECOND};
use polypath_wire::quic::Frame;

use crate::pair::{Fate, Pair, Side};
use crate::{MBPS, link, multipath, quic};

/// Whether a datagram has data, and whether it is the `n`th of its kind.
fn nth_data(mut n: u32) -> impl FnMut(Side, &polypath_transport::quic::Transmit) -> bool {
    move |side, transmit| {
        let mut frames = (transmit.datagram.packets.iter()).flat_map(|packet| &packet.frames);
        let data =
            side == Side::Server && frames.any(|frame| matches!(frame, Frame::Stream { .. }));
        n = n.wrapping_sub(u32::from(data));
        data && n == 0
    }
}

fn download(pair: &mut Pair, bytes: u64) -> Vec<Blocked> {
    pair.establish();
    pair.run_until(pair.now + SECOND, |_| false);
    let now = pair.now;
    pair.server_mut().write(bytes, now);
    pair.run_until(now + 20 * SECOND, |pair| pair.read[0] == bytes);
    assert_eq!(pair.read[0], bytes);
    pair.client.streams().blocked(pair.now)
}

#[test]
fn data_waits_for_a_packet_that_was_lost() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    assert!(
        download(&mut pair, 100_000).is_empty(),
        "nothing was missing"
    );
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    let mut lost = nth_data(5);
    pair.fate = Box::new(move |side, _, _, transmit| match lost(side, transmit) {
        true => Fate::Drop,
        false => Fate::Pass,
    });
    let found = download(&mut pair, 100_000);
    let [one] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(
        (one.level, one.subflow, one.cause),
        (Level::Connection, Some(0), Cause::Retransmitted)
    );
    // A round trip, and what was before the packet in the link's queue when it went again.
    assert!((40 * MS..60 * MS).contains(&one.waited.time), "{one:?}");
    assert!(one.waited.most > 5_000, "{one:?}");
}

#[test]
fn data_waits_for_the_slower_path() {
    let links = vec![link(10 * MBPS, 10 * MS), link(10 * MBPS, 60 * MS)];
    let mut pair = Pair::new(&multipath(), &multipath(), links, 1);
    let found = download(&mut pair, 60_000);
    let late = |path: usize| {
        let own = |one: &&Blocked| one.subflow == Some(path) && one.cause == Cause::Late;
        found
            .iter()
            .filter(own)
            .map(|one| one.waited.time)
            .sum::<u64>()
    };
    assert!(late(1) > 40 * MS && late(0) == 0, "{found:?}");
}

#[test]
fn what_never_comes_is_missing_until_the_connection_ends() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(10 * MBPS, 20 * MS)], 1);
    pair.establish();
    pair.run_until(pair.now + SECOND, |_| false);
    // The first packet of data, and everything that would repeat it.
    pair.fate = Box::new(|side, _, _, transmit| {
        let first = |frame: &Frame| matches!(frame, Frame::Stream { offset: 0, .. });
        let mut frames = (transmit.datagram.packets.iter()).flat_map(|packet| &packet.frames);
        match side == Side::Server && frames.any(first) {
            true => Fate::Drop,
            false => Fate::Pass,
        }
    });
    let now = pair.now;
    pair.server_mut().write(10_000, now);
    pair.run_until(now + 300 * MS, |_| false);
    let at = pair.now;
    pair.client.abort(at);
    let found = pair.client.streams().blocked(at + SECOND);
    let [one] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((one.subflow, one.cause), (None, Cause::Missing));
    assert!((270 * MS..281 * MS).contains(&one.waited.time), "{one:?}");
}

/// A limit is told in the call that uses it up (RFC 9000 section 4.1).
#[test]
fn data_that_a_limit_holds_back_is_told_of_with_the_last_that_it_admits() {
    let small = Config {
        receive_buffer: Buffer::from([8_000; 3]),
        autotuning: false,
        ..quic()
    };
    let mut pair = Pair::new(&small, &quic(), vec![link(0, 20 * MS)], 1);
    pair.establish();
    pair.run_until(pair.now + SECOND, |_| false);
    let (now, before) = (pair.now, pair.sent.len());
    pair.server_mut().write(100_000, now);
    pair.run_until(now + SECOND, |pair| pair.read[0] == 100_000);
    let time_of = |wanted: &dyn Fn(&Frame) -> bool| {
        let of_server = pair.sent[before..].iter();
        let mut of_server = of_server.filter(|(_, side, ..)| *side == Side::Server);
        of_server
            .find(|(.., transmit)| {
                let mut frames =
                    (transmit.datagram.packets.iter()).flat_map(|packet| &packet.frames);
                frames.any(wanted)
            })
            .map(|(at, ..)| *at)
    };
    let used_up = time_of(
        &|frame| matches!(frame, Frame::Stream { offset, len, .. } if offset + u64::from(*len) == 8_000),
    );
    let told = time_of(&|frame| matches!(frame, Frame::StreamDataBlocked { limit: 8_000, .. }));
    assert!(used_up.is_some());
    assert_eq!(told, used_up);
}

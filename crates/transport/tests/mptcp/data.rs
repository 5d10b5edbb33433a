//! Data (RFC 8684 section 3.3).
//!
//! | rule | test |
//! |---|---|
//! | mappings cover the stream, each in its subflow's numbers | `mappings_on_two_subflows_cover_the_stream` |
//! | a mapping may span segments | `a_mapping_longer_than_its_segment_covers_the_next_ones` |
//! | reassembly by data sequence number | `data_waits_for_what_comes_before_it_on_another_subflow` |
//! | the 32-bit form wraps | `short_data_sequence_numbers_wrap` |
//! | one window for all subflows | `the_window_is_shared` |
//! | data beyond what was sent is not acknowledged | `a_data_ack_of_the_future_is_ignored` |
//! | DATA_FIN alone, lost, with data, after slow data | `a_lone_data_fin_closes_the_stream`, `a_lost_data_fin_is_repeated`, `a_data_fin_on_data_counts_one`, `a_data_fin_waits_for_data_that_is_slow_to_come`, `a_fin_that_never_comes_is_awaited_for_a_minute` |
//! | NSDI 2012, section 4.2 | `a_full_window_is_freed_by_the_faster_path` |

use polypath_transport::{
    Buffer, CloseReason, Config, Connection, EventKind, Keepalive, Profile, Purpose,
};
use polypath_wire::mptcp::{DataAck, Dsn, MptcpOption};
use polypath_wire::tcp::Payload;

use crate::common::script::{Peer, Script, Sent, initial_dsn};
use crate::common::{
    Fate, Link, MS, Pair, SECOND, Side, client_address, first_tuple, host, mptcp, with_profile,
};
use crate::meshed;

#[test]
fn mappings_on_two_subflows_cover_the_stream() {
    let mut pair = meshed(&with_profile(Profile::Linux, mptcp()), &[10 * MS, 15 * MS]);
    let begin = pair.client.connection().data_sequence(0).expect("MPTCP");
    pair.write(Side::Client, 500_000);
    pair.run_for(10 * SECOND);
    pair.assert_whole(Side::Server, 500_001);
    let mut covered = vec![false; 500_001];
    let mut used = [false; 2];
    for packet in pair.data(Side::Client) {
        let Some(dss) = packet.segment.dss else {
            continue;
        };
        let mapping = dss.mapping.expect("data carries a mapping");
        let Dsn::Long(dsn) = mapping.dsn else {
            panic!("Linux sends eight bytes")
        };
        assert_eq!(u32::from(mapping.len), packet.segment.payload.len);
        let isn = pair.client.connection().subflows()[packet.subflow]
            .socket()
            .initial_sequence();
        assert_eq!(isn.wrapping_add(mapping.subflow_seq), packet.segment.seq);
        let offset = dsn.get().wrapping_sub(begin) as usize;
        assert_eq!(offset as u64, { packet.segment.payload.offset });
        covered[offset..offset + usize::from(mapping.len)].fill(true);
        used[packet.subflow] = true;
    }
    assert!(covered[1..].iter().all(|byte| *byte));
    assert_eq!(used, [true, true]);
}

pub(super) fn mptcp_peer() -> Peer {
    Peer {
        mptcp: true,
        ..Peer::default()
    }
}

fn accepted() -> Script {
    let mut script = Script::accepted(&mptcp(), mptcp_peer(), 20 * MS);
    script.drain();
    script
}

/// The data-level acknowledgement of the last segment sent, as a stream offset.
fn data_acknowledged(script: &mut Script) -> u32 {
    let last = script.drain().pop().expect("an ACK").segment;
    let Some(DataAck::Short(ack)) = last.dss.expect("a DSS").data_ack else {
        panic!("{last:?}")
    };
    ack.wrapping_sub(initial_dsn(crate::common::script::PEER_KEY) as u32)
        .wrapping_sub(1)
}

#[test]
fn a_mapping_longer_than_its_segment_covers_the_next_ones() {
    let mut script = accepted();
    let mut first = script.mapped(1, 0, 1000, 1);
    first
        .dss
        .as_mut()
        .expect("DSS")
        .mapping
        .as_mut()
        .expect("a mapping")
        .len = 3000;
    script.inject(first);
    for (seq, len) in [(1001, 1500), (2501, 500)] {
        let mut rest = script.mapped(seq, seq - 1, len, 1);
        rest.dss.as_mut().expect("DSS").mapping = None;
        script.inject(rest);
    }
    assert_eq!(data_acknowledged(&mut script), 3000);
    assert_eq!(script.read(10_000), 3000);
    assert!(script.connection.multipath());
}

/// Subflow order and stream order differ: the subflow acknowledges, the stream waits.
#[test]
fn data_waits_for_what_comes_before_it_on_another_subflow() {
    let mut script = accepted();
    script.inject(script.mapped(1, 5000, 1000, 1));
    let last = script.expect_ack(1001).segment;
    assert_eq!(
        last.dss.expect("DSS").data_ack,
        Some(DataAck::Short(
            (initial_dsn(crate::common::script::PEER_KEY) as u32).wrapping_add(1)
        ))
    );
    assert_eq!(script.connection.available(), 0);
    assert_eq!(script.connection.reassembly_bytes(), 1000);
    script.inject(script.mapped(1001, 0, 5000, 1));
    assert_eq!(data_acknowledged(&mut script), 6000);
    assert_eq!(script.connection.available(), 6000);
}

#[test]
fn short_data_sequence_numbers_wrap() {
    let config = mptcp();
    let seed = (0u64..200_000)
        .find(|&seed| {
            let accept = host(&config, vec![client_address(0)], u128::from(seed) << 8 | 1);
            let connection = Connection::connect(accept, first_tuple(), 0).expect("valid");
            let first = connection.data_sequence(0).expect("MPTCP") as u32;
            first > u32::MAX - 300_000
        })
        .expect("one seed in 14 000 will do");
    let links = vec![Link::new(10 * MS), Link::new(20 * MS)];
    let mut pair = Pair::with(&config, &config, links, 1, seed);
    let mut count = 0;
    pair.hook(move |packet| {
        count += u32::from(packet.carries_data());
        if packet.carries_data() && count % 29 == 0 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.transfer(1_000_000, 60 * SECOND);
    let wrapped = pair.data(Side::Client).any(|packet| {
        let mapping = packet.segment.dss.and_then(|dss| dss.mapping);
        matches!(mapping.map(|mapping| mapping.dsn), Some(Dsn::Short(dsn)) if dsn < 1_000_000)
    });
    assert!(wrapped);
    assert!(pair.server.connection().multipath());
}

#[test]
fn the_window_is_shared() {
    let size = 40_000;
    let buffer = Buffer::from([size; 3]);
    let config = Config {
        receive_buffer: buffer,
        autotuning: false,
        ..mptcp()
    };
    let mut pair = meshed(&config, &[10 * MS, 15 * MS]);
    pair.server.reading = false;
    pair.write(Side::Client, 1_000_000);
    pair.run_for(20 * SECOND);
    // Both subflows together filled one buffer, and not more.
    let waiting = pair.server.connection().available();
    assert!((size - 1500..=size).contains(&waiting), "{waiting}");
    assert_eq!(
        pair.server.read + waiting,
        pair.client.connection().written() - pair.client.connection().send_queue().0
    );
    pair.server.reading = true;
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 1_000_001);
}

#[test]
fn a_data_ack_of_the_future_is_ignored() {
    let mut script = Script::connected(&mptcp(), mptcp_peer(), 20 * MS);
    script.write(100);
    script.expect();
    script.inject(script.data_ack(101, 5000));
    assert_eq!(script.connection.send_queue(), (100, 0));
    script.inject(script.data_ack(101, 100));
    assert_eq!(script.connection.send_queue(), (0, 0));
}

fn lone_data_fins(script: &mut Script) -> usize {
    script
        .drain()
        .iter()
        .filter(|sent| {
            let fin = sent.segment.dss.is_some_and(|dss| dss.data_fin);
            if fin {
                let mapping = sent
                    .segment
                    .dss
                    .and_then(|dss| dss.mapping)
                    .expect("a mapping");
                assert_eq!(
                    (mapping.subflow_seq, mapping.len, sent.segment.payload.len),
                    (0, 1, 0)
                );
            }
            fin
        })
        .count()
}

#[test]
fn a_lone_data_fin_closes_the_stream() {
    let mut script = Script::connected(&mptcp(), mptcp_peer(), 20 * MS);
    script.write(100);
    script.expect();
    script.inject(script.data_ack(101, 100));
    script.drain();
    script.close();
    assert_eq!(lone_data_fins(&mut script), 1);
    // Acknowledged by one more than the data; the peer's own stream is still open.
    script.inject(script.data_ack(101, 101));
    script.run_for(100 * SECOND);
    assert_eq!(lone_data_fins(&mut script), 0);
    assert_eq!(script.connection.ended(), None);
    let mut fin = script.mapped(0, 0, 0, 101);
    fin.seq = script.ack(101).seq;
    let dss = fin.dss.as_mut().expect("DSS");
    dss.data_fin = true;
    dss.data_ack = script.data_ack(101, 101).dss.expect("DSS").data_ack;
    let mapping = dss.mapping.as_mut().expect("a mapping");
    (mapping.subflow_seq, mapping.len) = (0, 1);
    script.inject(fin);
    // Both streams are over: the subflow's own FIN follows.
    let sent = script.drain();
    assert!(
        sent.iter()
            .any(|sent| sent.segment.flags.contains(polypath_wire::tcp::Flags::FIN))
    );
    assert!(script.connection.at_end());
}

/// What the peer's stack still owes when both streams are over is awaited for as long as TIME-WAIT lasts, however rarely keep-alive looks.
#[test]
fn a_fin_that_never_comes_is_awaited_for_a_minute() {
    let keepalive = Keepalive {
        time: 7200 * SECOND,
        interval: 75 * SECOND,
        probes: 9,
    };
    for keepalive in [None, Some(keepalive)] {
        let config = Config {
            keepalive,
            ..mptcp()
        };
        let mut script = Script::connected(&config, mptcp_peer(), 20 * MS);
        script.close();
        assert_eq!(lone_data_fins(&mut script), 1);
        let mut fin = script.mapped(0, 0, 0, 1);
        fin.seq = script.ack(1).seq;
        let dss = fin.dss.as_mut().expect("DSS");
        dss.data_fin = true;
        dss.data_ack = script.data_ack(1, 1).dss.expect("DSS").data_ack;
        let mapping = dss.mapping.as_mut().expect("a mapping");
        (mapping.subflow_seq, mapping.len) = (0, 1);
        script.inject(fin);
        script.inject(script.data_ack(2, 1));
        let begin = script.now;
        script.run_until(begin + 59 * SECOND);
        assert_eq!(script.connection.ended(), None);
        script.run_until(begin + 61 * SECOND);
        assert_eq!(script.connection.ended(), Some(CloseReason::Finished));
    }
}

#[test]
fn a_lost_data_fin_is_repeated() {
    let mut pair = meshed(&mptcp(), &[10 * MS]);
    let mut lost = 0;
    pair.hook(move |packet| {
        let fin = packet.segment.dss.is_some_and(|dss| dss.data_fin);
        lost += u32::from(fin);
        if fin && lost <= 3 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.close(Side::Client);
    pair.close(Side::Server);
    assert!(pair.run_to_end(20 * SECOND));
    assert_eq!(
        pair.connection(Side::Client).ended(),
        Some(CloseReason::Finished)
    );
}

#[test]
fn a_data_fin_on_data_counts_one() {
    let mut script = accepted();
    let mut last = script.mapped(1, 0, 1000, 1);
    let dss = last.dss.as_mut().expect("DSS");
    dss.data_fin = true;
    dss.mapping.as_mut().expect("a mapping").len = 1001;
    last.payload = Payload {
        offset: 0,
        len: 1000,
    };
    script.inject(last);
    assert_eq!(data_acknowledged(&mut script), 1001);
    assert_eq!(script.read(5000), 1000);
    assert!(script.connection.at_end());
}

/// A slow path holds the head of a small window: the fast one repeats it, and the slow one's window is halved.
#[test]
fn a_full_window_is_freed_by_the_faster_path() {
    let run = |opportunistic: bool| {
        let size = 60_000;
        let buffer = Buffer::from([size; 3]);
        let mut config = Config {
            receive_buffer: buffer,
            autotuning: false,
            ..mptcp()
        };
        for name in ["opportunistic_retransmission", "penalisation"] {
            config
                .scheduler
                .parameters
                .insert(name.into(), opportunistic.into());
        }
        let links = vec![
            Link::limited(5 * MS, 5_000_000, 20 * MS),
            Link::limited(150 * MS, 20_000_000, 100 * MS),
        ];
        let mut pair = Pair::with(&config, &config, links, 1, 7);
        pair.write(Side::Client, 4_000_000);
        assert!(pair.run_until_that(100 * SECOND, |pair| pair.server.read == 4_000_000));
        let penalised = pair
            .client
            .happened(|kind| matches!(kind, EventKind::Penalised(1)));
        let again = pair
            .data(Side::Client)
            .filter(|packet| packet.purpose == Purpose::Reinjection)
            .count();
        (pair.now, penalised, again)
    };
    let (with, penalised, repeated) = run(true);
    let (without, never, none) = run(false);
    assert!(
        penalised > 0 && repeated > 0,
        "{penalised} {repeated}, {with} against {without}"
    );
    assert_eq!((never, none), (0, 0));
    assert!(
        3 * with < 2 * without,
        "{} ms with, {} ms without",
        with / MS,
        without / MS
    );
}

#[test]
fn an_unknown_option_is_ignored() {
    let mut script = accepted();
    let mut odd = script.mapped(1, 0, 1000, 1);
    odd.rare_mut().mptcp.push(MptcpOption::Unknown {
        subtype: 12,
        flags: 3,
        body: vec![1, 2, 3],
    });
    script.inject(odd);
    assert_eq!(data_acknowledged(&mut script), 1000);
}

/// RFC 8684 section 3.3.3: the DATA_FIN is acknowledged after all data, however long that takes.
#[test]
fn a_data_fin_waits_for_data_that_is_slow_to_come() {
    const PIECES: u64 = 40;
    let peer = Peer {
        mptcp: true,
        ..Peer::default()
    };
    let mut script = Script::connected(&mptcp(), peer, 10 * MS);
    script.write(PIECES * 100);
    script.close();
    for piece in 1..=PIECES {
        script.run_for(100 * SECOND);
        assert_eq!(script.connection.ended(), None, "after {piece} pieces");
        script.inject(script.data_ack(1 + 100 * piece, 100 * piece));
    }
    script.drain();
    script.run_for(SECOND);
    let sent = script.drain();
    let fin = |sent: &Sent| sent.segment.dss.is_some_and(|dss| dss.data_fin);
    script.run_for(200 * SECOND);
    assert!(sent.iter().any(fin) || script.drain().iter().any(fin));
}

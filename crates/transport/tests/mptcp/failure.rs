//! Failing paths, resets and abrupt ends (RFC 8684 sections 3.3.6, 3.5 and 3.6).
//!
//! | rule | test |
//! |---|---|
//! | data of a subflow that timed out goes to the others | `a_timeout_reinjects_on_the_other_path` |
//! | a path that comes back is used again | `a_path_that_recovers_carries_data_again` |
//! | one subflow's reset leaves the connection alone | `a_reset_subflow_hands_its_data_over`, `a_reset_subflow_gives_its_room_back`, `mp_tcprst_says_why` |
//! | the last subflow's end is the connection's, but see [`crate::last_subflow`] | `the_death_of_every_path_ends_the_connection`, `the_reset_of_the_only_subflow_ends_the_connection` |
//! | MP_FASTCLOSE by reset and by ACK | `abort_closes_every_subflow_with_the_peers_key`, `a_fastclose_with_a_wrong_key_closes_one_subflow`, `a_fastclose_on_an_ack_ends_the_connection` |
//! | the window must not depend on a dead path | `a_window_update_lost_on_a_dead_path_is_asked_for` |
//! | nor must the end of a side that only received | `a_receiver_ends_although_its_fastest_path_died` |

use polypath_transport::{Buffer, CloseReason, Config, EventKind, Limits, Mib, Profile, Purpose};
use polypath_wire::mptcp::MptcpOption;
use polypath_wire::tcp::Flags;

use crate::common::script::{Peer, Script};
use crate::common::{Fate, MS, Pair, SECOND, Side, mptcp, with_profile};
use crate::meshed;

#[test]
fn a_timeout_reinjects_on_the_other_path() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 40 * MS]);
    pair.write(Side::Client, 1_000_000);
    pair.run_for(30 * MS);
    pair.links[0].up = false;
    let died = pair.now;
    assert!(pair.run_until_that(died + 20 * SECOND, |pair| pair.server.read == 1_000_001));
    assert!(
        pair.client
            .happened(|kind| matches!(kind, EventKind::Reinjection { subflow: 0, .. }))
            > 0
    );
    assert!(pair.counter(Side::Client, Mib::MPTcpExtMPTCPRetrans) > 0);
    let reinjected: Vec<_> = pair
        .data(Side::Client)
        .filter(|packet| packet.purpose == Purpose::Reinjection)
        .collect();
    assert!(!reinjected.is_empty() && reinjected.iter().all(|packet| packet.path == 1));
    // Each lost byte was sent again once, not once a timeout.
    let bytes: u32 = reinjected
        .iter()
        .map(|packet| packet.segment.payload.len)
        .sum();
    let stranded: u32 = pair
        .data(Side::Client)
        .filter(|packet| {
            packet.path == 0 && packet.purpose == Purpose::Data && packet.at >= died - 30 * MS
        })
        .map(|packet| packet.segment.payload.len)
        .sum();
    assert!(
        bytes <= stranded,
        "{bytes} reinjected, {stranded} sent on the dead path"
    );
}

#[test]
fn a_path_that_recovers_carries_data_again() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 40 * MS]);
    pair.write(Side::Client, 30_000_000);
    pair.run_for(100 * MS);
    pair.links[0].up = false;
    pair.run_for(2 * SECOND);
    pair.links[0].up = true;
    pair.run_for(5 * SECOND);
    assert!(
        pair.client
            .happened(|kind| *kind == EventKind::Recovered(0))
            > 0
    );
    let recent = pair.now - SECOND;
    pair.write(Side::Client, 1_000_000);
    pair.run_for(SECOND);
    assert!(
        pair.data(Side::Client)
            .any(|packet| packet.path == 0 && packet.at > recent)
    );
    pair.run_for(60 * SECOND);
    pair.assert_whole(Side::Server, 31_000_001);
}

fn reset_of(pair: &Pair, path: usize, from: Side) -> polypath_transport::Segment {
    let last = pair
        .sent(from)
        .filter(|packet| packet.path == path)
        .last()
        .expect("the path was used")
        .segment
        .clone();
    polypath_transport::Segment {
        seq: last.seq.wrapping_add(last.seq_len()),
        ack: last.ack,
        flags: Flags::RST | Flags::ACK,
        ..Default::default()
    }
}

#[test]
fn a_reset_subflow_hands_its_data_over() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 40 * MS]);
    pair.write(Side::Client, 1_000_000);
    pair.run_for(15 * MS);
    let reset = reset_of(&pair, 0, Side::Server);
    pair.act(Side::Client, |connection, now| {
        connection.on_segment(0, &reset, Default::default(), now)
    });
    assert_eq!(pair.client.connection().ended(), None);
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 1_000_001);
    assert_eq!(
        pair.client
            .happened(|kind| *kind == EventKind::SubflowReset(0)),
        1
    );
}

/// What a subflow took in behind a hole goes with it, and the window has its room again.
#[test]
fn a_reset_subflow_gives_its_room_back() {
    let size = 40_000;
    let config = Config {
        receive_buffer: Buffer::from([size; 3]),
        autotuning: false,
        ..with_profile(Profile::MptcpOrg, mptcp())
    };
    let mut pair = meshed(&config, &[10 * MS, 10 * MS]);
    let window = |pair: &Pair| {
        let last = pair.sent(Side::Server).last();
        last.expect("an ACK").segment.window
    };
    let before = window(&pair);
    let mut hole = None;
    pair.hook(move |packet| {
        let second = packet.path == 1 && packet.from == Side::Client && packet.carries_data();
        if second && *hole.get_or_insert(packet.segment.seq) == packet.segment.seq {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.write(Side::Client, 30_000);
    pair.run_for(30 * MS);
    assert!(
        pair.server.connection().subflows()[1]
            .socket()
            .out_of_order_bytes()
            > 0
    );
    let mut reset = reset_of(&pair, 1, Side::Client);
    let acknowledged = pair.sent(Side::Server).filter(|packet| packet.path == 1);
    reset.seq = acknowledged.last().expect("an ACK").segment.ack;
    pair.act(Side::Server, |connection, now| {
        connection.on_segment(1, &reset, Default::default(), now)
    });
    assert_eq!(
        pair.server
            .happened(|kind| *kind == EventKind::SubflowReset(1)),
        1
    );
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 30_001);
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    // But for the byte that is not read yet.
    assert_eq!(window(&pair), before - 1);
}

#[test]
fn mp_tcprst_says_why() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    // Data without a mapping on one of two subflows is a middlebox's work (section 3.7).
    pair.hook(|packet| {
        if packet.path == 1 && packet.carries_data() {
            packet.segment.dss = None;
        }
        Fate::Pass
    });
    pair.write(Side::Client, 500_000);
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Server, 500_001);
    let reasons: Vec<_> = pair
        .sent(Side::Server)
        .filter(|packet| packet.segment.flags.contains(Flags::RST))
        .flat_map(|packet| packet.options())
        .collect();
    assert_eq!(
        reasons,
        [&MptcpOption::TcpRst {
            flags: 0,
            reason: 6
        }]
    );
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtMPRstRx), 1);
    assert_eq!(pair.established_subflows(), 1);
}

#[test]
fn the_death_of_every_path_ends_the_connection() {
    let config = Config {
        limits: Limits {
            retries: 5,
            ..Limits::default()
        },
        ..mptcp()
    };
    let mut pair = meshed(&config, &[10 * MS, 20 * MS]);
    pair.write(Side::Client, 1_000_000);
    pair.run_for(30 * MS);
    for link in &mut pair.links {
        link.up = false;
    }
    pair.run_for(100 * SECOND);
    assert_eq!(
        pair.client.connection().ended(),
        Some(CloseReason::TimedOut)
    );
    assert!(pair.client.connection().next_deadline() > pair.now);
}

#[test]
fn the_reset_of_the_only_subflow_ends_the_connection() {
    let mut pair = meshed(&mptcp(), &[10 * MS]);
    let reset = reset_of(&pair, 0, Side::Server);
    pair.act(Side::Client, |connection, now| {
        connection.on_segment(0, &reset, Default::default(), now)
    });
    assert_eq!(pair.client.connection().ended(), Some(CloseReason::Reset));
}

#[test]
fn abort_closes_every_subflow_with_the_peers_key() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    let server_key = pair
        .log
        .iter()
        .flat_map(|packet| packet.options())
        .find_map(|option| match option {
            MptcpOption::Capable(capable) => capable.receiver_key,
            _ => None,
        });
    let start = pair.now;
    pair.abort(Side::Client);
    pair.run_for(SECOND);
    let resets: Vec<_> = pair
        .log
        .iter()
        .filter(|packet| packet.at >= start && packet.from == Side::Client)
        .collect();
    assert_eq!(resets.len(), 2);
    for packet in resets {
        assert!(packet.segment.flags.contains(Flags::RST));
        assert_eq!(
            packet.options(),
            [MptcpOption::FastClose {
                receiver_key: server_key.expect("a key")
            }]
        );
    }
    assert_eq!(pair.client.connection().ended(), Some(CloseReason::Aborted));
    assert_eq!(pair.server.connection().ended(), Some(CloseReason::Reset));
    assert!(pair.counter(Side::Server, Mib::MPTcpExtMPFastcloseRx) > 0);
}

#[test]
fn a_fastclose_with_a_wrong_key_closes_one_subflow() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    let mut reset = reset_of(&pair, 1, Side::Server);
    reset
        .rare_mut()
        .mptcp
        .push(MptcpOption::FastClose { receiver_key: 1 });
    pair.act(Side::Client, |connection, now| {
        connection.on_segment(1, &reset, Default::default(), now)
    });
    assert_eq!(pair.client.connection().ended(), None);
    assert_eq!(pair.established_subflows(), 1);
}

#[test]
fn a_fastclose_on_an_ack_ends_the_connection() {
    let mut script = Script::accepted(
        &mptcp(),
        Peer {
            mptcp: true,
            ..Peer::default()
        },
        20 * MS,
    );
    script.drain();
    for (receiver_key, ended) in [(1, None), (script.key, Some(CloseReason::Reset))] {
        let mut close = script.ack(1);
        close
            .rare_mut()
            .mptcp
            .push(MptcpOption::FastClose { receiver_key });
        script.inject(close);
        assert_eq!(script.connection.ended(), ended);
    }
    let answer = script.drain().pop().expect("a reset");
    assert!(answer.segment.flags.contains(Flags::RST));
}

#[test]
fn a_window_update_lost_on_a_dead_path_is_asked_for() {
    let size = 20_000;
    let buffer = Buffer::from([size; 3]);
    let config = Config {
        receive_buffer: buffer,
        autotuning: false,
        ..mptcp()
    };
    let mut pair = meshed(&config, &[10 * MS, 20 * MS]);
    pair.server.reading = false;
    pair.write(Side::Client, 200_000);
    pair.run_for(15 * MS);
    pair.links[0].up = false;
    pair.run_for(10 * SECOND);
    assert!(pair.server.connection().available() > 15_000);
    let start = pair.now;
    pair.server.reading = true;
    assert!(
        pair.run_until_that(start + 100 * SECOND, |pair| pair.server.read == 200_001),
        "{}",
        pair.server.read
    );
}

#[test]
fn a_receiver_ends_although_its_fastest_path_died() {
    for profile in [Profile::Rfc, Profile::MptcpOrg, Profile::Linux] {
        let mut pair = meshed(&with_profile(profile, mptcp()), &[10 * MS, 40 * MS]);
        pair.write(Side::Client, 1_000_000);
        pair.close(Side::Client);
        pair.run_for(30 * MS);
        pair.links[0].up = false;
        let died = pair.now;
        assert!(pair.run_until_that(died + 20 * SECOND, |pair| pair.server.read == 1_000_001));
        let read = pair.now;
        pair.close(Side::Server);
        assert!(pair.run_until_that(read + 5 * SECOND, |pair| pair.client.connection().at_end()));
        // The stream is over on both sides: that the dead path swallows FINs is no reason to be open.
        assert!(pair.run_to_end(read + 10 * SECOND), "{profile:?}");
        for side in [Side::Client, Side::Server] {
            assert_eq!(pair.connection(side).ended(), Some(CloseReason::Finished));
        }
    }
}

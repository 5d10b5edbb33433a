//! Middleboxes (RFC 8684 section 3.7): wherever options disappear or payload changes, the stream goes on or ends by the rules.
//!
//! | what happens | test |
//! |---|---|
//! | options stripped from SYN, SYN/ACK, third ACK and data, from one side or both | `the_stream_survives_stripping_from_any_step` |
//! | options stripped once the connection works, one subflow | `stripping_later_ends_the_connection`, `stripping_later_falls_back_in_linux`, `bare_acknowledgements_later_free_the_send_buffer` |
//! | the same with several subflows | `stripping_one_of_several_subflows_resets_it` |
//! | payload altered, one subflow | `an_altered_payload_on_the_only_subflow_falls_back`, `mp_fail_is_answered`, `mp_fail_leaves_less_room_to_sack` |
//! | payload altered, several subflows | `an_altered_payload_on_one_of_several_subflows_closes_it` |
//! | the same where some of the stream was sent twice | `what_was_sent_twice_is_no_stream_of_plain_tcp` |
//! | after a fallback | `no_subflow_joins_after_a_fallback`, `a_data_fin_is_not_repeated_after_a_fallback`, `a_mapping_that_contradicts_the_fallback_ends_the_connection` |

use polypath_transport::{CloseReason, Config, EventKind, Mib, Profile};
use polypath_wire::mptcp::MptcpOption;
use polypath_wire::tcp::Flags;

use crate::common::pair::Packet;
use crate::common::script::{PEER_KEY, Peer, Script, Sent, initial_dsn};
use crate::common::{self, Fate, MS, Pair, SECOND, Side, mptcp};
use crate::meshed;

fn strip(packet: &mut Packet) {
    packet.segment.dss = None;
    if let Some(rare) = &mut packet.segment.rare {
        rare.mptcp.clear();
    }
}

fn both_ways(pair: &mut Pair, bytes: u64) {
    let (up, down) = (pair.server.read, pair.client.read);
    pair.write(Side::Client, bytes);
    pair.run_for(SECOND);
    pair.write(Side::Server, bytes);
    pair.run_for(30 * SECOND);
    pair.assert_whole(Side::Server, up + bytes);
    pair.assert_whole(Side::Client, down + bytes);
    assert_eq!(pair.client.connection().send_queue(), (0, 0));
    assert_eq!(pair.server.connection().send_queue(), (0, 0));
}

#[test]
fn the_stream_survives_stripping_from_any_step() {
    type Where = fn(&Packet) -> bool;
    let places: [(&str, Where); 6] = [
        ("SYN", |packet| packet.is(Side::Client, Flags::SYN)),
        ("SYN/ACK", |packet| packet.is(Side::Server, Flags::SYN)),
        ("third ACK and later", |packet| {
            packet.from == Side::Client && !packet.segment.flags.contains(Flags::SYN)
        }),
        ("everything of the server but its SYN/ACK", |packet| {
            packet.from == Side::Server && !packet.segment.flags.contains(Flags::SYN)
        }),
        ("everything but SYNs", |packet| {
            !packet.segment.flags.contains(Flags::SYN)
        }),
        ("everything", |_| true),
    ];
    for (name, place) in places {
        println!("{name}");
        let mut pair = Pair::new(&mptcp(), &[10 * MS, 20 * MS]);
        pair.hook(move |packet| {
            if place(packet) {
                strip(packet);
            }
            Fate::Pass
        });
        both_ways(&mut pair, 100_000);
        for side in [Side::Client, Side::Server] {
            assert!(!pair.connection(side).multipath(), "{name}: {side:?}");
        }
        pair.close(Side::Client);
        pair.close(Side::Server);
        let now = pair.now;
        assert!(pair.run_to_end(now + 10 * SECOND), "{name}");
    }
}

fn as_linux() -> Config {
    Config {
        profile: Profile::Linux,
        ..mptcp()
    }
}

/// RFC 8684 section 3.7: a subflow on which options cease to pass is broken.
#[test]
fn stripping_later_ends_the_connection() {
    let mut pair = meshed(&mptcp(), &[10 * MS]);
    both_ways(&mut pair, 50_000);
    pair.hook(|packet| {
        strip(packet);
        Fate::Pass
    });
    pair.write(Side::Client, 100_000);
    pair.run_for(SECOND);
    for side in [Side::Client, Side::Server] {
        assert_eq!(
            pair.connection(side).ended(),
            Some(CloseReason::Reset),
            "{side:?}"
        );
        assert_eq!(pair.counter(side, Mib::PayloadMismatch), 0);
    }
}

/// Sequence numbers of a single subflow and of the stream run in parallel, so that both sides can go on without options.
#[test]
fn stripping_later_falls_back_in_linux() {
    for both in [false, true] {
        let mut pair = meshed(&as_linux(), &[10 * MS]);
        both_ways(&mut pair, 50_000);
        pair.hook(move |packet| {
            if both || packet.from == Side::Client {
                strip(packet);
            }
            Fate::Pass
        });
        both_ways(&mut pair, 100_000);
        pair.close(Side::Client);
        pair.close(Side::Server);
        let now = pair.now;
        assert!(pair.run_to_end(now + 100 * SECOND));
    }
}

#[test]
fn stripping_one_of_several_subflows_resets_it() {
    let mut pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    pair.hook(|packet| {
        if packet.path == 1 {
            strip(packet);
        }
        Fate::Pass
    });
    both_ways(&mut pair, 300_000);
    assert!(pair.client.connection().multipath() && pair.server.connection().multipath());
    assert_eq!(pair.established_subflows(), 1);
}

/// Only one direction carries data, more than any buffer holds: the sender learns of the fallback from bare ACKs alone.
#[test]
fn bare_acknowledgements_later_free_the_send_buffer() {
    for from in [Side::Client, Side::Server] {
        let mut pair = meshed(&as_linux(), &[10 * MS]);
        pair.hook(move |packet| {
            if packet.from == from {
                strip(packet);
            }
            Fate::Pass
        });
        let before = pair.end(from.other()).read;
        pair.write(from, 20_000_000);
        pair.run_for(60 * SECOND);
        pair.assert_whole(from.other(), before + 20_000_000);
        assert!(!pair.connection(from).multipath());
    }
}

/// RFC 8684 section 3.7 is about acknowledgements of data. A challenge ACK of a server that waited for the third ACK has no options, acknowledges
/// the SYN alone, and may be late.
#[test]
fn a_late_acknowledgement_of_the_syn_alone_breaks_no_path() {
    for of_data in [false, true] {
        let mut pair = meshed(&mptcp(), &[10 * MS, 10 * MS]);
        let ours = |packet: &&Packet| packet.from == Side::Client && packet.subflow == 0;
        let syn = pair.log.iter().find(ours).expect("a SYN").segment.seq;
        let last = |packet: &&Packet| packet.from == Side::Server && packet.subflow == 0;
        let mut bare = pair.log.iter().rfind(last).expect("an ACK").clone();
        strip(&mut bare);
        if !of_data {
            bare.segment.ack = syn.wrapping_add(1);
        }
        pair.inject(Side::Client, common::first_tuple(), bare.segment);
        pair.run_for(100 * MS);
        let left = if of_data { 1 } else { 2 };
        assert_eq!(pair.established_subflows(), left);
        both_ways(&mut pair, 10_000);
    }
}

/// Changes the payload of one segment: to the endpoints, bytes of another offset.
fn alter_one(pair: &mut Pair, path: usize) {
    let mut done = false;
    pair.hook(move |packet| {
        if !done
            && packet.path == path
            && packet.from == Side::Client
            && packet.carries_data()
            && packet.segment.dss.is_some()
        {
            done = true;
            packet.segment.payload.offset += 1;
        }
        Fate::Pass
    });
}

fn with_checksums() -> Config {
    Config {
        checksum: true,
        ..mptcp()
    }
}

#[test]
fn an_altered_payload_on_the_only_subflow_falls_back() {
    let mut pair = meshed(&with_checksums(), &[10 * MS]);
    alter_one(&mut pair, 0);
    pair.write(Side::Client, 100_000);
    pair.run_for(20 * SECOND);
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtDataCsumErr), 1);
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtMPFailTx), 1);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtMPFailRx), 1);
    let failed = pair
        .sent(Side::Server)
        .flat_map(|packet| packet.options())
        .any(|option| matches!(option, MptcpOption::Fail { .. }));
    assert!(failed);
    assert_eq!(pair.server.read, 100_001);
    for side in [Side::Client, Side::Server] {
        assert!(!pair.connection(side).multipath());
        assert_eq!(
            pair.end(side)
                .happened(|kind| matches!(kind, EventKind::Fallback(_))),
            1
        );
    }
    pair.hook(|_| Fate::Pass);
    both_ways(&mut pair, 100_000);
}

/// Once the stream and the subflow's numbers do not run in parallel, an only subflow is reset (RFC 8684 section 3.7: "if all unacknowledged
/// data in flight is contiguous"; Linux `allow_infinite_fallback`).
#[test]
fn what_was_sent_twice_is_no_stream_of_plain_tcp() {
    let peer = Peer {
        mptcp: true,
        ..Peer::default()
    };
    let repeated = |profile| {
        let config = Config {
            profile,
            ..with_checksums()
        };
        let mut script = Script::connected(&config, peer, 10 * MS);
        script.write(100);
        script.expect_data(1, 100);
        script.inject(script.data_ack(101, 0));
        script.run_for(SECOND);
        let again = script
            .drain()
            .iter()
            .any(|sent| sent.segment.payload.len > 0 && script.relative(&sent.segment) == 101);
        assert!(again, "{profile:?}");
        script
    };
    for profile in [Profile::Rfc, Profile::Linux, Profile::MptcpOrg] {
        type Trouble = fn(&mut Script);
        let troubles: [Trouble; 4] = [
            |script| {
                let mut failed = script.data_ack(201, 100);
                failed.rare_mut().mptcp.push(MptcpOption::Fail { dsn: 1 });
                script.inject(failed);
            },
            |script| {
                let mut altered = script.mapped(1, 0, 100, 201);
                altered.payload.offset += 1;
                script.inject(altered);
            },
            |script| script.inject(script.ack(201)),
            |script| script.inject(script.data(1, 100, 201)),
        ];
        for (nth, trouble) in troubles.into_iter().enumerate() {
            let mut script = repeated(profile);
            trouble(&mut script);
            // Linux `mptcp_pm_mp_fail_received` leaves MP_FAIL alone that it cannot answer by falling back.
            let resets = profile != Profile::Linux || nth > 0;
            assert_eq!(
                script.happened(|kind| matches!(kind, EventKind::SubflowReset(0))),
                resets,
                "{profile:?}, trouble {nth}"
            );
            assert!(!script.happened(|kind| matches!(kind, EventKind::Fallback(_))));
            assert_eq!(script.counter(Mib::PayloadMismatch), 0);
        }
    }
}

#[test]
fn an_altered_payload_on_one_of_several_subflows_closes_it() {
    let mut pair = meshed(&with_checksums(), &[10 * MS, 20 * MS]);
    alter_one(&mut pair, 1);
    both_ways(&mut pair, 300_000);
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtDataCsumErr), 1);
    assert_eq!(pair.established_subflows(), 1);
    assert!(pair.client.connection().multipath());
    let reset = pair
        .sent(Side::Server)
        .find(|packet| packet.segment.flags.contains(Flags::RST))
        .expect("a reset");
    assert!(matches!(reset.options(), [MptcpOption::Fail { .. }]));
}

#[test]
fn no_subflow_joins_after_a_fallback() {
    let mut pair = Pair::new(&mptcp(), &[10 * MS, 20 * MS]);
    pair.hook(|packet| {
        if packet.is(Side::Server, Flags::SYN) {
            strip(packet);
        }
        Fate::Pass
    });
    both_ways(&mut pair, 50_000);
    assert_eq!(pair.client.connection().subflows().len(), 1);
    assert!(!pair.server.connection().accepts_joins());
    assert_eq!(
        pair.counter(Side::Client, Mib::MPTcpExtMPCapableFallbackSYNACK),
        1
    );
}

/// Options pass from client to server only: the client falls back on bare ACKs and tells the server, which still sees options.
#[test]
fn a_fallback_is_told_by_an_infinite_mapping() {
    let mut pair = Pair::new(&mptcp(), &[10 * MS]);
    pair.hook(|packet| {
        if packet.from == Side::Server && !packet.segment.flags.contains(Flags::SYN) {
            strip(packet);
        }
        Fate::Pass
    });
    both_ways(&mut pair, 100_000);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtInfiniteMapTx), 1);
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtInfiniteMapRx), 1);
}

/// Data that a peer maps elsewhere than where the subflow's numbers put it is not delivered: the peer has not fallen back, and sent the
/// bytes of that place on another subflow or earlier.
#[test]
fn a_mapping_that_contradicts_the_fallback_ends_the_connection() {
    let peer = Peer {
        mptcp: true,
        ..Peer::default()
    };
    for (offset, kept) in [(2_000, true), (500, false)] {
        let mut script = Script::accepted(&as_linux(), peer, 10 * MS);
        script.inject(script.mapped(1, 0, 1_000, 1));
        script.inject(script.data(1_001, 1_000, 1));
        assert!(!script.connection.multipath());
        script.inject(script.mapped(2_001, offset, 1_000, 1));
        let ended = (!kept).then_some(CloseReason::Reset);
        assert_eq!(script.connection.ended(), ended, "{offset}");
        assert_eq!(script.counter(Mib::PayloadMismatch), 0);
    }
}

/// RFC 8684 section 3.7: the receiver of an MP_FAIL answers with one in the reverse direction.
#[test]
fn mp_fail_is_answered() {
    let peer = Peer {
        mptcp: true,
        ..Peer::default()
    };
    for profile in [Profile::Rfc, Profile::Linux, Profile::MptcpOrg] {
        let config = Config {
            profile,
            ..with_checksums()
        };
        let mut script = Script::connected(&config, peer, 10 * MS);
        script.write(100);
        script.expect_data(1, 100);
        script.inject(script.mapped(1, 0, 70, 101));
        script.drain();
        let mut failed = script.data_ack_at(71, 101, 0);
        failed.rare_mut().mptcp.push(MptcpOption::Fail { dsn: 1 });
        script.inject(failed);
        let sent = script.drain();
        let mut options = sent.iter().flat_map(|sent| sent.segment.mptcp());
        let expected = initial_dsn(PEER_KEY).wrapping_add(71);
        assert!(
            options.any(|option| *option == MptcpOption::Fail { dsn: expected }),
            "{profile:?}: {sent:?}"
        );
        assert!(!script.connection.multipath());
        assert_eq!(script.counter(Mib::MPTcpExtMPFailTx), 1);
    }
}

/// Whatever an acknowledgement has to tell beside it, MP_FAIL fits.
#[test]
fn mp_fail_leaves_less_room_to_sack() {
    for timestamps in [false, true] {
        let peer = Peer {
            mptcp: true,
            timestamps,
            ..Peer::default()
        };
        let mut script = Script::accepted(&with_checksums(), peer, 10 * MS);
        script.inject(script.mapped(1, 0, 100, 1));
        for hole in [300, 500, 700, 900] {
            script.inject(script.mapped(1 + hole, hole, 100, 1));
        }
        script.drain();
        let mut altered = script.mapped(1_101, 1_100, 100, 1);
        altered.payload.offset += 1;
        script.inject(altered);
        let sent = script.drain();
        let failed = |sent: &&Sent| {
            let mut options = sent.segment.mptcp().iter();
            options.any(|option| matches!(option, MptcpOption::Fail { .. }))
        };
        let failed = sent.iter().find(failed).expect("an MP_FAIL");
        assert!(
            polypath_wire::tcp::options_len(&failed.segment) <= 40,
            "{failed:?}"
        );
        assert_eq!(failed.segment.sack.is_empty(), timestamps);
    }
}

/// The timer of a DATA_FIN ends with the fallback: the FIN has its own.
#[test]
fn a_data_fin_is_not_repeated_after_a_fallback() {
    let peer = Peer {
        mptcp: true,
        ..Peer::default()
    };
    let mut script = Script::connected(&mptcp(), peer, 10 * MS);
    script.write(100);
    script.close();
    script.drain();
    script.inject(script.ack(101));
    assert!(!script.connection.multipath());
    script.run_for(5 * SECOND);
    for sent in script.drain() {
        assert!(sent.segment.flags.contains(Flags::FIN), "{sent:?}");
    }
}

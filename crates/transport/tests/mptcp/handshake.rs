//! Handshakes (RFC 8684 sections 3.1 and 3.2).
//!
//! | rule | test |
//! |---|---|
//! | MP_CAPABLE carries no key, the server's, both | `mp_capable_carries_the_keys_step_by_step` |
//! | token and IDSN follow from the key | `token_and_idsn_are_hashes_of_the_key` |
//! | the first data repeats the keys and says its length | `the_first_data_carries_mp_capable` |
//! | losses leave MPTCP alone | `the_handshake_survives_any_single_loss`, `a_repeated_syn_does_not_end_mptcp` |
//! | MP_JOIN | `mp_join_authenticates_both_sides`, `losses_in_the_join_are_repaired` |
//! | refusals | `a_wrong_hmac_on_the_syn_ack_resets`, `a_wrong_hmac_on_the_third_ack_resets`, `an_unknown_token_is_refused`, `a_join_without_its_option_is_given_up` |
//! | flags | `the_backup_flag_marks_both_ends`, `flag_c_forbids_joins_to_the_first_address`, `flag_a_of_either_side_turns_checksums_on` |

use polypath_transport::{Config, Mib, Profile};
use polypath_wire::mptcp::{DataAck, Dsn, MpJoin, MptcpOption};
use polypath_wire::tcp::Flags;

use crate::common::pair::Packet;
use crate::common::script::{self, Peer, Script, hmac};
use crate::common::{Fate, MS, Pair, SECOND, Side, mptcp, with_profile};
use crate::meshed;

fn capable(packet: &Packet) -> Option<polypath_wire::mptcp::MpCapable> {
    packet.options().iter().find_map(|option| match option {
        MptcpOption::Capable(capable) => Some(*capable),
        _ => None,
    })
}

fn join(packet: &Packet) -> Option<MpJoin> {
    packet.options().iter().find_map(|option| match option {
        MptcpOption::Join(join) => Some(*join),
        _ => None,
    })
}

/// The keys of the client and the server as seen on the wire.
fn keys(pair: &Pair) -> (u64, u64) {
    let third = pair
        .log
        .iter()
        .filter_map(capable)
        .find_map(|c| c.sender_key.zip(c.receiver_key));
    third.expect("a third ACK with both keys")
}

#[test]
fn mp_capable_carries_the_keys_step_by_step() {
    let mut pair = Pair::new(&mptcp(), &[10 * MS]);
    pair.run_for(SECOND);
    let steps: Vec<_> = pair
        .log
        .iter()
        .take(3)
        .map(|packet| capable(packet).expect("MP_CAPABLE"))
        .collect();
    for step in &steps {
        assert_eq!(step.version, 1);
        assert!(step.hmac_sha256 && !step.checksum_required && !step.deny_join_initial);
        assert_eq!(step.data, None);
    }
    assert_eq!((steps[0].sender_key, steps[0].receiver_key), (None, None));
    let server_key = steps[1].sender_key.expect("the server's key");
    assert_eq!(steps[1].receiver_key, None);
    assert_eq!(steps[2].receiver_key, Some(server_key));
    assert_ne!(steps[2].sender_key, Some(server_key));
}

#[test]
fn token_and_idsn_are_hashes_of_the_key() {
    for (profile, long) in [(Profile::Rfc, false), (Profile::Linux, true)] {
        let mut pair = Pair::new(&with_profile(profile, mptcp()), &[10 * MS]);
        pair.run_for(100 * MS);
        pair.write(Side::Server, 100);
        pair.run_for(SECOND);
        let (client_key, server_key) = keys(&pair);
        assert_eq!(
            pair.client.connection().token(),
            Some(script::token(client_key))
        );
        assert_eq!(
            pair.server.connection().token(),
            Some(script::token(server_key))
        );
        let first = script::initial_dsn(server_key).wrapping_add(1);
        let dss = pair
            .data(Side::Server)
            .next()
            .expect("data")
            .segment
            .dss
            .expect("DSS");
        let mapping = dss.mapping.expect("a mapping");
        let acknowledged = pair
            .sent(Side::Client)
            .last()
            .expect("an ACK")
            .segment
            .dss
            .expect("DSS")
            .data_ack;
        if long {
            assert_eq!(mapping.dsn, Dsn::Long(first.into()));
            assert_eq!(
                acknowledged,
                Some(DataAck::Long(first.wrapping_add(100).into()))
            );
        } else {
            assert_eq!(mapping.dsn, Dsn::Short(first as u32));
            assert_eq!(
                acknowledged,
                Some(DataAck::Short((first as u32).wrapping_add(100)))
            );
        }
        assert_eq!((mapping.subflow_seq, mapping.len), (1, 100));
    }
}

#[test]
fn the_first_data_carries_mp_capable() {
    let mut pair = Pair::new(&mptcp(), &[10 * MS]);
    pair.write(Side::Client, 5_000);
    pair.run_for(SECOND);
    let data: Vec<_> = pair.data(Side::Client).collect();
    let first = capable(data[0]).expect("MP_CAPABLE on the first data");
    assert!(first.sender_key.is_some() && first.receiver_key.is_some());
    assert_eq!(first.data, Some((data[0].segment.payload.len as u16, None)));
    assert_eq!(data[0].segment.dss, None);
    assert!(
        data[1..]
            .iter()
            .all(|packet| capable(packet).is_none() && packet.segment.dss.is_some())
    );
    pair.assert_whole(Side::Server, 5_000);
    assert!(pair.client.connection().multipath() && pair.server.connection().multipath());
}

#[test]
fn the_handshake_survives_any_single_loss() {
    for lost in 0..8 {
        let mut pair = Pair::new(&mptcp(), &[10 * MS, 15 * MS]);
        let mut count = 0;
        pair.hook(move |_| {
            count += 1;
            if count == lost + 1 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.write(Side::Client, 20_000);
        pair.run_for(5 * SECOND);
        pair.assert_whole(Side::Server, 20_000);
        assert!(pair.server.connection().multipath(), "packet {lost} lost");
        assert!(pair.client.connection().multipath(), "packet {lost} lost");
        assert_eq!(pair.established_subflows(), 2, "packet {lost} lost");
    }
}

/// Linux `mptcp_connect`, `__mptcp_subflow_connect`
#[test]
fn a_repeated_syn_counts_as_one_attempt() {
    let mut pair = Pair::new(&mptcp(), &[800 * MS, 800 * MS]);
    pair.write(Side::Client, 1);
    pair.run_for(20 * SECOND);
    let syns = |path: usize| {
        let of = pair.sent(Side::Client);
        of.filter(|packet| packet.path == path && packet.segment.flags.contains(Flags::SYN))
            .count()
    };
    assert!(syns(0) > 1 && syns(1) > 1);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtMPCapableSYNTX), 1);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtMPJoinSynTx), 1);
}

/// A SYN that comes twice is not a third ACK without MP_CAPABLE.
#[test]
fn a_repeated_syn_does_not_end_mptcp() {
    let mut pair = Pair::new(&mptcp(), &[800 * MS]);
    pair.transfer(20_000, 60 * SECOND);
    assert!(
        pair.sent(Side::Client)
            .filter(|packet| packet.segment.flags.contains(Flags::SYN))
            .count()
            > 1
    );
    assert!(pair.server.connection().multipath());
    assert_eq!(
        pair.counter(Side::Server, Mib::MPTcpExtMPCapableFallbackACK),
        0
    );
}

#[test]
fn mp_join_authenticates_both_sides() {
    let pair = meshed(&mptcp(), &[10 * MS, 20 * MS]);
    let (client_key, server_key) = keys(&pair);
    let steps: Vec<_> = pair
        .log
        .iter()
        .filter_map(|packet| join(packet).map(|join| (packet, join)))
        .collect();
    let MpJoin::Syn {
        token,
        nonce: client_nonce,
        address_id,
        backup,
    } = steps[0].1
    else {
        panic!("{:?}", steps[0].1)
    };
    assert_eq!(token, script::token(server_key));
    assert_ne!(address_id, 0);
    assert!(!backup);
    assert_eq!(steps[0].0.segment.flags, Flags::SYN);
    let MpJoin::SynAck {
        hmac: server_hmac,
        nonce: server_nonce,
        ..
    } = steps[1].1
    else {
        panic!("{:?}", steps[1].1)
    };
    let by_server = hmac(
        &[server_key.to_be_bytes(), client_key.to_be_bytes()].concat(),
        &[server_nonce.to_be_bytes(), client_nonce.to_be_bytes()].concat(),
    );
    assert_eq!(server_hmac.to_be_bytes(), by_server[..8]);
    let MpJoin::Ack { hmac: client_hmac } = steps[2].1 else {
        panic!("{:?}", steps[2].1)
    };
    let by_client = hmac(
        &[client_key.to_be_bytes(), server_key.to_be_bytes()].concat(),
        &[client_nonce.to_be_bytes(), server_nonce.to_be_bytes()].concat(),
    );
    assert_eq!(client_hmac, by_client[..20]);
    // The fourth ACK, after which the client may send.
    let fourth = pair.log.iter().find(|packet| {
        packet.path == 1
            && packet.from == Side::Server
            && !packet.segment.flags.contains(Flags::SYN)
    });
    assert_eq!(fourth.expect("a fourth ACK").segment.flags, Flags::ACK);
}

#[test]
fn losses_in_the_join_are_repaired() {
    for lost in 0..4 {
        let mut pair = Pair::new(&mptcp(), &[10 * MS, 20 * MS]);
        let mut count = 0;
        pair.hook(move |packet| {
            count += u32::from(packet.path == 1);
            if packet.path == 1 && count == lost + 1 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.write(Side::Client, 1);
        pair.run_for(5 * SECOND);
        assert_eq!(pair.established_subflows(), 2, "packet {lost} lost");
        assert!(
            pair.server.connection().paths()[1].established,
            "packet {lost} lost"
        );
        pair.write(Side::Client, 200_000);
        pair.run_for(20 * SECOND);
        pair.assert_whole(Side::Server, 200_001);
    }
}

/// Runs with a hook that edits MP_JOIN, and returns the pair after 30 s in which the first subflow worked.
fn with_edited_join(mut edit: impl FnMut(Side, &mut MpJoin) + 'static) -> Pair {
    let mut pair = Pair::new(&mptcp(), &[10 * MS, 20 * MS]);
    pair.hook(move |packet| {
        let from = packet.from;
        if let Some(rare) = &mut packet.segment.rare {
            for option in &mut rare.mptcp {
                if let MptcpOption::Join(join) = option {
                    edit(from, join);
                }
            }
        }
        Fate::Pass
    });
    pair.write(Side::Client, 1);
    pair.run_for(2 * SECOND);
    pair.write(Side::Client, 100_000);
    pair.run_for(300 * SECOND);
    assert_eq!(pair.server.read, 100_001);
    assert_eq!(pair.established_subflows(), 1);
    assert!(pair.client.connection().multipath());
    pair
}

fn resets(pair: &Pair, from: Side) -> Vec<u8> {
    pair.sent(from)
        .filter(|packet| packet.path == 1 && packet.segment.flags.contains(Flags::RST))
        .flat_map(|packet| packet.options().to_vec())
        .filter_map(|option| match option {
            MptcpOption::TcpRst { reason, .. } => Some(reason),
            _ => None,
        })
        .collect()
}

#[test]
fn a_wrong_hmac_on_the_syn_ack_resets() {
    let pair = with_edited_join(|_, join| {
        if let MpJoin::SynAck { hmac, .. } = join {
            *hmac ^= 1;
        }
    });
    assert_eq!(resets(&pair, Side::Client), [1]);
    assert_eq!(
        pair.counter(Side::Client, Mib::MPTcpExtMPJoinSynAckHMacFailure),
        1
    );
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtMPJoinSynAckRx), 0);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtMPRstTx), 1);
}

#[test]
fn a_wrong_hmac_on_the_third_ack_resets() {
    let pair = with_edited_join(|_, join| {
        if let MpJoin::Ack { hmac } = join {
            hmac[19] ^= 1;
        }
    });
    assert_eq!(resets(&pair, Side::Server), [1]);
    assert_eq!(
        pair.counter(Side::Server, Mib::MPTcpExtMPJoinAckHMacFailure),
        1
    );
    assert_eq!(pair.counter(Side::Server, Mib::MPTcpExtMPJoinAckRx), 0);
    assert_eq!(pair.counter(Side::Client, Mib::MPTcpExtMPRstRx), 1);
}

#[test]
fn an_unknown_token_is_refused() {
    let pair = with_edited_join(|_, join| {
        if let MpJoin::Syn { token, .. } = join {
            *token ^= 1;
        }
    });
    assert!(pair.client.connection().subflows()[1].closed_at.is_some());
}

#[test]
fn a_join_without_its_option_is_given_up() {
    for from in [Side::Client, Side::Server] {
        let mut pair = Pair::new(&mptcp(), &[10 * MS, 20 * MS]);
        pair.hook(move |packet| {
            let answered =
                packet.from == Side::Server || !packet.segment.flags.contains(Flags::SYN);
            if packet.path == 1
                && packet.from == from
                && answered
                && let Some(rare) = &mut packet.segment.rare
            {
                rare.mptcp.clear();
            }
            Fate::Pass
        });
        pair.write(Side::Client, 1);
        pair.run_for(SECOND);
        // Whoever misses the option resets.
        assert_eq!(resets(&pair, from.other()), [1], "{from:?}");
        pair.write(Side::Client, 100_000);
        pair.run_for(SECOND);
        assert_eq!(pair.server.read, 100_001);
        for side in [Side::Client, Side::Server] {
            let connection = pair.connection(side);
            assert_eq!(
                connection.subflows()[1].socket().state().name(),
                "closed",
                "{side:?}"
            );
            assert!(connection.multipath());
        }
    }
}

#[test]
fn the_backup_flag_marks_both_ends() {
    let mut pair = Pair::new(&mptcp(), &[10 * MS, 20 * MS]);
    pair.hook(|packet| {
        if let Some(rare) = &mut packet.segment.rare
            && let Some(MptcpOption::Join(MpJoin::Syn { backup, .. })) = rare.mptcp.first_mut()
        {
            *backup = true;
        }
        Fate::Pass
    });
    pair.write(Side::Client, 1);
    pair.run_for(SECOND);
    assert!(pair.server.connection().paths()[1].backup);
    assert_eq!(
        pair.counter(Side::Server, Mib::MPTcpExtMPJoinSynBackupRx),
        1
    );
    pair.write(Side::Server, 500_000);
    pair.run_for(20 * SECOND);
    pair.assert_whole(Side::Client, 500_000);
    assert!(pair.data(Side::Server).all(|packet| packet.path == 0));
}

#[test]
fn flag_c_forbids_joins_to_the_first_address() {
    let mut pair = Pair::new(&mptcp(), &[10 * MS, 20 * MS]);
    pair.hook(|packet| {
        if let Some(rare) = &mut packet.segment.rare
            && let Some(MptcpOption::Capable(capable)) = rare.mptcp.first_mut()
        {
            capable.deny_join_initial = true;
        }
        Fate::Pass
    });
    pair.write(Side::Client, 10_000);
    pair.run_for(2 * SECOND);
    assert_eq!(pair.server.read, 10_000);
    assert_eq!(pair.client.connection().subflows().len(), 1);
}

#[test]
fn flag_a_of_either_side_turns_checksums_on() {
    let with = Config {
        checksum: true,
        ..mptcp()
    };
    for (client, server) in [(&with, &mptcp()), (&mptcp(), &with), (&with, &with)] {
        let links = vec![crate::common::Link::new(10 * MS)];
        let mut pair = Pair::with(client, server, links, 1, 3);
        pair.write(Side::Client, 10_000);
        pair.run_for(SECOND);
        pair.write(Side::Server, 10_000);
        pair.run_for(SECOND);
        for side in [Side::Client, Side::Server] {
            for packet in pair.data(side) {
                let given = match capable(packet) {
                    Some(capable) => capable.data.expect("a length").1,
                    None => {
                        packet
                            .segment
                            .dss
                            .and_then(|dss| dss.mapping)
                            .expect("a mapping")
                            .checksum
                    }
                };
                assert!(given.is_some(), "{side:?}");
            }
        }
    }
}

/// RFC 8684 section 3.1: a version that the host does not speak, or no MP_CAPABLE, means TCP.
#[test]
fn without_mp_capable_the_answer_is_plain() {
    let mut script = Script::server(&mptcp(), Peer::default());
    let answer = script.expect().segment;
    assert!(answer.mptcp().is_empty());
    assert!(!script.connection.multipath());
}

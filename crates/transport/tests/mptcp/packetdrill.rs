//! The rules in upstream's packetdrill scripts for MPTCP (gtests/net/mptcp of multipath-tcp/packetdrill), profile
//! `linux`.
//!
//! | scripts | tests |
//! |---|---|
//! | mp_capable: version and flag H of SYN, SYN/ACK, third ACK | `an_offer_of_*`, `an_answer_of_*`, `a_third_ack_of_*` |
//! | dss: DATA_FIN before the FIN, length of data ACKs | `after_the_peers_fin_the_data_fin_comes_first`, `data_acks_are_as_long_as_the_numbers_that_they_answer` |
//! | mp_fastclose, mp_reset | `a_fast_close_*`, `a_reset_outside_the_window_draws_a_challenge` |
//! | add_addr, mp_prio | `an_address_*`, `a_priority_rides_on_data` |

use polypath_transport::{CloseReason, Config, Profile};
use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MptcpOption};
use polypath_wire::tcp::{Flags, Payload, Segment, options_len};

use crate::common::script::{PEER_KEY, Peer, Script, Sent, capable, hmac, initial_dsn};
use crate::common::{MS, SECOND, mptcp, server_address, with_profile};

const RTT: u64 = 10 * MS;

fn peer() -> Peer {
    Peer {
        mptcp: true,
        ..Peer::default()
    }
}

fn config() -> Config {
    with_profile(Profile::Linux, mptcp())
}

fn speaks_mptcp(segment: &Segment) -> bool {
    !segment.mptcp().is_empty() || segment.dss.is_some()
}

fn set_capable(segment: &mut Segment, version: u8, hmac_sha256: bool) {
    for option in &mut segment.rare_mut().mptcp {
        if let MptcpOption::Capable(capable) = option {
            (capable.version, capable.hmac_sha256) = (version, hmac_sha256);
        }
    }
}

/// A server that answers an offer of this version and flag H.
fn offered(version: u8, hmac_sha256: bool) -> Script {
    let mut syn = Script::syn(&peer(), Flags::SYN, 1);
    set_capable(&mut syn, version, hmac_sha256);
    Script::answering(&config(), peer(), &syn)
}

#[test]
fn an_offer_of_version_0_or_without_flag_h_is_answered_by_tcp() {
    for (version, flag) in [(0, true), (1, false)] {
        let answer = offered(version, flag).expect();
        assert!(!speaks_mptcp(&answer.segment), "{:?}", answer.segment);
    }
}

#[test]
fn an_offer_of_a_later_version_is_answered_by_version_1() {
    let answer = offered(2, true).expect();
    let option = answer.segment.mptcp().first();
    assert!(
        matches!(option, Some(MptcpOption::Capable(capable)) if capable.version == 1),
        "{option:?}"
    );
}

#[test]
fn an_answer_of_version_0_or_without_flag_h_falls_back() {
    for (version, flag) in [(0, true), (1, false)] {
        let mut script = Script::client(&config(), peer());
        assert!(speaks_mptcp(&script.expect().segment));
        script.run_until(RTT);
        let mut answer = Script::syn(&peer(), Flags::SYN | Flags::ACK, 5);
        answer.ack = script.isn.wrapping_add(1);
        set_capable(&mut answer, version, flag);
        script.inject(answer);
        let third = script.expect();
        assert!(!speaks_mptcp(&third.segment), "{:?}", third.segment);
        assert!(!script.connection.multipath());
    }
}

#[test]
fn a_third_ack_of_version_0_or_without_flag_h_falls_back() {
    for (version, flag) in [(0, true), (1, false)] {
        let mut script = offered(1, true);
        let answer = script.expect();
        if let Some(MptcpOption::Capable(capable)) = answer.segment.mptcp().first() {
            script.key = capable.sender_key.expect("the server's key");
        }
        script.run_until(RTT);
        let mut third = script.ack(1);
        let keys = capable(Some(PEER_KEY), Some(script.key));
        third.rare_mut().mptcp.push(MptcpOption::Capable(keys));
        set_capable(&mut third, version, flag);
        script.inject(third);
        script.write(1_000);
        let data = script.expect();
        assert!(!speaks_mptcp(&data.segment), "{:?}", data.segment);
    }
}

/// RFC 8684 section 3.7 is about acknowledgements of data: that of the SYN alone, such as a challenge ACK of a server whose SYN/ACK is
/// unacknowledged, carries no options and says nothing.
#[test]
fn an_acknowledgement_of_the_syn_alone_is_no_fallback() {
    for profile in [Profile::Rfc, Profile::MptcpOrg, Profile::Linux] {
        let mut script = Script::connected(&with_profile(profile, mptcp()), peer(), RTT);
        script.write(100);
        script.expect_data(1, 100);
        script.inject(script.ack(1));
        assert!(script.connection.multipath(), "{profile:?}");
        script.inject(script.ack(101));
        assert!(!script.connection.multipath(), "{profile:?}: data, too");
    }
}

fn acknowledged_up_to(dss: &Dss, dsn: u64) -> bool {
    match dss.data_ack {
        Some(DataAck::Short(ack)) => ack == dsn as u32,
        Some(DataAck::Long(ack)) => ack.get() == dsn,
        None => false,
    }
}

fn data_ack(script: &Script, offset: u64) -> DataAck {
    DataAck::Long(initial_dsn(script.key).wrapping_add(1 + offset).into())
}

fn data_fin_mapping(dsn: u64) -> Mapping {
    Mapping {
        dsn: Dsn::Long(dsn.into()),
        subflow_seq: 0,
        len: 1,
        checksum: None,
    }
}

#[test]
fn after_the_peers_fin_the_data_fin_comes_first() {
    let mut script = Script::accepted(&config(), peer(), RTT);
    let end = initial_dsn(PEER_KEY).wrapping_add(1);
    let mut data_fin = script.ack(1);
    data_fin.dss = Some(Dss {
        data_ack: Some(data_ack(&script, 0)),
        mapping: Some(data_fin_mapping(end)),
        data_fin: true,
    });
    script.inject(data_fin);
    let answer = script.expect_ack(1).segment.dss.expect("a data ACK");
    assert!(
        acknowledged_up_to(&answer, end.wrapping_add(1)),
        "{answer:?}"
    );
    let mut fin = script.fin(1, 1);
    fin.dss = Some(Dss {
        data_ack: Some(data_ack(&script, 0)),
        mapping: None,
        data_fin: false,
    });
    script.inject(fin);
    let answer = script.expect_ack(2).segment;
    assert!(!answer.flags.contains(Flags::FIN), "{answer:?}");
    script.write(500);
    script.expect_data(1, 500);
    script.inject(script.data_ack_at(2, 501, 500));
    script.close();
    let first = script.expect().segment;
    let dss = first.dss.expect("a DATA_FIN");
    assert!(
        dss.data_fin && !first.flags.contains(Flags::FIN),
        "{first:?}"
    );
    let mapping = dss.mapping.expect("its place");
    assert_eq!((mapping.subflow_seq, mapping.len), (0, 1));
    script.inject(script.data_ack_at(2, 501, 501));
    let last = script.expect().segment;
    assert!(last.flags.contains(Flags::FIN), "{last:?}");
}

/// The peer's FIN in TIME-WAIT's stead of FIN-WAIT-2 (`tcp_time_wait`): what is left of a subflow acknowledges it, and each repetition,
/// without options. A FIN that comes with the acknowledgement of ours finds the subflow as it was.
#[test]
fn what_is_left_of_a_closed_subflow_speaks_plain_tcp() {
    for (profile, together, speaks) in [
        (Profile::Linux, false, false),
        (Profile::Linux, true, true),
        (Profile::MptcpOrg, false, true),
    ] {
        let config = with_profile(profile, mptcp());
        let mut script = Script::connected(&config, peer(), RTT);
        script.inject(script.data_ack(1, 0));
        script.close();
        assert!(script.expect().segment.dss.is_some_and(|it| it.data_fin));
        let end = initial_dsn(PEER_KEY).wrapping_add(1);
        let mut data_fin = script.data_ack(1, 1);
        if let Some(dss) = &mut data_fin.dss {
            (dss.mapping, dss.data_fin) = (Some(data_fin_mapping(end)), true);
        }
        script.inject(data_fin);
        let answers = script.drain();
        let fin = answers.last().expect("a FIN");
        assert!(fin.segment.flags.contains(Flags::FIN), "{answers:?}");
        let with_dss = |mut segment: Segment| {
            segment.dss = script.data_ack(2, 1).dss;
            segment
        };
        let (ack, fin) = (with_dss(script.ack(2)), with_dss(script.fin(1, 2)));
        if !together {
            script.inject(ack);
        }
        script.inject(fin.clone());
        let answer = script.expect_ack(2).segment;
        assert_eq!(answer.dss.is_some(), speaks, "{profile:?}: {answer:?}");
        script.run_for(SECOND);
        script.inject(fin);
        let answer = script.expect_ack(2).segment;
        let upstream = profile == Profile::Linux;
        assert_eq!(answer.dss.is_none(), upstream, "{profile:?}: {answer:?}");
    }
}

/// The mapping of the third ACK's data (RFC 8684 section 3.1), and one that no payload comes with.
#[test]
fn data_on_the_third_ack_is_acknowledged_at_both_levels() {
    let mut script = Script::accepted(&config(), peer(), RTT);
    let first = initial_dsn(PEER_KEY).wrapping_add(1);
    let mut data = script.ack(1);
    data.flags |= Flags::PSH;
    data.payload = Payload {
        offset: 0,
        len: 100,
    };
    let mut keys = capable(Some(PEER_KEY), Some(script.key));
    keys.data = Some((100, None));
    data.rare_mut().mptcp.push(MptcpOption::Capable(keys));
    script.inject(data);
    let answer = script.expect_ack(101).segment.dss.expect("a data ACK");
    assert!(
        acknowledged_up_to(&answer, first.wrapping_add(100)),
        "{answer:?}"
    );
    let mut bare = script.data_ack_at(101, 1, 0);
    if let Some(dss) = &mut bare.dss {
        dss.mapping = Some(Mapping {
            subflow_seq: 1,
            len: 100,
            ..data_fin_mapping(first)
        });
    }
    script.inject(bare);
    assert_eq!(script.read(100), 100);
    assert!(script.connection.multipath());
}

#[test]
fn a_fast_close_with_a_wrong_key_is_ignored_and_with_the_right_one_ends_all() {
    let mut script = Script::accepted(&config(), peer(), RTT);
    script.inject(script.mapped(1, 0, 1_000, 1));
    script.expect_ack(1_001);
    let close = |script: &Script, seq: u64, receiver_key: u64| {
        let mut segment = script.ack_at(seq, 1);
        let option = MptcpOption::FastClose { receiver_key };
        segment.rare_mut().mptcp.push(option);
        segment
    };
    script.inject(close(&script, 1_001, 42));
    assert_eq!(script.connection.ended(), None);
    script.inject(script.mapped(1_001, 1_000, 1_000, 1));
    let answers = script.drain();
    let taken = |segment: &Segment| script.acknowledged(segment) == 2_001;
    assert!(
        answers.iter().any(|sent| taken(&sent.segment)),
        "{answers:?}"
    );
    script.inject(close(&script, 1, script.key));
    script.expect_ack(2_001);
    assert_eq!(script.connection.ended(), None);
    script.inject(close(&script, 2_001, script.key));
    let answer = script.expect().segment;
    assert!(answer.flags.contains(Flags::RST));
    let option = MptcpOption::TcpRst {
        flags: 0,
        reason: 0,
    };
    assert_eq!(answer.mptcp(), [option]);
    assert_eq!(script.connection.ended(), Some(CloseReason::Reset));
}

/// RFC 5961 section 3.2: only a reset at exactly the next number ends a subflow. The connection waits for a join.
#[test]
fn a_reset_outside_the_window_draws_a_challenge() {
    let mut script = Script::accepted(&config(), peer(), RTT);
    let reset = |script: &Script, seq: u64, ack: u32| {
        let mut segment = script.reset(seq);
        segment.flags |= Flags::ACK;
        segment.ack = script.isn.wrapping_add(ack);
        let option = MptcpOption::TcpRst {
            flags: 0,
            reason: 1,
        };
        segment.rare_mut().mptcp.push(option);
        segment
    };
    script.inject(reset(&script, 1_002, 1));
    let challenge = script.expect_ack(1).segment;
    assert!(challenge.dss.is_some(), "{challenge:?}");
    script.write(1_000);
    assert!(script.expect_data(1, 1_000).segment.dss.is_some());
    script.inject(reset(&script, 1, 1_001));
    assert_eq!(script.connection.ended(), None);
}

fn announcement(script: &Script, hmac: u64) -> Segment {
    let mut segment = script.data_ack(101, 100);
    segment.rare_mut().mptcp.push(MptcpOption::AddAddr {
        echo: false,
        address_id: 2,
        address: server_address(1),
        port: None,
        hmac: Some(hmac),
    });
    segment
}

fn echoes(segment: &Segment) -> bool {
    let echo = |option: &MptcpOption| {
        matches!(
            option,
            MptcpOption::AddAddr {
                echo: true,
                address_id: 2,
                hmac: None,
                ..
            }
        )
    };
    segment.mptcp().iter().any(echo)
}

/// RFC 8684 section 3.4.1: the HMAC over id, address and port, with both keys.
#[test]
fn an_address_is_echoed_if_its_hmac_is_right() {
    for right in [true, false] {
        let mut script = Script::connected(&config(), peer(), RTT);
        script.run_for(200 * MS);
        script.write(100);
        let data = script.expect_data(1, 100).segment;
        let keys = data.mptcp().first();
        assert!(
            matches!(keys, Some(MptcpOption::Capable(capable)) if capable.data == Some((100, None))),
            "{keys:?}"
        );
        script.inject(script.data_ack(101, 100));
        let mut message = vec![2];
        if let std::net::IpAddr::V4(address) = server_address(1) {
            message.extend(address.octets());
        }
        message.extend([0, 0]);
        let key = [PEER_KEY.to_be_bytes(), script.key.to_be_bytes()].concat();
        let digest = hmac(&key, &message);
        let hmac = u64::from_be_bytes(digest[24..].try_into().expect("eight bytes"));
        script.inject(announcement(&script, if right { hmac } else { hmac ^ 1 }));
        let answers = script.drain();
        assert_eq!(
            answers.iter().any(|sent| echoes(&sent.segment)),
            right,
            "{answers:?}"
        );
    }
}

#[test]
fn a_priority_rides_on_data() {
    let mut script = Script::accepted(&config(), peer(), RTT);
    for (offset, backup) in [(0, true), (2, false)] {
        let mut data = script.mapped(1 + offset, offset, 2, 1);
        data.rare_mut().mptcp.push(MptcpOption::Prio { backup });
        script.inject(data);
        assert_eq!(script.connection.paths()[0].backup, backup);
    }
    script.run_for(SECOND);
    script.drain();
    script.write(100);
    script.expect_data(1, 100);
}

/// A piece of a segment that was cut on the way has no options; before the piece with the mapping it says nothing (Linux
/// `check_fully_established` judges the next segment in order alone).
#[test]
fn a_piece_that_overtakes_its_mapping_is_no_fallback() {
    let mut script = Script::connected(&config(), peer(), RTT);
    script.write(100);
    script.expect_data(1, 100);
    let mut second = script.data(501, 500, 101);
    second.payload.offset = 500;
    script.inject(second);
    assert!(script.connection.multipath());
    let mut first = script.mapped(1, 0, 1_000, 101);
    first.payload.len = 500;
    script.inject(first);
    assert_eq!(script.read(1_000), 500);
    let mut again = script.data(501, 500, 101);
    again.payload.offset = 500;
    script.inject(again);
    assert_eq!(script.read(1_000), 500);
    assert!(script.connection.multipath());
}

/// To a peer that fell back, a repetition on the only subflow would be new data (RFC 8684 section 3.7). Once it has confirmed MPTCP, what
/// it has not acknowledged at connection level goes again, with a mapping of its own.
#[test]
fn nothing_is_reinjected_on_the_only_subflow_before_the_peer_confirms() {
    for profile in [Profile::Rfc, Profile::MptcpOrg] {
        let mut script = Script::connected(&with_profile(profile, mptcp()), peer(), RTT);
        script.write(100);
        script.expect_data(1, 100);
        let mut piece = script.data(501, 500, 101);
        piece.payload.offset = 500;
        script.inject(piece);
        script.drain();
        script.run_for(10 * SECOND);
        let data = |sent: &Sent| sent.segment.payload.len > 0;
        assert!(!script.drain().iter().any(data), "{profile:?}");
        let mut first = script.mapped(1, 0, 1_000, 101);
        first.payload.len = 500;
        script.inject(first);
        script.run_for(10 * SECOND);
        let sent = script.drain();
        let again = &sent
            .iter()
            .find(|sent| data(sent))
            .expect("a reinjection")
            .segment;
        assert_eq!(script.relative(again), 101);
        let mapping = again.dss.and_then(|dss| dss.mapping).expect("a mapping");
        assert_eq!((mapping.subflow_seq, mapping.len), (101, 100));
    }
}

/// Upstream repeats at once. MP_CAPABLE with data maps the subflow's first byte (RFC 8684 section 3.1); the same data further on in the
/// subflow needs a mapping of its own.
#[test]
fn the_first_data_is_reinjected_with_a_mapping() {
    let mut script = Script::connected(&config(), peer(), RTT);
    script.write(100);
    script.expect_data(1, 100);
    let mut piece = script.data(501, 500, 101);
    piece.payload.offset = 500;
    script.inject(piece);
    script.drain();
    script.run_for(SECOND);
    let sent = script.drain();
    let again = sent.iter().find(|sent| sent.segment.payload.len > 0);
    let again = &again.expect("a reinjection").segment;
    assert_eq!(script.relative(again), 101);
    let mapping = again.dss.and_then(|dss| dss.mapping).expect("a mapping");
    assert_eq!((mapping.subflow_seq, mapping.len), (101, 100));
}

/// Linux `get_mapping_status`, `use_64bit_ack`: each mapping decides for the data ACKs after it.
#[test]
fn data_acks_are_as_long_as_the_numbers_that_they_answer() {
    let mut script = Script::accepted(&config(), peer(), RTT);
    let answer = |script: &mut Script, segment: Segment| {
        script.inject(segment);
        let answers = script.drain();
        answers.last().and_then(|sent| sent.segment.dss?.data_ack)
    };
    let long = script.mapped(1, 0, 1_000, 1);
    assert!(matches!(answer(&mut script, long), Some(DataAck::Long(_))));
    let mut short = script.mapped(1_001, 1_000, 1_000, 1);
    if let Some(mapping) = short.dss.as_mut().and_then(|dss| dss.mapping.as_mut()) {
        let first = initial_dsn(PEER_KEY).wrapping_add(1_001);
        mapping.dsn = Dsn::Short(first as u32);
    }
    assert!(matches!(
        answer(&mut script, short),
        Some(DataAck::Short(_))
    ));
}

/// The peer's first numbers ask for longer data ACKs. What is sent again leaves in pieces where it no longer fits beside them
/// (Linux `__tcp_retransmit_skb`), and what waits is cut anew.
#[test]
fn what_was_cut_beside_short_data_acks_fits_beside_long_ones() {
    let mss = usize::from(peer().mss.expect("an MSS"));
    let mut script = Script::connected(&config(), peer(), RTT);
    script.write(60_000);
    let first = script.drain();
    script.inject(script.mapped(1, 0, 1_000, 1));
    let mut reached = 1;
    let mut after = Vec::new();
    while reached <= 60_000 && script.now < 100 * SECOND {
        script.run_for(2 * SECOND);
        after.extend(script.drain());
        for sent in &after {
            let start = script.relative(&sent.segment);
            if start <= reached {
                reached = reached.max(start + u64::from(sent.segment.payload.len));
            }
        }
        script.inject(script.data_ack_at(1_001, reached, reached - 1));
    }
    assert_eq!(reached, 60_001);
    let long = |sent: &Sent| {
        let data_ack = sent.segment.dss.and_then(|dss| dss.data_ack);
        matches!(data_ack, Some(DataAck::Long(_)))
    };
    assert!(!first.iter().any(long) && after.iter().any(long));
    let again = |sent: &Sent| sent.segment.seq == first[1].segment.seq;
    assert!(after.iter().any(again));
    for sent in &after {
        let len = sent.segment.payload.len as usize + options_len(&sent.segment);
        assert!(len <= mss, "{len}");
    }
}

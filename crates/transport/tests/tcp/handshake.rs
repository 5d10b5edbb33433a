//! Connection establishment (RFC 9293 section 3.5, RFC 7323 section 2.2 and 3.2, RFC 2018 section 2, RFC 3168 section 6.1.1).
//!
//! | rule | test |
//! |---|---|
//! | what the SYN offers, what the SYN/ACK answers | `the_syn_offers_everything`, `the_syn_ack_answers_only_what_was_offered` |
//! | options that one side lacks are not used | `an_option_that_the_server_leaves_out_is_not_used` |
//! | no MSS option means 536; nonsense does not underflow | `without_an_mss_option_segments_have_536_bytes`, `a_tiny_mss_is_raised` |
//! | retransmission and giving up | `a_syn_is_repeated_with_doubled_timeouts_and_then_given_up` |
//! | a repeated SYN leaves the RTO at three seconds, unless a timestamp tells the round trip | `without_a_sample_the_timeout_is_three_seconds`, `a_timestamp_times_a_repeated_syn` |
//! | which SYN is echoed | `the_echo_is_of_the_last_syn_or_in_the_kernels_of_the_first` |
//! | segments of at most half of the largest window | `segments_take_half_of_a_tiny_window` |
//! | a SYN/ACK without a route | `a_syn_ack_that_finds_no_route_ends_the_handshake` |
//! | refusal | `a_reset_refuses`, `a_reset_that_acknowledges_something_else_is_ignored` |
//! | duplicates and losses | `a_repeated_syn_draws_the_syn_ack_again`, `a_repeated_syn_ack_draws_the_third_ack_again`, `handshake_survives_any_single_loss` |
//! | sequence numbers wrap | `sequence_numbers_wrap` |

use polypath_transport::{CloseReason, Config, Connection, Limits, Profile, Segment};
use polypath_wire::tcp::Flags;

use crate::common::script::{PEER_ISN, Peer, Script};
use crate::common::{
    CLIENT_PORT, Fate, MS, Pair, SECOND, Side, client_address, first_tuple, host, server_address,
    tcp, with_profile,
};

#[test]
fn the_syn_offers_everything() {
    let mut script = Script::client(&tcp(), Peer::default());
    let syn = script.expect().segment;
    assert_eq!(syn.flags, Flags::SYN);
    let options = syn.rare.as_ref().expect("a SYN has options");
    assert_eq!(options.mss, Some(1460));
    assert!(options.sack_permitted);
    // 6 MiB need a shift of 7.
    assert_eq!(options.window_scale, Some(7));
    assert_eq!(syn.timestamps, Some((1, 0)));
    assert!(options.mptcp.is_empty());
    // RFC 7323 section 2.2: the window of a SYN is never scaled.
    assert_eq!(syn.window, 65_535);
}

#[test]
fn the_syn_ack_answers_only_what_was_offered() {
    for (sack, timestamps, scale) in [
        (false, true, true),
        (true, false, true),
        (true, true, false),
    ] {
        let peer = Peer {
            sack,
            timestamps,
            window_scale: scale.then_some(3),
            ..Peer::default()
        };
        let answer = Script::server(&tcp(), peer).expect().segment;
        assert_eq!(answer.flags, Flags::SYN | Flags::ACK);
        assert_eq!(answer.ack, PEER_ISN.wrapping_add(1));
        let options = answer.rare.as_ref().expect("a SYN/ACK has options");
        assert_eq!(options.sack_permitted, sack);
        assert_eq!(answer.timestamps.is_some(), timestamps);
        assert_eq!(options.window_scale.is_some(), scale);
        assert_eq!(options.mss, Some(1460));
    }
}

#[test]
fn an_option_that_the_server_leaves_out_is_not_used() {
    let offer = Peer {
        timestamps: true,
        ..Peer::default()
    };
    let established = |peer| Script::connected(&tcp(), peer, 10 * MS);

    let mut script = established(Peer {
        timestamps: false,
        ..offer
    });
    script.write(10_000);
    assert_eq!(script.expect_data(1, 1460).segment.timestamps, None);

    let mut script = established(offer);
    script.write(10_000);
    assert!(script.expect_data(1, 1448).segment.timestamps.is_some());

    let mut script = established(Peer {
        sack: false,
        ..offer
    });
    let gap = script.data(1449, 1448, 1);
    script.inject(gap);
    assert!(script.expect_ack(1).segment.sack.is_empty());

    // Neither side scales: 3000 means 3000.
    let mut script = established(Peer {
        window_scale: None,
        window: 3000,
        ..offer
    });
    script.inject(Segment {
        window: 3000,
        ..script.ack(1)
    });
    script.write(100_000);
    assert_eq!(script.drain().len(), 2);
}

#[test]
fn without_an_mss_option_segments_have_536_bytes() {
    let mut script = Script::connected(
        &tcp(),
        Peer {
            mss: None,
            ..Peer::default()
        },
        10 * MS,
    );
    script.write(10_000);
    script.expect_data(1, 536);
}

#[test]
fn a_tiny_mss_is_raised() {
    for mss in [0, 1, 11, 12, 40] {
        let peer = Peer {
            mss: Some(mss),
            timestamps: true,
            ..Peer::default()
        };
        let mut script = Script::connected(&tcp(), peer, 10 * MS);
        script.write(1_000);
        assert!(script.expect().segment.payload.len >= 1);
        Script::accepted(&tcp(), peer, 10 * MS);
    }
}

/// RFC 6298 section 5.5; in Linux the first four timeouts double nothing (`tcp_syn_linear_timeouts`).
#[test]
fn a_syn_is_repeated_with_doubled_timeouts_and_then_given_up() {
    let cases: [(Profile, &[u64], u64); 3] = [
        (Profile::Rfc, &[0, 1, 3, 7], 15),
        (Profile::MptcpOrg, &[0, 1, 3, 7], 15),
        (Profile::Linux, &[0, 1, 2, 3, 4, 5, 7, 11], 19),
    ];
    for (profile, seconds, end) in cases {
        let config = Config {
            limits: Limits {
                syn_retries: 3,
                ..Limits::default()
            },
            ..with_profile(profile, tcp())
        };
        let mut script = Script::client(&config, Peer::default());
        for &second in seconds {
            let sent = script.expect();
            assert_eq!(sent.segment.flags, Flags::SYN);
            assert_eq!(sent.at, second * SECOND, "{profile:?}");
        }
        script.run_until((end - 1) * SECOND);
        assert_eq!(script.connection.ended(), None);
        script.run_until(end * SECOND);
        script.expect_nothing();
        assert_eq!(script.connection.ended(), Some(CloseReason::Unreachable));
    }
}

/// RFC 5681 section 3.1: a lost SYN leaves an initial window of one segment.
#[test]
fn a_repeated_syn_costs_the_initial_window() {
    let mut script = Script::client(&tcp(), Peer::default());
    script.expect();
    script.expect();
    let mut answer = Script::syn(&script.peer, Flags::SYN | Flags::ACK, 1);
    answer.ack = script.isn.wrapping_add(1);
    script.inject(answer);
    script.expect_ack(1);
    script.write(10_000);
    script.expect_data(1, 1460);
    script.expect_nothing();
}

/// A client whose SYN was repeated after a second; the SYN/ACK echoes `echo`, 10 ms later.
fn repeated(timestamps: bool, echo: u32) -> Script {
    let peer = Peer {
        timestamps,
        ..Peer::default()
    };
    let mut script = Script::client(&tcp(), peer);
    script.expect();
    script.expect();
    script.run_until(SECOND + 10 * MS);
    let mut answer = Script::syn(&peer, Flags::SYN | Flags::ACK, 1);
    answer.ack = script.isn.wrapping_add(1);
    answer.timestamps = answer.timestamps.map(|(value, _)| (value, echo));
    script.inject(answer);
    script.expect_ack(1);
    script
}

fn timeout(mut script: Script) -> u64 {
    script.write(100);
    let first = script.expect();
    assert_eq!(first.segment.payload.len, 100);
    // A probe for tail loss comes before the timeout, a second after the data while there is no sample.
    let probe = script.expect();
    let again = script.expect();
    assert_eq!(again.segment.seq, first.segment.seq);
    again.at - probe.at
}

/// RFC 7323 section 4.3 against Linux `tcp_check_req`.
#[test]
fn the_echo_is_of_the_last_syn_or_in_the_kernels_of_the_first() {
    for (profile, echo) in [
        (Profile::Rfc, 1_001),
        (Profile::Linux, 1),
        (Profile::MptcpOrg, 1),
    ] {
        let peer = Peer {
            timestamps: true,
            ..Peer::default()
        };
        let mut script = Script::server(&with_profile(profile, tcp()), peer);
        script.expect();
        script.run_until(700 * MS);
        script.inject(Script::syn(&peer, Flags::SYN, 1_001));
        let again = script.expect().segment;
        assert_eq!(
            again.timestamps.map(|stamp| stamp.1),
            Some(echo),
            "{profile:?}"
        );
    }
}

/// RFC 6298 section 5.7.
#[test]
fn without_a_sample_the_timeout_is_three_seconds() {
    assert_eq!(timeout(repeated(false, 0)), 3 * SECOND);
}

/// RFC 7323 section 4: the echo says which SYN was answered. Of the first one it was a long way.
#[test]
fn a_timestamp_times_a_repeated_syn() {
    let second = timeout(repeated(true, 1_001));
    assert!((200 * MS..300 * MS).contains(&second), "{second}");
    // SRTT + 4 RTTVAR, of 1010 ms each and half of it.
    let first = timeout(repeated(true, 1));
    assert!((3_000 * MS..3_100 * MS).contains(&first), "{first}");
}

/// Linux `tcp_bound_to_half_wnd`: for a larger window later on, longer segments.
#[test]
fn segments_take_half_of_a_tiny_window() {
    for (profile, window, len) in [
        (Profile::Linux, 2_000, 1_000),
        (Profile::MptcpOrg, 2_000, 1_000),
        (Profile::Rfc, 2_000, 1_460),
        (Profile::Linux, 500, 500),
        (Profile::Linux, 88, 88),
        (Profile::Linux, 4_000, 1_460),
    ] {
        let peer = Peer {
            window_scale: None,
            window,
            ..Peer::default()
        };
        let config = with_profile(profile, tcp());
        for mut script in [Script::connected(&config, peer, 10 * MS), {
            let mut script = Script::server(&config, peer);
            script.expect();
            script.run_until(10 * MS);
            let third = script.ack(1);
            script.inject(Segment { window, ..third });
            script
        }] {
            script.write(20_000);
            let first = script.expect().segment.payload.len;
            assert_eq!(first, len, "{profile:?}, {window}");
            script.drain();
            let mut wider = script.ack(1 + u64::from(len));
            wider.window = 20_000;
            script.inject(wider);
            let most = script
                .drain()
                .iter()
                .map(|sent| sent.segment.payload.len)
                .max();
            assert_eq!(most, Some(1_460), "{profile:?}, {window}");
        }
    }
}

/// Linux `reqsk_timer_handler`: what comes afterwards finds nobody.
#[test]
fn a_syn_ack_that_finds_no_route_ends_the_handshake() {
    for (profile, ended) in [
        (Profile::Linux, Some(CloseReason::Unreachable)),
        (Profile::Rfc, None),
    ] {
        let mut script = Script::server(&with_profile(profile, tcp()), Peer::default());
        script.expect();
        let now = script.now;
        (script.connection).set_address_up(server_address(0), false, now);
        script.run_until(900 * MS);
        assert_eq!(script.connection.ended(), None);
        script.run_until(1_100 * MS);
        assert_eq!(script.connection.ended(), ended);
    }
}

#[test]
fn a_reset_refuses() {
    let mut script = Script::client(&tcp(), Peer::default());
    script.expect();
    let mut reset = script.ack(1);
    reset.flags = Flags::RST | Flags::ACK;
    script.inject(reset);
    assert_eq!(script.connection.ended(), Some(CloseReason::Reset));
}

#[test]
fn a_reset_that_acknowledges_something_else_is_ignored() {
    let mut script = Script::client(&tcp(), Peer::default());
    script.expect();
    for (flags, ack) in [
        (Flags::RST, 1),
        (Flags::RST | Flags::ACK, 0),
        (Flags::RST | Flags::ACK, 2),
    ] {
        let mut reset = script.ack(ack);
        reset.flags = flags;
        script.inject(reset);
        assert_eq!(script.connection.ended(), None);
    }
}

#[test]
fn a_repeated_syn_draws_the_syn_ack_again() {
    let mut script = Script::server(&tcp(), Peer::default());
    script.expect();
    script.run_until(500 * MS);
    let syn = Script::syn(&script.peer, Flags::SYN, 1);
    script.inject(syn);
    let again = script.expect();
    assert_eq!(again.at, 500 * MS);
    assert_eq!(again.segment.flags, Flags::SYN | Flags::ACK);
    assert_eq!(again.segment.seq, script.isn);
}

#[test]
fn a_repeated_syn_ack_draws_the_third_ack_again() {
    let mut script = Script::connected(&tcp(), Peer::default(), 10 * MS);
    let mut again = Script::syn(&script.peer, Flags::SYN | Flags::ACK, 1);
    again.ack = script.isn.wrapping_add(1);
    script.inject(again);
    assert_eq!(script.expect_ack(1).segment.flags, Flags::ACK);
}

#[test]
fn handshake_survives_any_single_loss() {
    for lost in 0..3 {
        let mut pair = Pair::new(&tcp(), &[10 * MS]);
        let mut count = 0;
        pair.hook(move |_| {
            count += 1;
            if count == lost + 1 {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        pair.transfer(20_000, 10 * SECOND);
    }
}

/// RFC 9293 section 3.4: an ISN that wraps within the transfer, with losses around the wrap.
#[test]
fn sequence_numbers_wrap() {
    let config = tcp();
    let near_wrap = (0u64..100_000)
        .find(|&seed| {
            let accept = host(&config, vec![client_address(0)], u128::from(seed) << 8 | 1);
            let mut connection = Connection::connect(accept, first_tuple(), 0).expect("valid");
            connection.transmits()[0].segment.seq > u32::MAX - 200_000
        })
        .expect("one seed in 20 000 will do");
    let links = vec![crate::common::Link::new(10 * MS)];
    let mut pair = Pair::with(&config, &config, links, 1, near_wrap);
    let mut count = 0;
    pair.hook(move |packet| {
        count += u32::from(packet.carries_data());
        if packet.carries_data() && count % 23 == 0 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    pair.transfer(1_000_000, 60 * SECOND);
    let first = pair.log[0].segment.seq;
    assert!(
        pair.data(Side::Client)
            .any(|packet| packet.segment.seq < first)
    );
    assert_eq!(pair.log[0].tuple.local.port(), CLIENT_PORT);
}

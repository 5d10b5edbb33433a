//! What a blind attacker guesses wrong (RFC 9293 section 3.10.7.4, RFC 5961).
//!
//! | rule | test |
//! |---|---|
//! | an ACK older than the largest window is challenged, and its data not taken | `an_ack_below_the_largest_window_is_challenged` |
//! | an ACK of what was not sent is challenged, twice a second at most | `an_ack_of_the_unsent_is_challenged_twice_a_second` |
//! | a sequence number outside the window takes nothing with it: no ACK, no FIN | `a_segment_outside_the_window_acknowledges_nothing` |
//! | a FIN before what came is none | `a_fin_below_what_came_ends_nothing` |
//! | a SYN/ACK at other numbers draws no third ACK | `another_syn_ack_is_challenged` |
//! | an ICMP report of a number that is not in flight is ignored, in SYN-SENT as well (RFC 5927 section 4.1) | `a_report_of_a_number_before_the_initial_one_is_ignored` |
//! | what lies before the initial number does not reach into the window of a half-open connection | `a_long_syn_before_the_initial_number_ends_no_attempt` |

use polypath_transport::tcp::State;
use polypath_transport::{Mib, Segment};
use polypath_wire::tcp::{Flags, Payload};

use crate::common::script::{PEER_ISN, Peer, Script};
use crate::common::{MS, tcp};

fn state(script: &Script) -> State {
    script.connection.subflows()[0].socket().state()
}

fn established() -> Script {
    let mut script = Script::connected(&tcp(), Peer::default(), 10 * MS);
    script.drain();
    script
}

#[test]
fn an_ack_below_the_largest_window_is_challenged() {
    let mut script = established();
    let scale = script.peer.window_scale.unwrap_or(0);
    let window = u32::from(script.ack(1).window) << scale;
    for (beyond, taken) in [(1, false), (0, true)] {
        let mut data = script.data(1, 100, 1);
        // The window of the SYN/ACK was not scaled; an ACK offers the whole of it.
        script.inject(script.ack(1));
        data.ack = data.ack.wrapping_sub(window + beyond);
        script.inject(data);
        let received = script.connection.subflows()[0].socket().received();
        assert_eq!(received, if taken { 101 } else { 1 });
        if !taken {
            script.expect_ack(1);
            assert_eq!(script.counter(Mib::TcpExtTCPChallengeACK), 1);
        }
    }
}

#[test]
fn an_ack_of_the_unsent_is_challenged_twice_a_second() {
    let mut script = established();
    let began = script.now;
    for (at, answered) in [(0, true), (1, false), (499, false), (500, true)] {
        script.run_until(began + at * MS);
        script.inject(script.ack(2));
        if answered {
            script.expect_ack(1);
        }
        script.expect_nothing();
    }
    assert_eq!(script.counter(Mib::TcpExtTCPChallengeACK), 2);
}

#[test]
fn a_segment_outside_the_window_acknowledges_nothing() {
    let mut script = established();
    script.write(1_000);
    script.drain();
    let flight = script.connection.send_queue().0;
    for seq in [1 << 24, u64::from(u32::MAX) - (1 << 24)] {
        for mut segment in [script.ack(1_001), script.fin(1, 1_001)] {
            segment.seq = PEER_ISN.wrapping_add(seq as u32);
            script.inject(segment);
            assert_eq!(state(&script), State::Established);
            assert_eq!(script.connection.send_queue().0, flight);
        }
    }
    script.inject(script.ack(1_001));
    assert_eq!(script.connection.send_queue().0, 0);
}

#[test]
fn a_fin_below_what_came_ends_nothing() {
    let mut script = established();
    script.inject(script.data(1, 1_000, 1));
    script.drain();
    script.inject(script.fin(500, 1));
    script.inject(script.data(1_001, 1_000, 1));
    assert_eq!(state(&script), State::Established);
    assert!(!script.connection.at_end());
    assert_eq!(script.connection.available(), 2_000);
    script.inject(script.fin(2_001, 1));
    assert_eq!(state(&script), State::CloseWait);
}

#[test]
fn another_syn_ack_is_challenged() {
    let mut script = established();
    let again = Script::syn(&script.peer, Flags::SYN | Flags::ACK, 1);
    let other = Segment {
        seq: PEER_ISN.wrapping_add(7),
        ack: script.isn.wrapping_add(1),
        ..again.clone()
    };
    script.inject(other.clone());
    script.expect_ack(1);
    assert_eq!(script.counter(Mib::TcpExtTCPChallengeACK), 1);
    script.inject(other);
    script.expect_nothing();
    let right = Segment {
        ack: script.isn.wrapping_add(1),
        ..again
    };
    script.inject(right);
    script.expect_ack(1);
    assert_eq!(script.counter(Mib::TcpExtTCPChallengeACK), 1);
}

#[test]
fn a_report_of_a_number_before_the_initial_one_is_ignored() {
    let mut script = Script::client(&tcp(), Peer::default());
    script.expect();
    let (isn, now) = (script.isn, script.now);
    for (seq, believed) in [(isn.wrapping_sub(1_000), false), (isn, true)] {
        script.connection.on_packet_too_big(0, seq, 1_000, now);
        let reduced = script.connection.subflows()[0].socket().info(&tcp());
        assert_eq!(reduced.send_mss < 1_400, believed);
    }
    assert_eq!(script.counter(Mib::TcpExtOutOfWindowIcmps), 1);
}

#[test]
fn a_long_syn_before_the_initial_number_ends_no_attempt() {
    let mut script = Script::server(&tcp(), Peer::default());
    script.expect();
    let mut syn = Script::syn(&script.peer, Flags::SYN, 1);
    syn.seq = PEER_ISN.wrapping_sub(1_000_000);
    syn.payload = Payload {
        offset: 0,
        len: 1_000,
    };
    script.inject(syn);
    assert_eq!(state(&script), State::SynReceived);
    script.expect_ack(1);
}

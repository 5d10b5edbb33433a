//! Segments that do not fit the state of a handshake, and SYNs that reuse addresses and ports.
//!
//! See RFC 9293 sections 3.5.1 and 3.10.7, RFC 5961 and RFC 6191.
//!
//! | rule | test |
//! |---|---|
//! | a repeated SYN draws the SYN/ACK, twice a second at most, and puts off its own repetition | `a_repeated_syn_is_answered_twice_a_second` |
//! | another SYN in the window ends the attempt, one outside draws an ACK | `another_syn_ends_the_attempt`, `a_syn_outside_the_window_draws_an_ack` |
//! | an ACK of what was not sent is reset, and the attempt goes on | `an_ack_of_something_else_is_reset` |
//! | a reset at another number is challenged | `a_reset_at_another_number_is_challenged` |
//! | a client that finds an older connection resets it and repeats its SYN | `a_client_resets_an_older_connection` |
//! | TIME-WAIT gives way to what is newer | `time_wait_gives_way_to_a_newer_syn`, `a_connection_in_use_does_not_give_way` |

use polypath_transport::tcp::State;
use polypath_transport::{CloseReason, Mib, Segment};
use polypath_wire::tcp::Flags;

use crate::common::script::{PEER_ISN, Peer, Script};
use crate::common::{MS, SECOND, tcp};

fn half_open() -> Script {
    let mut script = Script::server(&tcp(), Peer::default());
    script.expect();
    script
}

/// The peer's SYN with its sequence number moved.
fn syn(script: &Script, by: i32) -> Segment {
    Segment {
        seq: PEER_ISN.wrapping_add_signed(by),
        ..Script::syn(&script.peer, Flags::SYN, 1)
    }
}

fn state(script: &Script) -> State {
    script.connection.subflows()[0].socket().state()
}

#[track_caller]
fn expect_reset(script: &mut Script, flags: Flags) -> Segment {
    let reset = script.expect().segment;
    assert_eq!(reset.flags, flags, "{reset:?}");
    reset
}

#[test]
fn a_repeated_syn_is_answered_twice_a_second() {
    let mut script = half_open();
    for (at, answered) in [(100, true), (101, false), (599, false), (600, true)] {
        script.run_until(at * MS);
        script.inject(syn(&script, 0));
        if answered {
            assert_eq!(script.expect().segment.flags, Flags::SYN | Flags::ACK);
        }
        script.expect_nothing();
    }
    let next = script.expect();
    assert_eq!(
        (next.at, next.segment.flags),
        (600 * MS + SECOND, Flags::SYN | Flags::ACK)
    );
    script.inject(script.ack(1));
    assert_eq!(state(&script), State::Established);
}

#[test]
fn another_syn_ends_the_attempt() {
    let mut script = half_open();
    script.inject(syn(&script, 1_000));
    let reset = expect_reset(&mut script, Flags::RST | Flags::ACK);
    assert_eq!(script.acknowledged(&reset), 1_001);
    assert_eq!(script.connection.ended(), Some(CloseReason::Reset));
    assert_eq!(script.counter(Mib::TcpAttemptFails), 1);
    assert!(script.connection.gives_way(0, &syn(&script, 0)));
}

#[test]
fn a_syn_outside_the_window_draws_an_ack() {
    let mut script = half_open();
    for by in [-1_000, 1_000_000] {
        script.inject(syn(&script, by));
        let answer = script.expect_ack(1).segment;
        assert_eq!((answer.flags, script.relative(&answer)), (Flags::ACK, 1));
        script.inject(syn(&script, by));
        script.expect_nothing();
        script.run_for(500 * MS);
    }
    assert_eq!(state(&script), State::SynReceived);
}

#[test]
fn an_ack_of_something_else_is_reset() {
    let mut script = half_open();
    for ack in [0, 2, 70_000] {
        script.inject(script.ack(ack));
        let reset = expect_reset(&mut script, Flags::RST);
        assert_eq!(script.relative(&reset), ack);
        assert_eq!(state(&script), State::SynReceived);
    }
    script.inject(script.ack(1));
    assert_eq!(state(&script), State::Established);
}

#[test]
fn a_reset_at_another_number_is_challenged() {
    let mut script = half_open();
    script.inject(script.reset(500));
    script.expect_ack(1);
    assert_eq!(script.counter(Mib::TcpExtTCPChallengeACK), 1);
    script.inject(script.reset(1_000_000));
    script.expect_nothing();
    assert_eq!(state(&script), State::SynReceived);
    script.inject(script.reset(1));
    script.expect_nothing();
    assert_eq!(script.connection.ended(), Some(CloseReason::Reset));
}

#[test]
fn a_client_resets_an_older_connection() {
    let mut script = Script::client(&tcp(), Peer::default());
    script.expect();
    script.run_until(10 * MS);
    for _ in 0..2 {
        script.inject(script.ack_at(5_000, 70_000));
        let reset = expect_reset(&mut script, Flags::RST);
        assert_eq!(script.relative(&reset), 70_000);
    }
    // Soon the first time; then with the timeout doubled.
    for at in [12 * MS, 12 * MS + 2 * SECOND] {
        let again = script.expect();
        assert_eq!((again.at, again.segment.flags), (at, Flags::SYN));
        script.inject(script.ack_at(5_000, 70_000));
        expect_reset(&mut script, Flags::RST);
    }
    assert_eq!(state(&script), State::SynSent);
}

/// A client whose connection is in TIME-WAIT, the peer's FIN at 1.
fn time_wait(timestamps: bool) -> Script {
    let peer = Peer {
        timestamps,
        ..Peer::default()
    };
    let mut script = Script::connected(&tcp(), peer, 20 * MS);
    script.close();
    script.inject(script.fin(1, 2));
    script.drain();
    assert_eq!(state(&script), State::TimeWait);
    script.run_for(10 * SECOND);
    script
}

#[test]
fn time_wait_gives_way_to_a_newer_syn() {
    // By sequence number: the last one was the FIN's, 1.
    for (by, gives_way) in [
        (-1_000, false),
        (1, false),
        (2, false),
        (3, true),
        (1_000, true),
    ] {
        let script = time_wait(false);
        let again = syn(&script, by);
        assert_eq!(script.connection.gives_way(0, &again), gives_way, "{by}");
    }
    // By timestamp, of which the last one came 20 ms after the start, at the peer's clock of 21.
    for (by, value, gives_way) in [
        (-1_000, 21, false),
        (-1_000, 22, true),
        (1_000, 21, true),
        (1_000, 5, false),
    ] {
        let script = time_wait(true);
        let mut again = syn(&script, by);
        again.timestamps = Some((value, 0));
        assert_eq!(
            script.connection.gives_way(0, &again),
            gives_way,
            "{by} {value}"
        );
    }
    let mut script = time_wait(false);
    let isn = script.connection.end_time_wait(0, script.now);
    // SYN and FIN, and then more than a window without scaling.
    let beyond = isn.map(|isn| isn.wrapping_sub(script.isn));
    assert_eq!(beyond, Some(2 + 65_537));
    assert_eq!(state(&script), State::Closed);
    assert_eq!(script.connection.end_time_wait(0, script.now), None);
    assert!(script.connection.gives_way(0, &syn(&script, -1_000)));
}

#[test]
fn a_connection_in_use_does_not_give_way() {
    let script = Script::accepted(&tcp(), Peer::default(), 10 * MS);
    assert!(!script.connection.gives_way(0, &syn(&script, 1_000)));
    assert!(!half_open().connection.gives_way(0, &syn(&script, 1_000)));
}

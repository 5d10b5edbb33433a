//! Peers that fall silent: keep-alive (RFC 9293 section 3.8.4) and the user timeout (section 3.8.3, RFC 5482), as Linux has them.
//!
//! | rule | test |
//! |---|---|
//! | off by default | `a_socket_is_silent_by_default` |
//! | a probe below the window after the idle time, then at intervals, then a reset | `an_idle_peer_is_probed_and_given_up` |
//! | an answer restarts the idle time | `an_answer_is_life` |
//! | what is in flight has its own timer | `data_in_flight_puts_probes_off`, `a_corked_rest_puts_probes_off` |
//! | the user timeout in place of the number of probes | `the_user_timeout_ends_keepalive` |
//! | the user timeout counts from the first retransmission | `the_user_timeout_ends_retransmission` |
//! | of a SYN from the first one | `the_user_timeout_ends_an_attempt` |
//! | and from the first probe of a closed window | `the_user_timeout_ends_a_closed_window` |
//! | without it, a closed window that is answered may stay closed | the same |

use polypath_transport::{CloseReason, Config, EventKind, Keepalive, Mib};
use polypath_wire::tcp::Flags;

use crate::common::script::{Peer, Script};
use crate::common::{MS, SECOND, tcp};

const KEEPALIVE: Keepalive = Keepalive {
    time: 7200 * SECOND,
    interval: 75 * SECOND,
    probes: 9,
};

const QUICK: Keepalive = Keepalive {
    time: 10 * SECOND,
    interval: 2 * SECOND,
    probes: 3,
};

fn connected(keepalive: Option<Keepalive>, user_timeout: u64) -> Script {
    let config = Config {
        keepalive,
        user_timeout_ns: user_timeout,
        ..tcp()
    };
    Script::connected(&config, Peer::default(), 20 * MS)
}

fn timed_out(script: &Script) -> bool {
    script.happened(|kind| *kind == EventKind::ConnectionClosed(CloseReason::TimedOut))
}

#[test]
fn a_socket_is_silent_by_default() {
    let mut script = connected(None, 0);
    script.run_for(30_000 * SECOND);
    script.expect_nothing();
    assert!(script.at_rest());
}

#[test]
fn an_idle_peer_is_probed_and_given_up() {
    let mut script = connected(Some(KEEPALIVE), 0);
    let begin = script.now;
    for probe in 0..9 {
        let sent = script.expect();
        assert_eq!(sent.at, begin + (7200 + 75 * probe) * SECOND);
        assert_eq!(sent.segment.flags, Flags::ACK);
        assert_eq!(sent.segment.payload.len, 0);
        assert_eq!(script.relative(&sent.segment), 0, "one below the next byte");
    }
    assert!(!timed_out(&script));
    let reset = script.expect();
    assert_eq!(reset.at, begin + (7200 + 75 * 9) * SECOND);
    assert!(reset.segment.flags.contains(Flags::RST));
    assert!(timed_out(&script));
    assert_eq!(script.counter(Mib::TcpExtTCPKeepAlive), 9);
    assert_eq!(script.counter(Mib::TcpExtTCPAbortOnTimeout), 1);
    assert!(script.at_rest());
}

#[test]
fn an_answer_is_life() {
    let mut script = connected(Some(QUICK), 0);
    for _ in 0..10 {
        // Two of three probes stay unanswered, over and over.
        let first = script.expect().at;
        assert_eq!(script.expect().at, first + 2 * SECOND);
        script.run_until(first + 3 * SECOND);
        script.inject(script.ack(1));
        let next = script.expect().at;
        assert_eq!(next, first + 13 * SECOND);
        script.inject(script.ack(1));
    }
    assert!(!timed_out(&script));
    // Its data is an answer as well.
    script.run_for(4 * SECOND);
    script.inject(script.data(1, 100, 1));
    script.drain();
    let heard = script.now;
    script.run_for(SECOND);
    script.drain();
    assert_eq!(script.expect().at, heard + 10 * SECOND);
}

#[test]
fn data_in_flight_puts_probes_off() {
    let mut script = connected(Some(QUICK), 0);
    script.write(1000);
    script.run_for(60 * SECOND);
    assert_eq!(script.counter(Mib::TcpExtTCPKeepAlive), 0);
    assert!(script.counter(Mib::TcpExtTCPTimeouts) > 5);
}

/// Linux `tcp_keepalive_timer` asks for the write queue: else the probes' answers would hold back a corked rest for good.
#[test]
fn a_corked_rest_puts_probes_off() {
    let config = Config {
        keepalive: Some(Keepalive {
            time: 150 * MS,
            interval: 100 * MS,
            probes: 9,
        }),
        cork: true,
        ..tcp()
    };
    let mut script = Script::connected(&config, Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(100);
    script.run_for(300 * MS);
    script.expect_data(1, 100);
    assert_eq!(script.counter(Mib::TcpExtTCPKeepAlive), 0);
}

#[test]
fn the_user_timeout_ends_keepalive() {
    for (timeout, probes) in [(11 * SECOND, 1), (30 * SECOND, 10)] {
        let mut script = connected(Some(QUICK), timeout);
        let begin = script.now;
        for _ in 0..probes {
            assert!(script.expect().segment.flags == Flags::ACK);
        }
        let reset = script.expect();
        assert!(reset.segment.flags.contains(Flags::RST));
        assert_eq!(reset.at, begin + (10 + 2 * probes) * SECOND);
        assert!(timed_out(&script));
    }
}

#[test]
fn the_user_timeout_ends_retransmission() {
    let mut script = connected(None, 5 * SECOND);
    script.write(1000);
    script.expect_data(1, 1000);
    let mut repeated = Vec::new();
    while !timed_out(&script) {
        script.run_for(MS);
        repeated.extend(script.drain().into_iter().map(|sent| sent.at));
    }
    // The tail loss probe comes first, which is no retransmission of the timer's.
    let first = repeated[1];
    assert_eq!(script.now, first + 5 * SECOND);
    let unlimited = {
        let mut script = connected(None, 0);
        script.write(1000);
        script.run_for(60 * SECOND);
        timed_out(&script)
    };
    assert!(!unlimited);
}

#[test]
fn the_user_timeout_ends_an_attempt() {
    let config = Config {
        user_timeout_ns: 2 * SECOND,
        ..tcp()
    };
    let mut script = Script::client(&config, Peer::default());
    for at in [0, SECOND] {
        assert_eq!(script.expect().at, at);
    }
    script.run_until(2 * SECOND - MS);
    assert_eq!(script.connection.ended(), None);
    script.run_until(2 * SECOND);
    script.expect_nothing();
    assert_eq!(script.connection.ended(), Some(CloseReason::Unreachable));
}

#[test]
fn the_user_timeout_ends_a_closed_window() {
    for (timeout, ends) in [(0, false), (30 * SECOND, true)] {
        let config = Config {
            user_timeout_ns: timeout,
            ..tcp()
        };
        let peer = Peer {
            window: 10_000,
            ..Peer::default()
        };
        let mut script = Script::connected(&config, peer, 20 * MS);
        script.write(10_000);
        script.drain();
        let closed = |script: &Script| {
            let mut ack = script.ack(10_001);
            ack.window = 0;
            ack
        };
        let ack = closed(&script);
        script.inject(ack);
        script.write(1000);
        let mut first = None;
        while script.now < 200 * SECOND && !timed_out(&script) {
            script.run_for(10 * MS);
            for sent in script.drain() {
                assert_eq!(sent.segment.payload.len, 0, "{sent:?}");
                first.get_or_insert(sent.at);
                let ack = closed(&script);
                script.inject(ack);
            }
        }
        assert_eq!(timed_out(&script), ends);
        if ends {
            let first = first.expect("a probe");
            let passed = script.now - first;
            assert!(
                (30 * SECOND..=30 * SECOND + 10 * MS).contains(&passed),
                "{passed}"
            );
        }
    }
}

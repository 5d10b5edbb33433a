//! What proves that a retransmission or a timeout was needless, and what is done then.
//!
//! | rule | test |
//! |---|---|
//! | RFC 8985 section 6.2, step 2 | `the_original_of_a_repeated_segment_says_nothing_of_later_ones` |
//! | RFC 5682 section 3.1 | `new_data_follows_the_first_acknowledgement_after_a_timeout`, `without_new_data_what_is_lost_follows`, `originals_that_arrive_undo_the_timeout`, `a_duplicate_after_new_data_proves_the_timeout` |
//! | Linux `tcp_timeout_mark_lost` | `what_was_sent_just_before_a_timeout_is_not_lost` |
//! | RFC 2018 section 8, Linux `tcp_timeout_mark_lost` | `what_the_peer_had_and_discarded_is_sent_again` |
//! | RFC 3708 | `duplicates_of_everything_undo_the_recovery_that_goes_on` |

use polypath_transport::path::CaState;
use polypath_transport::{Mib, Nanos, Purpose};

use crate::common::script::{Peer, Script};
use crate::common::{MS, tcp};

/// Ten segments of `mss` in flight over 100 ms of RTT, and much to send. Returns the time at which they left as well.
fn ten_in_flight(timestamps: bool) -> (Script, Nanos) {
    let peer = Peer {
        timestamps,
        ..Peer::default()
    };
    let mut script = Script::connected(&tcp(), peer, 100 * MS);
    script.inject(script.ack(1));
    script.write(1_000_000);
    let left = script.now;
    assert_eq!(script.drain().len(), 10);
    (script, left)
}

fn at(index: u64, timestamps: bool) -> u64 {
    1 + index * if timestamps { 1448 } else { 1460 }
}

fn sent(script: &mut Script, timestamps: bool) -> Vec<(Purpose, u64)> {
    let sent = script.drain();
    sent.iter()
        .map(|sent| {
            (
                sent.purpose,
                (script.relative(&sent.segment) - 1) / (at(1, timestamps) - 1),
            )
        })
        .collect()
}

fn repeated(sent: &[(Purpose, u64)]) -> Vec<u64> {
    let again = sent
        .iter()
        .filter(|(purpose, _)| *purpose == Purpose::Retransmission);
    again.map(|&(_, index)| index).collect()
}

#[test]
fn the_original_of_a_repeated_segment_says_nothing_of_later_ones() {
    // The fourth segment was sent again after five milliseconds: what the acknowledgement echoes is its own age or the original's.
    for (age, lost) in [(104, vec![]), (105, vec![10])] {
        let (mut script, left) = ten_in_flight(true);
        let at = |index| at(index, true);
        script.run_for(100 * MS);
        script.inject(script.sack(1, &[(at(1), at(4))]));
        assert_eq!(
            sent(&mut script, true),
            [(Purpose::Retransmission, 0), (Purpose::Data, 10)]
        );
        script.run_for(5 * MS);
        script.inject(script.sack(1, &[(at(1), at(4)), (at(7), at(10))]));
        assert_eq!(repeated(&sent(&mut script, true)), [4, 5, 6]);
        script.run_for(105 * MS);
        let mut ack = script.ack(at(5));
        let echo = (left / MS) as u32 + 1 + age;
        ack.timestamps = ack.timestamps.map(|(value, _)| (value, echo));
        script.inject(ack);
        assert_eq!(repeated(&sent(&mut script, true)), lost, "{age} ms");
    }
}

/// Ten segments in flight, another as a probe, and the first sent again after a timeout.
fn timed_out() -> Script {
    let (mut script, _) = ten_in_flight(false);
    script.run_for(600 * MS);
    assert_eq!(
        sent(&mut script, false),
        [(Purpose::Data, 10), (Purpose::Retransmission, 0)]
    );
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 1);
    assert_eq!(script.connection.paths()[0].state, CaState::Loss);
    script
}

#[test]
fn new_data_follows_the_first_acknowledgement_after_a_timeout() {
    let mut script = timed_out();
    script.inject(script.ack(at(1, false)));
    assert_eq!(
        sent(&mut script, false),
        [(Purpose::Data, 11), (Purpose::Data, 12)]
    );
}

#[test]
fn without_new_data_what_is_lost_follows() {
    let mut script = Script::connected(&tcp(), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(10 * 1460);
    script.run_for(600 * MS);
    script.drain();
    script.inject(script.ack(at(1, false)));
    assert_eq!(repeated(&sent(&mut script, false)), [1, 2]);
}

#[test]
fn originals_that_arrive_undo_the_timeout() {
    let mut script = timed_out();
    script.inject(script.ack(at(1, false)));
    script.drain();
    script.inject(script.ack(at(2, false)));
    assert_eq!(repeated(&sent(&mut script, false)), [0; 0]);
    assert_eq!(script.counter(Mib::TcpExtTCPSpuriousRTOs), 1);
    assert_eq!(script.connection.paths()[0].state, CaState::Open);
    assert!(script.cwnd() >= 10, "{}", script.cwnd());
}

#[test]
fn a_duplicate_after_new_data_proves_the_timeout() {
    let mut script = timed_out();
    script.inject(script.ack(at(1, false)));
    script.drain();
    script.inject(script.sack(at(1, false), &[(at(11, false), at(12, false))]));
    assert_eq!(repeated(&sent(&mut script, false)), [1]);
    assert_eq!(script.counter(Mib::TcpExtTCPSpuriousRTOs), 0);
    assert_eq!(script.connection.paths()[0].state, CaState::Loss);
}

#[test]
fn what_was_sent_just_before_a_timeout_is_not_lost() {
    let mut script = Script::connected(&tcp(), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(1460);
    script.run_for(100 * MS);
    script.inject(script.ack(at(1, false)));
    script.write(1460);
    script.drain();
    script.run_for(450 * MS);
    assert_eq!(repeated(&sent(&mut script, false)), [1]);
    script.write(1460);
    script.run_for(60 * MS);
    assert_eq!(
        sent(&mut script, false),
        [(Purpose::Data, 2), (Purpose::Retransmission, 1)]
    );
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 1);
    script.inject(script.ack(at(2, false)));
    assert_eq!(repeated(&sent(&mut script, false)), [0; 0]);
}

#[test]
fn what_the_peer_had_and_discarded_is_sent_again() {
    let mut script = Script::connected(&tcp(), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(10 * 1460);
    script.drain();
    script.run_for(100 * MS);
    script.inject(script.sack(1, &[(1, at(10, false))]));
    assert_eq!(repeated(&sent(&mut script, false)), [0; 0]);
    script.run_for(500 * MS);
    assert_eq!(repeated(&sent(&mut script, false)), [0]);
    script.inject(script.ack(at(1, false)));
    assert_eq!(repeated(&sent(&mut script, false)), [1, 2]);
    script.inject(script.ack(at(3, false)));
    assert_eq!(repeated(&sent(&mut script, false)), [3, 4, 5, 6]);
    script.inject(script.ack(at(10, false)));
    assert_eq!(script.connection.paths()[0].in_flight, 0);
}

#[test]
fn duplicates_of_everything_undo_the_recovery_that_goes_on() {
    let (mut script, _) = ten_in_flight(false);
    let at = |index| at(index, false);
    script.run_for(100 * MS);
    script.inject(script.sack(1, &[(at(1), at(4))]));
    assert_eq!(repeated(&sent(&mut script, false)), [0]);
    script.inject(script.sack(at(4), &[(1, at(1))]));
    assert_eq!(script.counter(Mib::TcpExtTCPDSACKUndo), 1);
    assert!(script.connection.paths()[0].state < CaState::Recovery);
    assert!(script.cwnd() >= 10, "{}", script.cwnd());
}

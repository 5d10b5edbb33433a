//! A full queue of the own host, in the profiles that follow Linux (net/ipv4/tcp_output.c `tcp_write_xmit`, `__tcp_transmit_skb`,
//! `tcp_send_probe0`; net/ipv4/tcp_input.c `tcp_enter_cwr`).
//!
//! | rule | test |
//! |---|---|
//! | the segment stays unsent, and the window shrinks without a loss | `what_the_queue_refused_leaves_later_and_only_once` |
//! | only the first refusal of a window reduces it | `a_window_is_reduced_once` |
//! | an early drop of RED's counts as sent | `a_drop_that_is_not_reported_as_one_is_repaired_as_a_loss` |
//! | what was taken back does not count as sent | `what_was_taken_back_is_not_sent` |
//! | a retransmission that is refused is as lost as before | `a_refused_retransmission_is_repeated` |
//! | with nothing in flight a timer tries again | `an_empty_flight_is_probed` |
//! | the FIN waits like data | `a_refused_fin_is_sent_again` |
//! | profile `rfc` takes it for a loss like any other | `the_rfcs_know_no_queue_of_the_host` |

use polypath_transport::{EventKind, Mib, Profile};
use polypath_wire::tcp::Flags;

use crate::common::script::{Peer, Script};
use crate::common::{MS, SECOND, tcp, with_profile};

const MSS: u64 = 1460;

fn connected(profile: Profile) -> Script {
    let mut script = Script::connected(&with_profile(profile, tcp()), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script
}

/// The queue refuses the segment that begins at `seq`.
fn refuse(script: &mut Script, seq: u64) {
    tell(script, seq, false);
}

fn tell(script: &mut Script, seq: u64, sent: bool) {
    let seq = script.isn.wrapping_add(seq as u32);
    let now = script.now;
    script.connection.on_local_drop(0, seq, sent, now);
    script.run_until(now);
}

fn reductions(script: &Script) -> usize {
    let local = |event: &&polypath_transport::Event| event.kind == EventKind::LocalCongestion(0);
    script.events.iter().filter(local).count()
}

/// The initial window was written and all from its `taken`-th segment on refused.
fn refused_from(profile: Profile, taken: u64) -> Script {
    let mut script = connected(profile);
    script.write(20 * MSS);
    assert_eq!(script.drain().len(), 10);
    refuse(&mut script, 1 + taken * MSS);
    script.expect_nothing();
    script
}

/// Observers ask after a call which of its segments are to be shown.
#[test]
fn what_was_taken_back_is_not_sent() {
    let mut script = connected(Profile::Linux);
    script.write(20 * MSS);
    let segments: Vec<_> = script.drain().into_iter().map(|it| it.segment).collect();
    let acknowledgement = script.ack(1);
    refuse(&mut script, 1 + 4 * MSS);
    let subflows = script.connection.subflows();
    let sent = |segment| subflows[0].socket().has_sent(segment);
    let counted: Vec<bool> = segments.iter().map(sent).collect();
    assert_eq!(counted, (0..10).map(|it| it < 4).collect::<Vec<_>>());
    let empty = polypath_transport::Segment {
        seq: segments[4].seq,
        ..acknowledgement
    };
    assert!(sent(&empty));
}

#[test]
fn what_the_queue_refused_leaves_later_and_only_once() {
    for profile in [Profile::MptcpOrg, Profile::Linux] {
        let mut script = refused_from(profile, 4);
        let socket = &script.connection.subflows()[0].socket();
        assert_eq!(socket.totals().sent, 4 * MSS);
        assert_eq!(script.connection.paths()[0].in_flight, 4);
        // What was attempted counts as sent, what was to follow does not: third ACK, four segments, one attempt.
        assert_eq!(script.counter(Mib::TcpOutSegs), 7);
        assert_eq!(script.connection.paths()[0].ssthresh, 5);
        script.run_for(100 * MS);
        // Proportional reduction: for two that arrived the first may leave.
        script.inject(script.ack(1 + 2 * MSS));
        let mut next = 4;
        for sent in script.drain() {
            assert_eq!(script.relative(&sent.segment), 1 + next * MSS);
            next += 1;
        }
        assert!(next > 4, "{profile:?}: the acknowledgement lets it go on");
        for round in 0..40 {
            script.run_for(100 * MS);
            let acknowledged = script.ack(1 + next * MSS);
            script.inject(acknowledged);
            for sent in script.drain() {
                assert_eq!(script.relative(&sent.segment), 1 + next * MSS, "{round}");
                next += 1;
            }
        }
        assert_eq!(next, 20, "{profile:?}");
        assert_eq!(
            script.connection.subflows()[0].socket().totals().sent,
            20 * MSS
        );
        assert_eq!(script.counter(Mib::TcpRetransSegs), 0);
        assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0);
        assert!(!script.happened(|kind| matches!(kind, EventKind::Loss(_))));
        assert_eq!(reductions(&script), 1);
    }
}

#[test]
fn a_window_is_reduced_once() {
    let mut script = refused_from(Profile::MptcpOrg, 6);
    script.run_for(100 * MS);
    script.inject(script.ack(1 + 3 * MSS));
    let again = script.expect();
    assert_eq!(script.relative(&again.segment), 1 + 6 * MSS);
    script.drain();
    refuse(&mut script, 1 + 6 * MSS);
    assert_eq!(reductions(&script), 1);
    assert_eq!(script.connection.paths()[0].ssthresh, 5);
    assert_eq!(script.connection.paths()[0].in_flight, 3);
}

#[test]
fn a_drop_that_is_not_reported_as_one_is_repaired_as_a_loss() {
    let mut script = connected(Profile::Linux);
    script.write(10 * MSS);
    assert_eq!(script.drain().len(), 10);
    tell(&mut script, 1, true);
    assert_eq!(script.connection.paths()[0].in_flight, 10);
    script.run_for(100 * MS);
    for end in 2..=5 {
        script.inject(script.sack(1, &[(1 + MSS, 1 + end * MSS)]));
    }
    script.expect_data(1, 1460);
    assert_eq!(reductions(&script), 1);
    assert_eq!(script.counter(Mib::TcpRetransSegs), 1);
}

#[test]
fn a_refused_retransmission_is_repeated() {
    let mut script = connected(Profile::Linux);
    script.write(10 * MSS);
    script.drain();
    script.run_for(100 * MS);
    script.inject(script.sack(1, &[(1 + MSS, 1 + 5 * MSS)]));
    script.expect_data(1, 1460);
    let in_flight = script.connection.paths()[0].in_flight;
    refuse(&mut script, 1);
    assert_eq!(script.connection.paths()[0].in_flight, in_flight - 1);
    script.run_for(10 * MS);
    script.inject(script.sack(1, &[(1 + MSS, 1 + 6 * MSS)]));
    script.expect_data(1, 1460);
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0);
}

#[test]
fn an_empty_flight_is_probed() {
    let mut script = refused_from(Profile::Linux, 0);
    let begin = script.now;
    script.run_until(begin + 190 * MS);
    script.expect_nothing();
    script.run_until(begin + 310 * MS);
    script.expect_data(1, 1460);
    script.drain();
    refuse(&mut script, 1);
    let second = script.now;
    script.run_until(second + 480 * MS);
    script.expect_nothing();
    script.run_until(second + 510 * MS);
    script.expect_data(1, 1460);
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0);
    // A queue that never has room ends the connection as a peer does that never answers.
    for _ in 0..20 {
        script.drain();
        refuse(&mut script, 1);
        script.run_for(SECOND);
    }
    assert!(script.happened(|kind| matches!(kind, EventKind::ConnectionClosed(_))));
}

#[test]
fn a_refused_fin_is_sent_again() {
    for (data, profile) in [
        (0, Profile::MptcpOrg),
        (0, Profile::Linux),
        (3, Profile::MptcpOrg),
        (3, Profile::Linux),
    ] {
        let mut script = connected(profile);
        script.write((5 + data) * MSS);
        script.close();
        let all = script.drain();
        assert!(
            all.last()
                .is_some_and(|sent| sent.segment.flags.contains(Flags::FIN))
        );
        refuse(&mut script, 1 + 5 * MSS);
        script.run_for(100 * MS);
        script.inject(script.ack(1 + 5 * MSS));
        let mut end = 1 + 5 * MSS;
        let mut fin = false;
        for _ in 0..10 {
            for sent in script.drain() {
                assert_eq!(script.relative(&sent.segment), end, "{data} {profile:?}");
                end += u64::from(sent.segment.payload.len);
                fin = sent.segment.flags.contains(Flags::FIN);
            }
            script.run_for(100 * MS);
            let acknowledged = script.ack(end + u64::from(fin));
            script.inject(acknowledged);
        }
        assert!(fin, "{data} {profile:?}");
        assert_eq!(end, 1 + (5 + data) * MSS);
        assert_eq!(script.counter(Mib::TcpRetransSegs), 0);
    }
}

#[test]
fn the_rfcs_know_no_queue_of_the_host() {
    let mut script = refused_from(Profile::Rfc, 4);
    assert_eq!(
        script.connection.subflows()[0].socket().totals().sent,
        10 * MSS
    );
    assert_eq!(reductions(&script), 0);
    script.run_for(100 * MS);
    script.inject(script.ack(1 + 4 * MSS));
    script.drain();
    script.run_for(SECOND);
    assert!(script.counter(Mib::TcpRetransSegs) > 0);
}

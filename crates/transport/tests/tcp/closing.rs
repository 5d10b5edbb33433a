//! Closing and resets (RFC 9293 sections 3.6 and 3.10.7.4, RFC 5961 sections 3 and 4).
//!
//! | rule | test |
//! |---|---|
//! | active close | `fin_wait_1_fin_wait_2_time_wait`, `fin_and_its_ack_in_one_segment` |
//! | passive close | `close_wait_last_ack_closed`, `data_still_flows_in_close_wait`, `data_still_arrives_in_fin_wait_2` |
//! | simultaneous close | `both_fins_cross` |
//! | lost and early FINs | `a_lost_fin_is_repeated`, `a_fin_waits_for_the_data_before_it`, `nothing_follows_a_fin` |
//! | Linux `tcp_send_fin` | `a_fin_rides_on_data_that_waits`, `a_fin_is_repeated_with_its_data`, `a_sack_of_its_data_is_one_of_the_fin` |
//! | TIME-WAIT | `time_wait_acknowledges_a_repeated_fin_and_lasts_60_s` |
//! | resets | `a_reset_at_the_expected_number_ends_the_connection`, `a_reset_elsewhere_in_the_window_is_challenged`, `a_reset_outside_the_window_is_ignored`, `a_syn_is_challenged`, `abort_resets`, `abort_before_the_answer_is_silent` |
//! | probe timeout | `a_fin_restarts_the_probe_timeout` |

use polypath_transport::tcp::State;
use polypath_transport::{CloseReason, Mib, Profile};
use polypath_wire::tcp::Flags;

use crate::common::script::{PEER_ISN, Peer, Script};
use crate::common::{Fate, MS, Pair, SECOND, Side, tcp, with_profile};

fn established() -> Script {
    Script::connected(&tcp(), Peer::default(), 20 * MS)
}

fn state(script: &Script) -> State {
    script.connection.subflows()[0].socket().state()
}

#[track_caller]
fn expect_fin(script: &mut Script, seq: u64) {
    let fin = script.expect();
    assert!(fin.segment.flags.contains(Flags::FIN | Flags::ACK));
    assert_eq!(script.relative(&fin.segment), seq);
}

#[test]
fn fin_wait_1_fin_wait_2_time_wait() {
    let mut script = established();
    script.write(100);
    script.close();
    script.expect_data(1, 100);
    expect_fin(&mut script, 101);
    assert_eq!(state(&script), State::FinWait1);
    script.inject(script.ack(102));
    assert_eq!(state(&script), State::FinWait2);
    script.inject(script.fin(1, 102));
    script.expect_ack(2);
    assert_eq!(state(&script), State::TimeWait);
    assert_eq!(script.connection.ended(), Some(CloseReason::Finished));
}

#[test]
fn fin_and_its_ack_in_one_segment() {
    let mut script = established();
    script.close();
    expect_fin(&mut script, 1);
    script.inject(script.fin(1, 2));
    script.expect_ack(2);
    assert_eq!(state(&script), State::TimeWait);
}

#[test]
fn close_wait_last_ack_closed() {
    let mut script = established();
    script.inject(script.fin(1, 1));
    script.expect_ack(2);
    assert_eq!(state(&script), State::CloseWait);
    assert!(script.connection.at_end());
    script.close();
    expect_fin(&mut script, 1);
    assert_eq!(state(&script), State::LastAck);
    script.inject(script.ack_at(2, 2));
    assert_eq!(state(&script), State::Closed);
    assert_eq!(script.connection.ended(), Some(CloseReason::Finished));
    assert!(script.at_rest());
}

#[test]
fn data_still_flows_in_close_wait() {
    let mut script = established();
    script.inject(script.fin(1, 1));
    script.expect_ack(2);
    script.write(5000);
    script.expect_data(1, 1460);
    assert_eq!(state(&script), State::CloseWait);
}

#[test]
fn data_still_arrives_in_fin_wait_2() {
    let mut script = established();
    script.close();
    expect_fin(&mut script, 1);
    script.inject(script.data(1, 1000, 2));
    script.expect_ack(1001);
    assert_eq!(state(&script), State::FinWait2);
    assert_eq!(script.read(5000), 1000);
    assert!(!script.connection.at_end());
}

#[test]
fn both_fins_cross() {
    let mut script = established();
    script.close();
    expect_fin(&mut script, 1);
    script.inject(script.fin(1, 1));
    script.expect_ack(2);
    assert_eq!(state(&script), State::Closing);
    assert_eq!(script.connection.ended(), None);
    script.inject(script.ack_at(2, 2));
    assert_eq!(state(&script), State::TimeWait);
    assert_eq!(script.connection.ended(), Some(CloseReason::Finished));

    let mut pair = Pair::new(&tcp(), &[10 * MS]);
    pair.run_for(SECOND);
    pair.close(Side::Client);
    pair.close(Side::Server);
    assert!(pair.run_to_end(2 * SECOND));
}

#[test]
fn a_lost_fin_is_repeated() {
    let mut script = established();
    script.close();
    expect_fin(&mut script, 1);
    expect_fin(&mut script, 1);
    assert!(script.now < SECOND);
    script.inject(script.ack(2));
    assert_eq!(state(&script), State::FinWait2);
    // The FIN is at most probed or timed out, never both at once, and then silent.
    script.run_for(10 * SECOND);
    script.expect_nothing();
}

#[test]
fn a_fin_waits_for_the_data_before_it() {
    let mut script = established();
    let mut last = script.data(1001, 500, 1);
    last.flags |= Flags::FIN;
    script.inject(last);
    script.expect_ack(1);
    assert_eq!(state(&script), State::Established);
    script.inject(script.data(1, 1000, 1));
    script.expect_ack(1502);
    assert_eq!(state(&script), State::CloseWait);
    assert_eq!(script.read(5000), 1500);
    assert!(script.connection.at_end());
}

/// Twelve segments and a rest, closed when ten have left: the first eleven were acknowledged, and the rest left with its FIN.
fn riding(profile: Profile) -> Script {
    let mut script = Script::connected(&with_profile(profile, tcp()), Peer::default(), 20 * MS);
    script.inject(script.ack(1));
    script.write(11 * MSS + 500);
    script.close();
    for nth in 0..10 {
        let sent = script.expect_data(1 + nth * MSS, MSS as u32);
        assert!(!sent.segment.flags.contains(Flags::FIN));
    }
    script.expect_nothing();
    assert_eq!(state(&script), State::Established);
    script.run_for(20 * MS);
    script.inject(script.ack(1 + 10 * MSS));
    script.expect_data(1 + 10 * MSS, MSS as u32);
    script
}

const MSS: u64 = 1460;
const REST: u64 = 1 + 11 * MSS;
const END: u64 = REST + 500;

#[test]
fn a_fin_rides_on_data_that_waits() {
    for (profile, rides) in [(Profile::Linux, true), (Profile::Rfc, false)] {
        let mut script = riding(profile);
        let rest = script.expect_data(REST, 500).segment;
        assert_eq!(rest.flags.contains(Flags::FIN), rides, "{profile:?}");
        if !rides {
            expect_fin(&mut script, END);
        }
        script.expect_nothing();
        script.inject(script.ack(END));
        assert_eq!(state(&script), State::FinWait1);
        script.inject(script.ack(END + 1));
        assert_eq!(state(&script), State::FinWait2);
        script.inject(script.fin(1, END + 1));
        script.expect_ack(2);
        assert_eq!(script.connection.ended(), Some(CloseReason::Finished));
    }
}

#[test]
fn a_fin_is_repeated_with_its_data() {
    let mut script = riding(Profile::Linux);
    script.expect_data(REST, 500);
    script.inject(script.ack(REST));
    script.run_for(SECOND);
    let again = script.expect_data(REST, 500).segment;
    assert!(again.flags.contains(Flags::FIN), "{again:?}");
    script.drain();
    script.inject(script.ack(END));
    script.run_for(SECOND);
    let alone = script.drain().remove(0).segment;
    assert_eq!(script.relative(&alone), END, "{alone:?}");
    assert!(alone.flags.contains(Flags::FIN) && alone.payload.len == 0);
}

/// Whether or not the peer counts the FIN in.
#[test]
fn a_sack_of_its_data_is_one_of_the_fin() {
    for end in [END, END + 1] {
        let mut script = riding(Profile::Linux);
        script.expect_data(REST, 500);
        script.inject(script.sack(REST - MSS, &[(REST, end)]));
        script.run_for(100 * MS);
        let again: Vec<u64> = script
            .drain()
            .iter()
            .map(|sent| script.relative(&sent.segment))
            .collect();
        assert_eq!(again, [REST - MSS], "{end}");
    }
}

#[test]
fn time_wait_acknowledges_a_repeated_fin_and_lasts_60_s() {
    let mut script = established();
    script.close();
    expect_fin(&mut script, 1);
    script.inject(script.fin(1, 2));
    script.expect_ack(2);
    script.run_for(30 * SECOND);
    script.inject(script.fin(1, 2));
    script.expect_ack(2);
    let again = script.now;
    script.run_until(again + 60 * SECOND - 1);
    assert_eq!(state(&script), State::TimeWait);
    script.run_until(again + 60 * SECOND);
    assert_eq!(state(&script), State::Closed);
    script.expect_nothing();
}

#[test]
fn a_lost_last_ack_is_repeated_from_time_wait() {
    let mut pair = Pair::new(&tcp(), &[10 * MS]);
    let mut dropped = false;
    pair.hook(move |packet| {
        let last = packet.from == Side::Client
            && packet.segment.flags == Flags::ACK
            && packet.at > 2 * SECOND;
        if last && !dropped {
            dropped = true;
            return Fate::Drop;
        }
        Fate::Pass
    });
    pair.run_for(SECOND);
    pair.close(Side::Client);
    pair.run_for(SECOND + MS);
    pair.close(Side::Server);
    assert!(pair.run_to_end(4 * SECOND));
    assert_eq!(
        pair.connection(Side::Server).ended(),
        Some(CloseReason::Finished)
    );
}

#[test]
fn a_reset_at_the_expected_number_ends_the_connection() {
    let mut script = established();
    script.inject(script.data(1, 1000, 1));
    script.expect_ack(1001);
    script.inject(script.reset(1001));
    assert_eq!(script.connection.ended(), Some(CloseReason::Reset));
    assert_eq!(script.counter(Mib::TcpEstabResets), 1);
    script.expect_nothing();
}

/// RFC 5961 section 3.2.
#[test]
fn a_reset_elsewhere_in_the_window_is_challenged() {
    let mut script = established();
    script.inject(script.reset(500));
    assert_eq!(script.connection.ended(), None);
    script.expect_ack(1);
}

#[test]
fn a_reset_outside_the_window_is_ignored() {
    let mut script = established();
    for seq in [0, 10_000_000] {
        script.inject(script.reset(seq));
        assert_eq!(script.connection.ended(), None);
        script.expect_nothing();
    }
}

/// Linux `tcp_reset_check`: who sends one may not count its FIN any more.
#[test]
fn a_reset_at_the_number_of_the_fin_ends_what_is_half_open() {
    for (profile, ended) in [
        (Profile::Linux, Some(CloseReason::Reset)),
        (Profile::Rfc, None),
    ] {
        let config = with_profile(profile, tcp());
        let mut script = Script::connected(&config, Peer::default(), 100 * MS);
        script.inject(script.fin(1, 1));
        script.inject(script.reset(1));
        assert_eq!(script.connection.ended(), ended, "{profile:?}");
    }
}

/// RFC 5961 section 4.2.
#[test]
fn a_syn_is_challenged() {
    let mut script = established();
    script.inject(script.data(1, 1000, 1));
    script.expect_ack(1001);
    for seq in [0, 1001, 5000] {
        let mut syn = Script::syn(&script.peer, Flags::SYN, 1);
        syn.seq = PEER_ISN.wrapping_add(seq);
        script.inject(syn.clone());
        script.expect_ack(1001);
        // Twice a second at most, so that two ends do not challenge each other for ever.
        script.inject(syn);
        script.expect_nothing();
        assert_eq!(state(&script), State::Established);
        script.run_for(500 * MS);
    }
    assert_eq!(script.counter(Mib::TcpExtTCPSYNChallenge), 6);
    assert_eq!(script.counter(Mib::TcpExtTCPChallengeACK), 3);
}

#[test]
fn abort_resets() {
    let mut script = established();
    script.connection.abort(script.now);
    let reset = script
        .connection
        .transmits()
        .pop()
        .expect("a reset")
        .segment;
    assert!(reset.flags.contains(Flags::RST));
    assert_eq!(script.relative(&reset), 1);
    assert_eq!(script.connection.ended(), Some(CloseReason::Aborted));
}

/// RFC 9293 section 3.10.5: in SYN-SENT there is nothing to reset.
#[test]
fn abort_before_the_answer_is_silent() {
    let mut script = Script::client(&tcp(), Peer::default());
    script.expect();
    script.connection.abort(script.now);
    assert!(script.drain().is_empty());
    assert_eq!(script.connection.ended(), Some(CloseReason::Aborted));
}

/// RFC 8985 section 7.2 arms the probe timeout at each transmission, a FIN's too (Linux `tcp_write_xmit`): two round trips after the FIN
/// and not after the data before it.
#[test]
fn a_fin_restarts_the_probe_timeout() {
    let mut script = established();
    script.write(3_000);
    script.run_for(15 * MS);
    script.close();
    script.drain();
    let sent = script.now;
    script.run_until(sent + 60 * MS);
    let probe = script.expect();
    assert!(probe.segment.flags.contains(Flags::FIN));
    assert_eq!(probe.at, sent + 42 * MS);
}

/// RFC 9293 section 3.10.7.4, seventh step: after the peer's FIN there is no text.
#[test]
fn nothing_follows_a_fin() {
    let mut script = established();
    script.inject(script.fin(1, 1));
    script.expect_ack(2);
    script.inject(script.data(2, 100, 1));
    script.expect_ack(2);
    assert_eq!(script.connection.available(), 0);
    assert!(script.connection.at_end());
}

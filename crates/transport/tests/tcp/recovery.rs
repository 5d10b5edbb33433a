//! Loss detection and recovery.
//!
//! | rule | test |
//! |---|---|
//! | RFC 8985 section 6.2, fast retransmit on SACK | `three_sacked_segments_mean_loss`, `one_sacked_segment_waits_for_the_reordering_window`, `a_lost_retransmission_is_sent_again` |
//! | RFC 6582 | `newreno_repeats_on_the_third_duplicate`, `newreno_repeats_the_next_hole_on_a_partial_ack`, `newreno_repeats_nothing_for_duplicates_of_its_recovery_point` |
//! | RFC 5681 sections 2 and 3.1, without SACK | `a_fin_is_no_duplicate`, `duplicates_after_a_timeout_let_nothing_leave` |
//! | RFC 3042 | `limited_transmit_sends_on_the_first_two_duplicates` |
//! | RFC 5681 section 3.1, equation 4 | `a_loss_halves_what_is_in_flight` |
//! | RFC 6937 | `prr_sends_in_proportion_to_what_arrives`, `prr_measures_what_was_in_flight` |
//! | RFC 6675 section 5 | `classic_recovery_halves_the_window_at_once`, `a_recovery_within_a_reduction_ends_with_it_upstream` |
//! | RFC 8985 section 7 | `a_tail_loss_is_probed_after_two_round_trips`, `a_probe_is_new_data_where_there_is_some`, `a_probe_repeats_where_the_peers_window_is_full`, `a_segment_that_a_probe_repeats_takes_no_room_in_the_window`, `a_probe_that_repairs_a_loss_reduces_the_window`, `a_congestion_control_learns_of_a_loss_that_a_probe_repairs` |
//! | RFC 6298 | `the_timeout_is_srtt_plus_four_deviations`, `a_loss_on_a_steady_round_trip_is_repaired_before_the_timeout`, `what_waited_for_a_repair_says_nothing_about_the_round_trip`, `timeouts_double_up_to_the_maximum`, `the_timeout_after_a_probe_has_the_same_maximum`, `too_many_timeouts_end_the_connection`, `a_timeout_leaves_a_window_of_one` |
//! | RFC 3522 | `a_spurious_timeout_is_undone_by_timestamps` |
//! | RFC 4015 section 3.2 | `what_a_mark_took_is_not_given_back`, `a_mark_in_the_midst_of_a_recovery_keeps_the_window`, `a_mark_after_a_timeout_keeps_the_window` |
//! | RFC 3708 | `a_spurious_recovery_is_undone_by_dsack`, `what_the_network_repeats_is_delivered_once` |
//! | RFC 3168 sections 6.1.2 and 6.1.5 | `an_ecn_echo_reduces_once_a_window`, `a_mark_halves_the_window`, `a_reduction_for_a_loss_is_told`, `a_reduction_for_a_timeout_is_told`, `a_retransmission_tells_of_no_reduction`, `what_is_sent_again_may_be_dropped_but_not_marked` |

use polypath_transport::path::CaState;
use polypath_transport::{
    CloseReason, Codepoint, Config, EventKind, Limits, Mib, Profile, Purpose, WindowReduction,
};
use polypath_wire::tcp::Flags;

use crate::common::script::{Peer, Script};
use crate::common::{MS, SECOND, tcp, with_profile};

const MSS: u64 = 1460;

/// The sequence number at which segment `index` begins.
fn at(index: u64) -> u64 {
    1 + index * MSS
}

/// A sender with ten segments in flight, 100 ms of RTT and much to send.
fn ten_in_flight(config: &Config, peer: Peer) -> Script {
    let mut script = Script::connected(config, peer, 100 * MS);
    script.inject(script.ack(1));
    script.write(1_000_000);
    assert_eq!(script.drain().len(), 10);
    script.run_for(100 * MS);
    script
}

fn retransmitted(script: &mut Script) -> Vec<u64> {
    let sent = script.drain();
    sent.iter()
        .filter(|sent| sent.purpose == Purpose::Retransmission)
        .map(|sent| (script.relative(&sent.segment) - 1) / MSS)
        .collect()
}

#[test]
fn three_sacked_segments_mean_loss() {
    let mut script = ten_in_flight(&tcp(), Peer::default());
    script.inject(script.sack(1, &[(at(1), at(2))]));
    script.inject(script.sack(1, &[(at(1), at(3))]));
    assert_eq!(retransmitted(&mut script), [0u64; 0]);
    script.inject(script.sack(1, &[(at(1), at(4))]));
    assert_eq!(retransmitted(&mut script), [0]);
    assert_eq!(script.connection.paths()[0].state, CaState::Recovery);
    assert_eq!(script.connection.paths()[0].ssthresh, 5);
    assert_eq!(script.counter(Mib::TcpExtTCPSackRecovery), 1);
    assert!(script.happened(|kind| *kind == EventKind::Loss(0)));
}

#[test]
fn one_sacked_segment_waits_for_the_reordering_window() {
    let mut script = ten_in_flight(&tcp(), Peer::default());
    let start = script.now;
    script.inject(script.sack(1, &[(at(1), at(2))]));
    script.drain();
    script.run_for(20 * MS);
    assert_eq!(retransmitted(&mut script), [0u64; 0]);
    // A quarter of the minimum RTT after the SACK, and the two milliseconds that Linux adds.
    let repeat = script.expect();
    assert_eq!(repeat.purpose, Purpose::Retransmission);
    assert_eq!(repeat.at - start, 27 * MS);
}

#[test]
fn a_lost_retransmission_is_sent_again() {
    let mut script = ten_in_flight(&tcp(), Peer::default());
    script.inject(script.sack(1, &[(at(1), at(4))]));
    assert_eq!(retransmitted(&mut script), [0]);
    script.inject(script.sack(1, &[(at(1), at(10))]));
    script.drain();
    script.run_for(100 * MS);
    // Segments sent after the retransmission are SACKed: it was lost too.
    let sent = script.connection.paths()[0].in_flight;
    assert!(sent > 1, "something new must have left");
    script.inject(script.sack(1, &[(at(1), at(11))]));
    script.run_for(30 * MS);
    assert_eq!(retransmitted(&mut script), [0]);
    assert_eq!(script.counter(Mib::TcpExtTCPLostRetransmit), 1);
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0);
}

fn without_sack() -> Peer {
    Peer {
        sack: false,
        ..Peer::default()
    }
}

#[test]
fn newreno_repeats_on_the_third_duplicate() {
    let mut script = ten_in_flight(&tcp(), without_sack());
    script.inject(script.ack(1));
    script.inject(script.ack(1));
    assert_eq!(retransmitted(&mut script), [0u64; 0]);
    script.inject(script.ack(1));
    assert_eq!(retransmitted(&mut script), [0]);
    assert_eq!(script.counter(Mib::TcpExtTCPRenoRecovery), 1);
    assert_eq!(script.connection.paths()[0].ssthresh, 5);
}

/// Two duplicate ACKs stood for two of the three segments that an ACK covers then, so that it is one in slow start
/// (`tcp_remove_reno_sacks`); RFC 5681 section 3.1 knows no such rule.
#[test]
fn without_sack_a_duplicate_counts_once() {
    for (profile, cwnd) in [(Profile::Linux, 11), (Profile::Rfc, 13)] {
        let mut script = ten_in_flight(&with_profile(profile, tcp()), without_sack());
        script.inject(script.ack(1));
        script.inject(script.ack(1));
        script.inject(script.ack(at(3)));
        assert_eq!(script.cwnd(), cwnd, "{profile:?}");
    }
}

#[test]
fn newreno_repeats_the_next_hole_on_a_partial_ack() {
    let mut script = ten_in_flight(&tcp(), without_sack());
    for _ in 0..5 {
        script.inject(script.ack(1));
    }
    script.drain();
    script.run_for(100 * MS);
    script.inject(script.ack(at(4)));
    assert_eq!(retransmitted(&mut script), [4]);
    assert_eq!(script.connection.paths()[0].state, CaState::Recovery);
    script.run_for(100 * MS);
    let (_, unsent) = script.connection.send_queue();
    let everything = 1 + (1_000_000 - unsent).min(script.connection.written() - unsent);
    script.inject(script.ack(everything));
    assert_eq!(script.connection.paths()[0].state, CaState::Open);
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0);
    assert_eq!(script.counter(Mib::TcpExtTCPRenoRecovery), 1);
}

#[test]
fn limited_transmit_sends_on_the_first_two_duplicates() {
    for (peer, blocks) in [(without_sack(), false), (Peer::default(), true)] {
        let mut script = ten_in_flight(&tcp(), peer);
        for duplicate in 1..=2 {
            let end = at(1 + duplicate);
            let segment = if blocks {
                script.sack(1, &[(at(1), end)])
            } else {
                script.ack(1)
            };
            script.inject(segment);
            script.expect_data(at(9 + duplicate), 1460);
            script.expect_nothing();
        }
    }
}

#[test]
fn prr_sends_in_proportion_to_what_arrives() {
    let mut script = ten_in_flight(&tcp(), Peer::default());
    let mut sent = 0;
    for sacked in 2..=10 {
        script.inject(script.sack(1, &[(at(1), at(sacked))]));
        let now = script.drain();
        if sacked > 3 {
            assert!(
                now.len() <= 1,
                "a burst of {} at segment {sacked}",
                now.len()
            );
            sent += now.len();
        }
    }
    // Seven of twelve segments (limited transmit sent two) arrived in recovery: half as many, rounded up, leave.
    assert!((3..=4).contains(&sent), "{sent}");
    script.run_for(100 * MS);
    script.inject(script.ack(at(12)));
    assert_eq!(script.connection.paths()[0].state, CaState::Open);
    assert_eq!(script.connection.paths()[0].ssthresh, 5);
    assert!((5..=6).contains(&script.cwnd()), "{}", script.cwnd());
}

/// RFC 6675 section 5, RFC 6582 section 3.2: ten segments and two by limited transmit are in flight, the window is five, so that six must
/// have arrived before the next one leaves; then one leaves for each that arrives.
#[test]
fn classic_recovery_halves_the_window_at_once() {
    let config = Config {
        recovery: WindowReduction::AtOnce,
        ..tcp()
    };
    for sack in [true, false] {
        let peer = if sack {
            Peer::default()
        } else {
            without_sack()
        };
        let mut script = ten_in_flight(&config, peer);
        let mut sent = Vec::new();
        for arrived in 1..=9 {
            script.inject(match sack {
                true => script.sack(1, &[(at(1), at(1 + arrived))]),
                false => script.ack(1),
            });
            sent.push(script.drain().len());
            if arrived > 3 {
                assert_eq!(script.cwnd(), 5, "SACK: {sack}");
            }
        }
        assert_eq!(sent, [1, 1, 1, 0, 0, 0, 0, 1, 1], "SACK: {sack}");
        script.inject(script.ack(at(10)));
        assert_eq!(script.cwnd(), 5, "SACK: {sack}");
    }
}

/// Linux `tcp_send_loss_probe`, `tcp_rearm_rto`: what is sent behind an unanswered probe has the retransmission timeout count from the oldest segment
/// again, and not from the probe.
#[test]
fn data_behind_a_probe_takes_the_timeout_back_to_the_oldest_segment() {
    let again = |profile| {
        let config = with_profile(profile, tcp());
        let mut script = Script::connected(&config, Peer::default(), 100 * MS);
        script.inject(script.ack(1));
        script.write(2 * MSS);
        script.drain();
        let start = script.now;
        script.expect_data(at(1), 1460);
        script.write(MSS);
        script.expect_data(at(2), 1460);
        let repeat = script.expect_data(1, 1460);
        (repeat.at - start) / MS
    };
    let (here, there) = (again(Profile::Linux), again(Profile::Rfc));
    assert!(here + 100 < there, "{here} and {there} ms");
}

/// Linux `tcp_send_loss_probe` repeats by `__tcp_retransmit_skb`, which leaves `retrans_out` as it is.
#[test]
fn a_segment_that_a_probe_repeats_takes_no_room_in_the_window() {
    let leave = |profile| {
        let config = with_profile(profile, tcp());
        let mut script = Script::connected(&config, Peer::default(), 100 * MS);
        script.inject(script.ack(1));
        script.write(8 * MSS);
        assert_eq!(script.drain().len(), 8);
        script.expect_data(at(7), 1460);
        script.write(4 * MSS);
        assert_eq!(script.cwnd(), 10);
        script.drain().len()
    };
    assert_eq!((leave(Profile::Linux), leave(Profile::Rfc)), (2, 1));
}

#[test]
fn a_tail_loss_is_probed_after_two_round_trips() {
    let mut script = Script::connected(&tcp(), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(2 * MSS);
    script.drain();
    let start = script.now;
    let probe = script.expect_data(at(1), 1460);
    assert_eq!(probe.at - start, 202 * MS);
    assert_eq!(script.counter(Mib::TcpExtTCPLossProbes), 1);
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0);
    // SACK of the probe shows the loss of the first, without a timeout.
    script.run_for(100 * MS);
    script.inject(script.sack(1, &[(at(1), at(2))]));
    let repeat = script.expect_data(1, 1460);
    assert!(repeat.at - probe.at < 300 * MS);
}

/// After a second round trip of 800 ms RTO is 2 s by RFC 6298, and still 2.4 s in Linux, whose variance falls at the end of a round trip.
/// RFC 8985 section 7.2 puts the probe no later than the timeout: that since the oldest segment left in Linux, since the
/// acknowledgement in the RFC.
#[test]
fn new_data_puts_a_probe_off_no_further_than_the_timeout() {
    let at_once = |profile| {
        let mut script =
            Script::connected(&with_profile(profile, tcp()), Peer::default(), 800 * MS);
        script.inject(script.ack(1));
        script.write(2 * MSS);
        script.drain();
        let start = script.now;
        script.run_for(800 * MS);
        script.inject(script.ack(at(1)));
        script.run_for(900 * MS);
        script.write(MSS);
        script.drain();
        let probe = script.expect_data(at(2), 1460);
        assert_eq!(script.counter(Mib::TcpExtTCPLossProbes), 1);
        probe.at - start
    };
    assert_eq!(at_once(Profile::Linux), 2_400 * MS);
    assert_eq!(at_once(Profile::MptcpOrg), 2_400 * MS);
    assert_eq!(at_once(Profile::Rfc), 2_800 * MS);
}

/// Beyond the congestion window, which ten segments fill; with the last of the stream the last segment is repeated.
#[test]
fn a_probe_is_new_data_where_there_is_some() {
    for profile in [Profile::Rfc, Profile::MptcpOrg, Profile::Linux] {
        let config = with_profile(profile, tcp());
        let mut script = Script::connected(&config, Peer::default(), 100 * MS);
        script.inject(script.ack(1));
        script.write(11 * MSS - 460);
        assert_eq!(script.drain().len(), 10);
        let start = script.now;
        let probe = script.expect_data(at(10), 1000);
        assert_eq!(probe.at - start, 202 * MS, "{profile:?}");
        assert_eq!(script.counter(Mib::TcpExtTCPLossProbes), 1);
        assert_eq!(script.cwnd(), 10);
        // Its acknowledgement says nothing of a loss.
        script.run_for(50 * MS);
        script.inject(script.ack(at(11) - 460));
        assert_eq!(script.counter(Mib::TcpExtTCPLossProbeRecovery), 0);
        assert!(script.cwnd() >= 10);
        script.write(2 * MSS);
        assert_eq!(script.drain().len(), 2);
        script.expect_data(at(12) - 460, 1460);
        assert_eq!(script.counter(Mib::TcpExtTCPLossProbes), 2);
    }
}

#[test]
fn a_probe_repeats_where_the_peers_window_is_full() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let peer = Peer {
            window: 4 * 1460,
            ..Peer::default()
        };
        let config = with_profile(profile, tcp());
        let mut script = Script::connected(&config, peer, 100 * MS);
        script.write(20 * MSS);
        assert_eq!(script.drain().len(), 4, "{profile:?}");
        script.expect_data(at(3), 1460);
        assert_eq!(script.counter(Mib::TcpExtTCPLossProbes), 1);
    }
}

/// Behind a box that cuts segments, timeouts may follow each other without a round trip that can be measured in between.
#[test]
fn the_timeout_after_a_probe_has_the_same_maximum() {
    let mut script = ten_in_flight(&tcp(), Peer::default());
    script.run_for(400 * SECOND);
    assert!(script.counter(Mib::TcpExtTCPTimeouts) >= 10);
    script.drain();
    // What acknowledges a repeated segment measures no round trip: the timeout stays backed off.
    script.inject(script.ack(at(11)));
    let sent = script.drain();
    let oldest = script.relative(&sent[0].segment);
    let probes = script.counter(Mib::TcpExtTCPLossProbes);
    script.run_for(SECOND);
    assert_eq!(script.counter(Mib::TcpExtTCPLossProbes), probes + 1);
    let probe = script.drain().pop().expect("a probe was counted");
    let repeat = script.expect_data(oldest, 1460);
    assert_eq!(repeat.at - probe.at, 120 * SECOND);
}

/// Five segments have arrived, the last of them as a tail loss probe.
fn repaired_by_a_probe(config: &Config) -> Script {
    let mut script = Script::connected(config, Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(4 * MSS);
    script.drain();
    script.run_for(100 * MS);
    script.inject(script.ack(at(3)));
    script.expect_data(at(3), 1460);
    script.run_for(50 * MS);
    script.write(MSS);
    script.inject(script.ack(at(4)));
    script.drain();
    script.run_for(100 * MS);
    script.inject(script.ack(at(5)));
    assert_eq!(script.counter(Mib::TcpExtTCPLossProbeRecovery), 1);
    script
}

#[test]
fn a_probe_that_repairs_a_loss_reduces_the_window() {
    for (profile, threshold) in [(Profile::Linux, 5), (Profile::Rfc, 2)] {
        let script = repaired_by_a_probe(&with_profile(profile, tcp()));
        assert_eq!(script.connection.paths()[0].ssthresh, threshold);
        assert_eq!(script.connection.paths()[0].state, CaState::Open);
    }
}

/// Six segments are in flight in a window of ten (equation 4; Linux `tcp_reno_ssthresh`).
fn six_in_flight(profile: Profile) -> Script {
    let mut script = Script::connected(&with_profile(profile, tcp()), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(6 * MSS);
    assert_eq!(script.drain().len(), 6);
    script.run_for(100 * MS);
    script
}

#[test]
fn a_loss_halves_what_is_in_flight() {
    for (profile, threshold) in [
        (Profile::Rfc, 3),
        (Profile::MptcpOrg, 5),
        (Profile::Linux, 5),
    ] {
        let mut script = six_in_flight(profile);
        script.inject(script.sack(1, &[(at(1), at(4))]));
        assert_eq!(retransmitted(&mut script), [0]);
        assert_eq!(script.connection.paths()[0].ssthresh, threshold);

        let mut script = six_in_flight(profile);
        script.run_for(2 * SECOND);
        assert!(script.counter(Mib::TcpExtTCPTimeouts) > 0);
        assert_eq!(script.connection.paths()[0].ssthresh, threshold);
    }
}

/// Twelve in a window of twenty: three arrived, and half of that, rounded up, leaves. In proportion to the window it would be one segment.
#[test]
fn prr_measures_what_was_in_flight() {
    let mut script = Script::connected(&tcp(), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(10 * MSS);
    script.drain();
    script.run_for(100 * MS);
    script.inject(script.ack(at(10)));
    assert_eq!(script.cwnd(), 20);
    script.write(12 * MSS);
    assert_eq!(script.drain().len(), 12);
    script.run_for(100 * MS);
    script.inject(script.sack(at(10), &[(at(11), at(14))]));
    assert_eq!(script.connection.paths()[0].ssthresh, 6);
    assert_eq!(retransmitted(&mut script), [10]);
    script.write(100 * MSS);
    assert_eq!(script.drain().len(), 1);
}

/// RFC 3168 section 6.1.2: a mark halves the window.
#[test]
fn a_mark_halves_the_window() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let config = Config {
            ecn: true,
            ..with_profile(profile, tcp())
        };
        let peer = Peer {
            flags: Flags::ECE,
            ..Peer::default()
        };
        let mut script = Script::connected(&config, peer, 100 * MS);
        script.inject(script.ack(1));
        script.write(6 * MSS);
        script.drain();
        script.run_for(100 * MS);
        let mut echo = script.ack(at(1));
        echo.flags |= Flags::ECE;
        script.inject(echo);
        assert_eq!(script.connection.paths()[0].ssthresh, 5, "{profile:?}");
    }
}

/// Linux `tcp_process_tlp_ack` passes through CWR: OLIA counts its bytes from here.
#[test]
fn a_congestion_control_learns_of_a_loss_that_a_probe_repairs() {
    let mut script = repaired_by_a_probe(&Config {
        congestion: "olia".into(),
        ..tcp()
    });
    script.write(MSS);
    script.run_for(100 * MS);
    script.inject(script.ack(at(6)));
    assert_eq!(script.connection.paths()[0].between_losses, 5 * MSS);
}

#[test]
fn the_timeout_is_srtt_plus_four_deviations() {
    for (profile, timeout) in [(Profile::Rfc, 300), (Profile::Linux, 300)] {
        let config = with_profile(profile, tcp());
        let mut script = Script::connected(&config, without_sack(), 100 * MS);
        script.inject(script.ack(1));
        script.write(100);
        script.expect();
        let repeat = script.expect_data(1, 100);
        assert_eq!(repeat.at, (100 + timeout) * MS, "{profile:?}");
    }
    // The minimum: a floor of the sum in the RFC, of the deviation in Linux.
    for (profile, timeout) in [(Profile::Rfc, 200), (Profile::Linux, 210)] {
        let config = with_profile(profile, tcp());
        let mut script = Script::connected(&config, without_sack(), 10 * MS);
        script.inject(script.ack(1));
        script.write(100);
        script.expect();
        let repeat = script.expect_data(1, 100);
        assert_eq!(repeat.at, (10 + timeout) * MS, "{profile:?}");
    }
}

/// Sections 2.3 and 2.4: once RTTVAR has died away, the least timeout of a second and the clock granularity keep the timeout above the RTT.
/// Linux `tcp_rtt_estimator`: at least the minimum timeout, and twice the first round trip.
#[test]
fn a_path_shows_what_upstream_adds_for_the_timeout() {
    for (profile, rtt, margin) in [
        (Profile::Linux, 40 * MS, 200 * MS),
        (Profile::MptcpOrg, 150 * MS, 300 * MS),
        (Profile::Rfc, 150 * MS, 0),
    ] {
        let config = Config {
            rto_min_ns: 200 * MS,
            ..with_profile(profile, tcp())
        };
        let script = Script::connected(&config, Peer::default(), rtt);
        assert_eq!(script.connection.paths()[0].timeout_margin, margin);
    }
}

#[test]
fn a_loss_on_a_steady_round_trip_is_repaired_before_the_timeout() {
    for rtt in [300 * MS, 1_500 * MS] {
        let config = Config {
            rto_min_ns: Config::default().rto_min_ns,
            rto_initial_ns: 3 * SECOND,
            ..tcp()
        };
        let mut script = Script::connected(&config, Peer::default(), rtt);
        script.inject(script.ack(1));
        let mut end = 1;
        for _ in 0..100 {
            script.write(MSS);
            end += MSS;
            script.run_for(rtt);
            script.inject(script.ack(end));
        }
        script.drain();
        script.write(1_000_000);
        script.run_for(rtt + 10 * MS);
        script.inject(script.sack(end, &[(end + MSS, end + 4 * MSS)]));
        let repeated = retransmitted(&mut script);
        assert_eq!(repeated, [(end - 1) / MSS], "{rtt}");
        script.run_for(rtt + 10 * MS);
        script.inject(script.ack(end + 10 * MSS));
        assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0, "{rtt}");
    }
}

#[test]
fn what_waited_for_a_repair_says_nothing_about_the_round_trip() {
    let mut script = ten_in_flight(&tcp(), without_sack());
    let before = script.connection.paths()[0].srtt;
    script.run_for(250 * MS);
    assert_eq!(retransmitted(&mut script), [0]);
    script.run_for(100 * MS);
    script.inject(script.ack(at(10)));
    assert_eq!(script.connection.paths()[0].srtt, before);
}

#[test]
fn timeouts_double_up_to_the_maximum() {
    let mut script = Script::connected(&tcp(), without_sack(), 100 * MS);
    script.inject(script.ack(1));
    script.write(100);
    let mut last = script.expect().at;
    let mut expected = 300 * MS;
    for _ in 0..13 {
        let sent = script.expect_data(1, 100);
        assert_eq!(sent.at - last, expected);
        last = sent.at;
        expected = (2 * expected).min(120 * SECOND);
    }
}

#[test]
fn too_many_timeouts_end_the_connection() {
    let mut script = Script::connected(
        &Config {
            limits: Limits {
                retries: 4,
                ..Limits::default()
            },
            ..tcp()
        },
        without_sack(),
        100 * MS,
    );
    script.inject(script.ack(1));
    script.write(100);
    script.run_for(60 * SECOND);
    assert_eq!(script.drain().len(), 1 + 4);
    assert_eq!(script.connection.ended(), Some(CloseReason::TimedOut));
    assert!(script.at_rest());
}

#[test]
fn a_timeout_leaves_a_window_of_one() {
    let mut script = ten_in_flight(&tcp(), without_sack());
    script.run_for(250 * MS);
    assert_eq!(retransmitted(&mut script), [0]);
    assert_eq!(
        (script.cwnd(), script.connection.paths()[0].ssthresh),
        (1, 5)
    );
    assert_eq!(script.connection.paths()[0].state, CaState::Loss);
    script.run_for(50 * MS);
    script.inject(script.ack(at(1)));
    assert_eq!(retransmitted(&mut script), [1, 2]);
}

/// A timeout takes all in flight for lost, so that what it sends again starts anew (Linux `tcp_event_data_sent`,
/// `tcp_vegas_cwnd_event_tx_start`).
#[test]
fn vegas_forgets_the_round_trip_at_a_timeout() {
    let config = Config {
        congestion: "vegas".into(),
        ..tcp()
    };
    let mut script = ten_in_flight(&config, without_sack());
    script.inject(script.ack(at(1)));
    script.drain();
    let known = |script: &Script| {
        let variables = script.connection.subflows()[0].socket().observe();
        let base = variables.iter().find(|(name, _)| *name == "base_rtt_ms");
        base.is_some_and(|(_, rtt)| *rtt > 0.0)
    };
    assert!(known(&script));
    script.run_for(2 * SECOND);
    assert!(script.counter(Mib::TcpExtTCPTimeouts) > 0);
    assert!(!known(&script));
}

#[test]
fn a_spurious_timeout_is_undone_by_timestamps() {
    let peer = Peer {
        timestamps: true,
        sack: false,
        ..Peer::default()
    };
    let mut script = Script::connected(&tcp(), peer, 100 * MS);
    script.inject(script.ack(1));
    script.write(1_000_000);
    script.drain();
    script.run_for(50 * MS);
    let mut late = script.ack(1 + 1448);
    script.run_for(400 * MS);
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 1);
    assert_eq!(script.cwnd(), 1);
    // The ACK of the original, delayed on the way.
    late.timestamps = late
        .timestamps
        .map(|(_, echo)| ((script.now / MS) as u32 + 1, echo));
    script.drain();
    script.inject(late);
    assert_eq!(script.counter(Mib::TcpExtTCPLossUndo), 1);
    assert!(script.cwnd() >= 10, "{}", script.cwnd());
    assert_eq!(script.connection.paths()[0].state, CaState::Open);
    assert_eq!(
        script
            .drain()
            .iter()
            .filter(|sent| sent.purpose == Purpose::Retransmission)
            .count(),
        0
    );
}

#[test]
fn a_spurious_recovery_is_undone_by_dsack() {
    let mut script = ten_in_flight(&tcp(), Peer::default());
    script.inject(script.sack(1, &[(at(1), at(4))]));
    assert_eq!(retransmitted(&mut script), [0]);
    // The segment was only late: everything arrives, then the needless copy.
    script.run_for(5 * MS);
    script.inject(script.sack(at(9), &[]));
    script.run_for(100 * MS);
    script.inject(script.sack(at(9), &[(1, at(1))]));
    assert_eq!(script.counter(Mib::TcpExtTCPDSACKRecv), 1);
    script.inject(script.ack(at(12)));
    let undone = script.counter(Mib::TcpExtTCPDSACKUndo) + script.counter(Mib::TcpExtTCPFullUndo);
    assert_eq!(undone, 1);
    assert!(script.cwnd() >= 10, "{}", script.cwnd());
}

#[test]
fn an_ecn_echo_reduces_once_a_window() {
    let peer = Peer {
        flags: Flags::ECE,
        ..Peer::default()
    };
    let mut script = ten_in_flight(&Config { ecn: true, ..tcp() }, peer);
    for acknowledged in 1..=3 {
        let mut echo = script.ack(at(acknowledged));
        echo.flags |= Flags::ECE;
        script.inject(echo);
    }
    assert_eq!(script.connection.paths()[0].state, CaState::Cwr);
    assert_eq!(script.connection.paths()[0].ssthresh, 5);
    script.inject(script.ack(at(10)));
    let told: Vec<_> = script
        .drain()
        .iter()
        .map(|sent| sent.segment.flags.contains(Flags::CWR))
        .collect();
    // RFC 3168 section 6.1.2: CWR on the first new data packet after the reduction, and only there.
    assert_eq!(told.iter().filter(|cwr| **cwr).count(), 1, "{told:?}");
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0);
}

/// Three segments are in flight when the mark is reported, the window may be seven: PRR gives two more (`tcp_cwnd_reduction`).
#[test]
fn the_acknowledgement_that_reports_a_mark_shrinks_the_window() {
    let peer = Peer {
        flags: Flags::ECE,
        ..Peer::default()
    };
    let config = Config {
        ecn: true,
        ..with_profile(Profile::Linux, tcp())
    };
    let mut script = Script::connected(&config, peer, 100 * MS);
    script.inject(script.ack(1));
    script.write(4 * MSS);
    script.run_for(100 * MS);
    let mut echo = script.ack(at(1));
    echo.flags |= Flags::ECE;
    script.inject(echo);
    assert_eq!(script.connection.paths()[0].state, CaState::Cwr);
    assert_eq!(script.cwnd(), 5);
}

/// The acknowledgement that ends a reduction may report another mark, and then begins the next (`tcp_fastretrans_alert`, `tcp_try_to_open`).
#[test]
fn a_mark_at_the_end_of_a_reduction_begins_another() {
    for profile in [Profile::Linux, Profile::Rfc] {
        let mut script = marking(profile);
        let mut echo = script.ack(at(1));
        echo.flags |= Flags::ECE;
        script.inject(echo);
        script.inject(script.ack(at(10)));
        script.write(20 * MSS);
        assert_eq!(script.connection.paths()[0].state, CaState::Cwr);
        let first = script.connection.paths()[0].ssthresh;
        let mut echo = script.ack(at(11));
        echo.flags |= Flags::ECE;
        script.inject(echo);
        let path = &script.connection.paths()[0];
        assert_eq!((path.state, path.ssthresh), (CaState::Cwr, first / 2));
    }
}

fn marked_peer() -> Peer {
    Peer {
        flags: Flags::ECE,
        ..Peer::default()
    }
}

fn marking(profile: Profile) -> Script {
    let config = Config {
        ecn: true,
        ..with_profile(profile, tcp())
    };
    ten_in_flight(&config, marked_peer())
}

/// Of everything sent: whether it is new data, and whether it has CWR.
fn told(script: &mut Script) -> Vec<(bool, bool)> {
    let sent = script.drain();
    sent.iter()
        .map(|sent| {
            let new = sent.purpose == Purpose::Data;
            (new, sent.segment.flags.contains(Flags::CWR))
        })
        .collect()
}

/// RFC 3168 section 6.1.2: a reduction for any reason is told by CWR on the first new data packet after it; else the receiver goes on
/// echoing an earlier mark, and the window is reduced for it a second time.
#[test]
fn a_reduction_for_a_loss_is_told() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let mut script = marking(profile);
        script.inject(script.sack(1, &[(at(1), at(4))]));
        for sacked in 5..=10 {
            script.inject(script.sack(1, &[(at(1), at(sacked))]));
        }
        let sent = told(&mut script);
        let first = sent.iter().position(|(new, _)| *new).expect("new data");
        let cwr: Vec<usize> = (0..sent.len()).filter(|&nth| sent[nth].1).collect();
        assert_eq!(cwr, [first], "{profile:?}: {sent:?}");
    }
}

#[test]
fn a_reduction_for_a_timeout_is_told() {
    let mut script = marking(Profile::Rfc);
    script.run_for(2 * SECOND);
    assert!(script.counter(Mib::TcpExtTCPTimeouts) > 0);
    assert!(told(&mut script).iter().all(|(_, cwr)| !cwr));
    // The first new data leaves before what is lost (RFC 5682).
    script.inject(script.ack(at(1)));
    assert_eq!(told(&mut script)[0], (true, true));
}

/// RFC 3168 section 6.1.5: neither CWR nor ECT on what is sent again.
#[test]
fn a_retransmission_tells_of_no_reduction() {
    let mut script = marking(Profile::Rfc);
    let mut echo = script.sack(1, &[(at(1), at(4))]);
    echo.flags |= Flags::ECE;
    script.inject(echo);
    let sent = told(&mut script);
    assert_eq!(sent[0], (false, false), "{sent:?}");
}

/// A mark's reduction stands, even if a recovery that began with it or within it proves needless (RFC 4015 section 3.2; Linux
/// `tcp_enter_recovery`).
#[test]
fn what_a_mark_took_is_not_given_back() {
    for profile in [Profile::Rfc, Profile::Linux] {
        for within in [false, true] {
            let mut script = marking(profile);
            let una = u64::from(within);
            if within {
                let mut echo = script.ack(at(1));
                echo.flags |= Flags::ECE;
                script.inject(echo);
            }
            for sacked in 4..=7 {
                let mut sack = script.sack(at(una), &[(at(una + 1), at(una + sacked))]);
                if !within {
                    sack.flags |= Flags::ECE;
                }
                script.inject(sack);
            }
            assert_eq!(retransmitted(&mut script), [una]);
            script.run_for(5 * MS);
            script.inject(script.ack(at(9)));
            script.run_for(100 * MS);
            script.inject(script.sack(at(9), &[(at(una), at(una + 1))]));
            script.inject(script.ack(at(10)));
            assert_eq!(script.counter(Mib::TcpExtTCPDSACKRecv), 1);
            assert!(script.cwnd() < 9, "{profile:?} {within}: {}", script.cwnd());
        }
    }
}

/// RFC 6675 section 5; Linux `tcp_enter_recovery`, which leaves the reduction's `high_seq`.
#[test]
fn a_recovery_within_a_reduction_ends_with_it_upstream() {
    for (profile, state) in [
        (Profile::Rfc, CaState::Recovery),
        (Profile::MptcpOrg, CaState::Open),
        (Profile::Linux, CaState::Open),
    ] {
        let mut script = marking(profile);
        let mut echo = script.ack(at(1));
        echo.flags |= Flags::ECE;
        script.inject(echo);
        script.inject(script.ack(at(4)));
        assert_eq!(script.connection.paths()[0].state, CaState::Cwr);
        script.inject(script.sack(at(4), &[(at(5), at(9))]));
        assert_eq!(retransmitted(&mut script), [4], "{profile:?}");
        assert_eq!(script.connection.paths()[0].state, CaState::Recovery);
        // New data left between the mark and the loss.
        script.inject(script.ack(at(10)));
        assert_eq!(script.connection.paths()[0].state, state, "{profile:?}");
    }
}

/// RFC 4015 section 3.2; Linux `tcp_fastretrans_alert`.
#[test]
fn a_mark_in_the_midst_of_a_recovery_keeps_the_window() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let mut script = marking(profile);
        script.inject(script.sack(1, &[(at(1), at(4))]));
        assert_eq!(retransmitted(&mut script), [0], "{profile:?}");
        let mut echo = script.sack(1, &[(at(1), at(7))]);
        echo.flags |= Flags::ECE;
        script.inject(echo);
        script.run_for(5 * MS);
        script.inject(script.ack(at(9)));
        script.run_for(100 * MS);
        script.inject(script.sack(at(9), &[(1, at(1))]));
        script.inject(script.ack(at(10)));
        assert_eq!(script.counter(Mib::TcpExtTCPDSACKRecv), 1);
        assert!(script.cwnd() < 9, "{profile:?}: {}", script.cwnd());
    }
}

#[test]
fn a_mark_after_a_timeout_keeps_the_window() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let peer = Peer {
            timestamps: true,
            sack: false,
            ..marked_peer()
        };
        let config = Config {
            ecn: true,
            ..with_profile(profile, tcp())
        };
        let mut script = Script::connected(&config, peer, 100 * MS);
        script.inject(script.ack(1));
        script.write(1_000_000);
        script.drain();
        script.run_for(50 * MS);
        let mut late = script.ack(1 + 1448);
        script.run_for(400 * MS);
        assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 1);
        late.timestamps = late
            .timestamps
            .map(|(_, echo)| ((script.now / MS) as u32 + 1, echo));
        late.flags |= Flags::ECE;
        script.inject(late);
        assert_eq!(script.counter(Mib::TcpExtTCPLossUndo), 1);
        assert!(script.cwnd() < 5, "{profile:?}: {}", script.cwnd());
    }
}

#[test]
fn what_is_sent_again_may_be_dropped_but_not_marked() {
    let mut script = marking(Profile::Rfc);
    script.inject(script.sack(1, &[(at(1), at(4))]));
    script.inject(script.sack(1, &[(at(1), at(6))]));
    let sent = script.drain();
    let connection = &script.connection;
    let capable = sent
        .iter()
        .map(|sent| connection.ecn_field(0, &sent.segment, sent.purpose) != Codepoint::NotEct);
    assert_eq!(capable.collect::<Vec<_>>(), [false, true, true]);
}

/// RFC 5681 section 2: a duplicate acknowledgement has no FIN.
#[test]
fn a_fin_is_no_duplicate() {
    let mut script = ten_in_flight(&tcp(), without_sack());
    script.inject(script.ack(1));
    script.inject(script.ack(1));
    script.inject(script.fin(1, 1));
    assert_eq!(retransmitted(&mut script), [0u64; 0]);
    script.inject(script.ack_at(2, 1));
    assert_eq!(retransmitted(&mut script), [0]);
}

/// RFC 6582 section 3.2, step 2: what comes after a recovery, and acknowledges no more than it did, may be the echo of needless
/// retransmissions.
#[test]
fn newreno_repeats_nothing_for_duplicates_of_its_recovery_point() {
    for timeout in [false, true] {
        let mut script = ten_in_flight(&tcp(), without_sack());
        if timeout {
            script.run_for(SECOND);
        } else {
            for _ in 0..3 {
                script.inject(script.ack(1));
            }
        }
        script.drain();
        let (_, unsent) = script.connection.send_queue();
        let everything = 1 + script.connection.written() - unsent;
        script.inject(script.ack(everything));
        assert!(!script.drain().is_empty());
        for _ in 0..3 {
            script.inject(script.ack(everything));
        }
        assert_eq!(retransmitted(&mut script), [0u64; 0], "timeout: {timeout}");
    }
}

/// RFC 5681 section 3.1: the loss window is one segment. Without SACK, duplicates of what left before the timeout let no more leave
/// (Linux `tcp_process_loss`).
#[test]
fn duplicates_after_a_timeout_let_nothing_leave() {
    let mut script = ten_in_flight(&tcp(), without_sack());
    while script.counter(Mib::TcpExtTCPTimeouts) == 0 {
        script.run_for(10 * MS);
    }
    assert_eq!(retransmitted(&mut script), [0]);
    for _ in 0..5 {
        script.inject(script.ack(1));
    }
    assert_eq!(retransmitted(&mut script), [0u64; 0]);
}

/// One segment arrives, and again: the window grows by one in slow start (RFC 5681 section 3.1). More duplicates than retransmissions are
/// the network's (Linux `tcp_dsack_seen`).
#[test]
fn what_the_network_repeats_is_delivered_once() {
    let mut script = ten_in_flight(&tcp(), Peer::default());
    for segment in 1..=5 {
        script.inject(script.sack(at(segment), &[(at(segment - 1), at(segment))]));
        assert_eq!(u64::from(script.cwnd()), 10 + segment);
    }
}

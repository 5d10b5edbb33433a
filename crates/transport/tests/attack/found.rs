//! Cases that failed once.

use polypath_transport::Config;

use crate::choices::Choices;
use crate::{mptcp, quic, stack, tcp};

/// With the schedulers that these cases were drawn from.
fn on_one_path_of_mptcp(seed: u64) {
    mptcp::on_one_path_with(&mut Choices::of_seed(seed), stack::unlevelled);
}

/// Packets of one path that come on the other move it there and back, and each time the server takes another id for it, until one is left.
#[test]
fn a_path_that_is_moved_keeps_an_id() {
    let mut choices = Choices::of_seed(1_000_000_088_184);
    quic::everywhere(&mut choices, |_| Config::default());
}

/// A probe for the path's MTU was SACKed at the head of the queue, and a timeout had it sent again in pieces.
#[test]
fn a_sacked_probe_that_is_cut_counts_twice() {
    tcp::on_path(&mut Choices::of_seed(1_000_000_723_050));
}

/// An acknowledgement was forged on one subflow, which then failed: nobody had the bytes any more, and the probe that would have found that waited as
/// long as the failed subflow's own timeout, which put it off each time.
#[test]
fn what_no_subflow_has_is_sent_again_at_the_pace_of_those_that_work() {
    on_one_path_of_mptcp(208_830_000_788);
}

/// An acknowledgement was forged on one subflow and its reset lost, so that a hole there is never filled. What waits behind it took the whole window of
/// the connection under profile `mptcp.org`.
#[test]
fn what_waits_in_a_subflow_takes_nothing_from_the_window() {
    on_one_path_of_mptcp(4_138);
}

/// A subflow with nothing in flight waited for room for a probe of the path's MTU, and nobody was to make any.
#[test]
fn a_probe_for_the_mtu_waits_for_no_acknowledgement_that_cannot_come() {
    mptcp::on_one_path_with(&mut Choices::of_seed(15_774), stack::unheld);
}

/// A FIN was forged on one subflow, which closed and whose own FIN never came through: without a sample of its round-trip time it was the fastest
/// path, and the scheduler gave it all that the other could have carried.
#[test]
fn nothing_new_goes_to_a_subflow_that_closes() {
    on_one_path_of_mptcp(1_000_001_940_423);
}

/// A subflow without a sample of its round-trip time, whose data was all lost, was where OTIAS had everything arrive at once.
#[test]
fn nothing_waits_behind_a_window_without_a_round_trip_time() {
    mptcp::on_one_path_with(&mut Choices::of_seed(1_000_002_457_560), stack::unheld);
}

/// Data waited for the turn of a full path, which an acknowledgement that the scheduler placed then took, until something else came.
#[test]
fn data_goes_on_once_an_acknowledgement_took_the_turn() {
    quic::blind(&mut Choices::of_seed(1_000_000_211_049));
}

//! A queue of the own host that keeps packets on their socket's account (net/ipv4/tcp_output.c `tcp_small_queue_check`, `tcp_tsq_handler`).
//!
//! | rule | test |
//! |---|---|
//! | two buffers of two segments are enough, and one more follows whenever there is room | `the_host_holds_two_buffers` |
//! | a buffer always leaves while no more than one is unacknowledged | `a_single_buffer_is_no_queue` |
//! | what the queue refused waits for the peer, whatever leaves the queue | `what_was_refused_does_not_leave_with_the_next_packet` |
//! | profile `rfc` knows no such limit | `the_rfcs_hand_over_a_whole_window` |

use polypath_transport::Profile;

use crate::common::script::{Peer, Script};
use crate::common::{MS, tcp, with_profile};

const MSS: u64 = 1460;

/// A round trip of 100 ms: the rate is so low that a buffer holds two segments and a millisecond's worth is less.
fn connected(profile: Profile) -> Script {
    let mut script = Script::connected(&with_profile(profile, tcp()), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.connection.held_by_host(0);
    script
}

/// So many segments leave the host's queue now. How many the connection hands over for that.
fn leave(script: &mut Script, segments: usize) -> usize {
    let now = script.now;
    for _ in 0..segments {
        script.connection.on_left_host(0, MSS as u32, now);
    }
    script.connection.transmits().drain(..).count()
}

#[test]
fn the_host_holds_two_buffers() {
    let mut script = connected(Profile::Linux);
    script.write(20 * MSS);
    assert_eq!(script.drain().len(), 4);
    script.run_for(10 * MS);
    script.expect_nothing();
    assert_eq!(
        leave(&mut script, 1),
        2,
        "three of 2292 bytes are below 7504"
    );
    assert_eq!(leave(&mut script, 1), 0, "four are not");
    assert_eq!(leave(&mut script, 1), 2);
    assert_eq!(leave(&mut script, 5), 2, "up to the congestion window");
    assert_eq!(script.connection.paths()[0].in_flight, 10);
}

#[test]
fn a_single_buffer_is_no_queue() {
    let mut script = connected(Profile::Linux);
    script.write(20 * MSS);
    assert_eq!(script.drain().len(), 4);
    script.run_for(100 * MS);
    // The queue still holds all four: copies of theirs came another way.
    script.inject(script.ack(1 + 2 * MSS));
    assert_eq!(script.drain().len(), 2, "one buffer is unacknowledged");
    script.expect_nothing();
}

#[test]
fn what_was_refused_does_not_leave_with_the_next_packet() {
    let mut script = connected(Profile::Linux);
    script.write(20 * MSS);
    assert_eq!(script.drain().len(), 4);
    let (seq, now) = (script.isn.wrapping_add(1 + 3 * MSS as u32), script.now);
    script.connection.on_local_drop(0, seq, false, now);
    assert_eq!(leave(&mut script, 2), 0);
    script.run_for(100 * MS);
    script.inject(script.ack(1 + MSS));
    let sent = script.drain();
    assert_eq!(script.relative(&sent[0].segment), 1 + 3 * MSS);
}

#[test]
fn the_rfcs_hand_over_a_whole_window() {
    let mut script = connected(Profile::Rfc);
    script.write(20 * MSS);
    assert_eq!(script.drain().len(), 10);
    assert_eq!(leave(&mut script, 10), 0);
}

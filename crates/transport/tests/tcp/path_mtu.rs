//! Path MTU discovery (RFC 1191, RFC 8201, RFC 5927) as Linux does it (net/ipv4/tcp_ipv4.c `tcp_v4_mtu_reduced`, net/ipv4/tcp_input.c
//! `tcp_simple_retransmit`).
//!
//! | rule | test |
//! |---|---|
//! | what was too long is cut and sent again at once, the window stays | `a_report_has_what_is_in_flight_cut_and_sent_again` |
//! | upstream cuts buffers, and new data goes before what its host's queue has no room for | `upstream_cuts_buffers_and_sends_new_data_between_them` |
//! | what was sent again behind that is lost once more, which ends slow start | `what_left_behind_new_data_is_lost_a_second_time` |
//! | a report about nothing in flight is none | `a_report_about_another_segment_is_ignored` |
//! | no MTU below 552 is believed | `a_tiny_mtu_is_not_believed` |
//! | a path that is known begins with its MTU | `a_known_mtu_holds_from_the_first_segment` |

use polypath_transport::{EventKind, Mib, Profile};

use crate::common::script::{Peer, Script};
use crate::common::{MS, SECOND, tcp, with_profile};

const MSS: u64 = 1460;

fn connected() -> Script {
    let mut script = Script::connected(&tcp(), Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script
}

/// ICMP about the segment that began at `seq`.
fn report(script: &mut Script, seq: u64, mtu: u32) {
    let seq = script.isn.wrapping_add(seq as u32);
    let now = script.now;
    script.connection.on_packet_too_big(0, seq, mtu, now);
    script.run_until(now);
}

#[test]
fn a_report_has_what_is_in_flight_cut_and_sent_again() {
    let mut script = connected();
    script.write(10 * MSS);
    assert_eq!(script.drain().len(), 10);
    script.run_for(20 * MS);
    report(&mut script, 1, 1300);
    // Ten segments of 1460 bytes are twenty of 1260 and 200 now, of which the window admits ten.
    for index in 0..5 {
        script.expect_data(1 + index * MSS, 1260);
        script.expect_data(1 + index * MSS + 1260, 200);
    }
    script.expect_nothing();
    assert_eq!(script.cwnd(), 10);
    let told = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::PathMtu {
                subflow: 0,
                mtu: 1300
            }
        )
    };
    assert!(script.happened(told));
    assert_eq!(script.counter(Mib::TcpExtTCPTimeouts), 0);
    // The other nine reports bring nothing new.
    report(&mut script, 1 + MSS, 1300);
    script.expect_nothing();
    script.run_for(100 * MS);
    for done in 1..=5 {
        script.inject(script.ack(1 + done * MSS));
    }
    let rest: u64 = script
        .drain()
        .iter()
        .map(|sent| u64::from(sent.segment.payload.len))
        .sum();
    assert_eq!(rest, 5 * MSS);
    script.run_for(100 * MS);
    script.inject(script.ack(1 + 10 * MSS));
    script.write(3000);
    script.expect_data(1 + 10 * MSS, 1260);
    assert!(script.cwnd() >= 10);
}

/// Ten segments in buffers of two, of which a report says that they are longer than `mtu`.
fn told_in_profile_linux(mtu: u32) -> Script {
    let config = with_profile(Profile::Linux, tcp());
    let mut script = Script::connected(&config, Peer::default(), 100 * MS);
    script.inject(script.ack(1));
    script.write(40 * MSS);
    assert_eq!(script.drain().len(), 10);
    script.run_for(20 * MS);
    report(&mut script, 1, mtu);
    script
}

/// Buffers of 2920 bytes. A rest of 200 bytes waits while the host holds 4 x (832 + 200) = 4128 bytes, and two packets of 1360 bytes take
/// 4384; a rest of 400 bytes waits from 4928 bytes on, and two packets of 1260 bytes take 4184 (`tcp_small_queue_check`).
#[test]
fn upstream_cuts_buffers_and_sends_new_data_between_them() {
    let mut script = told_in_profile_linux(1400);
    let new = 1 + 10 * MSS;
    for (seq, len) in [
        (1, 1360),
        (1361, 1360),
        (2721, 200),
        (2921, 1360),
        (4281, 1360),
        (new, 1360),
        (new + 1360, 1360),
        (5641, 200),
        (5841, 1360),
        (7201, 1360),
    ] {
        script.expect_data(seq, len);
    }
    script.expect_nothing();
    let mut script = told_in_profile_linux(1300);
    for (seq, len) in [
        (1, 1260),
        (1261, 1260),
        (2521, 400),
        (2921, 1260),
        (4181, 1260),
        (5441, 400),
        (5841, 1260),
        (7101, 1260),
        (new, 1260),
        (new + 1260, 1260),
    ] {
        script.expect_data(seq, len);
    }
    script.expect_nothing();
}

#[test]
fn what_left_behind_new_data_is_lost_a_second_time() {
    let mut script = told_in_profile_linux(1400);
    script.drain();
    assert_eq!(script.counter(Mib::TcpExtTCPSackRecovery), 0);
    script.run_for(100 * MS);
    for ack in [1361, 2721, 2921, 4281, 5641] {
        script.inject(script.ack(ack));
    }
    script.drain();
    let cwnd = script.cwnd();
    let new = 1 + 10 * MSS;
    script.inject(script.sack(5641, &[(new, new + 2 * 1360)]));
    script.expect_data(5641, 200);
    assert_eq!(script.counter(Mib::TcpExtTCPLostRetransmit), 3);
    assert_eq!(script.counter(Mib::TcpExtTCPSackRecovery), 1);
    assert!(script.cwnd() < cwnd);
}

#[test]
fn a_report_about_another_segment_is_ignored() {
    let mut script = connected();
    script.write(4 * MSS);
    script.drain();
    script.run_for(100 * MS);
    script.inject(script.ack(1 + 4 * MSS));
    script.write(4 * MSS);
    script.drain();
    report(&mut script, 1, 1300);
    report(&mut script, 2 + 8 * MSS, 1300);
    script.expect_nothing();
    assert_eq!(script.counter(Mib::TcpExtOutOfWindowIcmps), 2);
    script.run_for(100 * MS);
    script.inject(script.ack(1 + 8 * MSS));
    script.write(MSS);
    script.expect_data(1 + 8 * MSS, 1460);
}

#[test]
fn a_tiny_mtu_is_not_believed() {
    let mut script = connected();
    script.write(MSS);
    script.drain();
    report(&mut script, 1, 100);
    script.expect_data(1, 512);
    script.run_for(SECOND);
}

#[test]
fn a_known_mtu_holds_from_the_first_segment() {
    let mut script = Script::client(&tcp(), Peer::default());
    let syn = script.expect().segment;
    assert_eq!(
        syn.rare.as_ref().and_then(|options| options.mss),
        Some(1460)
    );
    assert!(script.connection.limit_mtu(0, 1400));
    script.run_until(50 * MS);
    let mut answer = Script::syn(
        &Peer::default(),
        syn.flags | polypath_wire::tcp::Flags::ACK,
        1,
    );
    answer.ack = script.isn.wrapping_add(1);
    script.inject(answer);
    script.expect_ack(1);
    script.write(3000);
    script.expect_data(1, 1360);
}

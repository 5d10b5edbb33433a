//! The search for the path's MTU (RFC 4821) as Linux does it (net/ipv4/tcp_output.c `tcp_mtu_probe`, net/ipv4/tcp_timer.c
//! `tcp_mtu_probing`, net/ipv4/tcp_input.c `tcp_mtup_probe_success` and `_failed`).
//!
//! | rule | test |
//! |---|---|
//! | three seconds of retransmissions make segments of 1024 bytes, each further timeout halves them, down to 48 | `a_black_hole_is_suspected_after_three_seconds` |
//! | without it they keep their length | `without_probing_segments_keep_their_length` |
//! | it begins with segments of 1024 bytes and probes half-way | `a_probe_that_arrives_raises_the_length` |
//! | a lost probe costs no window | `a_lost_probe_is_no_congestion` |
//! | a lost probe among other losses tells nothing | `a_loss_before_the_probe_leaves_it_open` |
//! | the search ends near the MTU, and starts again after ten minutes | `a_search_that_ended_begins_anew_after_ten_minutes` |
//! | a server's path that is known holds before the handshake is done | `what_a_server_knows_of_the_path_holds` |
//! | probes out of upstream's buffers leave the stream whole | `the_stream_is_whole_with_probes_out_of_buffers` |
//! | a report bounds it | `a_report_bounds_the_search` |
//! | upstream, a server's segments have what the path takes until the window grows | `upstream_a_server_heeds_the_base_when_the_window_grows` |
//! | or until its first probe arrived, which may be shorter than they are | `upstream_a_server_heeds_the_base_after_its_first_probe` |
//! | upstream, a client's base has the options of its SYN until then | `upstream_a_client_reckons_with_the_options_of_its_syn` |
//! | a route that is replaced counts once a segment took it; a probe is the first that may | `a_replaced_route_is_probed_at_once` |
//! | without a search, too, and a smaller one | `a_replaced_route_counts_after_a_segment_took_it` |
//! | a host may announce another MSS than its MTU's | `a_replaced_route_is_probed_at_once` |

use polypath_transport::{Config, EventKind, Limits, Mib, MtuProbing, Profile};

use crate::common::script::{Peer, Script};
use crate::common::{MS, SECOND, tcp};

const RTT: u64 = 100 * MS;

fn connected(mtu_probing: MtuProbing) -> Script {
    let config = Config {
        mtu_probing,
        ..tcp()
    };
    let mut script = Script::connected(&config, Peer::default(), RTT);
    script.inject(script.ack(1));
    script
}

/// Sequence number and length of what left.
fn sent(script: &mut Script) -> Vec<(u64, u32)> {
    let sent = script.drain();
    sent.iter()
        .map(|sent| (script.relative(&sent.segment), sent.segment.payload.len))
        .collect()
}

#[test]
fn a_black_hole_is_suspected_after_three_seconds() {
    let mut script = connected(MtuProbing::BlackHole);
    script.write(4 * 1460);
    script.drain();
    let began = script.now;
    let mut repeated = Vec::new();
    while script.now < began + 250 * SECOND {
        script.run_for(100 * MS);
        for sent in script.drain() {
            repeated.push((
                sent.at,
                script.relative(&sent.segment),
                sent.segment.payload.len,
            ));
        }
    }
    let heads: Vec<_> = repeated.iter().filter(|(_, seq, _)| *seq == 1).collect();
    let lengths: Vec<u32> = heads.iter().map(|(_, _, len)| *len).collect();
    let whole = lengths.iter().take_while(|len| **len == 1460).count();
    let (first, suspected) = (heads[0].0, heads[whole].0);
    assert!(heads[whole - 1].0 < first + 3 * SECOND);
    assert!(suspected >= first + 3 * SECOND);
    assert_eq!(lengths[whole..whole + 6], [1024, 512, 256, 128, 64, 48]);
    script.inject(script.ack(49));
    // After the timeout the window grows from one segment, of what passes.
    assert!(sent(&mut script).iter().all(|(_, len)| *len <= 48));
}

#[test]
fn without_probing_segments_keep_their_length() {
    let mut script = connected(MtuProbing::Off);
    script.write(4 * 1460);
    script.drain();
    script.run_for(100 * SECOND);
    assert!(
        script
            .drain()
            .iter()
            .all(|sent| sent.segment.payload.len == 1460)
    );
}

/// Ten segments were sent and acknowledged, so that the window has room for a probe.
fn warm() -> (Script, Vec<(u64, u32)>) {
    let mut script = connected(MtuProbing::On);
    script.write(1_000_000);
    let first = sent(&mut script);
    assert_eq!(
        first,
        (0..10).map(|n| (1 + n * 1024, 1024)).collect::<Vec<_>>()
    );
    script.run_for(RTT);
    script.inject(script.ack(1 + 10 * 1024));
    let next = sent(&mut script);
    (script, next)
}

#[test]
fn a_probe_that_arrives_raises_the_length() {
    let (mut script, next) = warm();
    // Half-way between 1024 bytes in 1064 and an MTU of 1500.
    assert_eq!(next[0], (1 + 10 * 1024, 1242));
    assert!(next[1..].iter().all(|(_, len)| *len == 1024));
    // A probe takes the place of two.
    assert_eq!(script.cwnd(), 19);
    script.run_for(RTT);
    let end = next[0].0 + 1242;
    script.inject(script.ack(end));
    assert_eq!(script.counter(Mib::TcpExtTCPMTUPSuccess), 1);
    let raised = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::PathMtu {
                subflow: 0,
                mtu: 1282
            }
        )
    };
    assert!(script.happened(raised));
    // The window holds as many bytes as before, in longer packets, and what this acknowledgement adds.
    assert_eq!(script.cwnd(), 19 * 1064 / 1282 + 1);
    // Slow start goes on.
    assert_eq!(script.connection.paths()[0].ssthresh, u32::MAX);
    script.run_for(RTT);
    let (last, len) = *next.last().expect("segments");
    script.inject(script.ack(last + u64::from(len)));
    let more = sent(&mut script);
    assert_eq!(more[0].1, 1351);
    assert!(more[1..].iter().all(|(_, len)| *len == 1242));
}

#[test]
fn a_lost_probe_is_no_congestion() {
    let (mut script, next) = warm();
    let (probe, _) = next[0];
    let end = probe + 1242;
    script.run_for(RTT);
    for count in 1..=4 {
        script.inject(script.sack(probe, &[(end, end + count * 1024)]));
    }
    assert_eq!(script.counter(Mib::TcpExtTCPMTUPFail), 1);
    assert_eq!(script.counter(Mib::TcpExtTCPSackRecovery), 0);
    assert!(script.cwnd() >= 20);
    let again = sent(&mut script);
    let head: Vec<_> = again.iter().filter(|(seq, _)| *seq < end).collect();
    assert_eq!(head, [&(probe, 1024), &(probe + 1024, 218)]);
    // Lower than the half-way from now on: between 1064 and 1281.
    script.run_for(RTT);
    let (last, len) = *again.iter().chain(&next).max().expect("segments");
    script.inject(script.ack(last + u64::from(len)));
    assert_eq!(sent(&mut script)[0].1, u32::midpoint(1064, 1281) - 40);
}

/// The probe is lost with everything after it: nothing but a timeout tells, and it is inconclusive.
#[test]
fn a_probe_is_sent_again_in_pieces() {
    let (mut script, next) = warm();
    let (probe, _) = next[0];
    script.run_for(2 * SECOND);
    assert_eq!(script.counter(Mib::TcpExtTCPMTUPFail), 0);
    assert!(script.counter(Mib::TcpExtTCPTimeouts) > 0);
    let again = sent(&mut script);
    assert!(again.iter().all(|(_, len)| *len <= 1024), "{again:?}");
    assert!(again.contains(&(probe, 1024)));
    script.inject(script.ack(probe + 1024));
    // New data first (F-RTO), then the rest of the probe.
    script.run_for(RTT);
    let (last, len) = *next.last().expect("segments");
    let end = last + u64::from(len);
    script.inject(script.sack(probe + 1024, &[(end, end + 1024)]));
    let rest = sent(&mut script);
    assert!(rest.contains(&(probe + 1024, 218)), "{rest:?}");
}

#[test]
fn a_loss_before_the_probe_leaves_it_open() {
    let (mut script, next) = warm();
    script.run_for(RTT);
    // The probe arrived; what followed it did not, and is sent again.
    let end = next[0].0 + 1242;
    let lost = (end, end + 1024);
    for count in 1..=4 {
        script.inject(script.sack(end, &[(lost.1, lost.1 + count * 1024)]));
    }
    assert_eq!(script.counter(Mib::TcpExtTCPMTUPSuccess), 1);
    assert_eq!(script.counter(Mib::TcpExtTCPMTUPFail), 0);
    assert_eq!(script.counter(Mib::TcpExtTCPSackRecovery), 1);
    assert!(sent(&mut script).contains(&(lost.0, 1024)));
}

#[test]
fn a_search_that_ended_begins_anew_after_ten_minutes() {
    let (mut script, mut flight) = warm();
    let mut tried = Vec::new();
    while tried.len() < 7 {
        assert!(script.now < 700 * SECOND, "{tried:?}");
        script.run_for(RTT);
        if let Some(&(probe, len)) = flight.iter().find(|(_, len)| *len > 1024) {
            tried.push((script.now >= 600 * SECOND, len));
            let end = probe + u64::from(len);
            script.inject(script.ack(probe));
            for count in 1..=4 {
                script.inject(script.sack(probe, &[(end, end + count * 1024)]));
            }
            flight.extend(sent(&mut script));
        }
        if let Some(&(last, len)) = flight.iter().max() {
            script.inject(script.ack(last + u64::from(len)));
        } else {
            // Everything arrived.
            if tried.len() == 6 {
                script.run_for(10 * SECOND);
            }
            script.write(100_000);
        }
        flight = sent(&mut script);
    }
    // Each lost one halves what is left, until less than eight bytes are.
    let lengths = [1242, 1132, 1077, 1050, 1036, 1029, 1242];
    let late = [false, false, false, false, false, false, true];
    assert_eq!(tried, late.into_iter().zip(lengths).collect::<Vec<_>>());
    assert_eq!(script.counter(Mib::TcpExtTCPMTUPSuccess), 0);
}

#[test]
fn a_report_bounds_the_search() {
    let (mut script, next) = warm();
    let seq = script.isn.wrapping_add(next[0].0 as u32);
    let now = script.now;
    script.connection.on_packet_too_big(0, seq, 1200, now);
    // The probe was too long: of its two pieces the window admits one. The next looks below 1200.
    script.expect_data(next[0].0, 1024);
    script.expect_nothing();
    script.run_for(RTT);
    let (last, len) = *next.last().expect("segments");
    script.inject(script.ack(last + u64::from(len)));
    assert_eq!(sent(&mut script)[0].1, u32::midpoint(1064, 1200) - 40);
}

/// Upstream's buffers end anywhere: a probe takes from several.
#[test]
fn the_stream_is_whole_with_probes_out_of_buffers() {
    let config = Config {
        profile: Profile::Linux,
        mtu_probing: MtuProbing::On,
        ..tcp()
    };
    let mut script = Script::connected(&config, Peer::default(), RTT);
    script.inject(script.ack(1));
    script.write(1_000_000);
    let (mut end, mut longest) = (1, 0);
    while end <= 1_000_000 && script.now < 60 * SECOND {
        for (seq, len) in sent(&mut script) {
            assert_eq!(seq, end);
            end += u64::from(len);
            longest = longest.max(len);
        }
        script.run_for(RTT);
        script.inject(script.ack(end));
    }
    assert_eq!(end, 1_000_001);
    assert!((1460 - 8..=1460).contains(&longest), "{longest}");
    assert_eq!(script.counter(Mib::TcpExtTCPMTUPFail), 0);
}

#[test]
fn what_a_server_knows_of_the_path_holds() {
    let config = Config {
        mtu_probing: MtuProbing::BlackHole,
        ..tcp()
    };
    let mut script = Script::server(&config, Peer::default());
    script.expect();
    assert!(script.connection.limit_mtu(0, 1400));
    script.run_until(RTT);
    script.inject(script.ack(1));
    script.write(3000);
    script.expect_data(1, 1360);
}

/// Upstream, with the search from the first segment on, and room in the first window for a probe or not.
fn upstream(initial_window: u32) -> Config {
    Config {
        profile: Profile::Linux,
        mtu_probing: MtuProbing::On,
        initial_window,
        ..tcp()
    }
}

/// Its window stays as it is in the SYN.
const STEADY: Peer = Peer {
    mss: Some(1460),
    window_scale: None,
    sack: true,
    timestamps: false,
    window: 65_535,
    mptcp: false,
    flags: polypath_wire::tcp::Flags::empty(),
};

fn lengths(script: &mut Script) -> Vec<u32> {
    let sent = sent(script);
    sent.into_iter().map(|(_, len)| len).collect()
}

/// Linux `tcp_mtup_init` in `tcp_init_transfer`, which no `tcp_sync_mss` follows but that of `tcp_ack_update_window`.
#[test]
fn upstream_a_server_heeds_the_base_when_the_window_grows() {
    for (more, expected) in [(0, 1460), (1, 1024)] {
        let mut script = Script::accepted(&upstream(10), Peer::default(), RTT);
        script.write(1_000_000);
        assert_eq!(lengths(&mut script), [1460; 10]);
        script.run_for(RTT);
        let mut ack = script.ack(1 + 10 * 1460);
        ack.window += more;
        script.inject(ack);
        let next = lengths(&mut script);
        assert_eq!(next[0], 1242, "a probe");
        assert!(
            next[1..].iter().all(|len| *len == expected),
            "{expected}: {next:?}"
        );
    }
}

/// The probe lies half-way between base and MTU, though the segments are as long as the MTU (`tcp_mtup_probe_success`).
#[test]
fn upstream_a_server_heeds_the_base_after_its_first_probe() {
    let mut script = Script::accepted(&upstream(11), STEADY, RTT);
    script.write(9000);
    assert_eq!(lengths(&mut script)[..3], [1242, 1460, 1460]);
    script.run_for(RTT);
    script.inject(script.ack(1 + 1242));
    assert_eq!(script.counter(Mib::TcpExtTCPMTUPSuccess), 1);
    script.write(3 * 1242);
    let next = lengths(&mut script);
    assert_eq!(next.iter().max(), Some(&1242), "{next:?}");
}

/// The peer refused timestamps, which the SYN had (`tcp_connect_init`, `tcp_rcv_synsent_state_process`).
#[test]
fn upstream_a_client_reckons_with_the_options_of_its_syn() {
    for (peer, expected) in [(STEADY, 1024 + 12), (Peer::default(), 1024)] {
        let mut script = Script::connected(&upstream(10), peer, RTT);
        script.inject(script.ack(1)); // a larger window, where it is scaled
        script.write(1_000_000);
        let first = lengths(&mut script);
        assert_eq!(first, [expected; 10]);
    }
}

/// What packetdrill's tcp/mtu_probe/basic-v4.pkt has, and what follows: the probe's success has bounded the search by the MTU that the last
/// segment was cut for (`tcp_mtup_probe_success`, `icsk_pmtu_cookie`), so that it ends there.
#[test]
fn a_replaced_route_is_probed_at_once() {
    let config = Config {
        mtu: 640,
        limits: Limits {
            base_mss: 512,
            announced_mss: Some(620),
            ..Limits::default()
        },
        ..upstream(11)
    };
    let mut script = Script::server(&config, STEADY);
    let answer = script.expect().segment;
    assert_eq!(answer.rare.and_then(|rare| rare.mss), Some(620));
    script.run_until(RTT);
    script.inject(script.ack(1));
    script.connection.reroute(0, 1500);
    script.write(4000);
    assert_eq!(lengths(&mut script), [986, 600, 600, 600, 600, 600, 14]);
    script.run_for(RTT);
    script.inject(script.ack(4001));
    script.write(2000);
    assert_eq!(lengths(&mut script), [986, 986, 28]);
    script.run_for(RTT);
    script.inject(script.ack(6001));
    script.write(50_000);
    let rest = lengths(&mut script);
    assert!(
        rest.len() >= 10 && rest.iter().all(|len| *len == 986),
        "{rest:?}"
    );
}

/// The host refuses a probe that is longer than its own link takes (EMSGSIZE).
#[test]
fn a_probe_is_no_longer_than_the_route_takes() {
    let config = Config {
        mtu: 1200,
        ..upstream(11)
    };
    let mut script = Script::accepted(&config, STEADY, RTT);
    script.write(8 * 1160);
    assert_eq!(lengths(&mut script), [1160; 8]);
}

#[test]
fn a_replaced_route_counts_after_a_segment_took_it() {
    let config = Config {
        mtu: 640,
        mtu_probing: MtuProbing::Off,
        ..upstream(10)
    };
    let mut script = Script::accepted(&config, STEADY, RTT);
    let mut end = 1;
    let mut write = |script: &mut Script, bytes: u64| {
        script.write(bytes);
        end += bytes;
        let found = lengths(script);
        script.run_for(RTT);
        script.inject(script.ack(end));
        found
    };
    assert_eq!(write(&mut script, 1800), [600; 3]);
    script.connection.reroute(0, 1500);
    assert_eq!(write(&mut script, 1800), [600; 3]);
    assert_eq!(write(&mut script, 2920), [1460; 2]);
    script.connection.reroute(0, 900);
    script.write(2920);
    assert_eq!(lengths(&mut script), [1460; 2]);
    // What is sent again looks for its route.
    script.run_for(3 * SECOND);
    let again = lengths(&mut script);
    assert!(
        !again.is_empty() && again.iter().all(|len| *len <= 860),
        "{again:?}"
    );
    script.inject(script.ack(end + 2920));
    script.write(1720);
    assert_eq!(lengths(&mut script), [860; 2]);
}

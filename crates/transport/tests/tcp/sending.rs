//! When data may leave (RFC 6928, RFC 5681, RFC 9293 section 3.8.6, RFC 1122 section 4.2.3.4).
//!
//! | rule | test |
//! |---|---|
//! | initial window, slow start | `the_initial_window_is_ten_segments`, `slow_start_sends_two_segments_for_each_acknowledged`, `slow_start_may_count_acknowledgements` |
//! | window growth needs use | `a_window_that_is_not_used_does_not_grow`, `the_window_shrinks_after_idleness` |
//! | Nagle with Minshall's change | `nagle_holds_a_second_small_segment`, `a_full_segment_in_flight_does_not_hold_a_small_one`, `without_nagle_small_segments_leave_at_once`, `closing_releases_the_small_rest` |
//! | cork (TCP_CORK, net/ipv4/tcp_output.c) | `a_corked_rest_waits_for_a_full_segment`, `a_corked_rest_leaves_when_a_timeout_has_passed`, `a_corked_rest_waits_anew_from_each_acknowledgement`, `a_peers_keep_alive_does_not_put_a_corked_rest_off`, `a_corked_rest_waits_first_for_what_is_in_flight`, `closing_releases_a_corked_rest` |
//! | flags of a write in profile `linux` (net/ipv4/tcp.c `tcp_push`, `tcp_stream_memory_free`) | `more_to_come_is_not_pushed`, `a_record_has_segments_of_its_own`, `a_writer_waits_while_much_is_unsent` |
//! | what leaves together again (net/ipv4/tcp_output.c `tcp_xmit_retransmit_queue`) | `what_leaves_together_again_is_pushed` |
//! | receive window | `the_peers_window_is_respected`, `upstream_follows_a_window_that_shrinks`, `a_window_smaller_than_a_segment_is_used_when_nothing_is_in_flight` |
//! | zero-window probes | `a_closed_window_is_probed_with_backoff`, `answered_probes_go_on_for_ever`, `unanswered_probes_give_up`, `a_lost_window_update_does_not_stall`, `a_window_that_was_taken_back_may_stay_closed` |

use polypath_transport::{
    CloseReason, Config, Limit, Manner, Mib, Nanos, Profile, Segment, SlowStart,
};
use polypath_wire::tcp::Flags;

use crate::common::script::{Peer, Script};
use crate::common::{Fate, MS, Pair, SECOND, Side, tcp, with_profile};

const MSS: u64 = 1460;

fn connected(config: &Config) -> Script {
    Script::connected(config, Peer::default(), 100 * MS)
}

#[test]
fn the_initial_window_is_ten_segments() {
    let mut script = connected(&tcp());
    script.inject(script.ack(1));
    script.write(100_000);
    for index in 0..10 {
        script.expect_data(1 + index * MSS, 1460);
    }
    script.expect_nothing();
}

/// The window after the initial ten segments, of which each acknowledgement has two and brings as many to send as `sent` says.
fn window_after_five_acknowledgements(config: &Config, sent: usize) -> u32 {
    let mut script = connected(config);
    script.inject(script.ack(1));
    script.write(1_000_000);
    assert_eq!(script.drain().len(), 10);
    script.run_for(100 * MS);
    for acknowledged in 1..=5 {
        script.drain();
        script.inject(script.ack(1 + 2 * acknowledged * MSS));
        assert_eq!(script.drain().len(), sent);
    }
    script.cwnd()
}

#[test]
fn slow_start_sends_two_segments_for_each_acknowledged() {
    assert_eq!(window_after_five_acknowledgements(&tcp(), 4), 20);
}

#[test]
fn slow_start_may_count_acknowledgements() {
    for congestion in ["reno", "cubic", "lia", "olia", "vegas"] {
        let config = Config {
            slow_start: SlowStart::Acks,
            congestion: congestion.into(),
            ..tcp()
        };
        assert_eq!(
            window_after_five_acknowledgements(&config, 3),
            15,
            "{congestion}"
        );
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut script = connected(&tcp());
    script.inject(script.ack(1));
    for round in 0..20 {
        script.write(3 * MSS);
        script.drain();
        script.run_for(100 * MS);
        script.inject(script.ack(1 + (round + 1) * 3 * MSS));
    }
    assert_eq!(script.cwnd(), 10);
}

/// A window of more than twenty segments that is not used for a little more than `idle`.
fn window_after(idle: Nanos, profile: Profile) -> u32 {
    let mut script = connected(&with_profile(profile, tcp()));
    script.inject(script.ack(1));
    script.write(30 * MSS);
    let mut sent = script.drain().len() as u64;
    while sent < 30 {
        script.run_for(100 * MS);
        script.inject(script.ack(1 + sent * MSS));
        sent += script.drain().len() as u64;
    }
    script.run_for(100 * MS);
    script.inject(script.ack(1 + 30 * MSS));
    let grown = script.cwnd();
    assert!(grown >= 20, "{grown}");
    script.run_for(idle);
    script.write(100 * MSS);
    let sent = script.drain().len();
    assert_eq!(script.cwnd() as usize, sent);
    script.cwnd()
}

/// Down to the initial window at once (RFC 5681 section 4.1), or by halves (`tcp_cwnd_restart`).
#[test]
fn the_window_shrinks_after_idleness() {
    for profile in [Profile::Rfc, Profile::MptcpOrg, Profile::Linux] {
        assert_eq!(window_after(10 * SECOND, profile), 10, "{profile:?}");
    }
    assert_eq!(window_after(350 * MS, Profile::Rfc), 10);
    assert_eq!(window_after(350 * MS, Profile::Linux), 20);
}

/// mptcp.org `mptcp_wvegas_cwnd_event`.
#[test]
fn a_controller_is_told_of_idleness_of_more_than_a_timeout() {
    let known = |idle: Nanos| {
        let config = Config {
            congestion: "wvegas".into(),
            ..tcp()
        };
        let mut script = connected(&config);
        script.inject(script.ack(1));
        script.write(3 * MSS);
        script.run_for(100 * MS);
        script.inject(script.ack(1 + 3 * MSS));
        script.run_for(idle);
        script.write(MSS);
        let variables = script.connection.subflows()[0].socket().observe();
        let base = variables.iter().find(|(name, _)| *name == "base_rtt_ms");
        base.is_some_and(|(_, rtt)| *rtt > 0.0)
    };
    assert!(known(50 * MS));
    assert!(!known(10 * SECOND));
}

#[test]
fn nagle_holds_a_second_small_segment() {
    let mut script = connected(&tcp());
    script.inject(script.ack(1));
    script.write(100);
    script.expect_data(1, 100);
    script.write(100);
    script.write(50);
    script.expect_nothing();
    script.run_for(50 * MS);
    script.inject(script.ack(101));
    script.expect_data(101, 150);
}

#[test]
fn a_full_segment_in_flight_does_not_hold_a_small_one() {
    let mut script = connected(&tcp());
    script.inject(script.ack(1));
    script.write(MSS + 100);
    script.expect_data(1, 1460);
    script.expect_data(1 + MSS, 100);
    script.write(100);
    script.expect_nothing();
}

#[test]
fn without_nagle_small_segments_leave_at_once() {
    let mut script = connected(&Config {
        nagle: false,
        ..tcp()
    });
    script.inject(script.ack(1));
    script.write(100);
    script.write(100);
    script.expect_data(1, 100);
    script.expect_data(101, 100);
}

#[test]
fn closing_releases_the_small_rest() {
    let mut script = connected(&tcp());
    script.inject(script.ack(1));
    script.write(100);
    script.write(100);
    script.expect_data(1, 100);
    script.close();
    script.expect_data(101, 100);
}

#[test]
fn the_peers_window_is_respected() {
    let mut script = Script::connected(
        &tcp(),
        Peer {
            window: 4000,
            ..Peer::default()
        },
        100 * MS,
    );
    script.write(100_000);
    script.expect_data(1, 1460);
    script.expect_data(1461, 1460);
    // RFC 9293 section 3.8.6.2.1: 1080 bytes more would be a silly segment.
    script.expect_nothing();
}

#[test]
fn a_window_smaller_than_a_segment_is_used_when_nothing_is_in_flight() {
    let mut script = Script::connected(
        &tcp(),
        Peer {
            window: 600,
            ..Peer::default()
        },
        100 * MS,
    );
    script.write(100_000);
    script.expect_data(1, 600);
    script.expect_nothing();
}

fn closed_window() -> Script {
    let mut script = Script::connected(
        &tcp(),
        Peer {
            window: 1460,
            ..Peer::default()
        },
        100 * MS,
    );
    script.write(10_000);
    script.expect_data(1, 1460);
    script.run_for(100 * MS);
    script.inject(Segment {
        window: 0,
        ..script.ack(1461)
    });
    script
}

#[test]
fn a_closed_window_is_probed_with_backoff() {
    let mut script = closed_window();
    let start = script.now;
    let times: Vec<u64> = (0..4)
        .map(|_| {
            let probe = script.expect();
            // The probe repeats a sequence number below what is acknowledged.
            assert_eq!(script.relative(&probe.segment), 1460);
            script.inject(Segment {
                window: 0,
                ..script.ack(1461)
            });
            (probe.at - start) / MS
        })
        .collect();
    let first = times[0];
    assert!((200..=400).contains(&first), "{times:?}");
    assert_eq!(times, [first, 3 * first, 7 * first, 15 * first]);
    script.inject(script.ack(1461));
    script.expect_data(1461, 1460);
}

/// RFC 9293 section 3.8.6.1: a peer that answers probes keeps the connection open, however long its window stays closed.
#[test]
fn answered_probes_go_on_for_ever() {
    let mut script = closed_window();
    for _ in 0..40 {
        script.expect();
        script.run_for(100 * MS);
        script.inject(Segment {
            window: 0,
            ..script.ack(1461)
        });
        assert_eq!(script.connection.ended(), None);
    }
    script.inject(script.ack(1461));
    script.expect_data(1461, 1460);
}

#[test]
fn unanswered_probes_give_up() {
    let mut script = closed_window();
    script.run_for(3600 * SECOND);
    assert_eq!(script.connection.ended(), Some(CloseReason::TimedOut));
    assert_eq!(script.counter(Mib::TcpExtTCPWinProbe), 15);
}

#[test]
fn a_lost_window_update_does_not_stall() {
    let mut pair = Pair::new(&tcp(), &[10 * MS]);
    pair.server.reading = false;
    pair.run_for(100 * MS);
    pair.write(Side::Client, 1_000_000);
    pair.run_for(3 * SECOND);
    assert!(pair.server.connection().available() > 60_000);
    let mut updates = 0;
    pair.hook(move |packet| {
        if packet.from == Side::Server && updates < 2 {
            updates += 1;
            return Fate::Drop;
        }
        Fate::Pass
    });
    pair.server.reading = true;
    pair.run_for(30 * SECOND);
    pair.assert_whole(Side::Server, 1_000_000);
}

fn corked() -> Config {
    Config {
        cork: true,
        nagle: false,
        ..tcp()
    }
}

/// Linux `tcp_nagle_check`: stronger than TCP_NODELAY.
#[test]
fn a_corked_rest_waits_for_a_full_segment() {
    let mut script = connected(&corked());
    script.inject(script.ack(1));
    script.write(100);
    script.write(100);
    script.expect_nothing();
    script.write(MSS);
    script.expect_data(1, 1460);
    script.expect_nothing();
    script.write(MSS - 200);
    script.expect_data(1 + MSS, 1460);
}

/// Linux `tcp_probe0_base`: the retransmission timeout, here the handshake's round trip of 100 ms, four times half of it and thus 300 ms.
#[test]
fn a_corked_rest_leaves_when_a_timeout_has_passed() {
    let mut script = connected(&corked());
    script.inject(script.ack(1));
    let written = script.now;
    script.write(100);
    script.run_for(100 * MS);
    script.write(50);
    let ceiling = 100 * MS + (4 * 50 * MS).max(200 * MS);
    script.run_until(written + ceiling - 1);
    script.expect_nothing();
    script.run_until(written + ceiling);
    script.expect_data(1, 150);
    assert_eq!(script.counter(Mib::TcpRetransSegs), 0);
}

/// Linux `tcp_check_probe_timer`: it begins when the last segment in flight is acknowledged.
#[test]
fn a_corked_rest_waits_first_for_what_is_in_flight() {
    let mut script = connected(&corked());
    script.inject(script.ack(1));
    script.write(MSS + 100);
    script.expect_data(1, 1460);
    script.run_for(100 * MS);
    script.inject(script.ack(1 + MSS));
    let acknowledged = script.now;
    // The second sample of 100 ms takes a quarter off its deviation of 50 ms.
    let ceiling = 100 * MS + 4 * 50 * MS * 3 / 4;
    script.run_until(acknowledged + ceiling - 1);
    script.expect_nothing();
    script.run_until(acknowledged + ceiling);
    script.expect_data(1 + MSS, 100);
}

/// Linux `tcp_ack_probe`, `tcp_data_snd_check`
#[test]
fn a_corked_rest_waits_anew_from_each_acknowledgement() {
    let mut script = connected(&corked());
    script.inject(script.ack(1));
    script.write(100);
    let ceiling = 100 * MS + (4 * 50 * MS).max(200 * MS);
    for _ in 0..3 {
        script.run_for(ceiling - 1);
        script.inject(script.ack(1));
        script.expect_nothing();
    }
    script.run_for(ceiling - 1);
    script.expect_nothing();
    script.run_for(1);
    script.expect_data(1, 100);
}

/// Linux `tcp_sequence` drops a segment that ends below what was acknowledged before `tcp_ack` sees it: a peer's keep-alives, more
/// frequent than the timer, would hold the rest back for good.
#[test]
fn a_peers_keep_alive_does_not_put_a_corked_rest_off() {
    let mut script = connected(&corked());
    script.inject(script.ack(1));
    let written = script.now;
    script.write(100);
    let ceiling = 100 * MS + (4 * 50 * MS).max(200 * MS);
    for _ in 0..3 {
        script.run_for(ceiling / 4);
        let mut probe = script.ack(1);
        probe.seq = probe.seq.wrapping_sub(1);
        script.inject(probe);
        assert!(
            script
                .drain()
                .iter()
                .all(|sent| sent.segment.payload.len == 0)
        );
    }
    script.run_until(written + ceiling);
    script.expect_data(1, 100);
}

/// Linux `tcp_send_fin` takes along what is left.
#[test]
fn closing_releases_a_corked_rest() {
    let mut script = connected(&corked());
    script.inject(script.ack(1));
    script.write(100);
    script.expect_nothing();
    script.close();
    script.expect_data(1, 100);
    script.run_for(60 * SECOND);
}

/// A client of profile `linux` whose writes are not held by Nagle's rule.
fn upstream() -> Script {
    let mut config = Config {
        nagle: false,
        ..with_profile(Profile::Linux, tcp())
    };
    config.send_buffer.default = 2_000_000;
    let mut script = connected(&config);
    script.inject(script.ack(1));
    script
}

/// Sequence number, length and flag PSH of what left.
fn left(script: &mut Script) -> Vec<(u64, u32, bool)> {
    let sent = script.drain();
    sent.iter()
        .map(|sent| {
            let segment = &sent.segment;
            let pushed = segment.flags.contains(Flags::PSH);
            (script.relative(segment), segment.payload.len, pushed)
        })
        .collect()
}

const MORE: Manner = Manner {
    more: true,
    record: false,
};
const RECORD: Manner = Manner {
    more: false,
    record: true,
};

/// What follows pushes it, and so does the timer that sends it (`tcp_write_wakeup`), but not the option that clears the way.
#[test]
fn more_to_come_is_not_pushed() {
    let mut script = upstream();
    script.write_as(100, MORE);
    script.write_as(50, MORE);
    script.expect_nothing();
    script.write(10);
    assert_eq!(left(&mut script), [(1, 160, true)]);
    script.inject(script.ack(161));

    script.write_as(100, MORE);
    script.flush();
    assert_eq!(left(&mut script), [(161, 100, false)]);
    script.inject(script.ack(261));

    script.write_as(100, MORE);
    script.expect_nothing();
    script.run_for(400 * MS);
    assert_eq!(left(&mut script), [(261, 100, true)]);

    script.write_as(MSS + 100, MORE);
    assert_eq!(left(&mut script), [(361, MSS as u32, false)]);
    script.inject(script.ack(361 + MSS));
    // Once a segment is in flight no more, the rest waits for nothing but its writer, who is gone.
    assert_eq!(left(&mut script), [(361 + MSS, 100, false)]);
}

/// Not when it is written behind another, nor when more of the window is free than it takes.
#[test]
fn a_record_has_segments_of_its_own() {
    let mut script = upstream();
    script.write(10 * MSS);
    assert_eq!(left(&mut script).len(), 10);
    script.write_as(400, RECORD);
    script.write_as(400, RECORD);
    script.write(400);
    script.write(3 * MSS - 400);
    script.expect_nothing();
    script.inject(script.ack(1 + 10 * MSS));
    let first = 1 + 10 * MSS;
    let full = MSS as u32;
    assert_eq!(
        left(&mut script),
        [
            (first, 400, true),
            (first + 400, 400, true),
            (first + 800, full, false),
            (first + 800 + MSS, full, false),
            (first + 800 + 2 * MSS, full, true),
        ]
    );
}

/// A buffer that was begun is filled up, and the writer is woken when half of the limit is unsent.
#[test]
fn a_writer_waits_while_much_is_unsent() {
    let mut script = upstream();
    script.connection.limit_unsent(10 * MSS);
    script.write(1_000_000);
    let written = script.connection.written();
    assert_eq!(left(&mut script).len(), 10);
    assert!(written < 100 * MSS, "{written}");
    script.run_for(100 * MS);
    script.inject(script.ack(1 + 10 * MSS));
    assert_eq!(script.connection.written(), written);
    let sent: u64 = left(&mut script)
        .iter()
        .map(|(_, len, _)| u64::from(*len))
        .sum();
    assert!(written - 10 * MSS - sent > 5 * MSS, "{written} {sent}");
    script.run_for(100 * MS);
    script.inject(script.ack(1 + 10 * MSS + sent));
    assert!(script.connection.written() > written);

    let mut other = upstream();
    other.write(1_000_000);
    assert!(other.connection.written() > written);
}

/// Less than a segment leaves when the timer of window probes says so, and is pushed; a window that a newer segment shrinks is shrunk
/// (`tcp_snd_wnd_test`, `tcp_write_wakeup`, `tcp_may_update_window`).
#[test]
fn upstream_follows_a_window_that_shrinks() {
    let mut script = upstream();
    script.write(2 * MSS);
    assert_eq!(left(&mut script).len(), 2);
    let end = 1 + 2 * MSS;
    // The window is 600 bytes now.
    let narrow = |script: &Script, ack: u64, window: u16| Segment {
        window,
        ..script.ack(ack)
    };
    let peer = script.peer.window_scale.unwrap_or(0);
    script.run_for(100 * MS);
    script.inject(narrow(&script, end, (640 >> peer) as u16));
    script.write(5_000);
    script.expect_nothing();
    // An ACK that is not newer shrinks nothing more.
    script.inject(narrow(&script, end, (128 >> peer) as u16));
    script.run_for(100 * MS);
    script.expect_nothing();
    script.run_for(SECOND);
    assert_eq!(left(&mut script)[0], (end, 640, true));
    script.inject(narrow(&script, end + 640, 0xffff));
    assert_eq!(left(&mut script)[0], (end + 640, MSS as u32, false));
}

/// A peer that is heard of while more waits than its window has room for, with keep-alive probes for one, does not stop the timer.
#[test]
fn upstream_uses_a_narrow_window_although_acknowledgements_come() {
    let mut script = upstream();
    script.write(2 * MSS);
    script.drain();
    let end = 1 + 2 * MSS;
    let window = 640 >> script.peer.window_scale.unwrap_or(0);
    let acknowledge = |script: &mut Script| {
        script.run_for(100 * MS);
        script.inject(Segment {
            window,
            ..script.ack(end)
        });
    };
    acknowledge(&mut script);
    script.write(5_000);
    for _ in 0..4 {
        acknowledge(&mut script);
    }
    assert_eq!(left(&mut script), [(end, 640, true)]);
}

/// A peer that never offers a whole segment gets what it offers in two halves, without the timer (`tcp_bound_to_half_wnd`).
#[test]
fn upstream_fills_a_window_that_was_never_a_segment() {
    let config = Config {
        nagle: false,
        ..with_profile(Profile::Linux, tcp())
    };
    let peer = Peer {
        window_scale: None,
        window: 1000,
        ..Peer::default()
    };
    let mut script = Script::connected(&config, peer, 40 * MS);
    script.drain();
    script.write(5_000);
    assert_eq!(left(&mut script), [(1, 500, false), (501, 500, true)]);
    script.run_for(40 * MS);
    script.inject(Segment {
        window: 1000,
        ..script.ack(1001)
    });
    assert_eq!(left(&mut script), [(1001, 500, false), (1501, 500, true)]);
}

#[test]
fn what_limits_sending_is_told() {
    let mut script = upstream();
    assert_eq!(script.connection.limit(), Limit::Idle);
    script.write(2 * MSS);
    assert_eq!(script.connection.limit(), Limit::Busy);
    script.drain();
    script.run_for(100 * MS);
    script.inject(Segment {
        window: 1,
        ..script.ack(1 + 2 * MSS)
    });
    assert_eq!(script.connection.limit(), Limit::Idle);
    script.write(MSS);
    assert_eq!(script.connection.limit(), Limit::ReceiveWindow);
    script.inject(Segment {
        window: 100,
        ..script.ack(1 + 2 * MSS)
    });
    assert_eq!(script.connection.limit(), Limit::Busy);

    let config = Config {
        nagle: false,
        ..with_profile(Profile::Linux, tcp())
    };
    let mut script = connected(&config);
    script.inject(script.ack(1));
    script.connection.fix_send_buffer(4_000);
    script.write(3 * MSS);
    assert_eq!(script.connection.limit(), Limit::Busy);
    script.write(1_000);
    assert_eq!(script.connection.limit(), Limit::SendBuffer);
}

/// RFC 9293 section 3.8.6.1: the same for a peer that took its window back from what was sent (Linux `tcp_retransmit_timer`).
#[test]
fn a_window_that_was_taken_back_may_stay_closed() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let mut script = connected(&with_profile(profile, tcp()));
        script.inject(script.ack(1));
        script.write(100_000);
        script.drain();
        let closed = |script: &Script| Segment {
            window: 0,
            ..script.ack(1)
        };
        script.inject(closed(&script));
        for _ in 0..30 {
            script.expect();
            script.inject(closed(&script));
        }
        assert_eq!(script.connection.ended(), None, "{profile:?}");
    }
}

/// What of a buffer is lost leaves together again, and its last segment is pushed; one that is alone is not (`__tcp_transmit_skb`).
#[test]
fn what_leaves_together_again_is_pushed() {
    let mut script = upstream();
    script.write(10 * MSS);
    let pairs = [false, true].repeat(5);
    assert!(
        left(&mut script)
            .iter()
            .map(|&(.., pushed)| pushed)
            .eq(pairs)
    );
    script.run_for(40 * MS);
    let at = |index: u64| 1 + index * MSS;
    script.inject(script.sack(at(1), &[(at(3), at(4)), (at(6), at(10))]));
    let full = MSS as u32;
    assert_eq!(
        left(&mut script),
        [
            (at(1), full, false),
            (at(2), full, false),
            (at(4), full, false),
            (at(5), full, true),
        ]
    );
}

//! The receiver's half.
//!
//! | rule | test |
//! |---|---|
//! | Linux's quick-ack start, RFC 9293 section 3.8.6.3 | `the_first_segments_are_acknowledged_at_once`, `every_second_full_segment_is_acknowledged`, `a_lone_segment_is_acknowledged_after_40_ms` |
//! | Linux `__tcp_ack_snd_check` | `from_the_fourth_on_duplicate_acks_are_compressed` |
//! | Linux `tcp_cleanup_rbuf`: the reader acknowledges once the instant's packets are taken in | `a_reader_acknowledges_an_instants_packets_together` |
//! | RFC 5681 section 4.2 | `out_of_order_data_is_acknowledged_at_once`, `a_filled_gap_is_acknowledged_at_once` |
//! | RFC 2018 section 4 | `the_latest_block_comes_first` |
//! | RFC 2883 | `a_duplicate_below_the_window_is_reported`, `a_duplicate_out_of_order_is_reported` |
//! | RFC 9293 section 3.8.6.2.2 | `the_window_closes_and_opens_by_at_least_a_segment`, `data_beyond_the_window_is_refused`, `what_reaches_beyond_the_window_is_trimmed_and_upstream_taken_if_nothing_is_unread` |
//! | RFC 7323 section 5.3 | `paws_refuses_old_timestamps`, `paws_lets_acknowledgements_pass` |
//! | RFC 3168 sections 6.1.3 and 6.1.5 | `marks_are_echoed_until_cwr`, `a_mark_on_a_duplicate_is_not_echoed` |
//! | RFC 9293 section 3.1 | `a_wrong_checksum_changes_nothing`, `an_acknowledgement_of_the_future_is_answered_and_ignored` |

use polypath_transport::{Arrival, Buffer, Codepoint, Config, Mib, Profile};
use polypath_wire::tcp::Flags;

use crate::common::script::{Peer, Script, Sent};
use crate::common::{MS, SECOND, tcp, with_profile};

const LEN: u32 = 1460;

fn at(index: u64) -> u64 {
    1 + index * u64::from(LEN)
}

fn accepted() -> Script {
    Script::accepted(&tcp(), Peer::default(), 20 * MS)
}

/// A receiver whose quick ACKs are used up after 16 segments.
fn after_the_quick_start() -> Script {
    let mut script = accepted();
    for index in 0..16 {
        script.inject(script.data(at(index), LEN, 1));
        script.expect_ack(at(index + 1));
        script.run_for(MS);
    }
    script.connection.read(u64::MAX, script.now);
    script
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    let mut script = after_the_quick_start();
    script.inject(script.data(at(16), LEN, 1));
    script.expect_nothing();
}

#[test]
fn every_second_full_segment_is_acknowledged() {
    let mut script = after_the_quick_start();
    for pair in 8..12 {
        script.inject(script.data(at(2 * pair), LEN, 1));
        script.expect_nothing();
        script.inject(script.data(at(2 * pair + 1), LEN, 1));
        script.expect_ack(at(2 * pair + 2));
        script.expect_nothing();
    }
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_ms() {
    let mut script = after_the_quick_start();
    let start = script.now;
    script.inject(script.data(at(16), LEN, 1));
    let delayed = script.expect_ack(at(17));
    assert_eq!(delayed.at - start, 40 * MS);
    assert_eq!(script.counter(Mib::TcpExtDelayedACKs), 1);
}

#[test]
fn out_of_order_data_is_acknowledged_at_once() {
    let mut script = after_the_quick_start();
    script.inject(script.data(at(18), LEN, 1));
    let duplicate = script.expect_ack(at(16)).segment;
    assert_eq!(script.blocks(&duplicate), [(at(18), at(19))]);
    assert_eq!(script.counter(Mib::TcpExtTCPOFOQueue), 1);
}

#[test]
fn from_the_fourth_on_duplicate_acks_are_compressed() {
    let config = Config {
        profile: Profile::Linux,
        receive_buffer: Buffer::from([60_000; 3]),
        ..tcp()
    };
    let mut script = Script::accepted(&config, Peer::default(), 20 * MS);
    for index in 0..60 {
        script.inject(script.data(at(index), LEN, 1));
        script.connection.read(u64::MAX, script.now);
        script.run_for(MS);
    }
    script.run_for(50 * MS);
    script.drain();
    // The first lets the window grow by what it is not charged yet: a quick ACK, which does not count.
    for index in 61..65 {
        script.inject(script.data(at(index), LEN, 1));
        script.expect_ack(at(60));
    }
    let start = script.now;
    for index in 65..68 {
        script.inject(script.data(at(index), LEN, 1));
        script.expect_nothing();
    }
    let one = script.expect_ack(at(60));
    assert_eq!(one.at - start, 1_010_000);
    assert_eq!(script.blocks(&one.segment), [(at(61), at(68))]);
    assert_eq!(script.counter(Mib::TcpExtTCPAckCompressed), 2);
    // A third island ends the wait of others, of whom alone is told.
    script.inject(script.data(at(69), LEN, 1));
    script.expect_nothing();
    script.inject(script.data(at(71), LEN, 1));
    let others = script.expect_ack(at(60));
    assert_eq!(
        script.blocks(&others.segment),
        [(at(69), at(70)), (at(61), at(68))]
    );
    script.expect_nothing();
    // Progress starts the count anew.
    script.inject(script.data(at(60), LEN, 1));
    script.expect_ack(at(68));
    script.inject(script.data(at(76), LEN, 1));
    script.expect_ack(at(68));
}

#[test]
fn a_filled_gap_is_acknowledged_at_once() {
    let mut script = after_the_quick_start();
    script.inject(script.data(at(17), LEN, 1));
    script.expect_ack(at(16));
    script.inject(script.data(at(16), LEN, 1));
    let full = script.expect_ack(at(18)).segment;
    assert!(full.sack.is_empty());
    assert_eq!(script.connection.available(), 2 * u64::from(LEN));
}

#[test]
fn the_latest_block_comes_first() {
    let mut script = accepted();
    let mut expected: Vec<(u64, u64)> = Vec::new();
    for index in [2, 4, 6, 8, 10] {
        script.inject(script.data(at(index), LEN, 1));
        expected.insert(0, (at(index), at(index + 1)));
        let segment = script.expect_ack(1).segment;
        // Four blocks fit without timestamps.
        assert_eq!(script.blocks(&segment), expected[..expected.len().min(4)]);
    }
    // A block that grows comes to the front.
    script.inject(script.data(at(5), LEN, 1));
    let segment = script.expect_ack(1).segment;
    assert_eq!(
        script.blocks(&segment)[..2],
        [(at(4), at(7)), (at(10), at(11))]
    );
    // With timestamps, three.
    let mut script = Script::accepted(
        &tcp(),
        Peer {
            timestamps: true,
            ..Peer::default()
        },
        20 * MS,
    );
    for index in [2, 4, 6, 8] {
        script.inject(script.data(at(index), LEN, 1));
    }
    let last = script.drain().pop().expect("an ACK").segment;
    assert_eq!(
        script.blocks(&last),
        [(at(8), at(9)), (at(6), at(7)), (at(4), at(5))]
    );
}

#[test]
fn a_duplicate_below_the_window_is_reported() {
    let mut script = accepted();
    script.inject(script.data(1, LEN, 1));
    script.expect_ack(at(1));
    script.inject(script.data(1, LEN, 1));
    let again = script.expect_ack(at(1)).segment;
    assert_eq!(script.blocks(&again), [(1, at(1))]);
    assert_eq!(script.counter(Mib::TcpExtTCPDSACKOldSent), 1);
    assert_eq!(script.connection.available(), u64::from(LEN));
    // Reported once.
    script.inject(script.data(at(2), LEN, 1));
    let next = script.expect_ack(at(1)).segment;
    assert_eq!(script.blocks(&next), [(at(2), at(3))]);
}

#[test]
fn a_duplicate_out_of_order_is_reported() {
    let mut script = accepted();
    script.inject(script.data(at(2), LEN, 1));
    script.expect_ack(1);
    script.inject(script.data(at(2), LEN, 1));
    let again = script.expect_ack(1).segment;
    assert_eq!(script.blocks(&again), [(at(2), at(3)), (at(2), at(3))]);
    assert_eq!(script.counter(Mib::TcpExtTCPDSACKOfoSent), 1);
}

fn small_window() -> Script {
    small_window_of(Profile::Rfc)
}

fn small_window_of(profile: Profile) -> Script {
    let size = 8 * u64::from(LEN);
    let buffer = Buffer::from([size; 3]);
    let config = Config {
        receive_buffer: buffer,
        autotuning: false,
        ..with_profile(profile, tcp())
    };
    Script::accepted(&config, Peer::default(), 20 * MS)
}

#[test]
fn the_window_closes_and_opens_by_at_least_a_segment() {
    let mut script = small_window();
    for index in 0..8u32 {
        script.inject(script.data(at(u64::from(index)), LEN, 1));
        let segment = script.expect_ack(at(u64::from(index) + 1)).segment;
        assert_eq!(u32::from(segment.window), (7 - index) * LEN);
    }
    assert_eq!(script.read(100), 100);
    script.expect_nothing();
    assert_eq!(script.read(2 * u64::from(LEN)), 2 * u64::from(LEN));
    let update = script.expect_ack(at(8)).segment;
    assert_eq!(u32::from(update.window), 2 * LEN + 100);
}

#[test]
fn data_beyond_the_window_is_refused() {
    let mut script = small_window();
    script.inject(script.data(at(8), LEN, 1));
    let refusal = script.expect_ack(1).segment;
    assert!(refusal.sack.is_empty());
    assert_eq!(script.counter(Mib::TcpExtTCPZeroWindowDrop), 1);
}

/// Of what is next in sequence and reaches beyond the window, the part within is taken (RFC 9293 section 3.10.7.4). Upstream takes it whole
/// while nothing waits to be read, or not at all (`tcp_sequence`).
#[test]
fn what_reaches_beyond_the_window_is_trimmed_and_upstream_taken_if_nothing_is_unread() {
    let (beyond, window) = (70_000, 8 * LEN);
    for (profile, unread, taken) in [
        (Profile::Rfc, 0, window),
        (Profile::Rfc, LEN, window - LEN),
        (Profile::Linux, 0, beyond),
        (Profile::Linux, LEN, 0),
    ] {
        let mut script = small_window_of(profile);
        if unread > 0 {
            script.inject(script.data(1, unread, 1));
        }
        script.run_for(SECOND);
        script.drain();
        let next = 1 + u64::from(unread);
        script.inject(script.data(next, beyond, 1));
        script.run_for(SECOND);
        let reached = script.read(u64::MAX);
        assert_eq!(reached, u64::from(unread + taken), "{profile:?} {unread}");
        let refused = script.counter(Mib::TcpExtTCPZeroWindowDrop);
        assert_eq!(refused, u32::from(taken == 0), "{profile:?} {unread}");
    }
}

/// RFC 9293 section 3.7.1: a segment and its options fit the packet. Beside a full segment there is no room for SACK blocks; the
/// acknowledgement that owes them goes alone.
#[test]
fn a_full_segment_has_no_sack_blocks_and_a_short_one_has() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let config = Config { profile, ..tcp() };
        let mut script = Script::accepted(&config, Peer::default(), 20 * MS);
        let mss = u64::from(script.connection.paths()[0].mss);
        script.write(12 * mss);
        script.drain();
        script.inject(script.data(at(1), LEN, 1 + 2 * mss));
        let sent = script.drain();
        let (data, alone): (Vec<&Sent>, _) = sent.iter().partition(|it| it.segment.payload.len > 0);
        assert!(!data.is_empty(), "{profile:?}");
        assert!(data.iter().all(|it| it.segment.sack.is_empty()));
        assert!(
            alone.iter().any(|it| !it.segment.sack.is_empty()),
            "{profile:?}"
        );
        script.inject(script.ack(1 + 12 * mss));
        script.drain();
        script.write(100);
        let short = script.expect_data(1 + 12 * mss, 100).segment;
        assert!(!short.sack.is_empty(), "{profile:?}");
    }
}

fn with_timestamps() -> Script {
    let mut script = Script::accepted(
        &tcp(),
        Peer {
            timestamps: true,
            ..Peer::default()
        },
        20 * MS,
    );
    script.peer_clock = Some(5_000);
    script.inject(script.data(1, 1000, 1));
    script.expect_ack(1001);
    script
}

#[test]
fn paws_refuses_old_timestamps() {
    let mut script = with_timestamps();
    script.run_for(SECOND);
    // An old duplicate whose sequence number wrapped into the window.
    script.peer_clock = Some(4_000);
    script.inject(script.data(1001, 1000, 1));
    let answer = script.expect_ack(1001).segment;
    assert_eq!(answer.timestamps.map(|(_, echo)| echo), Some(5_000));
    assert_eq!(script.counter(Mib::TcpExtPAWSEstab), 1);
    assert_eq!(script.connection.available(), 1000);
    script.peer_clock = Some(5_001);
    script.inject(script.data(1001, 1000, 1));
    script.expect_ack(2001);
}

#[test]
fn paws_lets_acknowledgements_pass() {
    let mut script = with_timestamps();
    script.peer_clock = Some(4_990);
    script.inject(script.ack_at(1001, 1));
    assert_eq!(script.counter(Mib::TcpExtPAWSEstab), 0);
}

#[test]
fn marks_are_echoed_until_cwr() {
    let peer = Peer {
        flags: Flags::ECE | Flags::CWR,
        ..Peer::default()
    };
    let mut script = Script::accepted(&Config { ecn: true, ..tcp() }, peer, 20 * MS);
    let marked = Arrival {
        ecn: Codepoint::Ce,
        ..Arrival::default()
    };
    script.inject_with(script.data(at(0), LEN, 1), marked);
    assert!(script.expect_ack(at(1)).segment.flags.contains(Flags::ECE));
    script.inject(script.data(at(1), LEN, 1));
    assert!(script.expect_ack(at(2)).segment.flags.contains(Flags::ECE));
    let mut reduced = script.data(at(2), LEN, 1);
    reduced.flags |= Flags::CWR;
    script.inject(reduced);
    assert!(!script.expect_ack(at(3)).segment.flags.contains(Flags::ECE));
}

#[test]
fn a_wrong_checksum_changes_nothing() {
    let mut script = accepted();
    script.inject_with(
        script.data(1, LEN, 1),
        Arrival {
            corrupted: true,
            ..Arrival::default()
        },
    );
    script.expect_nothing();
    assert_eq!(script.counter(Mib::TcpInCsumErrors), 1);
    assert_eq!(script.connection.available(), 0);
}

/// RFC 9293 section 3.10.7.4, fifth step.
#[test]
fn an_acknowledgement_of_the_future_is_answered_and_ignored() {
    let mut script = accepted();
    script.inject(script.data(1, LEN, 5000));
    script.expect_ack(1);
    assert_eq!(script.connection.available(), 0);
}

#[test]
fn a_reader_acknowledges_an_instants_packets_together() {
    let config = Config {
        profile: Profile::Linux,
        receive_buffer: Buffer::from([60_000; 3]),
        ..tcp()
    };
    let mut script = Script::accepted(&config, Peer::default(), 20 * MS);
    let pushed = |script: &Script, index: u64| {
        let mut segment = script.data(1 + 1000 * index, 1000, 1);
        segment.flags |= Flags::PSH;
        segment
    };
    for index in 0..100 {
        script.inject(pushed(&script, index));
        script.read(u64::MAX);
        script.run_for(MS);
    }
    script.drain();
    // One by one the reader empties the buffer and acknowledges each.
    for index in 100..102 {
        script.inject(pushed(&script, index));
        script.read(u64::MAX);
        script.expect_ack(1 + 1000 * (index + 1));
    }
    for index in 102..104 {
        script.take_in(pushed(&script, index));
    }
    script.run_processes();
    script.expect_ack(1 + 1000 * 104);
    script.expect_nothing();
}

/// An acknowledgement of data that was never sent is not the peer's; its timestamp is not echoed (Linux `tcp_ack`).
#[test]
fn an_impossible_acknowledgement_leaves_the_timestamp() {
    let mut script = with_timestamps();
    script.run_for(10 * MS);
    script.peer_clock = Some(1_000_000);
    script.inject(script.ack_at(1, 9_999));
    script.drain();
    script.peer_clock = None;
    script.inject(script.data(1, 1_000, 1));
    let answer = script.drain().pop().expect("the data is acknowledged");
    let (_, echo) = answer.segment.timestamps.expect("timestamps are on");
    assert!(echo < 1_000_000, "{echo}");
}

/// RFC 3168 section 6.1.5: a mark on data that came before is none.
#[test]
fn a_mark_on_a_duplicate_is_not_echoed() {
    let peer = Peer {
        flags: Flags::ECE | Flags::CWR,
        ..Peer::default()
    };
    let mut script = Script::accepted(&Config { ecn: true, ..tcp() }, peer, 20 * MS);
    script.inject(script.data(at(0), LEN, 1));
    script.expect_ack(at(1));
    let marked = Arrival {
        ecn: Codepoint::Ce,
        ..Arrival::default()
    };
    script.inject_with(script.data(at(0), LEN, 1), marked);
    assert!(!script.expect_ack(at(1)).segment.flags.contains(Flags::ECE));
}

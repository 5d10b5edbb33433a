use super::*;
use crate::settings::{Buffer, Profile};

fn receiver(profile: Profile, buffer: u64) -> Receiver {
    let receive_buffer = Buffer::from([buffer; 3]);
    let mut receiver = Receiver::new(&Config {
        profile,
        receive_buffer,
        ..Config::default()
    });
    receiver.set_mss(1000);
    receiver
}

#[test]
fn the_window_is_what_the_buffer_has_left() {
    let mut receiver = receiver(Profile::Rfc, 20_000);
    assert_eq!(receiver.window(None, 0), 20_000);
    receiver.deliver(0, 5_000);
    assert_eq!(receiver.window(None, 0), 15_000);
    receiver.read(5_000, None, 1);
    assert_eq!(receiver.window(None, 0), 20_000);
}

#[test]
fn out_of_order_data_holds_the_edge_in_the_kernels_only() {
    for (profile, window) in [(Profile::Rfc, 20_000), (Profile::MptcpOrg, 20_000 - 4_000)] {
        let mut receiver = receiver(profile, 20_000 * 256 / profile.window_share());
        assert_eq!(receiver.window(None, 0), 20_000);
        assert_eq!(receiver.deliver(8_000, 4_000), 4_000);
        assert_eq!(receiver.deliver(0, 4_000), 4_000);
        receiver.read(4_000, None, 1);
        assert_eq!(receiver.window(None, 0), window.max(16_000));
        assert_eq!(receiver.deliver(2_000, 10_000), 4_000);
        assert_eq!(receiver.next, 12_000);
        assert_eq!(receiver.reassembly_bytes(), 0);
    }
}

fn upstream(mptcp: bool, buffer: u64) -> (Receiver, SocketWindow) {
    autotuned(mptcp, buffer, buffer)
}

fn autotuned(mptcp: bool, buffer: u64, maximum: u64) -> (Receiver, SocketWindow) {
    let receive_buffer = Buffer {
        minimum: buffer,
        default: buffer,
        maximum,
    };
    let mut receiver = Receiver::new(&Config {
        profile: Profile::Linux,
        multipath: mptcp,
        receive_buffer,
        ..Config::default()
    });
    receiver.set_mss(1448);
    let share = Profile::Linux.window_share();
    (receiver, SocketWindow::new(buffer, share))
}

/// The windows of the kernel's first ACKs with a buffer of 128 KiB.
#[test]
fn upstreams_window_grows_by_two_segments_to_what_the_buffer_holds() {
    let (mut receiver, mut own) = upstream(false, 131_072);
    assert_eq!(receiver.scale(), 7);
    assert_eq!(receiver.first_window(Some(&mut own), 1448, true), 65_160);
    let mut windows = Vec::new();
    for segment in 1..=8 {
        let received = 1 + segment * 1448;
        receiver.end_instant();
        receiver.deliver(receiver.next, 1448);
        receiver.in_sequence(Some(&mut own), 1448, false, received, 0, segment);
        assert_eq!(receiver.grew(), segment < 8);
        windows.push(receiver.window(Some(&mut own), received));
        receiver.read(1448, Some(&own), segment);
    }
    let kernel = [
        67_072, 69_888, 72_832, 75_776, 78_592, 81_536, 81_536, 81_536,
    ];
    assert_eq!(windows, kernel);
}

/// 161/256 of a buffer's memory is payload, in whole steps the average over windows comes as far as 154/256.
#[test]
fn upstreams_connection_follows_the_share_of_its_subflows() {
    let (mut receiver, mut own) = upstream(true, 262_144);
    receiver.first_window(Some(&mut own), 1448, true);
    let mut shares = Vec::new();
    for round in 1..=20 {
        receiver.sample_rtt(Some(&mut own), 1424, round as u32, 20);
        receiver.in_sequence(Some(&mut own), 1424, false, round * 1_000_000, 0, round);
        shares.push(receiver.share);
        receiver.window(Some(&mut own), round * 1_000_000);
    }
    assert_eq!(shares[..4], [132, 135, 138, 140]);
    assert_eq!(shares[19], 154);
}

/// Seventeen segments that wait cost their payload and one buffer.
#[test]
fn upstream_counts_what_waits_as_memory() {
    let (mut receiver, mut own) = upstream(true, 262_144);
    receiver.first_window(Some(&mut own), 1448, true);
    receiver.sample_rtt(Some(&mut own), 1448, 1, 20);
    receiver.in_sequence(Some(&mut own), 1424, false, 1425, 0, 1);
    receiver.deliver(1424, 17 * 1424);
    assert_eq!(
        receiver.space().free,
        (262_144 - 17 * 1424 - 832) * 132 / 256
    );
    receiver.held = 100_000;
    assert_eq!(
        receiver.space().free,
        (262_144 - 17 * 1424 - 832) * 132 / 256
    );
}

/// Ten segments of 1460 bytes twice, and a megabyte beyond a hole, of which 162/256 of the memory is payload.
#[test]
fn upstream_makes_room_for_what_waits_behind_a_hole() {
    let (mut receiver, mut own) = autotuned(false, 131_072, 6_291_456);
    receiver.first_window(Some(&mut own), 1448, true);
    receiver.in_sequence(Some(&mut own), 1448, false, 1449, 0, 1);
    receiver.out_of_sequence(Some(&mut own), 1448, 0, 1_000_000, false);
    assert_eq!(receiver.buffer(), (28_960 + 1_000_000) * 256 / 162);
    let (mut fixed, mut own) = upstream(false, 131_072);
    fixed.first_window(Some(&mut own), 1448, true);
    fixed.out_of_sequence(Some(&mut own), 1448, 0, 1_000_000, false);
    assert_eq!(fixed.buffer(), 131_072);
}

/// What waits out of order takes from the room into which a window may grow.
#[test]
fn upstreams_window_does_not_grow_into_what_waits() {
    let mut grew = Vec::new();
    for waiting in [0, 50_000, 100_000] {
        let (mut receiver, mut own) = upstream(false, 131_072);
        receiver.first_window(Some(&mut own), 1448, true);
        receiver.in_sequence(Some(&mut own), 1448, false, 1449, waiting, 1);
        grew.push(receiver.grew());
    }
    assert_eq!(grew, [true, false, false]);
}

#[test]
fn upstream_does_not_measure_while_more_is_to_be_read() {
    for (pieces, grows) in [(&[300_000][..], true), (&[65_536, 234_464][..], false)] {
        let (mut receiver, mut own) = autotuned(true, 131_072, 6_291_456);
        receiver.first_window(Some(&mut own), 1448, true);
        receiver.sample_rtt(Some(&mut own), 1448, 1, 20);
        receiver.in_sequence(Some(&mut own), 1448, false, 1449, 0, 1);
        receiver.deliver(0, 300_000);
        for &piece in pieces {
            receiver.read(piece, Some(&own), 100 * MILLISECOND);
        }
        assert_eq!(receiver.buffer() > 131_072, grows, "{pieces:?}");
    }
}

/// As in the kernel's SYN and SYN/ACK over Ethernet: 44 segments of 1460 bytes, 45 of 1448.
#[test]
fn upstreams_first_window_holds_full_segments() {
    let (mut receiver, mut own) = upstream(true, 131_072);
    assert_eq!(receiver.first_window(Some(&mut own), 1460, true), 64_240);
    let (_, mut own) = upstream(true, 131_072);
    assert_eq!(receiver.first_window(Some(&mut own), 1448, false), 65_160);
}

#[test]
fn upstream_takes_the_shortest_subflow_for_the_round_trip() {
    let (mut receiver, mut own) = upstream(true, 131_072);
    let (_, mut other) = upstream(true, 131_072);
    for (segment, first, rtt) in [(1, false, 100), (2, true, 40), (3, true, 20)] {
        let window = if first { &mut own } else { &mut other };
        receiver.sample_rtt(Some(window), 1448, segment, rtt);
        let now = u64::from(segment) * 100_000_000;
        receiver.in_sequence(Some(window), 1448, false, now, 0, now);
    }
    receiver.read(1, Some(&own), 1);
    receiver.tune(Some(&own), 1_000_000_000);
    assert_eq!(receiver.rtt, 20_000_000);
    receiver.sample_rtt(Some(&mut own), 1448, 9, 100);
    let upstream = receiver.upstream.as_ref().expect("upstream's rules");
    assert_eq!(upstream.round_trips.least(), 20_000_000);
}

/// The first round trip begins with the connection upstream, and with what is read first elsewhere: a first read within it is measured
/// with what follows, or by itself.
#[test]
fn a_receivers_first_round_trip_begins_with_its_connection() {
    let began = |profile| {
        let mut receiver = receiver(profile, 131_072);
        receiver.begin(5 * MILLISECOND);
        receiver.tuning.began_at
    };
    assert_eq!(began(Profile::Linux), 5 * MILLISECOND);
    assert_eq!(began(Profile::Rfc), 0);
    for (established, grows) in [(0, true), (90, false)] {
        let (mut receiver, mut own) = autotuned(false, 131_072, 6_291_456);
        receiver.first_window(Some(&mut own), 1448, true);
        receiver.begin(established * MILLISECOND);
        receiver.sample_rtt(Some(&mut own), 1448, 1, 20);
        receiver.in_sequence(Some(&mut own), 1448, false, 1449, 0, 1);
        receiver.deliver(0, 300_000);
        let read = receiver.read(300_000, Some(&own), 100 * MILLISECOND);
        assert_eq!(read.grows.is_some(), grows, "{established} ms");
    }
}

#[test]
fn the_buffer_grows_with_the_rate_of_reading() {
    let mut receiver = Receiver::new(&Config::default());
    receiver.set_mss(1448);
    receiver.sample_rtt(None, 1448, 1, 10);
    let before = receiver.buffer();
    for round in 1..20u64 {
        let bytes = 20_000 * round;
        receiver.deliver(receiver.next, bytes);
        receiver.read(bytes, None, round * 10_000_000);
    }
    assert!(receiver.buffer() > 2 * before, "{}", receiver.buffer());
}

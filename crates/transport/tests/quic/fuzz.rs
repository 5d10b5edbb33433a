//! The fuzz targets of the endpoint, on seeded bytes and on frames of every kind.

use polypath_transport::quic::fuzz::{TARGETS, network, peer};
use polypath_wire::quic::{Frame, encode_frame};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::strategies;

/// Frames as the peer's target reads them: groups with their length before them.
fn packets(kind: u8, groups: Vec<Vec<(Frame, Vec<u8>)>>) -> Vec<u8> {
    let mut script = vec![kind];
    for group in groups {
        let mut frames = Vec::new();
        for (frame, payload) in group {
            let mut fill = |_, out: &mut [u8]| out.copy_from_slice(&payload[..out.len()]);
            let before = frames.len();
            let fits = encode_frame(&frame, &mut fill, &mut frames).is_ok();
            if !fits || frames.len() > 255 {
                frames.truncate(before);
            }
        }
        script.push(frames.len() as u8);
        script.extend(frames);
    }
    script
}

/// More of them if asked for.
fn cases() -> u32 {
    let asked = std::env::var("POLYPATH_FUZZ_CASES").ok();
    asked.map_or(150, |cases| cases.parse().expect("a number of cases"))
}

#[test]
fn a_network_that_does_nothing_takes_nothing() {
    for kind in 0..4 {
        network(&[kind]);
    }
}

#[test]
fn what_fuzzing_found_stays_mended() {
    for (_, target) in TARGETS {
        for kind in 0..4 {
            target(&[kind, 4, 255, 255, 255, 255]);
        }
    }
}

/// The handshake lost packets, so that the round-trip time is taken to be a second: four probe timeouts are 15 s, and the fifth would come after
/// the idle timeout.
#[test]
fn a_connection_that_hears_nothing_for_its_idle_timeout_may_end() {
    network(&[
        0x00, 0x01, 0x59, 0x59, 0x01, 0x00, 0x59, 0x59, 0x59, 0xa7, 0x59, 0x59, 0xd9, 0x59, 0x59,
        0x59, 0x59, 0x59, 0x59, 0xa7, 0xa7, 0xa7, 0x59, 0x59, 0x59, 0x59, 0xa7, 0x59, 0x59, 0xd9,
        0x59, 0x59, 0x59, 0x59, 0x59, 0x59,
    ]);
}

/// A copy of each of the client's datagrams comes first from elsewhere, until the network has had enough of it.
#[test]
fn a_server_comes_back_from_an_address_that_is_not_the_clients() {
    network(&[0x07; 600]);
    network(&[&[0x01], &[0x07; 600][..]].concat());
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(9000),
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases())
    })]

    #[test]
    fn a_hostile_network_takes_nothing_of_a_connection(bytes in vec(any::<u8>(), 0..600)) {
        network(&bytes);
    }

    #[test]
    fn random_bytes_under_the_right_keys_end_the_connection_at_worst(bytes in vec(any::<u8>(), 0..300)) {
        peer(&bytes);
    }

    #[test]
    fn frames_under_the_right_keys_end_the_connection_at_worst(
        kind in 0..4u8,
        groups in vec(vec(strategies::frame(), 1..4), 1..12),
    ) {
        peer(&packets(kind, groups));
    }
}

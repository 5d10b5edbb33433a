//! A connection that goes on with what an earlier one found (RFC 9959).

use polypath_transport::{Config, MILLISECOND as MS, Nanos, Retained, SECOND};

use crate::pair::Pair;
use crate::{MBPS, link, multipath, quic};

const BYTES: u64 = 2_000_000;

/// How long an upload takes over a link of 300 ms and this rate.
fn upload(config: &Config, rate: u64, retained: &Retained) -> Nanos {
    let mut pair = Pair::retaining(config, vec![link(rate, 150 * MS)], 1, retained);
    pair.establish();
    let begun = pair.now;
    pair.client.write(BYTES, begun);
    pair.run_until(begun + 60 * SECOND, |pair| pair.read[1] == BYTES);
    assert_eq!(pair.read[1], BYTES);
    pair.now - begun
}

fn resuming(config: Config) -> Config {
    Config {
        careful_resume: true,
        ..config
    }
}

#[test]
fn the_second_upload_saves_round_trips_of_slow_start() {
    for config in [quic(), multipath()] {
        let retained = Retained::default();
        let config = resuming(config);
        let first = upload(&config, 20 * MBPS, &retained);
        let second = upload(&config, 20 * MBPS, &retained);
        assert!(second + 600 * MS < first, "{first} {second}");
    }
}

#[test]
fn without_the_setting_nothing_is_kept() {
    let retained = Retained::default();
    let first = upload(&quic(), 20 * MBPS, &retained);
    assert_eq!(upload(&quic(), 20 * MBPS, &retained), first);
}

#[test]
fn a_path_that_carries_less_by_now_is_left_no_slower_than_by_slow_start() {
    let retained = Retained::default();
    let config = resuming(quic());
    upload(&config, 20 * MBPS, &retained);
    let resumed = upload(&config, 4 * MBPS, &retained);
    let fresh = upload(&quic(), 4 * MBPS, &Retained::default());
    assert!(resumed < fresh * 11 / 10, "{resumed} {fresh}");
}

//! TCP Illinois, with figures worked out from `net/ipv4/tcp_illinois.c`.

use polypath_transport::MILLISECOND as MS;
use polypath_transport::path::{CaState, Member};
use serde_json::Map;

use crate::lab::Lab;

/// A window that was once the whole of a queue of 100 ms, beside an RTT of 50 ms.
fn lab() -> Lab {
    let mut lab = Lab::new("illinois", &Map::new(), &[50 * MS]);
    (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (100, 5);
    lab.round(0, lab.now, false);
    at(&mut lab, 150, 1);
    lab
}

/// Round trips of so many milliseconds.
fn at(lab: &mut Lab, rtt: u64, rounds: u32) {
    lab.rtt[0] = rtt * MS;
    for _ in 0..rounds {
        lab.round(0, lab.now, false);
    }
}

fn variables(lab: &Lab) -> (f64, f64) {
    let variables = lab.controllers[0].observe();
    (variables[0].1, variables[1].1)
}

/// `alpha`: 10 up to a hundredth of the most delay, then 1/(k + delay): at half of it 74/128, at all of it 38/128. `beta`: 1/8 up to a
/// tenth, 1/2 from eight tenths, a line between them.
#[test]
fn the_delay_sets_increase_and_decrease() {
    for (rtt, alpha, beta) in [
        (50, 1280, 8),
        (60, 322, 8),
        (95, 82, 20),
        (100, 74, 21),
        (130, 47, 32),
        (150, 38, 32),
    ] {
        let mut lab = lab();
        // One round trip to forget the last one's samples, and as many low ones as allow the full increase.
        at(&mut lab, rtt, 8);
        let expected = (f64::from(alpha) / 128.0, f64::from(beta) / 64.0);
        assert_eq!(variables(&lab), expected, "{rtt} ms");
    }
}

/// One good round trip is not enough for the full increase: `theta` of them are.
#[test]
fn five_round_trips_of_low_delay() {
    let mut lab = lab();
    at(&mut lab, 150, 2);
    // The first of these ends the last round trip of the delay.
    at(&mut lab, 50, 5);
    assert_eq!(variables(&lab).0, 38.0 / 128.0);
    at(&mut lab, 50, 1);
    assert_eq!(variables(&lab).0, 10.0);
}

/// Below `win_thresh` packets it is Reno, and after a timeout until the next round trip.
#[test]
fn a_small_window_is_renos() {
    let mut lab = lab();
    lab.paths[0].cwnd = 14;
    at(&mut lab, 50, 2);
    assert_eq!(variables(&lab), (1.0, 0.5));
    lab.paths[0].cwnd = 15;
    at(&mut lab, 50, 8);
    assert_eq!(variables(&lab), (10.0, 0.125));
    lab.controllers[0].on_state(&mut Member::new(&mut lab.paths, 0), CaState::Loss);
    assert_eq!(variables(&lab), (1.0, 0.5));
}

/// Ten packets a round trip where there is no queue, less the one acknowledgement of ten at which each window began; a loss leaves seven eighths.
#[test]
fn an_empty_queue_is_filled_fast_and_left_full() {
    let mut lab = Lab::new("illinois", &Map::new(), &[50 * MS]);
    (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (100, 5);
    for _ in 0..10 {
        lab.round(0, lab.now, true);
    }
    let window = lab.paths[0].cwnd;
    assert!((190..=200).contains(&window), "{window}");
    lab.paths[0].cwnd = 200;
    let threshold = lab.controllers[0].ssthresh(&mut Member::new(&mut lab.paths, 0));
    assert_eq!(threshold, 175);
}

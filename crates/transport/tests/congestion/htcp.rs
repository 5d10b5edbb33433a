//! H-TCP, with figures worked out from `net/ipv4/tcp_htcp.c`.

use polypath_transport::MILLISECOND as MS;
use polypath_transport::path::{CaState, Member};
use serde_json::{Map, Value};

use crate::lab::Lab;

fn lab(parameters: &[(&str, bool)], rtt: u64) -> Lab {
    let parameters: Map<String, Value> = (parameters.iter())
        .map(|&(name, value)| (name.to_string(), value.into()))
        .collect();
    let mut lab = Lab::new("htcp", &parameters, &[rtt * MS]);
    (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (100, 5);
    lab
}

fn variable(lab: &Lab, name: &str) -> f64 {
    let variables = lab.controllers[0].observe();
    let found = variables.iter().find(|(known, _)| *known == name);
    found.expect("it is observed").1
}

/// What the increase is, but for 2 (1 - beta).
fn factor(lab: &Lab) -> f64 {
    variable(lab, "alpha_packets") / (2.0 * (1.0 - variable(lab, "beta")))
}

fn threshold(lab: &mut Lab) -> u32 {
    lab.controllers[0].ssthresh(&mut Member::new(&mut lab.paths, 0))
}

/// `htcp_alpha_update`: one packet up to a second after a congestion; then with d seconds more, 1 + 10 d + d^2/4. Alpha is 2 (1 - beta) times
/// that. An RTT of 200 ms doubles it: the scale of 0.1 s over the RTT is 0.5.
#[test]
fn the_increase_grows_with_time() {
    let increase = |scaled: bool, rtt: u64, after: u64| {
        let mut lab = lab(&[("rtt_scaling", scaled)], rtt);
        lab.round_of(0, 1);
        lab.lose(0, CaState::Recovery);
        let congested = lab.now;
        lab.now = congested + after * MS;
        lab.measure(0, rtt * MS);
        threshold(&mut lab);
        factor(&lab)
    };
    // Congestion ended at the last acknowledgement, an RTT of 200 ms before.
    for (after, expected) in [(0, 1.0), (800, 1.0), (1_800, 11.0), (4_800, 45.0)] {
        assert_eq!(increase(false, 200, after), expected, "{after}");
        assert_eq!(increase(true, 200, after), 2.0 * expected, "{after}");
    }
    // Of 10 ms: a tenth, and at least one packet.
    assert_eq!(increase(true, 10, 4_990), 4.0);
    assert_eq!(increase(true, 10, 0), 1.0);
}

/// `htcp_beta_update`: half at the first congestion, then the least RTT over the most, between a half and 0.8, where the rate stays as it was.
#[test]
fn the_decrease_follows_the_queue() {
    let left = |rtts: [u64; 2], switch: bool| {
        let mut lab = lab(&[("bandwidth_switch", switch)], rtts[0]);
        lab.round(0, lab.now, false);
        lab.rtt[0] = rtts[1] * MS;
        for _ in 0..20 {
            lab.round(0, lab.now, false);
        }
        let first = threshold(&mut lab);
        (first, threshold(&mut lab))
    };
    // 100/115 is more than 0.8; 102/128 of 100 packets are 79. The most RTT falls by a twentieth of its distance from the least each time.
    assert_eq!(left([100, 115], false), (50, 79));
    // 100/119 in 128ths is 107; 100/120.
    assert_eq!(left([60, 80], false), (50, 75));
    // A sample of more than 20 ms above the most RTT is no queue.
    assert_eq!(left([60, 90], false), (50, 79));
    // Of at most 10 ms: always half.
    assert_eq!(left([10, 12], false), (50, 50));
    // The first time the rate is new, and the second time the congestion.
    assert_eq!(left([60, 80], true), (50, 50));
}

/// `htcp_cong_avoid` adds alpha packets a window: here one of 128/128 for 100 acknowledged and one more acknowledgement to notice.
#[test]
fn one_packet_a_round_trip_at_first() {
    let mut lab = lab(&[("rtt_scaling", false)], 50);
    lab.round_of(0, 100);
    assert_eq!(lab.paths[0].cwnd, 100);
    lab.round_of(0, 1);
    assert_eq!(lab.paths[0].cwnd, 101);
}

/// `htcp_cwnd_undo`: the time of the congestion is that of before, too, so that the increase goes on growing.
#[test]
fn an_undone_congestion_was_none() {
    let mut lab = lab(&[("rtt_scaling", false)], 100);
    lab.round_of(0, 1);
    lab.now += 4_900 * MS;
    lab.measure(0, 100 * MS);
    let (before, prior) = (lab.paths[0].clone(), lab.paths[0].cwnd);
    let threshold = threshold(&mut lab);
    assert_eq!(threshold, prior / 2);
    let controller = &mut lab.controllers[0];
    let mut path = Member::new(&mut lab.paths, 0);
    controller.on_state(&mut path, CaState::Recovery);
    path.cwnd = threshold;
    assert_eq!(controller.undo(&path, prior), prior);
    controller.on_state(&mut path, CaState::Open);
    lab.paths[0] = before;
    lab.controllers[0].ssthresh(&mut Member::new(&mut lab.paths, 0));
    // 4 s more than the first.
    assert_eq!(factor(&lab), 45.0);
}

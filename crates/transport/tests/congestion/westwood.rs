//! Westwood+, with figures worked out from `net/ipv4/tcp_westwood.c`.

use polypath_transport::congestion::Ack;
use polypath_transport::path::Member;
use polypath_transport::{Config, MILLISECOND as MS, SECOND};
use serde_json::Map;

use crate::common::{Link, Pair, Side, tcp};
use crate::lab::{Lab, MSS};

/// A packet each 5 ms: 21 packets of 1400 bytes in the 105 ms that are the first longer than an RTT of 100 ms, 280 bytes a millisecond.
fn steady() -> Lab {
    let mut lab = Lab::new("westwood", &Map::new(), &[100 * MS]);
    (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (20, 5);
    for _ in 0..20 {
        lab.round(0, lab.now, false);
    }
    lab
}

fn variable(lab: &Lab, name: &str) -> f64 {
    let variables = lab.controllers[0].observe();
    let found = variables.iter().find(|(known, _)| *known == name);
    found.expect("it is observed").1
}

/// `tcp_westwood_bw_rttmin`: 280 bytes a millisecond times 100 ms are 20 packets.
#[test]
fn a_reduction_ends_at_what_the_path_carries() {
    let mut lab = steady();
    assert_eq!(variable(&lab, "bandwidth_mbps"), 2.24);
    (lab.paths[0].cwnd, lab.paths[0].ssthresh) = (30, 15);
    lab.controllers[0].on_reduced(&mut Member::new(&mut lab.paths, 0));
    assert_eq!((lab.paths[0].cwnd, lab.paths[0].ssthresh), (20, 20));
}

/// `CA_EVENT_LOSS`: the threshold, not the window; and the next RTT is the least one, however long.
#[test]
fn a_timeout_forgets_the_least_rtt() {
    let mut lab = steady();
    lab.paths[0].cwnd = 1;
    lab.controllers[0].on_timeout(&mut Member::new(&mut lab.paths, 0));
    assert_eq!((lab.paths[0].cwnd, lab.paths[0].ssthresh), (1, 20));
    assert_eq!(variable(&lab, "least_rtt_ms"), 100.0);
    lab.rtt[0] = 150 * MS;
    lab.delayed_ack(0, 1);
    assert_eq!(variable(&lab, "least_rtt_ms"), 150.0);
}

/// `westwood_acked_count`: what was counted out of order is not counted again. The first acknowledgement and three out of order count for
/// four packets, so that one of four in order counts as one: 7000 bytes in 70 ms.
#[test]
fn packets_out_of_order_count_once() {
    let mut lab = Lab::new("westwood", &Map::new(), &[50 * MS]);
    let begin = lab.now;
    for (after, packets) in [(0, 1), (10, 0), (20, 0), (30, 0), (40, 4), (70, 1)] {
        lab.paths[0].acked += packets * u64::from(MSS);
        let ack = Ack {
            now: begin + after * MS,
            packets: 1,
            marked: 0,
            rtt: Some(50 * MS),
            cwnd_limited: true,
            next_seq: 0,
            una: 0,
        };
        lab.controllers[0].on_sample(&mut Member::new(&mut lab.paths, 0), &ack);
    }
    assert_eq!(variable(&lab, "bandwidth_mbps"), 0.8);
}

/// 10 Mbps and 40 ms hold 34 packets, and the queue 170 more: a loss leaves Reno half of them all, and Westwood+ those without the queue. An
/// interval of the rate ends with an acknowledgement, up to a packet later than the RTT.
#[test]
fn a_deep_queue_empties() {
    let threshold = |congestion: &str| {
        let config = Config {
            congestion: congestion.into(),
            ..tcp()
        };
        let link = Link::limited(20 * MS, 10_000_000, 200 * MS);
        let mut pair = Pair::with(&config, &config, vec![link], 1, 7);
        pair.write(Side::Client, 1 << 40);
        pair.run_until(60 * SECOND);
        pair.client.connection().paths()[0].ssthresh
    };
    let (reno, westwood) = (threshold("reno"), threshold("westwood"));
    assert!((98..=106).contains(&reno), "{reno}");
    assert!((32..=36).contains(&westwood), "{westwood}");
}

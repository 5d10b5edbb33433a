//! PCC: Vivace and MPCC over real endpoints and links with a rate and a queue.

use polypath_transport::{Config, MILLISECOND as MS, Mib, Nanos, SECOND};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use crate::bbr::Lab;
use crate::common::{Fate, Side, tcp};

fn lab(parameters: Value, queue: Nanos) -> Lab {
    let mut config = Config {
        congestion: "vivace".into(),
        ..tcp()
    };
    if let Value::Object(parameters) = parameters {
        config.congestion.parameters = parameters;
    }
    let mut lab = Lab::of(&config, queue);
    lab.0.write(Side::Client, 1 << 40);
    lab
}

fn latency() -> Lab {
    lab(Value::Null, 200 * MS)
}

fn loss(weight: f64) -> Lab {
    let parameters = json!({ "latency_weight": 0.0, "loss_weight": weight });
    lab(parameters, 200 * MS)
}

/// The longest smoothed RTT from one time to another.
fn longest(lab: &mut Lab, from: Nanos, to: Nanos) -> Nanos {
    (from / MS..to / MS)
        .map(|step| lab.at(step * MS).srtt)
        .max()
        .unwrap_or(0)
}

/// Each packet takes a part of every loss.
fn lose(lab: &mut Lab, part: f64) {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    lab.0.hook(move |packet| {
        if packet.carries_data() && random.random_bool(part) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
}

/// The rate doubles from interval to interval while utility grows, and half of the last one is what probing begins at.
#[test]
fn it_doubles_until_utility_falls() {
    let mut lab = latency();
    let rates: Vec<f64> = (0..600)
        .map(|step| lab.at(step * MS).variable("rate_mbit_s"))
        .collect();
    let mut seen: Vec<f64> = rates.into_iter().filter(|&rate| rate > 0.0).collect();
    seen.dedup();
    for pair in seen.windows(2).take(2) {
        assert!((pair[1] / pair[0] - 2.0).abs() < 1e-9, "{seen:?}");
    }
    assert!((seen[3] / seen[2] - 0.5).abs() < 1e-9, "{seen:?}");
    assert!(seen[2] > 10.0 && seen[2] < 20.0, "{seen:?}");
}

/// A growing RTT costs 900 times the rate, so that no queue stands.
#[test]
fn the_pipe_is_full_and_the_queue_short() {
    let mut lab = latency();
    assert!(lab.utilisation(4 * SECOND, 12 * SECOND) > 0.93);
    let longest = longest(&mut lab, 12 * SECOND, 15 * SECOND);
    assert!(longest < 50 * MS, "{longest}");
    assert_eq!(lab.0.counter(Side::Client, Mib::TcpRetransSegs), 0);
}

/// Without a cost of delay the queue fills, and few of its packets are lost: at the rate of the link a twentieth more costs half a utility.
#[test]
fn vivace_loss_fills_the_queue() {
    let mut lab = loss(11.35);
    assert!(lab.utilisation(4 * SECOND, 12 * SECOND) > 0.96);
    assert!(longest(&mut lab, 12 * SECOND, 14 * SECOND) > 150 * MS);
    let before = lab.0.counter(Side::Client, Mib::TcpRetransSegs);
    let sent = lab.0.data(Side::Client).count();
    lab.at(24 * SECOND);
    let lost = lab.0.counter(Side::Client, Mib::TcpRetransSegs) - before;
    let part = f64::from(lost) / (lab.0.data(Side::Client).count() - sent) as f64;
    assert!(part < 0.05, "{part}");
}

/// Where a part L of all packets is lost, x^0.9 - c x L is greatest at x = (0.9 / (c L))^10 Mbps. That is more than the link has up to 6.3 % with
/// the weight c = 11.35, and up to 18.9 % with a third of it.
#[test]
fn random_losses_count_from_a_part_on_that_their_weight_sets() {
    let used = |weight: f64, part: f64| {
        let mut lab = loss(weight);
        lose(&mut lab, part);
        lab.utilisation(20 * SECOND, 60 * SECOND)
    };
    for (weight, few, many) in [(11.35, 0.03, 0.2), (11.35 / 3.0, 0.1, 0.4)] {
        let (few, many) = (used(weight, few), used(weight, many));
        assert!(few > 0.85, "{weight}: {few}");
        assert!(many < 0.1, "{weight}: {many}");
    }
}

/// A flow that sends little finds nothing out, and raises its rate no further.
#[test]
fn an_application_that_sends_little_learns_nothing() {
    let mut lab = Lab::new("vivace", 200 * MS);
    for step in 0..100 {
        lab.0.write(Side::Client, 3_000);
        let now = lab.at(step * 50 * MS);
        assert_eq!(now.mode, 0.0);
    }
    let now = lab.at(5 * SECOND);
    assert!(now.variable("rate_mbit_s") < 6.0, "{}", now.pacing_rate);
}

/// A timeout halves the rate, and what was under way says nothing.
#[test]
fn after_an_outage_it_returns_to_its_rate() {
    let mut lab = latency();
    lab.at(3 * SECOND);
    lab.0.links[0].up = false;
    lab.at(4 * SECOND);
    lab.0.links[0].up = true;
    assert!(lab.0.counter(Side::Client, Mib::TcpExtTCPTimeouts) > 0);
    assert!(lab.utilisation(12 * SECOND, 16 * SECOND) > 0.85);
}

/// A link of a tenth is known within seconds, and one of ten times as much is found.
#[test]
fn it_follows_the_bandwidth() {
    let mut lab = latency();
    lab.at(5 * SECOND);
    lab.0.links[0].rate = 50_000_000;
    assert!(lab.utilisation(15 * SECOND, 20 * SECOND) > 4.0);
    lab.0.links[0].rate = 5_000_000;
    assert!(lab.utilisation(26 * SECOND, 30 * SECOND) > 0.4);
    assert!(longest(&mut lab, 29 * SECOND, 30 * SECOND) < 100 * MS);
}

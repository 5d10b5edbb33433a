//! BBR version 3, with the test cases that its draft gives (draft-ietf-ccwg-bbr-06 appendix A).

use std::fmt::Write;

use polypath_transport::{Config, MILLISECOND as MS, Mib, Nanos, SECOND};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::bbr::Lab;
use crate::common::{Fate, Side, tcp};

const MODES: [&str; 7] = [
    "Startup", "Drain", "Down", "Cruise", "Refill", "Up", "ProbeRTT",
];

/// Sections 5.3.1 to 5.3.4: the states, one after the other, and what they have in flight.
#[test]
fn from_startup_to_the_second_probe() {
    let mut lab = Lab::bulk("bbr3", 200 * MS);
    let mut table =
        String::from("time_ms  mode      cwnd  in_flight  kbit_s  srtt_ms  long  short\n");
    let begin = (1..20).map(|step| step * 40);
    let later = (8..60).map(|step| step * 100);
    for time in begin.chain(later) {
        let now = lab.at(time * MS);
        writeln!(
            table,
            "{time:>7}  {:<8}  {:>4}  {:>9}  {:>6}  {:>7.1}  {:>4}  {:>5}",
            MODES[now.mode as usize],
            now.cwnd,
            now.in_flight,
            now.pacing_rate * 8 / 1000,
            now.srtt as f64 / 1e6,
            now.variable("inflight_longterm"),
            now.variable("inflight_shortterm"),
        )
        .expect("a string");
    }
    insta::assert_snapshot!(table);
    assert!(lab.utilisation(6 * SECOND, 10 * SECOND) > 0.97);
}

/// The states that the lab goes through from one time to another, each with the first and last millisecond.
fn visits(lab: &mut Lab, from: Nanos, to: Nanos) -> Vec<(&'static str, u64, u64)> {
    let mut visits: Vec<(&str, u64, u64)> = Vec::new();
    for step in from / MS..to / MS {
        let mode = MODES[lab.at(step * MS).mode as usize];
        match visits.last_mut() {
            Some((last, _, end)) if *last == mode => *end = step,
            _ => visits.push((mode, step, step)),
        }
    }
    visits
}

/// Runs until the state is `mode`; gives when.
fn reach(lab: &mut Lab, mode: &str, from: Nanos) -> Nanos {
    (from / MS..from / MS + 20_000)
        .map(|step| step * MS)
        .find(|&time| MODES[lab.at(time).mode as usize] == mode)
        .expect("the state")
}

/// The cycle of section 5.3.3: DOWN, CRUISE, REFILL, UP, and a probe after 2 to 3 s or the round trips of a Reno flow with this product.
#[test]
fn the_states_follow_each_other() {
    let mut lab = Lab::bulk("bbr3", 200 * MS);
    let seen = visits(&mut lab, SECOND, 20 * SECOND);
    for pair in seen.windows(2) {
        let allowed: &[&str] = match pair[0].0 {
            "Down" => &["Cruise", "Refill", "ProbeRTT"],
            "Cruise" => &["Refill", "ProbeRTT"],
            "Refill" => &["Up", "ProbeRTT"],
            "Up" => &["Down", "ProbeRTT"],
            _ => &["Cruise"],
        };
        assert!(allowed.contains(&pair[1].0), "{pair:?}");
    }
    // A visit of ProbeRTT begins the wait anew.
    let cycles = seen.split(|it| it.0 == "ProbeRTT");
    let mut counted = 0;
    for cycle in cycles {
        let probes: Vec<u64> = (cycle.iter().filter(|it| it.0 == "Up"))
            .map(|it| it.1)
            .collect();
        counted += probes.len();
        for pair in probes.windows(2) {
            // The product is 34 packets, and a round trip in DOWN is longer than 40 ms.
            assert!((1_300..2_400).contains(&(pair[1] - pair[0])), "{probes:?}");
        }
    }
    assert!(counted >= 8, "{seen:?}");
}

/// Appendix A: ProbeRTT every 5 s, with half of the product for 200 ms and a round trip.
#[test]
fn probe_rtt_halves_what_is_in_flight() {
    let mut lab = Lab::bulk("bbr3", 200 * MS);
    let seen = visits(&mut lab, SECOND, 17 * SECOND);
    let visits: Vec<_> = seen.iter().filter(|it| it.0 == "ProbeRTT").collect();
    assert_eq!(visits.len(), 3, "{visits:?}");
    for visit in &visits {
        assert!((200..330).contains(&(visit.2 - visit.1)), "{visits:?}");
    }
    for pair in visits.windows(2) {
        assert!(
            (5_000..5_400).contains(&(pair[1].1 - pair[0].2)),
            "{visits:?}"
        );
    }
    let mut lab = Lab::bulk("bbr3", 200 * MS);
    let begun = reach(&mut lab, "ProbeRTT", SECOND);
    let now = lab.at(begun + 150 * MS);
    let half = now.bandwidth * now.variable("min_rtt_ms") / 1e3 / 2.0;
    assert!((f64::from(now.in_flight) - half).abs() <= 2.0, "{half}");
}

/// Appendix A: idleness has drained the queue, so that no ProbeRTT is needed.
#[test]
fn idleness_stands_for_probe_rtt() {
    let mut lab = Lab::new("bbr3", 200 * MS);
    lab.0.write(Side::Client, 1_000_000);
    lab.at(8 * SECOND);
    lab.0.write(Side::Client, 1 << 40);
    let seen = visits(&mut lab, 8 * SECOND, 11 * SECOND);
    assert!(seen.iter().all(|it| it.0 != "ProbeRTT"), "{seen:?}");
}

/// Section 5.3.1.3: losses of more than 2 % in six places end Startup, and bound what is in flight.
#[test]
fn many_losses_end_startup() {
    let mut lab = Lab::bulk("bbr3", 5 * MS);
    let ended = reach(&mut lab, "Drain", 0);
    let now = lab.at(ended);
    assert!(now.variable("inflight_longterm") > 0.0);
    let mut deep = Lab::bulk("bbr3", 200 * MS);
    let later = reach(&mut deep, "Drain", 0);
    assert_eq!(deep.at(later).variable("inflight_longterm"), 0.0);
}

/// What is dropped at a queue that holds a fifth of the product, as parts of what is sent.
fn dropped(congestion: &str) -> f64 {
    let mut lab = Lab::bulk(congestion, 8 * MS);
    lab.at(3 * SECOND);
    let before = lab.0.counter(Side::Client, Mib::TcpRetransSegs);
    let sent = lab.0.data(Side::Client).count();
    lab.at(20 * SECOND);
    let lost = lab.0.counter(Side::Client, Mib::TcpRetransSegs) - before;
    f64::from(lost) / (lab.0.data(Side::Client).count() - sent) as f64
}

/// Sections 3.1 and 5.5.10: the losses at a shallow queue are below the threshold of 2 %, while version 1 has many.
#[test]
fn a_shallow_queue_loses_little() {
    let (third, first) = (dropped("bbr3"), dropped("bbr"));
    assert!(third < 0.02, "{third}");
    assert!(first > 2.0 * third, "{first} against {third}");
}

/// Section 5.5.10.2: too many losses in a probe bound what is in flight and end the probe; the next one ends where that had been, and the one
/// after it goes on (section 5.3.3.6).
#[test]
fn a_probe_that_loses_is_followed_by_a_careful_one() {
    let mut lab = Lab::bulk("bbr3", 8 * MS);
    let up = reach(&mut lab, "Up", 2 * SECOND);
    let down = reach(&mut lab, "Down", up);
    let bound = lab.at(down).variable("inflight_longterm");
    assert!(bound > 0.0);
    let seen = visits(&mut lab, down, 20 * SECOND);
    let order: Vec<&str> = seen.iter().map(|it| it.0).collect();
    let again = ["Up", "Down", "Refill", "Up"];
    assert!(order.windows(4).any(|it| it == again), "{order:?}");
    // While it cruises, 15 % of the bound stay free (section 5.6.4.7).
    let cruise = reach(&mut lab, "Cruise", 20 * SECOND);
    let now = lab.at(cruise + 200 * MS);
    let bound = now.variable("inflight_longterm");
    assert!(f64::from(now.in_flight) <= 0.85 * bound + 1.0, "{bound}");
}

/// Section 5.5.10.3: a loss while it cruises lowers rate and volume, to what was delivered or to 0.7 of them.
#[test]
fn losses_between_probes_lower_the_short_model() {
    let mut lab = Lab::bulk("bbr3", 200 * MS);
    let cruise = reach(&mut lab, "Cruise", SECOND);
    let before = lab.at(cruise);
    assert_eq!(before.variable("inflight_shortterm"), 0.0);
    lab.0.links[0].rate = 5_000_000;
    let mut count = 0;
    lab.0.hook(move |packet| {
        count += i32::from(packet.carries_data());
        match count % 30 {
            0 => Fate::Drop,
            _ => Fate::Pass,
        }
    });
    let mut last = (before.cwnd.into(), before.bandwidth);
    for step in 1..150 {
        let now = lab.at(cruise + step * 4 * MS);
        if MODES[now.mode as usize] != "Cruise" {
            break;
        }
        let volume = now.variable("inflight_shortterm");
        if volume > 0.0 {
            assert!(volume >= (0.7 * last.0 - 1.0), "{volume} after {last:?}");
            assert!(now.bandwidth >= 0.7 * last.1 - 1.0);
            last = (volume, now.bandwidth);
        }
    }
    // Half of the bandwidth is left. A queue keeps what is delivered in a round trip up.
    assert!(last.0 < f64::from(before.cwnd), "{last:?}");
    assert!(last.1 < 0.6 * before.bandwidth, "{last:?}");
    assert!(last.1 > 0.45 * before.bandwidth, "{last:?}");
    let refill = reach(&mut lab, "Refill", cruise + 600 * MS);
    assert_eq!(lab.at(refill).variable("inflight_shortterm"), 0.0);
}

/// Appendix A: ten times the bandwidth is found in a few probes, and a tenth of it accepted within two cycles.
#[test]
fn it_follows_the_bandwidth_up_and_down() {
    let mut lab = Lab::bulk("bbr3", 200 * MS);
    lab.at(3 * SECOND);
    lab.0.links[0].rate = 100_000_000;
    let now = lab.at(16 * SECOND);
    assert!(
        now.bandwidth > 0.95 * 100e6 / 8.0 / 1500.0,
        "{}",
        now.bandwidth
    );
    lab.0.links[0].rate = 10_000_000;
    let now = lab.at(26 * SECOND);
    let rate = now.variable("most_bandwidth_packets_s") * 1500.0 * 8.0 / 10e6;
    assert!((0.9..1.1).contains(&rate), "{rate}");
}

/// Sections 2.8 and 3.1: at 100 Mbps random losses of 1 % cost a seventh where they leave Reno a thirtieth, and from 2 % on they cost much.
#[test]
fn random_losses_count_from_two_percent_on() {
    let lossy = |congestion: &str, part: f64| {
        let mut lab = Lab::bulk(congestion, 100 * MS);
        lab.0.links[0].rate = 100_000_000;
        let mut random = Pcg64Mcg::seed_from_u64(7);
        lab.0.hook(move |packet| {
            if packet.carries_data() && random.random_bool(part) {
                Fate::Drop
            } else {
                Fate::Pass
            }
        });
        lab.utilisation(2 * SECOND, 6 * SECOND) / 10.0
    };
    let (few, more, many) = (
        lossy("bbr3", 0.01),
        lossy("bbr3", 0.02),
        lossy("bbr3", 0.05),
    );
    assert!(few > 0.75, "{few}");
    assert!(more < 0.6 && more > many, "{more}");
    assert!(many < 0.2, "{many}");
    assert!(lossy("bbr", 0.05) > 0.9);
    assert!(lossy("reno", 0.01) < 0.05);
}

/// Section 5.5.11: reordering that looks like losses is undone, and the model is as it was.
#[test]
fn a_needless_recovery_is_undone() {
    let mut lab = Lab::bulk("bbr3", 200 * MS);
    let cruise = reach(&mut lab, "Cruise", SECOND);
    let before = lab.at(cruise);
    let mut due = 1;
    lab.0.hook(move |packet| {
        due -= i32::from(packet.carries_data());
        match due {
            0 => Fate::Delay(30 * MS),
            _ => Fate::Pass,
        }
    });
    let now = lab.at(cruise + 400 * MS);
    let undone = [
        Mib::TcpExtTCPFullUndo,
        Mib::TcpExtTCPDSACKUndo,
        Mib::TcpExtTCPPartialUndo,
    ];
    let undone = undone.map(|mib| lab.0.counter(Side::Client, mib));
    assert!(undone.iter().sum::<u32>() > 0, "{undone:?}");
    assert_eq!(now.variable("inflight_shortterm"), 0.0);
    assert!(
        now.cwnd >= before.cwnd,
        "{} after {}",
        now.cwnd,
        before.cwnd
    );
}

/// Section 3.7: a mark is congestion. It lowers the short model as a loss does, and nothing is sent again.
#[test]
fn a_mark_is_congestion() {
    let config = Config {
        congestion: "bbr3".into(),
        ecn: true,
        ..tcp()
    };
    let mut lab = Lab::of(&config, 200 * MS);
    lab.0.write(Side::Client, 1 << 40);
    let cruise = reach(&mut lab, "Cruise", SECOND);
    let before = lab.at(cruise).cwnd;
    let mut due = 1;
    lab.0.hook(move |packet| {
        due -= i32::from(packet.carries_data());
        if due == 0 { Fate::Mark } else { Fate::Pass }
    });
    let now = lab.at(cruise + 200 * MS);
    let lowered = now.variable("inflight_shortterm");
    assert!(
        lowered >= 0.69 * f64::from(before) && lowered < f64::from(before),
        "{lowered}"
    );
    assert_eq!(lab.0.counter(Side::Client, Mib::TcpRetransSegs), 0);
}

/// The first mark ends Startup, as it ends slow start (RFC 3168 section 6.1.2).
#[test]
fn a_mark_ends_startup() {
    let config = Config {
        congestion: "bbr3".into(),
        ecn: true,
        ..tcp()
    };
    let mut lab = Lab::of(&config, 200 * MS);
    lab.0.hook(|packet| match packet.at > 150 * MS {
        true if packet.carries_data() => Fate::Mark,
        _ => Fate::Pass,
    });
    lab.0.write(Side::Client, 1 << 40);
    let drain = reach(&mut lab, "Drain", 0);
    assert!(drain < 260 * MS, "{drain}");
}

/// An application that sends little leaves Startup neither by a plateau nor by time (appendix A).
#[test]
fn an_application_that_sends_little_stays_in_startup() {
    let mut lab = Lab::new("bbr3", 200 * MS);
    for step in 0..80 {
        lab.0.write(Side::Client, 3_000);
        assert_eq!(lab.at(step * 50 * MS).mode, 0.0);
    }
}

/// Section 5.6.4.3: four packets at least, where the product is less than one.
#[test]
fn four_packets_are_the_least_window() {
    let mut lab = Lab::bulk("bbr3", 2 * SECOND);
    lab.0.links[0].rate = 200_000;
    lab.at(10 * SECOND);
    for step in 0..200 {
        assert!(lab.at(10 * SECOND + step * 50 * MS).cwnd >= 4);
    }
    assert!(lab.utilisation(20 * SECOND, 40 * SECOND) > 0.9 * 0.02);
}

/// A timeout loses no more than its time.
#[test]
fn after_an_outage_it_returns_to_its_rate() {
    let mut lab = Lab::bulk("bbr3", 200 * MS);
    lab.at(3 * SECOND);
    lab.0.links[0].up = false;
    lab.at(4 * SECOND);
    lab.0.links[0].up = true;
    assert!(lab.0.counter(Side::Client, Mib::TcpExtTCPTimeouts) > 0);
    assert!(lab.utilisation(8 * SECOND, 12 * SECOND) > 0.9);
}

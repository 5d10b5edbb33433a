//! Each congestion controller alone, round by round, without a network.
//!
//! | scenario | what it shows |
//! |---|---|
//! | `one_path_round_by_round` | slow start, a loss at 64 packets, recovery to the threshold, avoidance, a timeout, slow start up to the threshold |
//! | `two_paths_round_by_round` | two paths of 20 ms and 80 ms in avoidance from 20 packets each, losing in turn: how windows are coupled |
//! | `an_idle_path_does_not_grow` | growth needs a full window |
//! | `coupled_controllers_share_one_increase_on_equal_paths` | RFC 6356's increase, against Reno's |
//! | `a_loss_leaves_the_factor_of_each_controller` | 0.5 or 0.7, and the floor of two packets |
//!
//! The tables are snapshots: a change of behaviour shows as a difference to be reviewed.

use std::fmt::Write;

use polypath_transport::congestion::{Ack, CongestionControl, REGISTRY};
use polypath_transport::path::{CaState, Path};
use polypath_transport::{MILLISECOND as MS, Nanos};
use serde_json::{Map, Value};

const MSS: u32 = 1400;

/// Every controller with every variant that it declares.
fn variants() -> Vec<(String, Map<String, Value>)> {
    let mut found = Vec::new();
    for entry in REGISTRY.describe() {
        let variant = entry
            .parameters
            .iter()
            .find(|parameter| parameter.name == "variant");
        match variant {
            None => found.push((entry.name.to_string(), Map::new())),
            Some(variant) => {
                for choice in variant.choices {
                    let mut parameters = Map::new();
                    parameters.insert("variant".into(), (*choice).into());
                    found.push((format!("{} ({choice})", entry.name), parameters));
                }
            }
        }
    }
    found
}

/// The paths of a connection, each with its controller, sending full windows.
struct Lab {
    paths: Vec<Path>,
    controllers: Vec<Box<dyn CongestionControl>>,
    rtt: Vec<Nanos>,
    sent: Vec<u64>,
    acked: Vec<u64>,
    now: Nanos,
}

impl Lab {
    fn new(name: &str, parameters: &Map<String, Value>, rtt: &[Nanos]) -> Self {
        let name = name.split(' ').next().expect("a name");
        let controllers = rtt
            .iter()
            .map(|_| REGISTRY.make(name, parameters).expect("it is registered"))
            .collect();
        let paths = rtt
            .iter()
            .map(|&rtt| Path {
                established: true,
                srtt: rtt,
                min_rtt: rtt,
                latest_rtt: rtt,
                ..Path::new(MSS, 10)
            })
            .collect();
        let mut lab = Self {
            paths,
            controllers,
            rtt: rtt.to_vec(),
            sent: vec![0; rtt.len()],
            acked: vec![0; rtt.len()],
            now: 1_000 * MS,
        };
        for me in 0..rtt.len() {
            lab.controllers[me].on_established(&mut lab.paths, me);
        }
        lab
    }

    /// A round trip of `me` from `start` on: one ACK for every packet of the window, spread over the RTT.
    fn round(&mut self, me: usize, start: Nanos, limited: bool) {
        let window = self.paths[me].cwnd;
        self.sent[me] += u64::from(window * MSS);
        for index in 0..window {
            self.now = start + self.rtt[me] * u64::from(index) / u64::from(window);
            self.acked[me] += u64::from(MSS);
            let ack = Ack {
                now: self.now,
                packets: 1,
                rtt: Some(self.rtt[me]),
                cwnd_limited: limited,
                next_seq: self.sent[me] + 1,
                una: self.acked[me] + 1,
            };
            self.paths[me].acked = self.acked[me];
            self.controllers[me].on_sample(&mut self.paths, me, &ack);
            self.controllers[me].on_ack(&mut self.paths, me, &ack);
        }
        self.now = start + self.rtt[me];
    }

    /// What loss recovery does: the threshold is asked for and becomes the window; after a timeout, one packet.
    fn lose(&mut self, me: usize, state: CaState) {
        let threshold = self.controllers[me].ssthresh(&mut self.paths, me);
        self.paths[me].ssthresh = threshold;
        self.paths[me].cwnd = if state == CaState::Loss { 1 } else { threshold };
        self.paths[me].cwnd_count = 0;
        for state in [state, CaState::Open] {
            self.paths[me].state = state;
            self.controllers[me].on_state(&mut self.paths, me, state);
        }
    }

    fn threshold(&self, me: usize) -> String {
        match self.paths[me].ssthresh {
            u32::MAX => "-".into(),
            threshold => threshold.to_string(),
        }
    }
}

fn one_path(name: &str, parameters: &Map<String, Value>) -> String {
    let mut lab = Lab::new(name, parameters, &[50 * MS]);
    let mut table = format!("{name}\nround  cwnd  ssthresh\n");
    let mut lost = false;
    for round in 1..=60 {
        let start = lab.now;
        lab.round(0, start, true);
        let mut note = "";
        if !lost && lab.paths[0].cwnd >= 64 {
            lab.lose(0, CaState::Recovery);
            lost = true;
            note = "  loss";
        } else if round == 40 {
            lab.lose(0, CaState::Loss);
            note = "  timeout";
        }
        if round <= 8 || round % 5 == 0 || !note.is_empty() || (40..48).contains(&round) {
            let (cwnd, threshold) = (lab.paths[0].cwnd, lab.threshold(0));
            writeln!(table, "{round:>5}  {cwnd:>4}  {threshold:>8}{note}").expect("a string");
        }
    }
    table
}

fn two_paths(name: &str, parameters: &Map<String, Value>) -> String {
    let mut lab = Lab::new(name, parameters, &[20 * MS, 80 * MS]);
    for path in &mut lab.paths {
        (path.cwnd, path.ssthresh) = (20, 20);
    }
    let mut table = format!("{name}\ntime_ms  cwnd of 20 ms  cwnd of 80 ms\n");
    let begin = lab.now;
    for slow in 0..60u64 {
        let start = begin + slow * 80 * MS;
        for fast in 0..4 {
            lab.round(0, start + fast * 20 * MS, true);
        }
        lab.round(1, start, true);
        let mut note = String::new();
        for (me, period) in [(0, 15), (1, 20)] {
            if slow % period == period - 1 {
                lab.lose(me, CaState::Recovery);
                write!(note, "  loss on {me}").expect("a string");
            }
        }
        if slow % 5 == 4 || !note.is_empty() {
            let (fast, slow_window) = (lab.paths[0].cwnd, lab.paths[1].cwnd);
            writeln!(
                table,
                "{:>7}  {fast:>13}  {slow_window:>13}{note}",
                (slow + 1) * 80
            )
            .expect("a string");
        }
    }
    table
}

fn tables(scenario: fn(&str, &Map<String, Value>) -> String) -> String {
    variants()
        .iter()
        .map(|(name, parameters)| scenario(name, parameters))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn one_path_round_by_round() {
    insta::assert_snapshot!(tables(one_path));
}

#[test]
fn two_paths_round_by_round() {
    insta::assert_snapshot!(tables(two_paths));
}

#[test]
fn an_idle_path_does_not_grow() {
    for (name, parameters) in variants() {
        for threshold in [5, u32::MAX] {
            let mut lab = Lab::new(&name, &parameters, &[50 * MS, 50 * MS]);
            lab.paths[0].ssthresh = threshold;
            for round in 0..20 {
                lab.round(0, 1_000 * MS + round * 50 * MS, false);
            }
            assert_eq!(lab.paths[0].cwnd, 10, "{name}");
        }
    }
}

/// RFC 6356 section 3: two equal paths together gain half a packet a round trip, since a loss costs only one of them.
#[test]
fn coupled_controllers_share_one_increase_on_equal_paths() {
    let growth = |name: &str, paths: usize| {
        let mut lab = Lab::new(name, &Map::new(), &vec![50 * MS; paths]);
        for path in &mut lab.paths {
            (path.cwnd, path.ssthresh) = (40 / paths as u32, 2);
        }
        for round in 0..100 {
            for me in 0..paths {
                lab.round(me, 1_000 * MS + round * 50 * MS, true);
            }
        }
        lab.paths.iter().map(|path| path.cwnd).sum::<u32>() - 40
    };
    assert_eq!(growth("reno", 1), 100);
    assert!(growth("reno", 2) >= 198);
    for name in ["lia", "olia"] {
        let both = growth(name, 2);
        assert!((45..=55).contains(&both), "{name}: {both}");
    }
}

/// RFC 5681 section 3.1, RFC 9438 section 4.6: what a loss leaves, and the floor of two packets.
#[test]
fn a_loss_leaves_the_factor_of_each_controller() {
    for (name, parameters) in variants() {
        let factor = if name == "cubic" { 0.7 } else { 0.5 };
        let mut lab = Lab::new(&name, &parameters, &[50 * MS]);
        lab.paths[0].cwnd = 100;
        let threshold = lab.controllers[0].ssthresh(&mut lab.paths, 0);
        assert!(
            (f64::from(threshold) - 100.0 * factor).abs() <= 1.0,
            "{name}: {threshold}"
        );
        lab.paths[0].cwnd = 1;
        assert_eq!(lab.controllers[0].ssthresh(&mut lab.paths, 0), 2, "{name}");
    }
}

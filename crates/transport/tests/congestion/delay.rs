//! Controllers that look at the RTT, on a path with a rate and an endless queue.

use std::fmt::Write;

use polypath_transport::congestion::Restart;
use polypath_transport::path::{CaState, Member};
use polypath_transport::{MILLISECOND as MS, Nanos};
use serde_json::Map;

use crate::lab::Lab;

/// Packets that each path holds without a queue at an RTT of 50 ms.
struct Bottleneck {
    lab: Lab,
    holds: Vec<u32>,
}

const BASE: Nanos = 50 * MS;

impl Bottleneck {
    fn new(name: &str, holds: &[u32]) -> Self {
        Self {
            lab: Lab::new(name, &Map::new(), &vec![BASE; holds.len()]),
            holds: holds.to_vec(),
        }
    }

    /// A round trip on every path, with the queue that its window makes.
    fn round(&mut self) {
        let start = self.lab.now;
        for (me, &holds) in self.holds.iter().enumerate() {
            let window = self.lab.paths[me].cwnd;
            self.lab.rtt[me] = BASE * u64::from(window.max(holds)) / u64::from(holds);
            self.lab.round(me, start, true);
        }
    }

    fn queued(&self, me: usize) -> u32 {
        self.lab.paths[me].cwnd.saturating_sub(self.holds[me])
    }
}

fn table(name: &str, holds: &[u32]) -> String {
    let mut bottleneck = Bottleneck::new(name, holds);
    let mut table = format!("{name} over {holds:?} packets\nround  windows\n");
    for round in 1..=60 {
        bottleneck.round();
        if round <= 12 || round % 5 == 0 {
            let windows: Vec<String> = bottleneck
                .lab
                .paths
                .iter()
                .map(|path| format!("{:>5}", path.cwnd))
                .collect();
            writeln!(table, "{round:>5}  {}", windows.join(" ")).expect("a string");
        }
    }
    table
}

#[test]
fn windows_round_by_round() {
    let tables = [
        table("vegas", &[50]),
        table("wvegas", &[50]),
        table("wvegas", &[80, 20]),
    ];
    insta::assert_snapshot!(tables.join("\n"));
}

/// CUBIC looks a smallest round trip ahead, and takes none for it that is measured within a second of a reduction (Linux
/// `cubictcp_acked`): the queue that caused it is still there.
#[test]
fn cubic_takes_no_round_trip_right_after_a_reduction() {
    let grown = |measured: Option<Nanos>| {
        let mut lab = Lab::new("cubic", &Map::new(), &[400 * MS]);
        lab.paths[0].cwnd = 100;
        lab.lose(0, CaState::Recovery);
        let begin = lab.now;
        while lab.now < begin + 8_000 * MS {
            if let Some(after) = measured
                && lab.now <= begin + after
                && begin + after < lab.now + 400 * MS
            {
                lab.measure(0, MS);
            }
            lab.round(0, lab.now, true);
        }
        lab.paths[0].cwnd
    };
    assert_eq!(grown(Some(400 * MS)), grown(None));
    assert!(grown(Some(1_600 * MS)) < grown(None));
}

/// Brakmo and Peterson: between alpha and beta packets wait in the queue.
#[test]
fn vegas_keeps_alpha_to_beta_packets_queued() {
    for holds in [10, 50, 400] {
        let mut bottleneck = Bottleneck::new("vegas", &[holds]);
        for round in 0..600 {
            bottleneck.round();
            if round > 500 {
                let queued = bottleneck.queued(0);
                assert!((2..=4).contains(&queued), "{holds}: {queued} queued");
            }
        }
    }
}

/// Cao et al.: the paths share `total_alpha` = 10 packets by their rates.
#[test]
fn wvegas_shares_few_packets_by_rate() {
    let mut bottleneck = Bottleneck::new("wvegas", &[80, 20]);
    let mut sums = [0, 0];
    for round in 0..600 {
        bottleneck.round();
        if round >= 500 {
            for (me, sum) in sums.iter_mut().enumerate() {
                *sum += bottleneck.queued(me);
            }
        }
    }
    let [fast, slow] = sums.map(|sum| f64::from(sum) / 100.0);
    assert!(
        (5.0..=9.0).contains(&fast),
        "{fast} queued on the fast path"
    );
    assert!(
        (1.0..=4.0).contains(&slow),
        "{slow} queued on the slow path"
    );
}

/// A path on which nothing queues keeps its window: what is emptied is a queue.
#[test]
fn wvegas_without_a_queue_grows() {
    let mut bottleneck = Bottleneck::new("wvegas", &[400]);
    bottleneck.lab.paths[0].ssthresh = 20;
    let windows: Vec<u32> = (0..40)
        .map(|_| {
            bottleneck.round();
            bottleneck.lab.paths[0].cwnd
        })
        .collect();
    let avoids = windows.iter().position(|&window| window >= 20);
    let avoids = avoids.expect("slow start ends");
    assert!(windows[avoids..].is_sorted(), "{windows:?}");
    assert_eq!(windows[39] - windows[avoids], 39 - avoids as u32);
}

/// Cao et al.: where the queueing delay has doubled, the window falls to a half of what the path holds without its queue. It is below the
/// threshold then, and grows back as in slow start.
#[test]
fn wvegas_empties_a_queue_whose_delay_doubled() {
    let mut bottleneck = Bottleneck::new("wvegas", &[50]);
    for _ in 0..100 {
        bottleneck.round();
    }
    let before = bottleneck.lab.paths[0].cwnd;
    // Others take half of the path: all of it waits twice as long.
    bottleneck.holds[0] = 25;
    bottleneck.round();
    let lab = &mut bottleneck.lab;
    let left = u64::from(before) * BASE / (2 * lab.rtt[0]);
    // What a round told is known at the first acknowledgement of the next.
    lab.delayed_ack(0, 1);
    let window = lab.paths[0].cwnd;
    assert!(u64::from(window).abs_diff(left) <= 1, "{window}: {left}");
}

/// Vegas forgets the RTT whenever nothing was in flight (Linux `tcp_vegas_cwnd_event_tx_start`), weighted Vegas after a timeout of idleness
/// only (mptcp.org `mptcp_wvegas_cwnd_event`).
#[test]
fn wvegas_knows_the_rtt_after_a_pause() {
    let base = |name: &str, outdated: bool| {
        let mut bottleneck = Bottleneck::new(name, &[50]);
        for _ in 0..20 {
            bottleneck.round();
        }
        let lab = &mut bottleneck.lab;
        let restart = Restart {
            now: lab.now,
            idle: 10 * MS,
            outdated,
            next_seq: lab.sent[0] + 1,
            app_limited: false,
        };
        lab.controllers[0].on_restart(&mut Member::new(&mut lab.paths, 0), &restart);
        let variables = lab.controllers[0].observe();
        let base = variables.iter().find(|(name, _)| *name == "base_rtt_ms");
        base.map(|(_, rtt)| *rtt as u64)
    };
    assert_eq!(base("vegas", false), Some(0));
    assert_eq!(base("wvegas", false), Some(50));
    assert_eq!(base("wvegas", true), Some(0));
}

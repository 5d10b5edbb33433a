//! Weighted Vegas (Cao et al., ICNP 2012; draft-xu-mptcp-congestion-control).

use super::vegas::{Rounds, remember_window, unqueued};
use super::{Ack, CongestionControl, Restart, slow_start};
use crate::path::{CaState, Member, Path};
use crate::{Nanos, SECOND};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "wvegas",
    "Weighted Vegas: the paths share a number of packets to keep queued by their rates, so that delay moves traffic before loss does",
    "Cao, Xu and Fu, ICNP 2012; draft-xu-mptcp-congestion-control-05; net/mptcp/mptcp_wvegas.c";
    /// Settings of weighted Vegas.
    WeightedVegasConfig {
        /// packets to keep queued on all paths together
        total_alpha: u32 as Integer.at_least(2).at_most(1000) = Integer(10),
        /// packets to keep queued on a path before it has measured its rate
        initial_alpha: u32 as Integer.at_least(1).at_most(1000) = Integer(2),
        /// packets queued that end slow start
        gamma: u32 as Integer.at_least(1).at_most(1000) = Integer(1),
    }
}

impl Algorithm<dyn CongestionControl> for WeightedVegasConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(WeightedVegas {
            total_alpha: f64::from(self.total_alpha),
            initial_alpha: self.initial_alpha,
            gamma: self.gamma,
            rounds: Rounds::default(),
            alpha: self.initial_alpha,
            weight: 1.0,
            queue_delay: 0,
        })
    }
}

/// No path's share is less, in packets.
const SMALLEST_ALPHA: u32 = 2;

struct WeightedVegas {
    total_alpha: f64,
    initial_alpha: u32,
    gamma: u32,
    rounds: Rounds,
    /// Packets that this path keeps queued: its part of `total_alpha`.
    alpha: u32,
    /// Its part of the rate of all paths.
    weight: f64,
    /// The lowest queueing delay since the queue was last drained; 0: none yet.
    queue_delay: Nanos,
}

impl WeightedVegas {
    fn begin_anew(&mut self, path: &mut Path) {
        path.coupled = 0;
        self.alpha = self.initial_alpha;
        self.weight = 1.0;
        self.queue_delay = 0;
    }

    /// Takes the share of `total_alpha` that the path's rate stands for. `mptcp_wvegas_weight` leaves a path out that has just begun a round and
    /// has no sample in it. Here a path counts from its first rate on, as in the paper.
    fn weigh(&mut self, path: &mut Member, rtt: Nanos) {
        let rate = f64::from(path.cwnd) * SECOND as f64 / rtt as f64;
        path.coupled = rate.to_bits();
        let established = path.paths.iter().filter(|path| path.established);
        let total: f64 = established.map(|path| f64::from_bits(path.coupled)).sum();
        if total > 0.0 {
            self.weight = rate / total;
        }
        self.alpha = ((self.weight * self.total_alpha) as u32).max(SMALLEST_ALPHA);
    }

    fn adjust(&mut self, path: &mut Member, acked: u32) {
        let rtt = self.rounds.sum / u64::from(self.rounds.samples);
        let (window, base) = (path.cwnd, self.rounds.base);
        let queued = (u128::from(window) * u128::from(rtt - base) / u128::from(rtt)) as u32;
        if path.in_slow_start() {
            if queued > self.gamma {
                path.cwnd = window.min(unqueued(window, base, rtt) + 1);
                path.ssthresh = path.ssthresh.min(path.cwnd - 1);
            } else {
                slow_start(path, acked);
            }
        } else {
            if queued >= self.alpha {
                self.weigh(path, rtt);
            }
            if queued > self.alpha {
                path.cwnd -= 1;
                path.ssthresh = path.ssthresh.min(path.cwnd.saturating_sub(1));
            } else if queued < self.alpha {
                path.cwnd += 1;
            }
            self.drain(path, rtt);
        }
        path.cwnd = path.cwnd.max(2);
        remember_window(path);
    }

    /// Empties the queue when its delay has doubled: others share it, and the base RTT would be overestimated. Where nothing is queued, there is
    /// nothing to empty. `mptcp_wvegas_cong_avoid` halves the window then, too, if all RTTs of a round are the least to the microsecond.
    fn drain(&mut self, path: &mut Path, rtt: Nanos) {
        let delay = rtt - self.rounds.base;
        if self.queue_delay == 0 || delay < self.queue_delay {
            self.queue_delay = delay;
        }
        if delay > 0 && delay >= 2 * self.queue_delay {
            path.cwnd = unqueued(path.cwnd, self.rounds.base, 2 * rtt);
            self.queue_delay = 0;
        }
    }
}

impl CongestionControl for WeightedVegas {
    fn couples(&self) -> bool {
        true
    }

    fn on_sample(&mut self, _path: &mut Member, ack: &Ack) {
        self.rounds.sample(ack);
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if self.rounds.over(path, ack) {
            self.adjust(path, ack.packets);
            self.rounds.begin();
        }
    }

    fn on_state(&mut self, path: &mut Member, state: CaState) {
        self.rounds.enter(state);
        match state {
            CaState::Open => self.begin_anew(path),
            CaState::Loss => path.coupled = 0,
            _ => {}
        }
    }

    /// Unlike Vegas, which forgets whenever nothing was in flight (`mptcp_wvegas_cwnd_event`).
    fn on_restart(&mut self, path: &mut Member, restart: &Restart) {
        if restart.outdated {
            self.rounds.restart(restart.next_seq);
            self.begin_anew(path);
        }
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("alpha_packets", f64::from(self.alpha)),
            ("weight", self.weight),
            ("base_rtt_ms", self.rounds.base as f64 / 1e6),
        ]
    }
}

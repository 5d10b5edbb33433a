//! Vegas: a few packets in the queue and no more (Brakmo and Peterson, JSAC 1995), as in Linux.

use super::{Ack, CongestionControl, Restart, reno, slow_start};
use crate::Nanos;
use crate::path::{CaState, INFINITE_SSTHRESH, Member, Path};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "vegas",
    "Vegas on each path by itself: keeps alpha to beta packets queued, by the rise of the RTT",
    "Brakmo and Peterson, JSAC 13(8) 1995; Linux net/ipv4/tcp_vegas.c";
    /// Settings of Vegas.
    VegasConfig {
        /// fewest packets to keep queued
        alpha: u32 as Integer.at_least(1).at_most(1000) = Integer(2),
        /// most packets to keep queued
        beta: u32 as Integer.at_least(1).at_most(1000) = Integer(4),
        /// packets queued that end slow start
        gamma: u32 as Integer.at_least(1).at_most(1000) = Integer(1),
    }
}

impl Algorithm<dyn CongestionControl> for VegasConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Vegas {
            config: self,
            rounds: Rounds::default(),
        })
    }
}

struct Vegas {
    config: VegasConfig,
    rounds: Rounds,
}

/// RTT samples by round trips. Rounds count in Open state only: elsewhere the window is not what filled the queue.
pub(super) struct Rounds {
    counting: bool,
    end: u64,
    /// Next sequence number to be sent, as of the last ACK.
    next_seq: u64,
    /// The lowest RTT of all: the path without its queue. 0: none yet.
    pub base: Nanos,
    pub least: Nanos,
    pub sum: Nanos,
    pub samples: u32,
}

impl Default for Rounds {
    fn default() -> Self {
        Self {
            counting: true,
            end: 0,
            next_seq: 0,
            base: 0,
            least: Nanos::MAX,
            sum: 0,
            samples: 0,
        }
    }
}

/// Fewer samples may all come from delayed ACKs.
const ENOUGH_SAMPLES: u32 = 3;

impl Rounds {
    pub fn sample(&mut self, ack: &Ack) {
        self.next_seq = ack.next_seq;
        let Some(rtt) = ack.rtt else { return };
        let rtt = rtt.max(1);
        if self.base == 0 || rtt < self.base {
            self.base = rtt;
        }
        self.least = self.least.min(rtt);
        self.sum += rtt;
        self.samples += 1;
    }

    /// Grows the window as slow start or Reno does, unless a round is over and enough is known of it: true, and the controller adjusts the
    /// window. Linux does not ask here whether the window is what limits the sender.
    pub fn over(&mut self, path: &mut Path, ack: &Ack) -> bool {
        if !self.counting {
            reno::avoid(path, ack);
            return false;
        }
        if ack.una <= self.end {
            if path.in_slow_start() {
                slow_start(path, ack.packets);
            }
            return false;
        }
        if self.samples >= ENOUGH_SAMPLES {
            return true;
        }
        reno::avoid(path, ack);
        self.begin();
        false
    }

    pub fn begin(&mut self) {
        self.end = self.next_seq;
        self.least = Nanos::MAX;
        self.sum = 0;
        self.samples = 0;
    }

    pub fn enter(&mut self, state: CaState) {
        self.counting = state == CaState::Open;
        if self.counting {
            self.begin();
        }
    }

    /// Nothing was in flight: what was measured before does not count.
    pub fn restart(&mut self, next_seq: u64) {
        self.counting = true;
        self.next_seq = next_seq;
        self.base = 0;
        self.begin();
    }
}

/// Of `window` packets over an RTT of `rtt`, those that the path holds without its queue.
pub(super) fn unqueued(window: u32, base: Nanos, rtt: Nanos) -> u32 {
    (u128::from(window) * u128::from(base) / u128::from(rtt)) as u32
}

/// The threshold never falls below three quarters of the window (Linux `tcp_current_ssthresh`), so that a timeout later does not undo what was learnt.
pub(super) fn remember_window(path: &mut Path) {
    if path.ssthresh != INFINITE_SSTHRESH {
        path.ssthresh = path.ssthresh.max(path.cwnd / 2 + path.cwnd / 4);
    }
}

impl Vegas {
    fn adjust(&self, path: &mut Path, acked: u32) {
        let (window, base, rtt) = (path.cwnd, self.rounds.base, self.rounds.least);
        let queued = (u128::from(window) * u128::from(rtt - base) / u128::from(base)) as u32;
        if path.in_slow_start() {
            if queued > self.config.gamma {
                path.cwnd = window.min(unqueued(window, base, rtt) + 1);
                path.ssthresh = path.ssthresh.min(path.cwnd);
            } else {
                slow_start(path, acked);
            }
        } else if queued > self.config.beta {
            path.cwnd -= 1;
            path.ssthresh = path.ssthresh.min(path.cwnd);
        } else if queued < self.config.alpha {
            path.cwnd += 1;
        }
        path.cwnd = path.cwnd.max(2);
        remember_window(path);
    }
}

impl CongestionControl for Vegas {
    fn on_sample(&mut self, _path: &mut Member, ack: &Ack) {
        self.rounds.sample(ack);
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if self.rounds.over(path, ack) {
            self.adjust(path, ack.packets);
            self.rounds.begin();
        }
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        self.rounds.enter(state);
    }

    fn on_restart(&mut self, _path: &mut Member, restart: &Restart) {
        self.rounds.restart(restart.next_seq);
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![("base_rtt_ms", self.rounds.base as f64 / 1e6)]
    }
}

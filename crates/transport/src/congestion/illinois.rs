//! TCP Illinois: the queueing delay sets the increase and the decrease, as in Linux (Liu, Başar and Srikant, Performance Evaluation 65 2008).
//!
//! RTTs are in microseconds; alpha is in 1/128 and beta in 1/64, as in the kernel.

use super::{Ack, CongestionControl, slow_start};
use crate::MICROSECOND;
use crate::path::{CaState, Member};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "illinois",
    "TCP Illinois on each path by itself: an increase of 10 down to 0.3 packets, and a decrease of 1/8 up to 1/2, by the queueing delay",
    "Liu, Başar and Srikant, Performance Evaluation 65(6-7) 2008; Linux net/ipv4/tcp_illinois.c";
    /// Settings of TCP Illinois.
    IllinoisConfig {
        /// windows below this many packets grow and shrink as Reno's
        win_thresh: u32 as Integer.at_least(0).at_most(1_000_000) = Integer(15),
        /// round trips of low delay before the full increase
        theta: u32 as Integer.at_least(1).at_most(255) = Integer(5),
    }
}

impl Algorithm<dyn CongestionControl> for IllinoisConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Illinois {
            config: self,
            alpha: MOST_ALPHA,
            beta: MOST_BETA,
            round: Round::default(),
            base: u64::MAX,
            most: 0,
            acked: 0,
            rose: false,
            low: 0,
        })
    }
}

const ALPHA_SHIFT: u32 = 7;
const ONE_ALPHA: u64 = 1 << ALPHA_SHIFT;
const LEAST_ALPHA: u64 = 3 * ONE_ALPHA / 10;
const MOST_ALPHA: u64 = 10 * ONE_ALPHA;

const BETA_SHIFT: u32 = 6;
const LEAST_BETA: u64 = (1 << BETA_SHIFT) / 8;
const MOST_BETA: u64 = (1 << BETA_SHIFT) / 2;

/// The longest RTT that counts (`RTT_MAX`): 3.4 s.
const LONGEST_RTT: u64 = u32::MAX as u64 / MOST_ALPHA;

struct Illinois {
    config: IllinoisConfig,
    /// Packets that a round trip adds, and the part that a loss takes off.
    alpha: u64,
    beta: u64,
    round: Round,
    /// The least and the most RTT so far.
    base: u64,
    most: u64,
    /// Packets of the last acknowledgement.
    acked: u32,
    /// The delay was above its low threshold, and round trips for which it has been below it since.
    rose: bool,
    low: u32,
}

/// RTTs of one round trip.
#[derive(Default)]
struct Round {
    end: u64,
    samples: u64,
    sum: u64,
    /// A timeout began the round: it ends with what was sent by then.
    after_timeout: bool,
}

impl Round {
    fn from(end: u64) -> Self {
        Self {
            end,
            ..Self::default()
        }
    }
}

impl Illinois {
    /// The function `alpha`, for an average queueing delay and the most so far.
    fn increase(&mut self, average: u64, most: u64) -> u64 {
        let low = most / 100;
        if average <= low {
            if !self.rose {
                return MOST_ALPHA;
            }
            self.low += 1;
            if self.low < self.config.theta {
                return self.alpha;
            }
            (self.low, self.rose) = (0, false);
            return MOST_ALPHA;
        }
        self.rose = true;
        let (most, average) = (most - low, average - low);
        most * MOST_ALPHA / (most + average * (MOST_ALPHA - LEAST_ALPHA) / LEAST_ALPHA)
    }

    /// `update_params`
    fn adjust(&mut self, window: u32) {
        if window < self.config.win_thresh {
            (self.alpha, self.beta) = (ONE_ALPHA, MOST_BETA);
        } else if let Some(average) = self.round.sum.checked_div(self.round.samples) {
            let (average, most) = (average - self.base, self.most - self.base);
            self.alpha = self.increase(average, most);
            self.beta = decrease(average, most);
        }
    }
}

/// The function `beta`.
fn decrease(average: u64, most: u64) -> u64 {
    let (low, high) = (most / 10, 8 * most / 10);
    if average <= low {
        return LEAST_BETA;
    }
    if average >= high {
        return MOST_BETA;
    }
    (LEAST_BETA * high + (MOST_BETA - LEAST_BETA) * average - MOST_BETA * low) / (high - low)
}

impl CongestionControl for Illinois {
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        let cut = (u64::from(path.cwnd) * self.beta) >> BETA_SHIFT;
        (path.cwnd - cut as u32).max(2)
    }

    fn on_sample(&mut self, _path: &mut Member, ack: &Ack) {
        self.acked = ack.packets;
        if std::mem::take(&mut self.round.after_timeout) {
            self.round.end = ack.next_seq;
        }
        let Some(rtt) = ack.rtt else { return };
        let rtt = (rtt / MICROSECOND).min(LONGEST_RTT);
        self.base = self.base.min(rtt);
        self.most = self.most.max(rtt);
        self.round.samples += 1;
        self.round.sum += rtt;
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if ack.una > self.round.end {
            self.adjust(path.cwnd);
            self.round = Round::from(ack.next_seq);
        }
        if !ack.cwnd_limited {
            return;
        }
        if path.in_slow_start() {
            slow_start(path, ack.packets);
            return;
        }
        path.cwnd_count += std::mem::replace(&mut self.acked, 1);
        let grown = (u64::from(path.cwnd_count) * self.alpha) >> ALPHA_SHIFT;
        if grown >= u64::from(path.cwnd) {
            path.cwnd += (grown / u64::from(path.cwnd)) as u32;
            path.cwnd_count = 0;
        }
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        if state == CaState::Loss {
            (self.alpha, self.beta) = (ONE_ALPHA, MOST_BETA);
            (self.low, self.rose) = (0, false);
            self.round = Round {
                after_timeout: true,
                ..Round::default()
            };
        }
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("alpha_packets", self.alpha as f64 / ONE_ALPHA as f64),
            ("beta", self.beta as f64 / f64::from(1 << BETA_SHIFT)),
        ]
    }
}

//! Copa: a rate of one packet per `delta` times the queueing delay (Arun and Balakrishnan, NSDI 2018).
//!
//! Sections are the paper's. Where it leaves something open, this follows the authors' sender (genericCC, `markoviancc.cc`), whose names
//! stand beside the rules.

mod delays;

use super::{Ack, CongestionControl, RateSample};
use crate::path::{CaState, INFINITE_SSTHRESH, Member, Path};
use crate::{MILLISECOND, Nanos, SECOND};
use delays::Delays;
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "copa",
    "Copa on each path by itself: keeps 1/delta packets queued, and becomes as aggressive as Reno where others fill the queue",
    "Arun and Balakrishnan, NSDI 2018; the authors' genericCC, markoviancc.cc";
    /// Settings of Copa.
    CopaConfig {
        /// weight of delay against rate: 1/delta packets are queued
        delta: f64 as Number.within(0.004, 10.0) = Number(0.5),
        /// compete with flows that fill the queue by adapting delta
        competitive: bool as Boolean = Boolean(true),
    }
}

impl Algorithm<dyn CongestionControl> for CopaConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Copa {
            delays: Delays::default(),
            delta: Delta {
                default: self.delta,
                now: self.delta,
                adapts: self.competitive,
                raised_at: 0,
                lowered_at: None,
            },
            velocity: Velocity::default(),
            slow_start: true,
            window: 0.0,
        })
    }
}

const LEAST_WINDOW: f64 = 2.0;
/// Packets leave at twice the rate of the window, so that the window, not the pacing, sets it (section 2.1).
const PACING: f64 = 2.0;

struct Copa {
    delays: Delays,
    delta: Delta,
    velocity: Velocity,
    slow_start: bool,
    /// In packets, with what is not a whole one.
    window: f64,
}

/// Section 2.2.
struct Delta {
    default: f64,
    now: f64,
    adapts: bool,
    raised_at: Nanos,
    lowered_at: Option<Nanos>,
}

impl Delta {
    /// `update_delta`: where the queue is never nearly empty, 1/delta grows by one each RTT without a loss.
    fn take(&mut self, now: Nanos, rtt: Nanos, nearly_empty: bool) {
        if !self.adapts || nearly_empty {
            self.now = self.default;
        } else if now > self.raised_at + rtt {
            self.raised_at = now;
            self.now = (1.0 / (1.0 / self.now + 1.0)).min(self.default);
        }
    }

    /// A loss halves 1/delta, once an RTT.
    fn lose(&mut self, now: Nanos, rtt: Nanos) {
        if self.now < self.default && self.lowered_at.is_none_or(|at| now > at + rtt) {
            self.lowered_at = Some(now);
            self.now = (2.0 * self.now).min(self.default);
        }
    }
}

/// How fast the window moves while it goes in one direction (section 2.1, step 4).
struct Velocity {
    value: f64,
    up: bool,
    /// Windows in which it went this way.
    same: u32,
    /// The window when the present one began, and where that ends.
    window: f64,
    end: u64,
}

impl Default for Velocity {
    fn default() -> Self {
        Self {
            value: 1.0,
            up: true,
            same: 0,
            window: 0.0,
            end: 0,
        }
    }
}

/// Windows in one direction before the velocity doubles.
const STEADY: u32 = 3;

impl Velocity {
    /// Once a window: whether it goes the same way as in the last.
    fn take(&mut self, window: f64, ack: &Ack) {
        if ack.una < self.end {
            return;
        }
        self.end = ack.next_seq;
        let up = window > self.window;
        if up == self.up {
            self.same += 1;
            if self.same >= STEADY {
                self.value *= 2.0;
            }
        } else {
            self.turn(up);
        }
        self.window = window;
    }

    fn turn(&mut self, up: bool) {
        self.up = up;
        self.value = 1.0;
        self.same = 0;
    }
}

impl Copa {
    /// Section 2.1, steps 2 and 3.
    fn adapt(&mut self, ack: &Ack, standing: Nanos, queueing: Nanos) {
        let packets = f64::from(ack.packets);
        let delay = queueing as f64 / SECOND as f64;
        let rate = self.window / (standing as f64 / SECOND as f64);
        // A target without a bound where there is no queue.
        let below = rate * self.delta.now * delay <= 1.0;
        if self.slow_start && below {
            if ack.cwnd_limited {
                self.window += packets;
            }
            return;
        }
        if self.slow_start {
            self.slow_start = false;
            self.velocity.window = self.window;
            self.velocity.end = ack.next_seq;
        }
        if below && !ack.cwnd_limited {
            return;
        }
        self.velocity.take(self.window, ack);
        if below != self.velocity.up && self.velocity.value > 1.0 {
            // What was gained in one direction is not spent in the other.
            self.velocity.turn(below);
        }
        // The window changes by no more than itself in an RTT (`update_amt`).
        while self.velocity.value > (self.window * self.delta.now).max(1.0) {
            self.velocity.value /= 2.0;
        }
        let step = packets * self.velocity.value / (self.delta.now * self.window);
        self.window += if below { step } else { -step };
        self.window = self.window.max(LEAST_WINDOW);
    }

    fn set(&self, path: &mut Path, standing: Nanos) {
        path.cwnd = self.window.ceil() as u32;
        let rate = f64::from(path.mss) * self.window * SECOND as f64 / standing as f64;
        path.pacing_rate = (PACING * rate) as u64;
    }
}

impl CongestionControl for Copa {
    fn paces(&self) -> bool {
        true
    }

    /// A burst queues behind itself, and the queue would never look empty (section 2.1 spaces packets).
    fn paces_shortly(&self) -> bool {
        true
    }

    fn draws(&self) -> bool {
        false
    }

    fn on_established(&mut self, path: &mut Member) {
        path.ssthresh = INFINITE_SSTHRESH;
        self.window = path.cwnd.into();
        let rtt = if path.srtt > 0 {
            path.srtt
        } else {
            MILLISECOND
        };
        self.set(path, rtt);
    }

    /// A loss says nothing of the window (section 2.2).
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        path.ssthresh
    }

    fn on_ack(&mut self, _path: &mut Member, _ack: &Ack) {}

    fn control(&mut self, path: &mut Member, ack: &Ack, sample: &RateSample) -> bool {
        if self.window == 0.0 {
            // A path of QUIC that is another one now.
            self.window = path.cwnd.into();
        }
        if let Some(rtt) = ack.rtt {
            self.delays.take(ack.now, rtt, path.srtt);
        }
        let Some((standing, least)) = self.delays.now() else {
            return false;
        };
        if sample.newly_lost > 0 {
            self.delta.lose(ack.now, path.srtt);
        }
        self.delta
            .take(ack.now, path.srtt, self.delays.nearly_empty());
        if ack.packets > 0 {
            self.adapt(ack, standing, standing - least);
        }
        self.set(path, standing);
        false
    }

    /// After a timeout the sender begins again.
    fn on_state(&mut self, path: &mut Member, state: CaState) {
        if state == CaState::Loss {
            self.window = f64::from(path.cwnd).max(LEAST_WINDOW);
            self.slow_start = true;
            self.velocity = Velocity::default();
        }
    }

    /// What proved needless took the window that it had before.
    fn undo(&mut self, path: &Member, prior: u32) -> u32 {
        self.window = self.window.max(prior.into());
        path.cwnd.max(prior)
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        let (standing, least) = self.delays.now().unwrap_or((0, 0));
        vec![
            ("window", self.window),
            ("delta", self.delta.now),
            ("velocity", self.velocity.value),
            ("queueing_delay_ms", (standing - least) as f64 / 1e6),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND as MS;

    fn ack(number: u64) -> Ack {
        Ack {
            now: SECOND + number * 40 * MS,
            packets: 1,
            marked: 0,
            rtt: None,
            cwnd_limited: true,
            next_seq: number + 1,
            una: number,
        }
    }

    /// Section 2.1, step 4: it doubles from the third window in one direction on, and begins again at a turn.
    #[test]
    fn velocity_doubles_after_three_windows() {
        let mut velocity = Velocity::default();
        let windows = [10.0, 11.0, 12.0, 13.0, 14.0, 13.0, 12.0, 11.0, 10.0];
        let values: Vec<f64> = (1..)
            .zip(windows)
            .map(|(number, window)| {
                velocity.take(window, &ack(number));
                velocity.value
            })
            .collect();
        assert_eq!(values, [1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0, 1.0, 2.0]);
    }

    /// Section 2.2: 1/delta grows by one an RTT, a loss halves it, and an empty queue brings the default back.
    #[test]
    fn delta_competes_where_the_queue_is_never_empty() {
        let mut delta = Delta {
            default: 0.5,
            now: 0.5,
            adapts: true,
            raised_at: 0,
            lowered_at: None,
        };
        let rtt = 40 * MS;
        for step in 1..=8 {
            delta.take(step * 50 * MS, rtt, false);
            delta.take(step * 50 * MS + 1, rtt, false);
            assert!((1.0 / delta.now - (2.0 + step as f64)).abs() < 1e-9);
        }
        delta.lose(SECOND, rtt);
        delta.lose(SECOND + MS, rtt);
        assert!((1.0 / delta.now - 5.0).abs() < 1e-9);
        for step in 2..5 {
            delta.lose(step * SECOND, rtt);
        }
        assert_eq!(delta.now, 0.5);
        delta.take(6 * SECOND, rtt, false);
        delta.take(7 * SECOND, rtt, true);
        assert_eq!(delta.now, 0.5);
    }
}

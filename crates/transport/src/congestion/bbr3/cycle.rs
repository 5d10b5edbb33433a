//! When bandwidth is probed for, and how far (sections 5.3.3.5 to 5.3.3.9).

use rand::Rng;
use rand_pcg::Pcg64Mcg;

use crate::{Nanos, SECOND};

/// Round trips between two probes at most: those of a Reno flow of 25 Mbps over 30 ms (section 5.3.3.8).
const MOST_ROUNDS: u32 = 63;
/// Seconds between two probes: at least, and at random beyond.
const LEAST_WAIT: Nanos = 2 * SECOND;
const RANDOM_WAIT: Nanos = SECOND;
const MOST_UP_ROUNDS: u32 = 30;

/// What ACKs say of the last probe (section 2.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Feedback {
    #[default]
    None,
    Refilling,
    Starting,
    Some,
    Stopping,
}

#[derive(Debug, Default)]
pub(super) struct Cycle {
    pub feedback: Feedback,
    /// Samples are of packets that probed.
    pub samples: bool,
    /// The last probe lost too much, and the one after it ended where that had been.
    pub too_high: bool,
    pub cautious: bool,
    /// Packets acknowledged since the bound was last raised, and those after which it is raised by one.
    acked: u32,
    acked_each: u32,
    /// Round trips for which it was raised.
    up_rounds: u32,
    /// Round trips since the last probe.
    rounds: u32,
    began_at: Nanos,
    wait: Nanos,
}

impl Cycle {
    pub fn count_round(&mut self) {
        self.rounds += 1;
    }

    /// `PickProbeWait` and the clock of `StartProbeBW_DOWN`.
    pub fn go_down(&mut self, now: Nanos, random: &mut Pcg64Mcg) {
        self.rounds = random.random_range(0..2);
        self.wait = LEAST_WAIT + random.random_range(0..RANDOM_WAIT);
        self.began_at = now;
        self.feedback = Feedback::Stopping;
    }

    /// Of `StartProbeBW_REFILL`.
    pub fn refill(&mut self) {
        (self.up_rounds, self.acked) = (0, 0);
        self.cautious = false;
        self.feedback = Feedback::Refilling;
    }

    /// Of `StartProbeBW_UP`.
    pub fn go_up(&mut self, cwnd: u32) {
        self.samples = true;
        self.feedback = Feedback::Starting;
        self.steepen(cwnd);
    }

    /// `IsTimeToProbeBW`; `target` packets are what a Reno flow would grow by, one in each round trip.
    pub fn is_due(&self, now: Nanos, target: u32) -> bool {
        now > self.began_at + self.wait || self.rounds >= target.min(MOST_ROUNDS)
    }

    /// `RaiseInflightLongtermSlope`.
    fn steepen(&mut self, cwnd: u32) {
        self.acked_each = (cwnd >> self.up_rounds).max(1);
        self.up_rounds = (self.up_rounds + 1).min(MOST_UP_ROUNDS);
    }

    /// `ProbeInflightLongtermUpward`, where the bound holds the sender back: packets that it is raised by.
    pub fn raise(&mut self, acked: u32, cwnd: u32, round_started: bool) -> u32 {
        self.acked += acked;
        let more = self.acked / self.acked_each.max(1);
        self.acked -= more * self.acked_each;
        if round_started {
            self.steepen(cwnd);
        }
        more
    }
}

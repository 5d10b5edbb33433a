//! Whether the pipe is full: three round trips without a quarter more (section 5.3.1.2).

use crate::congestion::RateSample;

/// Growth that is enough, and round trips without it that are not.
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct FullPipe {
    /// It was full at some time, and since it was last looked for.
    pub reached: bool,
    pub now: bool,
    base: f64,
    rounds: u32,
}

impl FullPipe {
    /// Looks anew, for more than `rate` packets a second.
    pub fn restart(&mut self, rate: f64) {
        self.base = rate;
        self.rounds = 0;
        self.now = false;
    }

    /// `CheckFullBWReached` at the first ACK of a round trip.
    pub fn check(&mut self, rate: f64, sample: &RateSample) {
        let limited = sample.interval.is_none_or(|interval| interval.app_limited);
        if self.now || limited {
            return;
        }
        if rate >= self.base * GROWTH {
            self.restart(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
        self.reached |= self.now;
    }
}

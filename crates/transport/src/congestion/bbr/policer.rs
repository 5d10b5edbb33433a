//! Policers: two intervals of high loss at one rate show the rate that a token bucket grants (Linux
//! `bbr_lt_bw_sampling`).

use crate::congestion::RateSample;
use crate::{Nanos, SECOND};

/// Fewest rounds of a stretch; it is given up after four times as many.
const LEAST_ROUNDS: u32 = 4;
/// Lost packets to those delivered that make a stretch lossy.
const LOSSY: f64 = 50.0 / 256.0;
/// Rates are one if they differ by no more than an eighth, or 4 kbit/s.
const SAME_PART: f64 = 0.125;
const SAME_BYTES: f64 = 500.0;
/// Rounds after which the path is tried again.
const TRUSTED_ROUNDS: u32 = 48;

#[derive(Debug, Default)]
pub(super) struct Policer {
    /// Packets a second of the last stretch; of the policer, where `found`.
    rate: f64,
    found: bool,
    sampling: bool,
    since: Nanos,
    delivered: u64,
    lost: u64,
    rounds: u32,
}

impl Policer {
    /// Packets a second that the policer grants.
    pub fn rate(&self) -> Option<f64> {
        self.found.then_some(self.rate)
    }

    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn begin(&mut self, sample: &RateSample) {
        self.since = sample.delivered_at;
        self.delivered = sample.delivered;
        self.lost = sample.lost;
        self.rounds = 0;
    }

    /// Takes an ACK, the first of a round trip if `round_start`. True: the rate was used for long enough, and no longer is.
    pub fn take(
        &mut self,
        sample: &RateSample,
        round_start: bool,
        probing: bool,
        mss: u32,
    ) -> bool {
        if self.found {
            if probing && round_start {
                self.rounds += 1;
                if self.rounds >= TRUSTED_ROUNDS {
                    self.reset();
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            // Not before the first loss: until then the bucket had tokens.
            if sample.newly_lost == 0 {
                return false;
            }
            self.begin(sample);
            self.sampling = true;
        }
        if sample.interval.is_some_and(|interval| interval.app_limited) {
            self.reset();
            return false;
        }
        self.rounds += u32::from(round_start);
        if self.rounds > 4 * LEAST_ROUNDS {
            self.reset();
        } else if self.rounds >= LEAST_ROUNDS && sample.newly_lost > 0 {
            self.conclude(sample, mss);
        }
        false
    }

    fn conclude(&mut self, sample: &RateSample, mss: u32) {
        let delivered = (sample.delivered - self.delivered) as f64;
        let lost = sample.lost.saturating_sub(self.lost) as f64;
        let time = sample.delivered_at.saturating_sub(self.since);
        if delivered == 0.0 || lost < LOSSY * delivered || time < crate::MILLISECOND {
            return;
        }
        let rate = delivered * SECOND as f64 / time as f64;
        let difference = (rate - self.rate).abs();
        let same = difference <= SAME_PART * self.rate || difference * f64::from(mss) <= SAME_BYTES;
        if self.rate > 0.0 && same {
            self.rate = (self.rate + rate) / 2.0;
            self.found = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin(sample);
        }
    }
}

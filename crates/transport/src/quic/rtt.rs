//! Round-trip time of a path, and its probe timeout (RFC 9002 sections 5 and 6.2).

use crate::{MILLISECOND, Nanos};

/// kInitialRtt, kGranularity, kTimeThreshold (RFC 9002 appendix A.2).
pub(super) const INITIAL: Nanos = 333 * MILLISECOND;
pub(super) const GRANULARITY: Nanos = MILLISECOND;
pub(super) const TIME_THRESHOLD: (Nanos, Nanos) = (9, 8);

/// The estimator of RFC 9002: an exponential average without TCP's minimum timeout.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    sampled: bool,
    latest: Nanos,
    smoothed: Nanos,
    variation: Nanos,
    min: Nanos,
    /// The probe timeout without the delay of acknowledgements; follows from the others.
    timeout: Nanos,
}

impl Default for Rtt {
    fn default() -> Self {
        Self {
            sampled: false,
            latest: 0,
            smoothed: INITIAL,
            variation: INITIAL / 2,
            min: 0,
            timeout: timeout(INITIAL, INITIAL / 2),
        }
    }
}

/// RFC 9002 section 6.2.1.
fn timeout(smoothed: Nanos, variation: Nanos) -> Nanos {
    smoothed + (4 * variation).max(GRANULARITY)
}

impl Rtt {
    /// Takes a sample, of which the peer says that it held the acknowledgement back for `ack_delay` (section 5.3).
    pub fn sample(&mut self, latest: Nanos, ack_delay: Nanos) {
        self.latest = latest;
        if !self.sampled {
            self.sampled = true;
            self.min = latest;
            self.smoothed = latest;
            self.variation = latest / 2;
            self.timeout = timeout(self.smoothed, self.variation);
            return;
        }
        self.min = self.min.min(latest);
        // The delay that the peer reports is taken off as far as the minimum admits.
        let adjusted = if latest >= self.min.saturating_add(ack_delay) {
            latest - ack_delay
        } else {
            latest
        };
        self.variation = (3 * self.variation + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (7 * self.smoothed + adjusted) / 8;
        self.timeout = timeout(self.smoothed, self.variation);
    }

    /// The least round trip is sought anew, from the newest one on (section 5.2).
    pub fn restart_min(&mut self) {
        self.min = self.latest;
    }

    pub fn sampled(&self) -> bool {
        self.sampled
    }

    pub fn latest(&self) -> Nanos {
        self.latest
    }

    /// kInitialRtt before the first sample.
    pub fn smoothed(&self) -> Nanos {
        self.smoothed
    }

    pub fn variation(&self) -> Nanos {
        self.variation
    }

    pub fn min(&self) -> Nanos {
        self.min
    }

    /// How long an earlier packet may be overtaken before it counts as lost (section 6.1.2).
    pub fn loss_delay(&self) -> Nanos {
        let longest = self.smoothed.max(self.latest);
        (longest * TIME_THRESHOLD.0 / TIME_THRESHOLD.1).max(GRANULARITY)
    }

    /// The probe timeout before backoff (section 6.2.1).
    pub fn probe_timeout(&self, max_ack_delay: Nanos) -> Nanos {
        self.timeout + max_ack_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND as MS;

    #[test]
    fn the_first_sample_sets_everything() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.probe_timeout(0), 333 * MS + 4 * (333 * MS / 2));
        rtt.sample(40 * MS, 10 * MS);
        assert_eq!(
            (rtt.smoothed(), rtt.variation(), rtt.min()),
            (40 * MS, 20 * MS, 40 * MS)
        );
    }

    #[test]
    fn the_reported_delay_is_taken_off_down_to_the_minimum() {
        let mut rtt = Rtt::default();
        rtt.sample(40 * MS, 0);
        rtt.sample(64 * MS, 24 * MS);
        assert_eq!(rtt.smoothed(), 40 * MS);
        rtt.sample(48 * MS, 24 * MS);
        assert_eq!(rtt.smoothed(), 41 * MS, "40 ms is the minimum");
        assert_eq!(rtt.min(), 40 * MS);
    }

    #[test]
    fn a_steady_path_keeps_the_granularity() {
        let mut rtt = Rtt::default();
        for _ in 0..200 {
            rtt.sample(40 * MS, 0);
        }
        assert_eq!(rtt.probe_timeout(25 * MS), 66 * MS);
        assert_eq!(rtt.loss_delay(), 45 * MS);
    }
}

//! Round-trip time and retransmission timeout (RFC 6298), as Linux computes them.

use crate::settings::Config;
use crate::{MICROSECOND, Nanos};

/// The estimator of `net/ipv4/tcp_input.c` in its units: a mean deviation that rises at once and falls slowly. What it adds to the smoothed RTT
/// is never less than the minimum RTO (Linux) or the clock granularity (RFC 6298).
#[derive(Clone, Debug, Default)]
pub struct RttEstimator {
    /// In eighths of a microsecond.
    srtt: i64,
    /// Mean deviation, its maximum over the present round trip, and the term in the timeout, all four times a deviation in microseconds.
    mdev: i64,
    mdev_max: i64,
    rttvar: i64,
    /// The round trip ends when this sequence number is acknowledged.
    round_end: u64,
    min: Nanos,
    min_at: Nanos,
    /// The handshake gave no sample.
    unsampled: bool,
}

/// The timeout at least, where a SYN was repeated and nothing told how long it took (RFC 6298 section 5.7).
const UNSAMPLED: Nanos = 3 * crate::SECOND;

/// How long a minimum counts (tcp_min_rtt_wlen).
const MIN_WINDOW: Nanos = 300 * crate::SECOND;

/// G, the clock granularity, in microseconds: RTO is SRTT + max(G, 4 RTTVAR) (RFC 6298 section 2.3). The RFC leaves the value to the
/// implementation and finds 100 ms and less to do better (section 4). With the exact clock of a simulator G would be nothing, and on a steady
/// RTT the timeout would come down to SRTT itself. A minimum RTO below that, as data centres have it, takes a clock as fine.
fn granularity(config: &Config) -> i64 {
    microseconds(config.rto_min_ns).min(100_000)
}

impl RttEstimator {
    /// Takes a sample (RFC 6298 sections 2.2 and 2.3).
    pub fn sample(&mut self, rtt: Nanos, una: u64, next: u64, config: &Config) {
        self.sample_telling(rtt, una, next, config, |_| {});
    }

    /// The same, and tells of each change of what Linux adds to the smoothed RTT for the timeout. Inline: it runs for each acknowledgement,
    /// where a call counts (`benches/instructions.toml`).
    #[inline(always)]
    pub fn sample_telling(
        &mut self,
        rtt: Nanos,
        una: u64,
        next: u64,
        config: &Config,
        mut tell: impl FnMut(Nanos),
    ) {
        let rtt = microseconds(rtt).max(1);
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.mdev = rtt << 1;
            if config.profile.rto_adds_minimum() {
                self.rttvar = self.mdev.max(microseconds(config.rto_min_ns));
                tell(nanoseconds(self.rttvar));
            } else {
                self.rttvar = self.mdev.max(granularity(config));
            }
            self.mdev_max = self.rttvar;
            self.round_end = next;
            return;
        }
        let error = rtt - (self.srtt >> 3);
        self.srtt = (self.srtt + error).max(1);
        let mut change = error.abs() - (self.mdev >> 2);
        if !config.profile.rto_adds_minimum() {
            self.mdev += change;
            self.rttvar = self.mdev.max(granularity(config));
            return;
        }
        // A fall in RTT counts for an eighth only.
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev += change;
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev);
            tell(nanoseconds(self.rttvar));
        }
        if una > self.round_end {
            if self.mdev_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                tell(nanoseconds(self.rttvar));
            }
            self.round_end = next;
            self.mdev_max = microseconds(config.rto_min_ns);
        }
    }

    /// Takes a sample for the minimum RTT.
    #[cold]
    fn first_timeout(&self, config: &Config) -> Nanos {
        match self.unsampled {
            true => config.rto_initial_ns.max(UNSAMPLED),
            false => config.rto_initial_ns,
        }
    }

    pub fn begin_unsampled(&mut self) {
        self.unsampled = true;
    }

    pub fn sample_min(&mut self, rtt: Nanos, now: Nanos) {
        if self.min == 0 || rtt <= self.min || now - self.min_at > MIN_WINDOW {
            self.min = rtt.max(1);
            self.min_at = now;
        }
    }

    /// Retransmission timeout before backoff.
    pub fn rto(&self, config: &Config) -> Nanos {
        if self.srtt == 0 {
            return self.first_timeout(config);
        }
        let timeout = nanoseconds((self.srtt >> 3) + self.rttvar);
        timeout.clamp(config.rto_min_ns, config.limits.rto_max)
    }

    pub fn srtt(&self) -> Nanos {
        125 * self.srtt as Nanos
    }

    /// RFC 6298's RTTVAR, a quarter of the term in the timeout.
    pub fn deviation(&self) -> Nanos {
        250 * self.mdev as Nanos
    }

    pub fn min(&self) -> Nanos {
        self.min
    }
}

fn microseconds(time: Nanos) -> i64 {
    (time / MICROSECOND) as i64
}

fn nanoseconds(time: i64) -> Nanos {
    time as Nanos * MICROSECOND
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Profile;
    use crate::{MILLISECOND as MS, SECOND};

    fn settled(profile: Profile, rtt: Nanos) -> (RttEstimator, Config) {
        let linux = profile != Profile::Rfc;
        let config = Config {
            profile,
            rto_min_ns: if linux { 200 * MS } else { SECOND },
            ..Config::default()
        };
        let mut estimator = RttEstimator::default();
        for round in 0..200 {
            estimator.sample(rtt, round + 1, round + 1, &config);
        }
        (estimator, config)
    }

    #[test]
    fn a_steady_rtt_leaves_srtt_plus_the_minimum_in_linux() {
        let (estimator, config) = settled(Profile::Linux, 40 * MS);
        assert_eq!(estimator.srtt(), 40 * MS);
        assert!(
            (240 * MS..=241 * MS).contains(&estimator.rto(&config)),
            "{}",
            estimator.rto(&config)
        );
    }

    #[test]
    fn a_steady_rtt_leaves_the_minimum_in_the_rfc() {
        let (estimator, config) = settled(Profile::Rfc, 40 * MS);
        assert_eq!(estimator.rto(&config), SECOND);
    }

    #[test]
    fn a_minimum_below_the_granularity_is_kept_in_the_rfc() {
        let config = Config {
            profile: Profile::Rfc,
            rto_min_ns: 10 * MS,
            ..Config::default()
        };
        let mut rtt = RttEstimator::default();
        for round in 0..20 {
            rtt.sample(
                20 * MICROSECOND,
                round * 1000 + 1,
                (round + 1) * 1000,
                &config,
            );
        }
        assert_eq!(rtt.rto(&config), 10 * MS + 20 * MICROSECOND);
    }

    #[test]
    fn a_steady_rtt_above_the_minimum_leaves_srtt_plus_the_granularity_in_the_rfc() {
        let (estimator, config) = settled(Profile::Rfc, 1_200 * MS);
        assert_eq!(estimator.rto(&config), 1_300 * MS);
    }

    #[test]
    fn the_first_sample_sets_both_terms() {
        let config = Config {
            profile: Profile::Rfc,
            ..Config::default()
        };
        let mut estimator = RttEstimator::default();
        estimator.sample(500 * MS, 1, 1, &config);
        assert_eq!(estimator.rto(&config), 1_500 * MS);
    }

    /// Section 2.3 knows no direction; Linux takes an eighth of a fall (`tcp_rtt_estimator`).
    #[test]
    fn a_fall_raises_the_timeout_in_the_rfc() {
        let (mut estimator, config) = settled(Profile::Rfc, 1_200 * MS);
        estimator.sample(400 * MS, 1000, 2000, &config);
        assert_eq!(estimator.rto(&config) / MS, 1_100 + 800);
        let (mut estimator, config) = settled(Profile::Linux, 1_200 * MS);
        estimator.sample(400 * MS, 1000, 2000, &config);
        assert!(estimator.rto(&config) < 1_400 * MS);
    }

    #[test]
    fn each_change_of_the_margin_is_told() {
        let (mut estimator, config) = settled(Profile::Linux, 40 * MS);
        let (mut margin, mut changes) = (200 * MS, 0);
        for round in 0..60 {
            let rtt = if round < 3 { 400 * MS } else { 40 * MS };
            let una = 1_000 + round;
            estimator.sample_telling(rtt, una, una + 1, &config, |told| {
                margin = told;
                changes += 1;
            });
            assert_eq!(nanoseconds(estimator.rttvar), margin);
        }
        assert!(changes > 5 && margin < 250 * MS, "{changes}, {margin}");
    }

    #[test]
    fn a_jump_raises_the_timeout_at_once() {
        let (mut estimator, config) = settled(Profile::Linux, 40 * MS);
        estimator.sample(400 * MS, 1000, 2000, &config);
        assert!(estimator.rto(&config) > 400 * MS);
    }
}

//! How a window shrinks during an episode: in proportion (PRR, RFC 6937), or at once (RFC 6675).

use crate::path::Path;
use crate::settings::{Config, WindowReduction};

/// A reduction towards the controller's threshold, and what it reduced. Counts are packets.
#[derive(Debug)]
pub(super) struct Reduction {
    rule: WindowReduction,
    /// A loss reduces what is in flight, not the window.
    of_flight: bool,
    prior_cwnd: u32,
    /// 0: nothing is given back.
    prior_ssthresh: u32,
    /// What is reduced in proportion: what was in flight (RFC 6937's RecoverFS), or the window.
    base: u32,
    /// PRR's counts since recovery began.
    delivered: u32,
    sent: u32,
}

impl Reduction {
    pub fn new(config: &Config) -> Self {
        Self {
            rule: config.recovery,
            of_flight: config.profile.reduces_flight(),
            prior_cwnd: 0,
            prior_ssthresh: 0,
            base: 0,
            delivered: 0,
            sent: 0,
        }
    }

    /// Nothing was ever reduced.
    pub fn reset(&mut self) {
        *self = Self {
            prior_cwnd: 0,
            prior_ssthresh: 0,
            base: 0,
            delivered: 0,
            sent: 0,
            ..*self
        };
    }

    /// The window is about to be reduced in proportion (RFC 6937 section 3, RFC 6675 section 5).
    pub fn begin(&mut self, path: &Path) {
        self.remember(path);
        self.base = path.cwnd;
        self.delivered = 0;
        self.sent = 0;
    }

    /// The window is about to be reduced.
    pub fn remember(&mut self, path: &Path) {
        self.prior_cwnd = path.cwnd;
        self.prior_ssthresh = path.ssthresh;
    }

    /// It is not undone.
    pub fn keep(&mut self) {
        self.prior_ssthresh = 0;
    }

    /// Window and threshold as they were before, if they are to be given back.
    pub fn prior(&self) -> Option<(u32, u32)> {
        (self.prior_ssthresh > 0).then_some((self.prior_cwnd, self.prior_ssthresh))
    }

    pub fn count_sent(&mut self, segments: u32) {
        self.sent += segments;
    }

    /// What was counted as sent was not.
    pub fn uncount_sent(&mut self, segments: u32) {
        self.sent = self.sent.saturating_sub(segments);
    }

    /// Where a loss reduces what is in flight, so does the threshold that the controller took from the window. What is above the window was
    /// added by limited transmit.
    #[cold]
    pub fn reduce_flight(&mut self, path: &mut Path, packets: u32) {
        let flight = packets.min(path.cwnd);
        if self.of_flight && flight < path.cwnd {
            let threshold = u64::from(path.ssthresh) * u64::from(flight) / u64::from(path.cwnd);
            path.ssthresh = (threshold as u32).max(2);
            self.base = flight;
        }
    }

    /// One step of PRR with the slow-start reduction bound (RFC 6937 section 3.1), after so many packets were `delivered`. `progress`: the
    /// acknowledgement advances, and nothing more is lost. `repeats`: the episode has retransmissions.
    pub fn step(
        &mut self,
        path: &mut Path,
        in_flight: u32,
        delivered: u32,
        (progress, repeats): (bool, bool),
    ) {
        if delivered == 0 || self.base == 0 {
            return;
        }
        if self.rule == WindowReduction::AtOnce {
            return self.reduce_at_once(path, in_flight, repeats);
        }
        self.delivered += delivered;
        let gap = i64::from(path.ssthresh) - i64::from(in_flight);
        let mut budget = if gap < 0 {
            let target = u64::from(path.ssthresh) * u64::from(self.delivered);
            target.div_ceil(u64::from(self.base)) as i64 - i64::from(self.sent)
        } else {
            let mut budget =
                (i64::from(self.delivered) - i64::from(self.sent)).max(i64::from(delivered));
            if progress {
                budget += 1;
            }
            budget.min(gap)
        };
        // The first retransmission of an episode leaves at once.
        budget = budget.max(i64::from(self.sent == 0));
        path.cwnd = in_flight + budget.max(0) as u32;
    }

    /// The window is the threshold, and what is in flight falls below it before more leaves; only the first retransmission of an episode
    /// leaves at once (RFC 6675 section 5).
    #[cold]
    fn reduce_at_once(&self, path: &mut Path, in_flight: u32, repeats: bool) {
        let first = repeats && self.sent == 0;
        let least = if first { in_flight + 1 } else { 0 };
        path.cwnd = path.ssthresh.max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::INFINITE_SSTHRESH;

    /// 20 packets are in flight when one is lost; the controller's threshold is 10.
    fn reducing(rule: WindowReduction) -> (Reduction, Path) {
        let config = Config {
            recovery: rule,
            ..Config::default()
        };
        let mut path = Path::new(1_460, 20);
        let mut reduction = Reduction::new(&config);
        reduction.begin(&path);
        path.ssthresh = 10;
        (reduction, path)
    }

    /// RFC 6937 section 3.1: with every second packet that is delivered, one leaves.
    #[test]
    fn the_window_shrinks_in_proportion() {
        let (mut reduction, mut path) = reducing(WindowReduction::Proportional);
        let (mut in_flight, mut sent) = (19, 0);
        for _ in 0..9 {
            in_flight -= 1;
            reduction.step(&mut path, in_flight, 1, (false, true));
            let leaves = path.cwnd - in_flight;
            reduction.count_sent(leaves);
            (in_flight, sent) = (in_flight + leaves, sent + leaves);
        }
        assert_eq!((sent, path.cwnd), (5, 15));
    }

    /// RFC 6675 section 5: nothing but the first retransmission leaves until less than the threshold is in flight.
    #[test]
    fn the_window_shrinks_at_once() {
        let (mut reduction, mut path) = reducing(WindowReduction::AtOnce);
        reduction.step(&mut path, 19, 1, (false, true));
        assert_eq!(path.cwnd, 20);
        reduction.count_sent(1);
        reduction.step(&mut path, 19, 1, (false, true));
        assert_eq!(path.cwnd, 10);
    }

    #[test]
    fn what_is_kept_is_not_given_back() {
        let (mut reduction, _) = reducing(WindowReduction::Proportional);
        assert_eq!(reduction.prior(), Some((20, INFINITE_SSTHRESH)));
        reduction.keep();
        assert_eq!(reduction.prior(), None);
    }
}

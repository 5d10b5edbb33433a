//! The RTTs that Copa goes by: the lowest of all, and of a moment (section 2.1).

use std::collections::VecDeque;

use crate::{Nanos, SECOND};

/// How long the lowest RTT counts (section 2.1).
const LONG: Nanos = 10 * SECOND;
/// RTTs in which a queue that nobody fills is nearly empty once (section 2.2, `is_copa`).
const TURNS: Nanos = 4;

/// The least, or the most, of a stretch of time.
#[derive(Debug, Default)]
struct Extreme {
    values: VecDeque<(Nanos, Nanos)>,
}

impl Extreme {
    fn take(
        &mut self,
        now: Nanos,
        value: Nanos,
        window: Nanos,
        better: fn(&Nanos, &Nanos) -> bool,
    ) {
        while (self.values.back()).is_some_and(|(_, last)| !better(last, &value)) {
            self.values.pop_back();
        }
        self.values.push_back((now, value));
        while self.values.len() > 1 && self.values[0].0 + window < now {
            self.values.pop_front();
        }
    }

    fn get(&self) -> Option<Nanos> {
        self.values.front().map(|&(_, value)| value)
    }
}

#[derive(Debug, Default)]
pub(super) struct Delays {
    least: Extreme,
    standing: Extreme,
    /// Of the last four RTTs.
    recent_least: Extreme,
    recent_most: Extreme,
}

impl Delays {
    pub fn take(&mut self, now: Nanos, rtt: Nanos, srtt: Nanos) {
        let window = |time: Nanos| time.min(LONG);
        self.least.take(now, rtt, LONG, Nanos::lt);
        self.standing.take(now, rtt, window(srtt / 2), Nanos::lt);
        let turns = window(TURNS * srtt);
        self.recent_least.take(now, rtt, turns, Nanos::lt);
        self.recent_most.take(now, rtt, turns, Nanos::gt);
    }

    /// The standing RTT and the lowest, once there is one.
    pub fn now(&self) -> Option<(Nanos, Nanos)> {
        // A path without delay has one of a nanosecond, so that there is a rate.
        Some((self.standing.get()?.max(1), self.least.get()?.max(1)))
    }

    /// Whether the queueing delay was below a tenth of its range lately.
    pub fn nearly_empty(&self) -> bool {
        let values = (
            self.least.get(),
            self.recent_least.get(),
            self.recent_most.get(),
        );
        let (Some(least), Some(low), Some(high)) = values else {
            return true;
        };
        10 * (low - least) < high - least || high == least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND as MS;

    #[test]
    fn the_standing_rtt_is_of_half_an_rtt() {
        let mut delays = Delays::default();
        delays.take(SECOND, 40 * MS, 40 * MS);
        delays.take(SECOND + 10 * MS, 60 * MS, 40 * MS);
        assert_eq!(delays.now(), Some((40 * MS, 40 * MS)));
        delays.take(SECOND + 30 * MS, 50 * MS, 40 * MS);
        assert_eq!(delays.now(), Some((50 * MS, 40 * MS)));
        delays.take(20 * SECOND, 70 * MS, 40 * MS);
        assert_eq!(delays.now(), Some((70 * MS, 70 * MS)));
    }

    #[test]
    fn a_queue_that_is_never_empty_is_someone_elses() {
        let mut delays = Delays::default();
        delays.take(SECOND, 40 * MS, 40 * MS);
        for step in 0..30 {
            let rtt = if step % 2 == 0 { 60 * MS } else { 41 * MS };
            delays.take(SECOND + step * 20 * MS, rtt, 50 * MS);
            assert!(delays.nearly_empty());
        }
        for step in 30..60 {
            let rtt = if step % 2 == 0 { 60 * MS } else { 43 * MS };
            delays.take(SECOND + step * 20 * MS, rtt, 50 * MS);
        }
        assert!(!delays.nearly_empty());
    }
}

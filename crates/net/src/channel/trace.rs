//! Delivery opportunities from a trace, as Mahimahi's mm-link has them.

use std::sync::Arc;

use crate::ids::{NEVER, Nanos};

/// IP bytes that an opportunity carries.
pub const OPPORTUNITY_BYTES: u32 = 1500;

const MILLISECOND: Nanos = 1_000_000;

/// When a channel may deliver: times in ascending order, over and over. The last one is the period.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    times: Box<[Nanos]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    #[error("a trace needs at least one opportunity")]
    Empty,
    #[error("the last opportunity of a trace must come later than 0 ms")]
    NoTime,
    #[error(
        "a trace must have at most {} opportunities and last at most {} ms",
        Trace::MOST,
        Trace::LONGEST_MS
    )]
    TooLong,
}

impl Trace {
    pub const MOST: u64 = 10_000_000;
    pub const LONGEST_MS: u64 = 1_000_000_000;

    /// From pairs of a gap in ms and how many opportunities follow one another at it; the first gap counts from 0.
    ///
    /// # Errors
    /// Without an opportunity, without time, and beyond [`Trace::MOST`] or [`Trace::LONGEST_MS`].
    pub fn from_gaps(gaps_ms: &[(u64, u64)]) -> Result<Self, TraceError> {
        let count = gaps_ms
            .iter()
            .fold(0_u64, |sum, run| sum.saturating_add(run.1));
        let length = gaps_ms.iter().fold(0_u64, |sum, run| {
            sum.saturating_add(run.0.saturating_mul(run.1))
        });
        match (count, length) {
            (0, _) => return Err(TraceError::Empty),
            (_, 0) => return Err(TraceError::NoTime),
            _ if count > Self::MOST || length > Self::LONGEST_MS => {
                return Err(TraceError::TooLong);
            }
            _ => {}
        }
        let mut times = Vec::with_capacity(count as usize);
        let mut at = 0;
        for &(gap, repeats) in gaps_ms {
            for _ in 0..repeats {
                at += gap * MILLISECOND;
                times.push(at);
            }
        }
        Ok(Self {
            times: times.into_boxed_slice(),
        })
    }

    fn period(&self) -> Nanos {
        self.times[self.times.len() - 1]
    }

    /// Opportunities of one period.
    pub fn count(&self) -> u64 {
        self.times.len() as u64
    }

    /// Bit/s over a period if all opportunities are used, rounded down, but at least 1.
    pub fn mean_rate_bps(&self, overhead: u32) -> u64 {
        let bits = u128::from(self.count()) * u128::from(OPPORTUNITY_BYTES + overhead) * 8;
        u64::try_from(bits * 1_000_000_000 / u128::from(self.period()))
            .map_or(u64::MAX, |it| it.max(1))
    }

    fn time(&self, number: u64) -> Nanos {
        let (round, place) = (number / self.count(), number % self.count());
        round
            .saturating_mul(self.period())
            .saturating_add(self.times[place as usize])
    }

    /// Opportunities up to and at a time.
    pub fn until(&self, now: Nanos) -> u64 {
        let (round, rest) = (now / self.period(), now % self.period());
        let own = self.times.partition_point(|time| *time <= rest) as u64;
        round * self.count() + own
    }
}

/// A place in a trace: the opportunity that comes next, or the one that is being used.
#[derive(Debug)]
pub(crate) struct Opportunities {
    trace: Arc<Trace>,
    capacity: u32,
    number: u64,
    at: Nanos,
    left: u32,
}

impl Opportunities {
    /// Those after `now`: who comes at the time of one has missed it.
    pub fn new(now: Nanos, trace: Arc<Trace>, overhead: u32) -> Self {
        let mut made = Self {
            trace,
            capacity: OPPORTUNITY_BYTES + overhead,
            number: 0,
            at: NEVER,
            left: 0,
        };
        made.pass(now);
        made
    }

    pub fn at(&self) -> Nanos {
        self.at
    }

    fn go_to(&mut self, number: u64) {
        self.number = number;
        self.at = self.trace.time(number);
        self.left = self.capacity;
    }

    /// Loses the opportunities up to and at `now`, and what is left of the present one.
    pub fn pass(&mut self, now: Nanos) {
        self.go_to(self.trace.until(now));
    }

    /// Takes the bytes of a packet from this opportunity and, if it is used up, from those that follow: when the last is sent.
    pub fn send(&mut self, size: u32) -> Nanos {
        let mut rest = size;
        loop {
            let taken = rest.min(self.left);
            rest -= taken;
            self.left -= taken;
            let at = self.at;
            if self.left == 0 {
                self.go_to(self.number + 1);
            }
            if rest == 0 {
                return at;
            }
        }
    }

    /// The part of the time up to `now` that bytes are of all that could be sent by then.
    pub fn busy(&self, now: Nanos, bytes: u64) -> Nanos {
        let offered = u128::from(self.trace.until(now)) * u128::from(self.capacity);
        let share = u128::from(now) * u128::from(bytes);
        share.checked_div(offered).map_or(0, |busy| busy as Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_is_the_period_and_coincides_with_time_0_of_the_next() {
        let trace = Trace::from_gaps(&[(0, 1), (2, 2)]).unwrap();
        let times: Vec<u64> = (0..7)
            .map(|number| trace.time(number) / MILLISECOND)
            .collect();
        assert_eq!(times, [0, 2, 4, 4, 6, 8, 8]);
        for now in 0..9 {
            let naive = (0..)
                .take_while(|it| trace.time(*it) <= now * MILLISECOND)
                .count();
            assert_eq!(trace.until(now * MILLISECOND), naive as u64, "{now}");
        }
        assert_eq!(trace.mean_rate_bps(0), 9_000_000);
    }

    #[test]
    fn traces_without_opportunities_or_time_are_refused() {
        assert_eq!(Trace::from_gaps(&[(5, 0)]), Err(TraceError::Empty));
        assert_eq!(Trace::from_gaps(&[(0, 3)]), Err(TraceError::NoTime));
        let endless = Trace::from_gaps(&[(u64::MAX, 2)]);
        assert_eq!(endless, Err(TraceError::TooLong));
        let many = Trace::from_gaps(&[(1, 1), (0, u64::MAX)]);
        assert_eq!(many, Err(TraceError::TooLong));
    }
}

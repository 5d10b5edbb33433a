//! Delays of requests, of which some have no answer.

use crate::connection::Connection;
use crate::figures::Figures;
use crate::table::TableError;

/// What is known of the delays of several requests. One without an answer is longer than any that was answered.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// How many there are.
    sent: usize,
    /// In ns, the shortest first.
    answered: Vec<f64>,
}

impl Delays {
    pub fn of(delays: impl IntoIterator<Item = Option<f64>>) -> Self {
        let mut found = Self::default();
        for delay in delays {
            found.sent += 1;
            found.answered.extend(delay);
        }
        found.answered.sort_by(f64::total_cmp);
        found
    }

    pub fn sent(&self) -> usize {
        self.sent
    }

    pub fn unanswered(&self) -> usize {
        self.sent - self.answered.len()
    }

    /// Linearly interpolated; absent where it depends on a request without an answer.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let last = self.sent.checked_sub(1)?;
        let place = part * last as f64;
        let lower = place.floor();
        let upper = lower as usize + usize::from(place > lower);
        let (below, above) = (
            self.answered.get(lower as usize)?,
            self.answered.get(upper)?,
        );
        Some(below + (place - lower) * (above - below))
    }
}

impl Figures {
    /// Delay of each request in ns, in the order of sending; absent: unanswered.
    pub fn delays(&self, of: &Connection) -> Result<Vec<Option<i64>>, TableError> {
        let requests = self.table("requests");
        let applications = requests.counts("application")?.into_iter();
        let indices = requests.counts("index")?;
        let mut own: Vec<(i64, Option<i64>)> = applications
            .zip(indices.into_iter().zip(requests.integers("delay_ns")?))
            .filter_map(|(application, row)| (application == of.application as i64).then_some(row))
            .collect();
        own.sort_by_key(|(index, _)| *index);
        Ok(own.into_iter().map(|(_, delay)| delay).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unanswered_request_is_longer_than_any() {
        let delays = Delays::of([Some(10.0), None, Some(30.0), Some(20.0), Some(40.0)]);
        assert_eq!((delays.sent(), delays.unanswered()), (5, 1));
        assert_eq!(delays.quantile(0.5), Some(30.0));
        assert_eq!(delays.quantile(0.6), Some(34.0));
        assert_eq!(delays.quantile(0.8), None);
        assert_eq!(Delays::default().quantile(0.5), None);
    }
}

//! Delays of requests. Some requests have no answer.

use rustc_hash::FxHashMap;

use crate::connection::Connection;
use crate::figures::Figures;
use crate::table::{Table, TableError, grouped};

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

/// The requests of each application, and the messages that found no packet.
pub(crate) struct Requests {
    groups: FxHashMap<i64, Vec<usize>>,
    delays: Vec<Option<i64>>,
    refused: FxHashMap<i64, usize>,
}

impl Requests {
    pub fn of(requests: &Table, events: &Table) -> Result<Self, TableError> {
        let mut refused = FxHashMap::default();
        let kinds = events.texts("kind")?.into_iter();
        for (kind, connection) in kinds.zip(events.integers("connection")?) {
            if let (Some(connection), "datagram-refused") = (connection, kind) {
                *refused.entry(connection).or_default() += 1;
            }
        }
        Ok(Self {
            groups: grouped(requests.counts("application")?, &requests.counts("index")?),
            delays: requests.integers("delay_ns")?,
            refused,
        })
    }
}

impl Figures {
    /// Delay of each request in ns, in the order of sending; absent: unanswered.
    pub fn delays(&self, of: &Connection) -> Result<Vec<Option<i64>>, TableError> {
        let requests = self.requests()?;
        let rows = requests.groups.get(&(of.application as i64));
        let delay = |row: &usize| requests.delays[*row];
        Ok(rows.into_iter().flatten().map(delay).collect())
    }

    /// Messages for which no packet had room; they are among those without an answer.
    pub(crate) fn refused(&self, of: &Connection) -> Result<usize, TableError> {
        let refused = &self.requests()?.refused;
        Ok(of.id.and_then(|id| refused.get(&id)).copied().unwrap_or(0))
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

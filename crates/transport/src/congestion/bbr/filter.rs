//! The maximum over the last rounds.

use std::collections::VecDeque;

/// A windowed maximum over rounds.
#[derive(Debug, Default)]
pub(in crate::congestion) struct Maximum {
    /// Rounds and values, each value less than the one before: what a later and larger one hides is dropped.
    values: VecDeque<(u64, f64)>,
}

impl Maximum {
    /// Takes the `value` of `round`; what is more than `window` rounds old no longer counts.
    pub fn add(&mut self, round: u64, value: f64, window: u64) {
        while self.values.back().is_some_and(|&(_, last)| last <= value) {
            self.values.pop_back();
        }
        self.values.push_back((round, value));
        while self.values[0].0 + window < round {
            self.values.pop_front();
        }
    }

    /// 0 before the first value.
    pub fn get(&self) -> f64 {
        self.values.front().map_or(0.0, |&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::Maximum;

    #[test]
    fn the_largest_of_the_window_counts() {
        let mut maximum = Maximum::default();
        let values = [3.0, 9.0, 4.0, 5.0, 1.0, 1.0, 1.0];
        let largest: Vec<f64> = (0..)
            .zip(values)
            .map(|(round, value)| {
                maximum.add(round, value, 2);
                maximum.get()
            })
            .collect();
        assert_eq!(largest, [3.0, 9.0, 9.0, 9.0, 5.0, 5.0, 1.0]);
    }
}

//! Sets of positions as ranges, and numbers of 32 bits as positions.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    by_start: BTreeMap<u64, u64>,
    total: u64,
}

impl Ranges {
    /// Adds a range; gives how much of it is new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let before = self.total;
        let (mut start, mut end) = (range.start, range.end);
        if let Some((&left, &right)) = self.by_start.range(..=start).next_back()
            && right >= start
        {
            if right >= end {
                return 0;
            }
            start = left;
            end = end.max(right);
            self.total -= right - left;
            self.by_start.remove(&left);
        }
        while let Some((&left, &right)) = self.by_start.range(start..=end).next() {
            end = end.max(right);
            self.total -= right - left;
            self.by_start.remove(&left);
        }
        self.by_start.insert(start, end);
        self.total += end - start;
        self.total - before
    }

    /// How much of a range is there.
    pub fn overlap(&self, range: &Range<u64>) -> u64 {
        let first = self
            .by_start
            .range(..=range.start)
            .next_back()
            .map_or(range.start, |(&left, _)| left);
        let mut found = 0;
        for (&left, &right) in self.by_start.range(first..range.end.max(first)) {
            let (left, right) = (left.max(range.start), right.min(range.end));
            found += right.saturating_sub(left);
        }
        found
    }

    pub fn contains(&self, position: u64) -> bool {
        self.by_start
            .range(..=position)
            .next_back()
            .is_some_and(|(_, &right)| right > position)
    }

    /// Forgets what is below a position.
    pub fn prune(&mut self, below: u64) {
        while let Some(entry) = self.by_start.first_entry() {
            let (left, right) = (*entry.key(), *entry.get());
            if left >= below {
                return;
            }
            entry.remove();
            self.total -= right - left;
            if right > below {
                self.by_start.insert(below, right);
                self.total += right - below;
                return;
            }
        }
    }

    /// Takes out the range that begins at or below a position and reaches beyond it; gives its end.
    pub fn take_from(&mut self, position: u64) -> Option<u64> {
        let (&left, &right) = self.by_start.first_key_value()?;
        if left > position {
            return None;
        }
        self.by_start.remove(&left);
        self.total -= right - left;
        Some(right)
    }

    /// Positions in all ranges.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// The position of a 32-bit number, nearest to a known position; `zero` is the number of position 0. None: before that.
pub fn unwrap(zero: u32, number: u32, near: u64) -> Option<u64> {
    let difference = number.wrapping_sub(zero).wrapping_sub(near as u32) as i32;
    near.checked_add_signed(i64::from(difference))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_wrap() {
        assert_eq!(unwrap(u32::MAX, 4, 0), Some(5));
        assert_eq!(unwrap(10, 5, 1 << 32), Some((1 << 32) - 5));
        assert_eq!(unwrap(10, 5, 0), None);
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set(ops in prop::collection::vec((0u64..60, 0u64..12, 0u8..4), 1..40)) {
            let (mut ranges, mut model) = (Ranges::default(), std::collections::BTreeSet::new());
            for (start, len, op) in ops {
                let range = start..start + len;
                if op == 0 {
                    ranges.prune(start);
                    model.retain(|&each| each >= start);
                } else {
                    let new = range.clone().filter(|&each| model.insert(each)).count();
                    prop_assert_eq!(ranges.insert(range.clone()), new as u64);
                }
                prop_assert_eq!(ranges.total(), model.len() as u64);
                let probe = start.saturating_sub(3)..start + 20;
                let there = model.range(probe.clone()).count() as u64;
                prop_assert_eq!(ranges.overlap(&probe), there);
                prop_assert_eq!(ranges.contains(start), model.contains(&start));
            }
        }
    }
}

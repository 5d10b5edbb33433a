//! A set of disjoint half-open ranges of sequence numbers.

use std::collections::VecDeque;

/// Disjoint, non-adjacent ranges `[start, end)` in ascending order. Empty sets own no memory.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl RangeSet {
    /// Adds `[start, end)` and calls `added` for each stretch that was not in the set before.
    pub fn insert(&mut self, start: u64, end: u64, mut added: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        if let Some(last) = self.ranges.back_mut()
            && start >= last.0
            && (end <= last.1 || start <= last.1)
        {
            if end > last.1 {
                added(last.1, end);
                self.bytes += end - last.1;
                last.1 = end;
            }
            return;
        }
        let first = self.ranges.partition_point(|range| range.1 < start);
        // Most often one range grows at its end and does not reach the next.
        if let Some(&(from, to)) = self.ranges.get(first)
            && from <= start
            && to < end
            && (self.ranges.get(first + 1)).is_none_or(|next| end < next.0)
        {
            added(to, end);
            self.bytes += end - to;
            self.ranges[first].1 = end;
            return;
        }
        let mut covered = start;
        let (mut low, mut high) = (start, end);
        let mut last = first;
        while let Some(&(from, to)) = self.ranges.get(last) {
            if from > end {
                break;
            }
            if from > covered {
                added(covered, from);
                self.bytes += from - covered;
            }
            covered = covered.max(to);
            low = low.min(from);
            high = high.max(to);
            last += 1;
        }
        if covered < end {
            added(covered, end);
            self.bytes += end - covered;
        }
        match last - first {
            0 => self.ranges.insert(first, (low, high)),
            1 => self.ranges[first] = (low, high),
            _ => {
                self.ranges[first] = (low, high);
                self.ranges.drain(first + 1..last);
            }
        }
    }

    /// Takes out everything below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.1 <= bound {
                self.bytes -= front.1 - front.0;
                self.ranges.pop_front();
            } else {
                if front.0 < bound {
                    self.bytes -= bound - front.0;
                    front.0 = bound;
                }
                break;
            }
        }
    }

    /// Takes out `[start, end)` and calls `removed` for each stretch that was in the set, the lowest first.
    pub fn remove(&mut self, start: u64, end: u64, mut removed: impl FnMut(u64, u64)) {
        let mut index = self.ranges.partition_point(|range| range.1 <= start);
        while let Some(&(from, to)) = self.ranges.get(index)
            && from < end
        {
            let (low, high) = (from.max(start), to.min(end));
            if low >= high {
                break;
            }
            removed(low, high);
            self.bytes -= high - low;
            match (from < low, high < to) {
                (false, false) => {
                    self.ranges.remove(index);
                }
                (false, true) => self.ranges[index].0 = high,
                (true, rest) => {
                    self.ranges[index].1 = low;
                    index += 1;
                    if rest {
                        self.ranges.insert(index, (high, to));
                    }
                }
            }
        }
    }

    /// Takes out everything below `bound`, and what continues it: returns where that ends, or `bound`.
    pub fn take_up_to(&mut self, bound: u64) -> u64 {
        let mut reached = bound;
        while let Some(&(start, end)) = self.ranges.front()
            && start <= reached
        {
            reached = reached.max(end);
            self.bytes -= end - start;
            self.ranges.pop_front();
        }
        reached
    }

    /// The range that holds `position`.
    pub fn find(&self, position: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|range| range.1 <= position);
        self.ranges
            .get(index)
            .copied()
            .filter(|range| range.0 <= position)
    }

    pub fn covers(&self, start: u64, end: u64) -> bool {
        match self.last() {
            Some(last) if last.0 <= start => end <= last.1,
            _ => self.find(start).is_some_and(|range| end <= range.1),
        }
    }

    /// The range of the largest numbers.
    #[inline]
    pub fn last(&self) -> Option<(u64, u64)> {
        self.ranges.back().copied()
    }

    /// The largest number in the set, plus one; 0 when empty.
    pub fn highest(&self) -> u64 {
        self.last().map_or(0, |range| range.1)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges there are.
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges, the lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_set_of_numbers(operations in prop::collection::vec((0u64..60, 0u64..12, 0u32..100), 1..40)) {
            let mut ranges = RangeSet::default();
            let mut model = BTreeSet::new();
            for (start, len, choice) in operations {
                if choice < 80 {
                    let mut fresh = BTreeSet::new();
                    ranges.insert(start, start + len, |a, b| fresh.extend(a..b));
                    let expected: BTreeSet<u64> = (start..start + len).filter(|n| !model.contains(n)).collect();
                    prop_assert_eq!(&fresh, &expected);
                    model.extend(start..start + len);
                } else if choice < 85 {
                    let mut gone = BTreeSet::new();
                    ranges.remove(start, start + len, |a, b| gone.extend(a..b));
                    let expected: BTreeSet<u64> = model.range(start..start + len).copied().collect();
                    prop_assert_eq!(&gone, &expected);
                    model.retain(|n| !(start..start + len).contains(n));
                } else if choice < 90 {
                    let mut expected = start;
                    while model.contains(&expected) {
                        expected += 1;
                    }
                    prop_assert_eq!(ranges.take_up_to(start), expected);
                    model.retain(|n| *n > expected);
                } else {
                    ranges.remove_below(start);
                    model.retain(|n| *n >= start);
                }
                let members: BTreeSet<u64> = ranges.iter().flat_map(|(a, b)| a..b).collect();
                prop_assert_eq!(&members, &model);
                prop_assert_eq!(ranges.bytes(), model.len() as u64);
                prop_assert!(ranges.iter().zip(ranges.iter().skip(1)).all(|(a, b)| a.1 < b.0));
                prop_assert_eq!(ranges.highest(), model.last().map_or(0, |n| n + 1));
            }
        }
    }
}

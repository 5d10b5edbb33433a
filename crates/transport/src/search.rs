//! Searches in long sequences that begin near what they look for.

use std::collections::VecDeque;

/// As [`VecDeque::partition_point`]: how many elements lie `before` what is looked for.
///
/// The search begins at `guess` and widens from there. A binary search of a hundred thousand elements waits for memory at each
/// of its steps; this does at few, where the guess is good.
pub(crate) fn partition_point_near<T>(
    elements: &VecDeque<T>,
    guess: usize,
    before: impl Fn(&T) -> bool,
) -> usize {
    // All below `low` lie before; none from `high` on does.
    let (mut low, mut high) = (0, elements.len());
    let (mut at, mut step) = (guess.min(high.saturating_sub(1)), 1);
    while low < high {
        if before(&elements[at]) {
            low = at + 1;
            at = at.saturating_add(step).min(high.saturating_sub(1));
        } else {
            high = at;
            at = at.saturating_sub(step).max(low);
        }
        step = (step * 2).min((high - low).div_ceil(2)).max(1);
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_a_binary_search_finds(
            steps in prop::collection::vec(0u64..3, 0..300),
            guess in 0usize..400,
            bound in 0u64..500,
        ) {
            let sums = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) });
            let elements: VecDeque<u64> = sums.collect();
            let before = |&element: &u64| element < bound;
            prop_assert_eq!(
                partition_point_near(&elements, guess, before),
                elements.partition_point(before)
            );
        }

        #[test]
        fn a_good_guess_costs_few_looks(len in 1usize..100_000, share in 0.0..1.0, miss in -3i64..4) {
            let elements: VecDeque<usize> = (0..len).collect();
            let bound = (len as f64 * share) as usize;
            let guess = bound.saturating_add_signed(miss as isize);
            let looks = std::cell::Cell::new(0);
            let found = partition_point_near(&elements, guess, |&element| {
                looks.set(looks.get() + 1);
                element < bound
            });
            prop_assert_eq!(found, bound);
            prop_assert!(looks.get() <= 12, "{} looks among {len}", looks.get());
        }
    }
}

//! Selects the cases that run: fixed ones, and as many of the day.
//!
//! By hand it can run any number of cases, those from a given one on, or a single one.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::choices::Choices;

/// Where the daily seeds begin, and how far the days are apart.
const FIRST_DAILY: u64 = 1_000_000_000;
const DAY: u64 = 10_000_000;

fn today() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / 86_400)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} must be a number, not {text}")))
}

/// Names the case that fails.
struct Case(&'static str, u64);

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(test, seed) = self;
            eprintln!(
                "again: POLYPATH_FUZZ_SEED={seed} cargo test -p polypath-transport --test attack {test}"
            );
        }
    }
}

/// So many from `first` on, or as many fixed ones and of the day.
fn seeds(cases: u64, first: Option<u64>) -> impl Iterator<Item = u64> {
    let (fixed, first) = match first {
        Some(first) => (0..0, first),
        None => {
            assert!(cases <= DAY, "at most {DAY} cases a day");
            (0..cases, FIRST_DAILY + today() * DAY)
        }
    };
    fixed.chain(first..first + cases)
}

/// Runs `usual` fixed cases and as many of the day. `POLYPATH_FUZZ_CASES` is another number of them, `POLYPATH_FUZZ_FIRST` the first of as
/// many that run instead, `POLYPATH_FUZZ_SEED` a single one.
pub fn run(test: &'static str, usual: u64, case: impl Fn(&mut Choices)) {
    let began = Instant::now();
    let one = |seed: u64| {
        let _named = Case(test, seed);
        case(&mut Choices::of_seed(seed));
    };
    if let Some(seed) = number("POLYPATH_FUZZ_SEED") {
        return one(seed);
    }
    let cases = number("POLYPATH_FUZZ_CASES").unwrap_or(usual);
    let mut ran = 0;
    for seed in seeds(cases, number("POLYPATH_FUZZ_FIRST")) {
        one(seed);
        ran += 1;
    }
    println!("{test}: {ran} cases, {:.1?}", began.elapsed());
}

#[test]
fn a_first_seed_leaves_out_all_others() {
    assert_eq!(seeds(3, Some(40)).collect::<Vec<_>>(), [40, 41, 42]);
    assert_eq!(seeds(3, None).take(3).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(seeds(3, None).count(), 6);
}

//! Judges scenarios by their numbers, on all processors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::scenario::Scenario;
use crate::verdict::{Seen, judge};

/// A scenario of which something did not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub why: String,
}

/// Judges one; a panic is a failure like any other.
pub fn attempt(scenario: &Scenario) -> Result<Seen, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| judge(scenario)));
    outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without a message")))
    })
}

/// Judges all of these; the failures come in the order of their numbers.
pub fn judge_all(seeds: std::ops::Range<u64>) -> (Seen, Vec<Failure>) {
    let next = AtomicU64::new(seeds.start);
    let outcome = Mutex::new((Seen::default(), Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let judged = attempt(&Scenario::new(seed));
                    let mut outcome = outcome.lock().expect("no worker panics");
                    match judged {
                        Ok(seen) => outcome.0.add(seen),
                        Err(why) => outcome.1.push(Failure { seed, why }),
                    }
                }
            });
        }
    });
    let (seen, mut failures) = outcome.into_inner().expect("no worker panics");
    failures.sort_by_key(|failure| failure.seed);
    (seen, failures)
}

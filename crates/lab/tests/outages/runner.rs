//! Judges cases by their numbers, on all processors.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::case::Case;

/// What came of them.
#[derive(Debug, Default)]
pub struct Outcome {
    pub judged: u64,
    /// Runs by the probe timeouts that they took beyond what their working path explains.
    pub timeouts: BTreeMap<u64, u64>,
    /// Number and reason of each failure, in order.
    pub failures: Vec<(u64, String)>,
}

fn attempt(seed: u64) -> Result<u64, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| Case::new(seed).judge()));
    outcome.unwrap_or_else(|_| Err("panicked".into()))
}

pub fn judge_all(seeds: std::ops::Range<u64>) -> Outcome {
    let next = AtomicU64::new(seeds.start);
    let outcome = Mutex::new(Outcome::default());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let judged = attempt(seed);
                    let mut outcome = outcome.lock().expect("no worker panics");
                    outcome.judged += 1;
                    match judged {
                        Ok(timeouts) => *outcome.timeouts.entry(timeouts).or_default() += 1,
                        Err(why) => outcome.failures.push((seed, why)),
                    }
                }
            });
        }
    });
    let mut outcome = outcome.into_inner().expect("no worker panics");
    outcome.failures.sort();
    outcome
}

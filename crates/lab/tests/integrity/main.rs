//! Whatever the network does and however the hosts are set: every byte arrives once and in order, or the connection ends as the RFCs
//! have it, and no packet disappears unaccounted for.
//!
//! A scenario is a random plan: 1 to 4 paths, direct or through routers, IPv4 and IPv6, any queue and loss model, reordering, jitter,
//! duplication, corruption, links and interfaces that go down and return, changes of rate, delay and priority, buffers from two segments
//! on, and on each side any scheduler, congestion control, path manager and profile of the registries. One in ten networks dies for good;
//! one in three has middleboxes, any of the registry. Where one of them breaks mappings or payload a connection may end by a reset instead
//! (RFC 8684 section 3.7), and where one changes bytes without a checksum that tells, these alone are wrong. In one of four, hosts have
//! keep-alive or a user timeout or both, which may end a connection over a living network, but not before their time; keep-alive lets no
//! side wait for ever over a dead one. In one of three, hosts look for the path's MTU.
//!
//! `POLYPATH_SCENARIOS` sets how many are run; `POLYPATH_SCENARIO` runs the one with this number, with its plan printed.

mod draw;
mod network;
mod scenario;
mod verdict;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use polypath_lab::plan::{Choice, Stack};
use scenario::{Scenario, middleboxes, names};
use verdict::{Seen, judge};

const DEFAULT_SCENARIOS: u64 = 2_000;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, not {text}")),
    )
}

/// Judges one; a panic is a failure like any other.
fn attempt(seed: u64) -> Result<Seen, String> {
    let scenario = Scenario::new(seed);
    let outcome = catch_unwind(AssertUnwindSafe(|| judge(&scenario)));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("without a message")))
    });
    outcome.map_err(|why| {
        let name = format!("integrity-{seed}.json");
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let plan = serde_json::to_string(&scenario.plan).expect("plans are JSON");
        let kept = match std::fs::write(&path, &plan) {
            Ok(()) => path.display().to_string(),
            Err(error) => error.to_string(),
        };
        format!(
            "scenario {seed} ({:?}): {why}\n  its plan: {kept}",
            scenario.fate
        )
    })
}

#[test]
fn every_stream_arrives_whole_or_ends_as_the_rfcs_have_it() {
    let first = setting("POLYPATH_SCENARIO");
    let seeds = match first {
        Some(seed) => seed..seed + 1,
        None => 0..setting("POLYPATH_SCENARIOS").unwrap_or(DEFAULT_SCENARIOS),
    };
    let (next, last) = (AtomicU64::new(seeds.start), seeds.end);
    let failures = Mutex::new(Vec::new());
    let sum = Mutex::new(Seen::default());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= last {
                        break;
                    }
                    match attempt(seed) {
                        Ok(seen) => sum.lock().expect("no worker panics").add(seen),
                        Err(failure) => failures
                            .lock()
                            .expect("no worker panics")
                            .push((seed, failure)),
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no worker panics");
    failures.sort();
    let seen = sum.into_inner().expect("no worker panics");
    println!("{seen:?}");
    let texts: Vec<String> = failures.into_iter().map(|(_, text)| text).collect();
    assert!(
        texts.is_empty(),
        "{} failures\n{}",
        texts.len(),
        texts.join("\n")
    );
    if first.is_none() {
        assert!(1_000 * seen.unlucky <= last, "{seen:?}");
        assert!(
            seen.finished > 0
                && seen.given_up > 0
                && seen.impatient > 0
                && seen.lost > 0
                && seen.duplicated > 0,
            "{seen:?}"
        );
    }
}

#[test]
fn every_algorithm_of_the_registries_takes_part() {
    type Pick = fn(&Stack) -> &Choice;
    let kinds: [(&str, Pick); 3] = [
        ("scheduler", |stack| &stack.scheduler),
        ("congestion", |stack| &stack.congestion),
        ("path-manager", |stack| &stack.path_manager),
    ];
    let boxes: BTreeSet<String> = (0..100)
        .flat_map(|seed| {
            let plan = Scenario::new(seed).plan;
            middleboxes(&plan).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(boxes, known("middlebox"));
    for (kind, choice) in kinds {
        let drawn: BTreeSet<String> = (0..100)
            .flat_map(|seed| names(choice, &Scenario::new(seed).plan))
            .collect();
        assert_eq!(drawn, known(kind), "{kind}");
    }
}

fn known(kind: &str) -> BTreeSet<String> {
    let entries = draw::entries(kind);
    let names = entries.iter().map(|entry| entry["name"].as_str());
    names
        .map(|name| name.unwrap_or_default().to_owned())
        .collect()
}

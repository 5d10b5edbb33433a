//! Multipath QUIC over paths that go dark, in every order, in either direction or both.
//!
//! The cases cover every path that acknowledgements can take, every scheduler and every congestion control. No run ends
//! later than the path that works in the end explains.
//!
//! Cases have numbers. Some run every time, and as many others each day. `make quic-outages` is the campaign.

mod case;
#[path = "../integrity/draw.rs"]
#[allow(dead_code, reason = "the scenarios of integrity use more of it")]
mod draw;
mod runner;

/// Cases of each run, and as many others of each day.
const CASES: u64 = 100;
/// Where the daily ones begin.
const FIRST_DAILY: u64 = 1_000_000;

fn today() -> u64 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / 86_400)
}

fn check(seeds: std::ops::Range<u64>) {
    println!("cases {seeds:?}");
    let outcome = runner::judge_all(seeds.clone());
    assert_eq!(outcome.judged, seeds.end - seeds.start);
    let report =
        |(seed, why): &(u64, String)| format!("{seed}: {why}\n  {:?}", case::Case::new(*seed));
    let texts: Vec<String> = outcome.failures.iter().map(report).collect();
    assert!(
        texts.is_empty(),
        "{} failures\n{}",
        texts.len(),
        texts.join("\n")
    );
}

/// Cases of campaigns that ran out of time once: a path recovered by what was sent before it was given up (two), its round trip took in an
/// acknowledgement that came again, a path without a probe in flight stayed given up (three), answers to others left on a dead path, and the
/// window of a dead path held back another's (two).
const ONCE_FAILED: [u64; 9] = [
    6_373, 8_674, 2_899, 8_087, 5_019_870, 5_020_397, 9_240, 419, 2_236,
];

#[test]
fn what_took_too_long_once_holds() {
    for seed in ONCE_FAILED {
        check(seed..seed + 1);
    }
}

#[test]
fn no_run_ends_later_than_the_working_path_explains() {
    check(0..CASES);
    let first = FIRST_DAILY + today() * CASES;
    check(first..first + CASES);
}

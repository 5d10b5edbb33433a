//! Checks what the page on interoperability states about peers in Rust.

use std::time::{SystemTime, UNIX_EPOCH};

use polypath_interop::Side;
use polypath_interop::matrix::{Cell, stands};
use polypath_interop::peer::{NoqProto, Peer, QuinnProto};
use polypath_interop::scenario::{REGISTRY, Verdict, run};

const PAGE: &str = include_str!("../../../../assurance/records/interop.md");

/// One fixed seed, and one of the day.
fn seeds() -> [u64; 2] {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    [1, since.map_or(0, |since| since.as_secs() / 86_400)]
}

#[test]
fn what_the_page_calls_passed_passes() {
    let peers: [&dyn Peer; 2] = [&NoqProto, &QuinnProto];
    for scenario in REGISTRY {
        for peer in peers {
            for role in [Side::Client, Side::Server] {
                let said = stands(PAGE, scenario.name, peer.name(), role)
                    .unwrap_or_else(|| panic!("{} and {}", scenario.name, peer.name()));
                let by_chance = scenario.network.is_by_chance();
                for seed in seeds().into_iter().take(if by_chance { 1 } else { 2 }) {
                    let cell = Cell::play(scenario, peer, role, [seed]);
                    let (name, peer) = (scenario.name, &cell.peer);
                    let passed = cell.verdict == Verdict::Passed;
                    assert!(
                        passed || said != "passed",
                        "{name}, {peer} as {role:?}, seed {seed}: {}",
                        cell.word()
                    );
                }
            }
        }
    }
}

/// A check that nothing fails is none: ends that are not set to what a test case is about do not pass it.
#[test]
fn what_a_test_case_is_about_has_to_be_seen() {
    for (name, seen) in [
        ("retry", "the server sent no Retry"),
        ("ecn", "the client sent no packet with ECT"),
        ("amplificationlimit", "the server's flight is short"),
        ("resumption", "the second handshake had a certificate again"),
    ] {
        let scenario = REGISTRY.iter().find(|it| it.name == name);
        let plain = scenario.expect("it is published").with_plain_ends();
        let verdict = run(&plain, &polypath_interop::peer::Polypath, &QuinnProto, 1);
        let Verdict::Failed(reason) = verdict else {
            panic!("{name}: {verdict:?}");
        };
        assert!(reason.starts_with(seen), "{name}: {reason}");
    }
}

//! The attacks of `crates/transport/tests/attack`, driven by the bytes of a fuzzer.

#![allow(dead_code, unused_imports, reason = "what only the tests use")]

#[path = "../../../crates/transport/tests/attack/attacker.rs"]
mod attacker;
#[path = "../../../crates/transport/tests/attack/choices.rs"]
mod choices;
#[path = "../../../crates/transport/tests/common/mod.rs"]
mod common;
#[path = "../../../crates/transport/tests/attack/mptcp.rs"]
mod mptcp;
#[path = "../../../crates/transport/tests/attack/mutate.rs"]
mod mutate;
#[path = "../../../crates/transport/tests/attack/seeds.rs"]
mod seeds;
#[path = "../../../crates/transport/tests/attack/stack.rs"]
mod stack;
#[path = "../../../crates/transport/tests/attack/tcp.rs"]
mod tcp;

use choices::Choices;

/// Runs the case that the first byte names; the others decide.
fn run(cases: &[fn(&mut Choices)], bytes: &[u8]) {
    if let Some((first, rest)) = bytes.split_first() {
        cases[usize::from(*first) % cases.len()](&mut Choices::of_bytes(rest));
    }
}

pub fn tcp(bytes: &[u8]) {
    run(tcp::CASES, bytes);
}

pub fn mptcp(bytes: &[u8]) {
    run(mptcp::CASES, bytes);
}

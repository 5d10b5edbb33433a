//! TCP by packet scripts: each test is named by its rule.
//!
//! | module | rules |
//! |---|---|
//! | [`half_open`] | segments that do not fit a handshake's state, SYNs of the same addresses and ports |
//! | [`handshake`] | options and how each falls back, SYN retransmission, refusal, duplicates, wrap of the ISN |
//! | [`sending`] | initial window, slow start, Nagle, silly window, zero-window probes, restart after idleness |
//! | [`recovery`] | SACK and RACK, NewReno, PRR, limited transmit, tail loss probe, RTO, undo, ECN's reduction |
//! | [`spurious`] | needless retransmissions and timeouts: timestamps, F-RTO, DSACK |
//! | [`receiving`] | delayed and quick ACKs, SACK blocks, DSACK, PAWS, window, ECN's echo |
//! | [`local_drop`] | what the host's own queue refuses |
//! | [`small_queues`] | what it may hold |
//! | [`liveness`] | keep-alive, user timeout |
//! | [`path_mtu`] | path MTU discovery |
//! | [`mtu_probing`] | the sender's own search for the path's MTU |
//! | [`blind`] | guesses of an attacker that sees nothing |
//! | [`closing`] | FIN in every state, simultaneous close, TIME-WAIT, resets |

#[allow(dead_code, reason = "the modules of tests use different parts")]
#[path = "../common/mod.rs"]
mod common;

mod accurate_ecn;
mod blind;
mod closing;
mod half_open;
mod handshake;
mod liveness;
mod local_drop;
mod mtu_probing;
mod path_mtu;
mod receiving;
mod recovery;
mod sending;
mod small_queues;
mod spurious;

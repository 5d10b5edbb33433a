//! Whole endpoints under attack: what the RFCs deny an attacker, it does not get, and what an endpoint keeps and sends stays bounded.
//!
//! | module | content |
//! |---|---|
//! | [`attacker`] | the three models, and what a segment has to hit to be taken |
//! | [`choices`] | where an attack's decisions come from |
//! | [`mutate`] | changes of packets: of fields, of options, of bytes |
//! | [`tcp`] | RFC 9293, RFC 5961, RFC 5927 |
//! | [`mptcp`] | RFC 8684 |
//! | [`quic`] | RFC 9000, RFC 9001 |
//! | [`stack`] | what both ends are |
//! | [`seeds`] | which cases run |
//! | [`found`] | those that failed once |

#[allow(dead_code, reason = "the modules of tests use different parts")]
#[path = "../common/mod.rs"]
mod common;

#[allow(dead_code, reason = "the modules of tests use different parts")]
#[path = "../quic/pair.rs"]
mod quic_pair;

mod attacker;
mod choices;
mod found;
mod mptcp;
mod mutate;
mod quic;
mod seeds;
mod stack;
mod tcp;

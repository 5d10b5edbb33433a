//! The test cases of [quic-interop-runner](https://github.com/quic-interop/quic-interop-runner), by their published
//! names.
//!
//! A scenario is data: a network, the settings of both ends, the download, and the events during it. The published
//! criteria judge the packets on the wire. An endpoint's own word counts for one thing only: that it is done.

mod address;
mod checks;
mod handshake;
mod network;
mod run;
mod security;
mod streams;

use polypath_transport::{Nanos, SECOND};

pub use network::{Impairment, Network, Rebinding};
pub use run::{Connection, Verdict, run};

use crate::peer::{Feature, Setup};

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;

/// A published test case.
pub struct Scenario {
    /// Its published name.
    pub name: &'static str,
    /// What it asks, in a sentence.
    pub asks: &'static str,
    /// Without these of both ends it cannot be run.
    pub needs: &'static [Feature],
    pub network: Network,
    pub setup: fn() -> Setup,
    /// What the client downloads, by connection.
    pub downloads: &'static [&'static [u64]],
    pub act: Act,
    /// Within which the whole is done.
    pub limit: Nanos,
    pub check: fn(&[Connection]) -> Result<(), String>,
}

/// What the client does once it has received [`Act::AFTER`] bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    None,
    UpdateKeys,
    /// It moves to another of its addresses.
    Move,
}

impl Act {
    /// Early in the first megabyte.
    pub const AFTER: u64 = 200 * KB;
}

impl Scenario {
    /// What most have in common. It is no test case.
    const BASE: Self = Self {
        name: "",
        asks: "",
        needs: &[],
        network: Network::SIMPLE,
        setup: Setup::default,
        downloads: &[],
        act: Act::None,
        limit: 60 * SECOND,
        check: checks::one_handshake,
    };

    /// The same with ends that are as their implementations ship them: its check has to notice.
    #[must_use]
    pub fn with_plain_ends(&self) -> Self {
        Self {
            setup: Setup::default,
            ..*self
        }
    }
}

pub const REGISTRY: &[Scenario] = &[
    handshake::HANDSHAKE,
    streams::TRANSFER,
    handshake::LONG_RTT,
    streams::MULTIPLEXING,
    handshake::RETRY,
    security::RESUMPTION,
    streams::BLACKHOLE,
    security::KEY_UPDATE,
    streams::ECN,
    security::AMPLIFICATION_LIMIT,
    handshake::MULTICONNECT,
    handshake::HANDSHAKE_LOSS,
    streams::TRANSFER_LOSS,
    handshake::HANDSHAKE_CORRUPTION,
    streams::TRANSFER_CORRUPTION,
    address::REBIND_PORT,
    address::REBIND_ADDRESS,
    address::CONNECTION_MIGRATION,
];

/// Published test cases that are not here, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[
    ("versionnegotiation", "the runner disables it"),
    (
        "chacha20",
        "Polypath's TLS has one cipher suite, AES-128-GCM, so the same seeds give the same bytes",
    ),
    (
        "zerortt",
        "Polypath neither sends nor accepts 0-RTT packets",
    ),
    (
        "http3",
        "it tests HTTP/3; Polypath speaks HTTP/0.9 over QUIC",
    ),
    (
        "ipv6",
        "the links between the endpoints here have only IPv4 addresses",
    ),
    ("v2", "Polypath speaks only version 1 of QUIC"),
];

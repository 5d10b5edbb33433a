//! Events that an endpoint reports to its owner.

use std::net::{IpAddr, SocketAddr};

use crate::Nanos;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both directions were closed in order.
    Finished,
    /// The peer reset it (RST, or MP_FASTCLOSE).
    Reset,
    /// Too many timeouts in a row (RFC 9293 section 3.8.3).
    TimedOut,
    /// No answer to the SYN.
    Unreachable,
    /// This side aborted it.
    Aborted,
}

impl CloseReason {
    /// What recordings call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Reset => "reset",
            Self::TimedOut => "timed-out",
            Self::Unreachable => "unreachable",
            Self::Aborted => "aborted",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub at: Nanos,
    pub kind: EventKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    ConnectionEstablished,
    ConnectionClosed(CloseReason),
    SubflowEstablished(usize),
    SubflowClosed(usize),
    /// Fast recovery began.
    Loss(usize),
    Timeout {
        subflow: usize,
        backoff: u32,
    },
    TailLossProbe(usize),
    /// The host's own queue was full: the window is reduced without a loss.
    LocalCongestion(usize),
    Reinjection {
        subflow: usize,
        bytes: u64,
    },
    Penalised(usize),
    /// The path takes packets of `mtu` bytes at most.
    PathMtu {
        subflow: usize,
        mtu: u32,
    },
    Fallback(&'static str),
    SubflowReset(usize),
    AddressAdded {
        id: u8,
        address: IpAddr,
    },
    AddressRemoved {
        id: u8,
    },
    PriorityChanged {
        subflow: usize,
        backup: bool,
    },
    PotentiallyFailed(usize),
    /// No packet has room for a DATAGRAM frame with so many bytes.
    DatagramRefused(u32),
    Recovered(usize),
    /// A path of QUIC has another address of the client (RFC 9000 section 9).
    PathMigrated {
        subflow: usize,
        address: SocketAddr,
    },
    /// A path was to move and did not.
    MigrationRefused {
        subflow: usize,
        reason: &'static str,
    },
    Scheduled {
        subflow: usize,
        offset: u64,
        bytes: u32,
    },
}

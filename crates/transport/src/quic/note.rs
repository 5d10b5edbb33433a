//! Notes for a trace about packets that were lost or of no use.

use std::mem::Discriminant;

use polypath_wire::quic::Kind;

use super::crypto::Level;

/// What became of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A packet that this side sent is taken for lost.
    Lost {
        level: Level,
        /// Index of its path.
        path: usize,
        number: u64,
        /// By packets that were acknowledged after it, not by time (RFC 9002 section 6.1).
        overtaken: bool,
        /// It probed for a larger MTU.
        probe: bool,
    },
    /// A packet came and was of no use.
    Dropped {
        /// Number spaces are apart by kind (RFC 9000 section 12.3).
        kind: Discriminant<Kind>,
        /// Id of its path (RFC 10069), as the packet has it.
        path: u64,
        number: u64,
        reason: Discard,
    },
}

/// Why a packet that came is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// It is addressed to no id of this connection, or to a path that was abandoned.
    Unknown,
    /// Of a kind that is not taken.
    Unsupported,
    /// Its keys are not there, or not any more.
    WithoutKeys,
    Duplicate,
    /// Its source id is not the peer's.
    Invalid,
}

//! Outgoing segments, and the addresses of both ends.

use std::net::SocketAddr;

use polypath_wire::tcp::Segment;

/// The two ends of a subflow, this host's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// A segment to be sent on a subflow.
#[derive(Clone, Debug)]
pub struct Transmit {
    pub subflow: usize,
    pub segment: Segment,
    pub purpose: Purpose,
}

/// Why a segment is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// No payload: SYN, ACK, FIN, RST.
    Control,
    #[default]
    Data,
    /// Sent before on the same subflow.
    Retransmission,
    /// Sent before on another subflow.
    Reinjection,
}

impl Purpose {
    /// Not sent before on the same subflow. ECN alone asks: without it, nothing of this belongs on the way of a segment.
    #[cold]
    pub(crate) fn is_first(self) -> bool {
        self != Self::Retransmission
    }
}

/// The ECN field of a packet (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codepoint {
    #[default]
    NotEct,
    Ect0,
    Ect1,
    Ce,
}

impl Codepoint {
    /// By its two bits.
    pub fn of(bits: u8) -> Self {
        match bits & 3 {
            1 => Self::Ect1,
            2 => Self::Ect0,
            3 => Self::Ce,
            _ => Self::NotEct,
        }
    }

    pub fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }
}

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

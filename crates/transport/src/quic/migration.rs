//! What is remembered of a path whose addresses change (RFC 9000 section 9).

use polypath_wire::quic::ConnectionId;

use crate::{Nanos, Tuple};

/// What is remembered of a path's addresses.
#[derive(Debug, Default)]
pub(super) struct Migration {
    /// The last addresses that were validated, while others are being validated.
    pub former: Option<Tuple>,
    /// A challenge to them is to be sent.
    pub former_due: bool,
    /// The id that packets to them had, if others have another one now.
    pub former_id: Option<ConnectionId>,
    /// What the peer addresses its packets to.
    pub destination: Option<ConnectionId>,
    /// Packets sent earlier tell nothing of the path as it is now.
    pub since: Nanos,
}

impl Migration {
    /// The addresses of now are validated.
    pub fn settle(&mut self) {
        self.former = None;
        self.former_due = false;
    }
}

//! The state that remains after the end of a connection (RFC 9000 section 10.2).

use crate::Nanos;

/// What the peer is told. An application's close has no frame type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Close {
    pub error: u64,
    pub frame_type: Option<u64>,
    pub reason: &'static str,
}

/// What a CONNECTION_CLOSE said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The peer closed the connection, not this side.
    pub by_peer: bool,
    pub error: u64,
    pub reason: String,
}

/// After the end of a connection that this side closed.
#[derive(Debug)]
pub(super) struct Closed {
    close: Close,
    /// Until when answers are given, and datagrams that came so far.
    until: Nanos,
    came: u64,
}

impl Closed {
    pub fn new(close: Close, until: Nanos) -> Self {
        Self {
            close,
            until,
            came: 0,
        }
    }

    pub fn until(&self) -> Nanos {
        self.until
    }

    /// A datagram came: what it is answered with. The first, second, fourth and so on have an answer (RFC 9000 section 10.2.1).
    pub fn on_datagram(&mut self, now: Nanos) -> Option<Close> {
        if now >= self.until {
            return None;
        }
        self.came += 1;
        self.came.is_power_of_two().then_some(self.close)
    }
}

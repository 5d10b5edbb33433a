//! An address that the peer is told of (RFC 8684 section 3.4.1).

use crate::Nanos;

/// An announcement whose echo is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingAddAddr {
    pub id: u8,
    pub port: Option<u16>,
    pub repeat_at: Nanos,
    pub repeats: u32,
}

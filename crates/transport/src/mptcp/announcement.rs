//! An address that the peer is told of (RFC 8684 section 3.4.1), and one that it is told is gone (section 3.4.2).

use std::net::IpAddr;

use crate::Nanos;

/// An announcement whose echo is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingAddAddr {
    pub id: u8,
    pub port: Option<u16>,
    pub repeat_at: Nanos,
    pub repeats: u32,
}

/// What waits for a subflow to leave on, of each kind one (Linux `addr_signal`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unsent {
    /// An announcement, and how often it has been sent.
    pub announcement: Option<(u8, Option<u16>, u32)>,
    /// An address of the peer's that it announced.
    pub echo: Option<(u8, IpAddr, Option<u16>)>,
    /// An id that is gone.
    pub removal: Option<u8>,
}

impl Unsent {
    pub fn is_empty(self) -> bool {
        self.announcement.is_none() && self.echo.is_none() && self.removal.is_none()
    }
}

//! Packets and their headers (RFC 9000 section 17).

use super::Frame;

/// A connection id of 0 to 20 bytes (RFC 9000 section 5.1).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; Self::MAX],
}

impl ConnectionId {
    pub const MAX: usize = 20;

    /// An id of these bytes; of the first 20 where there are more.
    pub fn new(bytes: &[u8]) -> Self {
        let len = bytes.len().min(Self::MAX);
        let mut id = Self {
            len: len as u8,
            ..Self::default()
        };
        id.bytes[..len].copy_from_slice(&bytes[..len]);
        id
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl std::fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for byte in self.as_slice() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// What kind of packet, and what only this kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Initial {
        token: Vec<u8>,
    },
    ZeroRtt,
    Handshake,
    /// The only one with a short header.
    OneRtt {
        key_phase: bool,
        spin: bool,
    },
    Retry {
        token: Vec<u8>,
        integrity_tag: [u8; 16],
    },
    /// The versions that the server offers.
    VersionNegotiation(Vec<u32>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    /// Of the long header; 0 in version negotiation.
    pub version: u32,
    pub destination: ConnectionId,
    /// Empty with a short header.
    pub source: ConnectionId,
    /// The packet number; 0 where the kind has none.
    pub number: u64,
    /// Bytes of it on the wire, 1 to 4; 0 where the kind has none.
    pub number_len: u8,
}

/// A packet before protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub header: Header,
    /// The path whose number space it belongs to (RFC 10069); known to both ends by the connection id.
    pub path: u64,
    pub frames: Vec<Frame>,
}

/// A UDP datagram of one packet or several coalesced ones (RFC 9000 section 12.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    pub packets: Vec<Packet>,
}

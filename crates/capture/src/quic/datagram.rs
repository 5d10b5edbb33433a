//! Datagrams of UDP as a file has them, and which of them are of QUIC.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use polypath_wire::quic::{ConnectionId, VERSION, VERSION_2, is_initial};
use polypath_wire::{ip, udp};

use crate::file::Frame;
use crate::layers::{self, Left};
use crate::packet::{Read, Tap};

/// A datagram as it passed a tap.
#[derive(Debug)]
pub struct Datagram {
    pub time_ns: i64,
    pub tap: Tap,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// As far as it was captured.
    pub payload: Vec<u8>,
    pub len: usize,
}

impl Read for Datagram {
    fn parse(frame: &Frame) -> Result<Self, Left> {
        let (header, kept, len) =
            layers::innermost(frame.link, frame.bytes, frame.wire_len, ip::protocol::UDP)?;
        let fields = kept.get(..udp::HEADER_LEN).ok_or(Left::Unreadable)?;
        let port = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
        let told = usize::from(port(4)).min(len);
        let payload = &kept[udp::HEADER_LEN..told.clamp(udp::HEADER_LEN, kept.len())];
        let (source, destination) = header.addresses();
        Ok(Self {
            time_ns: frame.time_ns,
            tap: Tap::default(),
            source: SocketAddr::new(source, port(0)),
            destination: SocketAddr::new(destination, port(2)),
            len: told.saturating_sub(udp::HEADER_LEN),
            payload: payload.to_vec(),
        })
    }

    fn place(self, time_ns: i64, tap: Tap) -> Self {
        Self {
            time_ns,
            tap,
            ..self
        }
    }

    fn time_ns(&self) -> i64 {
        self.time_ns
    }
}

/// Of the first byte: a long header, and the bit that is always set (RFC 9000 section 17).
const LONG: u8 = 0x80;
pub const FIXED: u8 = 0x40;
/// The drafts that were deployed.
const DRAFTS: std::ops::RangeInclusive<u32> = 0xff00_001b..=0xff00_0022;

/// What every version has in a long header (RFC 8999 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    pub destination: ConnectionId,
    pub source: ConnectionId,
    /// Whether it is an Initial packet of version 1 or 2.
    pub initial: bool,
    pub version: u32,
}

impl Datagram {
    /// Whether all of it was captured.
    pub fn is_whole(&self) -> bool {
        self.payload.len() == self.len
    }

    pub fn is_short(&self) -> bool {
        self.payload.first().is_some_and(|first| first & LONG == 0)
    }

    /// Whether it may begin a connection, or a path: with the bit that is always set until both ends agree otherwise.
    pub fn may_begin(&self) -> bool {
        self.payload.first().is_some_and(|first| first & FIXED != 0)
    }

    /// The long header that it begins with, of a version that is known.
    pub fn opening(&self) -> Option<Opening> {
        let (&first, rest) = self.payload.split_first()?;
        if first & LONG == 0 {
            return None;
        }
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let version = u32::from_be_bytes(*version);
        let is_read = [VERSION, VERSION_2].contains(&version);
        if !is_read && !DRAFTS.contains(&version) {
            return None;
        }
        let (destination, rest) = id(rest)?;
        let (source, _) = id(rest)?;
        Some(Opening {
            destination,
            source,
            initial: is_read && is_initial(first, version),
            version,
        })
    }

    /// The same for the same bytes, wherever they were captured: no two packets of QUIC are alike.
    pub fn mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.payload.hash(&mut hasher);
        hasher.finish()
    }
}

fn id(bytes: &[u8]) -> Option<(ConnectionId, &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    let len = usize::from(len);
    if len > ConnectionId::MAX {
        return None;
    }
    let (id, rest) = rest.split_at_checked(len)?;
    Some((ConnectionId::new(id), rest))
}

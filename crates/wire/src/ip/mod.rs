//! The Internet Protocol, versions 4 and 6.

pub mod v4;
pub mod v6;

use std::net::IpAddr;

use crate::{EmitError, ParseError};

/// Protocol numbers (IANA, Assigned Internet Protocol Numbers).
pub mod protocol {
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ICMPV6: u8 = 58;
}

/// The header of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    V4(v4::Header),
    V6(v6::Header),
}

impl Header {
    /// Source and destination address.
    pub fn addresses(&self) -> (IpAddr, IpAddr) {
        match self {
            Self::V4(header) => (header.src.into(), header.dst.into()),
            Self::V6(header) => (header.src.into(), header.dst.into()),
        }
    }

    /// Protocol number of what follows, in IPv6 behind the skipped extension headers.
    pub fn protocol(&self) -> u8 {
        match self {
            Self::V4(header) => header.protocol,
            Self::V6(header) => header.next_header,
        }
    }

    /// The two bits of RFC 3168: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub fn ecn(&self) -> u8 {
        match self {
            Self::V4(header) => header.ecn,
            Self::V6(header) => header.ecn,
        }
    }
}

/// Parses a packet of either version: header and payload.
///
/// # Errors
/// As [`v4::parse`] and [`v6::parse`]; [`ParseError::Version`] for another version.
pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), ParseError> {
    match bytes.first().map(|first| first >> 4) {
        None => Err(ParseError::Truncated {
            what: "IP header",
            needed: 1,
            found: 0,
        }),
        Some(4) => v4::parse(bytes).map(|(header, payload)| (Header::V4(header), payload)),
        Some(6) => v6::parse(bytes).map(|(header, payload)| (Header::V6(header), payload)),
        Some(found) => Err(ParseError::Version { found }),
    }
}

/// Parses what a capture kept of a packet that had `wire_len` bytes: header, payload as far as it is there, the payload's whole length.
///
/// # Errors
/// As [`v4::parse_cut`] and [`v6::parse_cut`]; [`ParseError::Version`] for another version.
pub fn parse_cut(bytes: &[u8], wire_len: usize) -> Result<(Header, &[u8], usize), ParseError> {
    match bytes.first().map_or(0, |first| first >> 4) {
        4 => v4::parse_cut(bytes, wire_len).map(|(it, kept, len)| (Header::V4(it), kept, len)),
        6 => v6::parse_cut(bytes, wire_len).map(|(it, kept, len)| (Header::V6(it), kept, len)),
        found => Err(ParseError::Version { found }),
    }
}

/// Appends the header of a packet with `payload_len` bytes behind it.
///
/// # Errors
/// As [`v4::emit`] and [`v6::emit`].
pub fn emit(header: &Header, payload_len: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
    match header {
        Header::V4(header) => v4::emit(header, payload_len, out),
        Header::V6(header) => v6::emit(header, payload_len, out),
    }
}

/// DSCP and ECN in one byte (RFC 2474 section 3, RFC 3168 section 5).
fn traffic_class(dscp: u8, ecn: u8) -> Result<u8, EmitError> {
    if dscp > 0x3f || ecn > 0x03 {
        return Err(EmitError::Field("DSCP has six bits and ECN two"));
    }
    Ok(dscp << 2 | ecn)
}

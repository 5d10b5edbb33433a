//! Echo request and reply of ICMP (RFC 792) and ICMPv6 (RFC 4443 section 4).

use std::net::IpAddr;

use crate::bytes::u16_at;
use crate::{Checksum, EmitError, ParseError, ip};

/// Length of an echo message's header in bytes.
pub const HEADER_LEN: usize = 8;

const CHECKSUM_AT: usize = 2;

/// An echo message without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    pub reply: bool,
    pub identifier: u16,
    pub sequence: u16,
}

/// The two versions of ICMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V4,
    V6,
}

impl Version {
    /// The version that goes with an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// The protocol number in the IP header.
    pub fn protocol(self) -> u8 {
        match self {
            Self::V4 => ip::protocol::ICMP,
            Self::V6 => ip::protocol::ICMPV6,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::V4 => "ICMP",
            Self::V6 => "ICMPv6",
        }
    }

    /// Types of request and reply.
    fn types(self) -> (u8, u8) {
        match self {
            Self::V4 => (8, 0),
            Self::V6 => (128, 129),
        }
    }
}

/// Parses an echo message: header and data. The checksum is not looked at; see
/// [`verify_checksum`].
///
/// # Errors
/// Too few bytes, or a message that is not an echo request or reply.
pub fn parse(version: Version, bytes: &[u8]) -> Result<(Echo, &[u8]), ParseError> {
    let what = version.name();
    if bytes.len() < HEADER_LEN {
        return Err(ParseError::Truncated {
            what,
            needed: HEADER_LEN,
            found: bytes.len(),
        });
    }
    let (request, reply) = version.types();
    let kind = bytes[0];
    if kind != request && kind != reply {
        return Err(ParseError::Unsupported { what, kind });
    }
    let echo = Echo {
        reply: kind == reply,
        identifier: u16_at(bytes, 4),
        sequence: u16_at(bytes, 6),
    };
    Ok((echo, &bytes[HEADER_LEN..]))
}

/// Appends an echo message with its checksum, ICMP or ICMPv6 as `addresses`, source first, are.
///
/// # Errors
/// Addresses of two IP versions, or more than 65535 bytes. Nothing is appended then.
pub fn emit(
    echo: Echo,
    data: &[u8],
    addresses: (IpAddr, IpAddr),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let version = Version::of(addresses.0);
    let len = HEADER_LEN + data.len();
    if len > usize::from(u16::MAX) {
        return Err(EmitError::TooLong {
            what: "echo message",
            len,
        });
    }
    let mut sum = initial_sum(version, addresses, len)?;
    let (request, reply) = version.types();
    let start = out.len();
    out.extend([if echo.reply { reply } else { request }, 0, 0, 0]);
    out.extend(echo.identifier.to_be_bytes());
    out.extend(echo.sequence.to_be_bytes());
    out.extend_from_slice(data);
    sum.add(&out[start..]);
    let at = start + CHECKSUM_AT;
    out[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    Ok(())
}

/// Whether the checksum of a whole message is right for these addresses.
pub fn verify_checksum(bytes: &[u8], addresses: (IpAddr, IpAddr)) -> bool {
    match initial_sum(Version::of(addresses.0), addresses, bytes.len()) {
        Ok(mut sum) => {
            sum.add(bytes);
            bytes.len() >= HEADER_LEN && sum.finish() == 0
        }
        Err(_) => false,
    }
}

/// ICMPv6 covers a pseudo-header, ICMP does not.
fn initial_sum(
    version: Version,
    addresses: (IpAddr, IpAddr),
    len: usize,
) -> Result<Checksum, EmitError> {
    let pseudo = Checksum::pseudo_header(addresses, version.protocol(), len)?;
    Ok(match version {
        Version::V4 => Checksum::new(),
        Version::V6 => pseudo,
    })
}

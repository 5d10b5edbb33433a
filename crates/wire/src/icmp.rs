//! Messages of ICMP (RFC 792) and ICMPv6 (RFC 4443): echo request, echo reply, and the report of a packet that is too
//! long.
//!
//! The report concerns a packet that does not fit a link (RFC 1191 section 4, RFC 4443 section 3.2).

use std::net::IpAddr;

use crate::bytes::{u16_at, u32_at};
use crate::{Checksum, EmitError, ParseError, ip};

/// Length of a message's header in bytes.
pub const HEADER_LEN: usize = 8;

const CHECKSUM_AT: usize = 2;

/// An echo message without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    pub reply: bool,
    pub identifier: u16,
    pub sequence: u16,
}

/// A message without its data: of an echo what it carries, of an error the beginning of the packet that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    Echo(Echo),
    /// The next link takes packets of `mtu` bytes at most; 0: an old router that does not say (RFC 1191 section 5). ICMP has 16 bits for it.
    TooBig {
        mtu: u32,
    },
}

impl From<Echo> for Message {
    fn from(echo: Echo) -> Self {
        Self::Echo(echo)
    }
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

    /// Type and code of "fragmentation needed and DF set" and of "packet too big".
    fn too_big(self) -> (u8, u8) {
        match self {
            Self::V4 => (3, 4),
            Self::V6 => (2, 0),
        }
    }

    /// Bytes that an error message may take with its IP header (RFC 1812 section 4.3.2.3, RFC 4443 section 2.4).
    pub fn longest_error(self) -> u32 {
        match self {
            Self::V4 => 576,
            Self::V6 => 1280,
        }
    }
}

/// Parses a message: header and data. The checksum is not looked at; see
/// [`verify_checksum`].
///
/// # Errors
/// Too few bytes, or a message of another kind.
pub fn parse(version: Version, bytes: &[u8]) -> Result<(Message, &[u8]), ParseError> {
    let what = version.name();
    if bytes.len() < HEADER_LEN {
        return Err(ParseError::Truncated {
            what,
            needed: HEADER_LEN,
            found: bytes.len(),
        });
    }
    let (request, reply) = version.types();
    let (kind, code) = (bytes[0], bytes[1]);
    let message = if kind == request || kind == reply {
        Message::Echo(Echo {
            reply: kind == reply,
            identifier: u16_at(bytes, 4),
            sequence: u16_at(bytes, 6),
        })
    } else if (kind, code) == version.too_big() || (version, kind) == (Version::V6, 2) {
        // ICMPv6 has the receiver ignore the code.
        Message::TooBig {
            mtu: match version {
                Version::V4 => u16_at(bytes, 6).into(),
                Version::V6 => u32_at(bytes, 4),
            },
        }
    } else {
        return Err(ParseError::Unsupported { what, kind });
    };
    Ok((message, &bytes[HEADER_LEN..]))
}

/// Appends a message with its checksum, ICMP or ICMPv6 as `addresses`, source first, are. An MTU beyond ICMP's 16 bits is written as 65535.
///
/// # Errors
/// Addresses of two IP versions, or more than 65535 bytes. Nothing is appended then.
pub fn emit(
    message: impl Into<Message>,
    data: &[u8],
    addresses: (IpAddr, IpAddr),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let version = Version::of(addresses.0);
    let len = HEADER_LEN + data.len();
    if len > usize::from(u16::MAX) {
        return Err(EmitError::TooLong {
            what: "ICMP message",
            len,
        });
    }
    let mut sum = initial_sum(version, addresses, len)?;
    let start = out.len();
    match message.into() {
        Message::Echo(echo) => {
            let (request, reply) = version.types();
            out.extend([if echo.reply { reply } else { request }, 0, 0, 0]);
            out.extend(echo.identifier.to_be_bytes());
            out.extend(echo.sequence.to_be_bytes());
        }
        Message::TooBig { mtu } => {
            let (kind, code) = version.too_big();
            out.extend([kind, code, 0, 0]);
            let field = match version {
                Version::V4 => mtu.min(u16::MAX.into()),
                Version::V6 => mtu,
            };
            out.extend(field.to_be_bytes());
        }
    }
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

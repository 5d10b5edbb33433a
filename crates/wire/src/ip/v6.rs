//! IPv6 (RFC 8200).

use std::net::Ipv6Addr;

use crate::bytes::{array_at, u16_at, u32_at};
use crate::{EmitError, ParseError};

/// Length of the fixed header in bytes.
pub const HEADER_LEN: usize = 40;

/// The largest flow label, 20 bits.
const MAX_FLOW_LABEL: u32 = 0xf_ffff;

/// Extension headers (RFC 8200 section 4).
mod extension {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const DESTINATION: u8 = 60;
}

/// An IPv6 header without extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub src: Ipv6Addr,
    pub dst: Ipv6Addr,
    /// Protocol of the payload.
    pub next_header: u8,
    pub hop_limit: u8,
    /// Differentiated services codepoint, six bits.
    pub dscp: u8,
    /// Explicit congestion notification, two bits.
    pub ecn: u8,
    /// 20 bits (RFC 6437).
    pub flow_label: u32,
}

/// Parses a packet: header and payload, without what stands behind the payload length.
///
/// Hop-by-hop, routing and destination options and the header of an atomic fragment (RFC 6946)
/// are skipped. Any other extension header, a true fragment's among them, is left in the payload,
/// and `next_header` names it.
///
/// # Errors
/// Too few bytes for a header or the payload, or another version.
pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), ParseError> {
    let truncated = |what, needed| ParseError::Truncated {
        what,
        needed,
        found: bytes.len(),
    };
    if bytes.len() < HEADER_LEN {
        return Err(truncated("IPv6 header", HEADER_LEN));
    }
    if bytes[0] >> 4 != 6 {
        return Err(ParseError::Version {
            found: bytes[0] >> 4,
        });
    }
    let len = HEADER_LEN + usize::from(u16_at(bytes, 4));
    if bytes.len() < len {
        return Err(truncated("IPv6 packet", len));
    }
    let (next_header, payload) = skip_extensions(bytes[6], &bytes[HEADER_LEN..len])?;
    Ok((fields(bytes, next_header), payload))
}

/// Parses what a capture kept of a packet that had `wire_len` bytes: header, payload as far as it is there, the payload's whole length.
/// Extension headers are skipped as [`parse`] does.
///
/// A payload length of 0 is that of a packet which the interface cuts into segments; it has `wire_len` bytes, and so has one whose header tells
/// of more.
///
/// # Errors
/// Headers that are not whole, or another version.
pub fn parse_cut(bytes: &[u8], wire_len: usize) -> Result<(Header, &[u8], usize), ParseError> {
    if bytes.len() < HEADER_LEN {
        return Err(ParseError::Truncated {
            what: "IPv6 header",
            needed: HEADER_LEN,
            found: bytes.len(),
        });
    }
    if bytes[0] >> 4 != 6 {
        return Err(ParseError::Version {
            found: bytes[0] >> 4,
        });
    }
    let len = match usize::from(u16_at(bytes, 4)) {
        0 => wire_len.saturating_sub(HEADER_LEN),
        len => len.min(wire_len.saturating_sub(HEADER_LEN)),
    };
    let kept = &bytes[HEADER_LEN..bytes.len().min(HEADER_LEN + len)];
    let (next_header, payload) = skip_extensions(bytes[6], kept)?;
    let skipped = kept.len() - payload.len();
    Ok((fields(bytes, next_header), payload, len - skipped))
}

/// The fields of a header of at least [`HEADER_LEN`] bytes.
fn fields(bytes: &[u8], next_header: u8) -> Header {
    let first = u32_at(bytes, 0);
    let class = (first >> 20) as u8;
    Header {
        src: array_at::<16>(bytes, 8).into(),
        dst: array_at::<16>(bytes, 24).into(),
        next_header,
        hop_limit: bytes[7],
        dscp: class >> 2,
        ecn: class & 0x03,
        flow_label: first & MAX_FLOW_LABEL,
    }
}

fn skip_extensions(mut next: u8, mut rest: &[u8]) -> Result<(u8, &[u8]), ParseError> {
    loop {
        let needed = match next {
            extension::HOP_BY_HOP | extension::ROUTING | extension::DESTINATION => {
                8 + 8 * usize::from(rest.get(1).copied().unwrap_or(0))
            }
            extension::FRAGMENT if rest.len() >= 8 && u16_at(rest, 2) & 0xfff9 == 0 => 8,
            _ => return Ok((next, rest)),
        };
        if rest.len() < needed {
            return Err(ParseError::Truncated {
                what: "IPv6 extension header",
                needed,
                found: rest.len(),
            });
        }
        next = rest[0];
        rest = &rest[needed..];
    }
}

/// Appends a header, for `payload_len` bytes that the caller appends next.
///
/// # Errors
/// A field above its bits, or more than 65535 bytes. Nothing is appended then.
pub fn emit(header: &Header, payload_len: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let class = super::traffic_class(header.dscp, header.ecn)?;
    if header.flow_label > MAX_FLOW_LABEL {
        return Err(EmitError::Field("IPv6 flow label above 20 bits"));
    }
    let len = u16::try_from(payload_len).map_err(|_| EmitError::TooLong {
        what: "IPv6 payload",
        len: payload_len,
    })?;
    out.extend((6 << 28 | u32::from(class) << 20 | header.flow_label).to_be_bytes());
    out.extend(len.to_be_bytes());
    out.extend([header.next_header, header.hop_limit]);
    out.extend(header.src.octets());
    out.extend(header.dst.octets());
    Ok(())
}

//! IPv4 (RFC 791).

use std::net::Ipv4Addr;

use crate::bytes::{array_at, u16_at};
use crate::{Checksum, EmitError, ParseError};

/// Length of a header without options in bytes.
pub const HEADER_LEN: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const CHECKSUM_AT: usize = 10;

/// An IPv4 header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub src: Ipv4Addr,
    pub dst: Ipv4Addr,
    pub protocol: u8,
    pub ttl: u8,
    /// Differentiated services codepoint, six bits.
    pub dscp: u8,
    /// Explicit congestion notification, two bits.
    pub ecn: u8,
    pub identification: u16,
    pub dont_fragment: bool,
    pub more_fragments: bool,
    /// In units of 8 bytes, 13 bits. The payload of a packet with an offset begins inside the transport's data.
    pub fragment_offset: u16,
}

/// Parses a packet: header and payload, without what stands behind the total length (an Ethernet
/// frame's padding). Options are skipped.
///
/// # Errors
/// Too few bytes, another version, lengths that contradict each other, a wrong header checksum.
pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), ParseError> {
    let truncated = |what, needed| ParseError::Truncated {
        what,
        needed,
        found: bytes.len(),
    };
    if bytes.len() < HEADER_LEN {
        return Err(truncated("IPv4 header", HEADER_LEN));
    }
    if bytes[0] >> 4 != 4 {
        return Err(ParseError::Version {
            found: bytes[0] >> 4,
        });
    }
    let header_len = usize::from(bytes[0] & 0x0f) * 4;
    if header_len < HEADER_LEN {
        return Err(ParseError::Length {
            what: "IPv4 header",
            len: header_len,
        });
    }
    let total_len = usize::from(u16_at(bytes, 2));
    if total_len < header_len {
        return Err(ParseError::Length {
            what: "IPv4 packet",
            len: total_len,
        });
    }
    if bytes.len() < total_len {
        return Err(truncated("IPv4 packet", total_len));
    }
    let (header, payload) = bytes[..total_len].split_at(header_len);
    let mut sum = Checksum::new();
    sum.add(header);
    if sum.finish() != 0 {
        return Err(ParseError::Checksum {
            what: "IPv4 header",
        });
    }
    Ok((fields(header), payload))
}

/// Parses what a capture kept of a packet that had `wire_len` bytes: header, payload as far as it is there, the payload's whole length.
///
/// The checksum is not looked at: hosts leave it to their interface. A total length of 0 is that of a packet which
/// the interface cuts into segments; it has `wire_len` bytes, and so has one whose header tells of more.
///
/// # Errors
/// A header that is not whole, another version, lengths that contradict each other.
pub fn parse_cut(bytes: &[u8], wire_len: usize) -> Result<(Header, &[u8], usize), ParseError> {
    let header_len = bytes
        .first()
        .map_or(0, |first| usize::from(first & 0x0f) * 4);
    if bytes.len() < header_len.max(HEADER_LEN) {
        return Err(ParseError::Truncated {
            what: "IPv4 header",
            needed: header_len.max(HEADER_LEN),
            found: bytes.len(),
        });
    }
    if bytes[0] >> 4 != 4 {
        return Err(ParseError::Version {
            found: bytes[0] >> 4,
        });
    }
    let total_len = match usize::from(u16_at(bytes, 2)) {
        0 => wire_len,
        len => len.min(wire_len),
    };
    if header_len < HEADER_LEN || total_len < header_len {
        return Err(ParseError::Length {
            what: "IPv4 packet",
            len: total_len,
        });
    }
    let payload = &bytes[header_len..total_len.min(bytes.len())];
    Ok((fields(bytes), payload, total_len - header_len))
}

/// The fields of a header of at least [`HEADER_LEN`] bytes.
fn fields(header: &[u8]) -> Header {
    let fragment = u16_at(header, 6);
    Header {
        src: array_at::<4>(header, 12).into(),
        dst: array_at::<4>(header, 16).into(),
        protocol: header[9],
        ttl: header[8],
        dscp: header[1] >> 2,
        ecn: header[1] & 0x03,
        identification: u16_at(header, 4),
        dont_fragment: fragment & DONT_FRAGMENT != 0,
        more_fragments: fragment & MORE_FRAGMENTS != 0,
        fragment_offset: fragment & FRAGMENT_OFFSET,
    }
}

/// Appends a header with its checksum, for `payload_len` bytes that the caller appends next.
///
/// # Errors
/// A field above its bits, or a packet above 65535 bytes. Nothing is appended then.
pub fn emit(header: &Header, payload_len: usize, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let class = super::traffic_class(header.dscp, header.ecn)?;
    if header.fragment_offset > FRAGMENT_OFFSET {
        return Err(EmitError::Field("IPv4 fragment offset above 13 bits"));
    }
    let len = HEADER_LEN + payload_len;
    let total_len = u16::try_from(len).map_err(|_| EmitError::TooLong {
        what: "IPv4 packet",
        len,
    })?;
    let mut fragment = header.fragment_offset;
    if header.dont_fragment {
        fragment |= DONT_FRAGMENT;
    }
    if header.more_fragments {
        fragment |= MORE_FRAGMENTS;
    }
    let start = out.len();
    out.extend([0x45, class]);
    out.extend(total_len.to_be_bytes());
    out.extend(header.identification.to_be_bytes());
    out.extend(fragment.to_be_bytes());
    out.extend([header.ttl, header.protocol, 0, 0]);
    out.extend(header.src.octets());
    out.extend(header.dst.octets());
    let mut sum = Checksum::new();
    sum.add(&out[start..]);
    let at = start + CHECKSUM_AT;
    out[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_packet_has_more_than_was_on_the_wire() {
        let mut packet = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, 6, 0, 0];
        packet.resize(40, 0);
        let len = |wire_len| parse_cut(&packet, wire_len).map(|(_, kept, len)| (kept.len(), len));
        assert_eq!(len(40), Ok((20, 20)));
        assert_eq!(len(60), Ok((20, 40)), "the capture kept a part");
        assert_eq!(len(80), Ok((20, 40)), "the frame was padded");
    }
}

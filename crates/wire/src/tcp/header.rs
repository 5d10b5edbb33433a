//! The TCP header on the wire (RFC 9293 section 3.1).

use std::net::IpAddr;

use super::options;
use super::{Flags, Payload, Segment};
use crate::bytes::{u16_at, u32_at};
use crate::{Checksum, EmitError, ParseError, ip};

/// Length of the header without options in bytes.
pub const MIN_HEADER_LEN: usize = 20;

const CHECKSUM_AT: usize = 16;

/// Length of the header with its options in bytes. Options that do not fit are counted as well;
/// [`emit`] refuses them.
#[inline]
pub fn header_len(segment: &Segment) -> usize {
    MIN_HEADER_LEN + options::options_len(segment)
}

/// Parses a TCP segment: source port, destination port, segment, payload.
///
/// The segment's payload has offset 0: only the receiver knows where it stands in the stream. The
/// urgent pointer and the reserved bits are dropped. The checksum is not looked at; see
/// [`verify_checksum`].
///
/// # Errors
/// A header cut short, a data offset below 5 words, or an option's length below 2 or beyond the
/// header.
pub fn parse(bytes: &[u8]) -> Result<(u16, u16, Segment, &[u8]), ParseError> {
    let truncated = |needed| ParseError::Truncated {
        what: "TCP header",
        needed,
        found: bytes.len(),
    };
    if bytes.len() < MIN_HEADER_LEN {
        return Err(truncated(MIN_HEADER_LEN));
    }
    let header_len = usize::from(bytes[12] >> 4) * 4;
    if header_len < MIN_HEADER_LEN {
        return Err(ParseError::Length {
            what: "TCP header",
            len: header_len,
        });
    }
    if bytes.len() < header_len {
        return Err(truncated(header_len));
    }
    let (header, payload) = bytes.split_at(header_len);
    let mut segment = fields(header, payload.len() as u32);
    options::parse(&header[MIN_HEADER_LEN..], &mut segment)?;
    Ok((u16_at(header, 0), u16_at(header, 2), segment, payload))
}

/// Parses what a capture kept of a segment of `len` bytes: source port, destination port, segment.
///
/// Options are read up to the first that is not whole; the payload's length is what `len` leaves.
///
/// # Errors
/// Less than a header without options, a data offset below 5 words or beyond `len`.
pub fn parse_cut(bytes: &[u8], len: usize) -> Result<(u16, u16, Segment), ParseError> {
    if bytes.len() < MIN_HEADER_LEN {
        return Err(ParseError::Truncated {
            what: "TCP header",
            needed: MIN_HEADER_LEN,
            found: bytes.len(),
        });
    }
    let header_len = usize::from(bytes[12] >> 4) * 4;
    if header_len < MIN_HEADER_LEN || header_len > len {
        return Err(ParseError::Length {
            what: "TCP header",
            len: header_len,
        });
    }
    let mut segment = fields(bytes, (len - header_len) as u32);
    let kept = &bytes[MIN_HEADER_LEN..header_len.min(bytes.len())];
    // What stands before a broken option was read.
    let _ = options::parse(kept, &mut segment);
    Ok((u16_at(bytes, 0), u16_at(bytes, 2), segment))
}

/// The fields of a header of at least [`MIN_HEADER_LEN`] bytes.
fn fields(header: &[u8], payload_len: u32) -> Segment {
    Segment {
        seq: u32_at(header, 4),
        ack: u32_at(header, 8),
        window: u16_at(header, 14),
        flags: Flags::from_bits_retain(u16_at(header, 12) & Flags::all().bits()),
        payload: Payload {
            offset: 0,
            len: payload_len,
        },
        ..Segment::default()
    }
}

/// Appends a segment with its checksum over the pseudo-header of `addresses`, source first.
///
/// The urgent pointer is 0. The acknowledgment number is written whether or not ACK is set.
///
/// # Errors
/// Options that do not fit or have no form, addresses of two IP versions, `payload` of another
/// length than the segment says, or more than 65535 bytes. Nothing is appended then.
pub fn emit(
    segment: &Segment,
    src_port: u16,
    dst_port: u16,
    payload: &[u8],
    addresses: (IpAddr, IpAddr),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    options::check(segment)?;
    if payload.len() != segment.payload.len as usize {
        return Err(EmitError::PayloadLength {
            declared: segment.payload.len as usize,
            given: payload.len(),
        });
    }
    let header_len = header_len(segment);
    let len = header_len + payload.len();
    if len > usize::from(u16::MAX) {
        return Err(EmitError::TooLong {
            what: "TCP segment",
            len,
        });
    }
    let mut sum = Checksum::pseudo_header(addresses, ip::protocol::TCP, len)?;

    let start = out.len();
    out.reserve(len);
    out.extend(src_port.to_be_bytes());
    out.extend(dst_port.to_be_bytes());
    out.extend(segment.seq.to_be_bytes());
    out.extend(segment.ack.to_be_bytes());
    let offset_and_flags =
        (header_len as u16 / 4) << 12 | segment.flags.bits() & Flags::all().bits();
    out.extend(offset_and_flags.to_be_bytes());
    out.extend(segment.window.to_be_bytes());
    out.extend([0; 4]);
    options::emit(segment, out);
    debug_assert_eq!(out.len() - start, header_len);
    out.extend_from_slice(payload);

    sum.add(&out[start..]);
    let at = start + CHECKSUM_AT;
    out[at..at + 2].copy_from_slice(&sum.finish().to_be_bytes());
    Ok(())
}

/// Whether the checksum of a whole segment, header and payload, is right for these addresses.
pub fn verify_checksum(bytes: &[u8], addresses: (IpAddr, IpAddr)) -> bool {
    let Ok(mut sum) = Checksum::pseudo_header(addresses, ip::protocol::TCP, bytes.len()) else {
        return false;
    };
    sum.add(bytes);
    bytes.len() >= MIN_HEADER_LEN && sum.finish() == 0
}

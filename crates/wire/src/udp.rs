//! The User Datagram Protocol (RFC 768).

use std::net::IpAddr;

use crate::bytes::u16_at;
use crate::{Checksum, EmitError, ParseError, ip};

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 8;

const CHECKSUM_AT: usize = 6;

/// Parses a datagram: source port, destination port, payload, without what stands behind its
/// length. The checksum is not looked at; see [`verify_checksum`].
///
/// # Errors
/// Too few bytes for the header or its length, or a length below 8.
pub fn parse(bytes: &[u8]) -> Result<(u16, u16, &[u8]), ParseError> {
    let len = datagram_len(bytes)?;
    Ok((u16_at(bytes, 0), u16_at(bytes, 2), &bytes[HEADER_LEN..len]))
}

fn datagram_len(bytes: &[u8]) -> Result<usize, ParseError> {
    let truncated = |what, needed| ParseError::Truncated {
        what,
        needed,
        found: bytes.len(),
    };
    if bytes.len() < HEADER_LEN {
        return Err(truncated("UDP header", HEADER_LEN));
    }
    let len = usize::from(u16_at(bytes, 4));
    if len < HEADER_LEN {
        return Err(ParseError::Length {
            what: "UDP datagram",
            len,
        });
    }
    if bytes.len() < len {
        return Err(truncated("UDP datagram", len));
    }
    Ok(len)
}

/// Appends a datagram with its checksum over the pseudo-header of `addresses`, source first.
///
/// # Errors
/// Addresses of two IP versions, or more than 65535 bytes. Nothing is appended then.
pub fn emit(
    src_port: u16,
    dst_port: u16,
    payload: &[u8],
    addresses: (IpAddr, IpAddr),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let len = HEADER_LEN + payload.len();
    let length = u16::try_from(len).map_err(|_| EmitError::TooLong {
        what: "UDP datagram",
        len,
    })?;
    let mut sum = Checksum::pseudo_header(addresses, ip::protocol::UDP, len)?;
    let start = out.len();
    out.extend(src_port.to_be_bytes());
    out.extend(dst_port.to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend([0; 2]);
    out.extend_from_slice(payload);
    sum.add(&out[start..]);
    // A sum of zero is sent as all ones; zero on the wire means no checksum.
    let checksum = match sum.finish() {
        0 => 0xffff,
        checksum => checksum,
    };
    let at = start + CHECKSUM_AT;
    out[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// Whether a datagram's checksum is right for these addresses, or absent over IPv4.
pub fn verify_checksum(bytes: &[u8], addresses: (IpAddr, IpAddr)) -> bool {
    let Ok(len) = datagram_len(bytes) else {
        return false;
    };
    let Ok(mut sum) = Checksum::pseudo_header(addresses, ip::protocol::UDP, len) else {
        return false;
    };
    if u16_at(bytes, CHECKSUM_AT) == 0 {
        return addresses.0.is_ipv4();
    }
    sum.add(&bytes[..len]);
    sum.finish() == 0
}

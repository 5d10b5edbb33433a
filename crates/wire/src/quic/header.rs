//! Headers as bytes before protection (RFC 9000 section 17).

use super::frame_emit::write_connection_id;
use super::varint::write_varint_of;
use super::{ConnectionId, Header, Kind, MAX_VARINT, TAG_LEN, varint_len};
use crate::EmitError;

/// Bits of the first byte.
pub(super) mod first {
    pub const LONG: u8 = 0x80;
    pub const FIXED: u8 = 0x40;
    /// Of a long header.
    pub const TYPE: u8 = 0x30;
    pub const TYPE_SHIFT: u32 = 4;
    pub const LONG_RESERVED: u8 = 0x0c;
    pub const SPIN: u8 = 0x20;
    pub const SHORT_RESERVED: u8 = 0x18;
    pub const KEY_PHASE: u8 = 0x04;
    pub const NUMBER_LEN: u8 = 0x03;
}

/// Packet types of a long header (section 17.2, table 5).
pub(super) mod long {
    pub const INITIAL: u8 = 0;
    pub const ZERO_RTT: u8 = 1;
    pub const HANDSHAKE: u8 = 2;
    pub const RETRY: u8 = 3;

    /// Of the first byte. In version 2 each is one more, and Retry is 0 (RFC 9369 section 3.2).
    pub fn kind(first: u8, version: u32) -> u8 {
        let told = (first & super::first::TYPE) >> super::first::TYPE_SHIFT;
        match version {
            super::super::VERSION_2 => told.wrapping_sub(1) & RETRY,
            _ => told,
        }
    }
}

/// Whether this is the first byte of an Initial packet of a version.
pub fn is_initial(first: u8, version: u32) -> bool {
    first & first::LONG != 0 && long::kind(first, version) == long::INITIAL
}

impl Kind {
    /// Whether it has a packet number and the tag of packet protection.
    pub fn is_protected(&self) -> bool {
        !matches!(self, Self::Retry { .. } | Self::VersionNegotiation(_))
    }

    /// Whether it has a long header.
    pub fn is_long(&self) -> bool {
        !matches!(self, Self::OneRtt { .. })
    }
}

impl Header {
    /// Bytes before the frames, of which there are `payload_len` bytes; the whole packet where the kind has no frames.
    ///
    /// The Length field of a long header has two bytes, whatever its value, so that the size of a packet under construction does
    /// not jump; four if the payload does not fit two.
    #[inline]
    pub fn len(&self, payload_len: u32) -> u32 {
        let number = u32::from(self.number_len);
        let own = match &self.kind {
            Kind::OneRtt { .. } => return 1 + self.destination.len() as u32 + number,
            Kind::Initial { token } => {
                let token = token.len() as u32;
                varint_len(u64::from(token)) + token + self.length_len(payload_len) + number
            }
            Kind::ZeroRtt | Kind::Handshake => self.length_len(payload_len) + number,
            Kind::Retry {
                token,
                integrity_tag,
            } => (token.len() + integrity_tag.len()) as u32,
            Kind::VersionNegotiation(versions) => 4 * versions.len() as u32,
        };
        1 + 4 + 1 + self.destination.len() as u32 + 1 + self.source.len() as u32 + own
    }

    /// The value of the Length field: packet number, frames and tag.
    fn length(&self, payload_len: u32) -> u64 {
        u64::from(self.number_len) + u64::from(payload_len) + u64::from(TAG_LEN)
    }

    fn length_len(&self, payload_len: u32) -> u32 {
        varint_len(self.length(payload_len)).max(2)
    }

    /// Appends the header of a packet with so many bytes of frames. Returns where in the packet its number begins; its end where
    /// the kind has none.
    ///
    /// A short header has no version and no source; the version is not looked at. Number and frames of a protected packet must
    /// be 4 bytes or more together, or else there is no sample for header protection (RFC 9001 section 5.4.2): the endpoint adds
    /// PADDING.
    pub fn encode(&self, payload_len: u32, out: &mut Vec<u8>) -> Result<usize, EmitError> {
        let start = out.len();
        self.encode_at(start, payload_len, out)
            .inspect_err(|_| out.truncate(start))
    }

    fn encode_at(
        &self,
        start: usize,
        payload_len: u32,
        out: &mut Vec<u8>,
    ) -> Result<usize, EmitError> {
        self.check(payload_len)?;
        let number_bits = self.number_len.wrapping_sub(1) & first::NUMBER_LEN;
        let long_type = match &self.kind {
            Kind::OneRtt { key_phase, spin } => {
                let spin = if *spin { first::SPIN } else { 0 };
                let key_phase = if *key_phase { first::KEY_PHASE } else { 0 };
                out.push(first::FIXED | spin | key_phase | number_bits);
                out.extend_from_slice(self.destination.as_slice());
                return Ok(self.encode_number(start, out));
            }
            Kind::Initial { .. } => long::INITIAL,
            Kind::ZeroRtt => long::ZERO_RTT,
            Kind::Handshake => long::HANDSHAKE,
            Kind::Retry { .. } => long::RETRY,
            // Section 17.2.1: the other bits mean nothing, and the fixed bit helps a demultiplexer.
            Kind::VersionNegotiation(_) => 0,
        };
        let number_bits = if self.kind.is_protected() {
            number_bits
        } else {
            0
        };
        out.push(first::LONG | first::FIXED | long_type << first::TYPE_SHIFT | number_bits);
        out.extend(self.version.to_be_bytes());
        write_connection_id(&self.destination, out);
        write_connection_id(&self.source, out);
        match &self.kind {
            Kind::Retry {
                token,
                integrity_tag,
            } => {
                out.extend_from_slice(token);
                out.extend_from_slice(integrity_tag);
                return Ok(out.len() - start);
            }
            Kind::VersionNegotiation(versions) => {
                out.extend(versions.iter().flat_map(|version| version.to_be_bytes()));
                return Ok(out.len() - start);
            }
            Kind::Initial { token } => {
                let len = token.len() as u64;
                write_varint_of(varint_len(len), len, out)?;
                out.extend_from_slice(token);
            }
            Kind::ZeroRtt | Kind::Handshake | Kind::OneRtt { .. } => {}
        }
        write_varint_of(self.length_len(payload_len), self.length(payload_len), out)?;
        Ok(self.encode_number(start, out))
    }

    fn encode_number(&self, start: usize, out: &mut Vec<u8>) -> usize {
        let offset = out.len() - start;
        let bytes = self.number.to_be_bytes();
        out.extend_from_slice(&bytes[bytes.len() - usize::from(self.number_len)..]);
        offset
    }

    fn check(&self, payload_len: u32) -> Result<(), EmitError> {
        let fault = if self.kind.is_protected() {
            if !(1..=4).contains(&self.number_len) {
                Some("a packet number of other than 1 to 4 bytes")
            } else if self.number > MAX_VARINT {
                Some("a packet number above 2^62-1")
            } else if self.kind.is_long() && self.version == 0 {
                Some("version 0 is of version negotiation")
            } else if !self.kind.is_long() && !self.source.is_empty() {
                Some("a short header with a source connection id")
            } else {
                None
            }
        } else if payload_len > 0 {
            Some("frames in a packet of a kind without frames")
        } else if self.number_len > 0 || self.number > 0 {
            Some("a packet number in a packet of a kind without one")
        } else {
            let negotiation = matches!(self.kind, Kind::VersionNegotiation(_));
            let retry_without_token =
                matches!(&self.kind, Kind::Retry { token, .. } if token.is_empty());
            if negotiation != (self.version == 0) {
                Some("version 0 is of version negotiation")
            } else if retry_without_token {
                Some("Retry without a token")
            } else {
                None
            }
        };
        fault.map_or(Ok(()), |fault| Err(EmitError::Field(fault)))
    }
}

/// The bytes that the integrity tag of a Retry packet authenticates (RFC 9001 section 5.8).
///
/// `untagged` is the packet as received or emitted, without its last 16 bytes. Unused bits of its first byte count.
pub fn retry_pseudo_packet(original_destination: &ConnectionId, untagged: &[u8]) -> Vec<u8> {
    let mut pseudo = Vec::with_capacity(1 + original_destination.len() + untagged.len());
    write_connection_id(original_destination, &mut pseudo);
    pseudo.extend_from_slice(untagged);
    pseudo
}

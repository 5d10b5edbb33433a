//! A datagram cut into its packets, which are still protected (RFC 9000 sections 12.2 and 17).

use std::ops::Range;

use super::header::{first, long};
use super::varint::Reader;
use super::{ConnectionId, Header, Kind, TAG_LEN, VERSION, VERSION_2, decode_number};
use crate::bytes::u32_at;

/// What of a packet can be read before header protection is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// `key_phase` of a short header is still protected, and false.
    pub kind: Kind,
    /// Of the long header; 0 with a short header.
    pub version: u32,
    pub destination: ConnectionId,
    /// Empty with a short header.
    pub source: ConnectionId,
    /// Where in the packet its number begins; its end where the kind has none.
    pub number_offset: usize,
    /// Where in the datagram the packet is.
    pub range: Range<usize>,
}

impl Protected {
    /// The header and where in the packet its frames begin, from the packet after header protection is removed.
    ///
    /// `largest` is the largest packet number received in the number space. The reserved bits are for [`reserved_bits_clear`].
    /// `packet` must have the length of `range`.
    pub fn header(&self, packet: &[u8], largest: Option<u64>) -> (Header, usize) {
        let mut header = Header {
            kind: self.kind.clone(),
            version: self.version,
            destination: self.destination,
            source: self.source,
            number: 0,
            number_len: 0,
        };
        if !self.kind.is_protected() {
            return (header, self.number_offset);
        }
        if let Kind::OneRtt { key_phase, .. } = &mut header.kind {
            *key_phase = packet[0] & first::KEY_PHASE != 0;
        }
        header.number_len = (packet[0] & first::NUMBER_LEN) + 1;
        let end = self.number_offset + usize::from(header.number_len);
        let truncated = packet[self.number_offset..end]
            .iter()
            .fold(0, |number, &byte| number << 8 | u64::from(byte));
        header.number = decode_number(largest, truncated, 8 * u32::from(header.number_len));
        (header, end)
    }
}

/// Whether the reserved bits are zero in the first byte of a protected packet.
///
/// Anything else is a PROTOCOL_VIOLATION, to be reported only after packet protection is removed too (RFC 9000 section 17.2).
pub fn reserved_bits_clear(first_byte: u8) -> bool {
    let reserved = if first_byte & first::LONG != 0 {
        first::LONG_RESERVED
    } else {
        first::SHORT_RESERVED
    };
    first_byte & reserved == 0
}

/// Why a packet is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("the datagram ends within the packet")]
    Truncated,
    /// RFC 9001 section 5.4.2.
    #[error("the packet is too short for a sample of header protection")]
    NoSample,
    #[error("the fixed bit is zero")]
    FixedBit,
    #[error("a connection id of {0} bytes")]
    ConnectionIdLength(u8),
    /// A server answers with version negotiation (RFC 9000 section 6.1).
    #[error("version {version:#x}")]
    Version {
        version: u32,
        destination: ConnectionId,
        r#source: ConnectionId,
    },
    #[error("version negotiation with a list of {0} bytes")]
    VersionList(usize),
    /// RFC 9000 section 17.2.5.2.
    #[error("Retry without a token")]
    EmptyRetryToken,
}

/// The packets of a datagram. Own connection ids have `short_dcid_len` bytes; a short header does not say it.
///
/// A packet with another destination than the first is left out (RFC 9000 section 12.2).
pub fn split(datagram: &[u8], short_dcid_len: usize) -> Packets<'_> {
    Packets {
        datagram,
        at: 0,
        short_dcid_len,
        destination: None,
        versions: &[VERSION],
    }
}

/// As [`split`], for an observer of others' packets, who knows version 2 as well (RFC 9369).
pub fn split_seen(datagram: &[u8], short_dcid_len: usize) -> Packets<'_> {
    Packets {
        versions: &[VERSION, VERSION_2],
        ..split(datagram, short_dcid_len)
    }
}

/// See [`split`]. An error is of one packet; those after it follow if its length is known.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    datagram: &'a [u8],
    at: usize,
    short_dcid_len: usize,
    destination: Option<ConnectionId>,
    /// That are known.
    versions: &'static [u32],
}

impl Iterator for Packets<'_> {
    type Item = Result<Protected, HeaderError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.datagram.len() {
            let start = self.at;
            // Until the length is known, the packet reaches to the end.
            self.at = self.datagram.len();
            let protected = match self.packet(start) {
                Ok(protected) => protected,
                Err(error) => return Some(Err(error)),
            };
            self.at = protected.range.end;
            let destination = *self.destination.get_or_insert(protected.destination);
            if destination != protected.destination {
                continue;
            }
            // Section 5.4.2 of RFC 9001: the sample follows the longest packet number, and is as long as the tag.
            let sampled = protected.number_offset + 4 + TAG_LEN as usize;
            if protected.kind.is_protected() && protected.range.len() < sampled {
                return Some(Err(HeaderError::NoSample));
            }
            return Some(Ok(protected));
        }
        None
    }
}

impl Packets<'_> {
    fn packet(&self, start: usize) -> Result<Protected, HeaderError> {
        let bytes = &self.datagram[start..];
        let mut reader = Reader::new(bytes);
        let first = reader.u8().ok_or(HeaderError::Truncated)?;
        if first & first::LONG == 0 {
            return self.short(first, reader, start);
        }
        let version = u32::from_be_bytes(reader.array().ok_or(HeaderError::Truncated)?);
        let destination = connection_id(&mut reader)?;
        let source = connection_id(&mut reader)?;
        let end_of_datagram = start + bytes.len();
        let protected = |kind, number_offset, end| Protected {
            kind,
            version,
            destination,
            source,
            number_offset,
            range: start..end,
        };
        if version == 0 {
            let kind = Kind::VersionNegotiation(versions(reader.rest())?);
            return Ok(protected(kind, bytes.len(), end_of_datagram));
        }
        if !self.versions.contains(&version) {
            return Err(HeaderError::Version {
                version,
                destination,
                source,
            });
        }
        if first & first::FIXED == 0 {
            return Err(HeaderError::FixedBit);
        }
        let kind = match long::kind(first, version) {
            long::INITIAL => Kind::Initial {
                token: reader
                    .varint()
                    .and_then(|len| reader.take(len))
                    .ok_or(HeaderError::Truncated)?
                    .to_vec(),
            },
            long::ZERO_RTT => Kind::ZeroRtt,
            long::HANDSHAKE => Kind::Handshake,
            _ => {
                let (token, integrity_tag) = reader
                    .rest()
                    .split_last_chunk()
                    .ok_or(HeaderError::Truncated)?;
                if token.is_empty() {
                    return Err(HeaderError::EmptyRetryToken);
                }
                let kind = Kind::Retry {
                    token: token.to_vec(),
                    integrity_tag: *integrity_tag,
                };
                return Ok(protected(kind, bytes.len(), end_of_datagram));
            }
        };
        let len = reader.varint().ok_or(HeaderError::Truncated)?;
        let number_offset = bytes.len() - reader.remaining();
        let rest = reader.take(len).ok_or(HeaderError::Truncated)?;
        Ok(protected(
            kind,
            number_offset,
            start + number_offset + rest.len(),
        ))
    }

    /// Section 17.3.1: it reaches to the end of the datagram.
    fn short(
        &self,
        first: u8,
        mut reader: Reader<'_>,
        start: usize,
    ) -> Result<Protected, HeaderError> {
        if first & first::FIXED == 0 {
            return Err(HeaderError::FixedBit);
        }
        let id = reader
            .take(self.short_dcid_len as u64)
            .ok_or(HeaderError::Truncated)?;
        Ok(Protected {
            kind: Kind::OneRtt {
                key_phase: false,
                spin: first & first::SPIN != 0,
            },
            version: 0,
            destination: ConnectionId::new(id),
            source: ConnectionId::default(),
            number_offset: 1 + id.len(),
            range: start..self.datagram.len(),
        })
    }
}

/// An id of the long header of version 1 (section 17.2); other versions may have longer ones, which are refused too.
fn connection_id(reader: &mut Reader<'_>) -> Result<ConnectionId, HeaderError> {
    let len = reader.u8().ok_or(HeaderError::Truncated)?;
    if usize::from(len) > ConnectionId::MAX {
        return Err(HeaderError::ConnectionIdLength(len));
    }
    let id = reader.take(len.into()).ok_or(HeaderError::Truncated)?;
    Ok(ConnectionId::new(id))
}

fn versions(list: &[u8]) -> Result<Vec<u32>, HeaderError> {
    let versions = list.chunks_exact(4);
    if !versions.remainder().is_empty() {
        return Err(HeaderError::VersionList(list.len()));
    }
    Ok(versions.map(|version| u32_at(version, 0)).collect())
}

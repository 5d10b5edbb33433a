//! TLS messages from the CRYPTO frames of a trace (RFC 8446 section 4).

use std::collections::BTreeMap;

use polypath_wire::quic::{Frame, Kind};

use super::Sighting;
use crate::end::Side;

/// A handshake message: its type and its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Message {
    pub const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub const CERTIFICATE: u8 = 11;

    /// An extension of EncryptedExtensions, whose body is a list of them and its length (RFC 8446 section 4.3.1).
    pub fn extension(&self, kind: u16) -> Option<&[u8]> {
        let mut rest = self.body.get(2..)?;
        while let [a, b, c, d, after @ ..] = rest {
            let len = u16::from_be_bytes([*c, *d]).into();
            let (data, next) = after.split_at_checked(len)?;
            if u16::from_be_bytes([*a, *b]) == kind {
                return Some(data);
            }
            rest = next;
        }
        None
    }
}

/// The messages of a side, in order, as far as their bytes were seen.
pub fn messages(trace: &[Sighting], from: Side) -> Vec<Message> {
    let mut streams: [BTreeMap<u64, &[u8]>; 3] = Default::default();
    let packets = trace.iter().filter(|seen| seen.from == from);
    for packet in packets.flat_map(|seen| &seen.packets) {
        let level = match packet.header.kind {
            Kind::Initial { .. } => 0,
            Kind::Handshake => 1,
            _ => 2,
        };
        for frame in &packet.frames {
            if let Frame::Crypto { offset, data } = frame {
                let known = streams[level].entry(*offset).or_default();
                if data.len() > known.len() {
                    *known = data;
                }
            }
        }
    }
    streams
        .iter()
        .flat_map(|pieces| cut(&joined(pieces)))
        .collect()
}

/// The bytes from the beginning up to the first hole.
fn joined(pieces: &BTreeMap<u64, &[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (&offset, piece) in pieces {
        let Some(known) = (bytes.len() as u64).checked_sub(offset) else {
            break;
        };
        bytes.extend(piece.get(known as usize..).unwrap_or_default());
    }
    bytes
}

fn cut(mut bytes: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    while let [kind, a, b, c, rest @ ..] = bytes {
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some((body, rest)) = rest.split_at_checked(len) else {
            break;
        };
        messages.push(Message {
            kind: *kind,
            body: body.to_vec(),
        });
        bytes = rest;
    }
    messages
}

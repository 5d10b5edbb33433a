//! A server's answers before it has a connection: Retry, Version Negotiation, and the end of what is refused (RFC 9000
//! sections 6.1, 8.1.2 and 8.1.3).
//!
//! A listener keeps no state of a client. The state that it needs when the client returns is in the token, under a key
//! of its own.

use std::net::IpAddr;

use polypath_wire::quic::{
    ConnectionId, Datagram, Frame, Header, HeaderError, Kind, Packet, TransportError, VERSION,
    encode_frame, split,
};
use ring::hmac;
use rustls::Side;

use super::crypto::{Sealer, initial_keys, retry_tag};
use super::datagram_size::LEAST_DATAGRAM;
use super::id;
use super::reset::ResetKey;
use crate::{Nanos, SECOND, Tuple};

/// A client returns within so long: then it gives up, too.
const LIFETIME: Nanos = 30 * SECOND;
/// Bytes of a token's seal.
const SEAL: usize = 16;

/// Makes connections of clients' first packets.
pub struct Listener {
    retry: bool,
    key: hmac::Key,
    reset_key: Option<ResetKey>,
    intermediates: usize,
}

/// What a connection is accepted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// What the client's very first packet was addressed to.
    pub original_destination: ConnectionId,
    /// The id that a Retry gave, to which the client addresses its packets since. Its address is validated.
    pub retry_source: Option<ConnectionId>,
    /// What the tokens of its ids are made of, where the listener sends stateless resets.
    pub reset_key: Option<ResetKey>,
    /// Certificates that follow the server's own.
    pub intermediates: usize,
}

/// What becomes of a packet that belongs to no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// A connection is to be made of it, and the packet handed to that.
    Accept(Admission),
    /// This goes back where it came from.
    Answer(Datagram),
    Ignore,
}

/// What a packet says that is not protected.
struct First<'a> {
    kind: Option<&'a Kind>,
    version: u32,
    destination: ConnectionId,
    source: ConnectionId,
}

impl Listener {
    /// `retry`: every client shows first that it receives at its address. Listeners of one `seed` know each other's tokens.
    pub fn new(retry: bool, seed: u64) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &seed.to_be_bytes());
        Self {
            retry,
            key,
            reset_key: None,
            intermediates: 0,
        }
    }

    /// Ends connections that are not known any more. Listeners of one key do so for each other's.
    pub fn resetting(self, key: ResetKey) -> Self {
        Self {
            reset_key: Some(key),
            ..self
        }
    }

    /// The server's certificate is followed by so many others, as in a chain up to a root: they count against what a server may send before
    /// the client's address is validated (RFC 9000 section 8.1).
    pub fn with_intermediates(self, intermediates: usize) -> Self {
        Self {
            intermediates,
            ..self
        }
    }

    /// What goes back for a datagram that is for no connection and begins none.
    pub fn reset(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        self.reset_key?.answer(datagram)
    }

    /// A datagram of `len` bytes came from `tuple.remote` that is for no connection.
    pub fn greet(&self, tuple: Tuple, datagram: &Datagram, len: u32, now: Nanos) -> Greeting {
        let Some(packet) = datagram.packets.first() else {
            return Greeting::Ignore;
        };
        let header = &packet.header;
        let first = First {
            kind: Some(&header.kind),
            version: header.version,
            destination: header.destination,
            source: header.source,
        };
        self.answer(tuple, &first, len, now)
    }

    /// As [`Listener::greet`], of a datagram as it came.
    pub fn greet_bytes(&self, tuple: Tuple, datagram: &[u8], now: Nanos) -> Greeting {
        let len = datagram.len() as u32;
        match split(datagram, id::LEN).next() {
            Some(Ok(protected)) => {
                let first = First {
                    kind: Some(&protected.kind),
                    version: protected.version,
                    destination: protected.destination,
                    source: protected.source,
                };
                self.answer(tuple, &first, len, now)
            }
            Some(Err(HeaderError::Version {
                version,
                destination,
                source,
            })) => {
                let first = First {
                    kind: None,
                    version,
                    destination,
                    source,
                };
                self.answer(tuple, &first, len, now)
            }
            _ => Greeting::Ignore,
        }
    }

    fn answer(&self, tuple: Tuple, first: &First<'_>, len: u32, now: Nanos) -> Greeting {
        // RFC 9000 sections 6.1 and 14.1.
        if len < LEAST_DATAGRAM {
            return Greeting::Ignore;
        }
        let short = matches!(first.kind, Some(Kind::OneRtt { .. }));
        let negotiation = matches!(first.kind, Some(Kind::VersionNegotiation(_)));
        if first.version != VERSION && !short && !negotiation {
            return Greeting::Answer(negotiate(first));
        }
        let Some(Kind::Initial { token }) = first.kind else {
            return Greeting::Ignore;
        };
        if first.destination.len() < id::LEN {
            // Section 7.2.
            return Greeting::Ignore;
        }
        match self.open(token) {
            Some(Token { place, at, .. }) if place != tuple_bytes(tuple) || now > at + LIFETIME => {
                Greeting::Answer(refusal(first))
            }
            Some(Token { original, .. }) => Greeting::Accept(Admission {
                original_destination: original,
                retry_source: Some(first.destination),
                reset_key: self.reset_key,
                intermediates: self.intermediates,
            }),
            None if self.retry => Greeting::Answer(self.ask_again(tuple, first, now)),
            None => Greeting::Accept(Admission {
                original_destination: first.destination,
                retry_source: None,
                reset_key: self.reset_key,
                intermediates: self.intermediates,
            }),
        }
    }

    /// A Retry (RFC 9000 section 17.2.5).
    fn ask_again(&self, tuple: Tuple, first: &First<'_>, now: Nanos) -> Datagram {
        let mut token = Vec::new();
        token.extend(now.to_be_bytes());
        token.push(first.destination.len() as u8);
        token.extend(first.destination.as_slice());
        token.extend(tuple_bytes(tuple));
        let seal = hmac::sign(&self.key, &token);
        let (seal, rest) = seal.as_ref().split_at(SEAL);
        // The id that the client is to use is drawn by the seal, too.
        let source = ConnectionId::new(&rest[..id::LEN]);
        token.extend(seal);
        let mut header = unnumbered(
            Kind::Retry {
                token,
                integrity_tag: [0; 16],
            },
            VERSION,
            first,
        );
        header.source = source;
        let mut untagged = Vec::new();
        header
            .encode(0, &mut untagged)
            .expect("a token and no number");
        untagged.truncate(untagged.len() - 16);
        if let Kind::Retry { integrity_tag, .. } = &mut header.kind {
            *integrity_tag = retry_tag(&first.destination, &untagged);
        }
        alone(header, Vec::new())
    }

    /// What a token of this listener says; nothing of any other.
    fn open(&self, token: &[u8]) -> Option<Token> {
        let (content, seal) = token.split_at_checked(token.len().checked_sub(SEAL)?)?;
        let own = hmac::sign(&self.key, content);
        if own.as_ref()[..SEAL] != *seal {
            return None;
        }
        let (at, rest) = content.split_first_chunk()?;
        let (len, rest) = rest.split_first()?;
        let (original, place) = rest.split_at_checked(usize::from(*len))?;
        Some(Token {
            at: Nanos::from_be_bytes(*at),
            original: ConnectionId::new(original),
            place: place.to_vec(),
        })
    }
}

struct Token {
    at: Nanos,
    original: ConnectionId,
    place: Vec<u8>,
}

/// The client's address and port.
fn tuple_bytes(tuple: Tuple) -> Vec<u8> {
    let mut bytes = match tuple.remote.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    bytes.extend(tuple.remote.port().to_be_bytes());
    bytes
}

/// The header of a packet without a number that answers another.
fn unnumbered(kind: Kind, version: u32, first: &First<'_>) -> Header {
    Header {
        kind,
        version,
        destination: first.source,
        source: first.destination,
        number: 0,
        number_len: 0,
    }
}

fn alone(header: Header, frames: Vec<Frame>) -> Datagram {
    Datagram {
        packets: vec![Packet {
            header,
            path: 0,
            frames,
        }],
    }
}

/// RFC 9000 section 6.1: the client's ids return.
fn negotiate(first: &First<'_>) -> Datagram {
    let kind = Kind::VersionNegotiation(vec![VERSION]);
    alone(unnumbered(kind, 0, first), Vec::new())
}

/// The token is not, or no longer, one of this client's (RFC 9000 section 8.1.3).
fn refusal(first: &First<'_>) -> Datagram {
    let kind = Kind::Initial { token: Vec::new() };
    let header = Header {
        number_len: 1,
        ..unnumbered(kind, VERSION, first)
    };
    let close = Frame::ConnectionClose {
        error: TransportError::INVALID_TOKEN.0,
        frame_type: Some(0),
        reason: b"the token of a Retry".to_vec(),
    };
    alone(header, vec![close])
}

/// An answer as it is on the wire.
///
/// # Panics
/// A listener did not make it.
pub fn answer_bytes(answer: &Datagram) -> Vec<u8> {
    const MADE: &str = "a listener makes only packets that can be sent";
    let mut bytes = Vec::new();
    for packet in &answer.packets {
        let start = bytes.len();
        let header = &packet.header;
        let number_offset = header.encode(packet.payload_len(), &mut bytes).expect(MADE);
        for frame in &packet.frames {
            encode_frame(frame, &mut |_, _| {}, &mut bytes).expect(MADE);
        }
        if header.kind.is_protected() {
            // The client's destination is this one's source.
            let keys = initial_keys(&header.source, Side::Server);
            Sealer::new(&keys.local).seal(&mut bytes, start, number_offset, header.number);
        }
    }
    bytes
}

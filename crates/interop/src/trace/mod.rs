//! The packets on the wire, in clear: captured datagrams and a key log, dissected as a network analyser does it. The
//! endpoints play no part.

mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use polypath_capture::quic_keys::{Keys, Level, initial_secrets};
use polypath_transport::Nanos;
use polypath_transport::quic::Codepoint;
use polypath_wire::quic::{ConnectionId, Frame, Frames, Kind, Packet, Protected, VERSION, split};

pub use messages::{Message, messages};
pub use polypath_capture::quic_keys::KeyLog;

use crate::end::Side;
use crate::world::Captured;

/// Every endpoint here has ids of so many bytes.
const ID_LEN: usize = 8;

/// A datagram and the packets of it that could be opened.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub at: Nanos,
    pub from: Side,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub ecn: Codepoint,
    /// UDP payload bytes.
    pub len: usize,
    pub packets: Vec<Packet>,
}

impl Sighting {
    pub fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.packets.iter().flat_map(|packet| &packet.frames)
    }
}

/// What opens the packets of a connection.
pub struct Secrets {
    /// Of this connection alone.
    log: KeyLog,
    /// Destinations of the client's Initial packets, of which their keys are made: of the first, and of the first after a Retry (RFC 9001
    /// section 5.2). Others are among them.
    initial: BTreeSet<ConnectionId>,
}

impl Secrets {
    /// `at_client`: what the client's interface saw, where none of its packets is altered yet.
    pub fn new(log: KeyLog, at_client: &[Captured]) -> Self {
        let sent = at_client.iter().filter(|seen| seen.from == Side::Client);
        let packets = sent.flat_map(|seen| split(&seen.bytes, ID_LEN).flatten());
        let initial = packets.filter(|it| matches!(it.kind, Kind::Initial { .. }));
        Self {
            log,
            initial: initial.map(|packet| packet.destination).collect(),
        }
    }

    fn of(&self, level: Level, side: Side) -> Vec<Keys> {
        let side = side as usize;
        let known: Vec<Vec<u8>> = match level {
            Level::Initial => {
                let secrets = self.initial.iter().map(|id| initial_secrets(id, VERSION));
                secrets
                    .map(|[client, server]| [client, server][side].clone())
                    .collect()
            }
            _ => {
                let random = self.log.random();
                let secret = random.and_then(|it| self.log.secret(&it, level, side));
                secret.map(<[u8]>::to_vec).into_iter().collect()
            }
        };
        known
            .iter()
            .flat_map(|it| Keys::fitting(it, VERSION))
            .collect()
    }
}

/// Opens what an interface of one connection saw.
pub fn dissect(captured: &[Captured], secrets: &Secrets) -> Vec<Sighting> {
    let mut dissector = Dissector {
        secrets,
        places: BTreeMap::new(),
    };
    captured.iter().map(|it| dissector.sighting(it)).collect()
}

struct Dissector<'a> {
    secrets: &'a Secrets,
    places: BTreeMap<(Level, Side), Place>,
}

/// The packets of one side and level.
struct Place {
    /// Those that may fit.
    keys: Vec<Keys>,
    largest: Option<u64>,
}

impl Dissector<'_> {
    fn sighting(&mut self, captured: &Captured) -> Sighting {
        let packets = split(&captured.bytes, ID_LEN).flatten();
        let packets = packets.filter_map(|protected| self.packet(captured, &protected));
        Sighting {
            at: captured.at,
            from: captured.from,
            source: captured.source,
            destination: captured.destination,
            ecn: captured.ecn,
            len: captured.bytes.len(),
            packets: packets.collect(),
        }
    }

    fn packet(&mut self, captured: &Captured, protected: &Protected) -> Option<Packet> {
        let bytes = &captured.bytes[protected.range.clone()];
        let level = match &protected.kind {
            Kind::Initial { .. } => Level::Initial,
            Kind::Handshake => Level::Handshake,
            Kind::OneRtt { .. } => Level::OneRtt,
            Kind::Retry { .. } | Kind::VersionNegotiation(_) => {
                return Some(unprotected(protected, bytes));
            }
            Kind::ZeroRtt => return None,
        };
        let (secrets, from) = (self.secrets, captured.from);
        let place = self.places.entry((level, from)).or_insert_with(|| Place {
            keys: secrets.of(level, from),
            largest: None,
        });
        let (header, payload) = place
            .keys
            .iter_mut()
            .find_map(|keys| keys.open(protected, bytes, place.largest, 0))?;
        place.largest = place.largest.max(Some(header.number));
        let frames = Frames::new(&payload).map(|frame| Some(frame.ok()?.0));
        Some(Packet {
            header,
            path: 0,
            frames: frames.collect::<Option<_>>()?,
        })
    }
}

/// A packet that has no number and no frames.
fn unprotected(protected: &Protected, bytes: &[u8]) -> Packet {
    Packet {
        header: protected.header(bytes, None).0,
        path: 0,
        frames: Vec::new(),
    }
}

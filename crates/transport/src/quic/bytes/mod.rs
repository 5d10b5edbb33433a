//! Datagrams as sealed bytes, for a live interface, a capture, or another stack (RFC 9001).
//!
//! A [`Connection`] never sees bytes. The [`Protector`] beside it takes the keys from its handshake, seals its packets
//! and opens received ones. Key updates are only here: the connection has no key phases.

mod one_rtt;
mod refused;

use polypath_wire::quic::{
    Carried, ConnectionId, Datagram, Frame, Frames, Header, Kind, Packet, Protected,
    TransportError, encode_frame, split,
};
use rustls::Side;
use rustls::quic::Keys;

use super::connection::Connection;
use super::crypto::{Level, Sealer, initial_keys, open};
use super::datagram_size::LEAST_DATAGRAM;
use super::id;
use super::packets::Packets;
use super::receive::Came;
use super::reset;
use crate::Codepoint;
use crate::{Nanos, Tuple};
use one_rtt::{OneRtt, nonce_path};
use refused::Refused;

/// Packets that were received and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Their header cannot be read, or they are of a kind that the connection does not take.
    pub malformed: u64,
    /// The connection never issued their destination, or has retired it.
    pub unknown_destination: u64,
    /// The keys of their level are not there yet, or not any more (RFC 9001 sections 4.9 and 5.7).
    pub without_keys: u64,
    /// They are not authentic (RFC 9001 section 5.5).
    pub not_authentic: u64,
}

/// The packet protection of one side's connection.
pub struct Protector {
    initial: Keys,
    /// What they are made of: a Retry changes it.
    initial_for: ConnectionId,
    handshake: Option<Keys>,
    one_rtt: Option<OneRtt>,
    dropped: Dropped,
    /// Limits below those of the AEAD.
    limits: Limits,
}

/// What keys are used for at most (RFC 9001 section 6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Packets sealed with the same keys.
    pub sealed: u64,
    /// Packets of the connection that are not authentic.
    pub not_authentic: u64,
}

impl Limits {
    /// Those of the AEAD alone.
    const NONE: Self = Self {
        sealed: u64::MAX,
        not_authentic: u64::MAX,
    };
}

/// The destination of a client's first packet, by which a server makes its connection. A shorter datagram than a client may send
/// holds none (RFC 9000 section 14.1).
pub fn first_destination(datagram: &[u8]) -> Option<ConnectionId> {
    if datagram.len() < LEAST_DATAGRAM as usize {
        return None;
    }
    let first = split(datagram, id::LEN).next()?.ok()?;
    matches!(first.kind, Kind::Initial { .. }).then_some(first.destination)
}

/// What a datagram is addressed to, by which its connection is found ([`Connection::knows`]): packets of others in it are left out (RFC 9000
/// section 12.2).
pub fn destination(datagram: &[u8]) -> Option<ConnectionId> {
    let first = split(datagram, id::LEN).next()?.ok()?;
    Some(first.destination)
}

impl Protector {
    pub fn new(connection: &Connection) -> Self {
        Self {
            initial: initial_keys(
                &connection.transfer.packets.identity.initial_destination(),
                side(connection),
            ),
            initial_for: connection.transfer.packets.identity.initial_destination(),
            handshake: None,
            one_rtt: None,
            dropped: Dropped::default(),
            limits: Limits::NONE,
        }
    }

    /// Lowers the limits of use below those of the AEAD, which take too many packets to reach.
    pub fn lower_limits(&mut self, limits: Limits) {
        self.limits = limits;
        if let Some(keys) = &mut self.one_rtt {
            keys.lower_limit(limits.sealed);
        }
    }

    /// Lines of a key log (as in SSLKEYLOGFILE) that the handshake gave since this was last asked; both sides give the same.
    pub fn take_secrets(&mut self, connection: &mut Connection) -> Vec<String> {
        connection
            .transfer
            .packets
            .handshake
            .session()
            .take_secrets()
    }

    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Key updates so far, of either side.
    pub fn key_updates(&self) -> u64 {
        self.one_rtt.as_ref().map_or(0, OneRtt::generation)
    }

    /// Begins to use new keys for what is sent (RFC 9001 section 6.1). False: it is too early for them.
    pub fn update_keys(&mut self, connection: &mut Connection, now: Nanos) -> bool {
        match &mut self.one_rtt {
            Some(keys) => keys.initiate(connection, now),
            None => false,
        }
    }

    /// Seals a datagram that the connection sends. `fill` puts in the bytes of streams and datagrams.
    ///
    /// # Panics
    /// The connection did not make the datagram.
    pub fn seal(
        &mut self,
        connection: &mut Connection,
        datagram: &Datagram,
        fill: &mut dyn FnMut(Carried, &mut [u8]),
    ) -> Vec<u8> {
        self.take_keys(connection);
        let mut bytes = Vec::with_capacity(datagram.len() as usize);
        for packet in &datagram.packets {
            self.seal_packet(connection, packet, fill, &mut bytes);
        }
        bytes
    }

    fn seal_packet(
        &mut self,
        connection: &mut Connection,
        packet: &Packet,
        fill: &mut dyn FnMut(Carried, &mut [u8]),
        bytes: &mut Vec<u8>,
    ) {
        const MADE: &str = "the connection makes only packets that can be sent";
        let mut header = packet.header.clone();
        if let (Kind::OneRtt { key_phase, .. }, Some(keys)) = (&mut header.kind, &mut self.one_rtt)
        {
            keys.before_sealing(connection, packet.path, header.number);
            *key_phase = keys.phase();
        }
        let start = bytes.len();
        let number_offset = header.encode(packet.payload_len(), bytes).expect(MADE);
        for frame in &packet.frames {
            encode_frame(frame, fill, bytes).expect(MADE);
        }
        let sealer = match header.kind {
            Kind::Initial { .. } => Some(Sealer::new(&self.initial.local)),
            Kind::Handshake => self.handshake.as_ref().map(|keys| Sealer::new(&keys.local)),
            Kind::OneRtt { .. } => {
                let path = nonce_path(connection, packet.path);
                self.one_rtt.as_ref().map(|keys| keys.sealer(path))
            }
            _ => None,
        };
        sealer
            .expect(MADE)
            .seal(bytes, start, number_offset, header.number);
    }

    /// Seals bytes as the frames of a 1-RTT packet that the connection did not make, for tests of what its peer takes. Nothing before
    /// the handshake is over.
    pub fn seal_frames(
        &mut self,
        connection: &mut Connection,
        path: u64,
        number: u64,
        frames: &[u8],
    ) -> Option<Vec<u8>> {
        self.take_keys(connection);
        let header = Header {
            kind: Kind::OneRtt {
                key_phase: self.one_rtt.as_ref()?.phase(),
                spin: false,
            },
            version: 0,
            destination: connection
                .transfer
                .packets
                .identity
                .remote()
                .current(path)?
                .1,
            source: ConnectionId::default(),
            number,
            number_len: 4,
        };
        let mut bytes = Vec::new();
        let len = frames.len() as u32;
        let number_offset = header.encode(len, &mut bytes).ok()?;
        bytes.extend_from_slice(frames);
        let nonce = nonce_path(connection, path);
        let sealer = self.one_rtt.as_ref()?.sealer(nonce);
        sealer.seal(&mut bytes, 0, number_offset, number);
        Some(bytes)
    }

    /// A datagram came from `tuple.remote` to `tuple.local`. `take` is given the frames whose payload is not in them, and the payload.
    ///
    /// Packets are opened one after the other: the first of a datagram may bring the keys for the second.
    pub fn receive(
        &mut self,
        connection: &mut Connection,
        tuple: Tuple,
        datagram: &[u8],
        ecn: Codepoint,
        now: Nanos,
        take: &mut dyn FnMut(&mut Frame, &[u8]),
    ) {
        let mut packets = split(datagram, id::LEN);
        let mut opened_any = false;
        connection.on_packets(tuple, datagram.len() as u32, ecn, now, |connection| {
            self.take_keys(connection);
            loop {
                let Ok(protected) = packets.next()? else {
                    self.dropped.malformed += 1;
                    continue;
                };
                let bytes = &datagram[protected.range.clone()];
                let path = connection
                    .transfer
                    .packets
                    .identity
                    .path_of(&protected.destination);
                let opened = self.open(connection, &protected, path, bytes, now, take);
                if connection.ended().is_some() {
                    return None;
                }
                match (opened, path) {
                    (Some(packet), _) => {
                        opened_any = true;
                        return Some(Came::Packet(packet));
                    }
                    (None, Some(path)) => return Some(Came::Unopened(path)),
                    (None, None) => {}
                }
            }
        });
        let end = (datagram.len() >= reset::LEAST).then(|| datagram.last_chunk());
        if !opened_any
            && let Some(end) = end.flatten()
            && connection
                .transfer
                .packets
                .identity
                .remote()
                .are_reset_by(end)
        {
            connection.on_stateless_reset();
        }
        if let Some(keys) = &mut self.one_rtt {
            keys.note_confirmation(connection, now);
        }
    }

    fn open(
        &mut self,
        connection: &mut Connection,
        protected: &Protected,
        path: Option<u64>,
        bytes: &[u8],
        now: Nanos,
        take: &mut dyn FnMut(&mut Frame, &[u8]),
    ) -> Option<Packet> {
        let level = match protected.kind {
            Kind::Initial { .. } => Level::Initial,
            Kind::Handshake => Level::Handshake,
            Kind::OneRtt { .. } => Level::OneRtt,
            Kind::Retry { ref token, .. } if path.is_some() => {
                if connection.transfer.on_retry(protected.source, token, bytes) {
                    connection.flush();
                }
                return None;
            }
            Kind::VersionNegotiation(ref versions) if path.is_some() => {
                let (destination, source) = (protected.destination, protected.source);
                if connection
                    .transfer
                    .on_version_negotiation(destination, source, versions)
                {
                    connection.flush();
                }
                return None;
            }
            _ => {
                self.dropped.malformed += 1;
                return None;
            }
        };
        let Some(path) = path else {
            self.dropped.unknown_destination += 1;
            return None;
        };
        if !connection.transfer.packets.handshake.reads(level) {
            self.dropped.without_keys += 1;
            return None;
        }
        let largest = connection.transfer.packets.largest_received(level, path);
        let mut bytes = bytes.to_vec();
        let opened = match (level, &mut self.handshake, &mut self.one_rtt) {
            (Level::Initial, ..) => {
                open(&self.initial.remote, protected, &mut bytes, largest, None)
                    .map_err(Refused::from)
            }
            (Level::Handshake, Some(keys), _) => {
                open(&keys.remote, protected, &mut bytes, largest, None).map_err(Refused::from)
            }
            (Level::OneRtt, _, Some(keys)) => {
                keys.open(connection, protected, &mut bytes, largest, path, now)
            }
            _ => {
                self.dropped.without_keys += 1;
                return None;
            }
        };
        match opened {
            Ok((header, payload)) => parse(connection, header, path, &bytes[payload], take),
            Err(Refused::NotAuthentic) => {
                self.dropped.not_authentic += 1;
                self.check_integrity(connection);
                None
            }
            Err(Refused::Close(error, reason)) => {
                connection.transfer.fail(error, 0, reason);
                None
            }
        }
    }

    /// Too many forgeries were tried (RFC 9001 section 6.6).
    fn check_integrity(&mut self, connection: &mut Connection) {
        let of_keys = self.one_rtt.as_ref().map(OneRtt::integrity_limit);
        let limit = of_keys.unwrap_or(u64::MAX).min(self.limits.not_authentic);
        if self.dropped.not_authentic > limit {
            let reason = "more packets failed authentication than the AEAD admits";
            connection
                .transfer
                .fail(TransportError::AEAD_LIMIT_REACHED, 0, reason);
        }
    }

    fn take_keys(&mut self, connection: &mut Connection) {
        let initial_for = connection.transfer.packets.identity.initial_destination();
        if self.initial_for != initial_for {
            self.initial_for = initial_for;
            self.initial = initial_keys(&self.initial_for, side(connection));
        }
        let session = connection.transfer.packets.handshake.session();
        if self.handshake.is_none() {
            self.handshake = session.take_keys(Level::Handshake);
        }
        if self.one_rtt.is_none() {
            self.one_rtt = OneRtt::new(session);
            if let Some(keys) = &mut self.one_rtt {
                keys.lower_limit(self.limits.sealed);
            }
        }
    }
}

fn side(connection: &Connection) -> Side {
    if connection.transfer.packets.identity.client() {
        Side::Client
    } else {
        Side::Server
    }
}

fn parse(
    connection: &mut Connection,
    header: Header,
    path: u64,
    payload: &[u8],
    take: &mut dyn FnMut(&mut Frame, &[u8]),
) -> Option<Packet> {
    let mut frames = Vec::new();
    for frame in Frames::new(payload) {
        match frame {
            Ok((mut frame, carried)) => {
                if matches!(frame, Frame::Stream { .. } | Frame::Datagram { .. }) {
                    take(&mut frame, carried);
                }
                frames.push(frame);
            }
            Err(error) => {
                connection
                    .transfer
                    .fail(error.code, error.frame_type, error.reason);
                return None;
            }
        }
    }
    Some(Packet {
        header,
        path,
        frames,
    })
}

impl Packets {
    fn largest_received(&mut self, level: Level, path: u64) -> Option<u64> {
        let path = self.paths.iter().position(|member| member.id() == path)?;
        self.space(level, path).received.largest()
    }
}

//! Keys of 1-RTT packets and their updates (RFC 9001 section 6, RFC 10069 section 2.5).

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

use polypath_wire::quic::{Header, Kind, Protected, TransportError};
use rustls::quic::{HeaderProtectionKey, PacketKey, PacketKeySet};

use super::super::connection::Connection;
use super::super::crypto::{Level, OpenError, Sealer, Session, decrypt, remove_header_protection};
use super::super::path::PathState;
use super::refused::Refused;
use crate::Nanos;

/// Probe timeouts for which old keys are kept, and after which new ones may follow (RFC 9001 sections 6.1 and 6.5).
const INTERVAL: Nanos = 3;

/// Packets below the limit of its keys at which a connection is closed: what was made before and the close itself are still sealed.
const RESERVE: u64 = 1024;

/// Keys of the phase before.
struct Previous {
    remote: Box<dyn PacketKey>,
    /// Until when they are kept; absent while the peer has not followed the update.
    until: Option<Nanos>,
}

pub(super) struct OneRtt {
    local_header: Box<dyn HeaderProtectionKey>,
    remote_header: Box<dyn HeaderProtectionKey>,
    local: Box<dyn PacketKey>,
    remote: Box<dyn PacketKey>,
    next: PacketKeySet,
    previous: Option<Previous>,
    /// Updates so far.
    generation: u64,
    /// Of each path, the first packet sent and the lowest received with the keys of now.
    first_sent: BTreeMap<u64, u64>,
    lowest_received: BTreeMap<u64, u64>,
    /// Packets sealed with them, and how many may be.
    sealed: u64,
    limit: u64,
    /// When a packet sent with them was known to have arrived.
    confirmed_at: Option<Nanos>,
}

impl OneRtt {
    /// As soon as the handshake gives them.
    pub fn new(session: &mut Session) -> Option<Self> {
        let keys = session.take_keys(Level::OneRtt)?;
        let next = session.next_packet_keys()?;
        let limit = keys.local.packet.confidentiality_limit();
        Some(Self {
            local_header: keys.local.header,
            remote_header: keys.remote.header,
            local: keys.local.packet,
            remote: keys.remote.packet,
            next,
            previous: None,
            generation: 0,
            first_sent: BTreeMap::new(),
            lowest_received: BTreeMap::new(),
            sealed: 0,
            limit,
            confirmed_at: None,
        })
    }

    /// Packets that may be sealed with the same keys, where that is fewer than the AEAD admits.
    pub fn lower_limit(&mut self, limit: u64) {
        self.limit = self.limit.min(limit);
    }

    /// Packets that may fail to open, over all keys, before the connection has to end (RFC 9001 section 6.6).
    pub fn integrity_limit(&self) -> u64 {
        self.remote.integrity_limit()
    }

    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn phase(&self) -> bool {
        self.generation % 2 == 1
    }

    pub fn sealer(&self, path: Option<u32>) -> Sealer<'_> {
        Sealer {
            header: self.local_header.as_ref(),
            packet: self.local.as_ref(),
            path,
        }
    }

    /// Notes a packet that is about to be sealed. Keys that have sealed half of what is safe are updated. Where they cannot be, the connection
    /// is closed while the peer can still be told (RFC 9001 section 6.6).
    pub fn before_sealing(&mut self, connection: &mut Connection, path: u64, number: u64) {
        if self.sealed >= self.limit / 2
            && !self.initiate(connection, connection.transfer.packets.now)
            && self.sealed >= self.limit - RESERVE.min(self.limit / 4)
            && !connection.transfer.packets.lifetime.over()
        {
            let reason = "as many packets sealed as the keys may seal, and no new ones";
            connection
                .transfer
                .fail(TransportError::AEAD_LIMIT_REACHED, 0, reason);
            connection.flush();
            // Its owner is sealing what was made before: the close is asked for after that.
            connection.deadline = connection.transfer.packets.now;
        }
        self.sealed += 1;
        self.first_sent.entry(path).or_insert(number);
    }

    /// Updates the keys, unless the handshake or the update before is not confirmed for long enough (RFC 9001 section 6.1).
    pub fn initiate(&mut self, connection: &mut Connection, now: Nanos) -> bool {
        let wait = INTERVAL * connection.transfer.packets.longest_probe_timeout();
        let ready = if self.generation == 0 {
            connection.transfer.packets.handshake.confirmed()
        } else {
            self.confirmed_at.is_some_and(|at| at + wait <= now)
        };
        if ready {
            self.update(connection, None);
        }
        ready
    }

    fn update(&mut self, connection: &mut Connection, previous_until: Option<Nanos>) {
        let following = connection
            .transfer
            .packets
            .handshake
            .session()
            .next_packet_keys()
            .expect("1-RTT keys are there");
        let PacketKeySet { local, remote } = mem::replace(&mut self.next, following);
        self.local = local;
        self.previous = Some(Previous {
            remote: mem::replace(&mut self.remote, remote),
            until: previous_until,
        });
        self.generation += 1;
        self.first_sent.clear();
        self.lowest_received.clear();
        self.sealed = 0;
        self.confirmed_at = None;
    }

    /// Looks whether the peer has acknowledged a packet that was sent with the keys of now.
    pub fn note_confirmation(&mut self, connection: &Connection, now: Nanos) {
        let arrived = |member: &PathState| {
            let first = self.first_sent.get(&member.id());
            first.is_some_and(|&first| member.space().sent.largest_acked() >= Some(first))
        };
        if self.confirmed_at.is_none() && connection.transfer.packets.paths.iter().any(arrived) {
            self.confirmed_at = Some(now);
        }
    }

    /// Opens a packet with the keys that its key phase means.
    pub fn open(
        &mut self,
        connection: &mut Connection,
        protected: &Protected,
        bytes: &mut Vec<u8>,
        largest: Option<u64>,
        path: u64,
        now: Nanos,
    ) -> Result<(Header, Range<usize>), Refused> {
        remove_header_protection(self.remote_header.as_ref(), bytes, protected.number_offset)?;
        let (header, payload_at) = protected.header(bytes, largest);
        let number = header.number;
        let nonce = nonce_path(connection, path);
        // A failed attempt would leave nothing of the packet.
        let attempt = |key: &dyn PacketKey, bytes: &mut Vec<u8>| {
            let mut copy = bytes.clone();
            let payload = decrypt(key, &mut copy, payload_at, number, nonce)?;
            *bytes = copy;
            Ok::<_, OpenError>(payload)
        };
        let until = now + INTERVAL * connection.transfer.packets.longest_probe_timeout();
        if matches!(header.kind, Kind::OneRtt { key_phase, .. } if key_phase == self.phase()) {
            let payload = decrypt(self.remote.as_ref(), bytes, payload_at, number, nonce)?;
            self.note_received(path, number);
            if let Some(previous) = &mut self.previous {
                previous.until.get_or_insert(until);
            }
            return Ok((header, payload));
        }
        self.previous
            .take_if(|previous| previous.until.is_some_and(|until| until < now));
        if let Some(previous) = &self.previous {
            match attempt(previous.remote.as_ref(), bytes) {
                // Then the keys are the next ones, even of a peer that has not shown that it followed the last update.
                Err(OpenError::NotAuthentic) => {}
                opened => {
                    let payload = opened?;
                    if self
                        .lowest_received
                        .get(&path)
                        .is_some_and(|&low| low < number)
                    {
                        // RFC 9001 section 6.4.
                        return Err(Refused::Close(
                            TransportError::KEY_UPDATE_ERROR,
                            "a newer packet under older keys",
                        ));
                    }
                    return Ok((header, payload));
                }
            }
        }
        // The peer updates its keys; what is sent from now on answers with new ones (RFC 9001 section 6.2).
        let payload = attempt(self.next.remote.as_ref(), bytes)?;
        self.update(connection, Some(until));
        self.note_received(path, number);
        Ok((header, payload))
    }

    fn note_received(&mut self, path: u64, number: u64) {
        let lowest = self.lowest_received.entry(path).or_insert(number);
        *lowest = number.min(*lowest);
    }
}

/// The path id enters the nonce of 1-RTT packets once multipath is negotiated (RFC 10069 section 2.4).
pub(super) fn nonce_path(connection: &Connection, path: u64) -> Option<u32> {
    connection
        .multipath()
        .then(|| u32::try_from(path).expect("path ids have 32 bits"))
}

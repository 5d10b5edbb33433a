//! The ids that identify a connection's packets: those of both ends, and the handshake's destination (RFC 9000 sections
//! 5.1 and 7.2).

use polypath_wire::quic::{ConnectionId, Packet, TransportParameters};

use super::crypto::retry_tag;
use super::ids::{LocalIds, RemoteIds};
use super::listener::Admission;

/// The ids of both ends.
pub struct Identity {
    client: bool,
    local: LocalIds,
    remote: RemoteIds,
    /// Source of this side's long headers, destination of the peer's until ids belong to paths.
    source: ConnectionId,
    /// What the client's first packet was addressed to.
    original_destination: ConnectionId,
    /// The same, but for a Retry, after which it is what that gave: keys of Initial packets are made of it.
    initial_destination: ConnectionId,
    /// Of a Retry, for the client's Initial packets.
    token: Vec<u8>,
    /// A packet of the peer's handshake has come.
    peer_seen: bool,
}

impl Identity {
    pub(super) fn new(client: bool, source: ConnectionId, admission: &Admission) -> Self {
        let original_destination = admission.original_destination;
        let mut local = LocalIds::with_tokens_of(admission.reset_key);
        local.begin(source);
        let mut remote = RemoteIds::default();
        if client {
            remote.begin(original_destination);
        }
        Self {
            client,
            local,
            remote,
            source,
            original_destination,
            initial_destination: admission.retry_source.unwrap_or(original_destination),
            token: Vec::new(),
            peer_seen: false,
        }
    }

    /// This end began the connection.
    pub(super) fn client(&self) -> bool {
        self.client
    }

    pub(super) fn local(&self) -> &LocalIds {
        &self.local
    }

    pub(super) fn local_mut(&mut self) -> &mut LocalIds {
        &mut self.local
    }

    pub(super) fn remote(&self) -> &RemoteIds {
        &self.remote
    }

    pub(super) fn remote_mut(&mut self) -> &mut RemoteIds {
        &mut self.remote
    }

    pub(super) fn source(&self) -> ConnectionId {
        self.source
    }

    /// What the client's first packet was addressed to; the same on both sides.
    pub fn original_destination(&self) -> ConnectionId {
        self.original_destination
    }

    pub(super) fn initial_destination(&self) -> ConnectionId {
        self.initial_destination
    }

    /// For the header of an Initial packet.
    pub(super) fn token(&self) -> Vec<u8> {
        self.token.clone()
    }

    /// Whether packets with this destination are for this connection.
    pub fn knows(&self, destination: &ConnectionId) -> bool {
        *destination == self.initial_destination || self.local.path_of(destination).is_some()
    }

    /// As [`Identity::knows`], of a packet; what is usual is known soon.
    #[inline]
    pub fn knows_packet(&self, packet: &Packet) -> bool {
        let destination = &packet.header.destination;
        self.local.is_newest(packet.path, destination) || self.knows(destination)
    }

    /// The path of a destination that packets for this connection have.
    pub(super) fn path_of(&self, destination: &ConnectionId) -> Option<u64> {
        let issued = self.local.path_of(destination);
        issued.or_else(|| self.first_path(destination))
    }

    /// Before the client knows an id of its server's.
    fn first_path(&self, destination: &ConnectionId) -> Option<u64> {
        let first = !self.client && *destination == self.initial_destination;
        first.then_some(0)
    }

    /// As [`Identity::path_of`], of a packet that came, and after which it is known sooner.
    #[inline(always)]
    pub(super) fn path_for(&mut self, packet: &Packet) -> Option<u64> {
        let destination = &packet.header.destination;
        if self.local.is_newest(packet.path, destination) {
            return Some(packet.path);
        }
        let issued = self.local.path_of(destination);
        if let Some(path) = issued {
            self.local.note(path, destination);
        }
        issued.or_else(|| self.first_path(destination))
    }

    /// Takes over the id that the peer chose, from its first packet (RFC 9000 section 7.2). False: a later one has another.
    pub(super) fn take_source(&mut self, source: ConnectionId) -> bool {
        match self.remote.current(0) {
            Some((_, id)) if self.peer_seen => id == source,
            _ => {
                self.peer_seen = true;
                self.remote.begin(source);
                true
            }
        }
    }

    /// Takes a Retry, whose bytes are `packet`. It has to be the first answer, and from the server that the client addressed. False: it is not taken.
    pub(super) fn take_retry(&mut self, source: ConnectionId, token: &[u8], packet: &[u8]) -> bool {
        let Some((untagged, tag)) = packet.split_last_chunk() else {
            return false;
        };
        let usable = self.client && !self.peer_seen && self.token.is_empty();
        let same = source == self.original_destination;
        if !usable || same || token.is_empty() {
            return false;
        }
        if retry_tag(&self.original_destination, untagged) != *tag {
            return false;
        }
        self.token = token.to_vec();
        self.initial_destination = source;
        self.remote.begin(source);
        true
    }

    /// Whether a packet without protection answers what the client sent, before anything else of the server's.
    pub(super) fn is_first_answer(&self, destination: ConnectionId, source: ConnectionId) -> bool {
        let answers = destination == self.source && source == self.initial_destination;
        self.client && !self.peer_seen && answers
    }

    /// Whether the peer's parameters name the ids of the handshake (RFC 9000 section 7.3).
    pub(super) fn is_named_by(&self, parameters: &TransportParameters) -> bool {
        let source = self.remote.current(0).map(|(_, id)| id);
        let original = self.client.then_some(self.original_destination);
        let retried = self.client && self.initial_destination != self.original_destination;
        parameters.initial_source_connection_id == source
            && parameters.original_destination_connection_id == original
            && parameters.retry_source_connection_id == retried.then_some(self.initial_destination)
    }

    /// The peer's id is empty: it gets its packets without one.
    pub(super) fn peer_has_none(&self) -> bool {
        let id = self.remote.current(0);
        id.is_some_and(|(_, id)| id.is_empty())
    }
}

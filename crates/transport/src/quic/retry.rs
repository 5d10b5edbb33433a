//! A client whose server asks it to begin again, or speaks no version of its own (RFC 9000 sections 6.2 and 17.2.5).

use polypath_wire::quic::{ConnectionId, Header, Kind, VERSION};

use super::connection::Connection;
use super::crypto::{Level, retry_tag};
use crate::CloseReason;

impl Connection {
    /// A packet that is not protected came in plain form.
    pub(super) fn on_unprotected(&mut self, header: &Header) {
        let mut bytes = Vec::new();
        if header.encode(0, &mut bytes).is_err() {
            return;
        }
        match &header.kind {
            Kind::Retry { token, .. } => self.on_retry(header.source, token, &bytes),
            Kind::VersionNegotiation(versions) => {
                self.on_version_negotiation(header.destination, header.source, versions);
            }
            _ => {}
        }
    }

    /// Takes a Retry, whose bytes are `packet`: one, before anything else of the server's, and only if it is of whom the client spoke to.
    pub(super) fn on_retry(&mut self, source: ConnectionId, token: &[u8], packet: &[u8]) {
        let Some((untagged, tag)) = packet.split_last_chunk() else {
            return;
        };
        let usable = self.client && !self.peer_seen && self.token.is_empty();
        let same = source == self.original_destination;
        if !usable || same || token.is_empty() {
            return;
        }
        if retry_tag(&self.original_destination, untagged) != *tag {
            return;
        }
        self.token = token.to_vec();
        self.initial_destination = source;
        self.remote_ids.begin(source);
        // What was sent is as good as gone, and no sign of congestion (RFC 9002 section 6.3). Numbers go on.
        let space = self.space(Level::Initial, 0);
        space.sent.drain().for_each(drop);
        self.handshake.begin_again();
        self.members[0].timeouts = 0;
        self.anti_deadlock_from = self.now;
        self.paths[0].in_flight = self.in_flight(0);
        self.lifetime.restart(self.now);
        self.flush();
    }

    /// The server speaks none of the client's versions.
    pub(super) fn on_version_negotiation(
        &mut self,
        destination: ConnectionId,
        source: ConnectionId,
        versions: &[u32],
    ) {
        let answers = destination == self.source && source == self.initial_destination;
        let early = self.client && !self.peer_seen;
        if early && answers && !versions.contains(&VERSION) {
            self.end(CloseReason::Aborted);
            self.flush();
        }
    }
}

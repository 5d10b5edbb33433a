//! A client whose server asks it to start again, or speaks none of its versions (RFC 9000 sections 6.2 and 17.2.5).

use polypath_wire::quic::{ConnectionId, Header, Kind, VERSION};

use super::connection::Connection;
use super::crypto::Level;
use super::transfer::Transfer;
use crate::CloseReason;

impl Connection {
    /// A packet that is not protected came in plain form.
    pub(super) fn on_unprotected(&mut self, header: &Header) {
        let mut bytes = Vec::new();
        if header.encode(0, &mut bytes).is_err() {
            return;
        }
        let transfer = &mut self.transfer;
        let taken = match &header.kind {
            Kind::Retry { token, .. } => transfer.on_retry(header.source, token, &bytes),
            Kind::VersionNegotiation(versions) => {
                transfer.on_version_negotiation(header.destination, header.source, versions)
            }
            _ => false,
        };
        if taken {
            self.flush();
        }
    }
}

impl Transfer {
    /// A Retry came, whose bytes are `packet`. Whether something is to be sent.
    pub(super) fn on_retry(&mut self, source: ConnectionId, token: &[u8], packet: &[u8]) -> bool {
        if !self.packets.identity.take_retry(source, token, packet) {
            return false;
        }
        // What was sent is as good as gone, and no sign of congestion (RFC 9002 section 6.3). Numbers go on.
        let space = self.packets.space(Level::Initial, 0);
        space.sent.drain().for_each(drop);
        self.packets.handshake.begin_again();
        self.packets.paths[0].probing_mut().forgive();
        self.packets.handshake.wait_from(self.packets.now);
        self.packets.paths.shown_mut(0).in_flight = self.packets.in_flight(0);
        self.packets.lifetime.restart(self.packets.now);
        true
    }

    /// The server speaks none of the client's versions. Whether that ends the connection.
    pub(super) fn on_version_negotiation(
        &mut self,
        destination: ConnectionId,
        source: ConnectionId,
        versions: &[u32],
    ) -> bool {
        let answers = self.packets.identity.is_first_answer(destination, source);
        let ends = answers && !versions.contains(&VERSION);
        if ends {
            self.end(CloseReason::Aborted);
        }
        ends
    }
}

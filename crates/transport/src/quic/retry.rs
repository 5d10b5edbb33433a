//! A client whose server asks it to start again, or speaks none of its versions (RFC 9000 sections 6.2 and 17.2.5).

use polypath_wire::quic::{ConnectionId, Header, Kind, VERSION};

use super::connection::Connection;
use super::crypto::Level;
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

    /// A Retry came, whose bytes are `packet`.
    pub(super) fn on_retry(&mut self, source: ConnectionId, token: &[u8], packet: &[u8]) {
        if !self
            .transfer
            .packets
            .identity
            .take_retry(source, token, packet)
        {
            return;
        }
        // What was sent is as good as gone, and no sign of congestion (RFC 9002 section 6.3). Numbers go on.
        let space = self.transfer.packets.space(Level::Initial, 0);
        space.sent.drain().for_each(drop);
        self.transfer.packets.handshake.begin_again();
        self.transfer.packets.paths[0].probing_mut().forgive();
        self.transfer
            .packets
            .handshake
            .wait_from(self.transfer.packets.now);
        self.transfer.packets.paths.shown_mut(0).in_flight = self.transfer.packets.in_flight(0);
        self.transfer
            .packets
            .lifetime
            .restart(self.transfer.packets.now);
        self.flush();
    }

    /// The server speaks none of the client's versions.
    pub(super) fn on_version_negotiation(
        &mut self,
        destination: ConnectionId,
        source: ConnectionId,
        versions: &[u32],
    ) {
        let answers = self
            .transfer
            .packets
            .identity
            .is_first_answer(destination, source);
        if answers && !versions.contains(&VERSION) {
            self.transfer.end(CloseReason::Aborted);
            self.flush();
        }
    }
}

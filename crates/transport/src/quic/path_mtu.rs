//! Reports of routers that a datagram was too long (RFC 9000 section 14.2.1).

use polypath_wire::quic::ConnectionId;

use super::connection::Connection;
use super::datagram_size::payload;
use crate::{EventKind, Nanos};

impl Connection {
    /// ICMP says of a datagram of `len` bytes on a path, whose first packet had this destination, that it was longer than the `mtu` of a link.
    ///
    /// Only a report about what this side may have sent is heard. It shortens datagrams from now on; those in flight are left to loss
    /// detection, since they may have arrived another way.
    pub fn on_packet_too_big(
        &mut self,
        path: usize,
        destination: &ConnectionId,
        len: u32,
        mtu: u32,
        now: Nanos,
    ) {
        self.transfer.packets.now = now;
        let Some(member) = self.transfer.packets.paths.get_mut(path) else {
            return;
        };
        let own = self
            .transfer
            .packets
            .identity
            .remote()
            .current_id(member.id())
            == Some(destination);
        if !own || member.closed() || self.transfer.packets.lifetime.over() {
            return;
        }
        let tuple = member.tuple();
        if !member.datagram_size_mut().on_report(tuple, len, mtu) {
            return;
        }
        let full = payload(member.datagram());
        if full < self.transfer.packets.paths.shown(path).mss {
            self.transfer.packets.paths.shown_mut(path).mss = full;
            self.transfer
                .packets
                .event(EventKind::PathMtu { subflow: path, mtu });
        }
        self.flush();
    }
}

//! What a connection transfers: data and datagrams, as the scheduler decides, and all again that is lost.

use std::net::IpAddr;

use polypath_wire::quic::TransportError;

use super::closed::Close;
use super::datagrams::Datagrams;
use super::packets::Packets;
use super::streams::Streams;
use crate::policy::Policy;
use crate::{CloseReason, EventKind};

/// Packets, and the data in them.
pub(super) struct Transfer {
    pub(super) packets: Packets,
    pub(super) streams: Streams,
    pub(super) datagrams: Datagrams,
    pub(super) policy: Policy,
}

impl Transfer {
    /// The longest packet that leaves from an address.
    pub(super) fn mtu_of(&self, local: IpAddr) -> u32 {
        self.policy
            .addresses()
            .egress()
            .mtu(local, self.packets.config.mtu)
    }

    /// Closes the connection for an error of the peer's.
    pub(super) fn fail(&mut self, error: TransportError, frame_type: u64, reason: &'static str) {
        let close = Close {
            error: error.0,
            frame_type: Some(frame_type),
            reason,
        };
        self.close_with(close, CloseReason::Aborted);
    }

    /// Ends the connection and tells the peer why, unless it has ended.
    pub(super) fn close_with(&mut self, close: Close, reason: CloseReason) {
        if !self.packets.lifetime.over() {
            self.packets.lifetime.close(close);
            self.end(reason);
        }
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        if self.packets.lifetime.over() {
            return;
        }
        self.packets
            .lifetime
            .end(reason, self.packets.longest_probe_timeout());
        self.streams.end(self.packets.now);
        self.packets.paths.close_all(self.packets.now);
        self.packets.compare_timeouts();
        self.packets.event(EventKind::ConnectionClosed(reason));
    }
}

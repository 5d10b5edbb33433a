//! What a tail loss probe carries (RFC 8985 section 7.3; net/ipv4/tcp_output.c `tcp_send_loss_probe`).

use crate::mptcp::addresses::lose_removal;
use crate::mptcp::connection::Connection;

impl Connection {
    /// New data that the peer's window admits leaves as the probe, even beyond the congestion window; where there is none, the last segment
    /// is repeated. A subflow's new data is what it was given already.
    #[cold]
    pub(in crate::mptcp) fn on_probe_timeout(&mut self, subflow: usize) {
        let local = self.subflows[subflow].tuple.local.ip();
        if self.shared.config.profile.probes_by_route() && self.policy.addresses().is_down(local) {
            // The MSS is computed first (`tcp_current_mss`). Nothing leaves, so the rest of the retransmission timeout follows (`tcp_rearm_rto`).
            lose_removal(self, subflow);
            return self.with(subflow, |socket, cx| {
                socket.transfer.arm_retransmission(cx.shared)
            });
        }
        if !self.with(subflow, |socket, cx| {
            socket.transfer.on_probe_timeout(cx.shared)
        }) {
            return;
        }
        let before = self.subflows[subflow].socket.totals().sent;
        let window = self.paths[subflow].cwnd;
        self.paths[subflow].cwnd = window.max(self.paths[subflow].in_flight + 1);
        let new = self.with(subflow, |socket, cx| socket.send_group(cx))
            || (self.session.multipath.is_none() && self.send_next());
        self.paths[subflow].cwnd = window;
        if new && self.subflows[subflow].socket.totals().sent == before {
            // Pacing holds it back.
        } else if new {
            self.with(subflow, |socket, cx| {
                socket.transfer.note_loss_probe(cx, false)
            });
        } else {
            self.with(subflow, |socket, cx| socket.repeat_as_probe(cx));
        }
        self.subflows[subflow]
            .socket
            .publish(&mut self.paths[subflow]);
    }
}

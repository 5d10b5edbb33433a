//! Queues of the own host that keep packets on their socket's account (net/ipv4/tcp_output.c `tcp_wfree`, `tcp_tsq_handler`).

use crate::Nanos;
use crate::mptcp::connection::Connection;

impl Connection {
    /// What a subflow sends from now on lies in such a queue until [`Connection::on_left_host`] tells that it has left.
    pub fn held_by_host(&mut self, subflow: usize) {
        if self.shared.config.profile.keeps_small_queues() {
            self.subflows[subflow]
                .socket
                .host
                .hold(&self.paths[subflow]);
        }
    }

    /// A segment of a subflow with so many bytes of payload has left the host's queue, or was refused by it.
    pub fn on_left_host(&mut self, subflow: usize, bytes: u32, now: Nanos) {
        let socket = &mut self.subflows[subflow].socket;
        if !socket.host.leave(bytes) || !socket.state().synchronised() || socket.host.waits() {
            return;
        }
        self.shared.now = now;
        // `tcp_tsq_write`
        self.repair(subflow);
        if self.send.buffers.is_some() {
            self.transmit(false);
        } else {
            self.with(subflow, |socket, cx| socket.send_unsent(cx));
        }
        self.find_deadline();
    }
}

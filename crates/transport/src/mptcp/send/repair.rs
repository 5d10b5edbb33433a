//! What is lost leaves again.

use crate::mptcp::connection::Connection;

/// The sequence number of the first byte of plain TCP's stream.
pub(super) const FIRST: u64 = 1;

impl Connection {
    /// Sends again what a subflow lost, as far as its window admits.
    pub(in crate::mptcp) fn repair(&mut self, subflow: usize) {
        if !self.subflows[subflow].socket.transfer.repairs() {
            return;
        }
        let buffers = self.send.buffers.take();
        let place = buffers.as_ref().map(|buffers| (buffers, FIRST));
        self.with(subflow, |socket, cx| socket.send_lost(cx, place));
        self.send.buffers = buffers;
    }
}

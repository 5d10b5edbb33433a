//! What the application asks of a connection: write, read, close, abort.

use super::connection::Connection;
use crate::linux::CALL;
use crate::{CloseReason, Nanos};

impl Connection {
    /// The application writes `bytes`, as a blocking write does: what the send buffer has no room for waits until it has.
    pub fn write(&mut self, bytes: u64, now: Nanos) {
        self.shared.now = now;
        if self.ended.is_some() || self.send.closing() {
            return;
        }
        self.send.write(bytes);
        if self.established {
            self.push();
            self.housekeep();
        }
    }

    /// Takes back what was written and has not reached the send buffer; returns how much.
    pub fn cancel_writes(&mut self) -> u64 {
        self.send.cancel()
    }

    /// Bytes that the application ever got into the send buffer.
    pub fn written(&self) -> u64 {
        self.send.written()
    }

    /// Gives up to `bytes` in-order bytes to the application, which reads in pieces.
    pub fn read(&mut self, bytes: u64, now: Nanos) -> u64 {
        self.shared.now = now;
        let taken = bytes.min(self.shared.receive.available());
        let mut left = taken;
        while left > 0 {
            let piece = left.min(CALL);
            left -= piece;
            if self.shared.receive.read(piece, now) {
                self.announce_window();
            }
        }
        taken
    }

    fn announce_window(&mut self) {
        if self.shared.receive.by_subflow() {
            return self.announce_windows();
        }
        if let Some(me) = (0..self.subflows.len())
            .find(|&me| self.paths[me].established && self.subflows[me].socket.state.receives())
        {
            self.with(me, |socket, cx| socket.send_ack(cx));
        }
    }

    /// Every subflow whose window opened far tells so (Linux `mptcp_cleanup_rbuf`).
    fn announce_windows(&mut self) {
        for me in 0..self.subflows.len() {
            let socket = &self.subflows[me].socket;
            if self.paths[me].established
                && socket.state.receives()
                && self.shared.receive.reopens(me, socket.received())
            {
                self.with(me, |socket, cx| socket.send_ack(cx));
            }
        }
    }

    /// In-order bytes that wait to be read.
    pub fn available(&self) -> u64 {
        self.shared.receive.available()
    }

    /// The peer closed its direction and everything was read.
    pub fn at_end(&self) -> bool {
        self.shared.receive.at_end() && self.shared.receive.available() == 0
    }

    /// Closes the sending direction after what was written.
    pub fn close(&mut self, now: Nanos) {
        self.shared.now = now;
        self.send.close();
        self.give_up_on_subflows();
        if self.established {
            self.push();
            self.housekeep();
        }
    }

    /// Closes both directions at once: MP_FASTCLOSE and reset (RFC 8684 section 3.5).
    pub fn abort(&mut self, now: Nanos) {
        self.shared.now = now;
        self.deadline = 0;
        if self.ended.is_none() {
            self.fast_close();
            self.end(CloseReason::Aborted);
        }
    }
}

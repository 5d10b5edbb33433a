//! What the application asks of a connection: write, read, close, abort.

use std::sync::Arc;

use super::connection::Connection;
use crate::linux::CALL;
use crate::{CloseReason, Config, Nanos};

/// Flags of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// More follows: what is smaller than a segment waits for it, and nothing is pushed (MSG_MORE).
    pub more: bool,
    /// A record ends: what follows is in other segments (MSG_EOR). Only upstream TCP's buffers have records.
    pub record: bool,
}

impl Connection {
    /// The application writes `bytes`, as a blocking write does: what the send buffer has no room for waits until it has.
    pub fn write(&mut self, bytes: u64, now: Nanos) {
        self.write_as(bytes, Manner::default(), now);
    }

    /// The same with flags.
    pub fn write_as(&mut self, bytes: u64, manner: Manner, now: Nanos) {
        self.shared.now = now;
        if self.ended.is_some() || self.send.closing() {
            return;
        }
        self.send.write(bytes);
        if manner.record {
            self.send.end_record();
        }
        if self.established {
            self.shared.more_follows = self.send.note_more(manner.more);
            self.push();
            self.shared.more_follows = false;
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

    /// Whether a writer that polls finds room: a third of a full buffer (Linux `__sk_stream_is_writeable`).
    pub fn writable(&self) -> bool {
        self.established && self.ended.is_none() && !self.send.closing() && self.send.has_space()
    }

    /// Changes settings of a connection under way, as socket options do.
    pub fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        change(Arc::make_mut(&mut self.shared.config));
    }

    /// Sends what a cork holds back, as clearing it does, and setting TCP_NODELAY even if it stays.
    pub fn flush(&mut self, now: Nanos) {
        self.shared.now = now;
        if self.established && self.ended.is_none() {
            self.uncork(0);
            self.housekeep();
            self.find_deadline();
        }
    }

    /// The send buffer holds `bytes` and grows no more (SO_SNDBUF).
    pub fn fix_send_buffer(&mut self, bytes: u64) {
        self.send.fix_buffer(bytes);
    }

    /// A writer finds no room while so much is unsent, and is woken at half of it (TCP_NOTSENT_LOWAT). Upstream TCP's writer keeps to it.
    pub fn limit_unsent(&mut self, bytes: u64) {
        self.send.limit_unsent(bytes);
    }

    /// Gives up to `bytes` in-order bytes to the application, which reads in pieces.
    #[inline]
    pub fn read(&mut self, bytes: u64, now: Nanos) -> u64 {
        self.shared.now = now;
        let taken = bytes.min(self.shared.receive.available());
        if taken > 0 {
            self.take(taken, now);
        }
        taken
    }

    fn take(&mut self, bytes: u64, now: Nanos) {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(CALL);
            left -= piece;
            let only = self.subflows[0].socket.receiver.window();
            let read = self.shared.receive.read(piece, only, now);
            if let Some((copied, largest)) = read.grows {
                self.grow_socket_buffers(copied, largest);
            }
            if read.announces {
                self.announce_window();
            }
        }
    }

    /// `copied` bytes were read in a round trip: the sockets' buffers follow the connection's, or the connection's that of its only one.
    #[cold]
    fn grow_socket_buffers(&mut self, copied: u64, largest: u64) {
        let windows = self.subflows.iter_mut();
        for window in windows.filter_map(|it| it.socket.receiver.window_mut()) {
            window.grow_buffer(copied, largest);
        }
        if let Some(only) = self.subflows[0].socket.receiver.window() {
            self.shared.receive.follow(only);
        }
    }

    fn announce_window(&mut self) {
        if self.shared.receive.by_subflow() {
            return self.announce_windows();
        }
        if let Some(subflow) = (0..self.subflows.len()).find(|&subflow| {
            self.paths[subflow].established && self.subflows[subflow].socket.state().receives()
        }) {
            self.with(subflow, |socket, cx| socket.send_ack(cx));
        }
    }

    /// Every subflow whose window opened far tells so (Linux `mptcp_cleanup_rbuf`).
    fn announce_windows(&mut self) {
        for subflow in 0..self.subflows.len() {
            let socket = &self.subflows[subflow].socket;
            let reopens = |own| self.shared.receive.reopens(own, socket.receiver.next());
            if self.paths[subflow].established
                && socket.state().receives()
                && socket.receiver.window().is_some_and(reopens)
            {
                self.with(subflow, |socket, cx| socket.send_ack(cx));
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

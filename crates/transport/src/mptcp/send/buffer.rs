//! The send buffer: what the application gets into it, and how it grows.

use super::{DataSender, Progress};
use crate::linux::send_memory;
use crate::mptcp::connection::Connection;
use crate::path::Path;
use crate::settings::Config;
use crate::tcp::State;

impl DataSender {
    pub fn write(&mut self, bytes: u64) {
        self.waiting = self.waiting.saturating_add(bytes);
    }

    pub fn cancel(&mut self) -> u64 {
        self.records.clear();
        std::mem::take(&mut self.waiting)
    }

    /// Whether more follows what is written now. True: what waits goes on waiting until the writer has added to it.
    pub fn note_more(&mut self, more: bool) -> bool {
        self.more = more;
        more || self.buffers.is_some()
    }

    /// A record ends with what was written.
    pub fn end_record(&mut self) {
        if self.buffers.is_some() {
            self.records.push_back(self.written + self.waiting);
        }
    }

    /// What leaves next is pushed, because a timer sends it (`tcp_write_wakeup`).
    pub fn push_head(&mut self) {
        if let Some(buffers) = &mut self.buffers {
            buffers.push_head();
        }
    }

    /// Limits what a writer may put behind what was sent.
    pub fn limit_unsent(&mut self, bytes: u64) {
        self.unsent_limit = bytes;
    }

    /// Room for a buffer more, or none where too much is unsent (`tcp_stream_memory_free`).
    pub(super) fn room(&self) -> u64 {
        if self.unsent() < self.unsent_limit {
            self.buffer
        } else {
            0
        }
    }

    /// What is unsent is less than half of its limit: a writer that waits is woken (`tcp_stream_memory_free`).
    pub(super) fn may_wake(&self) -> bool {
        2 * self.unsent() < self.unsent_limit
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    /// Moves what waits into the buffer as far as it has room.
    pub(super) fn refill(&mut self, config: &Config, paths: &[Path]) {
        if self.fragments.is_some() {
            while self.write_call() {}
        } else if self.waiting > 0 {
            self.grow_buffer(config, paths);
            let room = self.buffer.saturating_sub(self.written - self.una);
            self.take(self.waiting.min(room));
        }
    }

    /// One call of an upstream writer. False: it waits, or has nothing to write.
    pub(super) fn write_call(&mut self) -> bool {
        let (una, sent, written) = (self.una, self.sent, self.written);
        let at = Progress { una, sent, written };
        let (waiting, room) = (self.waiting, self.buffer);
        let fragments = self.fragments.as_mut();
        let taken = fragments.map_or(0, |it| it.write(waiting, at, room));
        self.take(taken);
        taken > 0
    }

    fn take(&mut self, bytes: u64) {
        self.written += bytes;
        self.waiting -= bytes;
    }

    /// Twice the windows of all paths that can send, within the limits (mptcp.org `mptcp_update_sndbuf`).
    pub(super) fn grow_buffer(&mut self, config: &Config, paths: &[Path]) {
        let wanted = |path: &Path| send_memory::wanted_buffer(path, config.initial_window);
        let sends = |path: &&Path| path.established && !path.closing;
        if self.buffer < self.largest_buffer {
            let sum: u64 = paths.iter().filter(sends).map(wanted).sum();
            self.buffer = self.buffer.max(sum.min(self.largest_buffer));
        }
    }

    pub fn buffer(&self) -> u64 {
        self.buffer
    }

    pub fn fix_buffer(&mut self, bytes: u64) {
        self.buffer = bytes;
        self.largest_buffer = bytes;
    }

    /// What is free is at least half of what is taken.
    pub fn has_space(&self) -> bool {
        let taken = match &self.buffers {
            Some(buffers) => buffers.memory(),
            None => self.unacknowledged(),
        };
        self.waiting == 0
            && self.may_wake()
            && self.buffer.saturating_sub(taken) >= (taken / 2).max(1)
    }

    /// The buffer of upstream TCP: two windows, where a writer waits and the window is not full (`tcp_should_expand_sndbuf`).
    pub(super) fn expand_buffer(&mut self, path: &Path, initial_window: u32, waits: bool) {
        let wanted = if waits && path.in_flight < path.cwnd {
            send_memory::wanted_buffer(path, initial_window)
        } else {
            send_memory::buffer_for(path, initial_window)
        };
        self.buffer = self.buffer.max(wanted.min(self.largest_buffer));
    }
}

impl Connection {
    /// Sums up the subflows' buffers where that of one which is through its handshake has changed; one that this host is setting up has a buffer,
    /// too, which counts from then on (Linux `mptcp_propagate_sndbuf`, `__mptcp_sync_sndbuf`). One that this host has left counts no longer,
    /// although its socket goes on.
    pub(super) fn sum_buffers(&mut self) {
        let Some(fragments) = &mut self.send.fragments else {
            return;
        };
        let (mut sum, mut through) = (0, 0);
        for (subflow, path) in self.subflows.iter().zip(&self.paths) {
            if subflow.closed_at.is_some() {
                continue;
            }
            if subflow.socket.state().synchronised() {
                through += path.buffer;
            }
            if subflow.socket.state() != State::SynReceived {
                sum += path.buffer;
            }
        }
        if fragments.buffers_changed(through) {
            self.send.buffer = self.send.least_buffer + sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(cwnd: u32) -> Path {
        Path {
            established: true,
            ..Path::new(1460, cwnd)
        }
    }

    /// The buffer that grew from nothing over these paths.
    fn grown(config: &Config, paths: &[Path]) -> u64 {
        let mut sender = DataSender::new(config, false);
        sender.grow_buffer(config, paths);
        sender.buffer()
    }

    #[test]
    fn a_path_that_cannot_send_has_no_part_in_the_buffer() {
        let config = Config::default();
        let mut paths = [path(100), path(200)];
        let alone = grown(&config, &paths[..1]);
        assert_eq!(grown(&config, &paths), 3 * alone);
        paths[1].closing = true;
        assert_eq!(grown(&config, &paths), alone);
        (paths[1].closing, paths[1].established) = (false, false);
        assert_eq!(grown(&config, &paths), alone);
    }

    #[test]
    fn a_fixed_buffer_stays() {
        let mut config = Config::default();
        config.send_buffer.minimum = config.send_buffer.maximum;
        assert_eq!(grown(&config, &[path(100)]), config.send_buffer.default);
        let mut sender = DataSender::new(&Config::default(), false);
        sender.fix_buffer(5_000);
        sender.grow_buffer(&config, &[path(100)]);
        sender.expand_buffer(&path(100), 10, true);
        assert_eq!(sender.buffer(), 5_000);
    }
}

//! The send buffer: what the application gets into it, and how it grows.

use super::DataSender;
use crate::config::Config;
use crate::path::Path;
use crate::scheduler::FRAGMENT;
use crate::tcp::memory;

impl DataSender {
    pub fn write(&mut self, bytes: u64) {
        self.waiting = self.waiting.saturating_add(bytes);
    }

    pub fn cancel(&mut self) -> u64 {
        std::mem::take(&mut self.waiting)
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    /// Moves what waits into the buffer as far as it has room.
    pub(super) fn refill(&mut self, config: &Config, paths: &[Path]) {
        if self.waiting > 0 {
            self.grow_buffer(config, paths);
            let taken = self.waiting.min(if self.bursts {
                self.burst()
            } else {
                self.buffer.saturating_sub(self.written - self.una)
            });
            self.written += taken;
            self.waiting -= taken;
        }
    }

    /// What a writer gets in under upstream Linux: nothing until a third of a full buffer is free, then whole pieces until it is full.
    fn burst(&mut self) -> u64 {
        let queued = self.written - self.una;
        let space = self.buffer.saturating_sub(queued);
        if self.full && space < queued / 2 {
            return 0;
        }
        let most = space.next_multiple_of(FRAGMENT);
        self.full = most <= self.waiting;
        most
    }

    /// Twice the windows of all paths, within the limits (Linux `tcp_sndbuf_expand`, summed over the subflows by `__mptcp_sync_sndbuf`).
    pub(super) fn grow_buffer(&mut self, config: &Config, paths: &[Path]) {
        let wanted = |path: &Path| memory::wanted_buffer(path, config.initial_window);
        if self.by_subflow {
            self.buffer = self.least_buffer + paths.iter().map(|path| path.buffer).sum::<u64>();
        } else if !self.fixed && self.buffer < self.largest_buffer {
            let sum: u64 = paths.iter().map(wanted).sum();
            self.buffer = self.buffer.max(sum.min(self.largest_buffer));
        }
    }

    pub fn buffer(&self) -> u64 {
        self.buffer
    }
    /// The same for upstream TCP, where a writer waits and the window is not full (`tcp_should_expand_sndbuf`).
    pub(super) fn expand_buffer(&mut self, path: &Path, initial_window: u32, waits: bool) {
        if !self.fixed {
            let wanted = if waits && path.in_flight < path.cwnd {
                memory::wanted_buffer(path, initial_window)
            } else {
                memory::buffer_for(path, initial_window)
            };
            self.buffer = self.buffer.max(wanted.min(self.largest_buffer));
        }
    }
}

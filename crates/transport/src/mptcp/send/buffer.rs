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

    /// Moves what waits into the buffer as far as it has room. `limit`: the peer's window admits the stream up to there.
    pub(super) fn refill(&mut self, config: &Config, paths: &mut [Path], limit: u64) {
        if self.waiting > 0 {
            self.grow_buffer(config, paths);
            let taken = self.waiting.min(if self.bursts {
                self.burst(paths, limit)
            } else {
                self.buffer.saturating_sub(self.written - self.una)
            });
            self.written += taken;
            self.waiting -= taken;
        }
    }

    /// What a writer gets in under upstream Linux: nothing until a third of a full buffer is free, then whole pieces until it is full.
    /// In TCP the limit counts when a piece is begun; what the window admits leaves the piece meanwhile and makes room in it
    /// (`tcp_sendmsg_locked`).
    fn burst(&mut self, paths: &[Path], limit: u64) -> u64 {
        let unsent = self.written - self.sent;
        let (queued, leaving, piece) = if self.by_subflow {
            (self.written - self.una, 0, FRAGMENT)
        } else {
            let mss = u64::from(paths[0].mss.max(1));
            let admitted = (u64::from(paths[0].room()) * mss).min(limit.saturating_sub(self.sent));
            let leaving = admitted.saturating_sub(unsent);
            let piece = memory::LARGEST_BUFFER / mss * mss;
            (unsent + paths[0].memory, leaving, piece)
        };
        let space = self.buffer.saturating_sub(queued);
        if self.full && space < queued / 2 {
            return 0;
        }
        let pieces = space.saturating_sub(leaving).next_multiple_of(piece);
        let most = leaving + pieces.max(if leaving > 0 { piece } else { 0 });
        self.full = most <= self.waiting;
        most
    }

    /// Twice the windows of all paths, within the limits (Linux `tcp_sndbuf_expand`, summed over the subflows by `__mptcp_sync_sndbuf`).
    pub(super) fn grow_buffer(&mut self, config: &Config, paths: &mut [Path]) {
        let wanted = |path: &Path| memory::wanted_buffer(path, config.initial_window);
        if self.by_subflow {
            for path in paths.iter_mut() {
                let wanted = memory::next_buffer(path, config.initial_window, path.queued);
                let most = wanted.min(self.largest_buffer);
                path.buffer = path.buffer.max(most);
            }
            let open = paths.iter().filter(|path| path.established);
            self.buffer = self.least_buffer + open.map(|path| path.buffer).sum::<u64>();
        } else if !self.fixed && self.buffer < self.largest_buffer {
            let sum: u64 = if self.bursts {
                memory::next_buffer(&paths[0], config.initial_window, self.unsent())
            } else {
                paths.iter().map(wanted).sum()
            };
            self.buffer = self.buffer.max(sum.min(self.largest_buffer));
        }
    }

    pub fn buffer(&self) -> u64 {
        self.buffer
    }
}

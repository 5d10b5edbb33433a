//! A queue of the own host that keeps packets on the socket's account until they leave it.

use super::Socket;
use crate::linux::send_memory;
use crate::linux::small_queue::HostQueue;
use crate::linux::write_queue::WriteQueue;
use crate::path::Path;

impl Socket {
    /// From now on what is sent counts until [`Socket::left_host`] tells that it is gone.
    pub(crate) fn held_by_host(&mut self, path: &Path) {
        self.host_queue = Some(Box::new(HostQueue::new(path)));
    }

    /// Whether a buffer of `bytes` may be handed to the host now. It always may while no more than one, of `buffers` or the socket's own, is
    /// unacknowledged (`tcp_rtx_queue_empty_or_single_skb`).
    #[inline(always)]
    pub(crate) fn host_admits(
        &mut self,
        path: &Path,
        buffers: Option<&WriteQueue>,
        bytes: u64,
        again: bool,
    ) -> bool {
        self.host_queue.is_none() || self.queue_admits(path, buffers, bytes, again)
    }

    #[cold]
    #[inline(never)]
    fn queue_admits(
        &mut self,
        path: &Path,
        buffers: Option<&WriteQueue>,
        bytes: u64,
        again: bool,
    ) -> bool {
        let few = match buffers.or(self.queue.buffers()) {
            Some(buffers) => buffers.at_most_one_left(),
            None => u64::from(self.flight.packets()) <= send_memory::segments_sent(path),
        };
        let queue = self.host_queue.as_mut();
        few || queue.is_none_or(|queue| queue.admits(path, bytes, again))
    }

    /// Whether a buffer may be sent again now.
    #[inline(always)]
    pub(super) fn host_admits_again(&mut self, path: &Path) -> bool {
        if self.host_queue.is_none() {
            return true;
        }
        let bytes = send_memory::segments_sent(path) * u64::from(path.mss);
        self.host_admits(path, None, bytes, true)
    }

    /// A segment of `bytes` is in the host's queue no longer. True: something waits for that.
    pub(crate) fn left_host(&mut self, bytes: u32) -> bool {
        let queue = self.host_queue.as_mut();
        queue.is_some_and(|queue| queue.leave(bytes))
    }
}

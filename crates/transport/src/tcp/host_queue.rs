//! A queue of the own host: one that keeps packets on the socket's account until they leave it, and what any refused.

use super::Socket;
use crate::linux::send_memory;
use crate::linux::small_queue::HostQueue;
use crate::linux::write_queue::WriteQueue;
use crate::path::Path;

/// What a socket knows of its host's queue.
#[derive(Default)]
pub(crate) struct HostLink {
    /// What it holds, where it keeps packets on the socket's account.
    queue: Option<Box<HostQueue>>,
    /// Something that it refused waits for the next acknowledgement or timer.
    waits: bool,
    /// Times in a row that it refused something while nothing was in flight.
    refusals: u32,
}

impl HostLink {
    /// From now on what is sent counts until [`HostLink::leave`] tells that it is gone.
    pub fn hold(&mut self, path: &Path) {
        self.queue = Some(Box::new(HostQueue::new(path)));
    }

    #[inline(always)]
    fn holds(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether it admits a buffer; it always does where `few` are unacknowledged.
    #[inline(always)]
    fn admits(&mut self, path: &Path, bytes: u64, again: bool, few: impl FnOnce() -> bool) -> bool {
        let queue = self.queue.as_mut();
        queue.is_none_or(|queue| few() || queue.admits(path, bytes, again))
    }

    /// A segment with `len` bytes of payload is handed over.
    #[inline(always)]
    pub fn push(&mut self, len: u32) {
        if let Some(queue) = &mut self.queue
            && len > 0
        {
            queue.push(len);
        }
    }

    /// A segment of `bytes` is in the host's queue no longer. True: something waits for that.
    pub fn leave(&mut self, bytes: u32) -> bool {
        let queue = self.queue.as_mut();
        queue.is_some_and(|queue| queue.leave(bytes))
    }

    /// The queue refused something.
    pub fn refuse(&mut self) {
        self.waits = true;
    }

    /// It did while nothing is in flight. Returns how often in a row that happened before.
    pub fn count_refusal(&mut self) -> u32 {
        self.refusals += 1;
        self.refusals - 1
    }

    /// What it refused has to wait for the peer to be heard again.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// What waits may leave.
    pub fn resume(&mut self) {
        (self.waits, self.refusals) = (false, 0);
    }

    /// It has refused something as often as a peer may be silent.
    pub fn is_stuck(&self, retries: u32) -> bool {
        self.refusals > retries
    }
}

impl Socket {
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
        let (queue, flight) = (&self.queue, &self.transfer.flight);
        let few = || match buffers.or(queue.buffers()) {
            Some(buffers) => buffers.at_most_one_left(),
            None => u64::from(flight.packets()) <= send_memory::segments_sent(path),
        };
        self.host.admits(path, bytes, again, few)
    }

    /// Whether a buffer may be sent again now.
    #[inline(always)]
    pub(super) fn host_admits_again(&mut self, path: &Path) -> bool {
        if !self.host.holds() {
            return true;
        }
        let bytes = send_memory::segments_sent(path) * u64::from(path.mss);
        self.host_admits(path, None, bytes, true)
    }
}

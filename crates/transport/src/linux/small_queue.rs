//! How much a socket may hand to its host at once (net/ipv4/tcp_output.c `tcp_small_queue_check`, `tcp_tsq_write`).
//!
//! Most hosts pass packets on at the same instant. For them this only decides the order in which the buffers of one
//! instant leave. A host whose own queue keeps packets charged to the socket is different ([`HostQueue`]).

use super::send_memory::BUFFER_OVERHEAD;
use crate::path::Path;

/// The part of a second's worth that the host may hold (`sk_pacing_shift`), and the most (tcp_limit_output_bytes).
const PACING_SHIFT: u32 = 10;
const MOST: u64 = 4 << 20;

#[derive(Debug)]
pub(crate) struct SmallQueue {
    /// Memory of the packets that the host holds (`sk_wmem_alloc`).
    memory: u64,
    /// What it may hold in any case.
    least: u64,
}

impl SmallQueue {
    pub fn new(path: &Path) -> Self {
        Self {
            memory: 0,
            least: path.pacing_rate >> PACING_SHIFT,
        }
    }

    /// Whether a buffer of `bytes` waits until the host has passed on what it holds; the limit of a retransmission is twice as high.
    pub fn full(&self, bytes: u64, again: bool) -> bool {
        let buffer = bytes + BUFFER_OVERHEAD;
        let limit = (2 * buffer).max(self.least).min(MOST);
        self.memory >= limit << u32::from(again)
    }

    /// A buffer is handed over; each of its segments is a packet with an overhead of its own (`tcp_gso_segment`).
    pub fn push(&mut self, segments: u64, bytes: u64) {
        self.memory += bytes + segments * BUFFER_OVERHEAD;
    }

    /// The host passes on what it holds. False: it holds nothing.
    pub fn drain(&mut self) -> bool {
        std::mem::take(&mut self.memory) > 0
    }
}

/// The socket's part of a queue of its host that holds packets for a time, as tbf and htb do. (netem takes them off the socket's account on entry,
/// `skb_orphan_partial`.)
#[derive(Debug)]
pub(crate) struct HostQueue {
    held: SmallQueue,
    /// Something waits for a packet to leave the queue (TSQ_THROTTLED).
    throttled: bool,
}

impl HostQueue {
    pub fn new(path: &Path) -> Self {
        Self {
            held: SmallQueue::new(path),
            throttled: false,
        }
    }

    /// Whether a buffer of `bytes` may be handed over now. If not, the next packet to leave has it tried again.
    pub fn admits(&mut self, path: &Path, bytes: u64, again: bool) -> bool {
        self.held.least = path.pacing_rate >> PACING_SHIFT;
        let full = self.held.full(bytes, again);
        self.throttled |= full;
        !full
    }

    /// A segment of `bytes` is handed over.
    pub fn push(&mut self, bytes: u32) {
        self.held.push(1, bytes.into());
    }

    /// A segment of `bytes` has left, or was refused. True: something waits for that.
    pub fn leave(&mut self, bytes: u32) -> bool {
        let memory = u64::from(bytes) + BUFFER_OVERHEAD;
        debug_assert!(memory <= self.held.memory);
        self.held.memory = self.held.memory.saturating_sub(memory);
        std::mem::take(&mut self.throttled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1448;

    /// Two buffers of two segments, and what a slow rate sends in a millisecond is less. Four packets of 2280 bytes are more than that, three
    /// are not.
    #[test]
    fn a_slow_socket_has_two_buffers_in_its_host() {
        let mut path = Path::new(MSS, 10);
        path.pacing_rate = 1_500_000;
        let mut queue = HostQueue::new(&path);
        let buffer = 2 * u64::from(MSS);
        for _ in 0..2 {
            assert!(queue.admits(&path, buffer, false));
            queue.push(MSS);
            queue.push(MSS);
        }
        assert!(!queue.admits(&path, buffer, false));
        assert!(queue.admits(&path, buffer, true), "twice that again");
        assert!(queue.leave(MSS), "it waited");
        assert!(queue.admits(&path, buffer, false));
        assert!(!queue.leave(MSS), "nothing waits");
    }

    /// At 100 MB/s a millisecond's worth is 97 kB: 43 packets of 2280 bytes.
    #[test]
    fn a_fast_socket_has_a_millisecond_s_worth_there() {
        let mut path = Path::new(MSS, 10);
        let mut queue = HostQueue::new(&path);
        path.pacing_rate = 100_000_000;
        let mut packets = 0;
        while queue.admits(&path, MSS.into(), false) {
            queue.push(MSS);
            packets += 1;
        }
        assert_eq!(packets, 43);
    }
}

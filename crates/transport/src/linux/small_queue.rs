//! How much a socket may hand to its host at once (net/ipv4/tcp_output.c `tcp_small_queue_check`, `tcp_tsq_write`). A host passes packets
//! on at the same instant, so this only decides in which order the buffers of one instant leave.

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

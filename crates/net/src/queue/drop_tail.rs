//! First in, first out.

use super::{Occupancy, Verdict};
use crate::packet::DropReason;
use polypath_settings::model;

model! {
    "drop-tail",
    "first in, first out; refuses packets beyond a limit in packets or bytes",
    "net/sched/sch_fifo.c";
    /// Settings of a queue that drops what does not fit. Limits count waiting packets, the one being sent not included.
    DropTailConfig {
        /// Longest queue in packets, the one being sent not counted.
        packets: Option<u64> as Packets.at_least(0) = Absent(()),
        /// Longest queue in bytes.
        bytes: Option<u64> as Size.at_least(0) = Absent(()),
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DropTail {
    packets: u64,
    bytes: u64,
}

impl DropTail {
    pub fn new(config: DropTailConfig) -> Self {
        Self {
            packets: config.packets.unwrap_or(u64::MAX),
            bytes: config.bytes.unwrap_or(u64::MAX),
        }
    }

    /// In packets and in bytes.
    pub fn limits(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    pub fn admit(&self, size: u32, queue: Occupancy) -> Verdict {
        let longer = queue.bytes + u64::from(size) > self.bytes;
        if queue.idle.is_none() && (queue.packets >= self.packets || longer) {
            Verdict::Drop(DropReason::QueueFull)
        } else {
            Verdict::Pass
        }
    }
}

//! Queue disciplines: which packets a channel takes, marks or drops.
//!
//! A new discipline is a file here, a variant of [`Discipline`] and a line in [`MODELS`].

mod codel;
mod red;

use rand_pcg::Pcg64Mcg;

use crate::config::{Model, QueueConfig};
use crate::ids::Nanos;
use crate::packet::DropReason;
use codel::Codel;
use red::Red;

/// The queue disciplines, by name.
pub const MODELS: &[Model] = &[
    Model {
        name: "drop-tail",
        summary: "first in, first out; refuses packets beyond a limit in packets or bytes",
        source: "net/sched/sch_fifo.c",
        parameters: &["packets", "bytes"],
    },
    red::MODEL,
    codel::MODEL,
];

/// What a discipline makes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop(DropReason),
}

/// The queue as an arriving packet finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    /// Nothing waits and nothing is being sent.
    pub idle: bool,
    /// How many packets of this one's length could have been sent since the queue became idle.
    pub idle_packets: u64,
    /// Packets that wait, the one being sent not included.
    pub packets: u64,
    /// Their length, overhead included.
    pub bytes: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Discipline {
    DropTail { packets: u64, bytes: u64 },
    Red(Red),
    Codel(Codel),
}

impl Discipline {
    pub fn new(config: &QueueConfig) -> Self {
        match *config {
            QueueConfig::DropTail { packets, bytes } => Self::DropTail {
                packets: packets.unwrap_or(u64::MAX),
                bytes: bytes.unwrap_or(u64::MAX),
            },
            QueueConfig::Red {
                min,
                max,
                probability,
                weight,
                gentle,
                limit,
                ecn,
            } => Self::Red(Red {
                min,
                max,
                probability,
                weight,
                gentle,
                limit,
                ecn,
                average: 0.0,
                since_last: None,
            }),
            QueueConfig::Codel {
                target,
                interval,
                limit,
                ecn,
            } => Self::Codel(Codel::new(target, interval, limit, ecn)),
        }
    }

    /// Whether it decides on packets as they leave.
    pub fn decides_at_departure(&self) -> bool {
        matches!(self, Self::Codel(_))
    }

    /// Decides on a packet of `size` bytes that arrives.
    pub fn admit(
        &mut self,
        size: u32,
        ecn_capable: bool,
        queue: Occupancy,
        rng: &mut Pcg64Mcg,
    ) -> Verdict {
        let full = |limit: u64| !queue.idle && queue.packets >= limit;
        match self {
            Self::DropTail { packets, bytes } => {
                if full(*packets) || !queue.idle && queue.bytes + u64::from(size) > *bytes {
                    Verdict::Drop(DropReason::QueueFull)
                } else {
                    Verdict::Pass
                }
            }
            Self::Red(red) => {
                let verdict = red.admit(ecn_capable, queue, rng);
                if full(red.limit) {
                    Verdict::Drop(DropReason::QueueFull)
                } else {
                    verdict
                }
            }
            Self::Codel(codel) if full(codel.limit) => Verdict::Drop(DropReason::QueueFull),
            Self::Codel(_) => Verdict::Pass,
        }
    }

    /// Decides on a packet that would leave at `now` after waiting for `sojourn`; `bytes` wait behind it.
    pub fn release(
        &mut self,
        now: Nanos,
        size: u32,
        ecn_capable: bool,
        sojourn: Nanos,
        bytes: u64,
    ) -> Verdict {
        match self {
            Self::Codel(codel) => codel.release(now, size, ecn_capable, sojourn, bytes),
            Self::DropTail { .. } | Self::Red(_) => Verdict::Pass,
        }
    }
}

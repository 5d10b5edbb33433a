//! Step marking: first in, first out, with a mark on what arrives at more than a few packets (Alizadeh et al., SIGCOMM 2010).

use super::{Occupancy, Verdict};
use crate::packet::DropReason;
use polypath_settings::model;

model! {
    "step",
    "first in, first out; marks ECN-capable packets that find more than a number waiting, as DCTCP wants it",
    "Alizadeh et al., SIGCOMM 2010, section 3.1; RFC 8257 section 3.1";
    /// Settings of step marking. Lengths count waiting packets, the one being sent not included.
    StepConfig {
        /// A packet that finds more than this waiting is marked if its transport is ECN-capable.
        mark_above: u64 as Packets.at_least(0),
        /// Longest queue.
        limit: u64 as Packets.at_least(0) = Integer(1000),
    }
}

/// By the length now, not an average. Packets that cannot be marked wait as in a drop-tail queue.
pub(super) fn admit(config: StepConfig, ecn_capable: bool, queue: Occupancy) -> Verdict {
    if queue.idle.is_none() && queue.packets >= config.limit {
        Verdict::Drop(DropReason::QueueFull)
    } else if ecn_capable && queue.packets > config.mark_above {
        Verdict::Mark
    } else {
        Verdict::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_on_arrival_decides() {
        let config = StepConfig {
            mark_above: 20,
            limit: 100,
        };
        let verdict = |packets, capable| {
            let queue = Occupancy {
                idle: None,
                packets,
                bytes: 1500 * packets,
            };
            admit(config, capable, queue)
        };
        assert_eq!(verdict(20, true), Verdict::Pass);
        assert_eq!(verdict(21, true), Verdict::Mark);
        assert_eq!(verdict(21, false), Verdict::Pass);
        assert_eq!(verdict(99, true), Verdict::Mark);
        let full = Verdict::Drop(DropReason::QueueFull);
        assert_eq!((verdict(100, true), verdict(100, false)), (full, full));
    }
}

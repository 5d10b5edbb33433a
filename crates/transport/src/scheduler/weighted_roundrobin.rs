//! Round robin in proportion to weights.

use super::SchedulerEntry;
use super::patience::{self, Patience};
use super::rescue::{self, Unasked};
use super::roundrobin::RoundRobin;
use crate::registry::Parameter;

pub(super) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "weighted-roundrobin",
    description: "Each path in turn, as many segments as its weight says; backups only when no other path is usable",
    source: "SIGCOMM 2020 tutorial on multipath transport protocols (exercise)",
    parameters: || {
        let own = vec![
            Parameter::integers(
                "weights",
                &[2, 1],
                1,
                255,
                "segments of each path's turn, in the order of the paths; the last one holds for all further paths",
            ),
            Parameter::boolean(
                "cwnd_limited",
                false,
                "skip a path whose congestion window is full; otherwise wait until its turn can be taken",
            ),
            patience::taking_turns(),
        ];
        rescue::parameters(own, Unasked::Off)
    },
    make: |parameters| {
        let weights = parameters.integers("weights");
        Box::new(RoundRobin::new(
            weights.iter().map(|&weight| weight as u32).collect(),
            parameters.boolean("cwnd_limited"),
            Patience::of(parameters),
        ))
    },
};

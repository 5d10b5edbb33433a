//! Round robin in proportion to weights.

use polypath_settings::{Algorithm, algorithm};

use super::Scheduler;
use super::patience::{self, Patience};
use super::rescue::{self, Help};
use super::roundrobin::RoundRobin;

algorithm! {
    "weighted-roundrobin",
    "Each path in turn, as many segments as its weight says; backups only when no other path is usable",
    "SIGCOMM 2020 tutorial on multipath transport protocols (exercise)";
    /// Settings of weighted round robin.
    WeightedRoundRobinConfig {
        /// segments of each path's turn, in the order of the paths; the last one holds for all further paths
        weights: Vec<u32> as Integers.at_least(1).at_most(255) = Integers(&[2, 1]),
        /// skip a path whose congestion window is full; otherwise wait until its turn can be taken
        cwnd_limited: bool as Boolean = Boolean(false),
        ..patience: Patience = patience::TAKING_TURNS,
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for WeightedRoundRobinConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(RoundRobin {
            turns: self.weights,
            skip_full: self.cwnd_limited,
            patience: self.patience,
            help: self.help,
            quota: Vec::new(),
        })
    }
}

//! Fixed shares of the bytes.

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::thresholds::{self, Judge, Thresholds};
use super::{Carried, Decision, Scheduler, View, candidates_of_class, lowest_rtt, ready};

algorithm! {
    "load-balancing",
    "Bytes in proportion to weights, waiting for a full path; none on a path that exceeds a threshold while another does not",
    "3GPP TS 23.501 clause 5.32.8 (load-balancing with fixed percentages)";
    /// Settings of fixed shares.
    LoadBalancingConfig {
        /// weight of each path, in the order of the paths; the last one holds for all further paths. A path of weight 0 is for when no other is usable
        weights: Vec<u32> as Integers.at_least(0).at_most(100) = Integers(&[50]),
        ..thresholds: Thresholds = thresholds::OFF,
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for LoadBalancingConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(LoadBalancing {
            weights: self.weights,
            judge: Judge::new(self.thresholds),
            help: self.help,
            carried: Vec::new(),
        })
    }
}

/// The counts are halved whenever they reach this many bytes: a path that comes back does not owe all that the others carried.
const WINDOW: u64 = 1 << 20;

struct LoadBalancing {
    weights: Vec<u32>,
    judge: Judge,
    help: Help,
    /// Bytes that each path carried lately.
    carried: Vec<u64>,
}

impl LoadBalancing {
    fn weight(&self, index: usize) -> u64 {
        self.weights[index.min(self.weights.len() - 1)].into()
    }

    /// The candidate that is furthest behind its share.
    fn behind(&self, view: &View) -> Option<usize> {
        let candidates = || candidates_of_class(view.paths);
        let weighted = candidates().any(|index| self.weight(index) > 0);
        let within = |index: &usize| !self.judge.exceeds(view.paths, *index);
        let any_within = candidates()
            .filter(|&index| !weighted || self.weight(index) > 0)
            .any(|index| within(&index));
        let mut best: Option<usize> = None;
        for index in candidates() {
            if (weighted && self.weight(index) == 0) || (any_within && !within(&index)) {
                continue;
            }
            let ahead = |other: usize| {
                let (own, its) = (self.weight(index).max(1), self.weight(other).max(1));
                self.carried[index] * its < self.carried[other] * own
            };
            if best.is_none_or(ahead) {
                best = Some(index);
            }
        }
        best
    }

    fn count(&mut self, path: usize, bytes: u32) {
        if self.carried.len() <= path {
            self.carried.resize(path + 1, 0);
        }
        self.carried[path] += u64::from(bytes);
        if self.carried.iter().sum::<u64>() >= WINDOW {
            self.carried.iter_mut().for_each(|bytes| *bytes /= 2);
        }
    }
}

impl Scheduler for LoadBalancing {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn select(&mut self, view: &View) -> Decision {
        self.judge.see(view.paths);
        let Some(next) = &view.next else {
            return Decision::Wait;
        };
        if !next.carried.is_empty() {
            return lowest_rtt::place(view, next);
        }
        self.carried.resize(view.paths.len(), 0);
        self.behind(view)
            .filter(|&index| ready(&view.paths[index]))
            .map_or(Decision::Wait, Decision::Send)
    }

    fn carried(&mut self, segment: Carried) {
        self.count(segment.path, segment.bytes);
    }

    fn carries_datagrams(&mut self, path: usize, bytes: u32) {
        self.count(path, bytes);
    }
}

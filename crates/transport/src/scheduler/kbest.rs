//! The k paths of lowest RTT in turn.

use polypath_settings::{Algorithm, algorithm};

use super::patience::{self, Patience};
use super::rescue::{self, Help, Rescuer};
use super::{Carried, Decision, PathSet, Scheduler, View, candidates_of_class, lowest_rtt};
use crate::path::Path;

algorithm! {
    "kbest",
    "Round robin over the k paths of lowest smoothed RTT, chosen anew after each round",
    "Ly, Lam, Dubois and Ravier, student project on MPTCP over OpenFlow, supervised by S. Secci";
    /// Settings of the k best paths.
    KBestConfig {
        /// paths that carry data
        k: u32 as Integer.at_least(1).at_most(64) = Integer(2),
        ..patience: Patience = patience::TAKING_TURNS,
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for KBestConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(KBest {
            k: self.k as usize,
            patience: self.patience,
            help: self.help,
            members: Vec::new(),
            served: PathSet::default(),
        })
    }
}

struct KBest {
    k: usize,
    patience: Patience,
    help: Help,
    members: Vec<usize>,
    /// Members that had their turn in this round.
    served: PathSet,
}

impl KBest {
    fn renew(&mut self, paths: &[Path]) {
        self.members = candidates_of_class(paths).collect();
        self.members
            .sort_by_key(|&index| (paths[index].srtt, index));
        self.members.truncate(self.k);
        self.served = PathSet::default();
    }

    /// Whether every member can still carry data, and no free place could be filled.
    fn settled(&self, paths: &[Path]) -> bool {
        let eligible = candidates_of_class(paths).count();
        self.members.len() == self.k.min(eligible)
            && self
                .members
                .iter()
                .all(|&index| candidates_of_class(paths).any(|other| other == index))
    }

    fn next(&self, paths: &[Path]) -> Option<usize> {
        self.members
            .iter()
            .copied()
            .find(|&index| !self.served.contains(index) && self.patience.considers(&paths[index]))
    }
}

impl Scheduler for KBest {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn select(&mut self, view: &View) -> Decision {
        let Some(next) = &view.next else {
            return Decision::Wait;
        };
        if next.reinjection {
            return lowest_rtt::place(view, next);
        }
        if !self.settled(view.paths) {
            self.renew(view.paths);
        }
        let path = self.next(view.paths).or_else(|| {
            self.renew(view.paths);
            self.next(view.paths)
        });
        path.filter(|&index| !view.paths[index].paced)
            .map_or(Decision::Wait, Decision::Send)
    }

    fn carried(&mut self, segment: Carried) {
        if segment.new {
            self.served.insert(segment.path);
        }
    }
}

//! The k paths of lowest RTT in turn.

use super::patience::{self, Patience};
use super::rescue::{self, Unasked};
use super::{
    Carried, Decision, PathSet, Scheduler, SchedulerEntry, View, candidates_of_class, lowest_rtt,
};
use crate::path::Path;
use crate::registry::Parameter;

pub(super) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "kbest",
    description: "Round robin over the k paths of lowest smoothed RTT, chosen anew after each round",
    source: "Ly, Lam, Dubois and Ravier, student project on MPTCP over OpenFlow, supervised by S. Secci",
    parameters: || {
        let own = vec![
            Parameter::integer("k", 2, 1, 64, "paths that carry data"),
            patience::taking_turns(),
        ];
        rescue::parameters(own, Unasked::Off)
    },
    make: |parameters| {
        Box::new(KBest {
            k: parameters.integer("k") as usize,
            patience: Patience::of(parameters),
            members: Vec::new(),
            served: PathSet::default(),
        })
    },
};

struct KBest {
    k: usize,
    patience: Patience,
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

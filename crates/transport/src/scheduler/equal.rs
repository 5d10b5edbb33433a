//! The same number of bytes on every path.

use super::rescue::{self, Unasked};
use super::{
    Carried, Decision, Scheduler, SchedulerEntry, View, candidates_of_class, lowest_rtt, ready,
};

pub(super) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "equal",
    description: "The same number of bytes on every path, at the pace of the slowest",
    source: "Ly, Lam, Dubois and Ravier, student project on MPTCP over OpenFlow, supervised by S. Secci",
    parameters: || rescue::parameters(Vec::new(), Unasked::Off),
    make: |_| {
        Box::new(Equal {
            carried: Vec::new(),
        })
    },
};

struct Equal {
    /// Bytes of each path; one that joins later starts level with the least of the others.
    carried: Vec<Option<u64>>,
}

impl Equal {
    fn count(&mut self, path: usize, bytes: u32) {
        if let Some(Some(carried)) = self.carried.get_mut(path) {
            *carried += u64::from(bytes);
        }
    }
}

impl Scheduler for Equal {
    fn select(&mut self, view: &View) -> Decision {
        let Some(next) = &view.next else {
            return Decision::Wait;
        };
        if next.reinjection {
            return lowest_rtt::place(view, next);
        }
        self.carried.resize(view.paths.len(), None);
        let level = candidates_of_class(view.paths)
            .filter_map(|index| self.carried[index])
            .min()
            .unwrap_or(0);
        for index in candidates_of_class(view.paths) {
            self.carried[index].get_or_insert(level);
        }
        let turn = candidates_of_class(view.paths)
            .min_by_key(|&index| (self.carried[index], view.paths[index].srtt, index));
        turn.filter(|&index| ready(&view.paths[index]))
            .map_or(Decision::Wait, Decision::Send)
    }

    fn carried(&mut self, segment: Carried) {
        self.count(segment.path, segment.bytes);
    }

    fn carries_datagrams(&mut self, path: usize, bytes: u32) {
        self.count(path, bytes);
    }
}

//! The same number of bytes on every path.

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::{Carried, Decision, Scheduler, View, candidates_of_class, lowest_rtt, ready};

algorithm! {
    "equal",
    "The same number of bytes on every path, at the pace of the slowest",
    "Ly, Lam, Dubois and Ravier, student project on MPTCP over OpenFlow, supervised by S. Secci";
    /// Settings of equal shares.
    EqualConfig {
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for EqualConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(Equal {
            help: self.help,
            carried: Vec::new(),
        })
    }
}

struct Equal {
    help: Help,
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

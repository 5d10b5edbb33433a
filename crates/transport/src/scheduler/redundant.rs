//! Every segment on every path.

use super::{Decision, Scheduler, SchedulerEntry, View, lowest_rtt, ready, usable};
use crate::path::Path;
use crate::registry::no_parameters;

pub(super) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "redundant",
    description: "Every path sends the whole stream; what arrives first counts",
    source: "Froemmgen et al., ICC 2016; mptcp.org net/mptcp/mptcp_redundant.c",
    parameters: no_parameters,
    make: |_| {
        Box::new(Redundant {
            pointers: Vec::new(),
            last: 0,
        })
    },
};

struct Redundant {
    /// The offset that each path sends next.
    pointers: Vec<u64>,
    /// The path that sent last; the next one is asked first.
    last: usize,
}

impl Redundant {
    fn usable(paths: &[Path], index: usize) -> bool {
        let path = &paths[index];
        let only_backups = paths.iter().all(|other| other.backup || !usable(other));
        usable(path) && (!path.backup || only_backups)
    }
}

impl Scheduler for Redundant {
    fn select(&mut self, view: &View) -> Decision {
        if let Some(next) = view.next.filter(|next| next.reinjection) {
            return lowest_rtt::choose(view.paths, &next).map_or(Decision::Wait, Decision::Send);
        }
        let count = view.paths.len();
        self.pointers.resize(count, 0);
        for step in 1..=count {
            let index = (self.last + step) % count;
            let path = &view.paths[index];
            if !Self::usable(view.paths, index) || !ready(path) {
                continue;
            }
            let pointer = self.pointers[index].max(view.una);
            let decision = if pointer < view.sent {
                let end = (pointer + u64::from(path.mss)).min(view.sent);
                self.pointers[index] = end;
                Decision::Repeat {
                    path: index,
                    offset: pointer,
                }
            } else if let Some(next) = view.next {
                self.pointers[index] = next.offset + next.len.min(u64::from(path.mss));
                Decision::Send(index)
            } else {
                continue;
            };
            self.last = index;
            return decision;
        }
        Decision::Wait
    }
}

//! The path of highest priority as long as it is not congested.
//!
//! In clause 5.32.8 of 3GPP TS 23.501 an access is congested when a threshold is exceeded, or when the implementation finds so.
//! Here a path is congested if data waits for it, its window full or its pacer closed, for some time.
//!
//! Without such a time each burst that does not fit the window takes the next path ("cheapest pipe first"). The capacity of the first
//! might do for the load. Amend, Rakocevic and Habermann measured this for video, and delay the access to the dear path.

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::thresholds::{self, Judge, Thresholds};
use super::{Carried, Decision, PathSet, Scheduler, View, candidates_of_class, ready};
use crate::Nanos;
use crate::path::Path;

algorithm! {
    "priority",
    "The path of highest priority, and the next ones while it is congested: data waits for it too long, or it exceeds a threshold",
    "3GPP TS 23.501 clause 5.32.8 (priority-based); Amend, Rakocevic and Habermann, IEEE CCNC 2021 (delayed access)";
    /// Settings of overflow by priority.
    PriorityConfig {
        /// priority of each path, in the order of the paths, the least number first; the last one holds for all further paths
        priorities: Vec<u32> as Integers.at_least(1).at_most(255) = Integers(&[1, 2]),
        /// how long data waits before it takes a path of lower priority
        wait_ms: f64 as Number.within(0.0, 60_000.0) = Number(0.0),
        ..thresholds: Thresholds = thresholds::OFF,
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for PriorityConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(Priority {
            priorities: self.priorities,
            wait: (self.wait_ms * 1e6) as Nanos,
            judge: Judge::new(self.thresholds),
            help: self.help,
            since: None,
            unsent: 0,
        })
    }
}

/// Whether a path exceeds a threshold, and its priority.
type Rank = (bool, u32);
type Open = (Rank, usize);

struct Priority {
    priorities: Vec<u32>,
    wait: Nanos,
    judge: Judge,
    help: Help,
    /// Since when some data has waited for the first choice.
    since: Option<Nanos>,
    /// Bytes that waited at the last decision.
    unsent: u64,
}

impl Priority {
    /// The least number first. What exceeds a threshold comes after what does not.
    fn rank(&self, paths: &[Path], index: usize) -> Rank {
        let priority = self.priorities[index.min(self.priorities.len() - 1)];
        (self.judge.exceeds(paths, index), priority)
    }

    /// The least rank of the paths that have not carried the data, and of the ready ones that of least rank and round trip.
    fn first_and_open(&self, paths: &[Path], carried: PathSet) -> Option<(Rank, Option<Open>)> {
        let fresh = || candidates_of_class(paths).filter(|&index| !carried.contains(index));
        let first = fresh().map(|index| self.rank(paths, index)).min()?;
        let ready = fresh().filter(|&index| ready(&paths[index]));
        let open = ready
            .map(|index| (self.rank(paths, index), paths[index].srtt, index))
            .min();
        Some((first, open.map(|(rank, _, index)| (rank, index))))
    }
}

impl Scheduler for Priority {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn select(&mut self, view: &View) -> Decision {
        self.judge.see(view.paths);
        let Some(next) = &view.next else {
            self.since = None;
            return Decision::Wait;
        };
        self.unsent = view.unsent;
        let anywhere = || self.first_and_open(view.paths, PathSet::default());
        let found = self.first_and_open(view.paths, next.carried);
        match found.or_else(anywhere) {
            Some((first, Some((rank, path)))) if rank == first => Decision::Send(path),
            Some((_, open)) => {
                let since = *self.since.get_or_insert(view.now);
                let overflows = view.now - since >= self.wait;
                open.filter(|_| overflows)
                    .map_or(Decision::Wait, |(_, path)| Decision::Send(path))
            }
            None => Decision::Wait,
        }
    }

    fn carried(&mut self, segment: Carried) {
        if segment.new && u64::from(segment.bytes) >= self.unsent {
            self.since = None;
        }
    }
}

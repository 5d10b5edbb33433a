//! Round robin over the paths with room.

use polypath_settings::{Algorithm, algorithm};

use super::patience::{self, Patience};
use super::rescue::{self, Help, Rescuer};
use super::{Carried, Decision, Scheduler, View, candidates_of_class, has_room};
use crate::path::{CaState, Path};

algorithm! {
    "roundrobin",
    "The same number of segments on each path in turn; backups only when no other path is usable",
    "mptcp.org net/mptcp/mptcp_rr.c";
    /// Settings of round robin.
    RoundRobinConfig {
        /// segments on a path before the next one's turn
        num_segments: u32 as Integer.at_least(1).at_most(255) = Integer(1),
        /// skip a path whose congestion window is full; otherwise wait until its turn can be taken
        cwnd_limited: bool as Boolean = Boolean(true),
        ..patience: Patience = patience::TAKING_TURNS,
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for RoundRobinConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(RoundRobin {
            turns: vec![self.num_segments],
            skip_full: self.cwnd_limited,
            patience: self.patience,
            help: self.help,
            quota: Vec::new(),
        })
    }
}

pub(super) struct RoundRobin {
    /// Segments of each path's turn; the last entry holds for all further paths.
    pub turns: Vec<u32>,
    pub skip_full: bool,
    pub patience: Patience,
    pub help: Help,
    /// Segments that each path sent in this turn.
    pub quota: Vec<u32>,
}

impl RoundRobin {
    fn turn_of(&self, index: usize) -> u32 {
        self.turns[index.min(self.turns.len() - 1)]
    }

    fn considered(&self, path: &Path) -> bool {
        path.state != CaState::Loss && (!self.skip_full || self.patience.considers(path))
    }

    /// A path in the middle of its turn, else one whose turn has not begun. mptcp_rr.c takes backups for normal paths, against RFC 8684
    /// section 3.3.8.
    fn turn(&self, paths: &[Path]) -> Option<usize> {
        let considered =
            || candidates_of_class(paths).filter(|&index| self.considered(&paths[index]));
        considered()
            .find(|&index| (1..self.turn_of(index)).contains(&self.quota[index]))
            .or_else(|| considered().find(|&index| self.quota[index] == 0))
    }
}

impl Scheduler for RoundRobin {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn select(&mut self, view: &View) -> Decision {
        let Some(next) = &view.next else {
            return Decision::Wait;
        };
        self.quota.resize(view.paths.len(), 0);
        if next.reinjection {
            let fresh = |index: &usize| !next.carried.contains(*index);
            let open = || {
                candidates_of_class(view.paths).filter(|&index| super::ready(&view.paths[index]))
            };
            return open()
                .find(fresh)
                .or_else(|| open().next())
                .map_or(Decision::Wait, Decision::Send);
        }
        let path = self.turn(view.paths).or_else(|| {
            for index in candidates_of_class(view.paths) {
                if self.considered(&view.paths[index]) {
                    self.quota[index] = 0;
                }
            }
            self.turn(view.paths)
        });
        match path {
            Some(path) if has_room(&view.paths[path]) => Decision::Send(path),
            _ => Decision::Wait,
        }
    }

    fn carried(&mut self, segment: Carried) {
        if segment.new {
            self.quota[segment.path] += 1;
        }
    }
}

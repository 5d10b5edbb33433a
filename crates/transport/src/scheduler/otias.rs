//! OTIAS: out-of-order transmission for in-order arrival.

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::{Decision, Scheduler, View, candidates_of_class, lowest_rtt};
use crate::Nanos;
use crate::path::Path;

algorithm! {
    "otias",
    "The path on which the segment arrives first, queueing there even when its window is full",
    "Yang et al., 2014 (out-of-order transmission for in-order arrival scheduling)";
    /// Settings of OTIAS.
    OtiasConfig {
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for OtiasConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(Otias { help: self.help })
    }
}

struct Otias {
    help: Help,
}

/// When a segment given to this path now would arrive: the round trips until it may leave, then half a one. Nobody knows where it would
/// have to wait for round trips that no sample tells.
fn arrival(path: &Path) -> Nanos {
    let (room, window) = (u64::from(path.room()), u64::from(path.cwnd.max(1)));
    let queued = path.queued.div_ceil(u64::from(path.mss));
    let rounds = if queued < room {
        0
    } else {
        (queued - room + 1).div_ceil(window)
    };
    if rounds > 0 && path.srtt == 0 {
        return Nanos::MAX;
    }
    rounds * path.srtt + path.srtt / 2
}

impl Scheduler for Otias {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn fills_queues(&self) -> bool {
        true
    }

    fn select(&mut self, view: &View) -> Decision {
        let Some(next) = &view.next else {
            return Decision::Wait;
        };
        if next.reinjection {
            return lowest_rtt::place(view, next);
        }
        candidates_of_class(view.paths)
            .min_by_key(|&index| (arrival(&view.paths[index]), index))
            .map_or(Decision::Wait, Decision::Send)
    }
}

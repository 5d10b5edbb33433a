//! STTF: shortest transfer time first.

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::{Decision, Scheduler, View, candidates_of_class, lowest_rtt, ready};
use crate::Nanos;
use crate::path::Path;

algorithm! {
    "sttf",
    "The path on which the segment arrives first, its window's growth foreseen; waits for it if it is full",
    "Hurtig et al., IEEE/ACM ToN 2019 (low-latency scheduling in MPTCP)";
    /// Settings of STTF.
    SttfConfig {
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for SttfConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(Sttf { help: self.help })
    }
}

struct Sttf {
    help: Help,
}

/// When a segment given to this path would arrive, behind what is in flight there, as the window grows round by round.
fn arrival(path: &Path) -> Nanos {
    let mut ahead = u64::from(path.in_flight) + path.queued.div_ceil(u64::from(path.mss));
    let (mut window, mut rounds) = (u64::from(path.cwnd.max(1)), 0);
    while ahead >= window {
        ahead -= window;
        rounds += 1;
        window = if window < u64::from(path.ssthresh) {
            2 * window
        } else {
            window + 1
        };
    }
    rounds * path.srtt + path.srtt / 2
}

impl Scheduler for Sttf {
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
        let best = candidates_of_class(view.paths)
            .min_by_key(|&index| (arrival(&view.paths[index]), index));
        best.filter(|&index| ready(&view.paths[index]))
            .map_or(Decision::Wait, Decision::Send)
    }
}

//! STTF: shortest transfer time first.

use super::rescue::{self, Unasked};
use super::{Decision, Scheduler, SchedulerEntry, View, candidates_of_class, lowest_rtt, ready};
use crate::Nanos;
use crate::path::Path;

pub(super) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "sttf",
    description: "The path on which the segment arrives first, its window's growth foreseen; waits for it if it is full",
    source: "Hurtig et al., IEEE/ACM ToN 2019 (low-latency scheduling in MPTCP)",
    parameters: || rescue::parameters(Vec::new(), Unasked::Off),
    make: |_| Box::new(Sttf),
};

struct Sttf;

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

//! The default scheduler: lowest smoothed RTT first, with backups, opportunistic retransmission and penalisation.

use super::{
    Blocked, Decision, Next, PathSet, Rescue, Scheduler, SchedulerEntry, View, ready, usable,
};
use crate::Nanos;
use crate::path::{CaState, Path};
use crate::registry::Parameter;

pub(super) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "default",
    description: "Lowest smoothed RTT among the paths with room; backups only when no other path is usable",
    source: "mptcp.org net/mptcp/mptcp_sched.c; Raiciu et al., NSDI 2012, section 4.2; Paasch et al., CSWS 2014",
    parameters: || {
        vec![
            Parameter::boolean(
                "opportunistic_retransmission",
                true,
                "send the blocking segment again on a faster path (M1)",
            ),
            Parameter::boolean(
                "penalisation",
                true,
                "halve the window of the path that blocks (M2)",
            ),
        ]
    },
    make: |parameters| {
        Box::new(LowestRtt {
            opportunistic: parameters.boolean("opportunistic_retransmission"),
            penalisation: parameters.boolean("penalisation"),
            last_penalty: None,
        })
    },
};

pub(super) struct LowestRtt {
    opportunistic: bool,
    penalisation: bool,
    last_penalty: Option<Nanos>,
}

impl LowestRtt {
    /// As mptcp.org's schedulers have it that take their choice from the default one, or from a copy of it.
    pub(super) fn inherited() -> Self {
        Self {
            opportunistic: true,
            penalisation: true,
            last_penalty: None,
        }
    }
}

/// A path the holder of the head must exceed in window, or its RTT in multiples of the free path's, to be left alone (mptcp.org).
const SMALL_WINDOW: u32 = 4;
const MUCH_SLOWER: Nanos = 4;

/// The usable path of lowest smoothed RTT among those of one class that have not carried the segment.
struct Candidates {
    best: Option<usize>,
    /// Some usable path of the class has not carried the segment, ready or not.
    unused: bool,
}

fn candidates(paths: &[Path], carried: PathSet, backup: bool) -> Candidates {
    let mut found = Candidates {
        best: None,
        unused: false,
    };
    for (index, path) in paths.iter().enumerate() {
        if path.backup != backup || !usable(path) || carried.contains(index) {
            continue;
        }
        found.unused = true;
        if ready(path) && found.best.is_none_or(|best| path.srtt < paths[best].srtt) {
            found.best = Some(index);
        }
    }
    found
}

/// The default choice for `next`: a normal path, else (only when no normal one is usable) a backup.
fn choose(paths: &[Path], next: &Next) -> Option<usize> {
    let pick = |carried| {
        let normal = candidates(paths, carried, false);
        if normal.unused {
            normal
        } else {
            candidates(paths, carried, true)
        }
    };
    let first = pick(next.carried);
    if first.unused || next.carried.is_empty() {
        return first.best;
    }
    // Every path carried it: any may carry it again.
    pick(PathSet::default()).best
}

/// The default decision for `next`.
pub fn place(view: &View, next: &Next) -> Decision {
    choose(view.paths, next).map_or(Decision::Wait, Decision::Send)
}

impl Scheduler for LowestRtt {
    fn select(&mut self, view: &View) -> Decision {
        match &view.next {
            Some(next) => place(view, next),
            None => Decision::Wait,
        }
    }

    fn rescue(&mut self, view: &View, cause: Blocked) -> Rescue {
        let mut rescue = Rescue::default();
        let Some(head) = view.head else { return rescue };
        let next = Next {
            offset: head.offset,
            len: 0,
            carried: PathSet::default(),
            reinjection: true,
        };
        let Some(free) = choose(view.paths, &next) else {
            return rescue;
        };
        let (fast, holder) = (&view.paths[free], &view.paths[head.holder]);
        let slower = free != head.holder && fast.srtt < holder.srtt;
        let due = self
            .last_penalty
            .is_none_or(|last| view.now - last >= fast.srtt);
        if self.penalisation
            && cause == Blocked::ReceiveWindow
            && slower
            && holder.state == CaState::Open
            && due
        {
            self.last_penalty = Some(view.now);
            rescue.penalise = Some(head.holder);
        }
        let worthwhile = holder.cwnd <= SMALL_WINDOW || holder.srtt > MUCH_SLOWER * fast.srtt;
        if self.opportunistic && !head.carried.contains(free) && worthwhile {
            rescue.repeat_head_on = Some(free);
        }
        rescue
    }
}

//! The default scheduler: lowest smoothed RTT first, with backups, opportunistic retransmission and penalisation.

use polypath_settings::{Algorithm, algorithm};

use super::patience::{self, Patience};
use super::rescue::{self, Help, Rescuer};
use super::{Decision, Next, PacketKind, PathSet, Scheduler, View, ready, usable};
use crate::Nanos;
use crate::path::Path;

algorithm! {
    "default",
    "Lowest smoothed RTT among the paths with room; backups only when no other path is usable; repeats and penalises when blocked (M1, M2)",
    "mptcp.org net/mptcp/mptcp_sched.c; Raiciu et al., NSDI 2012, section 4.2; Paasch et al., CSWS 2014";
    /// Settings of the default scheduler.
    LowestRttConfig {
        ..patience: Patience = patience::PREFERRING,
        ..help: Help = rescue::ON
    }
}

impl Algorithm<dyn Scheduler> for LowestRttConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(LowestRtt {
            patience: self.patience,
            help: self.help,
        })
    }
}

struct LowestRtt {
    patience: Patience,
    help: Help,
}

/// The usable path of lowest smoothed RTT among those of one class that have not carried the segment.
struct Candidates {
    best: Option<usize>,
    /// Some usable path of the class has not carried the segment, ready or not.
    unused: bool,
}

fn candidates(
    paths: &[Path],
    carried: PathSet,
    backup: bool,
    open: impl Fn(&Path) -> bool,
) -> Candidates {
    let mut found = Candidates {
        best: None,
        unused: false,
    };
    for (index, path) in paths.iter().enumerate() {
        if path.backup != backup || !usable(path) || carried.contains(index) {
            continue;
        }
        found.unused = true;
        if open(path) && found.best.is_none_or(|best| path.srtt < paths[best].srtt) {
            found.best = Some(index);
        }
    }
    found
}

/// The best of [`candidates`] among the normal paths for what none has carried, which most decisions are about. What is false of most
/// paths, that the window has room, is looked at first.
#[inline]
fn best_for_new(paths: &[Path], open: impl Fn(&Path) -> bool) -> Option<usize> {
    let mut best = None;
    let mut least = Nanos::MAX;
    for (index, path) in paths.iter().enumerate() {
        if !path.window_full() && path.srtt < least && !path.backup && usable(path) && open(path) {
            (best, least) = (Some(index), path.srtt);
        }
    }
    best
}

/// The default choice for `next` among the paths that are `open`: a normal one, else (only when no normal one is usable) a backup.
#[inline]
fn choose_open(paths: &[Path], next: &Next, open: impl Fn(&Path) -> bool + Copy) -> Option<usize> {
    if next.carried.is_empty()
        && let Some(best) = best_for_new(paths, open)
    {
        return Some(best);
    }
    choose_among_classes(paths, next, open)
}

/// The same among those that can carry it right now.
pub(super) fn choose(paths: &[Path], next: &Next) -> Option<usize> {
    choose_open(paths, next, ready)
}

#[inline(never)]
fn choose_among_classes(
    paths: &[Path],
    next: &Next,
    open: impl Fn(&Path) -> bool + Copy,
) -> Option<usize> {
    let pick = |carried| {
        let normal = candidates(paths, carried, false, open);
        if normal.unused {
            normal
        } else {
            candidates(paths, carried, true, open)
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

/// The same for a scheduler that may wait for pacers. What holds no data waits for none.
#[inline]
pub(super) fn place_patiently(view: &View, next: &Next, patience: Patience) -> Decision {
    if view.kind != PacketKind::Data {
        return choose_open(view.paths, next, |path| patience.considers(path))
            .map_or(Decision::Wait, Decision::Send);
    }
    match choose(view.paths, next) {
        Some(path) if !patience.holds(view, next, path, |other| !next.carried.contains(other)) => {
            Decision::Send(path)
        }
        _ => Decision::Wait,
    }
}

impl Scheduler for LowestRtt {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn select(&mut self, view: &View) -> Decision {
        match &view.next {
            Some(next) => place_patiently(view, next, self.patience),
            None => Decision::Wait,
        }
    }
}

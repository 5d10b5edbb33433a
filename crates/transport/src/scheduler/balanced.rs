//! No path carries much more than half of the data.

use polypath_settings::{Algorithm, algorithm, choice};

use super::patience::{self, Patience};
use super::rescue::{self, Help, Rescuer};
use super::{Carried, Decision, Scheduler, View, candidates_of_class, lowest_rtt, ready};

algorithm! {
    "balanced",
    "Lowest RTT, but no path carries more than a capped share of the latest bytes, against an eavesdropper on it",
    "Ly, Lam, Dubois and Ravier, student project on MPTCP over OpenFlow, supervised by S. Secci";
    /// Settings of balanced paths.
    BalancedConfig {
        /// half of the bytes, or one over the number of paths
        cap: Cap as Text = Text("half"),
        /// share that a path may carry beyond its cap
        epsilon: f64 as Number.within(0.0, 0.5) = Number(0.05),
        ..patience: Patience = patience::PREFERRING,
        ..help: Help = rescue::OFF
    }
}

choice! {
    /// What a path carries at most.
    Cap {
        Half = "half",
        Equal = "equal",
    }
}

impl Algorithm<dyn Scheduler> for BalancedConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(Balanced {
            half: self.cap == Cap::Half,
            epsilon: self.epsilon,
            patience: self.patience,
            help: self.help,
            carried: Vec::new(),
        })
    }
}

/// The counts are halved whenever they reach this many bytes, which makes the window an exponential one.
const WINDOW: u64 = 1 << 20;

struct Balanced {
    half: bool,
    epsilon: f64,
    patience: Patience,
    help: Help,
    /// Bytes that each path carried lately.
    carried: Vec<u64>,
}

impl Scheduler for Balanced {
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
        self.carried.resize(view.paths.len(), 0);
        let total: u64 = self.carried.iter().sum();
        let count = candidates_of_class(view.paths).count();
        let share = if self.half { 0.5 } else { 1.0 / count as f64 };
        // The path that carried least is always within, but the data may have to wait for it.
        let within = |index: usize| {
            let admitted =
                (share + self.epsilon) * (total + u64::from(view.paths[index].mss)) as f64;
            count == 1 || self.carried[index] as f64 <= admitted
        };
        let path = candidates_of_class(view.paths)
            .filter(|&index| ready(&view.paths[index]) && within(index))
            .min_by_key(|&index| (view.paths[index].srtt, index));
        path.filter(|&index| !self.patience.holds(view, next, index, within))
            .map_or(Decision::Wait, Decision::Send)
    }

    fn carried(&mut self, segment: Carried) {
        self.count(segment.path, segment.bytes);
    }

    fn carries_datagrams(&mut self, path: usize, bytes: u32) {
        self.count(path, bytes);
    }
}

impl Balanced {
    fn count(&mut self, path: usize, bytes: u32) {
        if self.carried.len() <= path {
            self.carried.resize(path + 1, 0);
        }
        self.carried[path] += u64::from(bytes);
        if self.carried.iter().sum::<u64>() >= WINDOW {
            self.carried.iter_mut().for_each(|bytes| *bytes /= 2);
        }
    }
}

//! No path carries much more than half of the data.

use super::patience::{self, Patience};
use super::rescue::{self, Unasked};
use super::{
    Carried, Decision, Scheduler, SchedulerEntry, View, candidates_of_class, lowest_rtt, ready,
};
use crate::registry::Parameter;

pub(super) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "balanced",
    description: "Lowest RTT, but no path carries more than a capped share of the latest bytes, against an eavesdropper on it",
    source: "Ly, Lam, Dubois and Ravier, student project on MPTCP over OpenFlow, supervised by S. Secci",
    parameters: || {
        let own = vec![
            Parameter::choice(
                "cap",
                &["half", "equal"],
                "half of the bytes, or one over the number of paths",
            ),
            Parameter::number(
                "epsilon",
                0.05,
                0.0,
                0.5,
                "share that a path may carry beyond its cap",
            ),
            patience::preferring(),
        ];
        rescue::parameters(own, Unasked::Off)
    },
    make: |parameters| {
        Box::new(Balanced {
            half: parameters.text("cap") == "half",
            epsilon: parameters.number("epsilon"),
            patience: Patience::of(parameters),
            carried: Vec::new(),
        })
    },
};

/// The counts are halved whenever they reach this many bytes, which makes the window an exponential one.
const WINDOW: u64 = 1 << 20;

struct Balanced {
    half: bool,
    epsilon: f64,
    patience: Patience,
    /// Bytes that each path carried lately.
    carried: Vec<u64>,
}

impl Scheduler for Balanced {
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

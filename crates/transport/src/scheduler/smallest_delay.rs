//! Only the path of lowest round trip.

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::{Decision, Scheduler, View, fastest, lowest_rtt, ready};

algorithm! {
    "smallest-delay",
    "The path of lowest smoothed RTT alone: data waits for it instead of taking another",
    "3GPP TS 23.501 clause 5.32.8 (smallest delay)";
    /// Settings of steering to the fastest path.
    SmallestDelayConfig {
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for SmallestDelayConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(SmallestDelay { help: self.help })
    }
}

struct SmallestDelay {
    help: Help,
}

impl Scheduler for SmallestDelay {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn select(&mut self, view: &View) -> Decision {
        match &view.next {
            Some(next) if !next.carried.is_empty() => lowest_rtt::place(view, next),
            Some(_) => fastest(view.paths)
                .filter(|&index| ready(&view.paths[index]))
                .map_or(Decision::Wait, Decision::Send),
            None => Decision::Wait,
        }
    }
}

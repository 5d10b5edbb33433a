//! DAPS: delay-aware packet scheduling.

use std::collections::VecDeque;

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::{Carried, Decision, Scheduler, View, candidates_of_class, lowest_rtt};
use crate::Nanos;
use crate::path::Path;

algorithm! {
    "daps",
    "A schedule for one round trip of the slowest path, numbered so that segments arrive in order",
    "Kuhn, Lochin, Mifdaoui, Sarwar, Mehani and Boreli, IEEE ICC 2014";
    /// Settings of DAPS.
    DapsConfig {
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for DapsConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(Daps {
            help: self.help,
            schedule: VecDeque::new(),
            ends: 0,
        })
    }
}

/// Implemented from the paper's description: a schedule for as long as the slowest path's round trip, in which each path sends a window a
/// round trip of its own and segments are numbered in the order in which they will arrive. What a path is to send later in the schedule
/// waits in that path's queue; a window that changes meanwhile counts in the next schedule.
struct Daps {
    help: Help,
    /// Paths in the order in which segments go to them, each with how many.
    schedule: VecDeque<(usize, u32)>,
    /// When the schedule in force is over.
    ends: Nanos,
}

impl Daps {
    fn compute(&mut self, view: &View) {
        let usable = || candidates_of_class(view.paths);
        let longest = usable().map(|index| view.paths[index].srtt).max();
        let period = longest.unwrap_or(0);
        self.ends = view.now + period;
        let mut rounds: Vec<(Nanos, usize)> = usable()
            .flat_map(|index| {
                let srtt = view.paths[index].srtt;
                // One that is not measured yet has one round.
                let rounds = period.checked_div(srtt).unwrap_or(1).max(1);
                (0..rounds).map(move |round| (round * srtt + srtt / 2, index))
            })
            .collect();
        rounds.sort_unstable();
        self.schedule = rounds
            .into_iter()
            .map(|(_, index)| (index, view.paths[index].cwnd.max(1)))
            .collect();
    }

    /// A schedule ends with its period, or when nothing is left of it and nothing will be acknowledged that could prompt the next.
    fn over(&self, view: &View) -> bool {
        let idle = |path: &Path| path.in_flight == 0 && path.queued == 0;
        view.now >= self.ends
            || candidates_of_class(view.paths).all(|index| idle(&view.paths[index]))
    }
}

impl Scheduler for Daps {
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
        let usable = |index: usize| candidates_of_class(view.paths).any(|other| other == index);
        while self
            .schedule
            .front()
            .is_some_and(|&(index, _)| !usable(index))
        {
            self.schedule.pop_front();
        }
        if self.schedule.is_empty() && self.over(view) {
            self.compute(view);
        }
        self.schedule
            .front()
            .map_or(Decision::Wait, |&(index, _)| Decision::Send(index))
    }

    fn carried(&mut self, segment: Carried) {
        if let Some((index, left)) = self.schedule.front_mut()
            && segment.new
            && *index == segment.path
        {
            *left -= 1;
            if *left == 0 {
                self.schedule.pop_front();
            }
        }
    }
}

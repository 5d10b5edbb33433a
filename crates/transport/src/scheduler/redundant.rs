//! Every segment on every path.

use polypath_settings::{Algorithm, algorithm};

use super::rescue::{self, Help, Rescuer};
use super::{Carried, Decision, Scheduler, View, candidates_of_class, lowest_rtt, ready};

algorithm! {
    "redundant",
    "Every path sends the whole stream; what arrives first counts",
    "Froemmgen et al., ICC 2016; mptcp.org net/mptcp/mptcp_redundant.c";
    /// Settings of redundant sending.
    RedundantConfig {
        ..help: Help = rescue::OFF
    }
}

impl Algorithm<dyn Scheduler> for RedundantConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(Redundant {
            help: self.help,
            pointers: Vec::new(),
            last: 0,
        })
    }
}

struct Redundant {
    help: Help,
    /// The offset that each path sends next.
    pointers: Vec<u64>,
    /// The path that sent last; the next one is asked first.
    last: usize,
}

impl Redundant {
    #[inline]
    fn advance(&mut self, path: usize, end: u64) {
        if let Some(pointer) = self.pointers.get_mut(path)
            && end > *pointer
        {
            *pointer = end;
            self.last = path;
        }
    }
}

impl Scheduler for Redundant {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn repeats_datagrams(&self) -> bool {
        true
    }

    fn select(&mut self, view: &View) -> Decision {
        if let Some(next) = view.next.filter(|next| next.reinjection) {
            return lowest_rtt::place(view, &next);
        }
        let count = view.paths.len();
        self.pointers.resize(count, 0);
        for step in 1..=count {
            let index = (self.last + step) % count;
            let path = &view.paths[index];
            if !ready(path) || !candidates_of_class(view.paths).any(|usable| usable == index) {
                continue;
            }
            let pointer = self.pointers[index].max(view.una);
            if pointer < view.sent {
                return Decision::Repeat {
                    path: index,
                    offset: pointer,
                };
            } else if view.next.is_some() {
                return Decision::Send(index);
            }
        }
        Decision::Wait
    }

    fn carried(&mut self, segment: Carried) {
        self.advance(segment.path, segment.offset + u64::from(segment.bytes));
    }

    fn passes_over(&mut self, path: usize, end: u64) -> bool {
        self.advance(path, end);
        true
    }
}

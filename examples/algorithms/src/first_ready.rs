//! The first path with room.

use polypath_settings::{Algorithm, algorithm};
use polypath_transport::scheduler::{Decision, Scheduler, View, ready, usable};

algorithm! {
    "first-ready",
    "The first path with room",
    "docs/extend.md";
    /// Settings of the first path.
    FirstReadyConfig {
        /// paths to pass over
        skip: u32 as Integer.at_least(0).at_most(9) = Integer(0),
    }
}

impl Algorithm<dyn Scheduler> for FirstReadyConfig {
    fn make(self) -> Box<dyn Scheduler> {
        Box::new(FirstReady {
            skip: self.skip as usize,
        })
    }
}

struct FirstReady {
    skip: usize,
}

impl Scheduler for FirstReady {
    fn select(&mut self, view: &View) -> Decision {
        let mut paths = view.paths.iter();
        let room = paths.position(|path| usable(path) && ready(path));
        let chosen = room.map(|first| first + self.skip);
        match chosen.filter(|&index| index < view.paths.len()) {
            Some(index) if view.next.is_some() => Decision::Send(index),
            _ => Decision::Wait,
        }
    }
}

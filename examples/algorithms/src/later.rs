//! Subflows from all addresses of the client, some time after the connection is established.

use polypath_settings::{Algorithm, algorithm};
use polypath_transport::Nanos;
use polypath_transport::path_manager::{Action, Pair, PathManager, PmView};

const MILLISECOND: Nanos = 1_000_000;

algorithm! {
    "later",
    "A subflow from each further address of the client, some time after the connection is there",
    "docs/extend.md";
    /// Settings of later subflows.
    LaterConfig {
        /// milliseconds to wait
        wait_ms: u64 as Integer.at_least(0).at_most(100_000) = Integer(1_000),
    }
}

impl Algorithm<dyn PathManager> for LaterConfig {
    fn make(self) -> Box<dyn PathManager> {
        Box::new(Later {
            at: self.wait_ms * MILLISECOND,
        })
    }
}

struct Later {
    at: Nanos,
}

impl PathManager for Later {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        if !view.client || view.now < self.at {
            return Vec::new();
        }
        let has = |pair: &Pair| view.subflows.contains(pair);
        let up = view.local.iter().filter(|local| local.up);
        let pairs = up.map(|local| Pair {
            local: local.id,
            remote: 0,
        });
        pairs.filter(|pair| !has(pair)).map(Action::Open).collect()
    }

    fn wake(&self) -> Nanos {
        self.at
    }
}

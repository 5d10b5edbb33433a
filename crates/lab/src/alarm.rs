//! A timer that is only ever set to an earlier time, until it fires.

use polypath_net::TimerId;
use polypath_transport::{NEVER, Nanos};

#[derive(Debug)]
pub(crate) struct Alarm {
    timer: TimerId,
    /// When it is set to fire.
    at: Nanos,
}

impl Alarm {
    pub fn new(timer: TimerId) -> Self {
        Self { timer, at: NEVER }
    }

    pub fn timer(&self) -> TimerId {
        self.timer
    }

    /// It is to fire at `at` at the latest. Gives the timer that is to be set to that, if it would fire later.
    #[inline(always)]
    pub fn advance(&mut self, at: Nanos) -> Option<TimerId> {
        let earlier = at < self.at;
        if earlier {
            self.at = at;
        }
        earlier.then_some(self.timer)
    }

    pub fn on_fired(&mut self) {
        self.at = NEVER;
    }
}

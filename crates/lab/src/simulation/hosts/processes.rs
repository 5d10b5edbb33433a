//! The endpoints that wait for the packets of an instant.

use polypath_net::TimerId;

/// Endpoints whose applications wait, in the order in which their packets woke them.
pub(super) struct Processes {
    waiting: Vec<usize>,
    timer: TimerId,
}

impl Processes {
    pub fn new(timer: TimerId) -> Self {
        Self {
            waiting: Vec::new(),
            timer,
        }
    }

    pub fn timer(&self) -> TimerId {
        self.timer
    }

    /// Has an endpoint wait. False: it does so already.
    pub fn wait(&mut self, endpoint: usize) -> bool {
        let new = !self.waiting.contains(&endpoint);
        if new {
            self.waiting.push(endpoint);
        }
        new
    }

    /// Those that wait; their room is to be put back.
    pub fn take(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.waiting)
    }

    pub fn put_back(&mut self, room: Vec<usize>) {
        self.waiting = room;
    }
}

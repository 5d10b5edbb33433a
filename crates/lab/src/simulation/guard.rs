//! Detects that simulated time no longer advances.

use polypath_transport::Nanos;

/// What was handled since time last moved.
#[derive(Debug, Default)]
pub(super) struct Guard {
    at: Nanos,
    handled: u64,
}

impl Guard {
    /// So many were handled by `now`; gives how many since time last moved.
    pub fn handled_at(&mut self, now: Nanos, handled: u64) -> u64 {
        self.handled = match self.at == now {
            true => self.handled + handled,
            false => 0,
        };
        self.at = now;
        self.handled
    }
}

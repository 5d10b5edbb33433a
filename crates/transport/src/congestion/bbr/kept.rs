//! The window to return to after recovery, and after the queue was drained to measure the RTT.

use crate::path::{CaState, Path};

#[derive(Debug)]
pub(in crate::congestion) struct Kept {
    cwnd: u32,
    /// The state of recovery at the last ACK.
    pub state: CaState,
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            cwnd: 0,
            state: CaState::Open,
        }
    }
}

impl Kept {
    /// Remembers the window. While it is reduced for another reason, the larger one counts.
    pub fn save(&mut self, path: &Path, reduced: bool) {
        let untouched = self.state < CaState::Recovery && !reduced;
        self.cwnd = if untouched {
            path.cwnd
        } else {
            self.cwnd.max(path.cwnd)
        };
    }

    /// That, or the present one if it is larger.
    pub fn larger(&self, path: &Path) -> u32 {
        path.cwnd.max(self.cwnd)
    }

    pub fn restore(&self, path: &mut Path) {
        path.cwnd = self.larger(path);
    }
}

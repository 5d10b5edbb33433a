//! How a path that does not answer is probed (RFC 9002 section 6.2).

use crate::Nanos;

/// Doublings of the probe timeout at most.
const MOST_DOUBLINGS: u32 = 16;
/// Probe timeouts in a row after which other paths carry what is in flight.
const FAILED: u32 = 2;

/// Probe timeouts and probes of a path.
#[derive(Debug, Default)]
pub(super) struct Probing {
    /// Probe timeouts in a row.
    timeouts: u32,
    /// Ack-eliciting packets to be sent beyond the window.
    probes: u32,
    /// When the path was last given up.
    failed_at: Nanos,
}

impl Probing {
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Gives how many there were in a row.
    pub fn on_timeout(&mut self) -> u32 {
        self.timeouts += 1;
        self.timeouts
    }

    /// Something arrived, or the path begins again.
    pub fn forgive(&mut self) {
        self.timeouts = 0;
    }

    /// By what the probe timeout is multiplied (RFC 9002 section 6.2.1).
    pub fn backoff(&self) -> Nanos {
        1 << self.timeouts.min(MOST_DOUBLINGS)
    }

    /// The path stays silent.
    pub fn is_silent(&self) -> bool {
        self.timeouts >= FAILED
    }

    /// The path is given up.
    pub fn fail(&mut self, now: Nanos) {
        self.failed_at = now;
    }

    /// Whether a packet that was sent at `at` shows that the path works. That it worked before it was given up says nothing: acknowledgements of
    /// then may have taken another way, or come again.
    pub fn works(&self, at: Nanos) -> bool {
        at >= self.failed_at
    }

    /// So many probes are to be sent.
    pub fn ask(&mut self, probes: u32) {
        self.probes = probes;
    }

    /// One probe is to be sent at least.
    pub fn ask_once(&mut self) {
        self.probes = self.probes.max(1);
    }

    /// Probes are to be sent.
    pub fn asks(&self) -> bool {
        self.probes > 0
    }

    /// One of them leaves.
    pub fn on_asked(&mut self) {
        self.probes -= 1;
    }
}

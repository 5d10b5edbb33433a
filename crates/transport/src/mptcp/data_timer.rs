//! The timer of upstream Linux's retransmission at connection level (net/mptcp/protocol.c `mptcp_reset_rtx_timer`).

use crate::settings::Config;
use crate::{MILLISECOND, NEVER, Nanos};

/// Where no subflow has a timer pending (`TCP_RTO_MIN`).
pub(super) const SHORTEST: Nanos = 200 * MILLISECOND;

#[derive(Debug)]
pub(super) struct DataTimer {
    /// The profile has upstream's rules.
    pub upstream: bool,
    due: Nanos,
    /// How long it runs from the next time it is set (`timer_ival`).
    interval: Nanos,
}

impl DataTimer {
    pub fn new(config: &Config) -> Self {
        Self {
            upstream: !config.profile.reinjects_on_timeout(),
            due: NEVER,
            interval: SHORTEST,
        }
    }

    pub fn set_interval(&mut self, interval: Nanos) {
        self.interval = interval;
    }

    pub fn begin(&mut self, now: Nanos) {
        self.due = now + self.interval;
    }

    pub fn stop(&mut self) {
        self.due = NEVER;
    }

    pub fn runs(&self) -> bool {
        self.due < NEVER
    }

    pub fn deadline(&self) -> Nanos {
        self.due
    }
}

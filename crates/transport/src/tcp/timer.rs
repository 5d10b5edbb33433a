//! The timers of a socket.

use crate::{NEVER, Nanos};

/// What the one transmission timer waits for (Linux `icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    None,
    /// Retransmission timeout (RFC 6298).
    Retransmission,
    /// Probe timeout (RFC 8985 section 7).
    LossProbe,
    /// RACK's reordering window (RFC 8985 section 6.2).
    Reordering,
    /// While nothing is in flight: the longest that a corked rest waits, and until a full queue of the host is tried again.
    Probe,
}

/// What a timer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fired {
    Nothing,
    Retransmission,
    LossProbe,
    Reordering,
    Probe,
    Keepalive,
    TimeWaitOver,
}

/// What the slow timer waits for: a connection that is idle, or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    Keepalive,
    TimeWait,
}

#[derive(Clone, Debug)]
pub(super) struct Timers {
    pending: Pending,
    transmission: Nanos,
    idle: Idle,
    idle_at: Nanos,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            pending: Pending::None,
            transmission: NEVER,
            idle: Idle::Keepalive,
            idle_at: NEVER,
        }
    }
}

impl Timers {
    /// What the transmission timer waits for.
    #[inline(always)]
    pub fn pending(&self) -> Pending {
        self.pending
    }

    /// When the transmission timer fires; [`NEVER`] while it is stopped.
    #[inline(always)]
    pub fn transmission(&self) -> Nanos {
        self.transmission
    }

    /// What the transmission timer waited for is over.
    #[inline(always)]
    pub fn end_pending(&mut self) {
        self.pending = Pending::None;
    }

    pub fn set(&mut self, pending: Pending, at: Nanos) {
        self.pending = pending;
        self.transmission = at;
    }

    pub fn stop_retransmission(&mut self) {
        self.set(Pending::None, NEVER);
    }

    /// The transmission timer fires at `at`, if it would later.
    pub fn no_later_than(&mut self, at: Nanos) {
        self.transmission = self.transmission.min(at);
    }

    pub fn set_idle(&mut self, idle: Idle, at: Nanos) {
        self.idle = idle;
        self.idle_at = at;
    }

    /// The end of the connection is awaited.
    pub fn time_waits(&self) -> bool {
        self.idle == Idle::TimeWait && self.idle_at != NEVER
    }

    pub fn next(&self) -> Nanos {
        self.transmission.min(self.idle_at)
    }

    /// What is due; the timer that fired is stopped.
    pub fn fire(&mut self, now: Nanos) -> Fired {
        if self.idle_at <= now {
            self.idle_at = NEVER;
            return match self.idle {
                Idle::Keepalive => Fired::Keepalive,
                Idle::TimeWait => Fired::TimeWaitOver,
            };
        }
        if self.transmission > now {
            return Fired::Nothing;
        }
        let fired = match self.pending {
            Pending::None => Fired::Nothing,
            Pending::Retransmission => Fired::Retransmission,
            Pending::LossProbe => Fired::LossProbe,
            Pending::Reordering => Fired::Reordering,
            Pending::Probe => Fired::Probe,
        };
        if fired == Fired::Probe {
            self.pending = Pending::None;
        }
        self.transmission = NEVER;
        fired
    }
}

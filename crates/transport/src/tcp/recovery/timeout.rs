//! Timers: retransmission timeout (RFC 6298 section 5) and tail loss probe (RFC 8985 section 7).

use super::Delivery;
use crate::path::CaState;
use crate::tcp::context::{Context, Options, Shared};
use crate::tcp::flight::Sent;
use crate::tcp::timer::{Fired, Pending};
use crate::tcp::transfer::Transfer;
use crate::tcp::{Socket, State};
use crate::{EventKind, MILLISECOND, Mib, NEVER, Nanos};

/// The tail loss probe that is unanswered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TailProbe {
    /// End of the flight that it was sent for.
    end: Option<u64>,
    /// It repeats a segment, and is no new data.
    repeats: bool,
}

impl TailProbe {
    fn begin(&mut self, end: u64, repeats: bool) {
        (self.end, self.repeats) = (Some(end), repeats);
    }

    pub fn end(&mut self) {
        self.end = None;
    }

    #[inline(always)]
    pub fn is_sent(&self) -> bool {
        self.end.is_some()
    }

    pub fn ends_at(&self, end: u64) -> bool {
        self.end == Some(end)
    }

    /// What was sent from `seq` on was not.
    pub fn take_back(&mut self, seq: u64) {
        self.end = self.end.filter(|&end| end <= seq);
    }
}

/// Retransmission timeouts in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeouts {
    in_row: u32,
    /// When what they are about was first sent again.
    first_at: Nanos,
    /// Doublings of the timeout.
    backoff: u32,
}

impl Timeouts {
    pub fn in_row(&self) -> u32 {
        self.in_row
    }

    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// There is another, of what was first sent again at this time if it is the first.
    fn begin(&mut self, first_at: Nanos) {
        if self.in_row == 0 {
            self.first_at = first_at;
        }
    }

    fn count(&mut self) {
        self.in_row += 1;
    }

    /// The peer answers, but takes nothing.
    fn count_one_at_most(&mut self) {
        self.in_row = self.in_row.min(1);
    }

    fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// The round trip was measured (RFC 6298 section 5.7).
    #[inline(always)]
    pub fn stop_backing_off(&mut self) {
        self.backoff = 0;
    }

    /// Something was acknowledged.
    #[inline(always)]
    pub fn end(&mut self) {
        self.in_row = 0;
    }
}

impl Transfer {
    /// RFC 8985 section 7.2: probe timeout, which is no later than the retransmission timeout; `restarts`: an acknowledgement has just begun
    /// that anew (RFC 6298 section 5.3).
    pub(crate) fn schedule_loss_probe(&mut self, shared: &Shared, restarts: bool) -> bool {
        let recovery = &self.recovery;
        let eligible = self.sack
            && self.flight.is_established()
            && !self.flight.is_empty()
            && matches!(recovery.state, CaState::Open | CaState::Cwr)
            && self.flight.sacked() == 0
            && (!recovery.probe.is_sent() || shared.config.profile.times_tails_anew())
            && recovery.timeouts() == 0;
        if !eligible
            || !matches!(
                self.timers.pending(),
                Pending::None | Pending::Retransmission | Pending::LossProbe
            )
        {
            return false;
        }
        let timeout = match self.rtt.srtt() {
            0 => shared.config.rto_initial_ns,
            srtt if self.flight.segments().len() == 1 => {
                let config = &shared.config;
                2 * srtt + config.profile.ack_delay_budget(config.rto_min_ns)
            }
            srtt => 2 * srtt + 2 * MILLISECOND,
        };
        let rto = self.backed_off(shared);
        let left = if restarts {
            rto
        } else {
            self.left_of(rto, shared)
        };
        self.timers
            .set(Pending::LossProbe, shared.now + timeout.min(left));
        true
    }

    /// How far ahead the retransmission timer would be, were it not for the probe; NEVER where its time has passed.
    #[inline(always)]
    fn left_of(&self, rto: Nanos, shared: &Shared) -> Nanos {
        let mut begun = self
            .flight
            .segments()
            .front()
            .map_or(shared.now, |oldest| oldest.sent_at);
        if !shared.config.profile.times_oldest_segment() {
            begun = begun.max(self.silence.heard_at());
        }
        match (begun + rto).saturating_sub(shared.now) {
            0 => NEVER,
            left => left,
        }
    }

    /// The probe timeout has passed (RFC 8985 section 7.3). True: a probe is to be sent.
    pub(crate) fn on_probe_timeout(&mut self, shared: &Shared) -> bool {
        if self.recovery.probe.is_sent() {
            self.arm_retransmission(shared);
            return false;
        }
        self.arm_from_now(shared);
        self.flight
            .segments()
            .back()
            .is_some_and(|last| !last.has(Sent::SACKED))
    }

    /// A probe leaves: a repetition, or new data.
    pub(crate) fn note_loss_probe(&mut self, cx: &mut Context<impl Options>, repeats: bool) {
        cx.shared.counters.increment(Mib::TcpExtTCPLossProbes);
        cx.shared.event(EventKind::TailLossProbe(cx.path.index));
        self.recovery.probe.begin(self.flight.next(), repeats);
        self.arm_from_now(cx.shared);
    }

    fn arm_from_now(&mut self, shared: &Shared) {
        let at = shared.now + self.backed_off(shared);
        self.timers.set(Pending::Retransmission, at);
    }

    /// RFC 8985 section 7.4.2: whether the probe repaired a loss.
    pub(super) fn judge_probe(&mut self, cx: &mut Context<impl Options>, delivery: &mut Delivery) {
        let Some(end) = self.recovery.probe.end else {
            return;
        };
        if self.flight.una() < end {
            return;
        }
        if !self.recovery.probe.repeats
            || delivery.of_probe
            || (self.flight.una() == end && delivery.duplicate && delivery.packets == 0)
        {
            // New data was acknowledged, or both the original and its repetition arrived.
            self.recovery.probe.end();
        } else if self.flight.una() > end {
            cx.shared
                .counters
                .increment(Mib::TcpExtTCPLossProbeRecovery);
            self.begin_reduction(&mut cx.path);
            self.reduce_flight(&mut cx.path, delivery.packets);
            self.recovery.undo.end();
            (self.recovery).set_state(&mut cx.path, &mut self.controller, CaState::Cwr);
            self.controller.end_reduction(&mut cx.path, false);
            (self.recovery).keep_open(&mut cx.path, &self.flight, &mut self.controller);
        }
    }

    /// The retransmission timeout, doubled for each that passed and within its maximum (RFC 6298 section 5.5).
    pub(crate) fn backed_off(&self, shared: &Shared) -> Nanos {
        let rto = self.rtt.rto(&shared.config) << self.recovery.backoff().min(16);
        rto.min(shared.config.limits.rto_max)
    }

    /// Sets the timer for the oldest segment in flight (RFC 6298 section 5.1, 5.3).
    pub(crate) fn arm_retransmission(&mut self, shared: &Shared) {
        if self.flight.is_empty() {
            return self.timers.stop_retransmission();
        }
        let rto = self.backed_off(shared);
        let at = match self.timers.pending() {
            // A probe or the reordering window took this time off the timeout.
            Pending::LossProbe | Pending::Reordering => {
                (self.flight.segments()[0].sent_at + rto).max(shared.now + MILLISECOND)
            }
            _ => shared.now + rto,
        };
        self.timers.set(Pending::Retransmission, at);
    }

    #[inline(always)]
    pub(super) fn arm_after_ack(&mut self, shared: &Shared) {
        if self.timers.pending() == Pending::Reordering {
            self.timers.end_pending();
        }
        if !self.schedule_loss_probe(shared, true) {
            self.arm_retransmission(shared);
        }
    }

    /// From when on what a timeout is about counts as late: from when it was first sent again, now unless a recovery is under way
    /// (Linux `retrans_stamp`).
    fn late_from(&self, now: Nanos) -> Nanos {
        match self.recovery.undo.first_retransmission() {
            Some(first) if self.recovery.state >= CaState::Recovery => first.min(now),
            _ => now,
        }
    }

    /// What has not come until now is lost, and no longer only out of order (RFC 8985).
    fn on_reordering_timer(&mut self, cx: &mut Context<impl Options>) {
        let mut delivery = Delivery::default();
        let (recovery, mut at) = self.searching(cx.shared);
        recovery.detect_losses(&mut at, &mut delivery);
        if delivery.newly_lost > 0 {
            self.controller.note_lost(delivery.newly_lost);
            if self.recovery.state != CaState::Recovery {
                self.enter_recovery(cx, &delivery);
                delivery.packets = 1;
                if !self.controller.paces() {
                    let in_flight = self.flight.in_flight();
                    (self.recovery).reduce(&mut cx.path, in_flight, &delivery);
                }
            }
        }
        if self.transmission_timer().is_none() {
            self.arm_retransmission(cx.shared);
        }
    }

    pub(crate) fn retransmission_timeout(&self, shared: &Shared) -> Nanos {
        self.rtt.rto(&shared.config)
    }
}

impl Socket {
    /// Repeats the last segment as a probe.
    pub(crate) fn repeat_as_probe(&mut self, cx: &mut Context<impl Options>) {
        if let Some(last) = self.transfer.flight.segments().len().checked_sub(1) {
            self.transfer.note_loss_probe(cx, true);
            self.retransmit(cx, last);
            if cx.shared.config.profile.times_tails_anew() {
                self.transfer.flight.end_repetition(last);
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Nanos {
        self.transfer
            .timers
            .next()
            .min(self.receiver.ack_deadline())
    }

    /// Handles the timer that is due. Returns what the connection must know of.
    pub(crate) fn on_timer(&mut self, cx: &mut Context<impl Options>) -> Fired {
        self.transfer
            .controller
            .release_pacing(cx.shared.now, &mut cx.path);
        let fired = self.transfer.timers.fire(cx.shared.now);
        if fired == Fired::Reordering {
            self.transfer.on_reordering_timer(cx);
        }
        self.publish(&mut cx.path);
        fired
    }

    /// A retransmission timeout (RFC 6298 section 5.4 to 5.6, RFC 5681 section 3.1). False: the peer is given up.
    pub(crate) fn on_timeout(&mut self, cx: &mut Context<impl Options>) -> bool {
        if self.transfer.flight.is_empty() {
            return true;
        }
        let (linear, late_from) = if self.lifetime.state() == State::SynSent {
            // `tcp_connect` sets `retrans_stamp`.
            let begun = self.transfer.flight.segments()[0].sent_at;
            (cx.shared.config.profile.linear_syn_timeouts(), begun)
        } else {
            (0, self.transfer.late_from(cx.shared.now))
        };
        let limit = if self.lifetime.state().synchronised() {
            cx.shared.config.limits.retries
        } else {
            cx.shared.config.limits.syn_retries + linear
        };
        self.transfer.recovery.timeouts.begin(late_from);
        let timeout = cx.shared.config.user_timeout_ns;
        let gives_up_at = match timeout {
            0 => crate::NEVER,
            _ => self.transfer.recovery.timeouts.first_at + timeout,
        };
        let too_long = self.transfer.recovery.timeouts() > 0 && cx.shared.now >= gives_up_at;
        if self.window.is_closed()
            && self.transfer.silence.heard_at() >= self.transfer.flight.segments()[0].sent_at
        {
            // It took the window back: what is sent again is a probe that it answers (RFC 9293 section 3.8.6.1, Linux `tcp_retransmit_timer`).
            self.transfer.recovery.timeouts.count_one_at_most();
        }
        if self.transfer.recovery.timeouts() >= limit || too_long {
            cx.shared.counters.increment(Mib::TcpExtTCPAbortOnTimeout);
            return false;
        }
        if self.mss.searches()
            && self.transfer.recovery.timeouts() > 0
            && self.lifetime.state().synchronised()
        {
            self.suspect_black_hole(cx, self.transfer.recovery.timeouts.first_at);
        }
        cx.shared.counters.increment(Mib::TcpExtTCPTimeouts);
        cx.shared.event(EventKind::Timeout {
            subflow: cx.path.index,
            backoff: self.transfer.recovery.backoff(),
        });
        if self.lifetime.state().synchronised() {
            self.transfer.enter_loss(cx, self.mss.probes());
        } else {
            self.transfer.flight.mark_syn_lost();
        }
        self.transfer.recovery.timeouts.count();
        self.transfer.flight.repaired_below(1);
        self.retransmit(cx, 0);
        if self.transfer.recovery.timeouts() > linear {
            self.transfer.recovery.timeouts.back_off();
        }
        self.transfer.timers.end_pending();
        self.transfer.arm_retransmission(cx.shared);
        self.transfer
            .timers
            .no_later_than(gives_up_at.max(cx.shared.now + MILLISECOND));
        self.publish(&mut cx.path);
        true
    }
}

/// A tail loss probe is the last that a socket sent, and unanswered.
pub(crate) fn probes_tail(socket: &Socket) -> bool {
    socket.transfer.recovery.probe.is_sent() && socket.transfer.recovery.timeouts() == 0
}

//! Timers: retransmission timeout (RFC 6298 section 5) and tail loss probe (RFC 8985 section 7).

use super::Delivery;
use crate::mptcp::core::Core;
use crate::path::{CaState, Path};
use crate::tcp::Socket;
use crate::tcp::sender::Sent;
use crate::tcp::timer::{Fired, Pending};
use crate::{EventKind, MILLISECOND, Mib, Nanos};

impl Socket {
    /// RFC 8985 section 7.2: probe timeout.
    pub(crate) fn schedule_loss_probe(&mut self, core: &Core) -> bool {
        let recovery = &self.recovery;
        let eligible = self.negotiated.sack
            && self.state.synchronised()
            && !self.sent.is_empty()
            && recovery.state == CaState::Open
            && recovery.sacked == 0
            && recovery.probe_end.is_none()
            && recovery.timeouts == 0;
        if !eligible
            || !matches!(
                self.timers.pending,
                Pending::None | Pending::Retransmission | Pending::LossProbe
            )
        {
            return false;
        }
        let rto = self.backed_off(core);
        let timeout = match self.rtt.srtt() {
            0 => core.config.rto_initial,
            srtt if self.sent.len() == 1 => {
                let config = &core.config;
                2 * srtt + config.profile.ack_delay_budget(config.rto_min)
            }
            srtt => 2 * srtt + 2 * MILLISECOND,
        };
        self.timers
            .set(Pending::LossProbe, core.now + timeout.min(rto));
        true
    }

    /// RFC 8985 section 7.3: the probe repeats the last segment.
    pub(super) fn send_loss_probe(&mut self, core: &mut Core, me: usize) {
        self.timers
            .set(Pending::Retransmission, core.now + self.backed_off(core));
        let Some(last) = self.sent.len().checked_sub(1) else {
            return;
        };
        if self.recovery.probe_end.is_some() || self.sent[last].has(Sent::SACKED) {
            return;
        }
        core.counters.increment(Mib::TcpExtTCPLossProbes);
        core.event(EventKind::TailLossProbe(me));
        self.recovery.probe_end = Some(self.next);
        self.retransmit(core, me, last);
    }

    /// RFC 8985 section 7.4.2: whether the probe repaired a loss.
    pub(super) fn judge_probe(
        &mut self,
        core: &mut Core,
        paths: &mut [Path],
        me: usize,
        delivery: &mut Delivery,
    ) {
        let Some(end) = self.recovery.probe_end else {
            return;
        };
        if self.una < end {
            return;
        }
        if delivery.of_probe
            || (self.una == end && delivery.bare && !delivery.advanced && delivery.packets == 0)
        {
            // Both the original and the probe arrived.
            self.recovery.probe_end = None;
        } else if self.una > end {
            core.counters.increment(Mib::TcpExtTCPLossProbeRecovery);
            self.begin_reduction(paths, me);
            self.recovery.undo_from = None;
            self.set_state(paths, me, CaState::Cwr);
            self.end_reduction(&mut paths[me]);
            self.keep_open(paths, me);
        }
    }

    /// The retransmission timeout, doubled for each that passed and within its maximum (RFC 6298 section 5.5).
    fn backed_off(&self, core: &Core) -> Nanos {
        let rto = self.rtt.rto(&core.config) << self.recovery.backoff.min(16);
        rto.min(core.config.rto_max)
    }

    /// Sets the timer for the oldest segment in flight (RFC 6298 section 5.1, 5.3).
    pub(crate) fn arm_retransmission(&mut self, core: &Core) {
        if self.sent.is_empty() {
            return self.timers.stop_retransmission();
        }
        let rto = self.backed_off(core);
        let at = match self.timers.pending {
            // A probe or the reordering window took this time off the timeout.
            Pending::LossProbe | Pending::Reordering => {
                (self.sent[0].sent_at + rto).max(core.now + MILLISECOND)
            }
            _ => core.now + rto,
        };
        self.timers.set(Pending::Retransmission, at);
    }

    pub(super) fn arm_after_ack(&mut self, core: &Core) {
        if self.timers.pending == Pending::Reordering {
            self.timers.pending = Pending::None;
        }
        if !self.schedule_loss_probe(core) {
            self.arm_retransmission(core);
        }
    }

    pub(crate) fn next_deadline(&self) -> Nanos {
        self.timers.next().min(self.ack.deadline)
    }

    /// Handles the timer that is due. Returns what the connection must know of.
    pub(crate) fn on_timer(&mut self, core: &mut Core, paths: &mut [Path], me: usize) -> Fired {
        self.release_pacing(core.now, &mut paths[me]);
        let fired = self.timers.fire(core.now);
        match fired {
            Fired::LossProbe => self.send_loss_probe(core, me),
            Fired::Reordering => {
                let mut delivery = Delivery::default();
                self.detect_losses(core, &mut delivery);
                if delivery.newly_lost > 0 {
                    self.note_lost(delivery.newly_lost);
                    if self.recovery.state != CaState::Recovery {
                        self.enter_recovery(core, paths, me);
                        delivery.packets = 1;
                        self.reduce(&mut paths[me], &delivery);
                    }
                }
                if self.transmission_timer().is_none() {
                    self.arm_retransmission(core);
                }
            }
            _ => {}
        }
        self.publish(&mut paths[me]);
        fired
    }

    /// A retransmission timeout (RFC 6298 section 5.4 to 5.6, RFC 5681 section 3.1). False: the peer is given up.
    pub(crate) fn on_timeout(&mut self, core: &mut Core, paths: &mut [Path], me: usize) -> bool {
        if self.sent.is_empty() {
            return true;
        }
        let limit = if self.state.synchronised() {
            core.config.retries
        } else {
            core.config.syn_retries
        };
        if self.recovery.timeouts == 0 {
            self.recovery.first_timeout = self.first_repetition(core.now);
        }
        let timeout = core.config.user_timeout;
        let gives_up_at = match timeout {
            0 => crate::NEVER,
            _ => self.recovery.first_timeout + timeout,
        };
        let too_long = self.recovery.timeouts > 0 && core.now >= gives_up_at;
        if self.recovery.timeouts >= limit || too_long {
            core.counters.increment(Mib::TcpExtTCPAbortOnTimeout);
            return false;
        }
        if self.searches() && self.recovery.timeouts > 0 && self.state.synchronised() {
            self.suspect_black_hole(core, paths, me, self.recovery.first_timeout);
        }
        core.counters.increment(Mib::TcpExtTCPTimeouts);
        core.event(EventKind::Timeout {
            subflow: me,
            backoff: self.recovery.backoff,
        });
        if self.state.synchronised() {
            self.enter_loss(core, paths, me);
        } else {
            self.recovery.lost = 1;
            self.sent[0].set(Sent::LOST);
            self.sent[0].clear(Sent::RETRANSMITTING);
            self.recovery.retransmitting = 0;
        }
        self.recovery.timeouts += 1;
        self.recovery.hint = self.recovery.hint.max(1);
        self.retransmit(core, me, 0);
        self.recovery.backoff = (self.recovery.backoff + 1).min(16);
        self.timers.pending = Pending::None;
        self.arm_retransmission(core);
        self.timers
            .no_later_than(gives_up_at.max(core.now + MILLISECOND));
        self.publish(&mut paths[me]);
        true
    }

    /// When what a timeout is about was first sent again: now, unless a recovery is under way (Linux `retrans_stamp`).
    fn first_repetition(&self, now: Nanos) -> Nanos {
        match self.recovery.first_retransmission {
            first if first > 0 && self.recovery.state >= CaState::Recovery => {
                (u64::from(first - 1) * MILLISECOND).min(now)
            }
            _ => now,
        }
    }

    pub(crate) fn retransmission_timeout(&self, core: &Core) -> Nanos {
        self.rtt.rto(&core.config)
    }
}

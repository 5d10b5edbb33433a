//! Upstream Linux's retransmission at connection level: one timer, an idle subflow that repeats the head, and stale subflows.
//!
//! A subflow's own timeout changes nothing here. If no data ACK arrives during the longest pending timer of the
//! subflows, a subflow with nothing in flight repeats the first fragment.
//!
//! Each such period counts against a subflow that has data in flight and hears nothing. After
//! [`Config::stale_loss_cnt`] periods it is stale. It takes no data until it hears its peer again, and everything in
//! flight is scheduled again (Linux net/mptcp/protocol.c `__mptcp_retrans`, net/mptcp/pm.c `mptcp_pm_chk_stale`).

use super::connection::Connection;
use super::data_timer::SHORTEST;
use super::subflow::Silence;
use crate::{EventKind, Mib, Nanos};

impl Connection {
    /// Whether upstream's rules are in force.
    fn retransmits_as_upstream(&self) -> bool {
        self.data_timer.upstream && self.session.multipath.is_some()
    }

    /// A data ACK brought news: the timer begins anew, or stops when nothing is left.
    pub(super) fn data_acknowledged(&mut self) {
        if self.retransmits_as_upstream() {
            if self.send.outstanding() {
                self.data_timer.begin(self.shared.now);
            } else {
                self.data_timer.stop();
            }
            self.deadline = self.deadline.min(self.data_timer.deadline());
        }
    }

    /// Data was sent: the timer runs.
    pub(super) fn data_scheduled(&mut self) {
        if !self.data_timer.runs() && self.retransmits_as_upstream() {
            self.data_timer.begin(self.shared.now);
            self.deadline = self.deadline.min(self.data_timer.deadline());
        }
    }

    /// The scheduler is asked, or a decision goes on: from now on the timer is set to the longest that a subflow which is not silent will wait
    /// for an answer. The scheduler asks those that can send (`mptcp_subflow_get_send`), and what goes on asks those that still join, too
    /// (`mptcp_set_timeout`).
    pub(super) fn set_interval(&mut self, goes_on: bool) {
        if self.retransmits_as_upstream() {
            self.data_timer.set_interval(self.longest_timer(goes_on));
        }
    }

    fn longest_timer(&self, joining: bool) -> Nanos {
        let timers = (0..self.subflows.len()).filter_map(|subflow| {
            let own = &self.subflows[subflow];
            let asked = joining || self.active(subflow);
            let counts = asked && own.closed_at.is_none() && own.silence.periods == 0;
            let at = own
                .socket
                .transfer
                .transmission_timer()
                .filter(|_| counts)?;
            Some(at.saturating_sub(self.shared.now))
        });
        match timers.max() {
            None | Some(0) => SHORTEST,
            Some(longest) => longest,
        }
    }

    pub(super) fn on_data_timeout(&mut self) {
        self.data_timer.stop();
        if !self.retransmits_as_upstream() || self.ended.is_some() {
            return;
        }
        self.count_silences();
        if let Some(subflow) = self.idle_subflow() {
            for (offset, len) in self.send.head(self.paths[subflow].mss) {
                self.send_again(subflow, offset, len, true);
            }
        }
        if self.send.outstanding() {
            self.data_scheduled();
        }
        if self.send.unsent() > 0 {
            // Upstream asks the scheduler even if the peer's window is closed (`mptcp_check_and_set_pending`, `mptcp_release_cb`).
            self.set_interval(false);
        }
    }

    pub(super) fn active(&self, subflow: usize) -> bool {
        self.paths[subflow].established && self.subflows[subflow].socket.state().sends()
    }

    /// The subflow that repeats data: nothing in flight, and a backup only if nothing moves anywhere (`mptcp_subflow_get_retrans`).
    fn idle_subflow(&self) -> Option<usize> {
        let idle = |subflow: &usize| {
            self.subflows[*subflow].socket.transfer.flight.is_empty()
                && self.subflows[*subflow].socket.queue.is_empty()
        };
        let active = || (0..self.subflows.len()).filter(|&subflow| self.active(subflow));
        if let Some(subflow) = active()
            .filter(idle)
            .find(|&subflow| !self.paths[subflow].backup)
        {
            return Some(subflow);
        }
        let periods = |subflow: usize| self.subflows[subflow].silence.periods;
        let least = active().filter(|subflow| !idle(subflow)).map(periods).min();
        active()
            .find(idle)
            .filter(|_| least.is_none_or(|least| least > 1))
    }

    /// Takes note of subflows that did not hear of their peer for another period.
    fn count_silences(&mut self) {
        for subflow in 0..self.subflows.len() {
            if !self.active(subflow)
                || (self.subflows[subflow].socket.transfer.flight.is_empty()
                    && self.subflows[subflow].socket.queue.is_empty())
            {
                continue;
            }
            let heard_at = self.subflows[subflow].socket.transfer.silence.heard_in();
            let silence = &mut self.subflows[subflow].silence;
            if silence.periods == 0 {
                *silence = Silence {
                    periods: 1,
                    heard_at,
                };
            } else if silence.heard_at == heard_at {
                silence.periods += 1;
                let most = self.shared.config.stale_loss_cnt;
                let stale = most > 0 && silence.periods > most;
                if stale && !self.paths[subflow].potentially_failed && self.moves_besides(subflow) {
                    self.paths[subflow].potentially_failed = true;
                    self.shared.counters.increment(Mib::MPTcpExtSubflowStale);
                    self.shared.event(EventKind::PotentiallyFailed(subflow));
                    self.reinject_everything(subflow);
                }
            } else {
                silence.periods = 0;
                self.revive(subflow);
            }
        }
    }

    /// Whether another subflow is in service and not silent for long.
    fn moves_besides(&self, subflow: usize) -> bool {
        let alive = (self.shared.config.stale_loss_cnt.saturating_sub(1)).max(1);
        (0..self.subflows.len()).any(|other| {
            other != subflow
                && self.active(other)
                && !self.paths[other].potentially_failed
                && self.subflows[other].silence.periods < alive
        })
    }

    fn revive(&mut self, subflow: usize) {
        if self.paths[subflow].potentially_failed {
            self.paths[subflow].potentially_failed = false;
            self.shared.event(EventKind::Recovered(subflow));
        }
    }

    /// Stale subflows that heard their peer are back in service (`mptcp_subflow_active`).
    pub(super) fn revive_subflows(&mut self) {
        if !self.retransmits_as_upstream() {
            return;
        }
        for subflow in 0..self.subflows.len() {
            if self.paths[subflow].potentially_failed
                && self.subflows[subflow].socket.transfer.silence.heard_in()
                    != self.subflows[subflow].silence.heard_at
            {
                self.revive(subflow);
            }
        }
    }
}

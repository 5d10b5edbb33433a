//! Zero-window probes (the persist timer), probes for data that no subflow has in flight, and the connection's other timers.

use crate::mptcp::connection::Connection;
use crate::path::Path;
use crate::{CloseReason, MILLISECOND, Mib, NEVER, Nanos};

impl Connection {
    /// Nothing is in flight that the peer would answer, yet its window is closed (RFC 9293 section 3.8.6.1), or it has not acknowledged data
    /// that its subflows did (RFC 8684 section 3.3.6: retransmission at connection level). Inline: it runs after each
    /// segment, where a call counts (`benches/instructions.toml`).
    #[inline(always)]
    pub(super) fn watch_window(&mut self) {
        let window_closed = self.send.unsent() > 0 && self.shared.send_limit <= self.send.sent;
        self.watch(window_closed);
    }

    /// The same where it is known whether the window is closed to what waits.
    #[inline(always)]
    pub(super) fn watch(&mut self, window_closed: bool) {
        let unconfirmed = self.session.multipath.is_some() && self.send.una < self.send.sent;
        let stuck = (window_closed || unconfirmed)
            && self.sockets().zip(&self.paths).all(|(socket, path)| {
                socket.transfer.flight.is_empty() && !socket.transfer.tries_again()
                    || path.potentially_failed
            });
        if !stuck {
            self.send.probe_at = NEVER;
        } else if self.send.probe_at == NEVER {
            let mut wait = self.connection_timeout(self.send.probes);
            let timeout = self.shared.config.user_timeout_ns;
            if timeout > 0 && window_closed && self.send.probes > 0 {
                let passed = self.shared.now - self.send.probed_since;
                wait = wait.min(timeout.saturating_sub(passed).max(MILLISECOND));
            }
            self.send.probe_at = self.shared.now + wait;
            self.deadline = self.deadline.min(self.send.probe_at);
        }
    }

    /// Nothing of what waits is sent before the peer opens its window.
    pub(super) fn window_closed(&self) -> bool {
        if self.send.follows_windows() {
            self.window_is_short(self.send.unsent())
        } else {
            self.shared.send_limit <= self.send.sent
        }
    }

    /// The longest retransmission timeout of the working subflows, or of all if none works, backed off. One that failed has backed its
    /// own off (mptcp.org `mptcp_set_rto`).
    pub(in crate::mptcp) fn connection_timeout(&self, attempts: u32) -> Nanos {
        let longest_of = |which: fn(&Path) -> bool| {
            self.sockets()
                .zip(&self.paths)
                .filter(|(_, path)| path.established && which(path))
                .map(|(socket, _)| socket.transfer.retransmission_timeout(&self.shared))
                .max()
        };
        let longest = longest_of(|path| !path.potentially_failed)
            .or_else(|| longest_of(|_| true))
            .unwrap_or(self.shared.config.rto_initial_ns);
        (longest << attempts.min(16)).min(self.shared.config.limits.rto_max)
    }

    pub(in crate::mptcp) fn on_connection_timers(&mut self) {
        if self.orphaned_until() <= self.shared.now {
            return self.give_up_on_subflows();
        }
        if self.announcements.next_repeat() <= self.shared.now {
            for one in self.announcements.due(self.shared.now) {
                self.announce(one.id, one.port, one.repeats + 1, self.carrier());
            }
        }
        if self.policy.manager().wakes_at() <= self.shared.now {
            self.take_turn();
        }
        if self.data_timer.deadline() <= self.shared.now {
            self.on_data_timeout();
        }
        if self.send.probe_at <= self.shared.now {
            self.send.probes += 1;
            self.send.unanswered += 1;
            self.send.probe_at = NEVER;
            if self.send.unanswered > self.shared.config.limits.retries
                || self.window_closed_too_long()
            {
                self.shared.counters.increment(Mib::TcpExtTCPAbortOnTimeout);
                return self.end(CloseReason::TimedOut);
            }
            if self.send_what_fits() {
                // In flight, it is repeated like any other.
            } else if let Some(subflow) = self.working_subflow() {
                self.with(subflow, |socket, cx| {
                    socket.send_probe(cx, Mib::TcpExtTCPWinProbe)
                });
            }
            if self.send.probes > 1 {
                self.reinject_head();
            }
        }
        if self.send.fin_at <= self.shared.now {
            // While data is on its way, its own timeouts say whether the peer is there.
            if self.send.outstanding() {
                let half = self.shared.config.limits.retries / 2;
                self.send.fin_count = self.send.fin_count.min(half);
            }
            if self.send.fin_count > self.shared.config.limits.retries {
                return self.end(CloseReason::TimedOut);
            }
            self.send_data_fin();
        }
    }

    /// The peer's window was closed for the user timeout since the first probe (Linux `tcp_probe_timer`).
    fn window_closed_too_long(&mut self) -> bool {
        if self.send.probes == 1 {
            self.send.probed_since = self.shared.now;
        }
        let timeout = self.shared.config.user_timeout_ns;
        let closed = self.send.unsent() > 0 && self.window_closed();
        closed && timeout > 0 && self.shared.now - self.send.probed_since >= timeout
    }

    /// The subflow on which connection-level signals travel: not failed, not a backup if that can be had, lowest RTT.
    pub(super) fn working_subflow(&self) -> Option<usize> {
        (0..self.subflows.len())
            .filter(|&subflow| self.carries_signals(subflow))
            .min_by_key(|&subflow| {
                (
                    self.paths[subflow].potentially_failed,
                    self.paths[subflow].backup,
                    self.paths[subflow].srtt,
                )
            })
    }

    pub(super) fn carries_signals(&self, subflow: usize) -> bool {
        self.paths[subflow].established && self.subflows[subflow].socket.state().synchronised()
    }
}

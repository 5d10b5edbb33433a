//! The connection's time: what is due, and when to ask again.

use super::connection::Connection;
use crate::tcp::{Fired, Socket};
use crate::{CloseReason, EventKind, NEVER, Nanos};

impl Connection {
    /// Handles what is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        self.shared.now = now;
        for me in 0..self.subflows.len() {
            let socket = &self.subflows[me].socket;
            if socket.next_deadline().min(socket.pacing_deadline()) > now {
                continue;
            }
            self.with(me, |socket, cx| socket.on_delayed_ack(cx));
            match self.with(me, |socket, cx| socket.on_timer(cx)) {
                Fired::Retransmission => self.on_retransmission_timeout(me),
                Fired::TimeWaitOver => self.close_subflow(me),
                Fired::Keepalive => {
                    if !self.with(me, |socket, cx| socket.on_keepalive(cx)) {
                        self.lose_subflow(me, CloseReason::TimedOut);
                    }
                }
                Fired::Probe => {
                    if self.subflows[me].socket.stuck(&self.shared) {
                        self.lose_subflow(me, CloseReason::TimedOut);
                    } else {
                        self.send.push_head();
                        self.uncork(me);
                    }
                }
                Fired::LossProbe => self.on_probe_timeout(me),
                Fired::Nothing | Fired::Reordering => {}
            }
            self.with(me, |socket, cx| socket.send_lost(cx));
        }
        self.on_connection_timers();
        self.push();
        self.housekeep();
        self.find_deadline();
    }

    fn on_retransmission_timeout(&mut self, me: usize) {
        if self.subflows[me]
            .join
            .as_ref()
            .is_some_and(|join| join.unconfirmed)
            && self.subflows[me].socket.state.synchronised()
        {
            return self.repeat_join_ack(me);
        }
        if !self.with(me, |socket, cx| socket.on_timeout(cx)) {
            let reason = if self.subflows[me].socket.state.synchronised() {
                CloseReason::TimedOut
            } else {
                CloseReason::Unreachable
            };
            return self.lose_subflow(me, reason);
        }
        if self.subflows[me].socket.state.synchronised()
            && self.session.multipath.is_some()
            && self.shared.config.profile.reinjects_on_timeout()
        {
            if !self.paths[me].potentially_failed {
                self.paths[me].potentially_failed = true;
                self.shared.event(EventKind::PotentiallyFailed(me));
            }
            self.reinject(me);
        }
    }

    /// When [`Connection::on_time`] must be called next at the latest; [`NEVER`] when nothing is pending. Called too early it does nothing.
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// Takes the deadline of a subflow into account that may have come closer.
    pub(super) fn note_deadline(&mut self, me: usize) {
        self.deadline = self.deadline.min(self.subflows[me].socket.next_deadline());
    }

    /// Finds the next deadline anew.
    pub(super) fn find_deadline(&mut self) {
        let sockets = self
            .sockets()
            .map(Socket::next_deadline)
            .min()
            .unwrap_or(NEVER);
        self.deadline = sockets
            .min(self.pacing_deadline())
            .min(self.next_announcement())
            .min(self.path_manager_at)
            .min(self.orphaned_until())
            .min(self.send.deadline())
            .min(self.retransmission.deadline());
    }

    fn pacing_deadline(&self) -> Nanos {
        if !self.paced {
            return NEVER;
        }
        let sockets = self.sockets().map(Socket::pacing_deadline);
        sockets.min().unwrap_or(NEVER)
    }
}

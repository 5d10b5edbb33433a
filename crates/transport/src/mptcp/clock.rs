//! The connection's time: what is due, and when to ask again.

use super::connection::Connection;
use crate::tcp::{Fired, Socket};
use crate::{CloseReason, EventKind, NEVER, Nanos};

impl Connection {
    /// Handles what is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        self.core.now = now;
        for me in 0..self.sockets.len() {
            let socket = &self.sockets[me];
            if socket.next_deadline().min(socket.pacing_deadline()) > now {
                continue;
            }
            self.sockets[me].on_delayed_ack(&mut self.core, me);
            match self.sockets[me].on_timer(&mut self.core, &mut self.paths, me) {
                Fired::Retransmission => self.on_retransmission_timeout(me),
                Fired::TimeWaitOver => self.close_subflow(me),
                Fired::Keepalive => {
                    if !self.sockets[me].on_keepalive(&mut self.core, me) {
                        self.lose_subflow(me, CloseReason::TimedOut);
                    }
                }
                Fired::Cork => self.uncork(me),
                Fired::Nothing | Fired::LossProbe | Fired::Reordering => {}
            }
            self.sockets[me].send_lost(&mut self.core, &mut self.paths[me], me);
        }
        self.on_connection_timers();
        self.push();
        self.housekeep();
        self.find_deadline();
    }

    fn on_retransmission_timeout(&mut self, me: usize) {
        if self.core.joins[me]
            .as_ref()
            .is_some_and(|join| join.unconfirmed)
            && self.sockets[me].state.synchronised()
        {
            return self.repeat_join_ack(me);
        }
        if !self.sockets[me].on_timeout(&mut self.core, &mut self.paths, me) {
            let reason = if self.sockets[me].state.synchronised() {
                CloseReason::TimedOut
            } else {
                CloseReason::Unreachable
            };
            return self.lose_subflow(me, reason);
        }
        if self.sockets[me].state.synchronised()
            && self.core.multipath.is_some()
            && self.core.config.profile.reinjects_on_timeout()
        {
            if !self.paths[me].potentially_failed {
                self.paths[me].potentially_failed = true;
                self.core.event(EventKind::PotentiallyFailed(me));
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
        self.deadline = self.deadline.min(self.sockets[me].next_deadline());
    }

    /// Finds the next deadline anew.
    pub(super) fn find_deadline(&mut self) {
        let sockets = self
            .sockets
            .iter()
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
        let sockets = self.sockets.iter().map(Socket::pacing_deadline);
        sockets.min().unwrap_or(NEVER)
    }
}

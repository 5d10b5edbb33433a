//! The connection's time: what is due, and when to ask again.

use super::connection::Connection;
use super::handshake::unresolved;
use crate::tcp::{Fired, Socket, State};
use crate::{CloseReason, EventKind, NEVER, Nanos};

impl Connection {
    /// Handles what is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        self.shared.now = now;
        for subflow in 0..self.subflows.len() {
            let socket = &self.subflows[subflow].socket;
            if socket
                .next_deadline()
                .min(socket.transfer.controller.pacing_deadline())
                > now
            {
                continue;
            }
            self.with(subflow, |socket, cx| socket.on_delayed_ack(cx));
            match self.with(subflow, |socket, cx| socket.on_timer(cx)) {
                Fired::Retransmission => self.on_retransmission_timeout(subflow),
                Fired::TimeWaitOver => self.close_subflow(subflow),
                Fired::Keepalive => {
                    if !self.with(subflow, |socket, cx| socket.on_keepalive(cx)) {
                        self.lose_subflow(subflow, CloseReason::TimedOut);
                    }
                }
                Fired::Probe => {
                    if self.subflows[subflow]
                        .socket
                        .host
                        .is_stuck(self.shared.config.limits.retries)
                    {
                        self.lose_subflow(subflow, CloseReason::TimedOut);
                    } else {
                        self.send.push_head();
                        self.uncork(subflow);
                    }
                }
                Fired::LossProbe => self.on_probe_timeout(subflow),
                Fired::Nothing | Fired::Reordering => {}
            }
            self.repair(subflow);
        }
        self.on_connection_timers();
        self.push();
        self.housekeep();
        self.find_deadline();
    }

    fn on_retransmission_timeout(&mut self, subflow: usize) {
        if self.subflows[subflow]
            .join
            .as_ref()
            .is_some_and(|join| join.unconfirmed)
            && self.subflows[subflow].socket.state().synchronised()
        {
            return self.repeat_join_ack(subflow);
        }
        let lost = unresolved(&self.subflows[subflow], self.shared.now);
        if lost || self.lacks_route_to_answer(subflow) {
            return self.lose_subflow(subflow, CloseReason::Unreachable);
        }
        self.doubt_capable(subflow);
        if !self.with(subflow, |socket, cx| socket.on_timeout(cx)) {
            let reason = if self.subflows[subflow].socket.state().synchronised() {
                CloseReason::TimedOut
            } else {
                CloseReason::Unreachable
            };
            return self.lose_subflow(subflow, reason);
        }
        if self.subflows[subflow].socket.state().synchronised()
            && self.session.multipath.is_some()
            && self.shared.config.profile.reinjects_on_timeout()
        {
            if !self.paths[subflow].potentially_failed {
                self.paths[subflow].potentially_failed = true;
                self.shared.event(EventKind::PotentiallyFailed(subflow));
            }
            self.reinject(subflow);
        }
    }

    /// The address whose SYN/ACK would have to be sent again is gone for now.
    fn lacks_route_to_answer(&self, subflow: usize) -> bool {
        let own = &self.subflows[subflow];
        let address = own.tuple.local.ip();
        own.socket.state() == State::SynReceived
            && self.shared.config.profile.needs_route_for_syn_ack()
            && self.policy.addresses().is_down(address)
    }

    /// When [`Connection::on_time`] must be called next at the latest; [`NEVER`] when nothing is pending. Called too early it does nothing.
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// Takes the deadline of a subflow into account that may have come closer.
    pub(super) fn note_deadline(&mut self, subflow: usize) {
        self.deadline = self
            .deadline
            .min(self.subflows[subflow].socket.next_deadline());
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
            .min(self.announcements.next_repeat())
            .min(self.policy.manager().wakes_at())
            .min(self.orphaned_until())
            .min(self.send.deadline())
            .min(self.data_timer.deadline());
    }

    fn pacing_deadline(&self) -> Nanos {
        if !self.paced {
            return NEVER;
        }
        let sockets = self
            .sockets()
            .map(|it| it.transfer.controller.pacing_deadline());
        sockets.min().unwrap_or(NEVER)
    }
}

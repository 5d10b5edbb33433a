//! Time: what is due, and when (RFC 9000 section 10.1, RFC 9002 section 6.2).

use polypath_wire::quic::Frame;

use super::connection::Connection;
use super::crypto::Level;
use crate::{CloseReason, MILLISECOND, NEVER, Nanos};

/// The connection is not given up before so many probe timeouts (RFC 9000 section 10.1).
const PROBE_TIMEOUTS: Nanos = 3;

impl Connection {
    /// Does what is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        self.now = now;
        if self.ended.is_some() {
            self.deadline = NEVER;
            return;
        }
        if self.idle_at <= now {
            let reason = if self.established {
                CloseReason::TimedOut
            } else {
                CloseReason::Unreachable
            };
            // Nothing is sent: the peer has given up as well (RFC 9000 section 10.1).
            self.end(reason);
            self.deadline = NEVER;
            return;
        }
        if self.keepalive_at <= now {
            self.keepalive_at = NEVER;
            self.control.push(Frame::Ping);
        }
        for path in 0..self.members.len() {
            if self.recovery_deadline(path) <= now {
                self.on_recovery_timer(path);
            }
            if self.validation_deadline(path) <= now {
                self.give_up_validation(path);
            }
        }
        self.flush();
    }

    /// When [`Connection::on_time`] must be called next at the latest; [`NEVER`] when nothing is pending. Called too early it does nothing.
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    pub(super) fn find_deadline(&mut self) {
        if self.ended.is_some() {
            self.deadline = NEVER;
            return;
        }
        let mut at = self.idle_at.min(self.keepalive_at);
        if self.ready_at.is_some() {
            at = at.min(self.path_manager_at);
        }
        at = if self.handshake.settled() {
            self.find_deadline_of_paths(at)
        } else {
            self.find_deadline_early(at)
        };
        // What is due already waits for something else: the amplification limit, keys.
        self.deadline = if at <= self.now {
            self.now + MILLISECOND
        } else {
            at
        };
    }

    fn find_deadline_of_paths(&self, mut at: Nanos) -> Nanos {
        let delay = self.peer.max_ack_delay * MILLISECOND;
        for (path, member) in self.members.iter().enumerate() {
            at = at.min(member.space.received.deadline());
            if member.closed() {
                continue;
            }
            at = at
                .min(member.recovery_deadline(delay))
                .min(member.pacer.deadline());
            if !member.validated() {
                at = at.min(self.validation_deadline(path));
            }
        }
        at
    }

    /// The same before the handshake is confirmed.
    fn find_deadline_early(&self, mut at: Nanos) -> Nanos {
        for space in self.handshake.spaces.iter().flatten() {
            at = at.min(space.received.deadline());
        }
        let writes = self.handshake.writes(Level::OneRtt);
        for (path, member) in self.members.iter().enumerate() {
            if writes {
                at = at.min(member.space.received.deadline());
            }
            if !member.closed() {
                at = at
                    .min(self.recovery_deadline(path))
                    .min(self.validation_deadline(path))
                    .min(member.pacer.deadline());
            }
        }
        at
    }

    /// Something arrived.
    pub(super) fn restart_idle(&mut self) {
        self.stirred = false;
        self.idle_at = self.now + self.idle_timeout();
        if let Some(keepalive) = &self.config.keepalive {
            self.keepalive_at = self.now + keepalive.time;
        }
    }

    /// The first ack-eliciting packet after something arrived leaves.
    pub(super) fn stir_idle(&mut self) {
        if !std::mem::replace(&mut self.stirred, true) {
            self.idle_at = self.now + self.idle_timeout();
        }
    }

    fn idle_timeout(&self) -> Nanos {
        let ours = self.local_parameters.max_idle_timeout;
        let timeout = match self.peer.max_idle_timeout {
            0 => ours,
            theirs => ours.min(theirs),
        };
        (timeout * MILLISECOND).max(PROBE_TIMEOUTS * self.longest_probe_timeout())
    }

    /// The longest of its paths, before backoff.
    pub(super) fn longest_probe_timeout(&self) -> Nanos {
        let delay = self.peer.max_ack_delay * MILLISECOND;
        let mut longest = 0;
        for member in &self.members {
            if !member.closed() {
                longest = longest.max(member.rtt.probe_timeout(delay));
            }
        }
        longest
    }
}

//! Time: what is due, and when (RFC 9000 section 10.1, RFC 9002 section 6.2).

use polypath_wire::quic::Frame;

use super::connection::Connection;
use super::crypto::Level;
use super::packets::Packets;
use super::transfer::Transfer;
use crate::{MILLISECOND, NEVER, Nanos};

impl Packets {
    /// Nothing more leaves for now: settles pacing, and gives the earliest deadline of all paths and `at`. `limited`: a limit of the peer's holds
    /// data back.
    fn settle_paths(&mut self, at: Nanos, limited: bool) -> Nanos {
        let delay = self.parameters.peer_delay();
        let settled = self.paths.settle(self.now, delay, limited);
        let at = at.min(settled.at);
        if settled.validating && self.lifetime.established() {
            at.min(self.paths.validation_deadline(delay))
        } else {
            at
        }
    }

    /// The earliest deadline of all paths and `at` before the handshake is confirmed.
    fn find_deadline_early(&self, mut at: Nanos) -> Nanos {
        at = at.min(self.handshake.ack_deadline());
        let writes = self.handshake.writes(Level::OneRtt);
        for (path, member) in self.paths.iter().enumerate() {
            if writes {
                at = at.min(member.space().received.deadline());
            }
            if !member.closed() {
                at = at
                    .min(self.recovery_deadline(path))
                    .min(member.window().pacing_deadline());
            }
        }
        if self.lifetime.established() {
            at = at.min(self.paths.validation_deadline(self.parameters.peer_delay()));
        }
        at
    }

    /// The longest of its paths, before backoff.
    pub(super) fn longest_probe_timeout(&self) -> Nanos {
        self.paths
            .longest_probe_timeout(self.parameters.peer_delay())
    }

    /// To be called when a round trip was measured or forgotten, when a path was added or closed, and when the peer's parameters have come.
    pub(super) fn compare_timeouts(&mut self) {
        self.paths.compare_timeouts();
        let ours = self.parameters.own().max_idle_timeout;
        let theirs = self.parameters.peer().max_idle_timeout;
        let longest = self.longest_probe_timeout();
        self.lifetime.set_idle_timeout(ours, theirs, longest);
    }
}

impl Connection {
    /// Does what is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        self.transfer.packets.now = now;
        if self.transfer.packets.lifetime.over() {
            self.deadline = NEVER;
            return;
        }
        if let Some(reason) = self.transfer.packets.lifetime.expires(now) {
            // Nothing is sent: the peer has given up as well (RFC 9000 section 10.1).
            self.transfer.end(reason);
            self.deadline = NEVER;
            return;
        }
        if self.transfer.packets.lifetime.take_keepalive(now) {
            self.transfer.packets.control.push(Frame::Ping);
        }
        for path in 0..self.transfer.packets.paths.len() {
            if self.transfer.packets.recovery_deadline(path) <= now {
                self.transfer.on_recovery_timer(path);
            }
            if self.transfer.packets.lifetime.established()
                && !self.transfer.packets.paths[path].validated()
            {
                let delay = self.transfer.packets.parameters.peer_delay();
                if self.transfer.packets.paths[path].challenge_deadline(delay) <= now {
                    self.transfer.packets.paths[path].reach_mut().ask();
                }
                if self.transfer.packets.paths[path].validation_deadline(delay) <= now {
                    self.path_management
                        .give_up_validation(&mut self.transfer, path);
                }
            }
        }
        self.flush();
    }

    /// When [`Connection::on_time`] must be called next at the latest; [`NEVER`] when nothing is pending. Called too early it does nothing.
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }
}

impl Transfer {
    /// When something is due next at the latest; nothing more leaves until then.
    pub(super) fn find_deadline(&mut self) -> Nanos {
        if self.packets.lifetime.over() {
            return NEVER;
        }
        let at = self.packets.lifetime.deadline();
        let at = at.min(self.policy.manager().wakes_at());
        let at = if self.packets.handshake.settled() {
            self.packets
                .settle_paths(at, self.streams.outgoing().at_limit())
        } else {
            if self.packets.sends_application() {
                let now = self.packets.now;
                self.packets.paths.settle_pacing(now);
            }
            self.packets.find_deadline_early(at)
        };
        // What is due already waits for something else: the amplification limit, keys.
        if at <= self.packets.now {
            self.packets.now + MILLISECOND
        } else {
            at
        }
    }
}

//! Time: what is due, and when (RFC 9000 section 10.1, RFC 9002 section 6.2).

use polypath_wire::quic::Frame;

use super::connection::Connection;
use super::crypto::Level;
use crate::{MILLISECOND, NEVER, Nanos};

impl Connection {
    /// Does what is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        self.now = now;
        if self.lifetime.over() {
            self.deadline = NEVER;
            return;
        }
        if let Some(reason) = self.lifetime.expires(now) {
            // Nothing is sent: the peer has given up as well (RFC 9000 section 10.1).
            self.end(reason);
            self.deadline = NEVER;
            return;
        }
        if self.lifetime.take_keepalive(now) {
            self.control.push(Frame::Ping);
        }
        for path in 0..self.members.len() {
            if self.recovery_deadline(path) <= now {
                self.on_recovery_timer(path);
            }
            if !self.members[path].validated() {
                if self.challenge_deadline(path) <= now {
                    self.members[path].challenges.ask();
                }
                if self.validation_deadline(path) <= now {
                    self.give_up_validation(path);
                }
            }
        }
        self.flush();
    }

    /// When [`Connection::on_time`] must be called next at the latest; [`NEVER`] when nothing is pending. Called too early it does nothing.
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    pub(super) fn find_deadline(&mut self) {
        if self.lifetime.over() {
            self.deadline = NEVER;
            return;
        }
        let at = self.lifetime.deadline();
        let at = at.min(self.policy.manager().wakes_at());
        let at = if self.handshake.settled() {
            self.settle_paths(at)
        } else {
            self.settle_early();
            self.find_deadline_early(at)
        };
        // What is due already waits for something else: the amplification limit, keys.
        self.deadline = if at <= self.now {
            self.now + MILLISECOND
        } else {
            at
        };
    }

    /// Nothing more leaves for now: settles pacing, and gives the earliest deadline of all paths and `at`.
    ///
    /// A path whose window is full needs no timer of its pacer: the acknowledgement that opens the window finds out whether the time has come.
    /// It gets one only while another path has room, which a scheduler left unused, or a limit of the peer's holds data back: the scheduler
    /// is asked again, the peer is told.
    fn settle_paths(&mut self, mut at: Nanos) -> Nanos {
        let now = self.now;
        let delay = self.parameters.peer_delay();
        let (mut validating, mut open, mut asked_at) = (false, false, NEVER);
        let mut paths = self.paths.iter_mut();
        for member in &mut self.members {
            let Some(path) = paths.next() else {
                break;
            };
            at = at.min(member.space.received.deadline());
            let burst_at = member.settle_pacing(path, now);
            if member.closed() {
                continue;
            }
            at = at.min(member.recovery_deadline(delay));
            if path.window_full() {
                asked_at = asked_at.min(burst_at);
            } else {
                at = at.min(burst_at);
                open |= path.established && !path.paced;
            }
            validating |= !member.validated();
        }
        if open || self.streams.outgoing().at_limit() {
            at = at.min(asked_at);
        }
        if validating {
            for path in 0..self.members.len() {
                at = at
                    .min(self.validation_deadline(path))
                    .min(self.challenge_deadline(path));
            }
        }
        at
    }

    /// Settles pacing before the handshake is confirmed.
    fn settle_early(&mut self) {
        if self.sends_application() {
            let now = self.now;
            for (member, path) in self.members.iter_mut().zip(&mut self.paths) {
                member.settle_pacing(path, now);
            }
        }
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
                    .min(self.challenge_deadline(path))
                    .min(member.pacer.deadline());
            }
        }
        at
    }

    /// The longest of its paths, before backoff.
    pub(super) fn longest_probe_timeout(&self) -> Nanos {
        debug_assert_eq!(self.longest_timeout, self.find_longest_timeout());
        match self.longest_timeout {
            0 => 0,
            longest => longest + self.parameters.peer_delay(),
        }
    }

    /// The same without the delay of acknowledgements; 0 where no path is open.
    fn find_longest_timeout(&self) -> Nanos {
        let open = self.members.iter().filter(|member| !member.closed());
        open.map(|member| member.rtt.probe_timeout(0))
            .max()
            .unwrap_or(0)
    }

    /// To be called when a round trip was measured or forgotten, when a path was added or closed, and when the peer's parameters have come.
    pub(super) fn compare_timeouts(&mut self) {
        self.longest_timeout = self.find_longest_timeout();
        let ours = self.parameters.own().max_idle_timeout;
        let theirs = self.parameters.peer().max_idle_timeout;
        let longest = self.longest_probe_timeout();
        self.lifetime.set_idle_timeout(ours, theirs, longest);
    }
}

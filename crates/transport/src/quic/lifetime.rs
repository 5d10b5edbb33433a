//! The lifetime of a connection: idleness, its end, and answers after the end (RFC 9000 section 10).

use super::closed::{Cause, Close, Closed};
use crate::{CloseReason, MILLISECOND, NEVER, Nanos, SECOND};

/// The connection is given up after so long without a packet (max_idle_timeout, as quinn has it).
pub(super) const IDLE: Nanos = 30 * SECOND;
/// The connection is not given up before so many probe timeouts (RFC 9000 section 10.1).
const PROBE_TIMEOUTS: Nanos = 3;
/// An answer to a packet after the end is given for so many probe timeouts (RFC 9000 section 10.2).
const PERIOD: Nanos = 3;

/// From the first packet to the last answer.
#[derive(Debug)]
pub struct Lifetime {
    established: bool,
    /// When the connection is given up unless something arrives, and after how long without a packet.
    idle_at: Nanos,
    idle_timeout: Nanos,
    /// An ack-eliciting packet was sent since the last one arrived.
    stirred: bool,
    /// After how long without a packet the peer is probed, and when.
    keepalive: Option<Nanos>,
    keepalive_at: Nanos,
    ended: Option<CloseReason>,
    /// The longest probe timeout when it ended.
    closing_timeout: Nanos,
    /// A CONNECTION_CLOSE to be sent.
    closing: Option<Close>,
    closed: Option<Closed>,
    cause: Option<Cause>,
}

impl Lifetime {
    pub(super) fn new(now: Nanos, keepalive: Option<Nanos>) -> Self {
        Self {
            established: false,
            idle_at: now + IDLE,
            idle_timeout: IDLE,
            stirred: false,
            keepalive,
            keepalive_at: NEVER,
            ended: None,
            closing_timeout: 0,
            closing: None,
            closed: None,
            cause: None,
        }
    }

    /// The handshake is complete on this side.
    pub(super) fn established(&self) -> bool {
        self.established
    }

    pub(super) fn establish(&mut self) {
        self.established = true;
    }

    /// Something arrived.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.stirred = false;
        self.idle_at = now + self.idle_timeout;
        if let Some(keepalive) = self.keepalive {
            self.keepalive_at = now + keepalive;
        }
    }

    /// An ack-eliciting packet leaves: the first one after something arrived counts as much.
    pub(super) fn stir(&mut self, now: Nanos) {
        if !std::mem::replace(&mut self.stirred, true) {
            self.idle_at = now + self.idle_timeout;
        }
    }

    /// What both ends admit in milliseconds, and the longest probe timeout (RFC 9000 section 10.1).
    pub(super) fn set_idle_timeout(&mut self, ours: u64, theirs: u64, longest: Nanos) {
        let timeout = match theirs {
            0 => ours,
            theirs => ours.min(theirs),
        };
        self.idle_timeout = (timeout * MILLISECOND).max(PROBE_TIMEOUTS * longest);
    }

    /// When [`Lifetime::expires`] or [`Lifetime::take_keepalive`] has something.
    pub(super) fn deadline(&self) -> Nanos {
        self.idle_at.min(self.keepalive_at)
    }

    /// For how an idle connection is given up, once it is time.
    pub(super) fn expires(&self, now: Nanos) -> Option<CloseReason> {
        let reason = if self.established {
            CloseReason::TimedOut
        } else {
            CloseReason::Unreachable
        };
        (self.idle_at <= now).then_some(reason)
    }

    /// Whether the peer is to be probed now; that is told once.
    pub(super) fn take_keepalive(&mut self, now: Nanos) -> bool {
        let due = self.keepalive_at <= now;
        if due {
            self.keepalive_at = NEVER;
        }
        due
    }

    pub(super) fn ended(&self) -> Option<CloseReason> {
        self.ended
    }

    pub(super) fn over(&self) -> bool {
        self.ended.is_some()
    }

    /// The connection ends, with a longest probe timeout of `timeout`.
    pub(super) fn end(&mut self, reason: CloseReason, timeout: Nanos) {
        self.ended = Some(reason);
        self.closing_timeout = timeout;
    }

    /// This is to be told the peer.
    pub(super) fn close(&mut self, close: Close) {
        self.closing = Some(close);
    }

    /// What the peer is to be told now.
    pub(super) fn take_close(&mut self, now: Nanos) -> Option<Close> {
        let close = self.closing.take()?;
        self.give_cause(false, close.error, || close.reason.into());
        let until = now + PERIOD * self.closing_timeout;
        self.closed.get_or_insert(Closed::new(close, until));
        Some(close)
    }

    /// The peer closed the connection.
    pub(super) fn on_close(&mut self, error: u64, reason: &[u8]) {
        self.give_cause(true, error, || String::from_utf8_lossy(reason).into_owned());
    }

    fn give_cause(&mut self, by_peer: bool, error: u64, reason: impl FnOnce() -> String) {
        self.cause.get_or_insert_with(|| Cause {
            by_peer,
            error,
            reason: reason(),
        });
    }

    /// A datagram came after the end. Whether the peer is to be told again.
    pub(super) fn answers(&mut self, now: Nanos) -> bool {
        let answer = self.closed.as_mut().and_then(|to| to.on_datagram(now));
        if answer.is_some() {
            self.closing = answer;
        }
        answer.is_some()
    }

    /// Why the connection was closed, of whichever side closed it first. Nothing was said of one that timed out.
    pub fn cause(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// Until when packets are answered after this side closed the connection (RFC 9000 section 10.2); 0 if it did not.
    pub fn closing_until(&self) -> Nanos {
        self.closed.as_ref().map_or(0, Closed::until)
    }

    pub(super) fn closing_timeout(&self) -> Nanos {
        self.closing_timeout
    }
}

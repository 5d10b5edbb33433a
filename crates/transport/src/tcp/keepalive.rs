//! Keep-alive (RFC 9293 section 3.8.4) as Linux does it (`tcp_keepalive_timer`, net/ipv4/tcp_timer.c).

use super::Socket;
use super::timer::Idle;
use crate::tcp::context::{Context, Options};
use crate::{MILLISECOND, Mib, Nanos};

/// How long nothing was heard of the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Silence {
    /// When the peer last acknowledged anything.
    heard_at: Nanos,
    /// Probes since then, and when the last one left.
    probes: u32,
    probed_at: Nanos,
}

impl Silence {
    /// The peer acknowledges something.
    #[inline(always)]
    pub fn end(&mut self, now: Nanos) {
        self.heard_at = now;
    }

    #[inline(always)]
    pub fn heard_at(&self) -> Nanos {
        self.heard_at
    }

    /// The same to the millisecond (Linux `rcv_tstamp`).
    pub fn heard_in(&self) -> Nanos {
        self.heard_at / MILLISECOND * MILLISECOND
    }

    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// So many went unanswered, of a peer that was last heard at this time.
    fn unanswered(&mut self, heard_at: Nanos) -> u32 {
        if self.probed_at <= heard_at {
            self.probes = 0;
        }
        self.probes
    }

    fn note_probe(&mut self, now: Nanos) {
        self.probes += 1;
        self.probed_at = now;
    }
}

impl Socket {
    /// When the peer was last heard of, by data or an acknowledgement.
    fn last_heard(&self) -> Nanos {
        self.transfer
            .silence
            .heard_at()
            .max(self.receiver.last_received())
    }

    /// The time for a probe has come. False: the peer is given up. What is in flight or waits to be sent has timers of its own.
    pub(crate) fn on_keepalive(&mut self, cx: &mut Context<impl Options>) -> bool {
        let Some(keepalive) = cx.shared.config.keepalive else {
            return true;
        };
        let now = cx.shared.now;
        let busy = !self.transfer.flight.is_empty()
            || !self.queue.is_empty()
            || self.transfer.tries_again();
        let idle = now - self.last_heard();
        let next = if busy {
            keepalive.time
        } else if idle < keepalive.time {
            keepalive.time - idle
        } else {
            let heard_at = self.last_heard();
            let unanswered = self.transfer.silence.unanswered(heard_at);
            let given_up = match cx.shared.config.user_timeout_ns {
                0 => unanswered >= keepalive.probes,
                timeout => idle >= timeout && unanswered > 0,
            };
            if given_up {
                cx.shared.counters.increment(Mib::TcpExtTCPAbortOnTimeout);
                self.send_reset(cx);
                return false;
            }
            self.transfer.silence.note_probe(now);
            self.send_probe(cx, Mib::TcpExtTCPKeepAlive);
            keepalive.interval
        };
        self.transfer.timers.set_idle(Idle::Keepalive, now + next);
        true
    }
}

//! Keep-alive (RFC 9293 section 3.8.4) as Linux does it (`tcp_keepalive_timer`, net/ipv4/tcp_timer.c).

use super::Socket;
use super::timer::Idle;
use crate::tcp::context::{Context, Options, Shared};
use crate::{Mib, Nanos};

/// Probes since the peer was heard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probes {
    sent: u32,
    /// When the last one left.
    last_at: Nanos,
}

impl Probes {
    pub fn sent(self) -> u32 {
        self.sent
    }

    /// So many went unanswered, of a peer that was last heard at this time.
    fn unanswered(&mut self, heard_at: Nanos) -> u32 {
        if self.last_at <= heard_at {
            self.sent = 0;
        }
        self.sent
    }

    fn note(&mut self, now: Nanos) {
        self.sent += 1;
        self.last_at = now;
    }
}

impl Socket {
    /// Waits for the connection to be idle, where the host asked for it.
    pub(super) fn start_keepalive(&mut self, shared: &Shared) {
        if let Some(keepalive) = shared.config.keepalive {
            self.timers
                .set_idle(Idle::Keepalive, shared.now + keepalive.time);
        }
    }

    /// When the peer was last heard of, by data or an acknowledgement.
    fn last_heard(&self) -> Nanos {
        self.heard_at.max(self.receiver.last_received())
    }

    /// The time for a probe has come. False: the peer is given up. What is in flight or waits to be sent has timers of its own.
    pub(crate) fn on_keepalive(&mut self, cx: &mut Context<impl Options>) -> bool {
        let Some(keepalive) = cx.shared.config.keepalive else {
            return true;
        };
        let now = cx.shared.now;
        let busy = !self.flight.is_empty() || !self.queue.is_empty() || self.tries_again();
        let idle = now - self.last_heard();
        let next = if busy {
            keepalive.time
        } else if idle < keepalive.time {
            keepalive.time - idle
        } else {
            let heard_at = self.last_heard();
            let unanswered = self.keepalive.unanswered(heard_at);
            let given_up = match cx.shared.config.user_timeout_ns {
                0 => unanswered >= keepalive.probes,
                timeout => idle >= timeout && unanswered > 0,
            };
            if given_up {
                cx.shared.counters.increment(Mib::TcpExtTCPAbortOnTimeout);
                self.send_reset(cx);
                return false;
            }
            self.keepalive.note(now);
            self.send_probe(cx, Mib::TcpExtTCPKeepAlive);
            keepalive.interval
        };
        self.timers.set_idle(Idle::Keepalive, now + next);
        true
    }
}

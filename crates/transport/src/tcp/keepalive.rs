//! Keep-alive (RFC 9293 section 3.8.4) as Linux does it (`tcp_keepalive_timer`, net/ipv4/tcp_timer.c).

use super::Socket;
use super::timer::Idle;
use crate::tcp::context::{Context, Options, Shared};
use crate::{Mib, Nanos};

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
        self.heard_at.max(self.ack.last_received())
    }

    /// The time for a probe has come. False: the peer is given up. What is in flight or waits to be sent has timers of its own.
    pub(crate) fn on_keepalive(&mut self, cx: &mut Context<impl Options>) -> bool {
        let Some(keepalive) = cx.shared.config.keepalive else {
            return true;
        };
        let now = cx.shared.now;
        let busy = !self.sent.is_empty() || !self.unsent.is_empty();
        let idle = now - self.last_heard();
        let next = if busy {
            keepalive.time
        } else if idle < keepalive.time {
            keepalive.time - idle
        } else {
            if self.probed_at <= self.last_heard() {
                self.probes = 0;
            }
            let given_up = match cx.shared.config.user_timeout_ns {
                0 => self.probes >= keepalive.probes,
                timeout => idle >= timeout && self.probes > 0,
            };
            if given_up {
                cx.shared.counters.increment(Mib::TcpExtTCPAbortOnTimeout);
                self.send_reset(cx);
                return false;
            }
            self.probes += 1;
            self.probed_at = now;
            self.send_probe(cx, Mib::TcpExtTCPKeepAlive);
            keepalive.interval
        };
        self.timers.set_idle(Idle::Keepalive, now + next);
        true
    }
}

//! RACK: loss detection by time (RFC 8985 section 6).

use super::DUPLICATE_THRESHOLD;
use super::Delivery;
use crate::mptcp::core::Core;
use crate::path::CaState;
use crate::tcp::Socket;
use crate::tcp::sender::Sent;
use crate::tcp::timer::Pending;
use crate::{Mib, Nanos};

/// RACK's state (RFC 8985 section 5.3).
#[derive(Debug, Default)]
pub(in crate::tcp) struct Rack {
    /// Transmission time and end of the segment sent last among those delivered.
    pub(super) sent_at: Nanos,
    pub(super) end: u64,
    pub(super) rtt: Nanos,
    pub(super) reordering_seen: bool,
    /// Multiplier of the reordering window (section 6.2, step 4), the round in which it last grew, and the recoveries until it is reset.
    pub(super) steps: u32,
    pub(super) steps_round: u64,
    pub(super) persist: u32,
}

/// Recoveries after which the reordering window returns to its smallest (section 6.2: 16).
const STEPS_PERSIST: u32 = 16;

impl Socket {
    pub(super) fn reordering_found(&mut self, core: &mut Core) {
        self.rack.reordering_seen = true;
        core.counters.increment(Mib::TcpExtTCPSACKReorder);
    }

    /// RFC 8985 section 6.2, steps 1 and 2.
    pub(super) fn advance_rack(&mut self, now: Nanos, sent: &Sent) {
        let rtt = now - sent.sent_at;
        if sent.retransmitted() && rtt < self.rtt.min() {
            // The original, not the retransmission, was delivered.
            return;
        }
        self.rack.rtt = rtt;
        if (sent.sent_at, sent.end()) > (self.rack.sent_at, self.rack.end) {
            self.rack.sent_at = sent.sent_at;
            self.rack.end = sent.end();
        }
    }

    /// RFC 8985 section 6.2, step 4: the reordering window.
    pub(super) fn reordering_window(&self) -> Nanos {
        if !self.rack.reordering_seen
            && (self.recovery.state >= CaState::Recovery
                || self.recovery.sacked >= DUPLICATE_THRESHOLD)
        {
            return 0;
        }
        (self.rtt.min() / 4 * u64::from(self.rack.steps + 1)).min(self.rtt.srtt())
    }

    /// Widens the reordering window when a DSACK shows a needless retransmission, and narrows it after 16 recoveries.
    pub(super) fn adapt_reordering_window(&mut self, delivery: &Delivery) {
        if delivery.duplicate_sack && self.una >= self.rack.steps_round {
            self.rack.steps = (self.rack.steps + 1).min(254);
            self.rack.steps_round = self.next;
            self.rack.persist = STEPS_PERSIST;
        }
    }

    /// RFC 8985 section 6.2, step 5: what was sent a reordering window before something delivered is lost.
    pub(super) fn detect_losses(&mut self, core: &mut Core, delivery: &mut Delivery) {
        if !self.negotiated.sack || self.rack.sent_at == 0 || self.sent.is_empty() {
            return;
        }
        let recovery = &mut self.recovery;
        let nothing_suspicious = recovery.sacked == 0 && recovery.retransmitting == 0;
        let head = &self.sent[0];
        if nothing_suspicious && (head.sent_at, head.end()) > (self.rack.sent_at, self.rack.end) {
            return;
        }
        let window = self.reordering_window();
        let mut wait: Nanos = 0;
        for index in 0..self.sent.len() {
            let sent = &mut self.sent[index];
            let retransmitting = sent.has(Sent::RETRANSMITTING);
            if sent.has(Sent::SACKED) || (sent.has(Sent::LOST) && !retransmitting) {
                continue;
            }
            if (sent.sent_at, sent.end()) >= (self.rack.sent_at, self.rack.end) {
                if sent.retransmitted() {
                    continue;
                }
                break;
            }
            let due = sent.sent_at + self.rack.rtt + window;
            if due > core.now {
                wait = wait.max(due - core.now);
                continue;
            }
            if retransmitting {
                sent.clear(Sent::RETRANSMITTING);
                self.recovery.retransmitting -= 1;
                delivery.retransmission_lost = true;
                core.counters.increment(Mib::TcpExtTCPLostRetransmit);
            }
            Self::mark_lost(&mut self.recovery, sent, delivery);
        }
        if wait > 0 {
            self.timers.set(Pending::Reordering, core.now + wait);
            delivery.rearm = false;
        }
    }
}

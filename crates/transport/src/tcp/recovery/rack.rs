//! RACK: loss detection by time (RFC 8985 section 6).

use std::collections::VecDeque;

use super::DUPLICATE_THRESHOLD;
use super::Delivery;
use crate::path::CaState;
use crate::tcp::Socket;
use crate::tcp::context::Shared;
use crate::tcp::flight::{first_beyond, first_from};
use crate::tcp::sender::Sent;
use crate::tcp::timer::Pending;
use crate::tcp::timestamp;
use crate::{MILLISECOND, Mib, Nanos};

/// RACK's state (RFC 8985 section 5.3).
#[derive(Debug)]
pub(in crate::tcp) struct Rack {
    /// Transmission time and end of the segment sent last among those delivered.
    pub(super) sent_at: Nanos,
    pub(super) end: u64,
    pub(super) rtt: Nanos,
    /// Something was delivered since losses were last looked for.
    pub(super) advanced: bool,
    pub(super) reordering_seen: bool,
    /// How far packets are known to overtake each other, in packets (Linux `tp->reordering`).
    pub(in crate::tcp) degree: u64,
    /// A DSACK that reordering may have caused waits to widen the window.
    pub(super) duplicate_seen: bool,
    /// Multiplier of the reordering window (section 6.2, step 4), the round in which it last grew, and the recoveries until it is reset.
    pub(super) steps: u32,
    pub(super) steps_round: u64,
    pub(super) persist: u32,
    /// Of segments that were sent once, those below this are SACKed or marked as lost.
    pub(super) decided: u64,
    /// When segments were sent again, and where they begin, in the order of sending (section 6.2 step 5 wants that order; what was sent
    /// once is in it by its sequence numbers). Some are over: delivered, lost again, or sent another time.
    repeated: VecDeque<(Nanos, u64)>,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            sent_at: 0,
            end: 0,
            rtt: 0,
            advanced: false,
            reordering_seen: false,
            degree: u64::from(DUPLICATE_THRESHOLD),
            duplicate_seen: false,
            steps: 0,
            steps_round: 0,
            persist: 0,
            decided: 0,
            repeated: VecDeque::new(),
        }
    }
}

/// Recoveries after which the reordering window returns to its smallest (section 6.2: 16).
pub(super) const STEPS_PERSIST: u32 = 16;

/// Linux waits this much longer than the reordering window (TCP_TIMEOUT_MIN_US).
const REORDERING_GRACE: Nanos = 2 * MILLISECOND;
/// No packet is taken to be overtaken by more (tcp_max_reordering).
const MOST_REORDERING: u64 = 300;

impl Socket {
    /// What begins at `low`, and was never sent again, was delivered after something higher, if that is still so (Linux
    /// `tcp_check_sack_reordering`).
    #[cold]
    pub(super) fn note_reordering(
        &mut self,
        shared: &mut Shared,
        low: u64,
        mss: u32,
        counter: Mib,
    ) {
        let highest = match self.recovery.sacked {
            0 => self.una,
            _ => self.recovery.highest_sacked(),
        };
        if low >= highest {
            return;
        }
        let distance = (highest - low).div_ceil(u64::from(mss.max(1)));
        self.rack.degree = self.rack.degree.max(distance.min(MOST_REORDERING));
        self.rack.reordering_seen = true;
        shared.counters.increment(counter);
    }

    /// RFC 8985 section 6.2, steps 1 and 2. `echo`: the timestamp that a cumulative acknowledgement echoes, 0 where there is none.
    pub(super) fn advance_rack(&mut self, now: Nanos, sent: &Sent, echo: u32) {
        if !self.negotiated.sack {
            return;
        }
        let rtt = now - sent.sent_at;
        if sent.retransmitted() {
            let before = (echo.wrapping_sub(timestamp(sent.sent_at)) as i32) < 0;
            if rtt < self.rtt.min() || (echo != 0 && before) {
                // The original, not the retransmission, was delivered.
                return;
            }
        }
        self.rack.advanced = true;
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

    /// Widens the reordering window when a DSACK shows a needless retransmission that reordering may have caused, once a round trip, and
    /// narrows it after 16 recoveries (Linux `tcp_rack_update_reo_wnd`).
    pub(super) fn adapt_reordering_window(&mut self) {
        if self.rack.duplicate_seen && self.una >= self.rack.steps_round {
            self.rack.steps = (self.rack.steps + 1).min(254);
            self.rack.steps_round = self.next;
            self.rack.persist = STEPS_PERSIST;
        } else if self.rack.persist == 0 {
            self.rack.steps = 0;
        }
        self.rack.duplicate_seen = false;
    }

    /// Looks for losses if something was delivered since the last time; without SACK, duplicate ACKs tell (RFC 6582).
    pub(super) fn identify_losses(&mut self, shared: &mut Shared, delivery: &mut Delivery) {
        if self.negotiated.sack {
            if std::mem::take(&mut self.rack.advanced) {
                self.detect_losses(shared, delivery);
            }
            return;
        }
        let state = self.recovery.state;
        let begins = state < CaState::Recovery && self.una > self.recovery.recover;
        if (begins && self.recovery.sacked >= DUPLICATE_THRESHOLD)
            || (state == CaState::Recovery && delivery.advanced)
        {
            self.mark_head_lost(delivery);
        }
    }

    /// RFC 8985 section 6.2, step 5: what was sent a reordering window before something delivered is lost.
    pub(super) fn detect_losses(&mut self, shared: &mut Shared, delivery: &mut Delivery) {
        if self.rack.sent_at == 0 || self.sent.is_empty() {
            return;
        }
        let recovery = &mut self.recovery;
        let nothing_suspicious = recovery.sacked == 0 && recovery.retransmitting == 0;
        let head = &self.sent[0];
        if nothing_suspicious && (head.sent_at, head.end()) > (self.rack.sent_at, self.rack.end) {
            return;
        }
        let due_after = self.rack.rtt + self.reordering_window();
        let wait = self
            .detect_among_first(shared.now, due_after, delivery)
            .max(self.detect_among_repeated(shared, due_after, delivery));
        if wait > 0 {
            self.timers
                .set(Pending::Reordering, shared.now + wait + REORDERING_GRACE);
            delivery.rearm = false;
        }
    }

    /// Of what was sent once. Returns how long the last that is still waited for has left.
    fn detect_among_first(
        &mut self,
        now: Nanos,
        due_after: Nanos,
        delivery: &mut Delivery,
    ) -> Nanos {
        let decided = self.rack.decided;
        let from = first_from(&self.sent, decided);
        let latest = (self.rack.sent_at, self.rack.end);
        let (mut wait, mut first_waiting) = (0, None);
        let mut reached = self.next;
        for sent in self.sent.range_mut(from..) {
            if sent.retransmitted() || sent.has(Sent::SACKED) || sent.has(Sent::LOST) {
                continue;
            }
            if (sent.sent_at, sent.end()) >= latest {
                reached = sent.seq;
                break;
            }
            let due = sent.sent_at + due_after;
            if due > now {
                wait = wait.max(due - now);
                first_waiting.get_or_insert(sent.seq);
            } else {
                Self::mark_lost(&mut self.recovery, sent, delivery);
            }
        }
        self.rack.decided = first_waiting.unwrap_or(reached);
        wait
    }

    /// Of what was sent again. Returns the same.
    fn detect_among_repeated(
        &mut self,
        shared: &mut Shared,
        due_after: Nanos,
        delivery: &mut Delivery,
    ) -> Nanos {
        let latest = (self.rack.sent_at, self.rack.end);
        let mut wait = 0;
        let mut kept = 0;
        for at in 0..self.rack.repeated.len() {
            let (sent_at, seq) = self.rack.repeated[at];
            let Some(index) = self.repeated_at(sent_at, seq) else {
                continue;
            };
            let sent = &mut self.sent[index];
            let due = sent_at + due_after;
            if (sent_at, sent.end()) < latest && due <= shared.now {
                if sent.has(Sent::RETRANSMITTING) {
                    sent.clear(Sent::RETRANSMITTING);
                    self.recovery.retransmitting -= 1;
                    delivery.retransmission_lost = true;
                    (shared.counters).increment(Mib::TcpExtTCPLostRetransmit);
                }
                Self::mark_lost(&mut self.recovery, sent, delivery);
                continue;
            }
            if (sent_at, sent.end()) < latest {
                wait = wait.max(due - shared.now);
            }
            self.rack.repeated[kept] = (sent_at, seq);
            kept += 1;
            if sent_at > latest.0 {
                self.rack.repeated.drain(kept..=at);
                return wait;
            }
        }
        self.rack.repeated.truncate(kept);
        wait
    }

    /// The segment that begins at `seq` is sent again.
    pub(in crate::tcp) fn note_repeated(&mut self, now: Nanos, seq: u64) {
        if !self.negotiated.sack {
            return;
        }
        if self.rack.repeated.len() > 2 * self.sent.len() {
            let mut repeated = std::mem::take(&mut self.rack.repeated);
            repeated.retain(|&(sent_at, seq)| self.repeated_at(sent_at, seq).is_some());
            self.rack.repeated = repeated;
        }
        self.rack.repeated.push_back((now, seq));
    }

    /// Where the segment is that was sent again at that time, if that is not over.
    fn repeated_at(&self, sent_at: Nanos, seq: u64) -> Option<usize> {
        let seq = seq.max(self.una);
        let index = first_beyond(&self.sent, seq);
        let sent = self.sent.get(index)?;
        let over = sent.has(Sent::SACKED) || sent.awaits_repair();
        (!over && sent.retransmitted() && sent.sent_at == sent_at).then_some(index)
    }

    /// What was marked as lost is not, or segments were cut: looks at all of them again.
    pub(in crate::tcp) fn recount_rack(&mut self) {
        self.rack.decided = 0;
        let repeated = self.sent.iter().filter(|sent| sent.retransmitted());
        let mut repeated: Vec<_> = repeated.map(|sent| (sent.sent_at, sent.seq)).collect();
        repeated.sort_unstable();
        self.rack.repeated = repeated.into();
    }
}

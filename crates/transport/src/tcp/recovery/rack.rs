//! RACK: loss detection by time (RFC 8985 section 6).

use std::collections::VecDeque;

use super::DUPLICATE_THRESHOLD;
use crate::path::rtt::RttEstimator;
use crate::tcp::flight::{Flight, Sent, Verdict};
use crate::tcp::timestamp;
use crate::{MILLISECOND, Nanos};

/// What a search for losses found.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Found {
    pub newly_lost: u32,
    /// Repetitions that are lost, too.
    pub repetitions: u32,
    /// How long to wait until more may be lost; 0: nothing is waited for.
    pub wait: Nanos,
}

/// RACK's state (RFC 8985 section 5.3).
#[derive(Debug)]
pub(in crate::tcp) struct Rack {
    /// Transmission time and end of the segment sent last among those delivered.
    sent_at: Nanos,
    end: u64,
    rtt: Nanos,
    /// Something was delivered since losses were last looked for.
    advanced: bool,
    reordering_seen: bool,
    /// How far packets are known to overtake each other, in packets (Linux `tp->reordering`).
    degree: u64,
    /// A DSACK that reordering may have caused waits to widen the window.
    duplicate_seen: bool,
    /// Multiplier of the reordering window (section 6.2, step 4), the round in which it last grew, and the recoveries until it is reset.
    steps: u32,
    steps_round: u64,
    persist: u32,
    /// Of segments that were sent once, those below this are SACKed or marked as lost.
    decided: u64,
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
const STEPS_PERSIST: u32 = 16;

/// Linux waits this much longer than the reordering window (TCP_TIMEOUT_MIN_US).
const REORDERING_GRACE: Nanos = 2 * MILLISECOND;
/// No packet is taken to be overtaken by more (tcp_max_reordering).
const MOST_REORDERING: u64 = 300;

impl Rack {
    /// By how many packets others are known to overtake one.
    pub fn degree(&self) -> u64 {
        self.degree
    }

    /// The round trip of the segment sent last among those delivered.
    pub fn rtt(&self) -> Nanos {
        self.rtt
    }

    /// What begins at `low`, and was never sent again, was delivered after something that ends at `highest`. True: that tells of reordering
    /// (Linux `tcp_check_sack_reordering`).
    #[cold]
    pub fn note_reordering(&mut self, low: u64, highest: u64, mss: u32) -> bool {
        if low >= highest {
            return false;
        }
        let distance = (highest - low).div_ceil(u64::from(mss.max(1)));
        self.degree = self.degree.max(distance.min(MOST_REORDERING));
        self.reordering_seen = true;
        true
    }

    /// A DSACK came that is not of a tail loss probe.
    pub fn note_duplicate(&mut self) {
        self.duplicate_seen |= self.reordering_seen;
    }

    /// RFC 8985 section 6.2, steps 1 and 2. `echo`: the timestamp that a cumulative acknowledgement echoes, 0 where there is none.
    pub fn advance(&mut self, now: Nanos, sent: &Sent, echo: u32, rtts: &RttEstimator) {
        if sent.retransmitted() {
            let before = (echo.wrapping_sub(timestamp(sent.sent_at)) as i32) < 0;
            if now - sent.sent_at < rtts.min() || (echo != 0 && before) {
                // The original, not the retransmission, was delivered.
                return;
            }
        }
        self.advance_to(now, (sent.sent_at, sent.end()));
    }

    /// The same of a segment that was sent once: when, and where it ends.
    #[inline(always)]
    pub fn advance_to(&mut self, now: Nanos, sent: (Nanos, u64)) {
        self.advanced = true;
        self.rtt = now - sent.0;
        if sent > self.latest() {
            (self.sent_at, self.end) = sent;
        }
    }

    /// Whether something was delivered since losses were last looked for, which they are now.
    pub fn begins_search(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// Losses are looked for although nothing was delivered.
    pub fn search_again(&mut self) {
        self.advanced = true;
    }

    fn latest(&self) -> (Nanos, u64) {
        (self.sent_at, self.end)
    }

    /// RFC 8985 section 6.2, step 4: the reordering window. `suspicious`: a recovery is under way, or as much is SACKed as tells of a loss.
    fn window(&self, suspicious: bool, rtts: &RttEstimator) -> Nanos {
        if !self.reordering_seen && suspicious {
            return 0;
        }
        (rtts.min() / 4 * u64::from(self.steps + 1)).min(rtts.srtt())
    }

    /// Widens the reordering window when a DSACK shows a needless retransmission that reordering may have caused, once a round trip, and
    /// narrows it after 16 recoveries (Linux `tcp_rack_update_reo_wnd`).
    #[inline(always)]
    pub fn adapt_window(&mut self, flight: &Flight) {
        if self.duplicate_seen && flight.una() >= self.steps_round {
            self.steps = (self.steps + 1).min(254);
            self.steps_round = flight.next();
            self.persist = STEPS_PERSIST;
        } else if self.persist == 0 {
            self.steps = 0;
        }
        self.duplicate_seen = false;
    }

    /// A recovery is over that was not needless.
    pub fn end_recovery(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was needless.
    pub fn persist_longer(&mut self) {
        self.persist = (self.persist + 1).min(STEPS_PERSIST);
    }

    /// RFC 8985 section 6.2, step 5: what was sent a reordering window before something delivered is lost. `recovers`: a recovery is under way.
    pub fn detect_losses(
        &mut self,
        flight: &mut Flight,
        now: Nanos,
        rtts: &RttEstimator,
        recovers: bool,
    ) -> Option<Found> {
        let head = flight.segments().front()?;
        let calm = flight.sacked() == 0 && flight.retransmitting() == 0;
        if self.sent_at == 0 || calm && (head.sent_at, head.end()) > self.latest() {
            return None;
        }
        let suspicious = recovers || flight.sacked() >= DUPLICATE_THRESHOLD;
        let due_after = self.rtt + self.window(suspicious, rtts);
        let mut found = Found::default();
        self.detect_among_first(flight, now, due_after, &mut found);
        self.detect_among_repeated(flight, now, due_after, &mut found);
        if found.wait > 0 {
            found.wait += REORDERING_GRACE;
        }
        Some(found)
    }

    /// Of what was sent once.
    fn detect_among_first(
        &mut self,
        flight: &mut Flight,
        now: Nanos,
        due_after: Nanos,
        found: &mut Found,
    ) {
        let latest = self.latest();
        let (mut wait, mut first_waiting) = (0, None);
        let mut reached = flight.next();
        found.newly_lost += flight.judge(flight.first_from(self.decided), |sent| {
            if sent.retransmitted() || sent.has(Sent::SACKED) || sent.has(Sent::LOST) {
                return Verdict::Keep;
            }
            if (sent.sent_at, sent.end()) >= latest {
                reached = sent.seq;
                return Verdict::TooRecent;
            }
            let due = sent.sent_at + due_after;
            if due <= now {
                return Verdict::Lost;
            }
            wait = wait.max(due - now);
            first_waiting.get_or_insert(sent.seq);
            Verdict::Keep
        });
        self.decided = first_waiting.unwrap_or(reached);
        found.wait = found.wait.max(wait);
    }

    /// Of what was sent again.
    fn detect_among_repeated(
        &mut self,
        flight: &mut Flight,
        now: Nanos,
        due_after: Nanos,
        found: &mut Found,
    ) {
        let latest = self.latest();
        let mut kept = 0;
        for at in 0..self.repeated.len() {
            let (sent_at, seq) = self.repeated[at];
            let Some(index) = flight.repeated_at(sent_at, seq) else {
                continue;
            };
            let earlier = (sent_at, flight.segments()[index].end()) < latest;
            let due = sent_at + due_after;
            if earlier && due <= now {
                found.repetitions += u32::from(flight.end_repetition(index));
                found.newly_lost += u32::from(flight.mark_lost(index));
                continue;
            }
            if earlier {
                found.wait = found.wait.max(due - now);
            }
            self.repeated[kept] = (sent_at, seq);
            kept += 1;
            if sent_at > latest.0 {
                self.repeated.drain(kept..=at);
                return;
            }
        }
        self.repeated.truncate(kept);
    }

    /// The segment that begins at `seq` is sent again.
    pub fn note_repeated(&mut self, flight: &Flight, now: Nanos, seq: u64) {
        if self.repeated.len() > 2 * flight.segments().len() {
            self.repeated
                .retain(|&(sent_at, seq)| flight.repeated_at(sent_at, seq).is_some());
        }
        self.repeated.push_back((now, seq));
    }

    /// What was sent from `seq` on was not.
    pub fn take_back(&mut self, seq: u64) {
        self.decided = self.decided.min(seq);
    }

    /// What was marked as lost is not, or segments were cut: looks at all of them again.
    pub fn recount(&mut self, flight: &Flight) {
        self.decided = 0;
        let repeated = flight.segments().iter().filter(|sent| sent.retransmitted());
        let mut repeated: Vec<_> = repeated.map(|sent| (sent.sent_at, sent.seq)).collect();
        repeated.sort_unstable();
        self.repeated = repeated.into();
    }
}

//! Acknowledgements and loss recovery: SACK (RFC 6675's scoreboard), RACK-TLP (RFC 8985), PRR (RFC 6937), undo (RFC 3522,
//! RFC 3708), RTO (RFC 6298), F-RTO (RFC 5682).

mod local_drop;
mod loss;
mod rack;
mod scoreboard;
mod timeout;
mod undo;
mod unrepaired;

pub(crate) use timeout::probes_tail;

use std::ops::Range;

use polypath_wire::tcp::{Flags, Segment};

pub(super) use local_drop::Refused;
pub(super) use rack::Rack;

use unrepaired::Unrepaired;

use super::cork;
use super::ecn;
use super::sender::{Push, Sent};
use super::{Reckoning, Socket, State};
use crate::congestion::Ack;
use crate::linux::send_memory;
use crate::linux::write_queue::WriteQueue;
use crate::path::Member;
use crate::path::{CaState, INFINITE_SSTHRESH, Path};
use crate::ranges::RangeSet;
use crate::seq::{unwrap, wrap};
use crate::settings::{SlowStart, WindowReduction};
use crate::tcp::context::{Context, Options};
use crate::tcp::flight::first_from;
use crate::{EventKind, Mib, Nanos};

/// Duplicate ACKs, or SACKed packets without reordering seen, that mean loss (RFC 5681 section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// Loss recovery's state. Counts are packets.
#[derive(Debug)]
pub(in crate::tcp) struct Recovery {
    pub state: CaState,
    pub sacked: u32,
    pub lost: u32,
    pub retransmitting: u32,
    /// What the peer SACKed above the cumulative ACK, once it did.
    scoreboard: Option<Box<RangeSet>>,
    /// The episode ends when this is acknowledged (RFC 6675's RecoveryPoint).
    end: u64,
    /// Where the last one was to end. Without SACK, duplicates of what acknowledges no more than that begin none: they may be of what was sent
    /// again needlessly (RFC 6582 section 3.2, step 2).
    recover: u64,
    /// Where undo may return to, while it may.
    undo_from: Option<u64>,
    /// Retransmissions of this episode not yet reported as duplicates; -1: none happened.
    undo_count: i32,
    /// DSACKs that there were.
    duplicates: u64,
    prior_cwnd: u32,
    /// What PRR reduces in proportion: what was in flight (RFC 6937's RecoverFS), or the window.
    reduced: u32,
    /// 0: nothing is given back.
    prior_ssthresh: u32,
    /// PRR's delivered and sent counts since recovery began.
    prr_delivered: u32,
    prr_out: u32,
    /// Timestamp of the episode's first retransmission; 0: none.
    first_retransmission: u32,
    /// F-RTO judges the timeout (RFC 5682), and wants new data sent before what is lost.
    frto: bool,
    new_first: bool,
    pub unrepaired: Unrepaired,
    /// End of the flight that a tail loss probe was sent for.
    probe_end: Option<u64>,
    /// It repeats a segment, and is no new data.
    probe_repeats: bool,
    /// Timeouts in a row, and when what they are about was first sent again.
    pub timeouts: u32,
    first_timeout: Nanos,
    pub backoff: u32,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            state: CaState::Open,
            sacked: 0,
            lost: 0,
            retransmitting: 0,
            scoreboard: None,
            end: 0,
            recover: 0,
            undo_from: None,
            undo_count: -1,
            duplicates: 0,
            prior_cwnd: 0,
            reduced: 0,
            prior_ssthresh: 0,
            prr_delivered: 0,
            prr_out: 0,
            first_retransmission: 0,
            frto: false,
            new_first: false,
            unrepaired: Unrepaired::default(),
            probe_end: None,
            probe_repeats: false,
            timeouts: 0,
            first_timeout: 0,
            backoff: 0,
        }
    }
}

impl Recovery {
    fn reducing(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }

    /// A segment counts no more, because another has taken it in.
    pub fn join(&mut self, sent: &Sent) {
        self.lost -= u32::from(sent.has(Sent::LOST));
        self.retransmitting -= u32::from(sent.has(Sent::RETRANSMITTING));
    }

    pub fn count_sent(&mut self) {
        if self.reducing() {
            self.prr_out += 1;
        }
    }

    pub fn count_retransmitted(&mut self, now: Nanos) {
        self.count_sent();
        if self.first_retransmission == 0 {
            self.first_retransmission = super::timestamp(now);
        }
        self.undo_count = self.undo_count.max(0) + 1;
    }

    pub fn sacked_ranges(&self) -> usize {
        self.scoreboard.as_ref().map_or(0, |ranges| ranges.count())
    }

    /// The end of the last of them; 0 where there is none.
    fn highest_sacked(&self) -> u64 {
        self.scoreboard
            .as_ref()
            .map_or(0, |ranges| ranges.highest())
    }

    /// Whether the peer SACKed all of it.
    fn is_sacked(&self, start: u64, end: u64) -> bool {
        let ranges = self.scoreboard.as_ref();
        ranges.is_some_and(|ranges| ranges.covers(start, end))
    }

    fn begin_undo(&mut self, una: u64) {
        self.undo_from = Some(una);
        self.undo_count = if self.retransmitting > 0 {
            self.retransmitting as i32
        } else {
            -1
        };
    }
}

/// What one ACK brought.
#[derive(Default)]
pub(in crate::tcp) struct Delivery {
    /// Packets newly acknowledged or SACKed.
    pub packets: u32,
    /// Send times of the first and the last never-retransmitted packet acknowledged cumulatively, and of SACKed ones.
    first: Option<Nanos>,
    last: Option<Nanos>,
    first_sacked: Option<Nanos>,
    last_sacked: Option<Nanos>,
    /// Something retransmitted was acknowledged cumulatively: what follows it may have waited for it (Linux `FLAG_RETRANS_DATA_ACKED`).
    repaired: bool,
    advanced: bool,
    /// The segment carries nothing but this acknowledgement, which says nothing new (RFC 5681 section 2).
    duplicate: bool,
    duplicate_sack: bool,
    /// Packets that the segment reports as marked; all of its own where it does not say how many.
    marks: u32,
    /// The DSACK is about a tail loss probe.
    of_probe: bool,
    /// Something was SACKed; something never sent again, of before the episode, arrived (Linux `FLAG_ORIG_SACK_ACKED`).
    sacked: bool,
    original: bool,
    /// The lowest sequence number that arrived after higher ones without having been sent again.
    overtaken: Option<u64>,
    /// The timestamp that the segment echoes; 0: none.
    echo: u32,
    pub newly_lost: u32,
    pub retransmission_lost: bool,
    /// The timer must be set anew.
    rearm: bool,
}

impl Delivery {
    /// The acknowledgement is one that may tell of a loss (Linux `tcp_ack_is_dubious`).
    fn dubious(&self) -> bool {
        self.sacked || self.duplicate_sack || self.duplicate
    }

    fn overtake(&mut self, seq: u64) {
        self.overtaken = Some(self.overtaken.map_or(seq, |low| low.min(seq)));
    }
}

impl Socket {
    /// Processes the acknowledgement of `segment`, which is acceptable.
    #[inline(always)]
    pub(crate) fn on_ack(&mut self, cx: &mut Context<impl Options>, segment: &Segment) {
        self.heard_at = cx.shared.now;
        if self.says_nothing_new(segment) {
            // Header prediction passes over `tcp_ack` where there are timestamps at most.
            if self.tries_again() && segment.dss.is_some() {
                cork::hold_again(self, cx.shared);
            }
            self.publish_sent(&mut cx.path);
        } else {
            self.on_news(cx, segment);
        }
    }

    /// Data with an acknowledgement and a window that are known already, while nothing is doubtful: nothing follows from these.
    #[inline(always)]
    fn says_nothing_new(&self, segment: &Segment) -> bool {
        let window = u64::from(segment.window) << self.negotiated.send_shift;
        segment.ack == wrap(self.iss, self.una)
            && segment.payload.len > 0
            && segment.sack.is_empty()
            && self.una + window == self.window.end()
            && window <= self.window.largest()
            && !segment.flags.contains(Flags::ECE)
            && self.recovery.state == CaState::Open
            && self.recovery.probe_end.is_none()
            && self.paced.is_none()
    }

    #[inline(never)]
    fn on_news(&mut self, cx: &mut Context<impl Options>, segment: &Segment) {
        let ack = unwrap(self.iss, segment.ack, self.una);
        let before = self.una;
        let highest_sacked = self.recovery.highest_sacked();
        if self.paced.is_some() {
            self.note_arrival_of_ack();
        }
        let mut delivery = Delivery {
            echo: segment.timestamps.map_or(0, |(_, echo)| echo),
            ..Delivery::default()
        };
        let mss = cx.path.mss;
        let largest_window = self.window.largest();
        let window_changed = ack >= self.una && self.update_window(cx, ack, segment);
        if self.window.largest() > largest_window {
            self.note_larger_window(cx);
        }
        if !segment.sack.is_empty() && self.negotiated.sack {
            self.take_sack(cx.shared, segment, ack, highest_sacked, mss, &mut delivery);
        }
        if ack < before {
            // An old ACK brings at most SACK information (Linux `tcp_ack`, old_ack).
            if delivery.packets > 0 {
                self.conclude_apart(cx, &mut delivery, before);
            }
            return;
        }
        if ack > before {
            self.take_cumulative(cx.shared, ack, highest_sacked, mss, &mut delivery);
            if self.searches() {
                self.settle_probe(cx);
            }
            self.recovery.timeouts = 0;
            if cx.path.potentially_failed {
                cx.path.potentially_failed = false;
                cx.shared.event(EventKind::Recovered(cx.path.index));
            }
        } else {
            if self.tries_again() && !cork::is_old(self, segment) {
                cork::hold_again(self, cx.shared);
            }
            delivery.duplicate = segment.seq_len() == 0 && !window_changed;
            if !self.negotiated.sack && delivery.duplicate && self.counts_duplicates() {
                self.recovery.sacked = (self.recovery.sacked + 1).min(self.sent.len() as u32 - 1);
                delivery.packets += 1;
            }
        }
        let mut published = false;
        if self.negotiated.ecn && reports_marks(self, segment, &mut delivery) {
            self.conclude_marked(cx, &mut delivery, before);
        } else if self.concludes(&delivery) {
            published = self.conclude(cx, &mut delivery, before, false);
        }
        if self.una > before {
            self.fin_acknowledged(cx.shared, segment);
        }
        if !published {
            self.publish(&mut cx.path);
        }
    }

    /// Whether an acknowledgement has anything to be concluded from.
    fn concludes(&self, delivery: &Delivery) -> bool {
        delivery.packets > 0
            || delivery.advanced
            || self.recovery.state != CaState::Open
            || self.recovery.probe_end.is_some()
    }

    /// The acknowledgement reports a mark (ECE): upstream, it is the first by which the window shrinks.
    #[cold]
    fn conclude_marked(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &mut Delivery,
        before: u64,
    ) {
        // RFC 4015 section 3.2, Linux `tcp_fastretrans_alert`: what a mark asks for is not undone, whatever the state.
        self.recovery.prior_ssthresh = 0;
        let first = cx.shared.config.profile.reduces_at_the_mark();
        if self.concludes(delivery) {
            self.conclude_apart(cx, delivery, before);
        } else if first {
            self.on_congestion_experienced(&mut cx.path);
        }
        if !first {
            self.on_congestion_experienced(&mut cx.path);
        }
    }

    /// Takes the peer's window (RFC 9293 section 3.10.7.4, fifth step).
    fn update_window(&mut self, cx: &Context<impl Options>, ack: u64, segment: &Segment) -> bool {
        let window = u64::from(segment.window) << self.negotiated.send_shift;
        let end = ack + window;
        if self.window.offer(window, end, segment.seq) {
            return true;
        }
        let shrunk = end < self.window.end() && self.shrink_window(cx, (ack, end), segment);
        self.window.note_closed(window == 0);
        shrunk
    }

    /// The right edge moves left if a newer segment than the one that set it says so (`tcp_may_update_window`). RFC 9293 section 3.8.6 wants a
    /// sender to be robust against that; subflows and other profiles keep to the edge that they know.
    #[cold]
    fn shrink_window(
        &mut self,
        cx: &Context<impl Options>,
        (ack, end): (u64, u64),
        segment: &Segment,
    ) -> bool {
        if cx.options.maps_data() || !cx.shared.config.profile.follows_windows() {
            return false;
        }
        let later = self.window.lag(segment.seq);
        let newer = ack > self.una || later > 0 || (later == 0 && segment.window == 0);
        if newer {
            self.window.set(end, segment.seq);
        }
        newer
    }

    #[cold]
    #[inline(never)]
    fn conclude_apart(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &mut Delivery,
        before: u64,
    ) {
        let marked = delivery.marks > 0;
        self.conclude(cx, delivery, before, marked);
    }

    /// True: what the path tells is up to date. Whether it is marked, the usual caller knows.
    #[inline(always)]
    fn conclude(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &mut Delivery,
        before: u64,
        marked: bool,
    ) -> bool {
        let rtt = self.sample_rtt(cx, delivery);
        if let Some(rtt) = rtt {
            cx.path.latest_rtt = rtt;
        }
        self.publish(&mut cx.path);
        let limited = self.is_cwnd_limited(&cx.path);
        let mut ack = Ack {
            now: cx.shared.now,
            packets: delivery.packets,
            marked: if marked {
                delivery.marks.min(delivery.packets)
            } else {
                0
            },
            rtt,
            cwnd_limited: limited,
            next_seq: self.next,
            una: self.una,
        };
        if delivery.packets > 0 {
            self.congestion.on_sample(&mut cx.path, &ack);
        }
        let mut published = self.reckoning == Reckoning::Nothing
            && self.paced.is_none()
            && self.recovery.probe_end.is_none();
        if self.recovery.probe_end.is_some() {
            self.judge_probe(cx, delivery);
        }
        self.adapt_reordering_window();
        let state = self.recovery.state;
        if state != CaState::Open || delivery.dubious() {
            self.step_recovery(cx, delivery, before);
            published = false;
        }
        if marked && state < CaState::Loss {
            reduce_at_the_mark(self, cx);
        }
        if delivery.rearm {
            self.arm_after_ack(cx.shared);
        }
        if self.paced.is_some() {
            self.control(&mut cx.path, &ack, delivery, before);
        } else if self.recovery.reducing() {
            self.reduce(&mut cx.path, delivery);
            published = false;
        } else if delivery.packets > 0
            && (delivery.advanced
                || (delivery.sacked && self.rack.degree > u64::from(DUPLICATE_THRESHOLD)))
        {
            // Duplicate ACKs leave the window alone (RFC 3042), unless they are known to mean reordering (Linux `tcp_may_raise_cwnd`).
            if !published {
                self.publish(&mut cx.path);
            }
            if cx.shared.config.slow_start == SlowStart::Acks && cx.path.in_slow_start() {
                ack.packets = 1;
            }
            self.congestion.on_ack(&mut cx.path, &ack);
            if cx.path.state != self.recovery.state {
                reduce_as_asked(self, &mut cx.path);
            }
        }
        published
    }

    /// Feeds the RTT estimator (RFC 6298 section 3: never from a retransmission, but from its timestamp). Returns the newest sample.
    #[inline(always)]
    fn sample_rtt(&mut self, cx: &mut Context<impl Options>, delivery: &Delivery) -> Option<Nanos> {
        let (shared, path) = (&*cx.shared, &mut cx.path);
        let elapsed = |at: Option<Nanos>| at.map(|at| shared.now - at);
        let in_order = |at: Option<Nanos>| elapsed(at.filter(|_| !delivery.repaired));
        let by_timestamp = || {
            let echo = Some(delivery.echo).filter(|_| delivery.advanced);
            echo.and_then(|echo| super::age(shared.now, echo))
        };
        let oldest = in_order(delivery.first)
            .or(elapsed(delivery.first_sacked))
            .or_else(by_timestamp)?;
        let newest = elapsed(delivery.last_sacked)
            .or(in_order(delivery.last))
            .or_else(by_timestamp);
        if let Some(newest) = newest {
            self.rtt.sample_min(newest, shared.now);
        }
        let publish = |margin| path.timeout_margin = margin;
        (self.rtt).sample_telling(oldest, self.una, self.next, &shared.config, publish);
        self.recovery.backoff = 0;
        newest
    }

    /// What an acknowledgement means for the episode (Linux `tcp_fastretrans_alert`).
    #[inline(never)]
    fn step_recovery(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &mut Delivery,
        before: u64,
    ) {
        if self.recovery.state == CaState::Open {
            self.recovery.first_retransmission = 0;
        } else if self.una >= self.recovery.end {
            self.leave(cx, delivery);
        }
        match self.recovery.state {
            CaState::Recovery => {
                if delivery.advanced && self.undo_in_mid_recovery(cx, delivery, before) {
                    return;
                }
                if self.undo_by_duplicates(cx) {
                    self.try_to_open(&mut cx.path);
                }
                self.identify_losses(cx.shared, delivery);
                if self.recovery.state != CaState::Recovery && self.recovery.lost > 0 {
                    self.enter_recovery(cx, delivery);
                }
            }
            CaState::Loss => {
                self.step_loss(cx, delivery);
                self.identify_losses(cx.shared, delivery);
                if self.recovery.state == CaState::Open || delivery.retransmission_lost {
                    self.settle(cx, delivery);
                }
            }
            _ => self.settle(cx, delivery),
        }
    }

    fn settle(&mut self, cx: &mut Context<impl Options>, delivery: &mut Delivery) {
        if self.recovery.state <= CaState::Disorder {
            self.undo_by_duplicates(cx);
        }
        self.identify_losses(cx.shared, delivery);
        if self.recovery.lost > 0 {
            if !self.searches() || !self.fail_probe(cx) {
                self.enter_recovery(cx, delivery);
            }
        } else {
            self.try_to_open(&mut cx.path);
        }
    }

    /// Ends an episode of reduction or fast recovery whose end was acknowledged.
    fn leave(&mut self, cx: &mut Context<impl Options>, delivery: &Delivery) {
        match self.recovery.state {
            CaState::Cwr if self.una > self.recovery.end => {
                self.end_reduction(&mut cx.path, false);
                self.set_state(&mut cx.path, CaState::Open);
            }
            CaState::Recovery => {
                if !self.negotiated.sack {
                    self.recovery.sacked = 0;
                }
                let undone = self.finish(cx, delivery, Mib::TcpExtTCPFullUndo);
                self.end_reduction(&mut cx.path, undone);
            }
            _ => {}
        }
    }

    /// Everything of the episode was acknowledged. True: its reduction was undone (Linux `tcp_try_undo_recovery`).
    fn finish(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &Delivery,
        counter: Mib,
    ) -> bool {
        let undone = self.may_undo(delivery);
        if undone {
            cx.shared.counters.increment(counter);
            self.undo(&mut cx.path, false);
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        self.set_state(&mut cx.path, CaState::Open);
        undone
    }

    /// Whether a duplicate stands for a segment that arrived, without SACK. A timeout has nothing but what it took for lost sent again:
    /// duplicates are of what left before it (Linux `tcp_process_loss`).
    #[cold]
    fn counts_duplicates(&self) -> bool {
        let in_loss_window = self.recovery.state == CaState::Loss && self.next <= self.recovery.end;
        !self.sent.is_empty() && !in_loss_window
    }

    /// Linux `tcp_end_cwnd_reduction`.
    fn end_reduction(&mut self, path: &mut Member, undone: bool) {
        if self.paced.is_some() {
            return;
        }
        if !undone && path.ssthresh < INFINITE_SSTHRESH {
            path.cwnd = path.ssthresh;
        }
        self.congestion.on_reduced(path);
    }

    /// Something sent again is under way, or the oldest in flight was.
    fn any_repeated(&self) -> bool {
        self.recovery.retransmitting > 0 || self.sent.front().is_some_and(Sent::retransmitted)
    }

    /// The next episode counts its own retransmissions (Linux `tcp_retrans_stamp_cleanup`).
    fn forget_repetitions(&mut self) {
        if !self.any_repeated() {
            self.recovery.first_retransmission = 0;
        }
    }

    fn try_to_open(&mut self, path: &mut Member) {
        self.forget_repetitions();
        if self.recovery.state != CaState::Cwr {
            self.keep_open(path);
        }
    }

    /// Open or Disorder, whichever fits (Linux `tcp_try_keep_open`).
    fn keep_open(&mut self, path: &mut Member) {
        let calm = self.recovery.sacked + self.recovery.lost == 0 && !self.any_repeated();
        let state = if calm {
            CaState::Open
        } else {
            CaState::Disorder
        };
        if state != self.recovery.state {
            self.set_state(path, state);
            self.recovery.end = self.next;
        }
    }

    fn set_state(&mut self, path: &mut Member, state: CaState) {
        self.recovery.state = state;
        path.state = state;
        self.congestion.on_state(path, state);
    }

    fn enter_recovery(&mut self, cx: &mut Context<impl Options>, delivery: &Delivery) {
        cx.shared.counters.increment(if self.negotiated.sack {
            Mib::TcpExtTCPSackRecovery
        } else {
            Mib::TcpExtTCPRenoRecovery
        });
        cx.shared.event(EventKind::Loss(cx.path.index));
        self.forget_repetitions();
        self.recovery.begin_undo(self.una);
        let reducing = self.recovery.reducing();
        if !reducing {
            self.begin_reduction(&mut cx.path);
            self.reduce_flight(&mut cx.path, 0);
        }
        if reducing || delivery.marks > 0 {
            // RFC 4015 section 3.2: what a mark asked for is not undone.
            self.recovery.prior_ssthresh = 0;
        }
        if !reducing || !cx.shared.config.profile.recovers_within_reductions() {
            self.recovery.end = self.next;
        }
        self.recovery.recover = self.recovery.end;
        self.set_state(&mut cx.path, CaState::Recovery);
    }

    /// Starts a reduction towards the controller's threshold (RFC 6937 section 3, RFC 6675 section 5).
    fn begin_reduction(&mut self, path: &mut Member) {
        let recovery = &mut self.recovery;
        recovery.end = self.next;
        recovery.probe_end = None;
        recovery.prior_cwnd = path.cwnd;
        recovery.reduced = path.cwnd;
        recovery.prior_ssthresh = path.ssthresh;
        recovery.prr_delivered = 0;
        recovery.prr_out = 0;
        path.cwnd_count = 0;
        path.ssthresh = self.congestion.ssthresh(path);
        self.ecn.cwr_due = self.negotiated.ecn;
    }

    /// Where a loss reduces what is in flight, so does the threshold that the controller took from the window; `delivered` is no longer in
    /// flight, but was when the loss happened. What is above the window was added by limited transmit. A controller that sets a rate has no
    /// threshold.
    #[cold]
    fn reduce_flight(&mut self, path: &mut Path, delivered: u32) {
        let flight = (self.sent.len() as u32 + delivered).min(path.cwnd);
        if self.reduces_flight && self.paced.is_none() && flight < path.cwnd {
            let threshold = u64::from(path.ssthresh) * u64::from(flight) / u64::from(path.cwnd);
            path.ssthresh = (threshold as u32).max(2);
            self.recovery.reduced = flight;
        }
    }

    /// One step of PRR with the slow-start reduction bound (RFC 6937 section 3.1).
    fn reduce(&mut self, path: &mut Path, delivery: &Delivery) {
        if delivery.packets == 0 || self.recovery.reduced == 0 || self.paced.is_some() {
            return;
        }
        let in_flight = self.in_flight();
        if self.window_reduction == WindowReduction::AtOnce {
            return self.reduce_at_once(path, in_flight);
        }
        let recovery = &mut self.recovery;
        recovery.prr_delivered += delivery.packets;
        let gap = i64::from(path.ssthresh) - i64::from(in_flight);
        let mut budget = if gap < 0 {
            let target = u64::from(path.ssthresh) * u64::from(recovery.prr_delivered);
            target.div_ceil(u64::from(recovery.reduced)) as i64 - i64::from(recovery.prr_out)
        } else {
            let mut budget = (i64::from(recovery.prr_delivered) - i64::from(recovery.prr_out))
                .max(i64::from(delivery.packets));
            if delivery.advanced && delivery.newly_lost == 0 {
                budget += 1;
            }
            budget.min(gap)
        };
        // The first retransmission of an episode leaves at once.
        budget = budget.max(i64::from(recovery.prr_out == 0));
        path.cwnd = in_flight + budget.max(0) as u32;
    }

    /// The window is the threshold, and what is in flight falls below it before more leaves; only the first retransmission of an episode
    /// leaves at once (RFC 6675 section 5).
    #[cold]
    fn reduce_at_once(&self, path: &mut Path, in_flight: u32) {
        let repeats = self.recovery.state == CaState::Recovery && self.recovery.prr_out == 0;
        let least = if repeats { in_flight + 1 } else { 0 };
        path.cwnd = path.ssthresh.max(least);
    }

    /// ECN's reduction, once a window (RFC 3168 section 6.1.2).
    fn on_congestion_experienced(&mut self, path: &mut Member) {
        if self.recovery.state < CaState::Cwr {
            self.enter_reduction(path);
        }
    }

    /// A reduction without a loss (Linux `tcp_enter_cwr`).
    fn enter_reduction(&mut self, path: &mut Member) {
        self.begin_reduction(path);
        self.recovery.undo_from = None;
        self.recovery.prior_ssthresh = 0;
        self.set_state(path, CaState::Cwr);
    }

    /// Something is lost, and it is time to send it again.
    #[inline]
    pub(crate) fn repairs(&self) -> bool {
        self.recovery.lost > 0 && self.recovery.state >= CaState::Recovery
    }

    /// Sends again what is lost ([`Socket::repairs`]), as far as the window admits. `buffers`: those in which the segments lie, if not in the subflow's own, and the
    /// sequence number at which their count begins.
    pub(crate) fn send_lost(
        &mut self,
        cx: &mut Context<impl Options>,
        buffers: Option<(&WriteQueue, u64)>,
    ) {
        let mut together = 0..0;
        let waiting = self.recovery.unrepaired;
        let mut index = if waiting.is_empty() {
            self.sent.len()
        } else {
            first_from(&self.sent, waiting.from())
        };
        let mut first = None;
        while let Some(&sent) = self.sent.get(index)
            && sent.seq < waiting.to()
        {
            if sent.awaits_repair() {
                if self.in_flight() >= cx.path.cwnd
                    || self.blocked()
                    || !self.host_admits_again(&cx.path)
                {
                    first.get_or_insert(sent.seq);
                    break;
                }
                if !together.contains(&index) {
                    together = self.lost_together(&cx.path, index, buffers);
                }
                self.retransmit_as(cx, index, Push::of_nth(index, &together));
                if index == 0 {
                    self.arm_retransmission(cx.shared);
                }
            }
            index += 1;
        }
        (self.recovery.unrepaired).cut_below(first.unwrap_or(waiting.to()));
        self.publish(&mut cx.path);
    }

    /// The segments from `index` on that leave together: those of one buffer that are lost, as many as the window admits and leave at a
    /// time (`tcp_xmit_retransmit_queue`). Each leaves alone where there are no buffers.
    #[cold]
    pub(in crate::tcp) fn lost_together(
        &self,
        path: &Path,
        index: usize,
        buffers: Option<(&WriteQueue, u64)>,
    ) -> Range<usize> {
        let room = path.cwnd.saturating_sub(self.in_flight());
        let Some((buffers, first)) = buffers.or(self.buffers.as_deref().map(|own| (own, 0))) else {
            return index..index + room.min(1) as usize;
        };
        let most = u64::from(room).min(send_memory::segments_sent(path)) as usize;
        let end = buffers.end_of(self.sent[index].seq - first).unwrap_or(0);
        let goes_on = |sent: &&Sent| sent.awaits_repair() && sent.seq - first < end;
        let number = self.sent.range(index..).take(most).take_while(goes_on);
        index..index + number.count()
    }

    /// Packets that reordering is known to span (Linux `tp->reordering`).
    pub(super) fn reordering_degree(&self) -> u64 {
        self.rack.degree
    }

    pub(crate) fn sending(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
    }
}

/// The controller wants a reduction (Linux `tcp_enter_cwr`).
#[cold]
fn reduce_as_asked(socket: &mut Socket, path: &mut Member) {
    path.state = socket.recovery.state;
    socket.recovery.prior_ssthresh = 0;
    socket.on_congestion_experienced(path);
}

/// Upstream, the controller has heard of the mark, and an episode that it ends is over (`tcp_try_to_open`).
#[cold]
fn reduce_at_the_mark(socket: &mut Socket, cx: &mut Context<impl Options>) {
    if cx.shared.config.profile.reduces_at_the_mark() {
        socket.on_congestion_experienced(&mut cx.path);
    }
}

/// The segment says how many packets arrived marked: whether any did.
#[inline(never)]
fn reports_marks(socket: &mut Socket, segment: &Segment, delivery: &mut Delivery) -> bool {
    let news = delivery.packets > 0 || delivery.advanced;
    delivery.marks = ecn::reported(socket, segment.flags, delivery.packets, news);
    delivery.marks > 0
}

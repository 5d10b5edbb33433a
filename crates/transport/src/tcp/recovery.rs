//! Acknowledgements and loss recovery: SACK (RFC 6675's scoreboard), RACK-TLP (RFC 8985), PRR (RFC 6937), undo (RFC 3522, RFC 3708), RTO (RFC 6298).

use polypath_wire::tcp::{Flags, Segment};

use super::sender::Sent;
use super::timer::{Fired, Pending};
use super::{Socket, State};
use crate::congestion::Ack;
use crate::mptcp::core::Core;
use crate::path::{CaState, INFINITE_SSTHRESH, Path};
use crate::ranges::RangeSet;
use crate::seq::unwrap;
use crate::{EventKind, MILLISECOND, Mib, Nanos};

/// Duplicate ACKs, or SACKed packets without reordering seen, that mean loss (RFC 5681 section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// Loss recovery's state. Counts are packets.
#[derive(Debug)]
pub(super) struct Recovery {
    pub state: CaState,
    pub sacked: u32,
    pub lost: u32,
    pub retransmitting: u32,
    /// What the peer SACKed above the cumulative ACK.
    scoreboard: RangeSet,
    /// The episode ends when this is acknowledged (RFC 6675's RecoveryPoint).
    end: u64,
    /// Where undo may return to, while it may.
    undo_from: Option<u64>,
    /// Retransmissions of this episode not yet reported as duplicates; -1: none happened.
    undo_count: i32,
    prior_cwnd: u32,
    prior_ssthresh: u32,
    /// PRR's delivered and sent counts since recovery began.
    prr_delivered: u32,
    prr_out: u32,
    /// Timestamp of the episode's first retransmission; 0: none.
    first_retransmission: u32,
    /// Nothing below this waits for retransmission.
    hint: u64,
    /// End of the flight that a tail loss probe was sent for, and whether the probe repeated data.
    probe_end: Option<u64>,
    probe_repeats: bool,
    /// Timeouts in a row.
    pub timeouts: u32,
    pub backoff: u32,
}

impl Default for Recovery {
    fn default() -> Self {
        Self {
            state: CaState::Open,
            sacked: 0,
            lost: 0,
            retransmitting: 0,
            scoreboard: RangeSet::default(),
            end: 0,
            undo_from: None,
            undo_count: -1,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            prr_delivered: 0,
            prr_out: 0,
            first_retransmission: 0,
            hint: 0,
            probe_end: None,
            probe_repeats: false,
            timeouts: 0,
            backoff: 0,
        }
    }
}

impl Recovery {
    fn reducing(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
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

    fn begin_undo(&mut self, una: u64) {
        self.undo_from = Some(una);
        self.undo_count = if self.retransmitting > 0 {
            self.retransmitting as i32
        } else {
            -1
        };
    }
}

/// RACK's state (RFC 8985 section 5.3).
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// Transmission time and end of the segment sent last among those delivered.
    sent_at: Nanos,
    end: u64,
    rtt: Nanos,
    reordering_seen: bool,
    /// Multiplier of the reordering window (section 6.2, step 4), the round in which it last grew, and the recoveries until it is reset.
    steps: u32,
    steps_round: u64,
    persist: u32,
}

/// Recoveries after which the reordering window returns to its smallest (section 6.2: 16).
const STEPS_PERSIST: u32 = 16;

/// What one ACK brought.
#[derive(Default)]
struct Delivery {
    /// Packets newly acknowledged or SACKed.
    packets: u32,
    /// Send times of the first and the last never-retransmitted packet acknowledged cumulatively.
    first: Option<Nanos>,
    last: Option<Nanos>,
    /// The same of SACKed ones.
    first_sacked: Option<Nanos>,
    last_sacked: Option<Nanos>,
    advanced: bool,
    /// The segment carried nothing but this acknowledgement.
    bare: bool,
    duplicate_sack: bool,
    newly_lost: u32,
    retransmission_lost: bool,
    /// The timer must be set anew.
    rearm: bool,
}

impl Socket {
    /// Processes the acknowledgement of `segment`. False: it acknowledges what was never sent.
    pub(crate) fn on_ack(
        &mut self,
        core: &mut Core,
        paths: &mut [Path],
        me: usize,
        segment: &Segment,
    ) -> bool {
        let ack = unwrap(self.iss, segment.ack, self.una);
        if ack > self.next {
            self.ack.immediately();
            self.flush_ack(core, me);
            return false;
        }
        let before = self.una;
        let highest_sacked = self.recovery.scoreboard.highest();
        let mut delivery = Delivery::default();
        let window_changed = ack >= self.una && self.update_window(ack, segment);
        if !segment.sack.is_empty() && self.negotiated.sack {
            self.take_sack(core, segment, ack, highest_sacked, &mut delivery);
        }
        if ack < before {
            // An old ACK brings at most SACK information (Linux `tcp_ack`, old_ack).
            if delivery.packets > 0 {
                self.conclude(core, paths, me, segment, delivery, before);
            }
            return true;
        }
        if ack > before {
            self.take_cumulative(core, ack, highest_sacked, &mut delivery);
            self.recovery.timeouts = 0;
            if paths[me].potentially_failed {
                paths[me].potentially_failed = false;
                core.event(EventKind::Recovered(me));
            }
        } else if !self.negotiated.sack
            && segment.payload.len == 0
            && !window_changed
            && !self.sent.is_empty()
        {
            self.recovery.sacked = (self.recovery.sacked + 1).min(self.sent.len() as u32 - 1);
            delivery.packets += 1;
        }
        delivery.bare = segment.payload.len == 0 && !window_changed;
        if delivery.packets > 0
            || delivery.advanced
            || self.recovery.state != CaState::Open
            || self.recovery.probe_end.is_some()
        {
            self.conclude(core, paths, me, segment, delivery, before);
        }
        if segment.flags.contains(Flags::ECE) && self.negotiated.ecn {
            self.on_congestion_experienced(paths, me);
        }
        if self.una > before {
            self.fin_acknowledged(core);
        }
        self.publish(&mut paths[me]);
        true
    }

    /// Takes the peer's window (RFC 9293 section 3.10.7.4, fifth step); right edges never move left.
    fn update_window(&mut self, ack: u64, segment: &Segment) -> bool {
        let end = ack + (u64::from(segment.window) << self.negotiated.send_shift);
        let changed = end > self.window_end;
        self.window_end = self.window_end.max(end);
        changed
    }

    fn take_sack(
        &mut self,
        core: &mut Core,
        segment: &Segment,
        ack: u64,
        highest: u64,
        delivery: &mut Delivery,
    ) {
        let mut fresh = std::mem::take(&mut core.scratch);
        fresh.clear();
        let blocks = segment.sack.as_slice();
        for (index, &(left, right)) in blocks.iter().enumerate() {
            let (start, end) = (unwrap(self.iss, left, ack), unwrap(self.iss, right, ack));
            if end <= start || end > self.next {
                continue;
            }
            if index == 0
                && (start < ack
                    || blocks.get(1).is_some_and(|&(l, r)| {
                        unwrap(self.iss, l, ack) <= start && end <= unwrap(self.iss, r, ack)
                    }))
            {
                self.take_duplicate_sack(core, end, delivery);
                continue;
            }
            self.recovery
                .scoreboard
                .insert(start.max(self.una), end, |a, b| fresh.push((a, b)));
        }
        for &(start, end) in &fresh {
            self.mark_sacked(core, start, end, highest, delivery);
        }
        core.scratch = fresh;
    }

    fn take_duplicate_sack(&mut self, core: &mut Core, end: u64, delivery: &mut Delivery) {
        core.counters.increment(Mib::TcpExtTCPDSACKRecv);
        delivery.duplicate_sack = true;
        let recovery = &mut self.recovery;
        if recovery.undo_from.is_some_and(|from| end > from) && recovery.undo_count > 0 {
            recovery.undo_count -= 1;
        }
    }

    fn mark_sacked(
        &mut self,
        core: &mut Core,
        start: u64,
        end: u64,
        highest: u64,
        delivery: &mut Delivery,
    ) {
        let mut index = self.sent.partition_point(|sent| sent.end() <= start);
        while let Some(sent) = self.sent.get_mut(index).filter(|sent| sent.seq < end) {
            index += 1;
            if sent.has(Sent::SACKED) || !self.recovery.scoreboard.covers(sent.seq, sent.end()) {
                continue;
            }
            if sent.has(Sent::RETRANSMITTING) {
                sent.clear(Sent::RETRANSMITTING);
                self.recovery.retransmitting -= 1;
            }
            if sent.has(Sent::LOST) {
                sent.clear(Sent::LOST);
                self.recovery.lost -= 1;
            }
            sent.set(Sent::SACKED);
            self.recovery.sacked += 1;
            delivery.packets += 1;
            let copy = *sent;
            if !copy.retransmitted() {
                delivery.first_sacked.get_or_insert(copy.sent_at);
                delivery.last_sacked = Some(copy.sent_at);
                if copy.seq < highest {
                    self.reordering_found(core);
                }
            }
            self.advance_rack(core.now, &copy);
        }
    }

    fn reordering_found(&mut self, core: &mut Core) {
        self.rack.reordering_seen = true;
        core.counters.increment(Mib::TcpExtTCPSACKReorder);
    }

    /// Removes what is acknowledged cumulatively.
    fn take_cumulative(
        &mut self,
        core: &mut Core,
        ack: u64,
        highest_sacked: u64,
        delivery: &mut Delivery,
    ) {
        delivery.advanced = true;
        delivery.rearm = true;
        let mut packets = 0;
        while let Some(front) = self.sent.front_mut() {
            if front.end() > ack {
                if front.seq < ack && front.len > 0 {
                    let part = (ack - front.seq) as u32;
                    front.seq += u64::from(part);
                    front.offset += u64::from(part);
                    front.len -= part;
                }
                break;
            }
            let sent = *front;
            self.sent.pop_front();
            packets += 1;
            if sent.has(Sent::LOST) {
                self.recovery.lost -= 1;
            }
            if sent.has(Sent::RETRANSMITTING) {
                self.recovery.retransmitting -= 1;
            }
            if sent.has(Sent::SACKED) {
                self.recovery.sacked -= 1;
                continue;
            }
            delivery.packets += 1;
            if !sent.retransmitted() {
                delivery.first.get_or_insert(sent.sent_at);
                delivery.last = Some(sent.sent_at);
                if sent.end() < highest_sacked {
                    self.reordering_found(core);
                }
            }
            self.advance_rack(core.now, &sent);
        }
        if !self.negotiated.sack && self.recovery.sacked > 0 {
            // Duplicate ACKs stood for packets that this ACK now covers.
            self.recovery.sacked = self
                .recovery
                .sacked
                .saturating_sub(packets - 1)
                .min((self.sent.len() as u32).saturating_sub(1));
        }
        self.una = ack;
        self.recovery.scoreboard.remove_below(ack);
    }

    /// RFC 8985 section 6.2, steps 1 and 2.
    fn advance_rack(&mut self, now: Nanos, sent: &Sent) {
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

    fn conclude(
        &mut self,
        core: &mut Core,
        paths: &mut [Path],
        me: usize,
        segment: &Segment,
        mut delivery: Delivery,
        before: u64,
    ) {
        let rtt = self.sample_rtt(core, segment, &delivery);
        if let Some(rtt) = rtt {
            paths[me].latest_rtt = rtt;
        }
        self.publish(&mut paths[me]);
        let limited = self.is_cwnd_limited(&paths[me]);
        let ack = Ack {
            now: core.now,
            packets: delivery.packets,
            rtt,
            cwnd_limited: limited,
            next_seq: self.next,
            una: self.una,
        };
        if delivery.packets > 0 {
            self.congestion.on_sample(paths, me, &ack);
        }
        self.judge_probe(core, paths, me, &mut delivery);
        self.step_recovery(core, paths, me, segment, &mut delivery, before);
        if delivery.rearm {
            self.arm_after_ack(core);
        }
        if self.recovery.reducing() {
            self.reduce(&mut paths[me], &delivery);
        } else if delivery.packets > 0
            && (delivery.advanced
                || (self.rack.reordering_seen && self.recovery.state != CaState::Loss))
        {
            // Duplicate ACKs leave the window alone (RFC 3042), unless they are known to mean reordering (Linux `tcp_may_raise_cwnd`).
            self.publish(&mut paths[me]);
            self.congestion.on_ack(paths, me, &ack);
        }
    }

    /// Feeds the RTT estimator (RFC 6298 section 3: never from a retransmission, but from its timestamp). Returns the newest sample.
    fn sample_rtt(&mut self, core: &Core, segment: &Segment, delivery: &Delivery) -> Option<Nanos> {
        let elapsed = |at: Option<Nanos>| at.map(|at| core.now - at);
        let newest = elapsed(delivery.last).or(elapsed(delivery.last_sacked));
        if let Some(newest) = newest {
            self.rtt.sample_min(newest, core.now);
        }
        let oldest = elapsed(delivery.first)
            .or(elapsed(delivery.first_sacked))
            .or_else(|| {
                let (_, echo) = segment
                    .timestamps
                    .filter(|(_, echo)| delivery.advanced && *echo != 0)?;
                let elapsed = super::timestamp(core.now).wrapping_sub(echo);
                (elapsed < 1 << 20).then(|| u64::from(elapsed.max(1)) * MILLISECOND)
            })?;
        self.rtt.sample(oldest, self.una, self.next, &core.config);
        self.recovery.backoff = 0;
        newest
    }

    fn step_recovery(
        &mut self,
        core: &mut Core,
        paths: &mut [Path],
        me: usize,
        segment: &Segment,
        delivery: &mut Delivery,
        before: u64,
    ) {
        let advanced = self.una > before;
        if self.recovery.state == CaState::Open && self.recovery.retransmitting == 0 {
            self.recovery.first_retransmission = 0;
        }
        self.adapt_reordering_window(delivery);
        if self.recovery.state > CaState::Disorder
            && self.una >= self.recovery.end
            && self.leave(core, paths, me, segment)
        {
            self.detect_losses(core, delivery);
            return self.keep_open(core, paths, me);
        }
        match self.recovery.state {
            CaState::Recovery => {
                if advanced && self.undo_in_mid_recovery(core, paths, me, segment) {
                    return;
                }
                if advanced && !self.negotiated.sack {
                    self.mark_head_lost(delivery);
                }
                self.detect_losses(core, delivery);
            }
            CaState::Loss => {
                if advanced && self.delayed_not_lost(segment) && self.recovery.undo_from.is_some() {
                    core.counters.increment(Mib::TcpExtTCPLossUndo);
                    self.undo(paths, me, true);
                    return self.set_state(paths, me, CaState::Open);
                }
                self.detect_losses(core, delivery);
            }
            _ => {
                if self.recovery.undo_from.is_some()
                    && self.recovery.undo_count == 0
                    && self.recovery.state <= CaState::Disorder
                {
                    core.counters.increment(Mib::TcpExtTCPDSACKUndo);
                    self.undo(paths, me, false);
                }
                self.detect_losses(core, delivery);
                if !self.negotiated.sack && self.recovery.sacked >= DUPLICATE_THRESHOLD {
                    self.mark_head_lost(delivery);
                }
                if self.recovery.lost > 0 {
                    self.enter_recovery(core, paths, me);
                } else {
                    self.keep_open(core, paths, me);
                }
            }
        }
    }

    /// Ends an episode whose end was acknowledged. True: the state is Open now.
    fn leave(&mut self, core: &mut Core, paths: &mut [Path], me: usize, segment: &Segment) -> bool {
        match self.recovery.state {
            CaState::Cwr if self.una == self.recovery.end => return false,
            CaState::Recovery | CaState::Loss => {
                if !self.negotiated.sack {
                    self.recovery.sacked = 0;
                }
                let undone = self.recovery.undo_from.is_some()
                    && (self.recovery.undo_count == 0 || self.delayed_not_lost(segment));
                if undone {
                    core.counters
                        .increment(if self.recovery.state == CaState::Loss {
                            Mib::TcpExtTCPLossUndo
                        } else {
                            Mib::TcpExtTCPFullUndo
                        });
                    self.undo(paths, me, false);
                } else if self.recovery.state == CaState::Recovery {
                    self.end_reduction(&mut paths[me]);
                }
            }
            _ => self.end_reduction(&mut paths[me]),
        }
        self.set_state(paths, me, CaState::Open);
        true
    }

    fn end_reduction(&mut self, path: &mut Path) {
        if path.ssthresh < INFINITE_SSTHRESH {
            path.cwnd = path.ssthresh;
        }
    }

    /// Eifel (RFC 3522): the ACK echoes a timestamp from before the first retransmission, so the original arrived.
    fn delayed_not_lost(&self, segment: &Segment) -> bool {
        let first = self.recovery.first_retransmission;
        first != 0
            && segment
                .timestamps
                .is_some_and(|(_, echo)| echo != 0 && (echo.wrapping_sub(first) as i32) < 0)
    }

    fn undo_in_mid_recovery(
        &mut self,
        core: &mut Core,
        paths: &mut [Path],
        me: usize,
        segment: &Segment,
    ) -> bool {
        if self.recovery.undo_from.is_none() || !self.delayed_not_lost(segment) {
            return false;
        }
        self.reordering_found(core);
        if self.recovery.retransmitting > 0 {
            return true;
        }
        core.counters.increment(Mib::TcpExtTCPPartialUndo);
        self.undo(paths, me, true);
        self.keep_open_after_undo(core, paths, me);
        true
    }

    fn undo(&mut self, paths: &mut [Path], me: usize, unmark: bool) {
        if unmark {
            for sent in &mut self.sent {
                sent.clear(Sent::LOST);
            }
            self.recovery.lost = 0;
        }
        let prior = self.recovery.prior_cwnd;
        paths[me].cwnd = self.congestion.undo(paths, me, prior);
        if self.recovery.prior_ssthresh > paths[me].ssthresh {
            paths[me].ssthresh = self.recovery.prior_ssthresh;
        }
        self.recovery.undo_from = None;
        self.recovery.timeouts = 0;
    }

    fn keep_open_after_undo(&mut self, core: &mut Core, paths: &mut [Path], me: usize) {
        self.recovery.state = CaState::Disorder;
        self.keep_open(core, paths, me);
    }

    /// Open or Disorder, whichever fits (Linux `tcp_try_keep_open`).
    fn keep_open(&mut self, core: &mut Core, paths: &mut [Path], me: usize) {
        if self.recovery.state > CaState::Disorder {
            return;
        }
        let recovery = &self.recovery;
        let calm = recovery.sacked + recovery.lost + recovery.retransmitting == 0;
        if !calm && self.recovery.lost > 0 && self.recovery.state != CaState::Recovery {
            return self.enter_recovery(core, paths, me);
        }
        let state = if calm {
            CaState::Open
        } else {
            CaState::Disorder
        };
        if state != self.recovery.state {
            self.set_state(paths, me, state);
        }
    }

    fn set_state(&mut self, paths: &mut [Path], me: usize, state: CaState) {
        self.recovery.state = state;
        paths[me].state = state;
        self.congestion.on_state(paths, me, state);
    }

    /// RFC 8985 section 6.2, step 4: the reordering window.
    fn reordering_window(&self) -> Nanos {
        if !self.rack.reordering_seen
            && (self.recovery.state >= CaState::Recovery
                || self.recovery.sacked >= DUPLICATE_THRESHOLD)
        {
            return 0;
        }
        (self.rtt.min() / 4 * u64::from(self.rack.steps + 1)).min(self.rtt.srtt())
    }

    /// Widens the reordering window when a DSACK shows a needless retransmission, and narrows it after 16 recoveries.
    fn adapt_reordering_window(&mut self, delivery: &Delivery) {
        if delivery.duplicate_sack && self.una >= self.rack.steps_round {
            self.rack.steps = (self.rack.steps + 1).min(254);
            self.rack.steps_round = self.next;
            self.rack.persist = STEPS_PERSIST;
        }
    }

    /// RFC 8985 section 6.2, step 5: what was sent a reordering window before something delivered is lost.
    fn detect_losses(&mut self, core: &mut Core, delivery: &mut Delivery) {
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

    fn mark_lost(recovery: &mut Recovery, sent: &mut Sent, delivery: &mut Delivery) {
        if !sent.has(Sent::LOST) {
            sent.set(Sent::LOST);
            recovery.lost += 1;
            delivery.newly_lost += 1;
        }
        recovery.hint = recovery.hint.min(sent.seq);
    }

    fn mark_head_lost(&mut self, delivery: &mut Delivery) {
        if let Some(head) = self
            .sent
            .front_mut()
            .filter(|head| !head.has(Sent::LOST) && !head.has(Sent::SACKED))
        {
            if head.has(Sent::RETRANSMITTING) {
                head.clear(Sent::RETRANSMITTING);
                self.recovery.retransmitting -= 1;
            }
            Self::mark_lost(&mut self.recovery, head, delivery);
            let most = (self.sent.len() as u32).saturating_sub(self.recovery.lost);
            self.recovery.sacked = self.recovery.sacked.min(most);
        }
    }

    fn enter_recovery(&mut self, core: &mut Core, paths: &mut [Path], me: usize) {
        core.counters.increment(if self.negotiated.sack {
            Mib::TcpExtTCPSackRecovery
        } else {
            Mib::TcpExtTCPRenoRecovery
        });
        core.event(EventKind::Loss(me));
        self.rack.persist = self.rack.persist.saturating_sub(1);
        if self.rack.persist == 0 {
            self.rack.steps = 0;
        }
        self.recovery.begin_undo(self.una);
        if self.recovery.state < CaState::Cwr {
            self.begin_reduction(paths, me);
        }
        self.recovery.end = self.next;
        self.set_state(paths, me, CaState::Recovery);
    }

    /// Starts a reduction by PRR towards the controller's threshold (RFC 6937 section 3).
    fn begin_reduction(&mut self, paths: &mut [Path], me: usize) {
        let recovery = &mut self.recovery;
        recovery.end = self.next;
        recovery.probe_end = None;
        recovery.prior_cwnd = paths[me].cwnd;
        recovery.prior_ssthresh = paths[me].ssthresh;
        recovery.prr_delivered = 0;
        recovery.prr_out = 0;
        paths[me].cwnd_count = 0;
        paths[me].ssthresh = self.congestion.ssthresh(paths, me);
    }

    /// One step of PRR with the slow-start reduction bound (RFC 6937 section 3.1).
    fn reduce(&mut self, path: &mut Path, delivery: &Delivery) {
        if delivery.packets == 0 || self.recovery.prior_cwnd == 0 {
            return;
        }
        let in_flight = self.in_flight();
        let recovery = &mut self.recovery;
        recovery.prr_delivered += delivery.packets;
        let gap = i64::from(path.ssthresh) - i64::from(in_flight);
        let mut budget = if gap < 0 {
            let target = u64::from(path.ssthresh) * u64::from(recovery.prr_delivered);
            target.div_ceil(u64::from(recovery.prior_cwnd)) as i64 - i64::from(recovery.prr_out)
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

    /// ECN's reduction, once a window (RFC 3168 section 6.1.2).
    fn on_congestion_experienced(&mut self, paths: &mut [Path], me: usize) {
        if self.recovery.state < CaState::Cwr {
            self.begin_reduction(paths, me);
            self.recovery.undo_from = None;
            self.ecn_cwr_due = true;
            self.set_state(paths, me, CaState::Cwr);
        }
    }

    /// RFC 8985 section 7.2: probe timeout.
    pub(super) fn schedule_loss_probe(&mut self, core: &Core) -> bool {
        let recovery = &self.recovery;
        let eligible = self.negotiated.sack
            && self.state.synchronised()
            && !self.sent.is_empty()
            && recovery.state == CaState::Open
            && recovery.sacked == 0
            && recovery.probe_end.is_none()
            && recovery.timeouts == 0;
        if !eligible
            || !matches!(
                self.timers.pending,
                Pending::None | Pending::Retransmission | Pending::LossProbe
            )
        {
            return false;
        }
        let rto = self.rtt.rto(&core.config) << recovery.backoff;
        let timeout = match self.rtt.srtt() {
            0 => core.config.rto_initial,
            srtt if self.sent.len() == 1 => 2 * srtt + core.config.rto_min,
            srtt => 2 * srtt + 2 * MILLISECOND,
        };
        self.timers
            .set(Pending::LossProbe, core.now + timeout.min(rto));
        true
    }

    /// RFC 8985 section 7.3: the probe repeats the last segment.
    fn send_loss_probe(&mut self, core: &mut Core, me: usize) {
        self.timers.set(
            Pending::Retransmission,
            core.now + (self.rtt.rto(&core.config) << self.recovery.backoff),
        );
        let Some(last) = self.sent.len().checked_sub(1) else {
            return;
        };
        if self.recovery.probe_end.is_some() || self.sent[last].has(Sent::SACKED) {
            return;
        }
        core.counters.increment(Mib::TcpExtTCPLossProbes);
        core.event(EventKind::TailLossProbe(me));
        self.recovery.probe_end = Some(self.next);
        self.recovery.probe_repeats = true;
        self.retransmit(core, me, last);
    }

    /// RFC 8985 section 7.4.2: whether the probe repaired a loss.
    fn judge_probe(
        &mut self,
        core: &mut Core,
        paths: &mut [Path],
        me: usize,
        delivery: &mut Delivery,
    ) {
        let Some(end) = self.recovery.probe_end else {
            return;
        };
        if self.una < end {
            return;
        }
        if delivery.duplicate_sack
            || (self.una == end && delivery.bare && !delivery.advanced && delivery.packets == 0)
        {
            // Both the original and the probe arrived.
            self.recovery.probe_end = None;
        } else if self.una > end {
            self.recovery.probe_end = None;
            core.counters.increment(Mib::TcpExtTCPLossProbeRecovery);
            if self.recovery.state < CaState::Cwr {
                self.begin_reduction(paths, me);
                self.recovery.undo_from = None;
                self.end_reduction(&mut paths[me]);
                self.set_state(paths, me, CaState::Open);
            }
        }
    }

    /// Sets the timer for the oldest segment in flight (RFC 6298 section 5.1, 5.3).
    pub(super) fn arm_retransmission(&mut self, core: &Core) {
        if self.sent.is_empty() {
            return self.timers.stop_retransmission();
        }
        let rto =
            (self.rtt.rto(&core.config) << self.recovery.backoff.min(16)).min(core.config.rto_max);
        let at = match self.timers.pending {
            // A probe or the reordering window took this time off the timeout.
            Pending::LossProbe | Pending::Reordering => {
                (self.sent[0].sent_at + rto).max(core.now + MILLISECOND)
            }
            _ => core.now + rto,
        };
        self.timers.set(Pending::Retransmission, at);
    }

    fn arm_after_ack(&mut self, core: &Core) {
        if self.timers.pending == Pending::Reordering {
            self.timers.pending = Pending::None;
        }
        if !self.schedule_loss_probe(core) {
            self.arm_retransmission(core);
        }
    }

    /// Sends again what is lost, as far as the window admits.
    pub(crate) fn send_lost(&mut self, core: &mut Core, path: &mut Path, me: usize) {
        let recovery = &self.recovery;
        if recovery.lost == 0 || !matches!(recovery.state, CaState::Recovery | CaState::Loss) {
            return;
        }
        let hint = recovery.hint;
        let mut index = self.sent.partition_point(|sent| sent.seq < hint);
        let mut first = None;
        while index < self.sent.len() {
            let sent = &self.sent[index];
            if sent.has(Sent::LOST) && !sent.has(Sent::RETRANSMITTING) {
                if self.in_flight() >= path.cwnd {
                    first.get_or_insert(sent.seq);
                    break;
                }
                self.retransmit(core, me, index);
                if index == 0 {
                    self.arm_retransmission(core);
                }
            }
            index += 1;
        }
        self.recovery.hint = first.unwrap_or(self.next);
        self.publish(path);
    }

    pub(crate) fn next_deadline(&self) -> Nanos {
        self.timers.next().min(self.ack.deadline)
    }

    /// Handles the timer that is due. Returns what the connection must know of.
    pub(crate) fn on_timer(&mut self, core: &mut Core, paths: &mut [Path], me: usize) -> Fired {
        let fired = self.timers.fire(core.now);
        match fired {
            Fired::LossProbe => self.send_loss_probe(core, me),
            Fired::Reordering => {
                let mut delivery = Delivery::default();
                self.detect_losses(core, &mut delivery);
                if delivery.newly_lost > 0 {
                    if self.recovery.state < CaState::Recovery {
                        self.enter_recovery(core, paths, me);
                    }
                    self.reduce(
                        &mut paths[me],
                        &Delivery {
                            packets: 1,
                            newly_lost: 1,
                            ..Delivery::default()
                        },
                    );
                }
                if self.timers.next() == crate::NEVER {
                    self.arm_retransmission(core);
                }
            }
            _ => {}
        }
        self.publish(&mut paths[me]);
        fired
    }

    /// A retransmission timeout (RFC 6298 section 5.4 to 5.6, RFC 5681 section 3.1). False: the peer is given up.
    pub(crate) fn on_timeout(&mut self, core: &mut Core, paths: &mut [Path], me: usize) -> bool {
        if self.sent.is_empty() {
            return true;
        }
        let limit = if self.state.synchronised() {
            core.config.retries
        } else {
            core.config.syn_retries
        };
        if self.recovery.timeouts >= limit {
            core.counters.increment(Mib::TcpExtTCPAbortOnTimeout);
            return false;
        }
        core.counters.increment(Mib::TcpExtTCPTimeouts);
        core.event(EventKind::Timeout {
            subflow: me,
            backoff: self.recovery.backoff,
        });
        if self.state.synchronised() {
            self.enter_loss(paths, me);
        } else {
            self.recovery.lost = 1;
            self.sent[0].set(Sent::LOST);
            self.sent[0].clear(Sent::RETRANSMITTING);
            self.recovery.retransmitting = 0;
        }
        self.recovery.timeouts += 1;
        self.recovery.hint = self.recovery.hint.max(1);
        self.retransmit(core, me, 0);
        self.recovery.backoff = (self.recovery.backoff + 1).min(16);
        self.timers.pending = Pending::None;
        self.arm_retransmission(core);
        self.publish(&mut paths[me]);
        true
    }

    fn enter_loss(&mut self, paths: &mut [Path], me: usize) {
        let new_episode = self.recovery.state <= CaState::Disorder
            || self.una >= self.recovery.end
            || (self.recovery.state == CaState::Loss && self.recovery.timeouts == 0);
        if new_episode {
            self.recovery.prior_cwnd = paths[me].cwnd;
            self.recovery.prior_ssthresh = paths[me].ssthresh;
            paths[me].ssthresh = self.congestion.ssthresh(paths, me);
            self.recovery.begin_undo(self.una);
        }
        for sent in &mut self.sent {
            if !sent.has(Sent::SACKED) {
                sent.set(Sent::LOST);
            }
            sent.clear(Sent::RETRANSMITTING);
        }
        if !self.negotiated.sack {
            self.recovery.sacked = 0;
        }
        self.recovery.retransmitting = 0;
        self.recovery.lost = self.sent.len() as u32 - self.recovery.sacked;
        self.recovery.hint = 0;
        self.recovery.end = self.next;
        self.recovery.probe_end = None;
        paths[me].cwnd = self.in_flight() + 1;
        paths[me].cwnd_count = 0;
        self.set_state(paths, me, CaState::Loss);
    }

    /// Halves the window because this path blocks the others (Raiciu et al. 2012, penalisation; slow start is spared as in Paasch et al. 2013).
    pub(crate) fn penalise(&mut self, path: &mut Path) {
        let prior = path.cwnd;
        path.cwnd = (path.cwnd / 2).max(1);
        if prior >= path.ssthresh {
            path.ssthresh = (path.ssthresh / 2).max(2);
        }
    }

    pub(crate) fn sending(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
    }

    pub(crate) fn retransmission_timeout(&self, core: &Core) -> Nanos {
        self.rtt.rto(&core.config)
    }
}

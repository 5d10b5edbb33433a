//! Acknowledgements and loss recovery: SACK (RFC 6675's scoreboard), RACK-TLP (RFC 8985), PRR (RFC 6937), undo (RFC 3522,
//! RFC 3708), RTO (RFC 6298), F-RTO (RFC 5682).

mod acknowledgement;
mod local_drop;
mod loss;
mod rack;
mod reduction;
mod scoreboard;
mod timeout;
mod undo;

pub(crate) use timeout::probes_tail;

use rack::Rack;
use reduction::Reduction;
use timeout::{TailProbe, Timeouts};
use undo::Undo;

use std::ops::Range;

use super::Socket;
use super::controller::Controller;
use super::sender::Push;
use super::timer::{Pending, Timers};
use super::transfer::Transfer;
use crate::linux::send_memory;
use crate::linux::write_queue::WriteQueue;
use crate::path::Member;
use crate::path::rtt::RttEstimator;
use crate::path::{CaState, Path};
use crate::ranges::RangeSet;
use crate::settings::Config;
use crate::tcp::context::{Context, Options, Shared};
use crate::tcp::flight::{Flight, Sent};
use crate::{EventKind, Mib, Nanos};

/// Duplicate ACKs, or SACKed packets without reordering seen, that mean loss (RFC 5681 section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// Loss recovery: what the peer is known to have, what episode is under way, and how it ends.
pub(crate) struct Recovery {
    state: CaState,
    /// What the peer SACKed above the cumulative ACK, once it did.
    scoreboard: Option<Box<RangeSet>>,
    /// The episode ends when this is acknowledged (RFC 6675's RecoveryPoint).
    end: u64,
    /// Where the last one was to end. Without SACK, duplicates of what acknowledges no more than that begin none: they may be of what was sent
    /// again needlessly (RFC 6582 section 3.2, step 2).
    recover: u64,
    rack: Rack,
    undo: Undo,
    reduction: Reduction,
    /// F-RTO judges the timeout (RFC 5682), and wants new data sent before what is lost.
    frto: bool,
    new_first: bool,
    probe: TailProbe,
    timeouts: Timeouts,
}

impl Recovery {
    pub fn new(config: &Config) -> Self {
        Self {
            state: CaState::Open,
            scoreboard: None,
            end: 0,
            recover: 0,
            rack: Rack::default(),
            undo: Undo::default(),
            reduction: Reduction::new(config),
            frto: false,
            new_first: false,
            probe: TailProbe::default(),
            timeouts: Timeouts::default(),
        }
    }

    /// Nothing is to be recovered. What is known of the path's reordering stays.
    pub fn reset(&mut self) {
        self.state = CaState::Open;
        self.scoreboard = None;
        (self.end, self.recover) = (0, 0);
        self.undo = Undo::default();
        self.reduction.reset();
        (self.frto, self.new_first) = (false, false);
        self.probe = TailProbe::default();
        self.timeouts = Timeouts::default();
    }

    #[inline(always)]
    pub fn state(&self) -> CaState {
        self.state
    }

    /// By how many packets others are known to overtake one (Linux `tp->reordering`).
    pub fn reordering_degree(&self) -> u64 {
        self.rack.degree()
    }

    /// Timeouts in a row.
    pub fn timeouts(&self) -> u32 {
        self.timeouts.in_row()
    }

    /// Doublings of the retransmission timeout.
    pub fn backoff(&self) -> u32 {
        self.timeouts.backoff()
    }

    #[inline(always)]
    fn reducing(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }

    #[inline(always)]
    pub fn count_sent(&mut self) {
        if self.reducing() {
            self.reduction.count_sent(1);
        }
    }

    pub fn count_retransmitted(&mut self, now: Nanos) {
        self.count_sent();
        self.undo.count_retransmission(now);
    }

    /// What was counted as sent was not.
    fn uncount_sent(&mut self, segments: u32) {
        if self.reducing() {
            self.reduction.uncount_sent(segments);
        }
    }

    /// The segment that begins at `seq` is sent again; the peer tells what it has.
    pub fn note_repeated(&mut self, flight: &Flight, now: Nanos, seq: u64) {
        self.rack.note_repeated(flight, now, seq);
    }

    /// Segments in flight were cut.
    pub fn recount(&mut self, flight: &Flight) {
        self.rack.recount(flight);
    }

    pub fn sacked_ranges(&self) -> usize {
        self.scoreboard.as_ref().map_or(0, |ranges| ranges.count())
    }

    /// The end of the last of them; 0 where there is none.
    #[inline(always)]
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

    /// Nothing is doubtful.
    #[inline(always)]
    fn calm(&self) -> bool {
        self.state == CaState::Open && !self.probe.is_sent()
    }

    /// Whether an acknowledgement has anything to be concluded from.
    #[inline(always)]
    fn concludes(&self, delivery: &Delivery) -> bool {
        delivery.packets > 0 || delivery.advanced || !self.calm()
    }

    /// Whether a duplicate stands for a segment that arrived, without SACK. A timeout has nothing but what it took for lost sent again:
    /// duplicates are of what left before it (Linux `tcp_process_loss`).
    #[cold]
    fn counts_duplicates(&self, flight: &Flight) -> bool {
        let in_loss_window = self.state == CaState::Loss && flight.next() <= self.end;
        !flight.is_empty() && !in_loss_window
    }

    /// Looks for losses if something was delivered since the last time; without SACK, duplicate ACKs tell (RFC 6582).
    fn identify_losses(&mut self, at: &mut Search, delivery: &mut Delivery) {
        if at.sack {
            if self.rack.begins_search() {
                self.detect_losses(at, delivery);
            }
            return;
        }
        let begins = self.state < CaState::Recovery && at.flight.una() > self.recover;
        if (begins && at.flight.sacked() >= DUPLICATE_THRESHOLD)
            || (self.state == CaState::Recovery && delivery.advanced)
        {
            delivery.newly_lost += u32::from(at.flight.mark_head_lost());
        }
    }

    /// Looks for losses by time.
    fn detect_losses(&mut self, at: &mut Search, delivery: &mut Delivery) {
        let recovers = self.state >= CaState::Recovery;
        let now = at.shared.now;
        let Some(found) = (self.rack).detect_losses(at.flight, now, at.rtt, recovers) else {
            return;
        };
        delivery.newly_lost += found.newly_lost;
        delivery.retransmission_lost |= found.repetitions > 0;
        (at.shared.counters).add(Mib::TcpExtTCPLostRetransmit, found.repetitions);
        if found.wait > 0 {
            at.timers.set(Pending::Reordering, now + found.wait);
            delivery.rearm = false;
        }
    }

    /// What begins at `low`, and was never sent again, was delivered after something higher. True: that is still so.
    #[cold]
    fn note_reordering(&mut self, flight: &Flight, low: u64, mss: u32) -> bool {
        let highest = match flight.sacked() {
            0 => flight.una(),
            _ => self.highest_sacked(),
        };
        self.rack.note_reordering(low, highest, mss)
    }

    /// The next episode counts its own retransmissions (Linux `tcp_retrans_stamp_cleanup`).
    fn forget_repetitions(&mut self, flight: &Flight) {
        if !flight.any_repeated() {
            self.undo.forget_first();
        }
    }

    fn try_to_open(&mut self, path: &mut Member, flight: &Flight, controller: &mut Controller) {
        self.forget_repetitions(flight);
        if self.state != CaState::Cwr {
            self.keep_open(path, flight, controller);
        }
    }

    /// Open or Disorder, whichever fits (Linux `tcp_try_keep_open`).
    fn keep_open(&mut self, path: &mut Member, flight: &Flight, controller: &mut Controller) {
        let calm = flight.sacked() + flight.lost() == 0 && !flight.any_repeated();
        let state = if calm {
            CaState::Open
        } else {
            CaState::Disorder
        };
        if state != self.state {
            self.set_state(path, controller, state);
            self.end = flight.next();
        }
    }

    fn set_state(&mut self, path: &mut Member, controller: &mut Controller, state: CaState) {
        self.state = state;
        path.state = state;
        controller.algorithm().on_state(path, state);
    }

    /// One step of the reduction that is under way.
    fn reduce(&mut self, path: &mut Path, in_flight: u32, delivery: &Delivery) {
        let progress = delivery.advanced && delivery.newly_lost == 0;
        let repeats = self.state == CaState::Recovery;
        (self.reduction).step(path, in_flight, delivery.packets, (progress, repeats));
    }

    /// An episode of retransmissions that nothing in the network asks the sender to slow down for.
    pub fn begin_loss_without_congestion(
        &mut self,
        path: &mut Member,
        flight: &Flight,
        controller: &mut Controller,
    ) {
        self.end = flight.next();
        self.reduction.keep();
        self.undo.end();
        self.set_state(path, controller, CaState::Loss);
    }
}

/// What a search for losses looks at.
struct Search<'a> {
    shared: &'a mut Shared,
    flight: &'a mut Flight,
    rtt: &'a RttEstimator,
    timers: &'a mut Timers,
    /// The peer tells what it has.
    sack: bool,
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

impl Transfer {
    /// What an acknowledgement means for the episode (Linux `tcp_fastretrans_alert`). True: something is lost that begins another,
    /// unless it is a probe for the path's MTU.
    #[inline(never)]
    fn step_recovery(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &mut Delivery,
        before: u64,
    ) -> bool {
        if self.recovery.state == CaState::Open {
            self.recovery.undo.forget_first();
        } else if self.flight.una() >= self.recovery.end {
            self.leave(cx, delivery);
        }
        match self.recovery.state {
            CaState::Recovery => {
                if delivery.advanced && self.undo_in_mid_recovery(cx, delivery, before) {
                    return false;
                }
                if self.undo_by_duplicates(cx) {
                    (self.recovery).try_to_open(&mut cx.path, &self.flight, &mut self.controller);
                }
                self.identify_losses(cx.shared, delivery);
                if self.recovery.state != CaState::Recovery && self.flight.lost() > 0 {
                    self.enter_recovery(cx, delivery);
                }
                false
            }
            CaState::Loss => {
                self.step_loss(cx, delivery);
                self.identify_losses(cx.shared, delivery);
                (self.recovery.state == CaState::Open || delivery.retransmission_lost)
                    && self.settle(cx, delivery)
            }
            _ => self.settle(cx, delivery),
        }
    }

    /// Between episodes. True: something is lost.
    fn settle(&mut self, cx: &mut Context<impl Options>, delivery: &mut Delivery) -> bool {
        if self.recovery.state <= CaState::Disorder {
            self.undo_by_duplicates(cx);
        }
        self.identify_losses(cx.shared, delivery);
        let lost = self.flight.lost() > 0;
        if !lost {
            (self.recovery).try_to_open(&mut cx.path, &self.flight, &mut self.controller);
        }
        lost
    }

    /// Ends an episode of reduction or fast recovery whose end was acknowledged.
    fn leave(&mut self, cx: &mut Context<impl Options>, delivery: &Delivery) {
        match self.recovery.state {
            CaState::Cwr if self.flight.una() > self.recovery.end => {
                self.controller.end_reduction(&mut cx.path, false);
                (self.recovery).set_state(&mut cx.path, &mut self.controller, CaState::Open);
            }
            CaState::Recovery => {
                if !self.sack {
                    self.flight.forget_duplicates();
                }
                let undone = self.finish(cx, delivery, Mib::TcpExtTCPFullUndo);
                self.controller.end_reduction(&mut cx.path, undone);
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
        let undone = (self.recovery).may_undo(delivery.echo, &self.flight, self.sack);
        if undone {
            cx.shared.counters.increment(counter);
            self.undo(&mut cx.path, false);
        } else {
            self.recovery.rack.end_recovery();
        }
        (self.recovery).set_state(&mut cx.path, &mut self.controller, CaState::Open);
        undone
    }

    fn enter_recovery(&mut self, cx: &mut Context<impl Options>, delivery: &Delivery) {
        cx.shared.counters.increment(if self.sack {
            Mib::TcpExtTCPSackRecovery
        } else {
            Mib::TcpExtTCPRenoRecovery
        });
        cx.shared.event(EventKind::Loss(cx.path.index));
        self.recovery.forget_repetitions(&self.flight);
        self.recovery.undo.begin(&self.flight);
        let reducing = self.recovery.reducing();
        if !reducing {
            self.begin_reduction(&mut cx.path);
            self.reduce_flight(&mut cx.path, 0);
        }
        if reducing || delivery.marks > 0 {
            // RFC 4015 section 3.2: what a mark asked for is not undone.
            self.recovery.reduction.keep();
        }
        if !reducing || !cx.shared.config.profile.recovers_within_reductions() {
            self.recovery.end = self.flight.next();
        }
        self.recovery.recover = self.recovery.end;
        (self.recovery).set_state(&mut cx.path, &mut self.controller, CaState::Recovery);
    }

    /// Starts a reduction towards the controller's threshold (RFC 6937 section 3, RFC 6675 section 5).
    fn begin_reduction(&mut self, path: &mut Member) {
        self.recovery.end = self.flight.next();
        self.recovery.probe.end();
        self.recovery.reduction.begin(path);
        path.cwnd_count = 0;
        path.ssthresh = self.controller.algorithm().ssthresh(path);
        self.cwr_due = true;
    }

    /// A loss reduces what is in flight; `delivered` is no longer in flight, but was when the loss happened. A controller that sets a rate has
    /// no threshold.
    fn reduce_flight(&mut self, path: &mut Path, delivered: u32) {
        if !self.controller.paces() {
            let packets = self.flight.packets() + delivered;
            self.recovery.reduction.reduce_flight(path, packets);
        }
    }

    /// Looks for losses after an acknowledgement.
    fn identify_losses(&mut self, shared: &mut Shared, delivery: &mut Delivery) {
        let (recovery, mut at) = self.searching(shared);
        recovery.identify_losses(&mut at, delivery);
    }

    /// What a search for losses looks at.
    fn searching<'a>(&'a mut self, shared: &'a mut Shared) -> (&'a mut Recovery, Search<'a>) {
        let at = Search {
            shared,
            flight: &mut self.flight,
            rtt: &self.rtt,
            timers: &mut self.timers,
            sack: self.sack,
        };
        (&mut self.recovery, at)
    }

    fn note_reordering(&mut self, shared: &mut Shared, low: u64, mss: u32, counter: Mib) {
        if self.recovery.note_reordering(&self.flight, low, mss) {
            shared.counters.increment(counter);
        }
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
        self.recovery.undo.end();
        self.recovery.reduction.keep();
        (self.recovery).set_state(path, &mut self.controller, CaState::Cwr);
    }

    /// Something is lost, and it is time to send it again.
    #[inline]
    pub(crate) fn repairs(&self) -> bool {
        self.flight.lost() > 0 && self.recovery.state >= CaState::Recovery
    }
}

impl Socket {
    /// Sends again what is lost ([`Transfer::repairs`]), as far as the window admits. `buffers`: those in which the segments lie, if not in the subflow's own, and the
    /// sequence number at which their count begins.
    pub(crate) fn send_lost(
        &mut self,
        cx: &mut Context<impl Options>,
        buffers: Option<(&WriteQueue, u64)>,
    ) {
        let mut together = 0..0;
        let waiting = self.transfer.flight.unrepaired();
        let mut index = if waiting.is_empty() {
            self.transfer.flight.segments().len()
        } else {
            self.transfer.flight.first_from(waiting.from())
        };
        let mut first = None;
        while let Some(&sent) = self.transfer.flight.segments().get(index)
            && sent.seq < waiting.to()
        {
            if sent.awaits_repair() {
                if self.transfer.flight.in_flight() >= cx.path.cwnd
                    || self.transfer.controller.blocked()
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
                    self.transfer.arm_retransmission(cx.shared);
                }
            }
            index += 1;
        }
        (self.transfer.flight).repaired_below(first.unwrap_or(waiting.to()));
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
        let room = path.cwnd.saturating_sub(self.transfer.flight.in_flight());
        let Some((buffers, first)) = buffers.or(self.queue.buffers().map(|own| (own, 0))) else {
            return index..index + room.min(1) as usize;
        };
        let most = u64::from(room).min(send_memory::segments_sent(path)) as usize;
        let end = buffers
            .end_of(self.transfer.flight.segments()[index].seq - first)
            .unwrap_or(0);
        let goes_on = |sent: &&Sent| sent.awaits_repair() && sent.seq - first < end;
        let number = self
            .transfer
            .flight
            .segments()
            .range(index..)
            .take(most)
            .take_while(goes_on);
        index..index + number.count()
    }
}

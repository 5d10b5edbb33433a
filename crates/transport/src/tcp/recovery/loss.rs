//! After a retransmission timeout (RFC 5681 section 3.1): what is lost, and whether the timeout was needless (F-RTO, RFC 5682).

use super::{Delivery, Recovery};
use crate::Mib;
use crate::path::CaState;
use crate::tcp::context::{Context, Options, Shared};
use crate::tcp::flight::{Flight, Sent};
use crate::tcp::transfer::Transfer;

impl Recovery {
    /// Everything in flight is lost but what was sent too short a time ago to know (Linux `tcp_timeout_mark_lost`). A receiver that has SACKed
    /// what comes next, and does not acknowledge it, has discarded it, and may have discarded all that it SACKed (RFC 2018 section 8). Returns how
    /// many packets were marked.
    fn mark_timed_out(&mut self, flight: &mut Flight, shared: &mut Shared, sack: bool) -> u32 {
        let head = flight.segments().front();
        let discarded = head.is_some_and(|head| head.has(Sent::SACKED));
        if discarded {
            self.scoreboard = None;
        }
        if discarded || !sack {
            flight.forget_duplicates();
        }
        let before = flight.lost();
        let (now, rtt) = (shared.now, self.rack.rtt());
        let recent = |sent: &Sent| sent.sent_at + rtt > now;
        let repetitions = flight.mark_timed_out(recent, discarded);
        (shared.counters).add(Mib::TcpExtTCPLostRetransmit, repetitions);
        if discarded {
            self.rack.recount(flight);
        }
        flight.lost().saturating_sub(before)
    }

    /// Whether new data is to be sent before what is lost.
    pub fn wants_new_first(&self) -> bool {
        self.new_first
    }

    /// What was to be sent first was: what is lost follows where there was none.
    pub fn sent_new(&mut self, flight: &Flight) -> bool {
        let sent = flight.next() > self.end;
        self.new_first = false;
        self.frto &= sent;
        sent
    }
}

impl Transfer {
    /// Linux `tcp_enter_loss`. `searches_mtu`: a probe for the path's MTU is under way.
    pub(super) fn enter_loss(&mut self, cx: &mut Context<impl Options>, searches_mtu: bool) {
        let fresh = self.recovery.state < CaState::Recovery;
        let repeated = self.recovery.timeouts() > 0;
        let (flight, sack) = (&mut self.flight, self.sack);
        let marked = self.recovery.mark_timed_out(flight, cx.shared, sack);
        self.controller.note_lost(marked);
        let new_episode = self.recovery.state <= CaState::Disorder
            || self.flight.una() >= self.recovery.end
            || (self.recovery.state == CaState::Loss && !repeated);
        if new_episode {
            self.recovery.reduction.remember(&cx.path);
            cx.path.ssthresh = self.controller.algorithm().ssthresh(&mut cx.path);
            self.reduce_flight(&mut cx.path, 0);
            self.controller.algorithm().on_timeout(&mut cx.path);
            self.recovery.undo.begin(&self.flight);
        }
        self.flight.suspect_all();
        self.recovery.probe.end();
        cx.path.cwnd = self.flight.in_flight() + 1;
        cx.path.cwnd_count = 0;
        (self.recovery).set_state(&mut cx.path, &mut self.controller, CaState::Loss);
        self.cwr_due = true;
        (self.recovery.end, self.recovery.recover) = (self.flight.next(), self.flight.next());
        self.recovery.frto = self.sack && (fresh || repeated) && !searches_mtu;
        self.recovery.new_first = false;
    }

    /// An acknowledgement after a timeout (Linux `tcp_process_loss`; the steps are RFC 5682's, section 3.1).
    pub(super) fn step_loss(&mut self, cx: &mut Context<impl Options>, delivery: &Delivery) {
        let recovered = self.flight.una() >= self.recovery.end;
        if delivery.advanced && (self.recovery).may_undo(delivery.echo, &self.flight, self.sack) {
            return self.undo_loss(cx);
        }
        if self.recovery.frto {
            if delivery.original && self.recovery.undo.is_possible() {
                // Step 3b: what the timeout took for lost arrives.
                cx.shared.counters.increment(Mib::TcpExtTCPSpuriousRTOs);
                return self.undo_loss(cx);
            }
            if self.flight.next() > self.recovery.end {
                // Step 3a: duplicates after new data was sent.
                let duplicate = delivery.duplicate && !delivery.duplicate_sack;
                self.recovery.frto = !delivery.sacked && !duplicate;
            } else if delivery.advanced && !recovered {
                // Step 2b: new data tells whether the old is still under way.
                self.recovery.end = self.flight.next();
                self.recovery.new_first = true;
                return;
            }
        }
        if recovered {
            self.finish(cx, delivery, Mib::TcpExtTCPLossUndo);
        }
    }

    fn undo_loss(&mut self, cx: &mut Context<impl Options>) {
        cx.shared.counters.increment(Mib::TcpExtTCPLossUndo);
        self.undo(&mut cx.path, true);
        (self.recovery).set_state(&mut cx.path, &mut self.controller, CaState::Open);
    }
}

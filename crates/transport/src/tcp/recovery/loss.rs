//! After a retransmission timeout (RFC 5681 section 3.1): what is lost, and whether the timeout was needless (F-RTO, RFC 5682).

use super::Delivery;
use crate::Mib;
use crate::path::CaState;
use crate::path::Member;
use crate::tcp::Socket;
use crate::tcp::context::{Context, Options, Shared};
use crate::tcp::flight::Sent;

impl Socket {
    /// Linux `tcp_enter_loss`.
    pub(super) fn enter_loss(&mut self, cx: &mut Context<impl Options>) {
        let fresh = self.recovery.state < CaState::Recovery;
        let repeated = self.recovery.timeouts > 0;
        self.mark_timed_out(cx.shared);
        let new_episode = self.recovery.state <= CaState::Disorder
            || self.flight.una() >= self.recovery.end
            || (self.recovery.state == CaState::Loss && !repeated);
        if new_episode {
            self.recovery.prior_cwnd = cx.path.cwnd;
            self.recovery.prior_ssthresh = cx.path.ssthresh;
            cx.path.ssthresh = self.controller.algorithm().ssthresh(&mut cx.path);
            self.reduce_flight(&mut cx.path, 0);
            self.controller.algorithm().on_timeout(&mut cx.path);
            self.recovery.begin_undo(&self.flight);
        }
        self.flight.suspect_all();
        self.recovery.probe_end = None;
        cx.path.cwnd = self.flight.in_flight() + 1;
        cx.path.cwnd_count = 0;
        self.set_state(&mut cx.path, CaState::Loss);
        self.ecn.cwr_due = self.negotiated.ecn;
        (self.recovery.end, self.recovery.recover) = (self.flight.next(), self.flight.next());
        self.recovery.frto = self.negotiated.sack && (fresh || repeated) && !self.mss.probes();
        self.recovery.new_first = false;
    }

    /// An episode of retransmissions that nothing in the network asks the sender to slow down for.
    pub(in crate::tcp) fn begin_loss_without_congestion(&mut self, path: &mut Member) {
        self.recovery.end = self.flight.next();
        self.recovery.prior_ssthresh = 0;
        self.recovery.undo_from = None;
        self.set_state(path, CaState::Loss);
    }

    /// Everything in flight is lost but what was sent too short a time ago to know (Linux `tcp_timeout_mark_lost`). A receiver that has SACKed
    /// what comes next, and does not acknowledge it, has discarded it, and may have discarded all that it SACKed (RFC 2018 section 8).
    fn mark_timed_out(&mut self, shared: &mut Shared) {
        let head = self.flight.segments().front();
        let discarded = head.is_some_and(|head| head.has(Sent::SACKED));
        if discarded {
            self.recovery.scoreboard = None;
        }
        if discarded || !self.negotiated.sack {
            self.flight.forget_duplicates();
        }
        let before = self.flight.lost();
        let (now, rtt) = (shared.now, self.rack.rtt());
        let recent = |sent: &Sent| sent.sent_at + rtt > now;
        let repetitions = self.flight.mark_timed_out(recent, discarded);
        (shared.counters).add(Mib::TcpExtTCPLostRetransmit, repetitions);
        if discarded {
            self.rack.recount(&self.flight);
        }
        self.controller
            .note_lost(self.flight.lost().saturating_sub(before));
    }

    /// An acknowledgement after a timeout (Linux `tcp_process_loss`; the steps are RFC 5682's, section 3.1).
    pub(super) fn step_loss(&mut self, cx: &mut Context<impl Options>, delivery: &Delivery) {
        let recovered = self.flight.una() >= self.recovery.end;
        if delivery.advanced && self.may_undo(delivery) {
            return self.undo_loss(cx);
        }
        if self.recovery.frto {
            if delivery.original && self.recovery.undo_from.is_some() {
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
        self.set_state(&mut cx.path, CaState::Open);
    }

    /// Whether new data is to be sent before what is lost.
    pub(crate) fn wants_new_first(&self) -> bool {
        self.recovery.new_first
    }

    /// What was to be sent first was: what is lost follows where there was none.
    pub(crate) fn sent_new(&mut self) -> bool {
        let sent = self.flight.next() > self.recovery.end;
        self.recovery.new_first = false;
        self.recovery.frto &= sent;
        sent
    }
}

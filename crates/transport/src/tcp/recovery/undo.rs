//! Undoing a reduction that proved unnecessary: Eifel (RFC 3522, RFC 4015) and DSACK (RFC 3708).

use super::Delivery;
use crate::Mib;
use crate::path::Member;
use crate::tcp::Socket;
use crate::tcp::context::{Context, Options};

impl Socket {
    /// Eifel (RFC 3522): the ACK echoes a timestamp from before the first retransmission, so the original arrived. Where nothing was sent
    /// again yet it arrived as well (Linux `tcp_packet_delayed`).
    pub(super) fn delayed_not_lost(&self, delivery: &Delivery) -> bool {
        let first = self.recovery.first_retransmission;
        if first != 0 {
            return delivery.echo != 0 && (delivery.echo.wrapping_sub(first) as i32) < 0;
        }
        self.negotiated.sack || self.flight.una() < self.recovery.end
    }

    /// The reduction may be undone: every retransmission was needless, or none was needed.
    pub(super) fn may_undo(&self, delivery: &Delivery) -> bool {
        let recovery = &self.recovery;
        recovery.undo_from.is_some()
            && (recovery.undo_count == 0 || self.delayed_not_lost(delivery))
    }

    /// A hole was filled by a packet that was delayed. True: retransmissions are under way still, and nothing more is to be done.
    pub(super) fn undo_in_mid_recovery(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &Delivery,
        before: u64,
    ) -> bool {
        if self.recovery.undo_from.is_none() || !self.delayed_not_lost(delivery) {
            return false;
        }
        self.note_reordering(cx.shared, before, cx.path.mss, Mib::TcpExtTCPTSReorder);
        if self.flight.retransmitting() > 0 {
            return true;
        }
        self.forget_repetitions();
        cx.shared.counters.increment(Mib::TcpExtTCPPartialUndo);
        self.undo(&mut cx.path, true);
        self.keep_open(&mut cx.path);
        false
    }

    /// DSACKs told of every retransmission that it was needless (RFC 3708).
    pub(super) fn undo_by_duplicates(&mut self, cx: &mut Context<impl Options>) -> bool {
        if self.recovery.undo_from.is_none() || self.recovery.undo_count != 0 {
            return false;
        }
        self.rack.persist_longer();
        cx.shared.counters.increment(Mib::TcpExtTCPDSACKUndo);
        self.undo(&mut cx.path, false);
        true
    }

    pub(super) fn undo(&mut self, path: &mut Member, unmark: bool) {
        if unmark {
            self.flight.unmark_lost();
            self.rack.recount(&self.flight);
        }
        if self.recovery.prior_ssthresh > 0 {
            let prior = self.recovery.prior_cwnd;
            path.cwnd = self.controller.algorithm().undo(path, prior);
            path.ssthresh = path.ssthresh.max(self.recovery.prior_ssthresh);
            self.ecn.cwr_due = false;
        }
        self.recovery.undo_from = None;
        self.recovery.timeouts = 0;
        self.rack.search_again();
    }
}

//! Undoing a reduction that proved unnecessary: Eifel (RFC 3522, RFC 4015) and DSACK (RFC 3708).

use super::Delivery;
use super::rack::STEPS_PERSIST;
use crate::Mib;
use crate::mptcp::core::Core;
use crate::path::Path;
use crate::tcp::Socket;
use crate::tcp::sender::Sent;

impl Socket {
    /// Eifel (RFC 3522): the ACK echoes a timestamp from before the first retransmission, so the original arrived. Where nothing was sent
    /// again yet it arrived as well (Linux `tcp_packet_delayed`).
    pub(super) fn delayed_not_lost(&self, delivery: &Delivery) -> bool {
        let first = self.recovery.first_retransmission;
        if first != 0 {
            return delivery.echo != 0 && (delivery.echo.wrapping_sub(first) as i32) < 0;
        }
        self.negotiated.sack || self.una < self.recovery.end
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
        core: &mut Core,
        paths: &mut [Path],
        me: usize,
        delivery: &Delivery,
        before: u64,
    ) -> bool {
        if self.recovery.undo_from.is_none() || !self.delayed_not_lost(delivery) {
            return false;
        }
        self.note_reordering(core, before, paths[me].mss, Mib::TcpExtTCPTSReorder);
        if self.recovery.retransmitting > 0 {
            return true;
        }
        self.forget_repetitions();
        core.counters.increment(Mib::TcpExtTCPPartialUndo);
        self.undo(paths, me, true);
        self.keep_open(paths, me);
        false
    }

    /// DSACKs told of every retransmission that it was needless (RFC 3708).
    pub(super) fn undo_by_duplicates(
        &mut self,
        core: &mut Core,
        paths: &mut [Path],
        me: usize,
    ) -> bool {
        if self.recovery.undo_from.is_none() || self.recovery.undo_count != 0 {
            return false;
        }
        self.rack.persist = (self.rack.persist + 1).min(STEPS_PERSIST);
        core.counters.increment(Mib::TcpExtTCPDSACKUndo);
        self.undo(paths, me, false);
        true
    }

    pub(super) fn undo(&mut self, paths: &mut [Path], me: usize, unmark: bool) {
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
        self.rack.advanced = true;
    }
}

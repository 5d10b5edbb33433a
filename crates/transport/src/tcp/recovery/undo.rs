//! Undoing a reduction that proved unnecessary: Eifel (RFC 3522, RFC 4015) and DSACK (RFC 3708).

use polypath_wire::tcp::Segment;

use crate::Mib;
use crate::mptcp::core::Core;
use crate::path::{CaState, Path};
use crate::tcp::Socket;
use crate::tcp::sender::Sent;

impl Socket {
    /// Eifel (RFC 3522): the ACK echoes a timestamp from before the first retransmission, so the original arrived.
    pub(super) fn delayed_not_lost(&self, segment: &Segment) -> bool {
        let first = self.recovery.first_retransmission;
        first != 0
            && segment
                .timestamps
                .is_some_and(|(_, echo)| echo != 0 && (echo.wrapping_sub(first) as i32) < 0)
    }

    pub(super) fn undo_in_mid_recovery(
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
    }

    pub(super) fn keep_open_after_undo(&mut self, core: &mut Core, paths: &mut [Path], me: usize) {
        self.recovery.state = CaState::Disorder;
        self.keep_open(core, paths, me);
    }
}

//! Undoing a reduction that proved unnecessary: Eifel (RFC 3522, RFC 4015) and DSACK (RFC 3708).

use super::{Delivery, Recovery};
use crate::path::Member;
use crate::tcp::context::{Context, Options};
use crate::tcp::flight::Flight;
use crate::tcp::timestamp;
use crate::tcp::transfer::Transfer;
use crate::{MILLISECOND, Mib, Nanos};

/// Whether a reduction may prove unnecessary.
#[derive(Debug)]
pub(super) struct Undo {
    /// Where undo may return to, while it may.
    from: Option<u64>,
    /// Retransmissions of this episode not yet reported as duplicates; -1: none happened.
    count: i32,
    /// Timestamp of the episode's first retransmission; 0: none.
    first_retransmission: u32,
    /// DSACKs that there were.
    duplicates: u64,
}

impl Default for Undo {
    fn default() -> Self {
        Self {
            from: None,
            count: -1,
            first_retransmission: 0,
            duplicates: 0,
        }
    }
}

impl Undo {
    /// An episode begins that may be undone.
    pub fn begin(&mut self, flight: &Flight) {
        self.from = Some(flight.una());
        self.count = match flight.retransmitting() {
            0 => -1,
            number => number as i32,
        };
    }

    /// The reduction stays.
    pub fn end(&mut self) {
        self.from = None;
    }

    pub fn is_possible(&self) -> bool {
        self.from.is_some()
    }

    /// DSACKs told of every retransmission that it was needless (RFC 3708).
    pub fn all_needless(&self) -> bool {
        self.count == 0
    }

    pub fn count_retransmission(&mut self, now: Nanos) {
        if self.first_retransmission == 0 {
            self.first_retransmission = timestamp(now);
        }
        self.count = self.count.max(0) + 1;
    }

    /// When something was first sent again in this episode.
    pub fn first_retransmission(&self) -> Option<Nanos> {
        let ticks = self.first_retransmission.checked_sub(1)?;
        Some(u64::from(ticks) * MILLISECOND)
    }

    /// The next episode counts its own retransmissions.
    pub fn forget_first(&mut self) {
        self.first_retransmission = 0;
    }

    /// A DSACK came. False: more came than was sent again, so that the network doubles packets (`tcp_dsack_seen`).
    pub fn counts_duplicate(&mut self, retransmitted: u64) -> bool {
        self.duplicates += 1;
        self.duplicates <= retransmitted
    }

    /// A retransmission that ends at `end` was needless.
    pub fn note_needless(&mut self, end: u64) {
        if self.from.is_some_and(|from| end > from) && self.count > 0 {
            self.count -= 1;
        }
    }

    /// Whether an acknowledgement echoes a timestamp from before the first retransmission; absent: there was none.
    fn echoes_original(&self, echo: u32) -> Option<bool> {
        let first = self.first_retransmission;
        (first != 0).then(|| echo != 0 && (echo.wrapping_sub(first) as i32) < 0)
    }
}

impl Recovery {
    /// Eifel (RFC 3522): the ACK echoes a timestamp from before the first retransmission, so the original arrived. Where nothing was sent
    /// again yet it arrived as well (Linux `tcp_packet_delayed`).
    fn delayed_not_lost(&self, echo: u32, flight: &Flight, sack: bool) -> bool {
        let original = self.undo.echoes_original(echo);
        original.unwrap_or(sack || flight.una() < self.end)
    }

    /// The reduction may be undone: every retransmission was needless, or none was needed.
    pub(super) fn may_undo(&self, echo: u32, flight: &Flight, sack: bool) -> bool {
        self.undo.is_possible()
            && (self.undo.all_needless() || self.delayed_not_lost(echo, flight, sack))
    }
}

impl Transfer {
    /// A hole was filled by a packet that was delayed. True: retransmissions are under way still, and nothing more is to be done.
    pub(super) fn undo_in_mid_recovery(
        &mut self,
        cx: &mut Context<impl Options>,
        delivery: &Delivery,
        before: u64,
    ) -> bool {
        let (recovery, sack) = (&self.recovery, self.sack);
        if !recovery.undo.is_possible()
            || !recovery.delayed_not_lost(delivery.echo, &self.flight, sack)
        {
            return false;
        }
        self.note_reordering(cx.shared, before, cx.path.mss, Mib::TcpExtTCPTSReorder);
        if self.flight.retransmitting() > 0 {
            return true;
        }
        self.recovery.forget_repetitions(&self.flight);
        cx.shared.counters.increment(Mib::TcpExtTCPPartialUndo);
        self.undo(&mut cx.path, true);
        (self.recovery).keep_open(&mut cx.path, &self.flight, &mut self.controller);
        false
    }

    /// DSACKs told of every retransmission that it was needless (RFC 3708).
    pub(super) fn undo_by_duplicates(&mut self, cx: &mut Context<impl Options>) -> bool {
        if !self.recovery.undo.is_possible() || !self.recovery.undo.all_needless() {
            return false;
        }
        self.recovery.rack.persist_longer();
        cx.shared.counters.increment(Mib::TcpExtTCPDSACKUndo);
        self.undo(&mut cx.path, false);
        true
    }

    pub(super) fn undo(&mut self, path: &mut Member, unmark: bool) {
        if unmark {
            self.flight.unmark_lost();
            self.recovery.rack.recount(&self.flight);
        }
        if let Some((cwnd, ssthresh)) = self.recovery.reduction.prior() {
            path.cwnd = self.controller.algorithm().undo(path, cwnd);
            path.ssthresh = path.ssthresh.max(ssthresh);
            self.cwr_due = false;
        }
        self.recovery.undo.end();
        self.recovery.timeouts.end();
        self.recovery.rack.search_again();
    }
}

//! Fallback to plain TCP, and what else becomes of a subflow whose options were interfered with (RFC 8684 section 3.7).

use std::cell::Cell;

use polypath_wire::mptcp::{Dsn, MptcpOption, ResetReason};
use polypath_wire::tcp::{Flags, Segment};

use super::connection::Connection;
use super::segment::Place;
use super::session::Infinite;
use crate::seq::unwrap;
use crate::tcp::State;
use crate::{CloseReason, EventKind, Mib};

impl Connection {
    /// Turns into plain TCP (RFC 8684 section 3.7).
    pub(super) fn fall_back(&mut self, why: &'static str) {
        if let Some(multipath) = self.session.multipath.take() {
            if multipath.remote_key != 0 {
                self.session.peer_idsn = Some(multipath.remote_idsn);
                self.session.infinite = Some(Infinite {
                    multipath,
                    from: self.send.sent(),
                    told: Cell::new(false),
                });
            }
            self.shared.event(EventKind::Fallback(why));
            self.send.fall_back();
            self.announcements.end_all();
        }
    }

    /// A SYN was lost once more: the next one goes without MP_CAPABLE if that may be the reason (RFC 8684 section 3.1, Linux
    /// `mptcp_active_detect_blackhole`).
    pub(super) fn doubt_capable(&mut self, subflow: usize) {
        let socket = &self.subflows[subflow].socket;
        if self.subflows[subflow].join.is_some() || socket.state() != State::SynSent {
            return;
        }
        let due = socket.transfer.recovery.timeouts() == self.shared.config.capable_repetitions();
        self.session.withheld = due && self.session.multipath.is_some();
        if self.session.withheld {
            self.shared
                .counters
                .increment(Mib::MPTcpExtMPCapableSYNTXDrop);
            self.fall_back("SYNs with MP_CAPABLE were lost");
        }
    }

    /// Whether the only subflow ever can go on as plain TCP: what it carried is contiguous, so that its numbers and the stream's run in parallel
    /// (RFC 8684 section 3.7; Linux `allow_infinite_fallback`).
    fn is_contiguous(&self) -> bool {
        self.subflows.len() == 1 && !self.send.repeated()
    }

    /// An acknowledgement of data without any MPTCP option: before the peer confirmed MPTCP it has fallen back, afterwards the path is
    /// broken, since nothing on it will ever be acknowledged at data level (RFC 8684 section 3.7). One of the SYN alone may be a challenge
    /// to what came during the handshake, and late.
    pub(super) fn on_bare_ack(&mut self, subflow: usize, segment: &Segment) {
        // Where both sides are closing it comes from TIME-WAIT, which in Linux knows no options.
        if !segment.mptcp().is_empty() || self.subflows[subflow].socket.lifetime.closing() {
            return;
        }
        let confirmed = self
            .session
            .multipath
            .as_ref()
            .is_some_and(|multipath| multipath.confirmed);
        let single = self.subflows.len() == 1;
        let of_data = self.subflows[subflow]
            .socket
            .transfer
            .acknowledges_data(segment);
        // On an only subflow it shows by more being acknowledged than any data ACK did, or by a FIN.
        let beyond =
            self.paths[subflow].acked > self.send.una() || segment.flags.contains(Flags::FIN);
        let late = self.shared.config.profile.falls_back_late();
        if self.is_contiguous() && beyond && (!confirmed || late) {
            self.fall_back("acknowledgement without DSS");
            self.on_plain_ack(subflow);
        } else if beyond || confirmed && !single && of_data {
            self.reset_subflow(subflow, ResetReason::MiddleboxInterference);
        }
    }

    /// Data without a mapping: a peer that fell back at once where none ever came, interference otherwise (RFC 8684 section 3.7).
    pub(super) fn on_unmapped(&mut self, subflow: usize) {
        let late = self.shared.receive.next > 0 || self.shared.receive.reassembly_bytes() > 0;
        if self.is_contiguous() && (!late || self.shared.config.profile.falls_back_late()) {
            self.fall_back("data without a mapping");
            self.subflows[subflow].socket.receiver.request_ack();
        } else {
            self.shared.counters.increment(Mib::MPTcpExtDSSNoMatchTCP);
            self.reset_subflow(subflow, ResetReason::MiddleboxInterference);
        }
    }

    /// The peer fell back (RFC 8684 section 3.7): from here on, and before it, the subflow is the stream.
    pub(super) fn on_infinite_mapping(&mut self, start: u64, first: u64, seq: u64) -> Place {
        if !self.is_contiguous() || start.wrapping_add(1) != first {
            return Place::Unmapped;
        }
        self.shared.counters.increment(Mib::MPTcpExtInfiniteMapRx);
        self.fall_back("infinite mapping");
        Place::At(seq.saturating_sub(1))
    }

    /// Whether a peer that has not fallen back says that a segment's payload is not where the subflow's numbers put it: it sent some of the
    /// stream on another subflow, or twice on this one.
    #[cold]
    pub(super) fn moved(&self, idsn: u64, seq: u64, segment: &Segment) -> bool {
        let mapping = segment.dss.and_then(|dss| dss.mapping);
        let Some(mapping) = mapping.filter(|it| it.subflow_seq != 0 && it.len != 0) else {
            return false;
        };
        let start = match mapping.dsn {
            Dsn::Long(dsn) => dsn.get().wrapping_sub(idsn).wrapping_sub(1),
            Dsn::Short(dsn) => unwrap((idsn as u32).wrapping_add(1), dsn, self.shared.receive.next),
        };
        start.wrapping_add(1) != unwrap(0, mapping.subflow_seq, seq)
    }

    /// The bytes are not those that were sent at this offset. With checksums the receiver sees it (RFC 8684 section 3.7); false: the segment is dropped.
    pub(super) fn on_altered(&mut self, subflow: usize, offset: u64) -> bool {
        let checksum = self
            .session
            .multipath
            .as_ref()
            .is_some_and(|multipath| multipath.checksum);
        if !checksum {
            self.shared.counters.increment(Mib::PayloadMismatch);
            return true;
        }
        self.shared.counters.increment(Mib::MPTcpExtDataCsumErr);
        self.fail(subflow, offset)
    }

    /// MP_FAIL (RFC 8684 section 3.7): falls back with a single subflow, closes the subflow otherwise. True: it fell back.
    fn fail(&mut self, subflow: usize, offset: u64) -> bool {
        let Some(multipath) = &self.session.multipath else {
            return false;
        };
        let dsn = multipath.remote_idsn.wrapping_add(1).wrapping_add(offset);
        let contiguous = self.is_contiguous();
        if contiguous {
            self.send_fail(subflow, dsn);
            self.fall_back("DSS checksum failed");
        } else {
            self.shared.counters.increment(Mib::MPTcpExtMPFailTx);
            let reason = ResetReason::MiddleboxInterference;
            self.reset_for(subflow, MptcpOption::Fail { dsn }, reason);
            self.shared.event(EventKind::SubflowReset(subflow));
            self.lose_subflow(subflow, CloseReason::Reset);
        }
        contiguous
    }

    /// MP_FAIL on an acknowledgement.
    fn send_fail(&mut self, subflow: usize, dsn: u64) {
        self.shared.counters.increment(Mib::MPTcpExtMPFailTx);
        self.with(subflow, |socket, cx| socket.send_ack(cx));
        if let Some(last) = self.shared.out.last_mut() {
            let options = &mut last.segment.rare_mut().mptcp;
            options.push(MptcpOption::Fail { dsn });
            last.segment.fit_options();
        }
    }

    /// The peer found altered payload: this direction falls back, and the answer has the other do so (RFC 8684 section 3.7).
    pub(super) fn on_fail(&mut self, subflow: usize) {
        self.shared.counters.increment(Mib::MPTcpExtMPFailRx);
        if self.is_contiguous() {
            if let Some(dsn) = self.peer_data_sequence(self.shared.receive.next) {
                self.send_fail(subflow, dsn);
            }
            self.fall_back("MP_FAIL received");
        } else if !self.shared.config.profile.ignores_late_failures() {
            self.reset_subflow(subflow, ResetReason::MiddleboxInterference);
        }
    }
}

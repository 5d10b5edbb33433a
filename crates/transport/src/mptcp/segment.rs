//! Arriving segments: what each part of one does to the connection.

use polypath_wire::mptcp::{DataAck, Dsn, Dss, MpJoin, MptcpOption, ResetReason};
use polypath_wire::tcp::{Flags, Segment};

use super::connection::Connection;
use super::ending::refuse_late_data;
use super::session::{Join, Multipath};
use crate::seq::unwrap;
use crate::tcp::context::Options as _;
use crate::tcp::{Arrived, Socket, State};
use crate::{CloseReason, Codepoint, EventKind, Mib, Nanos, Purpose};

/// How an arriving packet was treated on its way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    pub ecn: Codepoint,
    /// The checksum is wrong.
    pub corrupted: bool,
    /// Why it was sent, where the owner knows.
    pub purpose: Purpose,
}

/// Where a segment's payload belongs.
pub(super) enum Place {
    /// In the stream, from this offset on.
    At(u64),
    /// Nowhere: no mapping covers it.
    Unmapped,
    /// After a fallback: elsewhere than where the subflow's numbers put it.
    Elsewhere,
}

impl Connection {
    /// Takes a segment that arrived on a subflow, the only one at this instant.
    pub fn on_segment(&mut self, subflow: usize, segment: &Segment, arrival: Arrival, now: Nanos) {
        self.take_in(subflow, segment, arrival, now);
        if self.processes_wait() {
            self.run_processes(now);
        }
    }

    /// Has fetched what a subflow needs for an arriving segment.
    #[inline(always)]
    pub fn prefetch(&self, subflow: usize) {
        if let (Some(own), Some(path)) = (self.subflows.get(subflow), self.paths.get(subflow)) {
            polypath_prefetch::prefetch(own);
            polypath_prefetch::prefetch(path);
        }
    }

    /// Takes a segment that arrived on a subflow. Where processes wait then, [`Connection::run_processes`] is to follow the instant's last
    /// packet.
    #[inline(never)]
    pub fn take_in(&mut self, subflow: usize, segment: &Segment, arrival: Arrival, now: Nanos) {
        if self.processes_run_last {
            self.shared.softirq = Some(subflow);
        }
        self.shared.now = now;
        self.shared.arriving = arrival.purpose;
        self.shared.counters.increment(Mib::TcpInSegs);
        if arrival.corrupted {
            self.shared.counters.increment(Mib::TcpInCsumErrors);
            return;
        }
        let state = self.subflows[subflow].socket.state();
        let ready = match state {
            State::Closed => return self.with(subflow, |_, cx| cx.refuse(segment)),
            State::SynSent => {
                self.on_syn_sent(subflow, segment, arrival.ecn);
                false
            }
            State::SynReceived => self.on_syn_received(subflow, segment),
            _ => true,
        };
        if ready {
            self.on_synchronised(subflow, segment, arrival);
        }
        let socket = &self.subflows[subflow].socket;
        if (socket.transfer.repairs() || socket.transfer.recovery.wants_new_first())
            && socket.state().synchronised()
        {
            self.send_lost(subflow);
        }
        let joins = state == State::SynReceived && self.subflows[subflow].join.is_some();
        if !joins || !self.shared.config.profile.confirms_joins_alone() {
            self.push_inline();
        }
        if self.subflows[subflow].socket.receiver.owes_ack() {
            self.with(subflow, |socket, cx| socket.send_ack(cx));
        }
        if state == State::SynReceived && self.policy.manager().begins(now) {
            // A connection was accepted; its program takes it later.
            if self.shared.config.profile.manages_before_programs() {
                self.take_turn();
            }
        }
        self.note_deadline(subflow);
        self.housekeep();
    }

    /// ICMP says of a packet of a subflow, whose segment began at `seq`, that it was longer than the next link takes.
    pub fn on_packet_too_big(&mut self, subflow: usize, seq: u32, mtu: u32, now: Nanos) {
        self.shared.now = now;
        if self.subflows[subflow].socket.state() == State::Closed {
            return;
        }
        if !self.subflows[subflow].socket.transfer.flight.awaits(seq) {
            self.shared.counters.increment(Mib::TcpExtOutOfWindowIcmps);
            return;
        }
        if !self.limit_mtu(subflow, mtu) {
            return;
        }
        self.shared.event(EventKind::PathMtu { subflow, mtu });
        if !self.subflows[subflow].socket.state().synchronised() || self.cut_and_resend(subflow) {
            self.push();
        }
        self.note_deadline(subflow);
        self.housekeep();
    }

    /// The host's own queue refused the segment of a subflow that begins at `seq`, and what follows it was not handed over. `sent`: it counts
    /// as sent all the same, and the queue only asks for a lower rate (NET_XMIT_CN).
    pub fn on_local_drop(&mut self, subflow: usize, seq: u32, sent: bool, now: Nanos) {
        if !self.shared.config.profile.hears_local_drops()
            || !self.subflows[subflow].socket.state().synchronised()
        {
            return;
        }
        self.shared.now = now;
        if sent {
            self.with(subflow, |socket, cx| socket.on_local_congestion(cx));
        } else {
            self.with(subflow, |socket, cx| socket.on_local_drop(cx, seq));
            self.settle_outrun(subflow);
            self.tends_queues = true;
        }
        self.find_deadline();
    }

    /// What a subflow did not send after all was no reinjection on the others.
    fn settle_outrun(&mut self, subflow: usize) {
        let mut left = std::mem::take(&mut self.shared.once.outrun);
        for (index, other) in self.subflows.iter_mut().enumerate() {
            if index != subflow {
                let part = left.min(other.socket.transfer.totals.reinjected);
                other.socket.transfer.totals.reinjected -= part;
                left -= part;
            }
        }
    }

    /// The path of a subflow is known to take packets of `mtu` bytes at most. False: no longer ones are sent anyway.
    pub fn limit_mtu(&mut self, subflow: usize, mtu: u32) -> bool {
        let ipv6 = self.subflows[subflow].tuple.local.is_ipv6();
        self.subflows[subflow]
            .socket
            .limit_mtu(&mut self.paths[subflow], mtu, ipv6)
    }

    /// The host has another route to a subflow's peer, of packets of `mtu` bytes. The next segment takes it, and what is cut after that heeds
    /// it (Linux `__sk_dst_check` in `__ip_queue_xmit`, `tcp_current_mss`). The bytes that are there to be sent may be more in a segment then.
    pub fn reroute(&mut self, subflow: usize, mtu: u32) {
        let ipv6 = self.subflows[subflow].tuple.local.is_ipv6();
        self.subflows[subflow].socket.mss.reroute(mtu, ipv6);
        (self.rerouted, self.tends_queues) = (true, true);
    }

    /// Sends again what is lost, after new data where F-RTO wants that and there is some.
    fn send_lost(&mut self, subflow: usize) {
        if self.subflows[subflow]
            .socket
            .transfer
            .recovery
            .wants_new_first()
        {
            self.push();
            let socket = &mut self.subflows[subflow].socket;
            if socket.transfer.recovery.sent_new(&socket.transfer.flight) {
                return;
            }
        }
        self.repair(subflow);
    }

    #[inline(always)]
    fn on_synchronised(&mut self, subflow: usize, segment: &Segment, arrival: Arrival) {
        let field = arrival.ecn;
        let joining = |join: &Join| join.unconfirmed;
        let usual = !segment.flags.intersects(Flags::SYN | Flags::RST)
            && segment.rare.is_none()
            && !(self.subflows[subflow].join.as_deref()).is_some_and(joining);
        let taken = if usual {
            self.with(subflow, |socket, cx| {
                let acceptable = socket.acceptable(cx, segment);
                if acceptable {
                    socket.on_ecn(cx, field, segment);
                    socket.on_ack(cx, segment);
                }
                acceptable
            })
        } else {
            self.take_unusual(subflow, segment, field)
        };
        if !taken {
            return;
        }
        // An answer that says nothing of the stream does not keep a probe of its window alive.
        if segment.dss.is_some() || self.session.multipath.is_none() {
            self.send.peer_heard();
        }
        match (&segment.dss, self.session.multipath.is_some()) {
            (Some(dss), true) => self.on_dss(subflow, segment, dss),
            (_, false) => self.on_plain_ack(subflow),
            (None, true) if self.is_piece(subflow, segment) => {}
            (None, true) => self.on_bare_ack(subflow, segment),
        }
        if self.subflows[subflow].socket.state() != State::Established
            && (refuse_late_data(self, subflow, segment) || !self.goes_on(subflow, segment))
        {
            return;
        }
        if segment.payload.len > 0 {
            self.on_payload(subflow, segment);
            if self.subflows[subflow].socket.state() == State::Closed {
                return;
            }
        }
        self.subflows[subflow].socket.receiver.answer_probe(segment);
        self.on_fin(subflow, segment);
    }

    /// Whether the rest of a segment counts once an end is closed, or both are. Kept out of the way of segments of an open connection.
    #[inline(never)]
    fn goes_on(&mut self, subflow: usize, segment: &Segment) -> bool {
        let socket = &mut self.subflows[subflow].socket;
        if socket.receiver.is_beyond_fin(segment) {
            // RFC 9293 section 3.10.7.4, seventh step: it is ignored.
            socket.receiver.request_ack();
            return false;
        }
        socket.state() != State::Closed
    }

    /// The first steps for a segment that opens or ends something, or has rare options. False: there are no others.
    #[cold]
    #[inline(never)]
    fn take_unusual(&mut self, subflow: usize, segment: &Segment, field: Codepoint) -> bool {
        if segment.flags.contains(Flags::SYN | Flags::ACK)
            && self.subflows[subflow].socket.repeats_syn_ack(segment)
        {
            // Our third ACK was lost.
            self.with(subflow, |socket, cx| socket.send_third_ack(cx));
            return false;
        }
        let late = segment.flags.contains(Flags::RST)
            && self.shared.config.profile.takes_resets_behind_fin()
            && resets_behind_fin(&self.subflows[subflow].socket, segment);
        if !late && !self.with(subflow, |socket, cx| socket.acceptable(cx, segment)) {
            return false;
        }
        if segment.flags.contains(Flags::RST) {
            self.on_reset(subflow, segment);
            return false;
        }
        self.confirm_join(subflow);
        let state = self.subflows[subflow].socket.state();
        let both_closed = matches!(state, State::Closing | State::LastAck);
        if both_closed {
            self.with(subflow, |socket, cx| socket.on_ack(cx, segment));
            let state = self.subflows[subflow].socket.state();
            if matches!(state, State::Closed | State::TimeWait) {
                // Nobody is left for its options (RFC 9293 section 3.10.7.4, fifth step; Linux `tcp_rcv_state_process`).
                return true;
            }
        }
        if segment.rare.is_some() {
            self.on_options(subflow, segment);
            if self.ended.is_some() || self.subflows[subflow].socket.state() == State::Closed {
                return false;
            }
        }
        if self.subflows[subflow].socket.negotiated.ecn {
            self.with(subflow, |socket, cx| socket.on_ecn(cx, field, segment));
        }
        if !both_closed {
            self.with(subflow, |socket, cx| socket.on_ack(cx, segment));
        }
        true
    }

    /// Counts what the options of a reset say. True: the peer ends the whole connection.
    pub(super) fn count_reset(&mut self, segment: &Segment) -> bool {
        let mut fast_close = false;
        for option in segment.mptcp() {
            match option {
                MptcpOption::FastClose { receiver_key } => {
                    fast_close |= self.is_own_key(*receiver_key)
                }
                MptcpOption::TcpRst { .. } => self.shared.counters.increment(Mib::MPTcpExtMPRstRx),
                MptcpOption::Fail { .. } => self.shared.counters.increment(Mib::MPTcpExtMPFailRx),
                _ => {}
            }
        }
        fast_close
    }

    #[cold]
    fn on_reset(&mut self, subflow: usize, segment: &Segment) {
        let joining = |join: &Join| join.unconfirmed;
        if self.shared.config.profile.refuses_joins_at_listeners()
            && self.subflows[subflow].join.as_deref().is_some_and(joining)
        {
            return self.reset_subflow(subflow, ResetReason::Unspecified);
        }
        let fast_close = self.count_reset(segment);
        self.shared.event(EventKind::SubflowReset(subflow));
        if fast_close {
            self.shared.counters.increment(Mib::MPTcpExtMPFastcloseRx);
            self.close_subflow(subflow);
            self.answer_fast_close();
        } else {
            self.lose_subflow(subflow, CloseReason::Reset);
        }
    }

    fn is_own_key(&self, key: u64) -> bool {
        self.session
            .multipath
            .as_ref()
            .is_some_and(|multipath| multipath.local_key == key)
    }

    #[cold]
    #[inline(never)]
    fn on_options(&mut self, subflow: usize, segment: &Segment) {
        if self.session.multipath.is_none() {
            return;
        }
        for option in segment.mptcp() {
            match option {
                MptcpOption::AddAddr {
                    echo: true,
                    address_id,
                    ..
                } => {
                    self.shared.counters.increment(Mib::MPTcpExtEchoAdd);
                    if self.announcements.end(*address_id) {
                        self.end_announcement();
                    }
                }
                MptcpOption::AddAddr {
                    address_id,
                    address,
                    port,
                    hmac,
                    ..
                } => {
                    self.on_add_addr(*address_id, *address, *port, *hmac);
                }
                MptcpOption::RemoveAddr { address_ids } => self.on_remove_addr(address_ids),
                // The third ACK again: the fourth was lost (RFC 8684 section 3.2).
                MptcpOption::Join(MpJoin::Ack { .. }) => {
                    self.subflows[subflow].socket.receiver.request_ack()
                }
                MptcpOption::Prio { backup } => {
                    self.shared.counters.increment(Mib::MPTcpExtMPPrioRx);
                    self.subflows[subflow].backup_remote = *backup;
                    self.refresh_backup(subflow);
                }
                MptcpOption::Fail { .. } => self.on_fail(subflow),
                MptcpOption::FastClose { receiver_key } if self.is_own_key(*receiver_key) => {
                    let socket = &mut self.subflows[subflow].socket;
                    if socket.receiver.position(segment) < socket.receiver.next() {
                        // Outside the window (RFC 9293 section 3.10.7.4, first step).
                        socket.receiver.request_ack();
                        continue;
                    }
                    self.shared.counters.increment(Mib::MPTcpExtMPFastcloseRx);
                    return self.answer_fast_close();
                }
                _ => {}
            }
        }
    }

    /// Plain TCP: the socket's sequence space is the stream.
    pub(super) fn on_plain_ack(&mut self, subflow: usize) {
        let acked = self.paths[subflow].acked;
        let end = self.subflows[subflow].socket.window.end().saturating_sub(1);
        if end > self.shared.send_limit || self.send.follows_windows() {
            self.shared.send_limit = end;
        }
        self.send.acknowledge(acked);
        if self
            .session
            .infinite
            .as_ref()
            .is_some_and(|infinite| acked > infinite.from)
        {
            self.session.infinite = None;
        }
    }

    fn on_dss(&mut self, subflow: usize, segment: &Segment, dss: &Dss) {
        let Some(multipath) = &self.session.multipath else {
            return;
        };
        let una = self.send.una();
        let ack = match dss.data_ack {
            Some(DataAck::Long(ack)) => {
                let ack = ack.get().wrapping_sub(multipath.local_idsn);
                Some(ack.wrapping_sub(1))
            }
            Some(DataAck::Short(ack)) => Some(unwrap(
                (multipath.local_idsn as u32).wrapping_add(1),
                ack,
                una,
            )),
            None => None,
        };
        self.confirm();
        if let Some(ack) = ack.filter(|&ack| ack <= self.send.highest_ack()) {
            let window =
                u64::from(segment.window) << self.subflows[subflow].socket.negotiated.send_shift;
            self.shared.largest_window = self.shared.largest_window.max(window);
            if ack >= una {
                self.shared.send_limit = self.shared.send_limit.max(ack + window);
            }
            self.send.acknowledge(ack);
            if self.send.una() > una {
                self.data_acknowledged();
            }
        }
        if dss.data_fin
            && let Some(mapping) = dss.mapping
        {
            let start = self.stream_offset(mapping.dsn);
            let beyond = start.checked_add(mapping.len.into());
            let end = beyond.and_then(|beyond| beyond.checked_sub(1));
            self.shared.receive.ends_at(end);
            self.subflows[subflow].socket.receiver.request_ack();
        }
    }

    /// Payload without options that an earlier segment's mapping covers, or did, or may cover once what is missing is there: a piece of
    /// a segment that was cut on the way (RFC 8684 section 3.3.1: not every segment needs to carry its mapping).
    fn is_piece(&self, subflow: usize, segment: &Segment) -> bool {
        if segment.payload.len == 0 {
            return false;
        }
        let (from, next) = (
            self.subflows[subflow].socket.receiver.position(segment),
            self.subflows[subflow].socket.receiver.next(),
        );
        let end = from + u64::from(segment.payload.len);
        let mapped = self.covering(subflow, from, end).is_some();
        let multipath = self.session.multipath.as_ref();
        let confirmed = multipath.is_some_and(|multipath| multipath.confirmed);
        mapped || from > next || confirmed && end <= next
    }

    /// The mapping among those kept that covers a stretch of the subflow.
    fn covering(&self, subflow: usize, from: u64, end: u64) -> Option<(u64, u64)> {
        let known = self.subflows[subflow].mappings().iter();
        let mut covering =
            known.filter(|(first, _, len)| *first <= from && end <= first + u64::from(*len));
        covering.next().map(|&(first, start, _)| (first, start))
    }

    fn stream_offset(&self, dsn: Dsn) -> u64 {
        let Some(multipath) = &self.session.multipath else {
            return 0;
        };
        match dsn {
            Dsn::Long(dsn) => dsn
                .get()
                .wrapping_sub(multipath.remote_idsn)
                .wrapping_sub(1),
            Dsn::Short(dsn) => unwrap(
                (multipath.remote_idsn as u32).wrapping_add(1),
                dsn,
                self.shared.receive.next,
            ),
        }
    }

    fn on_payload(&mut self, subflow: usize, segment: &Segment) {
        let seq = self.subflows[subflow].socket.receiver.position(segment);
        if segment.timestamps.is_some() {
            self.with(subflow, |socket, cx| {
                socket.receiver.sample_rtt(cx.shared, segment)
            });
        }
        let offset = match self.place(subflow, seq, segment) {
            Place::At(offset) => offset,
            Place::Unmapped => {
                // Before its turn the mapping may be with what is missing; as if lost, it comes again. After it, it was there once.
                let next = self.subflows[subflow].socket.receiver.next();
                if seq <= next && next < seq + u64::from(segment.payload.len) {
                    return self.on_unmapped(subflow);
                }
                return self.subflows[subflow].socket.receiver.request_ack();
            }
            // The bytes belong to another place of the stream, and those of this place never come on this subflow.
            Place::Elsewhere => {
                return self.reset_subflow(subflow, ResetReason::MiddleboxInterference);
            }
        };
        // A mapping may be of anywhere in 64 bits.
        let end = offset.saturating_add(segment.payload.len.into());
        if segment.payload.offset != offset && !self.on_altered(subflow, offset) {
            return;
        }
        let receive = &self.shared.receive;
        let mut len = segment.payload.len;
        if !receive.admits(end) && end > receive.next {
            len = receive.taken_beyond(offset, len);
            if len == 0 {
                self.shared.counters.increment(Mib::TcpExtTCPZeroWindowDrop);
                self.subflows[subflow].socket.receiver.request_ack();
                return;
            }
        }
        let arrived = Arrived {
            seq,
            offset,
            len,
            pushed: segment.flags.contains(Flags::PSH),
        };
        self.with(subflow, |socket, cx| socket.on_payload(cx, arrived));
    }

    /// Where in the peer's stream the options of a segment put its payload; for owners whose packets are bytes, to look up what should be
    /// there. Absent: no mapping covers it.
    pub fn locate(&mut self, subflow: usize, segment: &Segment) -> Option<u64> {
        if !self.subflows[subflow].socket.state().synchronised() || segment.payload.len == 0 {
            return None;
        }
        let seq = self.subflows[subflow].socket.receiver.position(segment);
        match self.place(subflow, seq, segment) {
            Place::At(offset) => Some(offset),
            Place::Unmapped | Place::Elsewhere => None,
        }
    }

    /// Finds where the payload belongs: by its own mapping, by one that came earlier, or, in plain TCP, by its sequence number.
    fn place(&mut self, subflow: usize, seq: u64, segment: &Segment) -> Place {
        if self.session.multipath.is_none() {
            return match self.session.peer_idsn {
                Some(idsn) if self.moved(idsn, seq, segment) => Place::Elsewhere,
                _ => Place::At(seq.saturating_sub(1)),
            };
        }
        let len = segment.payload.len;
        if let Some(mapping) = segment.dss.and_then(|dss| dss.mapping)
            && mapping.subflow_seq != 0
        {
            self.answer_long(matches!(mapping.dsn, Dsn::Long(_)));
            let start = self.stream_offset(mapping.dsn);
            let first = unwrap(0, mapping.subflow_seq, seq);
            if mapping.len == 0 {
                return self.on_infinite_mapping(start, first, seq);
            }
            let mapped =
                u32::from(mapping.len) - u32::from(segment.dss.is_some_and(|dss| dss.data_fin));
            if first == seq && mapped == len {
                return Place::At(start);
            }
            self.subflows[subflow].remember((first, start, mapped));
        }
        // On the third ACK it is the mapping of the stream's first bytes (RFC 8684 section 3.1).
        if let Some(MptcpOption::Capable(capable)) = segment.mptcp().first()
            && let Some((mapped, _)) = capable.data
        {
            self.answer_long(true);
            self.subflows[subflow].remember((1, 0, u32::from(mapped)));
        }
        let covering = self.covering(subflow, seq, seq + u64::from(len));
        covering.map_or(Place::Unmapped, |(first, start)| {
            Place::At(start.wrapping_add(seq - first))
        })
    }

    /// Data sequence numbers are acknowledged in as many bytes as they came in (Linux `use_64bit_ack`); segments hold less beside eight.
    fn answer_long(&mut self, long: bool) {
        let changes = |multipath: &Multipath| multipath.long && multipath.long_ack != long;
        if self.session.multipath.as_ref().is_some_and(changes) {
            self.change_answers(long);
        }
    }

    #[cold]
    fn change_answers(&mut self, long: bool) {
        let Some(multipath) = &mut self.session.multipath else {
            return;
        };
        let before = multipath.data_len();
        multipath.long_ack = long;
        let after = multipath.data_len();
        for path in &mut self.paths {
            path.mss = (path.mss + before).saturating_sub(after).max(1);
        }
        if after > before {
            for subflow in 0..self.subflows.len() {
                self.with(subflow, |socket, cx| {
                    let excess = cx.options.first_segment_excess();
                    socket.queue.recut(cx.path.mss, excess);
                });
            }
        }
    }

    fn on_fin(&mut self, subflow: usize, segment: &Segment) {
        let socket = &mut self.subflows[subflow].socket;
        let open = !socket.receiver.finished();
        if segment.flags.contains(Flags::FIN) {
            if socket.receiver.finished() {
                socket.repeated_fin(&mut self.shared);
            } else {
                let at = socket.receiver.position(segment) + u64::from(segment.payload.len);
                // What came already has no FIN before it.
                if at >= socket.receiver.next() {
                    socket.on_fin(&mut self.shared, at);
                }
            }
        } else {
            socket.advance_fin(&mut self.shared);
        }
        if open && socket.receiver.finished() && socket.lifetime.closing() {
            // An acknowledgement by itself, before whatever is still to be sent (Linux `tcp_fin`).
            self.with(subflow, |socket, cx| socket.send_ack(cx));
        }
        if self.session.multipath.is_none()
            && self.subflows[subflow].socket.receiver.finished()
            && self.shared.receive.end.is_none()
        {
            self.shared.receive.end = Some(self.subflows[subflow].socket.receiver.next() - 2);
        }
    }
}

/// A reset has the number of the FIN before it, and this end is open (Linux `tcp_reset_check`).
fn resets_behind_fin(socket: &Socket, segment: &Segment) -> bool {
    let waits = matches!(
        socket.state(),
        State::CloseWait | State::LastAck | State::Closing
    );
    waits && socket.receiver.position(segment) + 1 == socket.receiver.next()
}

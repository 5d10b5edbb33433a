//! The receiving half of a socket: reassembly by sequence number, SACK and acknowledgement.

use polypath_wire::tcp::{SackBlocks, Segment};

use super::delayed_ack::QUICK_ACKS;
use super::holes::{Held, Holes, MOST_BLOCKS};
use super::timer::Idle;
use super::{Socket, State, ecn};
use crate::linux::receive_window::SocketWindow;
use crate::seq::{unwrap, wrap};
use crate::tcp::context::{Context, Options, Shared};
use crate::{Codepoint, Mib, Purpose};

/// Ranges that a receiver expects to have at a time; about others it tells at once (Linux `TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED_RANGES: usize = 2;

/// Option bytes of one SACK block, aligned (RFC 2018 section 3).
const ONE_BLOCK: u32 = 12;

/// A segment's payload: where it begins in the subflow's sequence space and in the stream, its length, and whether it was pushed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub seq: u64,
    pub offset: u64,
    pub len: u32,
    pub pushed: bool,
}

impl From<Arrived> for Held {
    fn from(arrived: Arrived) -> Self {
        let Arrived {
            seq, offset, len, ..
        } = arrived;
        Self { seq, offset, len }
    }
}

impl Socket {
    /// Position of a segment's first byte in the peer's sequence space.
    pub(crate) fn position(&self, segment: &Segment) -> u64 {
        unwrap(self.irs, segment.seq, self.received)
    }

    /// Whether it acknowledges more than the SYN.
    pub(crate) fn acknowledges_data(&self, segment: &Segment) -> bool {
        unwrap(self.iss, segment.ack, self.una) > 1
    }

    /// Takes payload.
    pub(crate) fn on_payload(&mut self, cx: &mut Context<impl Options>, arrived: Arrived) {
        let Arrived { seq, len, .. } = arrived;
        let end = seq + u64::from(len);
        if end <= self.received {
            cx.shared.counters.increment(Mib::TcpExtTCPDSACKOldSent);
            self.holes_mut().came_twice(seq, end);
            let quick = self.quick_acks();
            self.ack.trouble(quick);
            return;
        }
        if seq <= self.received {
            if seq < self.received {
                let received = self.received;
                self.holes_mut().came_twice(seq, received);
            }
            self.in_order(cx, arrived);
        } else {
            self.out_of_order(cx, arrived);
        }
    }

    /// Whether a segment brings text after the peer's FIN.
    pub(crate) fn is_beyond_fin(&self, segment: &Segment) -> bool {
        let end = self.position(segment) + u64::from(segment.payload.len);
        segment.payload.len > 0 && self.peer_finished() && end > self.received
    }

    fn in_order(&mut self, cx: &mut Context<impl Options>, arrived: Arrived) {
        let start = self.received;
        self.pass_up(cx, arrived.into());
        let Arrived { len, pushed, .. } = arrived;
        let waiting = self.out_of_order_bytes();
        let ends = cx.shared.receive.in_sequence(
            self.receive_window.as_deref_mut(),
            len,
            pushed,
            self.received,
            waiting,
            cx.shared.now,
        );
        if ends {
            self.ack.pushed();
        }
        let rto = self.rtt.rto(&cx.shared.config);
        let quick = self.quick_acks();
        self.ack
            .data_received(cx.shared.now, rto, quick, &cx.shared.config);
        if cx.shared.receive.grew() {
            self.ack.window_grew();
        }
        if waiting == 0 {
            let unacknowledged = self.received - self.ack.acknowledged();
            let own = self.receive_window.as_deref();
            let more_than_one = unacknowledged > cx.shared.receive.acknowledges_beyond(own);
            if self.ack.quick() || (more_than_one && cx.shared.receive.window_moves_on(own)) {
                self.ack.immediately();
            } else {
                self.ack
                    .postpone(cx.shared.now, cx.path.srtt, &cx.shared.config);
            }
            self.totals.received += self.received - start;
            return;
        }
        self.fill_hole(cx, start);
    }

    /// What arrived in order may reach what waits for it.
    fn fill_hole(&mut self, cx: &mut Context<impl Options>, start: u64) {
        // RFC 5681 section 4.2: a segment that fills a gap is acknowledged at once.
        self.ack.immediately();
        let mut received = self.received;
        while let Some(next) = self.holes_mut().next(received) {
            if next.end() > received {
                self.pass_up(cx, next);
                received = self.received;
            }
        }
        let holes = self.holes_mut();
        let drained = holes.close_below(received);
        let (left, span) = (holes.bytes(), holes.span(received));
        cx.shared.receive.held -= drained;
        if let Some(own) = &mut self.receive_window {
            own.holds(span);
        }
        let cause = cx.shared.arriving.into();
        (cx.shared.blocking).subflow_advances(cx.path.index, left, cause, cx.shared.now);
        self.totals.received += self.received - start - drained;
    }

    fn holes_mut(&mut self) -> &mut Holes {
        self.holes.get_or_insert_default()
    }

    fn pass_up(&mut self, cx: &mut Context<impl Options>, held: Held) {
        let skip = self.received - held.seq;
        self.received = held.end();
        cx.shared.deliver(
            cx.path.index,
            held.offset + skip,
            u64::from(held.len) - skip,
        );
    }

    #[cold]
    #[inline(never)]
    fn out_of_order(&mut self, cx: &mut Context<impl Options>, arrived: Arrived) {
        let Arrived { seq, len, .. } = arrived;
        let end = seq + u64::from(len);
        // What was put off is told before, and this segment owes nothing any more (`tcp_sack_new_ofo_skb`).
        let received = self.received;
        let told = self.negotiated.sack
            && self.ack.compressed() > 0
            && self.holes_mut().rank(seq, end) >= EXPECTED_RANGES;
        if told {
            self.send_compressed(cx);
        }
        let by_subflow = cx.shared.receive.by_subflow();
        let holes = self.holes_mut();
        let before = holes.bytes();
        let fresh = holes.extend(seq, end);
        let joined = by_subflow && holes.joins(seq);
        let span = holes.span(received);
        let own = self.receive_window.as_deref_mut();
        (cx.shared.receive).out_of_sequence(own, len, before, span, joined);
        if cx.shared.receive.grew() {
            self.ack.window_grew();
        }
        if !cx.shared.receive.by_subflow() {
            self.ack.trouble(QUICK_ACKS);
        } else if !self.negotiated.sack {
            self.ack.immediately();
        } else if !told {
            let own = self.receive_window.as_deref();
            let rtt = own.map_or(0, SocketWindow::round_trip).min(cx.path.srtt);
            self.ack.duplicate(cx.shared.now, self.received, rtt);
        }
        if fresh == 0 {
            cx.shared.counters.increment(Mib::TcpExtTCPDSACKOfoSent);
            self.holes_mut().came_twice(seq, end);
            return;
        }
        cx.shared.counters.increment(Mib::TcpExtTCPOFOQueue);
        cx.shared.receive.held += fresh;
        let waiting = before + fresh;
        (cx.shared.blocking).subflow_holds(cx.path.index, waiting, cx.shared.now);
        self.totals.received += fresh;
        self.holes_mut().hold(arrived.into());
    }

    /// Whether there is anything for SACK to say.
    #[inline(always)]
    pub(super) fn has_sack(&self) -> bool {
        self.holes.as_ref().is_some_and(|holes| !holes.is_empty())
    }

    /// Adds SACK blocks within `space` option bytes: a duplicate (RFC 2883), then ranges, most recent first.
    #[inline(always)]
    pub(super) fn add_sack(&mut self, blocks: &mut SackBlocks, space: u32) {
        if self.has_sack() {
            self.add_blocks(blocks, space);
        }
    }

    /// The same beside data, which a packet's length does not leave room for where the segment is full (RFC 9293 section 3.7.1): an
    /// acknowledgement that is `owed` then goes on its own. Linux shortens the data instead (`tcp_current_mss`).
    #[cold]
    pub(super) fn add_sack_beside(&mut self, blocks: &mut SackBlocks, space: u32, owed: bool) {
        if space >= ONE_BLOCK {
            self.add_blocks(blocks, space);
        } else if owed {
            self.request_ack();
        }
    }

    #[inline(never)]
    fn add_blocks(&mut self, blocks: &mut SackBlocks, space: u32) {
        let (irs, sack) = (self.irs, self.negotiated.sack);
        let Some(holes) = &mut self.holes else {
            return;
        };
        let most = match sack {
            true => (space.saturating_sub(4) / 8).min(MOST_BLOCKS as u32) as usize,
            false => 0,
        };
        holes.tell(most, |start, end| {
            blocks.push(wrap(irs, start), wrap(irs, end))
        });
    }

    /// Takes a FIN whose sequence number is `at`. True when it became the next in order.
    pub(crate) fn on_fin(&mut self, shared: &mut Shared, at: u64) {
        self.fin_at = Some(at);
        shared.fin_seen = true;
        self.advance_fin(shared);
    }

    /// Steps over the FIN when everything before it has arrived (RFC 9293 section 3.10.7.4, eighth step).
    pub(crate) fn advance_fin(&mut self, shared: &mut Shared) {
        if self.fin_at != Some(self.received) {
            return;
        }
        self.received += 1;
        self.ack.immediately();
        self.state = match self.state {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => {
                self.enter_time_wait(shared);
                State::TimeWait
            }
            state => state,
        };
    }

    /// A segment of the peer's FIN came again.
    pub(crate) fn repeated_fin(&mut self, shared: &mut Shared) {
        self.ack.immediately();
        if let Some(holes) = &mut self.holes {
            holes.fin_came_twice(self.fin_at);
        }
        if self.state == State::TimeWait {
            self.reduced = true;
            self.enter_time_wait(shared);
        }
    }

    /// Nothing but a FIN can still come: it is awaited for as long as TIME-WAIT lasts (Linux tcp_fin_timeout).
    pub(crate) fn limit_fin_wait(&mut self, shared: &Shared) {
        if !self.timers.time_waits() {
            (self.timers).set_idle(Idle::TimeWait, shared.now + super::sender::TIME_WAIT);
        }
    }

    pub(super) fn enter_time_wait(&mut self, shared: &mut Shared) {
        self.timers.stop_retransmission();
        (self.timers).set_idle(Idle::TimeWait, shared.now + super::sender::TIME_WAIT);
    }

    /// An empty segment from below the last acknowledgement is a probe: it draws an ACK (RFC 9293 section 3.10.7.4, first step).
    pub(crate) fn answer_probe(&mut self, segment: &Segment) {
        if segment.seq_len() == 0 && self.position(segment) < self.ack.acknowledged() {
            self.ack.immediately();
        }
    }

    /// Measures the round trip as the receiver sees it, for the growth of its buffer (RFC 7323 section 4.1).
    pub(crate) fn sample_receiver_rtt(
        &mut self,
        cx: &mut Context<impl Options>,
        segment: &Segment,
    ) {
        if let Some((_, echo)) = segment.timestamps.filter(|(_, echo)| *echo != 0) {
            let elapsed = super::timestamp(cx.shared.now).wrapping_sub(echo);
            if elapsed < 1 << 20 {
                let own = self.receive_window.as_deref_mut();
                (cx.shared.receive).sample_rtt(own, segment.payload.len, echo, elapsed);
            }
        }
    }

    /// Quick ACKs in a row.
    fn quick_acks(&self) -> u8 {
        let own = self.receive_window.as_deref();
        own.map_or(QUICK_ACKS, |own| own.quick_acks(QUICK_ACKS))
    }

    /// What came last has a reader take it, who acknowledges then (Linux `__tcp_cleanup_rbuf`, `mptcp_subflow_could_cleanup`): more than a
    /// segment, or all there is where the peer pushed it.
    #[inline]
    fn reader_answers(&self, cx: &mut Context<impl Options>) -> bool {
        let unacknowledged = self.received - self.ack.acknowledged();
        cx.shared.receive.reader_wakes()
            && (unacknowledged
                > cx.shared
                    .receive
                    .acknowledges_beyond(self.receive_window.as_deref())
                || (self.ack.reader_acknowledges() && cx.shared.receive.reader_leaves_nothing()))
    }

    /// The reader took what came on another socket. True: it acknowledges what was put off here.
    pub(crate) fn read(&mut self, cx: &mut Context<impl Options>) -> bool {
        let owes = self.ack.deadline() < crate::NEVER && self.reader_answers(cx);
        if owes {
            self.ack.by_reader();
        }
        owes
    }

    /// Whether an ACK is due.
    #[inline]
    pub(crate) fn owes_ack(&self) -> bool {
        self.ack.due()
    }

    /// Sends an ACK if one is due.
    pub(crate) fn flush_ack(&mut self, cx: &mut Context<impl Options>) {
        if self.ack.due() {
            self.send_ack(cx);
        }
    }

    /// The delayed ACK's time came.
    pub(crate) fn on_delayed_ack(&mut self, cx: &mut Context<impl Options>) {
        if self.ack.deadline() <= cx.shared.now {
            if self.ack.compressed() > 0 {
                return self.send_compressed(cx);
            }
            cx.shared.counters.increment(Mib::TcpExtDelayedACKs);
            self.send_ack(cx);
        }
    }

    /// Sends the one ACK that several became (`tcp_sack_compress_send_ack`).
    fn send_compressed(&mut self, cx: &mut Context<impl Options>) {
        let more = u32::from(self.ack.compressed()) - 1;
        cx.shared.counters.add(Mib::TcpExtTCPAckCompressed, more);
        self.send_ack(cx);
    }

    /// Asks for an ACK at the end of this event.
    pub(crate) fn request_ack(&mut self) {
        self.ack.immediately();
    }

    /// Reads the ECN field of an arriving packet.
    pub(crate) fn on_ecn(
        &mut self,
        cx: &mut Context<impl Options>,
        field: Codepoint,
        segment: &Segment,
    ) {
        if self.negotiated.ecn {
            ecn::on_field(self, cx, field, segment);
        }
    }

    /// All of its data came before (RFC 3168 section 6.1.5 has its mark ignored).
    #[cold]
    pub(super) fn came_before(&self, segment: &Segment) -> bool {
        let len = u64::from(segment.payload.len);
        len > 0 && self.position(segment) + len <= self.received
    }

    /// The ECN field of a segment that is sent.
    #[inline]
    pub(crate) fn ecn_field(&self, segment: &Segment, purpose: Purpose) -> Codepoint {
        if !self.negotiated.ecn {
            return Codepoint::NotEct;
        }
        ecn::field(self, segment, purpose)
    }
}

//! The sending half of a socket: what is queued, what is in flight, and how it leaves.

use std::ops::Range;

use polypath_wire::tcp::{Flags, Payload, Segment};

use super::flight::Sent;
use super::timer::Timers;
use super::{Socket, State, ecn};
use crate::linux::send_memory;
use crate::tcp::context::{Context, Options, Shared};
use crate::{Mib, Purpose};

/// Why a chunk travels on this subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    New,
    /// New, and the FIN rides on it (`tcp_send_fin`).
    Last,
}

/// Whether a segment is pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Push {
    #[default]
    No,
    /// As the last of those that leave together this time (`__tcp_transmit_skb`).
    Once,
    /// As the last that the writer had.
    Always,
}

impl Push {
    /// The last of so many segments that leave together; `marked`: it is the last that the writer had.
    pub fn of_group(segments: u32, marked: bool) -> Self {
        match (marked, segments) {
            (true, _) => Self::Always,
            (false, 0 | 1) => Self::No,
            (false, _) => Self::Once,
        }
    }

    /// The segment at `index` of those that leave together again.
    pub fn of_nth(index: usize, together: &Range<usize>) -> Self {
        if index + 1 == together.end {
            Self::of_group(together.len() as u32, false)
        } else {
            Self::No
        }
    }
}

/// Data given to a socket: a stretch of the connection's stream, at most one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub offset: u64,
    pub len: u32,
    pub kind: Kind,
    pub push: Push,
    /// While it is small and the last it waits as Nagle's rule has it, and takes what follows (Linux queues at subflow level).
    pub waits: bool,
}

impl Socket {
    /// Gives the socket a chunk to send; it leaves as soon as the window admits it, one that waits with the others at the next
    /// [`Socket::send_unsent`].
    pub(crate) fn enqueue(&mut self, cx: &mut Context<impl Options>, chunk: Chunk) {
        if self.transfer.flight.is_empty()
            && self.queue.is_empty()
            && self.transfer.flight.data_left_at() > 0
        {
            self.transfer.restart_after_idle(cx);
        }
        if self.queue.has_buffers() {
            let mss = cx.path.mss;
            let most = send_memory::most_segments(mss, cx.shared.largest_window) as u64;
            self.queue.map(chunk, mss, u64::from(mss) * most);
            if chunk.waits {
                return self.publish(&mut cx.path);
            }
        } else if !chunk.waits {
            if self.queue.is_empty() && !self.lifetime.fin_waits() {
                return self.send_at_once(cx, chunk);
            }
            self.queue.push(chunk);
        } else {
            let first = self
                .queue
                .chunks()
                .back()
                .is_some_and(|last| last.offset == 0);
            let excess = if first {
                cx.options.first_segment_excess()
            } else {
                0
            };
            self.queue.append(chunk, cx.path.mss - excess);
        }
        self.send_unsent(cx);
    }

    /// As [`Socket::send_unsent`] with nothing but this chunk, which does not wait, in the queue.
    #[inline(always)]
    fn send_at_once(&mut self, cx: &mut Context<impl Options>, chunk: Chunk) {
        let sent = self.transfer.flight.in_flight() < cx.path.cwnd
            && !self.transfer.controller.blocked()
            && cx.shared.admits(chunk.offset + u64::from(chunk.len));
        if sent {
            self.send_chunk_inline(cx, chunk);
        } else {
            self.queue.push(chunk);
        }
        self.conclude_sending(cx, sent, false);
    }

    /// Sends what is queued as far as congestion and receive window admit.
    pub(crate) fn send_unsent(&mut self, cx: &mut Context<impl Options>) {
        if let Some(buffers) = self.queue.buffers_mut() {
            buffers.push_new();
            if !cx.options.maps_data() {
                self.queue.drop_buffers();
            } else if self.mss.searches() && !self.probe_unsent(cx) {
                return;
            }
        }
        let (mut left, mut push) = (0, Push::No);
        let (mut sent, mut limited) = (false, false);
        while let Some(mut chunk) = self.queue.front().copied() {
            if self.transfer.flight.in_flight() >= cx.path.cwnd
                || (self.transfer.controller.blocked() && left == 0)
                || !cx.shared.admits(chunk.offset + u64::from(chunk.len))
            {
                break;
            }
            // What a group takes was decided with it.
            let small = left == 0 && chunk.waits && self.queue.chunks().len() == 1;
            if small && !self.nagle_admits(cx.shared, chunk.len, cx.path.mss) {
                self.hold(cx.shared);
                break;
            }
            if self.queue.has_buffers() {
                if left == 0 {
                    if sent && cx.shared.writer_waits {
                        self.transfer.grow_buffer(cx);
                    }
                    match self.begin_group(cx) {
                        Ok(group) => (left, push) = group,
                        Err(deferred) => {
                            limited = deferred.by_window;
                            break;
                        }
                    }
                }
                left -= 1;
                chunk.push = if left == 0 { push } else { Push::No };
            }
            self.queue.pop();
            self.send_chunk(cx, chunk);
            sent = true;
        }
        if self.lifetime.fin_waits() {
            self.send_fin(cx);
        }
        self.conclude_sending(cx, sent, limited);
    }

    /// Something was `sent`, or the window `limited` it.
    #[inline(always)]
    fn conclude_sending(&mut self, cx: &mut Context<impl Options>, sent: bool, limited: bool) {
        self.publish_sent(&mut cx.path);
        self.transfer.controller.publish_pacing(&mut cx.path);
        let limited = limited || cx.path.in_flight >= cx.path.cwnd;
        if sent || limited {
            self.transfer
                .controller
                .note_usage(&self.transfer.flight, limited);
        }
    }

    pub(super) fn send_chunk(&mut self, cx: &mut Context<impl Options>, chunk: Chunk) {
        self.send_chunk_inline(cx, chunk);
    }

    #[inline(always)]
    fn send_chunk_inline(&mut self, cx: &mut Context<impl Options>, chunk: Chunk) {
        let seq = self.transfer.flight.next();
        let mut sent = Sent::new(cx.shared.now, seq, chunk.offset, chunk.len);
        if chunk.push == Push::Always {
            sent.set(Sent::PUSH);
        }
        let excess = if chunk.offset == 0 {
            cx.options.first_segment_excess()
        } else {
            0
        };
        if chunk.len + excess < cx.path.mss {
            self.transfer.flight.note_small(sent.plain_end());
        }
        self.transfer.totals.sent += u64::from(chunk.len);
        let again = cx.shared.once.send(chunk.offset, chunk.len);
        if again > 0 {
            self.transfer.totals.reinjected += again;
            sent.set(Sent::REINJECTED);
        }
        // A FIN that waits rides on the last (`tcp_send_fin`).
        if chunk.kind == Kind::Last || self.lifetime.fin_waits() && self.queue.is_empty() {
            self.ride_fin(&mut sent);
        }
        self.transfer.recovery.count_sent();
        self.receiver.data_sent(cx.shared.now);
        self.transfer.flight.note_data_left(cx.shared.now);
        let first = self.transfer.flight.is_empty();
        (self.transfer.controller).note_sent(cx.shared.now, &sent, &self.transfer.flight);
        self.transfer.flight.push(sent);
        if chunk.push == Push::Once {
            sent.set(Sent::PUSH);
        }
        cx.shared.counters.increment(Mib::TcpOutSegs);
        self.emit_data_inline(cx, &sent);
        if first || self.transfer.awaits_no_answer() {
            self.transfer.arm_retransmission(cx.shared);
        }
        self.transfer.schedule_loss_probe(cx.shared, false);
    }

    fn emit_data(&mut self, cx: &mut Context<impl Options>, sent: &Sent) {
        self.emit_data_inline(cx, sent);
    }

    /// RFC 3168 sections 6.1.2 and 6.1.5: by CWR, on new data.
    #[cold]
    fn tell_of_reduction(&mut self, segment: &mut Segment, sent: &Sent) {
        if sent.len > 0 && !sent.retransmitted() {
            self.ecn.tell_of_reduction(&mut segment.flags);
            self.transfer.cwr_due = false;
        }
    }

    #[inline(always)]
    fn emit_data_inline(&mut self, cx: &mut Context<impl Options>, sent: &Sent) {
        self.host.push(sent.len);
        let purpose = match sent.len {
            0 => Purpose::Control,
            _ if sent.retransmitted() => Purpose::Retransmission,
            _ if sent.has(Sent::REINJECTED) => Purpose::Reinjection,
            _ => Purpose::Data,
        };
        let header = self.header(cx.shared.now, sent.seq);
        let mut transmit = cx.transmit(header, purpose);
        let segment = &mut transmit.segment;
        if sent.has(Sent::PUSH) {
            segment.flags |= Flags::PSH;
        }
        if sent.has(Sent::FIN) {
            segment.flags |= Flags::FIN;
        }
        if self.negotiated.ecn && self.transfer.cwr_due {
            self.tell_of_reduction(segment, sent);
        }
        segment.payload = Payload {
            offset: sent.offset,
            len: sent.len,
        };
        let owed = self.receiver.owes_ack();
        self.stamp(cx, segment);
        let space = if sent.len > 0 {
            cx.options.add_to_data(cx.shared, sent.seq, segment)
        } else {
            cx.options.add_to_ack(cx.shared, segment)
        };
        if self.receiver.has_sack() {
            let room = cx.path.mss.saturating_sub(sent.len);
            let how = (self.transfer.sack, owed);
            (self.receiver).add_sack_beside(&mut segment.sack, space.min(room), how);
        }
        cx.shared.out.push(transmit);
    }

    /// Whether a segment of `len` bytes, the last for now, may leave although it is small (RFC 1122 section 4.2.3.4, Minshall's variant,
    /// and a cork, which is stronger). A FIN takes with it what is left.
    pub(crate) fn nagle_admits(&self, shared: &Shared, len: u32, mss: u32) -> bool {
        if len >= mss {
            return true;
        }
        let waits = shared.config.nagle && self.transfer.flight.has_small();
        self.lifetime.closing() || !waits && !self.corked(shared)
    }

    /// Sends again the segment at `index`, by itself.
    pub(super) fn retransmit(&mut self, cx: &mut Context<impl Options>, index: usize) {
        self.retransmit_as(cx, index, Push::No);
    }

    /// Sends again the segment at `index`. It is pushed if it always was, or as the last of those that leave together.
    pub(super) fn retransmit_as(
        &mut self,
        cx: &mut Context<impl Options>,
        index: usize,
        push: Push,
    ) {
        let now = cx.shared.now;
        if self.mss.searches() {
            self.cancel_probe(cx);
        }
        self.cut_repeated(cx, index);
        let alone = self.transfer.flight.in_flight() == 0;
        let mut copy = self.transfer.flight.repeat(index, now);
        if push != Push::No {
            copy.set(Sent::PUSH);
        }
        self.transfer.recovery.count_retransmitted(now);
        cx.shared.counters.increment(Mib::TcpRetransSegs);
        if copy.has(Sent::SYN) {
            return self.send_syn(cx, true);
        }
        if alone && copy.len > 0 {
            self.transfer.tell_of_restart(cx, false);
        }
        if self.transfer.sack {
            self.transfer
                .recovery
                .note_repeated(&self.transfer.flight, now, copy.seq);
        }
        self.transfer
            .controller
            .note_sent(now, &copy, &self.transfer.flight);
        self.transfer.totals.retransmitted += u64::from(copy.len);
        self.transfer.totals.retransmitted_segments += 1;
        self.transfer.flight.note_data_left(now);
        self.emit_data(cx, &copy);
    }

    /// Asks for a FIN after everything queued.
    pub(crate) fn close(&mut self, cx: &mut Context<impl Options>) {
        if self.lifetime.close() {
            cx.path.closing = true;
            self.send_unsent(cx);
        }
    }

    /// It closes, and what is left in flight has timed out. To a multipath connection whose stream is over, that is no reason to be open.
    pub(crate) fn lingers(&self) -> bool {
        self.lifetime.closing() && self.transfer.recovery.timeouts() > 0
    }

    pub(super) fn send_fin(&mut self, cx: &mut Context<impl Options>) {
        if !self.queue.is_empty() {
            return;
        }
        let mut fin = Sent::new(cx.shared.now, self.transfer.flight.next(), 0, 0);
        self.ride_fin(&mut fin);
        (self.transfer.controller).note_sent(cx.shared.now, &fin, &self.transfer.flight);
        self.transfer.flight.push(fin);
        cx.shared.counters.increment(Mib::TcpOutSegs);
        self.emit_data(cx, &fin);
        if self.transfer.awaits_no_answer() {
            self.transfer.arm_retransmission(cx.shared);
        }
        self.transfer.schedule_loss_probe(cx.shared, false);
    }

    /// A segment that ends at the next sequence number has the FIN.
    #[cold]
    fn ride_fin(&mut self, sent: &mut Sent) {
        sent.set(Sent::FIN);
        self.lifetime.send_fin(sent.plain_end());
    }

    /// Moves on when our FIN was acknowledged (RFC 9293 section 3.10.7.4, fifth step).
    pub(super) fn fin_acknowledged(&mut self, shared: &mut Shared, segment: &Segment) {
        let by_fin = segment.flags.contains(Flags::FIN);
        if !self
            .lifetime
            .acknowledge(self.transfer.flight.una(), by_fin)
        {
            return;
        }
        if self.lifetime.state() == State::TimeWait {
            self.transfer.enter_time_wait(shared);
        } else {
            self.transfer.timers = Timers::default();
            self.receiver.stop_acks();
        }
    }

    /// The stretches of the stream that this socket still has to get through: unacknowledged, then unsent.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let sent = self
            .transfer
            .flight
            .segments()
            .iter()
            .filter(|sent| sent.len > 0)
            .map(|sent| (sent.offset, sent.len));
        sent.chain(
            self.queue
                .chunks()
                .iter()
                .map(|chunk| (chunk.offset, chunk.len)),
        )
    }

    /// Sends the third ACK of a handshake.
    pub(crate) fn send_third_ack<O: Options>(&mut self, cx: &mut Context<O>) {
        let answer = ecn::answer(self);
        self.send_bare(cx, |options, _, segment| {
            ecn::put(&mut segment.flags, answer);
            options.add_to_third_ack(segment);
        });
    }

    /// Sends an ACK without data or SACK, with the options that `add` gives it.
    pub(crate) fn send_bare<O: Options>(
        &mut self,
        cx: &mut Context<O>,
        add: impl FnOnce(&O, &Shared, &mut Segment),
    ) {
        let mut segment = self.header(cx.shared.now, self.transfer.flight.next());
        self.stamp(cx, &mut segment);
        add(&cx.options, cx.shared, &mut segment);
        cx.shared.counters.increment(Mib::TcpOutSegs);
        cx.emit(segment);
    }
}

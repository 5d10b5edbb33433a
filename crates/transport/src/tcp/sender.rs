//! The sending half of a socket: what is queued, what is in flight, and how it leaves.

use std::ops::Range;

use polypath_wire::tcp::{Flags, Segment};

use super::timer::Pending;
use super::{FinState, Socket, State, ecn};
use crate::congestion::Restart;
use crate::linux::send_memory;
use crate::path::{INFINITE_SSTHRESH, Path};
use crate::tcp::context::{Context, Options, Shared};
use crate::{Mib, Nanos, Purpose, SECOND};

/// Twice the maximum segment lifetime, as Linux has it (TCP_TIMEWAIT_LEN).
pub(super) const TIME_WAIT: Nanos = 60 * SECOND;

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

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub seq: u64,
    /// Where its first byte stands in the connection's stream.
    pub offset: u64,
    pub sent_at: Nanos,
    /// Payload bytes.
    pub len: u32,
    flags: u8,
}

impl Sent {
    const SYN: u8 = 1;
    pub const FIN: u8 = 2;
    pub const SACKED: u8 = 4;
    pub const LOST: u8 = 8;
    /// Sent again, and that copy is in flight.
    pub const RETRANSMITTING: u8 = 16;
    const EVER_RETRANSMITTED: u8 = 32;
    pub const PUSH: u8 = 64;
    pub const REINJECTED: u8 = 128;

    pub fn syn(now: Nanos) -> Self {
        Self {
            seq: 0,
            offset: 0,
            sent_at: now,
            len: 0,
            flags: Self::SYN,
        }
    }

    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.flags & (Self::SYN | Self::FIN) != 0)
    }

    /// Sent once, and neither SYN, FIN, SACKed nor lost.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.flags & !(Self::PUSH | Self::REINJECTED) == 0
    }

    /// As [`Sent::end`] of one that is plain.
    #[inline]
    pub fn plain_end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Where what an endpoint reports ends that leaves out a FIN behind data.
    pub fn data_end(&self) -> u64 {
        match self.len {
            0 => self.end(),
            len => self.seq + u64::from(len),
        }
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub fn set(&mut self, flag: u8) {
        self.flags |= flag;
    }

    pub fn clear(&mut self, flag: u8) {
        self.flags &= !flag;
    }

    /// Takes `len` bytes off its beginning, as a segment of their own. A FIN stays behind.
    pub fn cut_front(&mut self, len: u32) -> Self {
        let mut front = Self { len, ..*self };
        front.clear(Self::FIN);
        self.seq += u64::from(len);
        self.offset += u64::from(len);
        self.len -= len;
        if self.len > 0 {
            front.clear(Self::PUSH);
        }
        front
    }

    /// Whether `next` left with it, and the same became of both.
    pub fn is_followed_by(&self, next: &Self) -> bool {
        let state = |sent: &Self| (sent.sent_at, sent.flags & !Self::PUSH);
        let alone = Self::SYN | Self::FIN | Self::SACKED;
        self.flags & alone == 0
            && self.end() == next.seq
            && self.offset + u64::from(self.len) == next.offset
            && state(self) == state(next)
    }

    /// Takes in what follows it.
    pub fn take_in(&mut self, next: &Self) {
        self.len += next.len;
        self.flags |= next.flags;
    }

    /// Lost, and not sent again since.
    pub fn awaits_repair(&self) -> bool {
        self.has(Self::LOST) && !self.has(Self::RETRANSMITTING)
    }

    pub fn retransmitted(&self) -> bool {
        self.has(Self::EVER_RETRANSMITTED)
    }
}

impl Socket {
    /// Packets that have left and are neither acknowledged nor taken for lost (RFC 6675's pipe, counted as Linux does).
    pub(super) fn in_flight(&self) -> u32 {
        let recovery = &self.recovery;
        (self.sent.len() as u32 + recovery.retransmitting)
            .saturating_sub(recovery.sacked + recovery.lost)
    }

    /// Gives the socket a chunk to send; it leaves as soon as the window admits it, one that waits with the others at the next
    /// [`Socket::send_unsent`].
    pub(crate) fn enqueue(&mut self, cx: &mut Context<impl Options>, chunk: Chunk) {
        if self.sent.is_empty() && self.unsent.is_empty() && self.last_sent_at > 0 {
            self.restart_after_idle(cx);
        }
        self.unsent_bytes += u64::from(chunk.len);
        if self.buffers.is_some() {
            self.map(cx.shared, cx.path.mss, chunk);
            if chunk.waits {
                return self.publish(&mut cx.path);
            }
        } else if !chunk.waits {
            if self.unsent.is_empty() && self.fin != FinState::Queued {
                return self.send_at_once(cx, chunk);
            }
            self.unsent.push_back(chunk);
        } else {
            let follows = self.follows(&chunk);
            let first = self.unsent.back().is_some_and(|last| last.offset == 0);
            let excess = if first {
                cx.options.first_segment_excess()
            } else {
                0
            };
            self.append(chunk, cx.path.mss - excess, follows);
        }
        self.send_unsent(cx);
    }

    /// As [`Socket::send_unsent`] with nothing but this chunk, which does not wait, in the queue.
    #[inline(always)]
    fn send_at_once(&mut self, cx: &mut Context<impl Options>, chunk: Chunk) {
        let sent = self.in_flight() < cx.path.cwnd
            && !self.blocked()
            && cx.shared.admits(chunk.offset + u64::from(chunk.len));
        if sent {
            self.unsent_bytes -= u64::from(chunk.len);
            self.send_chunk_inline(cx, chunk);
        } else {
            self.unsent.push_back(chunk);
        }
        self.conclude_sending(cx, sent, false);
    }

    /// The chunk goes on in the stream where the last one ends.
    fn follows(&self, chunk: &Chunk) -> bool {
        let last = self.unsent.back();
        last.is_some_and(|last| last.offset + u64::from(last.len) == chunk.offset)
    }

    /// Puts as much of a chunk into each buffer as that holds. Kept out of the path of the profiles that have none.
    #[inline(never)]
    fn map(&mut self, shared: &Shared, mss: u32, mut chunk: Chunk) {
        let goal = u64::from(mss) * send_memory::most_segments(mss, shared.largest_window) as u64;
        let mut follows = self.follows(&chunk);
        while let Some(buffers) = &mut self.buffers
            && chunk.len > 0
        {
            let (taken, goes_on) = buffers.map(chunk.len.into(), goal, follows);
            let len = taken as u32;
            self.append(Chunk { len, ..chunk }, mss, goes_on);
            chunk.offset += taken;
            chunk.len -= len;
            follows = true;
        }
    }

    /// Puts a chunk at the end; one that waits fills up the last if that waits, too, and it `follows` on it.
    pub(super) fn append(&mut self, mut chunk: Chunk, mss: u32, follows: bool) {
        if let Some(last) = self.unsent.back_mut()
            && follows
            && last.waits
            && chunk.waits
        {
            let taken = chunk.len.min(mss.saturating_sub(last.len));
            last.len += taken;
            last.push = if taken == chunk.len {
                chunk.push
            } else {
                Push::No
            };
            chunk.offset += u64::from(taken);
            chunk.len -= taken;
        }
        if chunk.len > 0 {
            self.unsent.push_back(chunk);
        }
    }

    /// Sends what is queued as far as congestion and receive window admit.
    pub(crate) fn send_unsent(&mut self, cx: &mut Context<impl Options>) {
        if let Some(buffers) = &mut self.buffers {
            buffers.push_new();
            if !cx.options.maps_data() {
                self.buffers = None;
            } else if self.searches() && !self.probe_unsent(cx) {
                return;
            }
        }
        let (mut left, mut push) = (0, Push::No);
        let (mut sent, mut limited) = (false, false);
        while let Some(mut chunk) = self.unsent.front().copied() {
            if self.in_flight() >= cx.path.cwnd
                || (self.blocked() && left == 0)
                || !cx.shared.admits(chunk.offset + u64::from(chunk.len))
            {
                break;
            }
            // What a group takes was decided with it.
            let small = left == 0 && chunk.waits && self.unsent.len() == 1;
            if small && !self.nagle_admits(cx.shared, chunk.len, cx.path.mss) {
                self.hold(cx.shared);
                break;
            }
            if self.buffers.is_some() {
                if left == 0 {
                    if sent && cx.shared.writer_waits {
                        self.grow_buffer(cx);
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
            self.unsent.pop_front();
            self.unsent_bytes -= u64::from(chunk.len);
            self.send_chunk(cx, chunk);
            sent = true;
        }
        if self.fin == FinState::Queued {
            self.send_fin(cx);
        }
        self.conclude_sending(cx, sent, limited);
    }

    /// Something was `sent`, or the window `limited` it.
    #[inline(always)]
    fn conclude_sending(&mut self, cx: &mut Context<impl Options>, sent: bool, limited: bool) {
        self.publish_sent(&mut cx.path);
        self.publish_pacing(&mut cx.path);
        let limited = limited || cx.path.in_flight >= cx.path.cwnd;
        if sent || limited {
            self.validate_window(limited);
        }
    }

    /// Makes room for two windows while this one is not full, as long as a writer waits (`tcp_check_space`, `tcp_should_expand_sndbuf`).
    pub(crate) fn grow_buffer(&self, cx: &mut Context<impl Options>) {
        if self.in_flight() < cx.path.cwnd {
            let buffer = cx.shared.config.send_buffer;
            let wanted = send_memory::wanted_buffer(&cx.path, cx.shared.config.initial_window);
            let most = wanted.min(buffer.maximum.max(buffer.default));
            cx.path.buffer = cx.path.buffer.max(most);
        }
    }

    pub(super) fn send_chunk(&mut self, cx: &mut Context<impl Options>, chunk: Chunk) {
        self.send_chunk_inline(cx, chunk);
    }

    #[inline(always)]
    fn send_chunk_inline(&mut self, cx: &mut Context<impl Options>, chunk: Chunk) {
        let seq = self.next;
        self.next += u64::from(chunk.len);
        let mut sent = Sent {
            seq,
            offset: chunk.offset,
            sent_at: cx.shared.now,
            len: chunk.len,
            flags: 0,
        };
        if chunk.push == Push::Always {
            sent.set(Sent::PUSH);
        }
        let excess = if chunk.offset == 0 {
            cx.options.first_segment_excess()
        } else {
            0
        };
        if chunk.len + excess < cx.path.mss {
            self.last_small = self.next;
        }
        self.totals.sent += u64::from(chunk.len);
        let again = cx.shared.once.send(chunk.offset, chunk.len);
        if again > 0 {
            self.totals.reinjected += again;
            sent.set(Sent::REINJECTED);
        }
        // A FIN that waits rides on the last (`tcp_send_fin`).
        if chunk.kind == Kind::Last || self.fin == FinState::Queued && self.unsent.is_empty() {
            self.ride_fin(&mut sent);
        }
        self.recovery.count_sent();
        self.receiver.data_sent(cx.shared.now);
        self.last_sent_at = cx.shared.now;
        let first = self.sent.is_empty();
        self.note_sent(cx.shared.now, &sent);
        self.sent.push_back(sent);
        if chunk.push == Push::Once {
            sent.set(Sent::PUSH);
        }
        cx.shared.counters.increment(Mib::TcpOutSegs);
        self.emit_data_inline(cx, &sent);
        if first || self.awaits_no_answer() {
            self.arm_retransmission(cx.shared);
        }
        self.schedule_loss_probe(cx.shared, false);
    }

    fn emit_data(&mut self, cx: &mut Context<impl Options>, sent: &Sent) {
        self.emit_data_inline(cx, sent);
    }

    /// RFC 3168 sections 6.1.2 and 6.1.5: by CWR, on new data.
    #[cold]
    fn tell_of_reduction(&mut self, segment: &mut Segment, sent: &Sent) {
        if sent.len > 0 && !sent.retransmitted() {
            self.ecn.tell_of_reduction(&mut segment.flags);
        }
    }

    #[inline(always)]
    fn emit_data_inline(&mut self, cx: &mut Context<impl Options>, sent: &Sent) {
        if let Some(queue) = &mut self.host_queue
            && sent.len > 0
        {
            queue.push(sent.len);
        }
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
        if self.ecn.cwr_due {
            self.tell_of_reduction(segment, sent);
        }
        segment.payload = Self::payload(sent.offset, sent.len);
        let owed = self.receiver.owes_ack();
        self.stamp(cx, segment);
        let space = if sent.len > 0 {
            cx.options.add_to_data(cx.shared, sent.seq, segment)
        } else {
            cx.options.add_to_ack(cx.shared, segment)
        };
        if self.receiver.has_sack() {
            let room = cx.path.mss.saturating_sub(sent.len);
            let how = (self.negotiated.sack, owed);
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
        let waits = shared.config.nagle && !self.sent.is_empty() && self.last_small > self.una;
        self.closing() || !waits && !self.corked(shared)
    }

    /// Right edge of the peer's window, when this socket is the whole connection.
    pub(crate) fn window_end(&self) -> u64 {
        self.window.end()
    }

    pub(crate) fn nothing_in_flight(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn nothing_unsent(&self) -> bool {
        self.unsent.is_empty()
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
        if self.searches() {
            self.cancel_probe(cx);
        }
        self.cut_repeated(cx, index);
        let alone = self.in_flight() == 0;
        let sent = &mut self.sent[index];
        if !sent.has(Sent::RETRANSMITTING) {
            sent.set(Sent::RETRANSMITTING);
            self.recovery.retransmitting += 1;
        }
        sent.set(Sent::EVER_RETRANSMITTED);
        sent.sent_at = now;
        let mut copy = *sent;
        if push != Push::No {
            copy.set(Sent::PUSH);
        }
        self.recovery.count_retransmitted(now);
        cx.shared.counters.increment(Mib::TcpRetransSegs);
        if copy.has(Sent::SYN) {
            self.syn_repeats += 1;
            return self.send_syn(cx, true);
        }
        if alone && copy.len > 0 {
            self.tell_of_restart(cx, false);
        }
        self.note_repeated(now, copy.seq);
        self.note_sent(now, &copy);
        self.totals.retransmitted += u64::from(copy.len);
        self.totals.retransmitted_segments += 1;
        self.last_sent_at = now;
        self.emit_data(cx, &copy);
    }

    /// Asks for a FIN after everything queued.
    pub(crate) fn close(&mut self, cx: &mut Context<impl Options>) {
        if self.fin == FinState::None && self.state.synchronised() {
            self.fin = FinState::Queued;
            cx.path.closing = true;
            self.send_unsent(cx);
        }
    }

    pub(crate) fn closing(&self) -> bool {
        self.fin != FinState::None
    }

    /// It closes, and what is left in flight has timed out. To a multipath connection whose stream is over, that is no reason to be open.
    pub(crate) fn lingers(&self) -> bool {
        self.closing() && self.recovery.timeouts > 0
    }

    pub(super) fn send_fin(&mut self, cx: &mut Context<impl Options>) {
        if !self.unsent.is_empty() {
            return;
        }
        let mut fin = Sent {
            seq: self.next,
            offset: 0,
            sent_at: cx.shared.now,
            len: 0,
            flags: 0,
        };
        self.ride_fin(&mut fin);
        self.note_sent(cx.shared.now, &fin);
        self.sent.push_back(fin);
        cx.shared.counters.increment(Mib::TcpOutSegs);
        self.emit_data(cx, &fin);
        if self.awaits_no_answer() {
            self.arm_retransmission(cx.shared);
        }
        self.schedule_loss_probe(cx.shared, false);
    }

    /// A segment that ends at the next sequence number has the FIN.
    #[cold]
    fn ride_fin(&mut self, sent: &mut Sent) {
        sent.set(Sent::FIN);
        self.fin = FinState::Sent(self.next);
        self.next += 1;
        self.state = match self.state {
            State::CloseWait | State::LastAck => State::LastAck,
            State::Closing => State::Closing,
            _ => State::FinWait1,
        };
    }

    /// Moves on when our FIN was acknowledged (RFC 9293 section 3.10.7.4, fifth step).
    pub(super) fn fin_acknowledged(&mut self, shared: &mut Shared, segment: &Segment) {
        let FinState::Sent(seq) = self.fin else {
            return;
        };
        if self.una <= seq {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.reduced = !segment.flags.contains(Flags::FIN);
            }
            State::Closing => {
                self.state = State::TimeWait;
                self.reduced = true;
                self.enter_time_wait(shared);
            }
            State::LastAck => {
                self.state = State::Closed;
                self.timers = super::Timers::default();
                self.receiver.stop_acks();
            }
            _ => {}
        }
    }

    /// Remembers whether the window or the application was the limit (RFC 7661's purpose, Linux `tcp_cwnd_validate`).
    pub(crate) fn validate_window(&mut self, limited: bool) {
        let in_flight = self.sent.len() as u32;
        self.usage.note(self.una, self.next, in_flight, limited);
    }

    /// Whether the congestion window limits sending; in slow start half a window in use is enough (Linux `tcp_is_cwnd_limited`).
    pub(crate) fn is_cwnd_limited(&self, path: &Path) -> bool {
        self.usage.limited() || (path.in_slow_start() && path.cwnd < 2 * self.usage.max_in_flight())
    }

    /// A window that was not used for a timeout falls to the initial window, at once or by halves (RFC 5681 section 4.1).
    #[cold]
    fn restart_after_idle(&mut self, cx: &mut Context<impl Options>) {
        let rto = self.rtt.rto(&cx.shared.config);
        let idle = cx.shared.now - self.last_sent_at;
        let outdated = idle > rto && self.paced.is_none();
        if outdated {
            let path = &mut cx.path;
            let floor = cx.shared.config.initial_window.min(path.cwnd);
            if cx.shared.config.profile.restarts_at_once() {
                path.cwnd = floor;
            } else {
                if path.ssthresh != INFINITE_SSTHRESH {
                    path.ssthresh = path.ssthresh.max(path.cwnd * 3 / 4);
                }
                let mut rest = idle;
                while rest > rto && path.cwnd > floor {
                    path.cwnd /= 2;
                    rest -= rto;
                }
                path.cwnd = path.cwnd.max(floor);
            }
            path.cwnd_count = 0;
        }
        self.tell_of_restart(cx, outdated);
    }

    /// Data leaves while nothing is in flight (Linux `tcp_event_data_sent`).
    #[cold]
    fn tell_of_restart(&mut self, cx: &mut Context<impl Options>, outdated: bool) {
        let now = cx.shared.now;
        let restart = Restart {
            now,
            idle: now - self.last_sent_at,
            outdated,
            next_seq: self.next,
            app_limited: self.limited_by_application(),
        };
        self.congestion.on_restart(&mut cx.path, &restart);
    }

    /// The stretches of the stream that this socket still has to get through: unacknowledged, then unsent.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let sent = self
            .sent
            .iter()
            .filter(|sent| sent.len > 0)
            .map(|sent| (sent.offset, sent.len));
        sent.chain(self.unsent.iter().map(|chunk| (chunk.offset, chunk.len)))
    }

    /// The last ACK of the handshake must be answered: it is sent again when the timer fires, which happened `attempts` times.
    pub(crate) fn await_answer(&mut self, shared: &Shared, attempts: u32) {
        let delay = self.rtt.rto(&shared.config) << attempts.min(6);
        self.timers.set(Pending::Retransmission, shared.now + delay);
    }

    /// The answer came. What was sent in the meantime, at most a FIN, has the timer to itself from now on.
    pub(crate) fn answered(&mut self, shared: &Shared) {
        self.timers.stop_retransmission();
        self.arm_retransmission(shared);
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
        let mut segment = self.header(cx.shared.now, self.next);
        self.stamp(cx, &mut segment);
        add(&cx.options, cx.shared, &mut segment);
        cx.shared.counters.increment(Mib::TcpOutSegs);
        cx.emit(segment);
    }
}

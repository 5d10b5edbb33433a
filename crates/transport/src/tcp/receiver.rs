//! The receiving half of a socket: reassembly by sequence number, SACK and acknowledgement.

use polypath_wire::tcp::{SackBlocks, Segment};

use super::delayed_ack::{AckPolicy, QUICK_ACKS};
use super::holes::{Held, Holes, MOST_BLOCKS};
use crate::linux::receive_window::SocketWindow;
use crate::path::rtt::RttEstimator;
use crate::seq::{unwrap, wrap};
use crate::settings::Config;
use crate::stream;
use crate::tcp::context::{Context, Options, Shared};
use crate::{MILLISECOND, Mib, NEVER, Nanos};

/// Ranges that a receiver expects to have at a time; about others it tells at once (Linux `TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED_RANGES: usize = 2;

/// Answers to segments that do not fit leave at most this often, so that two ends do not answer each other for ever (RFC 5961 section 5,
/// Linux net.ipv4.tcp_invalid_ratelimit).
const BETWEEN_ANSWERS: Nanos = 500 * MILLISECOND;

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

impl Arrived {
    fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

impl From<Arrived> for Held {
    fn from(arrived: Arrived) -> Self {
        let Arrived {
            seq, offset, len, ..
        } = arrived;
        Self { seq, offset, len }
    }
}

/// What came from the peer, and when it is acknowledged. Sequence numbers count from the peer's initial one: 0 is its SYN.
pub(crate) struct Receiver {
    initial: u32,
    /// The next one expected (RCV.NXT).
    next: u64,
    /// Absent while everything came in order so far.
    holes: Option<Box<Holes>>,
    fin_at: Option<u64>,
    /// The timestamp that is echoed (RFC 7323 section 4.3, TS.Recent).
    timestamp: u32,
    /// The window as upstream Linux keeps it for each socket.
    window: Option<Box<SocketWindow>>,
    ack: AckPolicy,
    /// Payload that came, each byte once.
    bytes: u64,
    /// Before this, segments that do not fit go unanswered.
    answer_after: Nanos,
    /// What comes is acknowledged, but the stream gets none of it.
    keeps: bool,
}

impl Receiver {
    pub fn new(config: &Config) -> Self {
        Self {
            initial: 0,
            next: 0,
            holes: None,
            fin_at: None,
            timestamp: 0,
            window: config.profile.measures_segments().then(|| {
                let share = config.profile.window_share();
                Box::new(SocketWindow::new(config.receive_buffer.default, share))
            }),
            ack: AckPolicy::default(),
            bytes: 0,
            answer_after: 0,
            keeps: false,
        }
    }

    /// From now on the stream gets nothing of what comes (Linux `mptcp_data_ready`, `closing`).
    pub fn keep_all(&mut self) {
        self.keeps = true;
    }

    /// The peer's SYN came.
    pub fn begin(&mut self, initial: u32) {
        self.initial = initial;
        self.next = 1;
        self.ack.begin();
    }

    /// Nothing more is waited for.
    pub fn stop(&mut self) {
        self.holes = None;
        self.ack.stop();
    }

    /// No acknowledgement is put off any more.
    pub fn stop_acks(&mut self) {
        self.ack.stop();
    }

    pub fn initial(&self) -> u32 {
        self.initial
    }

    /// The next sequence number expected, from the initial one on.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The same as it is on the wire.
    #[inline(always)]
    pub fn number(&self) -> u32 {
        wrap(self.initial, self.next)
    }

    /// Payload that came, each byte once.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Position of a segment's first byte in the peer's sequence space.
    #[inline]
    pub fn position(&self, segment: &Segment) -> u64 {
        unwrap(self.initial, segment.seq, self.next)
    }

    /// How far a segment begins beyond the next number expected. Not unwrapped: what lies before the initial number has no place.
    #[inline]
    pub fn ahead(&self, segment: &Segment) -> i64 {
        i64::from(segment.seq.wrapping_sub(self.number()) as i32)
    }

    /// The timestamp to echo.
    #[inline(always)]
    pub fn timestamp(&self) -> u32 {
        self.timestamp
    }

    /// A SYN came with this timestamp.
    pub fn take_first_timestamp(&mut self, value: u32) {
        self.timestamp = value;
    }

    /// How much newer a timestamp is than the one to echo.
    pub fn newer_by(&self, value: u32) -> i32 {
        value.wrapping_sub(self.timestamp) as i32
    }

    /// Whether a timestamp is below the last one (RFC 7323 section 5.3).
    pub fn outdates(&self, timestamp: Option<u32>) -> bool {
        timestamp.is_some_and(|value| self.newer_by(value) < -1)
    }

    /// Takes the timestamp of a segment that fits. False: it is an old duplicate (RFC 7323 section 5.3).
    #[inline(always)]
    pub fn takes_timestamp(&mut self, segment: &Segment, value: u32) -> bool {
        let newer = self.newer_by(value);
        if newer < -1 && segment.seq_len() > 0 {
            return false;
        }
        if newer >= 0 && self.position(segment) <= self.ack.acknowledged() {
            self.timestamp = value;
        }
        true
    }

    pub fn window(&self) -> Option<&SocketWindow> {
        self.window.as_deref()
    }

    pub fn window_mut(&mut self) -> Option<&mut SocketWindow> {
        self.window.as_deref_mut()
    }

    /// The window that a segment tells, shifted as was negotiated.
    #[inline(always)]
    pub fn offer(&mut self, stream: &mut stream::Receiver, shift: u8) -> u16 {
        let window = stream.window(self.window.as_deref_mut(), self.next) >> shift;
        window.min(65_535) as u16
    }

    /// A segment leaves with an acknowledgement and this window.
    #[inline(always)]
    pub fn acknowledge(&mut self, stream: &mut stream::Receiver, shift: u8) -> u16 {
        if self.ack.reader_sends() {
            stream.reader_takes();
        }
        let window = self.offer(stream, shift);
        if stream.short() {
            self.ack.end_quick();
        }
        self.ack.sent(self.next);
        window
    }

    /// Whether payload leaves a gap before it.
    #[inline(always)]
    pub fn is_ahead(&self, arrived: &Arrived) -> bool {
        arrived.seq > self.next
    }

    /// Takes payload that is not ahead. `rtt`: the sender's estimate.
    #[inline]
    pub fn take(&mut self, cx: &mut Context<impl Options>, arrived: Arrived, rtt: &RttEstimator) {
        let (seq, end) = (arrived.seq, arrived.end());
        if end <= self.next {
            cx.shared.counters.increment(Mib::TcpExtTCPDSACKOldSent);
            self.holes_mut().came_twice(seq, end);
            let quick = self.quick_acks();
            self.ack.trouble(quick);
            return;
        }
        if seq < self.next {
            let next = self.next;
            self.holes_mut().came_twice(seq, next);
        }
        self.take_in_order(cx, arrived, rtt);
    }

    fn take_in_order(
        &mut self,
        cx: &mut Context<impl Options>,
        arrived: Arrived,
        rtt: &RttEstimator,
    ) {
        let start = self.next;
        self.pass_up(cx, arrived.into());
        let Arrived { len, pushed, .. } = arrived;
        let waiting = self.out_of_order_bytes();
        let ends = cx.shared.receive.in_sequence(
            self.window.as_deref_mut(),
            len,
            pushed,
            self.next,
            waiting,
            cx.shared.now,
        );
        if ends {
            self.ack.pushed();
        }
        let rto = rtt.rto(&cx.shared.config);
        let quick = self.quick_acks();
        self.ack
            .data_received(cx.shared.now, rto, quick, &cx.shared.config);
        if cx.shared.receive.grew() {
            self.ack.window_grew();
        }
        if waiting == 0 {
            let unacknowledged = self.next - self.ack.acknowledged();
            let own = self.window.as_deref();
            let more_than_one = unacknowledged > cx.shared.receive.acknowledges_beyond(own);
            if self.ack.quick() || (more_than_one && cx.shared.receive.window_moves_on(own)) {
                self.ack.immediately();
            } else {
                self.ack
                    .postpone(cx.shared.now, cx.path.srtt, &cx.shared.config);
            }
            self.bytes += self.next - start;
            return;
        }
        self.fill_hole(cx, start);
    }

    /// What arrived in order may reach what waits for it.
    fn fill_hole(&mut self, cx: &mut Context<impl Options>, start: u64) {
        // RFC 5681 section 4.2: a segment that fills a gap is acknowledged at once.
        self.ack.immediately();
        let mut received = self.next;
        while let Some(next) = self.holes_mut().next(received) {
            if next.end() > received {
                self.pass_up(cx, next);
                received = self.next;
            }
        }
        let holes = self.holes_mut();
        let drained = holes.close_below(received);
        let (left, span) = (holes.bytes(), holes.span(received));
        cx.shared.receive.held -= drained;
        if let Some(own) = &mut self.window {
            own.holds(span);
        }
        let cause = cx.shared.arriving.into();
        (cx.shared.blocking).subflow_advances(cx.path.index, left, cause, cx.shared.now);
        self.bytes += self.next - start - drained;
    }

    fn holes_mut(&mut self) -> &mut Holes {
        self.holes.get_or_insert_default()
    }

    fn pass_up(&mut self, cx: &mut Context<impl Options>, held: Held) {
        let skip = self.next - held.seq;
        self.next = held.end();
        if self.keeps {
            return;
        }
        cx.shared.deliver(
            cx.path.index,
            held.offset + skip,
            u64::from(held.len) - skip,
        );
    }

    /// Payload is ahead. Whether duplicate acknowledgements that were put off are sent before it is taken, which then owes none any more
    /// (`tcp_sack_new_ofo_skb`).
    pub fn tells_first(&mut self, arrived: &Arrived) -> bool {
        self.ack.compressed() > 0
            && self.holes_mut().rank(arrived.seq, arrived.end()) >= EXPECTED_RANGES
    }

    /// Takes payload that is ahead. `told`: what was put off has just been sent.
    #[inline(never)]
    pub fn take_ahead(
        &mut self,
        cx: &mut Context<impl Options>,
        arrived: Arrived,
        (sack, told): (bool, bool),
    ) {
        let (seq, end) = (arrived.seq, arrived.end());
        let next = self.next;
        let by_subflow = cx.shared.receive.by_subflow();
        let holes = self.holes_mut();
        let before = holes.bytes();
        let fresh = holes.extend(seq, end);
        let joined = by_subflow && holes.joins(seq);
        let span = holes.span(next);
        let own = self.window.as_deref_mut();
        (cx.shared.receive).out_of_sequence(own, arrived.len, before, span, joined);
        if cx.shared.receive.grew() {
            self.ack.window_grew();
        }
        if !cx.shared.receive.by_subflow() {
            self.ack.trouble(QUICK_ACKS);
        } else if !sack {
            self.ack.immediately();
        } else if !told {
            let rtt = self.window().map_or(0, SocketWindow::round_trip);
            let rtt = rtt.min(cx.path.srtt);
            self.ack.duplicate(cx.shared.now, self.next, rtt);
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
        self.bytes += fresh;
        self.holes_mut().hold(arrived.into());
    }

    /// All of a segment's data came before (RFC 3168 section 6.1.5 has its mark ignored).
    #[cold]
    pub fn came_before(&self, segment: &Segment) -> bool {
        let len = u64::from(segment.payload.len);
        len > 0 && self.position(segment) + len <= self.next
    }

    /// Whether a segment ends below what was acknowledged, as a keep-alive does: its acknowledgement is not looked at (Linux `tcp_sequence`,
    /// before `tcp_ack`).
    pub fn is_old(&self, segment: &Segment) -> bool {
        self.position(segment) + u64::from(segment.seq_len()) < self.ack.acknowledged()
    }

    /// Bytes that wait because something before them is missing.
    pub fn out_of_order_bytes(&self) -> u64 {
        self.holes.as_ref().map_or(0, |holes| holes.bytes())
    }

    /// Segments and ranges that came out of order.
    pub fn entries(&self) -> usize {
        self.holes.as_ref().map_or(0, |holes| holes.entries())
    }

    /// Whether there is anything for SACK to say.
    #[inline(always)]
    pub fn has_sack(&self) -> bool {
        self.holes.as_ref().is_some_and(|holes| !holes.is_empty())
    }

    /// Adds SACK blocks within `space` option bytes: a duplicate (RFC 2883), then ranges, most recent first. `sack`: the peer takes them.
    #[inline(always)]
    pub fn add_sack(&mut self, blocks: &mut SackBlocks, space: u32, sack: bool) {
        if self.has_sack() {
            self.add_blocks(blocks, space, sack);
        }
    }

    /// The same beside data, which a packet's length does not leave room for where the segment is full (RFC 9293 section 3.7.1): an
    /// acknowledgement that is `owed` then goes on its own. Linux shortens the data instead (`tcp_current_mss`).
    #[cold]
    pub fn add_sack_beside(
        &mut self,
        blocks: &mut SackBlocks,
        space: u32,
        (sack, owed): (bool, bool),
    ) {
        if space >= ONE_BLOCK {
            self.add_blocks(blocks, space, sack);
        } else if owed {
            self.request_ack();
        }
    }

    #[inline(never)]
    fn add_blocks(&mut self, blocks: &mut SackBlocks, space: u32, sack: bool) {
        let initial = self.initial;
        let Some(holes) = &mut self.holes else {
            return;
        };
        let most = match sack {
            true => (space.saturating_sub(4) / 8).min(MOST_BLOCKS as u32) as usize,
            false => 0,
        };
        holes.tell(most, |start, end| {
            blocks.push(wrap(initial, start), wrap(initial, end))
        });
    }

    /// A FIN came, whose sequence number is `at`.
    pub fn note_fin(&mut self, at: u64) {
        self.fin_at = Some(at);
    }

    /// Steps over the FIN when everything before it has arrived. True: it has.
    pub fn advance_fin(&mut self) -> bool {
        let all = self.fin_at == Some(self.next);
        if all {
            self.next += 1;
            self.ack.immediately();
        }
        all
    }

    /// A segment of the peer's FIN came again.
    pub fn repeat_fin(&mut self) {
        self.ack.immediately();
        if let Some(holes) = &mut self.holes {
            holes.fin_came_twice(self.fin_at);
        }
    }

    /// The peer's FIN was received in order.
    pub fn finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.next > fin)
    }

    /// Whether a segment brings text after the peer's FIN.
    pub fn is_beyond_fin(&self, segment: &Segment) -> bool {
        let end = self.position(segment) + u64::from(segment.payload.len);
        segment.payload.len > 0 && self.finished() && end > self.next
    }

    /// An empty segment from below the last acknowledgement is a probe: it draws an ACK (RFC 9293 section 3.10.7.4, first step).
    pub fn answer_probe(&mut self, segment: &Segment) {
        if segment.seq_len() == 0 && self.position(segment) < self.ack.acknowledged() {
            self.ack.immediately();
        }
    }

    /// Measures the round trip as the receiver sees it, for the growth of its buffer (RFC 7323 section 4.1).
    pub fn sample_rtt(&mut self, shared: &mut Shared, segment: &Segment) {
        if let Some((_, echo)) = segment.timestamps.filter(|(_, echo)| *echo != 0) {
            let elapsed = super::timestamp(shared.now).wrapping_sub(echo);
            if elapsed < 1 << 20 {
                let own = self.window.as_deref_mut();
                (shared.receive).sample_rtt(own, segment.payload.len, echo, elapsed);
            }
        }
    }

    /// Quick ACKs in a row.
    fn quick_acks(&self) -> u8 {
        self.window()
            .map_or(QUICK_ACKS, |own| own.quick_acks(QUICK_ACKS))
    }

    /// What came last has a reader take it, who acknowledges then (Linux `__tcp_cleanup_rbuf`, `mptcp_subflow_could_cleanup`): more than a
    /// segment, or all there is where the peer pushed it.
    #[inline]
    fn reader_answers(&self, shared: &Shared) -> bool {
        let unacknowledged = self.next - self.ack.acknowledged();
        shared.receive.reader_wakes()
            && (unacknowledged > shared.receive.acknowledges_beyond(self.window())
                || (self.ack.reader_acknowledges() && shared.receive.reader_leaves_nothing()))
    }

    /// The reader took what came on another socket. True: it acknowledges what was put off here.
    pub fn read(&mut self, shared: &Shared) -> bool {
        let owes = self.puts_off_ack() && self.reader_answers(shared);
        if owes {
            self.ack.by_reader();
        }
        owes
    }

    /// Whether a segment that does not fit is answered; it then counts as answered.
    pub fn may_answer(&mut self, now: Nanos) -> bool {
        let may = now >= self.answer_after;
        if may {
            self.answer_after = now + BETWEEN_ANSWERS;
        }
        may
    }

    /// Asks for an ACK at the end of this event.
    pub fn request_ack(&mut self) {
        self.ack.immediately();
    }

    /// Whether an ACK is due.
    #[inline]
    pub fn owes_ack(&self) -> bool {
        self.ack.due()
    }

    /// Whether an ACK was put off.
    pub fn puts_off_ack(&self) -> bool {
        self.ack.deadline() != NEVER
    }

    /// When the ACK that was put off is due; [`NEVER`] while none is.
    #[inline(always)]
    pub fn ack_deadline(&self) -> Nanos {
        self.ack.deadline()
    }

    /// How many duplicate ACKs wait to be one.
    pub fn compressed_acks(&self) -> u8 {
        self.ack.compressed()
    }

    /// When data came last.
    pub fn last_received(&self) -> Nanos {
        self.ack.last_received()
    }

    /// Data leaves: an answer within the ACK delay makes the session interactive.
    #[inline(always)]
    pub fn data_sent(&mut self, now: Nanos) {
        self.ack.data_sent(now);
    }
}

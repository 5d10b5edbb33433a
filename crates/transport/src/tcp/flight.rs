//! What a socket has sent: its sequence numbers, and the segments that are in flight.

use std::collections::VecDeque;

use polypath_wire::tcp::Segment;

use super::unrepaired::Unrepaired;
use crate::Nanos;
use crate::search::partition_point_near;
use crate::seq::{unwrap, wrap};

/// Of fewer segments, caches hold all.
const LONG: usize = 512;

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub seq: u64,
    /// Where its first byte stands in the connection's stream.
    pub offset: u64,
    pub sent_at: Nanos,
    /// Payload bytes.
    pub len: u32,
    flags: u8,
}

impl Sent {
    pub const SYN: u8 = 1;
    pub const FIN: u8 = 2;
    pub const SACKED: u8 = 4;
    pub const LOST: u8 = 8;
    /// Sent again, and that copy is in flight.
    pub const RETRANSMITTING: u8 = 16;
    const EVER_RETRANSMITTED: u8 = 32;
    pub const PUSH: u8 = 64;
    pub const REINJECTED: u8 = 128;

    /// `len` bytes that begin at `offset` of the stream.
    #[inline(always)]
    pub fn new(now: Nanos, seq: u64, offset: u64, len: u32) -> Self {
        Self {
            seq,
            offset,
            sent_at: now,
            len,
            flags: 0,
        }
    }

    pub fn syn(now: Nanos) -> Self {
        Self {
            flags: Self::SYN,
            ..Self::new(now, 0, 0, 0)
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

/// What is to become of a segment that is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Lost,
    /// Neither this nor what follows it can be lost yet.
    TooRecent,
}

/// What a cumulative acknowledgement took of segments that are [plain](Sent::is_plain).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Plain {
    pub packets: u32,
    /// When the first and the last were sent, and where they end.
    pub first: (Nanos, u64),
    pub last: (Nanos, u64),
}

/// What was sent and is not acknowledged. Sequence numbers count from the initial one: 0 is the SYN, 1 the first byte. Counts are packets.
pub(crate) struct Flight {
    initial: u32,
    /// The first that is not acknowledged (SND.UNA), and the one that is sent next (SND.NXT).
    una: u64,
    next: u64,
    segments: VecDeque<Sent>,
    /// Without SACK, what duplicate acknowledgements stand for.
    sacked: u32,
    lost: u32,
    retransmitting: u32,
    unrepaired: Unrepaired,
    /// End of the last segment smaller than the MSS, for Nagle's rule (Minshall's variant).
    last_small: u64,
    /// When data left last.
    data_left_at: Nanos,
    /// Repetitions of the SYN or SYN/ACK.
    syn_repeats: u32,
}

impl Flight {
    pub fn new(initial: u32) -> Self {
        Self {
            initial,
            una: 0,
            next: 0,
            segments: VecDeque::new(),
            sacked: 0,
            lost: 0,
            retransmitting: 0,
            unrepaired: Unrepaired::default(),
            last_small: 0,
            data_left_at: 0,
            syn_repeats: 0,
        }
    }

    /// Sets the initial sequence number, before anything is sent.
    pub fn begin_at(&mut self, initial: u32) {
        self.initial = initial;
    }

    pub fn initial(&self) -> u32 {
        self.initial
    }

    #[inline(always)]
    pub fn una(&self) -> u64 {
        self.una
    }

    #[inline(always)]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// A sequence number as it is on the wire.
    #[inline(always)]
    pub fn number(&self, seq: u64) -> u32 {
        wrap(self.initial, seq)
    }

    /// Which number a segment acknowledges.
    #[inline(always)]
    pub fn acknowledged_by(&self, segment: &Segment) -> u64 {
        unwrap(self.initial, segment.ack, self.una)
    }

    /// The position of a number on the wire that is near `about`.
    #[inline]
    pub fn position(&self, seq: u32, about: u64) -> u64 {
        unwrap(self.initial, seq, about)
    }

    /// How far a number on the wire lies beyond what was acknowledged. Not unwrapped: what lies before the initial number has no place.
    #[inline(always)]
    pub fn beyond_una(&self, seq: u32) -> u32 {
        seq.wrapping_sub(self.number(self.una))
    }

    /// Sequence numbers that are not acknowledged.
    #[inline(always)]
    pub fn span(&self) -> u64 {
        self.next - self.una
    }

    /// Whether a report about a segment that began at `seq` may be about one in flight (RFC 5927 section 4.1).
    pub fn awaits(&self, seq: u32) -> bool {
        u64::from(self.beyond_una(seq)) <= self.span()
    }

    /// Whether a segment counts as sent: it occupies none of the sequence space, or none that was taken back.
    pub fn has_sent(&self, segment: &Segment) -> bool {
        segment.seq_len() == 0 || self.position(segment.seq, self.next) < self.next
    }

    #[inline(always)]
    pub fn segments(&self) -> &VecDeque<Sent> {
        &self.segments
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Segments, whatever became of them.
    #[inline(always)]
    pub fn packets(&self) -> u32 {
        self.segments.len() as u32
    }

    #[inline(always)]
    pub fn sacked(&self) -> u32 {
        self.sacked
    }

    #[inline(always)]
    pub fn lost(&self) -> u32 {
        self.lost
    }

    #[inline(always)]
    pub fn retransmitting(&self) -> u32 {
        self.retransmitting
    }

    /// Packets that have left and are neither acknowledged nor taken for lost (RFC 6675's pipe, counted as Linux does).
    #[inline(always)]
    pub fn in_flight(&self) -> u32 {
        (self.packets() + self.retransmitting).saturating_sub(self.sacked + self.lost)
    }

    /// Bytes from what is not acknowledged to the end of what was sent.
    pub fn bytes(&self) -> u64 {
        self.segments.back().map_or(0, |last| last.end() - self.una)
    }

    /// Something sent again is under way, or the oldest in flight was.
    pub fn any_repeated(&self) -> bool {
        self.retransmitting > 0 || self.segments.front().is_some_and(Sent::retransmitted)
    }

    /// A segment smaller than the MSS is in flight.
    pub fn has_small(&self) -> bool {
        !self.is_empty() && self.last_small > self.una
    }

    /// When data left last; 0 before the first.
    #[inline(always)]
    pub fn data_left_at(&self) -> Nanos {
        self.data_left_at
    }

    #[inline(always)]
    pub fn note_data_left(&mut self, now: Nanos) {
        self.data_left_at = now;
    }

    /// The SYN leaves.
    pub fn open(&mut self, now: Nanos) {
        self.next = 1;
        self.segments.push_back(Sent::syn(now));
    }

    /// Whether the SYN was acknowledged.
    #[inline(always)]
    pub fn is_established(&self) -> bool {
        self.una > 0
    }

    /// The SYN is acknowledged. Returns it unless it was sent again.
    pub fn establish(&mut self) -> Option<Sent> {
        let syn = self.segments.pop_front().filter(|syn| !syn.retransmitted());
        self.una = 1;
        // A side that sends nothing more has no queue.
        self.segments = VecDeque::new();
        self.forget_losses();
        syn
    }

    /// Nothing is waited for any more.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.forget_losses();
    }

    fn forget_losses(&mut self) {
        (self.sacked, self.lost, self.retransmitting) = (0, 0, 0);
        self.unrepaired = Unrepaired::default();
    }

    /// A segment leaves that begins at the next sequence number.
    #[inline(always)]
    pub fn push(&mut self, sent: Sent) {
        self.next = sent.end();
        self.segments.push_back(sent);
    }

    /// The data of the segment that is sent next, which ends here, is smaller than the MSS.
    pub fn note_small(&mut self, end: u64) {
        self.last_small = end;
    }

    /// Repetitions of the SYN or SYN/ACK.
    pub fn syn_repeats(&self) -> u32 {
        self.syn_repeats
    }

    /// The segment at `index` is sent again. Returns it as it leaves.
    pub fn repeat(&mut self, index: usize, now: Nanos) -> Sent {
        let sent = &mut self.segments[index];
        if !sent.has(Sent::RETRANSMITTING) {
            sent.set(Sent::RETRANSMITTING);
            self.retransmitting += 1;
        }
        sent.set(Sent::EVER_RETRANSMITTED);
        sent.sent_at = now;
        self.syn_repeats += u32::from(sent.has(Sent::SYN));
        *sent
    }

    /// What was sent again of a segment is not under way any more. True: it was.
    pub fn end_repetition(&mut self, index: usize) -> bool {
        let sent = &mut self.segments[index];
        let repeating = sent.has(Sent::RETRANSMITTING);
        if repeating {
            sent.clear(Sent::RETRANSMITTING);
            self.retransmitting -= 1;
        }
        repeating
    }

    /// The segment that was sent again was not: it waits as before.
    pub fn take_back_repetition(&mut self, index: usize) {
        self.end_repetition(index);
        let sent = &self.segments[index];
        self.unrepaired.add(sent.seq, sent.end());
    }

    /// The segments from `index` on were not sent. Gives them to `each`, the last first; returns where the first of them begins.
    pub fn take_back(&mut self, index: usize, mut each: impl FnMut(Sent)) -> u64 {
        let from = self.segments[index].seq;
        while self.segments.len() > index {
            if let Some(sent) = self.segments.pop_back() {
                each(sent);
            }
        }
        self.next = from;
        self.last_small = self.last_small.min(from);
        from
    }

    /// Index of the first segment that ends beyond `seq`, or their number. Most are of one length: it is looked for where it would
    /// be if all were.
    pub fn first_beyond(&self, seq: u64) -> usize {
        let segments = &self.segments;
        let (Some(front), Some(back)) = (segments.front(), segments.back()) else {
            return 0;
        };
        if front.end() > seq {
            return 0;
        }
        if segments.len() < LONG {
            return segments.partition_point(|it| it.end() <= seq);
        }
        let all = back.end() - front.seq;
        let guess = (seq - front.seq) * segments.len() as u64 / all;
        partition_point_near(segments, guess as usize, |it| it.end() <= seq)
    }

    /// Index of the first segment that begins at `seq` or beyond, or their number.
    pub fn first_from(&self, seq: u64) -> usize {
        let at = self.first_beyond(seq);
        at + usize::from(self.segments.get(at).is_some_and(|found| found.seq < seq))
    }

    /// Index of the segment that begins at `seq`.
    pub fn beginning_at(&self, seq: u64) -> Option<usize> {
        let index = self.segments.partition_point(|sent| sent.seq < seq);
        self.segments.get(index).filter(|sent| sent.seq == seq)?;
        Some(index)
    }

    /// Where the segment is that was sent again at that time, if that is not over.
    pub fn repeated_at(&self, sent_at: Nanos, seq: u64) -> Option<usize> {
        let index = self.first_beyond(seq.max(self.una));
        let sent = self.segments.get(index)?;
        let over = sent.has(Sent::SACKED) || sent.awaits_repair();
        (!over && sent.retransmitted() && sent.sent_at == sent_at).then_some(index)
    }

    /// Outside of this, no segment waits to be sent again.
    #[inline]
    pub fn unrepaired(&self) -> Unrepaired {
        self.unrepaired
    }

    /// Nothing below this waits to be sent again.
    pub fn repaired_below(&mut self, seq: u64) {
        self.unrepaired.cut_below(seq);
    }

    /// Anything in flight may wait to be sent again.
    pub fn suspect_all(&mut self) {
        self.unrepaired.add(0, self.next);
    }

    /// Removes acknowledged segments from the front as long as they are [plain](Sent::is_plain), while nothing is SACKed.
    #[inline(always)]
    pub fn take_plain(&mut self, ack: u64) -> Plain {
        let mut taken = Plain::default();
        while let Some(front) = self.segments.front()
            && front.is_plain()
            && front.plain_end() <= ack
        {
            taken.last = (front.sent_at, front.plain_end());
            if taken.packets == 0 {
                taken.first = taken.last;
            }
            taken.packets += 1;
            self.segments.pop_front();
        }
        taken
    }

    /// Removes the first segment if it is acknowledged up to `ack`; of one that is in part, that part.
    #[inline(always)]
    pub fn take_acknowledged(&mut self, ack: u64) -> Option<Sent> {
        let front = self.segments.front_mut()?;
        if front.end() > ack {
            if front.seq < ack && front.len > 0 {
                let part = (ack - front.seq) as u32;
                front.seq += u64::from(part);
                front.offset += u64::from(part);
                front.len -= part;
            }
            return None;
        }
        let sent = *front;
        self.segments.pop_front();
        self.lost -= u32::from(sent.has(Sent::LOST));
        self.retransmitting -= u32::from(sent.has(Sent::RETRANSMITTING));
        self.sacked -= u32::from(sent.has(Sent::SACKED));
        Some(sent)
    }

    /// Everything below `ack` is acknowledged.
    #[inline(always)]
    pub fn acknowledge(&mut self, ack: u64) {
        self.una = ack;
    }

    /// The peer SACKed the segment at `index`. Returns it.
    pub fn sack(&mut self, index: usize) -> Sent {
        self.end_repetition(index);
        let sent = &mut self.segments[index];
        if sent.has(Sent::LOST) {
            sent.clear(Sent::LOST);
            self.lost -= 1;
        }
        sent.set(Sent::SACKED);
        self.sacked += 1;
        *sent
    }

    /// Without SACK: a duplicate acknowledgement stands for a segment that arrived.
    pub fn count_duplicate(&mut self) {
        self.sacked = (self.sacked + 1).min(self.packets() - 1);
    }

    /// So many packets were acknowledged, for which duplicates may have stood.
    pub fn uncount_duplicates(&mut self, packets: u32) {
        self.sacked = (self.sacked)
            .saturating_sub(packets.saturating_sub(1))
            .min(self.packets().saturating_sub(1));
    }

    /// Duplicates stand for nothing any more.
    pub fn forget_duplicates(&mut self) {
        self.sacked = 0;
    }

    /// Duplicates stand for no more than what is not lost.
    pub fn limit_duplicates(&mut self) {
        let most = self.packets().saturating_sub(self.lost);
        self.sacked = self.sacked.min(most);
    }

    /// The segment at `index` is lost. True: it did not count as lost before.
    pub fn mark_lost(&mut self, index: usize) -> bool {
        let sent = &mut self.segments[index];
        let news = !sent.has(Sent::LOST);
        if news {
            sent.set(Sent::LOST);
            self.lost += 1;
        }
        self.unrepaired.add(sent.seq, sent.end());
        news
    }

    /// Judges the segments from `index` on. Returns how many are lost that did not count as lost before.
    pub fn judge(&mut self, index: usize, mut verdict: impl FnMut(&Sent) -> Verdict) -> u32 {
        let mut newly_lost = 0;
        for sent in self.segments.range_mut(index..) {
            match verdict(sent) {
                Verdict::Keep => {}
                Verdict::Lost => {
                    if !sent.has(Sent::LOST) {
                        sent.set(Sent::LOST);
                        newly_lost += 1;
                    }
                    self.unrepaired.add(sent.seq, sent.end());
                }
                Verdict::TooRecent => break,
            }
        }
        self.lost += newly_lost;
        newly_lost
    }

    /// Without SACK: the first segment is lost. True: it did not count as lost before.
    pub fn mark_head_lost(&mut self) -> bool {
        let counts = |head: &Sent| !head.has(Sent::LOST) && !head.has(Sent::SACKED);
        let marks = self.segments.front().is_some_and(counts);
        if marks {
            self.end_repetition(0);
            self.mark_lost(0);
            self.limit_duplicates();
        }
        marks
    }

    /// A SYN or SYN/ACK timed out: it is lost, and nothing else is in flight.
    pub fn mark_syn_lost(&mut self) {
        self.lost = 1;
        self.segments[0].set(Sent::LOST);
        self.segments[0].clear(Sent::RETRANSMITTING);
        self.retransmitting = 0;
    }

    /// After a timeout, everything is lost but what is SACKed, and what is `recent` other than the first. `discarded`: nothing counts as SACKed.
    /// Returns how many repetitions are lost.
    pub fn mark_timed_out(&mut self, recent: impl Fn(&Sent) -> bool, discarded: bool) -> u32 {
        let mut repetitions = 0;
        for (index, sent) in self.segments.iter_mut().enumerate() {
            if discarded {
                sent.clear(Sent::SACKED);
            } else if sent.has(Sent::SACKED) || index > 0 && recent(sent) {
                continue;
            }
            if !sent.has(Sent::LOST) {
                sent.set(Sent::LOST);
                self.lost += 1;
            }
            if sent.has(Sent::RETRANSMITTING) {
                sent.clear(Sent::RETRANSMITTING);
                repetitions += 1;
            }
        }
        self.retransmitting -= repetitions;
        repetitions
    }

    /// Nothing is lost after all.
    pub fn unmark_lost(&mut self) {
        for sent in &mut self.segments {
            sent.clear(Sent::LOST);
        }
        self.lost = 0;
    }

    /// Cuts `len` bytes off the segment at `index`, which are a segment of their own then.
    #[cold]
    pub fn cut_at(&mut self, index: usize, len: u32) {
        let whole = &mut self.segments[index];
        let first = whole.cut_front(len);
        self.lost += u32::from(whole.has(Sent::LOST));
        self.sacked += u32::from(whole.has(Sent::SACKED));
        self.retransmitting += u32::from(whole.has(Sent::RETRANSMITTING));
        self.segments.insert(index, first);
    }

    /// Cuts segments that are longer than `most` says of their offset in the stream, and takes the pieces for lost. True: there were any.
    pub fn cut_to(&mut self, most: impl Fn(u64) -> u32) -> bool {
        let mut segments = VecDeque::with_capacity(self.segments.len());
        let mut cut = false;
        for mut whole in std::mem::take(&mut self.segments) {
            if whole.len <= most(whole.offset) || whole.has(Sent::SACKED) {
                segments.push_back(whole);
                continue;
            }
            cut = true;
            self.unrepaired.add(whole.seq, whole.end());
            self.lost -= u32::from(whole.has(Sent::LOST));
            if whole.has(Sent::RETRANSMITTING) {
                whole.clear(Sent::RETRANSMITTING);
                self.retransmitting -= 1;
            }
            whole.set(Sent::LOST);
            while whole.len > most(whole.offset) {
                let piece = whole.cut_front(most(whole.offset));
                self.lost += 1;
                segments.push_back(piece);
            }
            self.lost += 1;
            segments.push_back(whole);
        }
        self.segments = segments;
        cut
    }

    /// Joins segments that follow each other in one buffer where the first is too long. `goes_on`: the buffer does not end here.
    pub fn join(&mut self, too_long: impl Fn(&Sent) -> bool, goes_on: impl Fn(u64) -> bool) {
        let mut segments: VecDeque<Sent> = VecDeque::with_capacity(self.segments.len());
        let mut joins = false;
        for next in std::mem::take(&mut self.segments) {
            let followed = |last: &&mut Sent| last.is_followed_by(&next) && joins;
            if let Some(last) = segments.back_mut().filter(followed) {
                last.take_in(&next);
                self.lost -= u32::from(next.has(Sent::LOST));
                self.retransmitting -= u32::from(next.has(Sent::RETRANSMITTING));
            } else {
                segments.push_back(next);
                joins = too_long(&next);
            }
            joins &= goes_on(next.end());
        }
        self.segments = segments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_by_where_they_begin_and_end() {
        let mut sent = VecDeque::new();
        let mut next = 0;
        for len in [1400, 1400, 20, 1400].repeat(200) {
            let mut whole = Sent::syn(0);
            (whole.seq, whole.len) = (next, len);
            next = whole.end();
            sent.push_back(whole);
        }
        let flight = Flight {
            segments: sent.clone(),
            ..Flight::new(0)
        };
        for seq in (0..900_000).step_by(700).chain(0..4300) {
            let beyond = sent.partition_point(|it| it.end() <= seq);
            let from = sent.partition_point(|it| it.seq < seq);
            assert_eq!(
                (flight.first_beyond(seq), flight.first_from(seq)),
                (beyond, from)
            );
        }
    }

    /// Five segments of 100 bytes after a SYN.
    fn five() -> Flight {
        let mut flight = Flight::new(7);
        flight.open(0);
        flight.establish();
        for nth in 0..5 {
            let seq = flight.next();
            flight.push(Sent::new(nth, seq, seq - 1, 100));
        }
        flight
    }

    /// RFC 6675 section 4: SetPipe counts neither what is SACKed nor what is lost, unless it was sent again.
    #[test]
    fn what_is_in_flight_follows_from_what_became_of_segments() {
        let mut flight = five();
        flight.sack(4);
        assert!(flight.mark_lost(0) && !flight.mark_lost(0));
        assert_eq!(flight.in_flight(), 3);
        flight.repeat(0, 9);
        assert_eq!((flight.in_flight(), flight.retransmitting()), (4, 1));
        assert!(
            flight
                .take_acknowledged(101)
                .is_some_and(|sent| sent.retransmitted())
        );
        assert!(flight.take_acknowledged(151).is_none(), "half of a segment");
        assert_eq!(flight.segments()[0].seq, 151);
        assert_eq!(
            (flight.in_flight(), flight.lost(), flight.sacked()),
            (3, 0, 1)
        );
    }

    #[test]
    fn pieces_of_what_is_too_long_are_lost() {
        let mut flight = five();
        flight.sack(1);
        assert!(flight.cut_to(|_| 60));
        assert_eq!(
            (flight.packets(), flight.lost(), flight.sacked()),
            (9, 8, 1)
        );
        flight.cut_at(3, 20);
        assert_eq!(
            (flight.packets(), flight.lost(), flight.in_flight()),
            (10, 9, 0)
        );
    }

    #[test]
    fn what_was_taken_back_is_sent_next() {
        let mut flight = five();
        let mut taken = Vec::new();
        let from = flight.take_back(3, |sent| taken.push(sent.seq));
        assert_eq!((from, flight.next()), (301, 301));
        assert_eq!(taken, [401, 301]);
    }
}

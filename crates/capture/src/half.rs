//! One direction of a subflow: what its sender sent, and what its receiver received.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use polypath_wire::tcp::{Flags, Segment};

use crate::blocking::Cause;
use crate::ranges::{Ranges, unwrap};

/// A position that the capture does not tell.
const UNKNOWN: u64 = u64::MAX;
/// Timestamp values whose echo is awaited.
const MOST_ECHOES: usize = 1024;

/// A segment without a timestamp that comes so much after those behind it is no straggler.
const STRAGGLE_NS: i64 = 3_000_000;

/// What a segment's payload was to its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    Nothing,
    /// These positions for the first time on this subflow.
    New(Range<u64>),
    Again,
    /// The same packet passed the place of capture before.
    Copy,
}

/// A segment with data that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    range: (u64, u64),
    at: i64,
    /// When it was sent last.
    last: i64,
    mark: Mark,
    again: bool,
}

/// What a copy of a packet has in common with it, and a retransmission has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    timestamp: Option<u32>,
    identification: Option<u16>,
}

impl Mark {
    pub fn of(segment: &Segment, identification: Option<u16>) -> Self {
        Self {
            timestamp: segment.timestamps.map(|(value, _)| value),
            // Linux sends 0 where a packet has none of its own.
            identification: identification.filter(|&identification| identification != 0),
        }
    }

    fn is_known(self) -> bool {
        self.timestamp.is_some() || self.identification.is_some()
    }
}

/// Smoothed as RFC 6298 section 2 does.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    pub smoothed_ns: i64,
    pub variation_ns: i64,
}

impl RoundTrip {
    pub fn sample(&mut self, ns: i64) {
        if ns < 0 {
            return;
        }
        if self.smoothed_ns == 0 {
            self.smoothed_ns = ns;
            self.variation_ns = ns / 2;
        } else {
            let off = (self.smoothed_ns - ns).abs();
            self.variation_ns += (off - self.variation_ns) / 4;
            self.smoothed_ns += (ns - self.smoothed_ns) / 8;
        }
    }
}

/// Positions count the sequence space from the SYN, which has 0; the first byte has 1.
#[derive(Debug)]
pub struct Half {
    zero: u32,
    /// Where the capture begins: 0 if it has the SYN.
    first: u64,
    /// Behind the last that was sent, and behind the last that was acknowledged.
    next: u64,
    acked: u64,
    /// What was seen of the part that is not acknowledged.
    seen: Ranges,
    pub sent_bytes: u64,
    pub retransmitted_bytes: u64,
    pub reinjected_bytes: u64,
    outstanding: VecDeque<Outstanding>,
    sacked: Ranges,
    pub round_trip: RoundTrip,
    largest: u64,
    pub fin: Option<u64>,
    /// The window that the sender offers to the other end, and its scale.
    pub window: u64,
    scale: Option<u8>,
    scaled: bool,
    /// Timestamps that the other end has yet to echo.
    echoes: VecDeque<(u32, i64)>,

    /// Where the data sequence numbers of positions begin.
    mappings: BTreeMap<u64, (u64, u64)>,
    last_mapping: Option<(u64, u64)>,
    /// What was sent again, of the part that the receiver lacks; as positions, and as data sequence numbers.
    pub again: Ranges,
    pub reinjected: Ranges,

    /// The receiver: behind what is in sequence, and what waits beyond.
    pub arrived: u64,
    pub waiting: Ranges,
    /// Acknowledged without having been seen to arrive.
    pub unseen_bytes: u64,
}

impl Half {
    /// `zero` is the number of the SYN, `first` the position at which the capture begins.
    pub fn new(zero: u32, first: u64) -> Self {
        Self {
            zero,
            first,
            next: first,
            acked: first,
            seen: Ranges::default(),
            sent_bytes: 0,
            retransmitted_bytes: 0,
            reinjected_bytes: 0,
            outstanding: VecDeque::new(),
            sacked: Ranges::default(),
            round_trip: RoundTrip::default(),
            largest: 0,
            fin: None,
            window: 0,
            scale: None,
            scaled: false,
            echoes: VecDeque::new(),
            mappings: BTreeMap::new(),
            last_mapping: None,
            again: Ranges::default(),
            reinjected: Ranges::default(),
            arrived: first,
            waiting: Ranges::default(),
            unseen_bytes: 0,
        }
    }

    /// The position of a sequence number of a segment of this direction.
    pub fn position(&self, seq: u32) -> Option<u64> {
        unwrap(self.zero, seq, self.next)
    }

    /// Positions of the payload.
    pub fn payload(&self, segment: &Segment) -> Option<Range<u64>> {
        let start = self.position(segment.seq)? + u64::from(segment.flags.contains(Flags::SYN));
        Some(start..start + u64::from(segment.payload.len))
    }

    /// Payload bytes in a range of positions: SYN and FIN take one each.
    fn bytes(&self, range: &Range<u64>) -> u64 {
        let end = self.fin.map_or(range.end, |fin| range.end.min(fin));
        end.saturating_sub(range.start.max(self.first).max(1))
    }

    /// A segment leaves; `round_trip_ns`: how long the way there and back takes, 0 where that is not known.
    pub fn on_sent(&mut self, segment: &Segment, mark: Mark, now: i64, round_trip_ns: i64) -> Sent {
        self.offer(segment);
        let Some(payload) = self.payload(segment) else {
            return Sent::Nothing;
        };
        let start = payload.start - u64::from(segment.flags.contains(Flags::SYN));
        let end = payload.end + u64::from(segment.flags.contains(Flags::FIN));
        if segment.flags.contains(Flags::FIN) {
            self.fin = Some(payload.end);
        }
        if start == end {
            return Sent::Nothing;
        }
        self.largest = self.largest.max(payload.end - payload.start);
        let beyond = end.saturating_sub(self.next.max(start));
        let old = start..end.min(self.next);
        let acked = old.end.min(self.acked).saturating_sub(start);
        let seen = acked + self.seen.overlap(&(start.max(self.acked)..old.end));
        let hole = old.end.saturating_sub(start).saturating_sub(seen);
        // Keep-alive: a byte that is acknowledged already (RFC 9293 section 3.8.4).
        let keeps_alive = end - start <= 1
            && end <= self.acked
            && payload.end - payload.start <= 1
            && !segment.flags.intersects(Flags::SYN | Flags::FIN);
        if seen == end - start && mark.is_known() {
            // A clock of milliseconds, or an identification that never changes, does not tell a retransmission; that no sender
            // knows of a loss before a round trip does.
            let soon = if round_trip_ns > 0 {
                round_trip_ns / 2
            } else {
                STRAGGLE_NS
            };
            let mut earlier = self.outstanding.iter();
            if earlier.any(|each| {
                each.range == (start, end) && each.mark == mark && now - each.last < soon
            }) {
                return Sent::Copy;
            }
        }
        let fills = hole > 0 && self.is_late(segment, old.end, now);
        let resent = fills || (seen > 0 && !keeps_alive);
        if beyond > 0 {
            let first = self.next.max(start);
            if start > self.next {
                // Sent, and not captured.
                self.sent_bytes += self.bytes(&(self.next..start));
            }
            self.sent_bytes += self.bytes(&(first..end));
            self.next = end;
        }
        if resent {
            let repeated = if fills { seen + hole } else { seen };
            let payload_part = repeated.min(payload.end - payload.start);
            self.retransmitted_bytes += payload_part;
            for each in &mut self.outstanding {
                if each.range.0 < end && each.range.1 > start {
                    each.again = true;
                    each.last = now;
                    if each.range == (start, end) {
                        each.mark = mark;
                    }
                }
            }
            self.again.insert(start.max(self.arrived)..end);
        }
        self.seen.insert(start.max(self.acked)..end);
        if beyond > 0 || hole > 0 {
            self.outstanding.push_back(Outstanding {
                range: (start, end),
                at: now,
                last: now,
                mark,
                again: resent,
            });
        }
        if payload.is_empty() || keeps_alive {
            Sent::Nothing
        } else if resent && seen + hole >= payload.end - payload.start {
            Sent::Again
        } else if resent {
            Sent::New(old.end.max(payload.start)..payload.end)
        } else {
            Sent::New(payload)
        }
    }

    /// Whether a segment that fills a hole before `end` was sent long after what stands behind it: a retransmission then of what was
    /// lost before the tap, or by it, and no straggler.
    fn is_late(&self, segment: &Segment, end: u64, now: i64) -> bool {
        let behind = self
            .outstanding
            .iter()
            .filter(|each| each.range.0 >= end)
            .min_by_key(|each| each.range.0);
        let Some(behind) = behind else {
            return false;
        };
        match (segment.timestamps, behind.mark.timestamp) {
            (Some((value, _)), Some(other)) => crate::survey::before(other, value),
            _ => now - behind.at > (self.round_trip.smoothed_ns / 2).max(STRAGGLE_NS),
        }
    }

    fn offer(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.scale = segment.rare.as_ref().and_then(|rare| rare.window_scale);
        }
        let scale = if segment.flags.contains(Flags::SYN) || !self.scaled {
            0
        } else {
            self.scale.unwrap_or(0)
        };
        self.window = u64::from(segment.window) << scale;
    }

    /// Both ends offered to scale windows (RFC 7323 section 2.2).
    pub fn scale_windows(&mut self) {
        self.scaled = true;
    }

    pub fn offers_scale(&self) -> bool {
        self.scale.is_some()
    }

    /// Notes a timestamp whose echo tells how long the way there and back takes.
    pub fn await_echo(&mut self, value: u32, now: i64) {
        if self.echoes.back().is_none_or(|(last, _)| *last != value) {
            self.echoes.push_back((value, now));
            if self.echoes.len() > MOST_ECHOES {
                self.echoes.pop_front();
            }
        }
    }

    /// When a timestamp was sent that is echoed for the first time.
    pub fn echoed(&mut self, value: u32) -> Option<i64> {
        let mut sent = None;
        while let Some(&(first, at)) = self.echoes.front() {
            if crate::survey::before(value, first) {
                break;
            }
            self.echoes.pop_front();
            sent = (first == value).then_some(at);
        }
        sent
    }

    pub fn sample(&mut self, ns: i64) {
        self.round_trip.sample(ns);
    }

    /// An acknowledgement of this direction comes; gives the position that it acknowledges if that is news. `near`: it
    /// is seen where the data was sent, and tells a round trip.
    pub fn on_ack(&mut self, segment: &Segment, now: i64, near: bool) -> Option<u64> {
        if self.next == 0 {
            return None; // The SYN is still to be sent: this is of an earlier connection.
        }
        let ack = unwrap(self.zero, segment.ack, self.next)?;
        // What acknowledges more than was ever sent is not of this direction, or the capture lacks a part.
        let known = ack <= self.next + (1 << 30);
        if !known {
            return None;
        }
        for &(left, right) in segment.sack.as_slice() {
            if let (Some(left), Some(right)) = (
                unwrap(self.zero, left, self.next),
                unwrap(self.zero, right, self.next),
            ) && left < right
                && right <= self.next
            {
                self.sacked.insert(left.max(self.acked)..right);
            }
        }
        if ack <= self.acked {
            return None;
        }
        let mut oldest: Option<Outstanding> = None;
        let mut again = false;
        while let Some(first) = self.outstanding.front().copied()
            && first.range.1 <= ack
        {
            again |= first.again;
            oldest.get_or_insert(first);
            self.outstanding.pop_front();
        }
        if let Some(first) = oldest
            && near
            && !again
        {
            self.round_trip.sample(now - first.at);
        }
        self.acked = ack;
        if ack > self.next {
            self.sent_bytes += self.bytes(&(self.next..ack));
            self.next = ack;
        }
        self.seen.prune(ack);
        self.sacked.prune(ack);
        Some(ack)
    }

    /// Segments that are on their way, by what is neither acknowledged nor selectively acknowledged.
    pub fn in_flight_packets(&self) -> u32 {
        if self.largest == 0 {
            return 0;
        }
        let bytes = (self.next - self.acked).saturating_sub(self.sacked.total());
        u32::try_from(bytes.div_ceil(self.largest)).unwrap_or(u32::MAX)
    }

    pub fn acked(&self) -> u64 {
        self.acked
    }

    pub fn acked_bytes(&self) -> u64 {
        self.bytes(&(1..self.acked))
    }

    /// Payload that arrived, each byte once; `near`: seen to arrive. Otherwise what was acknowledged did.
    pub fn received_bytes(&self, near: bool) -> u64 {
        if near {
            self.bytes(&(1..self.arrived)) + self.waiting.total()
        } else {
            self.acked_bytes()
        }
    }

    pub fn out_of_order_bytes(&self, near: bool) -> u64 {
        if near { self.waiting.total() } else { UNKNOWN }
    }

    /// Whether the FIN was acknowledged.
    pub fn is_closed(&self) -> bool {
        self.fin.is_some_and(|fin| self.acked > fin)
    }

    /// The data sequence numbers from `data` on are those of `len` bytes from `start` on.
    pub fn map(&mut self, start: u64, len: u64, data: u64) {
        self.mappings.insert(start, (len, data));
        let end = (start + len, data + len);
        if self.last_mapping.is_none_or(|last| last.0 < end.0) {
            self.last_mapping = Some(end);
        }
    }

    pub fn is_mapped(&self) -> bool {
        self.last_mapping.is_some()
    }

    /// Behind the last position that was sent.
    pub fn sent_to(&self) -> u64 {
        self.next
    }

    /// The position at which the capture begins.
    pub fn begins(&self) -> u64 {
        self.first
    }

    /// The receiver acknowledges: what was not seen to arrive did.
    pub fn receiver_says(&mut self, segment: &Segment) {
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        let Some(ack) = unwrap(self.zero, segment.ack, self.next) else {
            return;
        };
        if ack > self.arrived && ack <= self.next {
            let lacks = self.bytes(&(self.arrived..ack));
            self.unseen_bytes += lacks.saturating_sub(self.waiting.overlap(&(self.arrived..ack)));
            self.waiting.prune(ack);
            self.arrived = ack;
            while let Some(end) = self.waiting.take_from(self.arrived) {
                self.arrived = self.arrived.max(end);
            }
        }
    }

    /// What a linear continuation of the last mapping says of a position (RFC 8684 section 3.7).
    pub fn continued(&self, position: u64) -> u64 {
        match self.last_mapping {
            Some((end, data)) => data.wrapping_add(position.wrapping_sub(end)),
            None => position.saturating_sub(self.first.max(1)),
        }
    }

    /// The mapped pieces of a range of positions, each with its first data sequence number.
    pub fn mapped(&self, range: Range<u64>) -> Vec<(Range<u64>, u64)> {
        let first = self
            .mappings
            .range(..=range.start)
            .next_back()
            .map_or(range.start, |(&start, _)| start);
        let mut at = range.start;
        let mut found = Vec::new();
        for (&start, &(len, data)) in self.mappings.range(first..range.end.max(first)) {
            let (left, right) = (start.max(at), (start + len).min(range.end));
            if left < right {
                found.push((left..right, data + (left - start)));
                at = right;
            }
        }
        found
    }

    /// Forgets the mappings of what arrived and was acknowledged.
    pub fn forget(&mut self, below: u64) {
        while let Some(entry) = self.mappings.first_entry()
            && entry.key() + entry.get().0 <= below
        {
            entry.remove();
        }
        self.again.prune(below);
    }

    /// How the segment at a position came that fills a hole.
    pub fn cause(&self, position: u64) -> Cause {
        if self.again.contains(position.max(self.arrived)) {
            Cause::Retransmitted
        } else {
            Cause::Late
        }
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::tcp::Payload;

    use super::*;

    const MS: i64 = 1_000_000;

    fn data(seq: u32) -> Segment {
        Segment {
            seq,
            flags: Flags::ACK,
            payload: Payload {
                offset: 0,
                len: 1000,
            },
            ..Segment::default()
        }
    }

    /// A direction that sent its first thousand bytes at 0, with a mark that its retransmissions have as well.
    fn begun() -> (Half, Mark) {
        let mark = Mark {
            timestamp: None,
            identification: Some(1),
        };
        let mut half = Half::new(0, 1);
        assert_eq!(half.on_sent(&data(1), mark, 0, 50 * MS), Sent::New(1..1001));
        (half, mark)
    }

    #[test]
    fn what_follows_well_within_a_round_trip_is_a_copy() {
        let (mut half, mark) = begun();
        assert_eq!(half.on_sent(&data(1), mark, MS, 50 * MS), Sent::Copy);
        assert_eq!(half.retransmitted_bytes, 0);
    }

    #[test]
    fn what_follows_after_a_round_trip_is_sent_again_whatever_its_mark() {
        let (mut half, mark) = begun();
        assert_eq!(half.on_sent(&data(1), mark, 60 * MS, 50 * MS), Sent::Again);
        // Of the retransmission there may be copies as well.
        assert_eq!(half.on_sent(&data(1), mark, 61 * MS, 50 * MS), Sent::Copy);
        assert_eq!(half.on_sent(&data(1), mark, 1_000 * MS, 0), Sent::Again);
        assert_eq!(half.retransmitted_bytes, 2000);
    }

    #[test]
    fn an_acknowledgement_before_the_syn_is_of_an_earlier_connection() {
        let mut half = Half::new(1_000, 0);
        let stale = Segment {
            ack: 1_000 + 500_000_000,
            flags: Flags::ACK,
            ..Segment::default()
        };
        assert_eq!(half.on_ack(&stale, 0, false), None);
        assert_eq!(half.acked_bytes(), 0);
    }
}

//! One direction of a connection: the application's bytes, whichever subflow carries them.

use std::collections::BTreeMap;
use std::ops::Range;

use polypath_wire::mptcp::{DataAck, Dsn};

use crate::blocking::{Cause, Queue, Waited, Waits};
use crate::ranges::{Ranges, unwrap};

/// A data sequence number further off than this belongs to no data of the connection.
const FARTHEST: u64 = 1 << 40;

/// Offsets count the stream's bytes; the first has 0.
#[derive(Debug, Default)]
pub struct Stream {
    /// The data sequence number of offset 0.
    zero: Option<u64>,
    /// Behind the last that was sent, and behind the last that was acknowledged.
    next: u64,
    acked: u64,
    /// Which subflow carried what first, by the first offset: end and subflow.
    carried: BTreeMap<u64, (u64, usize)>,
    /// Offset of the DATA_FIN.
    pub fin: Option<u64>,

    /// The receiver: behind what is in order, and what waits beyond.
    arrived: u64,
    waiting: Ranges,
    queue: Queue,
    /// What was waited for, by the subflow that brought it.
    pub brought: Vec<Waits>,
    pub missing: Waited,
}

impl Stream {
    /// `initial`: the data sequence number before the first byte's.
    pub fn new(initial: Option<u64>) -> Self {
        Self {
            zero: initial.map(|initial| initial.wrapping_add(1)),
            ..Self::default()
        }
    }

    /// The offset of a data sequence number; the first that is seen is taken for offset 0 where no key was. None: of no data here.
    pub fn offset(&mut self, number: Dsn) -> Option<u64> {
        let near = self.next;
        match number {
            Dsn::Long(number) => {
                let number = number.get();
                let zero = *self.zero.get_or_insert(number);
                Some(number.wrapping_sub(zero))
            }
            Dsn::Short(number) => {
                let zero = *self.zero.get_or_insert(u64::from(number));
                unwrap(zero as u32, number, near)
            }
        }
        .filter(|offset| offset.abs_diff(near) < FARTHEST)
    }

    /// The offset that a data ACK acknowledges up to.
    pub fn acknowledged(&self, number: DataAck) -> Option<u64> {
        let zero = self.zero?;
        match number {
            DataAck::Long(number) => Some(number.get().wrapping_sub(zero)),
            DataAck::Short(number) => unwrap(zero as u32, number, self.next),
        }
        .filter(|offset| offset.abs_diff(self.next) < FARTHEST)
    }

    /// A subflow sends bytes for the first time; gives how many of them another carried before.
    pub fn on_sent(&mut self, range: Range<u64>, subflow: usize) -> u64 {
        let mut others = range.end.min(self.acked).saturating_sub(range.start);
        let first = self
            .carried
            .range(..=range.start)
            .next_back()
            .map_or(range.start, |(&start, _)| start);
        let mut at = range.start.max(self.acked);
        let mut gaps = Vec::new();
        for (&start, &(end, by)) in self.carried.range(first..range.end.max(first)) {
            let (left, right) = (start.max(at), end.min(range.end));
            if left >= right {
                continue;
            }
            if at < left {
                gaps.push(at..left);
            }
            if by != subflow {
                others += right - left;
            }
            at = right;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        for gap in gaps {
            self.carry(gap, subflow);
        }
        self.next = self.next.max(range.end);
        others
    }

    fn carry(&mut self, range: Range<u64>, subflow: usize) {
        if let Some((_, (end, by))) = self.carried.range_mut(..=range.start).next_back()
            && *end == range.start
            && *by == subflow
        {
            *end = range.end;
            return;
        }
        self.carried.insert(range.start, (range.end, subflow));
    }

    /// Data is acknowledged up to an offset.
    pub fn on_ack(&mut self, offset: u64) {
        if offset <= self.acked || offset > self.next + 1 {
            return;
        }
        self.acked = offset;
        while let Some(entry) = self.carried.first_entry()
            && entry.get().0 <= offset
        {
            entry.remove();
        }
    }

    pub fn is_closed(&self) -> bool {
        self.fin.is_some_and(|fin| self.acked > fin)
    }

    fn waits(&mut self, subflow: usize) -> &mut Waits {
        if self.brought.len() <= subflow {
            self.brought.resize(subflow + 1, Waits::default());
        }
        &mut self.brought[subflow]
    }

    /// Bytes come in sequence on a subflow.
    pub fn receive(&mut self, range: Range<u64>, subflow: usize, cause: Cause, now: i64) {
        if range.end <= self.arrived {
            return;
        }
        if range.start > self.arrived {
            self.waiting.insert(range);
            self.queue.hold(self.waiting.total(), now);
            return;
        }
        self.arrived = range.end;
        self.merge();
        let waited = self.queue.release(self.waiting.total(), now);
        self.waits(subflow)[cause as usize].add(waited);
    }

    fn merge(&mut self) {
        while let Some(end) = self.waiting.take_from(self.arrived) {
            self.arrived = self.arrived.max(end);
        }
    }

    /// The receiver has everything up to an offset, whether it was seen to arrive or not.
    pub fn received_up_to(&mut self, offset: u64, now: i64) {
        let end = self.fin.map_or(offset, |fin| offset.min(fin));
        if end > self.arrived {
            self.arrived = end;
            self.merge();
            self.queue.release(self.waiting.total(), now);
        }
    }

    /// Whether what ends at an offset was sent and not seen to arrive.
    pub fn lacks(&self, offset: u64) -> bool {
        offset <= self.next && self.fin.map_or(offset, |fin| offset.min(fin)) > self.arrived
    }

    /// Bytes that the application could read.
    pub fn delivered(&self) -> u64 {
        self.arrived
    }

    pub fn waiting_bytes(&self) -> u64 {
        self.waiting.total()
    }

    /// Nothing more comes.
    pub fn end(&mut self, now: i64) {
        let waited = self.queue.release(0, now);
        self.missing.add(waited);
    }
}

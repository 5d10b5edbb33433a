//! What came out of order on a socket: segments that wait for what is missing before them, and what SACK says of them.

use std::collections::VecDeque;

use crate::ranges::RangeSet;

/// Ranges of which a segment tells at most (RFC 2018 section 3).
pub(super) const MOST_BLOCKS: usize = 4;

/// A segment that waits for something before it. `offset` is where its first byte stands in the connection's stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub seq: u64,
    pub offset: u64,
    pub len: u32,
}

impl Held {
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

#[derive(Debug, Default)]
pub(super) struct Holes {
    waiting: VecDeque<Held>,
    ranges: RangeSet,
    /// What came twice and is to be told (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// Numbers in the ranges that grew last, the latest first.
    recent: [u64; MOST_BLOCKS],
}

impl Holes {
    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.ranges.bytes()
    }

    /// There is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.duplicate.is_none()
    }

    /// Segments and ranges.
    pub fn entries(&self) -> usize {
        self.waiting.len() + self.ranges.count()
    }

    /// From the next byte expected to the end of the last range.
    pub fn span(&self, received: u64) -> u64 {
        self.ranges.highest().saturating_sub(received)
    }

    /// Whether a range that begins before `seq` holds it.
    pub fn joins(&self, seq: u64) -> bool {
        (self.ranges.find(seq)).is_some_and(|(start, _)| start < seq)
    }

    /// How many ranges were reported since the one that a segment joins; all of them if it joins none.
    pub fn rank(&self, seq: u64, end: u64) -> usize {
        let known = self.recent.iter();
        let mut known = known.filter_map(|&recent| self.ranges.find(recent));
        let number = known.clone().count();
        let rank = known.position(|(start, last)| seq <= last && start <= end);
        rank.unwrap_or(number)
    }

    /// Adds to the ranges, and says how many bytes were not in them. The most recent range is reported first (RFC 2018 section 4).
    pub fn extend(&mut self, seq: u64, end: u64) -> u64 {
        let before = self.ranges.bytes();
        self.ranges.insert(seq, end, |_, _| {});
        let range = self.ranges.find(seq);
        let mut recent = self.recent.iter();
        let rank = recent.position(|&other| self.ranges.find(other) == range);
        let last = rank.unwrap_or(MOST_BLOCKS - 1);
        self.recent[..=last].rotate_right(1);
        self.recent[0] = seq;
        self.ranges.bytes() - before
    }

    pub fn hold(&mut self, held: Held) {
        let at = match self.waiting.back() {
            Some(last) if last.seq > held.seq => {
                self.waiting.partition_point(|other| other.seq <= held.seq)
            }
            _ => self.waiting.len(),
        };
        self.waiting.insert(at, held);
    }

    /// The next segment that begins no later than the byte expected.
    pub fn next(&mut self, received: u64) -> Option<Held> {
        let first = self.waiting.front()?;
        if first.seq > received {
            return None;
        }
        self.waiting.pop_front()
    }

    /// Everything below has arrived: how much of that had waited.
    pub fn close_below(&mut self, received: u64) -> u64 {
        let before = self.ranges.bytes();
        self.ranges.remove_below(received);
        before - self.ranges.bytes()
    }

    pub fn came_twice(&mut self, seq: u64, end: u64) {
        self.duplicate = Some((seq, end));
    }

    /// The duplicate ended at a FIN, which came again with it.
    pub fn fin_came_twice(&mut self, fin_at: Option<u64>) {
        if let Some((_, end)) = &mut self.duplicate
            && fin_at == Some(*end)
        {
            *end += 1;
        }
    }

    /// Tells the duplicate, once, and the ranges that grew last: so many at most.
    pub fn tell(&mut self, most: usize, mut block: impl FnMut(u64, u64)) {
        let mut left = most;
        if let Some((start, end)) = self.duplicate.take()
            && left > 0
        {
            block(start, end);
            left -= 1;
        }
        let mut seen = [None; MOST_BLOCKS];
        for (slot, &seq) in seen.iter_mut().zip(&self.recent) {
            *slot = self.ranges.find(seq);
        }
        for index in 0..MOST_BLOCKS {
            let Some((start, end)) = seen[index] else {
                continue;
            };
            if left > 0 && !seen[..index].contains(&seen[index]) {
                block(start, end);
                left -= 1;
            }
        }
    }
}

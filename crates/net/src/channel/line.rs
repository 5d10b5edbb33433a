//! The fast path of a channel: first in, first out at a rate. Every arrival time is known when the packet is queued.

use std::num::NonZeroU64;

use super::serializer::{Serializer, duration};
use crate::ids::{NEVER, Nanos};
use crate::packet::Header;

/// The data of the packet so many places behind the head is fetched in time.
const AHEAD: u64 = 12;

/// A packet on the line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub departure: Nanos,
    pub slot: u32,
    /// From departure to arrival at the far end in ns, unless the packet ahead arrives later.
    pub lag: u32,
}

impl Entry {
    #[inline]
    pub fn arrival(&self) -> Nanos {
        self.departure.saturating_add(Nanos::from(self.lag))
    }
}

/// A ring of packets, numbered from the first that ever entered and was not withdrawn: `head..left` are on their way, `left` is being sent, the others up
/// to `tail` wait. `left` is brought up to date only when someone needs to know.
#[derive(Debug)]
pub(crate) struct Line {
    ring: Box<[Entry]>,
    head: u64,
    left: u64,
    tail: u64,
    /// Slot and arrival of the entry at `head`, if there is one.
    front: u32,
    front_arrival: Nanos,
    /// Departure of the entry at `left`, if there is one; otherwise never.
    leaving: Nanos,
    /// `None`: packets leave at once.
    serializer: Option<Serializer>,
    /// The most packets that may wait, and that waited at once.
    limit: u32,
    max_waiting: u32,
    /// What `left` tells matters only beyond so many packets: the smaller of the two, or never where packets leave at once.
    unnoticed: u32,
    /// Propagation delay in ns.
    pub lag: u32,
    pub overhead: u32,
    /// Of packets that ever entered and were not withdrawn.
    bytes: u64,
    /// Whether `unsent_bytes` is kept.
    counts_bytes: bool,
    unsent_bytes: u64,
    account: Account,
}

/// What the hot path leaves to be reckoned later.
#[derive(Debug, Default)]
struct Account {
    /// Time spent sending at earlier rates.
    busy: Nanos,
    /// `bytes` when the present rate began, less those that it had still to send.
    bytes: u64,
}

/// Packets that leave a line for another home.
pub(crate) struct Contents {
    /// Arrival of the first of the travelling.
    pub first_arrival: Nanos,
    pub travelling: Vec<Entry>,
    /// Being sent first, then waiting.
    pub unsent: Vec<Entry>,
    pub serializer: Option<Serializer>,
    /// If nothing is unsent, since when.
    pub idle_since: Nanos,
}

impl Line {
    pub fn new(rate: Option<NonZeroU64>, overhead: u32) -> Self {
        Self {
            ring: Box::default(),
            head: 0,
            left: 0,
            tail: 0,
            front: 0,
            front_arrival: NEVER,
            leaving: NEVER,
            serializer: rate.map(Serializer::new),
            limit: u32::MAX,
            max_waiting: 0,
            unnoticed: if rate.is_some() { 0 } else { u32::MAX },
            lag: 0,
            overhead,
            bytes: 0,
            counts_bytes: false,
            unsent_bytes: 0,
            account: Account::default(),
        }
    }

    pub fn set_limit(&mut self, packets: u64) {
        self.limit = u32::try_from(packets).unwrap_or(u32::MAX);
        self.notice();
    }

    fn notice(&mut self) {
        self.unnoticed = match self.serializer {
            Some(_) => self.limit.min(self.max_waiting),
            None => u32::MAX,
        };
    }

    pub fn set_counts_bytes(&mut self, counts: bool, headers: &[Header]) {
        self.counts_bytes = counts;
        self.unsent_bytes = self.unsent(headers).map(u64::from).sum();
    }

    #[inline]
    fn get(&self, index: u64) -> &Entry {
        &self.ring[index as usize & (self.ring.len() - 1)]
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Has fetched where the next entry is put.
    #[inline(always)]
    pub fn prefetch_tail(&self) {
        if let Some(entry) = self
            .ring
            .get(self.tail as usize & self.ring.len().wrapping_sub(1))
        {
            polypath_prefetch::prefetch(entry);
        }
    }

    /// Slot of the entry at `head`, and the entry behind it.
    #[inline(always)]
    pub fn front(&self) -> (u32, Option<&Entry>) {
        let index = (self.head + 1) as usize & self.ring.len().wrapping_sub(1);
        (self.front, self.ring.get(index))
    }

    /// When the first packet arrives; never if there is none.
    #[inline]
    pub fn next_arrival(&self) -> Nanos {
        if self.is_empty() {
            NEVER
        } else {
            self.front_arrival
        }
    }

    /// Takes out the packet that arrives now, and tells when the next one does. Not if bytes are counted.
    #[inline(always)]
    pub fn pop(&mut self) -> (u32, Nanos) {
        let slot = self.front;
        let leaves = self.left == self.head;
        self.head += 1;
        if self.head == self.tail {
            if leaves {
                self.left = self.tail;
                self.leaving = NEVER;
            }
            return (slot, NEVER);
        }
        let entry = *self.get(self.head);
        if leaves {
            self.left = self.head;
            self.leaving = entry.departure;
        }
        self.front = entry.slot;
        self.front_arrival = self.front_arrival.max(entry.arrival());
        (slot, self.front_arrival)
    }

    /// As [`Line::pop`], also if bytes are counted.
    pub fn pop_counted(&mut self, headers: &[Header]) -> u32 {
        if self.left == self.head {
            self.uncount(headers);
        }
        self.pop().0
    }

    /// When a packet queued now would begin to be sent.
    pub fn clear_at(&self, now: Nanos) -> Nanos {
        let free_at = self.serializer.as_ref().map_or(now, |it| it.free_at);
        free_at.max(now)
    }

    /// The packet at `left` has left.
    #[inline]
    fn leave(&mut self) {
        self.left += 1;
        self.leaving = if self.left == self.tail {
            NEVER
        } else {
            self.get(self.left).departure
        };
    }

    fn uncount(&mut self, headers: &[Header]) {
        if self.counts_bytes {
            let slot = self.get(self.left).slot;
            self.unsent_bytes -= u64::from(headers[slot as usize].len + self.overhead);
        }
    }

    /// Packets that have not left by `now`.
    pub fn unsent_at(&mut self, now: Nanos, headers: &[Header]) -> u64 {
        while self.leaving <= now && self.left != self.tail {
            self.uncount(headers);
            self.leave();
        }
        self.tail - self.left
    }

    /// Takes a packet if the limit allows it: whether it did, and its arrival if it is the only one. Not if bytes are counted.
    #[inline(always)]
    pub fn offer(&mut self, now: Nanos, slot: u32, size: u32) -> (bool, Option<Nanos>) {
        // No more are unsent than `left` tells.
        if (self.tail - self.left) as u32 > self.unnoticed && !self.admits(now) {
            return (false, None);
        }
        (true, self.push(now, slot, size, self.lag))
    }

    /// Brings `left` and the most that waited up to date. Whether one more may wait.
    #[inline(never)]
    fn admits(&mut self, now: Nanos) -> bool {
        while self.leaving <= now && self.left != self.tail {
            self.leave();
        }
        let unsent = (self.tail - self.left) as u32;
        let admits = unsent <= self.limit;
        if admits {
            self.max_waiting = self.max_waiting.max(unsent);
            self.notice();
        }
        admits
    }

    /// Takes a packet that is admitted already and travels for `lag` ns.
    pub fn take(&mut self, now: Nanos, slot: u32, size: u32, lag: u32, headers: &[Header]) {
        if self.serializer.is_some() {
            let unsent = self.unsent_at(now, headers) as u32;
            self.max_waiting = self.max_waiting.max(unsent);
            self.notice();
        }
        self.push(now, slot, size, lag);
        if self.counts_bytes {
            self.unsent_bytes += u64::from(size);
        }
    }

    /// Gives the packet's arrival if it is the only one.
    #[inline(always)]
    fn push(&mut self, now: Nanos, slot: u32, size: u32, lag: u32) -> Option<Nanos> {
        let departure = match &mut self.serializer {
            Some(serializer) => serializer.send(now, size),
            None => now,
        };
        let entry = Entry {
            departure,
            slot,
            lag,
        };
        if (self.tail - self.head) as usize == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        self.ring[self.tail as usize & mask] = entry;
        self.bytes += u64::from(size);
        let tail = self.tail;
        self.tail += 1;
        if self.left != tail {
            return None;
        }
        self.leaving = departure;
        (tail == self.head).then(|| {
            self.front = slot;
            self.front_arrival = entry.arrival();
            self.front_arrival
        })
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut ring = vec![Entry::default(); (self.ring.len() * 2).max(4)].into_boxed_slice();
        let mask = ring.len() - 1;
        for index in self.head..self.tail {
            ring[index as usize & mask] = *self.get(index);
        }
        self.ring = ring;
    }

    /// Sizes of the packets that have not left as far as `left` tells.
    fn unsent<'a>(&'a self, headers: &'a [Header]) -> impl Iterator<Item = u32> + Clone + 'a {
        (self.left..self.tail).map(|index| {
            let slot = self.get(index).slot;
            headers[slot as usize].len + self.overhead
        })
    }

    /// Packets that wait, the one being sent not included.
    pub fn waiting_packets(&mut self, now: Nanos, headers: &[Header]) -> u64 {
        self.unsent_at(now, headers).saturating_sub(1)
    }

    /// Their length, overhead included.
    pub fn waiting_bytes(&mut self, now: Nanos, headers: &[Header]) -> u64 {
        self.unsent_at(now, headers);
        self.unsent(headers).skip(1).map(u64::from).sum()
    }

    /// The same without looking at every packet; 0 if bytes are not counted.
    pub fn counted_bytes(&mut self, now: Nanos, headers: &[Header]) -> u64 {
        if !self.counts_bytes {
            return 0;
        }
        self.unsent_at(now, headers);
        let current = self.unsent(headers).next().unwrap_or(0);
        self.unsent_bytes - u64::from(current)
    }

    /// Since when nothing waits and nothing is being sent, if that is so.
    pub fn idle_since(&self, now: Nanos) -> Option<Nanos> {
        let free_at = self.serializer.map_or(now, |serializer| serializer.free_at);
        (free_at <= now).then_some(free_at)
    }

    /// How long the sender will still be busy with what is queued.
    fn ahead(&self, now: Nanos) -> Nanos {
        self.serializer
            .map_or(0, |serializer| serializer.free_at.saturating_sub(now))
    }

    pub fn busy(&self, now: Nanos) -> Nanos {
        let since = self.bytes - self.account.bytes;
        let work = self
            .serializer
            .map_or(0, |serializer| duration(since, serializer.rate()));
        (self.account.busy + work).saturating_sub(self.ahead(now))
    }

    /// Reckons the time spent sending from here on; `busy` is what it has been up to now.
    fn settle_busy(&mut self, now: Nanos, busy: Nanos) {
        self.account.busy = busy + self.ahead(now);
        self.account.bytes = self.bytes;
    }

    /// Packets and bytes sent, the most that waited, and the time spent sending.
    pub fn totals(&mut self, now: Nanos, headers: &[Header]) -> (u64, u64, u64, Nanos) {
        self.unsent_at(now, headers);
        let unsent: u64 = self.unsent(headers).map(u64::from).sum();
        (
            self.left,
            self.bytes - unsent,
            u64::from(self.max_waiting),
            self.busy(now),
        )
    }

    /// Re-times what is queued. From a rate to none, everything leaves now.
    pub fn change_rate(&mut self, now: Nanos, rate: Option<NonZeroU64>, headers: &[Header]) {
        self.unsent_at(now, headers);
        let busy = self.busy(now);
        let mut departures = Vec::new();
        match (self.serializer, rate) {
            (Some(mut serializer), Some(rate)) => {
                let rest = self.unsent(headers).skip(1);
                serializer.change_rate(now, rate, rest, |at| departures.push(at));
                self.serializer = Some(serializer);
            }
            (_, rate) => {
                departures = vec![now; (self.tail - self.left) as usize];
                self.serializer = rate.map(Serializer::new);
            }
        }
        self.notice();
        self.settle_busy(now, busy);
        self.retime(&departures);
    }

    /// Gives new departures to the packets that have not left.
    fn retime(&mut self, departures: &[Nanos]) {
        let mask = self.ring.len().wrapping_sub(1);
        for (index, departure) in (self.left..self.tail).zip(departures) {
            self.ring[index as usize & mask].departure = *departure;
        }
        if self.left != self.tail {
            self.leaving = self.get(self.left).departure;
            if self.left == self.head {
                self.front_arrival = self.get(self.head).arrival();
            }
        }
    }

    fn entries(&self, from: u64, to: u64) -> Vec<Entry> {
        (from..to).map(|index| *self.get(index)).collect()
    }

    /// Takes away what has not left, which counts as never taken: being sent first, then waiting.
    pub fn withdraw(&mut self, now: Nanos, headers: &[Header]) -> Vec<Entry> {
        self.unsent_at(now, headers);
        let busy = self.busy(now);
        let unsent = self.entries(self.left, self.tail);
        let bytes: u64 = self.unsent(headers).map(u64::from).sum();
        self.bytes -= bytes;
        self.unsent_bytes = 0;
        self.tail = self.left;
        self.leaving = NEVER;
        if let Some(serializer) = &mut self.serializer {
            serializer.abandon(now);
        }
        self.settle_busy(now, busy);
        unsent
    }

    /// Empties the line. What had not left counts as never taken.
    pub fn drain(&mut self, now: Nanos, headers: &[Header]) -> Contents {
        let serializer = self.serializer;
        let idle_since = self.idle_since(now).unwrap_or(now);
        let unsent = self.withdraw(now, headers);
        let travelling = self.entries(self.head, self.left);
        self.head = self.tail;
        Contents {
            first_arrival: self.front_arrival,
            travelling,
            unsent,
            serializer,
            idle_since,
        }
    }
}

/// Slot of a packet some way behind the head, which caches may have forgotten.
#[inline(always)]
pub(super) fn distant(line: &Line) -> Option<u32> {
    (line.tail - line.head > AHEAD).then(|| line.get(line.head + AHEAD).slot)
}

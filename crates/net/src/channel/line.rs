//! The fast path of a channel: first in, first out at a rate, every arrival known when the packet is queued.

use super::serializer::Serializer;
use crate::ids::{NEVER, Nanos};
use crate::packet::Header;

/// A packet on the line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub departure: Nanos,
    pub slot: u32,
    /// From departure to arrival at the far end, in ns.
    pub lag: u32,
}

impl Entry {
    #[inline]
    pub fn arrival(&self) -> Nanos {
        self.departure.saturating_add(Nanos::from(self.lag))
    }
}

/// A ring of packets: `head..left` are on their way, `left` is being sent, the others up to `tail` wait. `left` is brought up to date
/// only when someone needs to know.
#[derive(Debug)]
pub(crate) struct Line {
    ring: Box<[Entry]>,
    head: u32,
    left: u32,
    tail: u32,
    /// The most packets that may wait.
    limit: u32,
    /// `None`: packets leave at once.
    serializer: Option<Serializer>,
    max_waiting: u32,
    /// Propagation delay in ns.
    pub lag: u32,
    pub overhead: u32,
    /// Whether `unsent_bytes` is kept.
    counts_bytes: bool,
    unsent_bytes: u64,
    accepted_packets: u64,
    accepted_bytes: u64,
    busy: Nanos,
}

/// Packets that leave a line for another home.
pub(crate) struct Contents {
    pub travelling: Vec<Entry>,
    /// Being sent first, then waiting.
    pub unsent: Vec<Entry>,
    pub serializer: Option<Serializer>,
}

impl Line {
    pub fn new(rate: Option<u64>, overhead: u32) -> Self {
        Self {
            ring: Box::default(),
            head: 0,
            left: 0,
            tail: 0,
            limit: u32::MAX,
            serializer: rate.map(Serializer::new),
            max_waiting: 0,
            lag: 0,
            overhead,
            counts_bytes: false,
            unsent_bytes: 0,
            accepted_packets: 0,
            accepted_bytes: 0,
            busy: 0,
        }
    }

    pub fn set_limit(&mut self, packets: u64) {
        self.limit = u32::try_from(packets).unwrap_or(u32::MAX);
    }

    pub fn set_counts_bytes(&mut self, counts: bool, headers: &[Header]) {
        self.counts_bytes = counts;
        self.unsent_bytes = self.unsent(headers).map(u64::from).sum();
    }

    #[inline]
    fn get(&self, index: u32) -> &Entry {
        &self.ring[index as usize & (self.ring.len() - 1)]
    }

    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// When the first packet arrives; never if there is none.
    #[inline]
    pub fn next_arrival(&self) -> Nanos {
        if self.is_empty() {
            NEVER
        } else {
            self.get(self.head).arrival()
        }
    }

    /// Takes out the packet that arrives now.
    #[inline]
    pub fn pop(&mut self, headers: &[Header]) -> Entry {
        let entry = *self.get(self.head);
        if self.left == self.head {
            self.leave(entry, headers);
        }
        self.head = self.head.wrapping_add(1);
        entry
    }

    #[inline]
    fn leave(&mut self, entry: Entry, headers: &[Header]) {
        if self.counts_bytes {
            self.unsent_bytes -= u64::from(headers[entry.slot as usize].len + self.overhead);
        }
        self.left = self.left.wrapping_add(1);
    }

    /// Notes which packets have left by `now`, and gives how many have not.
    #[inline]
    pub fn unsent_at(&mut self, now: Nanos, headers: &[Header]) -> u32 {
        while self.left != self.tail {
            let entry = *self.get(self.left);
            if entry.departure > now {
                break;
            }
            self.leave(entry, headers);
        }
        self.tail.wrapping_sub(self.left)
    }

    /// Takes a packet if the limit allows it.
    #[inline]
    pub fn offer(&mut self, now: Nanos, slot: u32, size: u32, headers: &[Header]) -> bool {
        if self.serializer.is_some() {
            let unsent = self.unsent_at(now, headers);
            if unsent > self.limit {
                return false;
            }
            self.max_waiting = self.max_waiting.max(unsent);
        }
        self.push(now, slot, size, self.lag);
        true
    }

    /// As [`Line::offer`], for a packet that is admitted already and arrives no earlier than those before it.
    pub fn push_in_order(
        &mut self,
        now: Nanos,
        slot: u32,
        size: u32,
        lag: u32,
        headers: &[Header],
    ) {
        if self.serializer.is_some() {
            self.max_waiting = self.max_waiting.max(self.unsent_at(now, headers));
        }
        let last = if self.is_empty() {
            0
        } else {
            self.get(self.tail.wrapping_sub(1)).arrival()
        };
        self.push(now, slot, size, lag);
        let index = self.tail.wrapping_sub(1) as usize & (self.ring.len() - 1);
        let entry = &mut self.ring[index];
        entry.lag = lag_between(entry.departure, entry.arrival().max(last));
    }

    #[inline]
    fn push(&mut self, now: Nanos, slot: u32, size: u32, lag: u32) {
        let departure = match &mut self.serializer {
            Some(serializer) => {
                let start = serializer.free_at.max(now);
                let departure = serializer.send(now, size);
                self.busy += departure - start;
                departure
            }
            None => now,
        };
        if self.tail.wrapping_sub(self.head) as usize == self.ring.len() {
            self.grow();
        }
        let index = self.tail as usize & (self.ring.len() - 1);
        self.ring[index] = Entry {
            departure,
            slot,
            lag,
        };
        self.tail = self.tail.wrapping_add(1);
        self.accepted_packets += 1;
        self.accepted_bytes += u64::from(size);
        if self.counts_bytes {
            self.unsent_bytes += u64::from(size);
        }
    }

    #[cold]
    fn grow(&mut self) {
        let old = self.ring.len();
        let mut ring = vec![Entry::default(); (old * 2).max(4)].into_boxed_slice();
        let mask = ring.len() - 1;
        for offset in 0..old as u32 {
            let index = self.head.wrapping_add(offset);
            ring[index as usize & mask] = *self.get(index);
        }
        self.ring = ring;
    }

    /// Sizes of the packets that have not left as far as `left` tells.
    fn unsent<'a>(&'a self, headers: &'a [Header]) -> impl Iterator<Item = u32> + Clone + 'a {
        (0..self.tail.wrapping_sub(self.left)).map(|offset| {
            let slot = self.get(self.left.wrapping_add(offset)).slot;
            headers[slot as usize].len + self.overhead
        })
    }

    /// Packets that wait, the one being sent not included.
    pub fn waiting_packets(&mut self, now: Nanos, headers: &[Header]) -> u64 {
        u64::from(self.unsent_at(now, headers).saturating_sub(1))
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

    /// Packets and bytes sent, the most that waited, and the time spent sending.
    pub fn totals(&mut self, now: Nanos, headers: &[Header]) -> (u64, u64, u64, Nanos) {
        let packets = u64::from(self.unsent_at(now, headers));
        let bytes: u64 = self.unsent(headers).map(u64::from).sum();
        let ahead = self
            .serializer
            .map_or(0, |serializer| serializer.free_at.saturating_sub(now));
        (
            self.accepted_packets - packets,
            self.accepted_bytes - bytes,
            u64::from(self.max_waiting),
            self.busy - ahead,
        )
    }

    /// Re-times what is queued. From a rate to none, everything leaves now.
    pub fn change_rate(&mut self, now: Nanos, rate: Option<u64>, headers: &[Header]) {
        self.unsent_at(now, headers);
        let mut departures = Vec::new();
        match (self.serializer, rate) {
            (Some(mut serializer), Some(rate)) => {
                let before = serializer.free_at.max(now);
                serializer.change_rate(now, rate, self.unsent(headers).skip(1), |at| {
                    departures.push(at);
                });
                self.busy = self.busy + serializer.free_at.max(now) - before;
                self.serializer = Some(serializer);
            }
            (Some(serializer), None) => {
                self.busy -= serializer.free_at.saturating_sub(now);
                self.serializer = None;
                departures = vec![now; self.tail.wrapping_sub(self.left) as usize];
            }
            (None, rate) => self.serializer = rate.map(Serializer::new),
        }
        let mask = self.ring.len().wrapping_sub(1);
        let mut last = match self.left == self.head {
            true => 0,
            false => self.get(self.left.wrapping_sub(1)).arrival(),
        };
        for (offset, departure) in departures.into_iter().enumerate() {
            let entry = &mut self.ring[(self.left as usize).wrapping_add(offset) & mask];
            entry.departure = departure;
            last = entry.arrival().max(last);
            entry.lag = lag_between(departure, last);
        }
    }

    /// Empties the line. What had not left counts as never accepted.
    pub fn drain(&mut self, now: Nanos, headers: &[Header]) -> Contents {
        self.unsent_at(now, headers);
        let entries = |from: u32, to: u32| -> Vec<Entry> {
            (0..to.wrapping_sub(from))
                .map(|offset| *self.get(from.wrapping_add(offset)))
                .collect()
        };
        let travelling = entries(self.head, self.left);
        let unsent = entries(self.left, self.tail);
        self.accepted_packets -= unsent.len() as u64;
        self.accepted_bytes -= self.unsent(headers).map(u64::from).sum::<u64>();
        self.unsent_bytes = 0;
        self.head = self.tail;
        self.left = self.tail;
        let serializer = self.serializer;
        if let Some(serializer) = &mut self.serializer {
            self.busy -= serializer.free_at.saturating_sub(now);
            serializer.abandon(now);
        }
        Contents {
            travelling,
            unsent,
            serializer,
        }
    }
}

fn lag_between(departure: Nanos, arrival: Nanos) -> u32 {
    u32::try_from(arrival.saturating_sub(departure)).unwrap_or(u32::MAX)
}

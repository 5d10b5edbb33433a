//! Packets on their way to the far end, each with an arrival of its own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ids::{NEVER, Nanos};
use crate::queue::Travel;

#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// (arrival, order of departure, slot), the first one on top.
    travelling: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    last_arrival: Nanos,
    departures: u64,
}

impl Flight {
    /// Has none of the packets to come arrive earlier, unless it travels ahead.
    pub fn follow(&mut self, arrival: Nanos) {
        self.last_arrival = arrival;
    }

    /// A packet leaves at a time.
    pub fn leave(&mut self, at: Nanos, slot: u32, travel: Travel) {
        match travel {
            Travel::InOrder(lag) => self.in_order(at.saturating_add(lag), slot),
            Travel::Ahead => self.push(at, slot),
        }
    }

    /// A packet that arrives at a time, but not before those ahead.
    pub fn in_order(&mut self, arrival: Nanos, slot: u32) {
        self.last_arrival = self.last_arrival.max(arrival);
        self.push(self.last_arrival, slot);
    }

    fn push(&mut self, arrival: Nanos, slot: u32) {
        self.travelling
            .push(Reverse((arrival, self.departures, slot)));
        self.departures += 1;
    }

    pub fn next_arrival(&self) -> Nanos {
        self.travelling.peek().map_or(NEVER, |first| first.0.0)
    }

    /// Takes out a packet that has arrived by `now`.
    pub fn arrive(&mut self, now: Nanos) -> Option<u32> {
        let Reverse((arrival, _, slot)) = *self.travelling.peek()?;
        if arrival > now {
            return None;
        }
        self.travelling.pop();
        Some(slot)
    }

    /// Takes out all of them, in order of arrival.
    pub fn drain(&mut self) -> Vec<u32> {
        self.last_arrival = 0;
        let sorted = std::mem::take(&mut self.travelling).into_sorted_vec();
        sorted
            .into_iter()
            .rev()
            .map(|Reverse((_, _, slot))| slot)
            .collect()
    }
}

//! A buffer at the far end of a tunnel that puts packets in order, bounded by time and by packets.

use std::collections::{BTreeMap, BTreeSet};

use polypath_transport::{NEVER, Nanos};

/// Packets that wait for those with lower numbers.
///
/// A gap is waited for until a packet behind it has been here for `longest`, or more than `most` wait. All that lies before that packet is
/// then given up. What comes later nevertheless goes on at once, out of order.
pub(crate) struct Reorder<T> {
    longest: Nanos,
    most: usize,
    /// The number that is due.
    next: u64,
    held: BTreeMap<u64, (Nanos, T)>,
    /// The same by the time of arrival.
    arrivals: BTreeSet<(Nanos, u64)>,
}

/// What became of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    InOrder,
    /// It waits, or made others give up waiting.
    Early,
    /// It had been given up.
    Late,
}

impl<T> Reorder<T> {
    pub fn new(longest: Nanos, most: usize) -> Self {
        Self {
            longest,
            most,
            next: 0,
            held: BTreeMap::new(),
            arrivals: BTreeSet::new(),
        }
    }

    /// A packet arrived; those that may go on are added to `out`, in order.
    pub fn arrive(&mut self, number: u64, packet: T, now: Nanos, out: &mut Vec<T>) -> Arrived {
        if number < self.next {
            out.push(packet);
            return Arrived::Late;
        }
        let early = number > self.next;
        if self.longest == 0 {
            self.next = number + 1;
            out.push(packet);
        } else {
            self.arrivals.insert((now, number));
            self.held.insert(number, (now, packet));
            self.release_next(out);
            while self.held.len() > self.most {
                self.skip_gap(out);
            }
        }
        if early {
            Arrived::Early
        } else {
            Arrived::InOrder
        }
    }

    /// When a packet will have waited long enough.
    pub fn deadline(&self) -> Nanos {
        let first = self.arrivals.first();
        first.map_or(NEVER, |(at, _)| at.saturating_add(self.longest))
    }

    /// Adds the packets whose time has come, and all before them.
    pub fn on_time(&mut self, now: Nanos, out: &mut Vec<T>) {
        while self.deadline() <= now
            && let Some(&(_, oldest)) = self.arrivals.first()
        {
            while self.next <= oldest {
                self.skip_gap(out);
            }
        }
    }

    fn skip_gap(&mut self, out: &mut Vec<T>) {
        if let Some((&first, _)) = self.held.first_key_value() {
            self.next = first;
            self.release_next(out);
        }
    }

    fn release_next(&mut self, out: &mut Vec<T>) {
        while let Some((at, packet)) = self.held.remove(&self.next) {
            self.arrivals.remove(&(at, self.next));
            self.next += 1;
            out.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Numbers that go on, by the time in milliseconds, as (time, number) arrive.
    fn through(longest: Nanos, most: usize, arrivals: &[(Nanos, u64)]) -> Vec<(Nanos, u64)> {
        let mut buffer = Reorder::new(longest * MS, most);
        let mut gone = Vec::new();
        let mut out = Vec::new();
        for &(at, number) in arrivals {
            while buffer.deadline() < at * MS {
                let due = buffer.deadline();
                buffer.on_time(due, &mut out);
                gone.extend(out.drain(..).map(|number| (due / MS, number)));
            }
            buffer.arrive(number, number, at * MS, &mut out);
            gone.extend(out.drain(..).map(|number| (at, number)));
        }
        while buffer.deadline() < NEVER {
            let due = buffer.deadline();
            buffer.on_time(due, &mut out);
            gone.extend(out.drain(..).map(|number| (due / MS, number)));
        }
        assert!(buffer.held.is_empty() && buffer.arrivals.is_empty());
        gone
    }

    #[test]
    fn what_is_in_order_does_not_wait() {
        let arrivals = [(1, 0), (2, 1), (3, 2)];
        assert_eq!(through(50, 10, &arrivals), arrivals);
    }

    #[test]
    fn a_gap_that_fills_is_waited_for() {
        let gone = through(50, 10, &[(1, 1), (2, 2), (20, 0), (21, 3)]);
        assert_eq!(gone, [(20, 0), (20, 1), (20, 2), (21, 3)]);
    }

    #[test]
    fn a_gap_that_does_not_is_given_up_in_time() {
        let gone = through(50, 10, &[(1, 0), (2, 2), (10, 4), (30, 3), (200, 1)]);
        // 3 and 4 are in order once 1 is given up
        assert_eq!(gone, [(1, 0), (52, 2), (52, 3), (52, 4), (200, 1)]);
    }

    #[test]
    fn gaps_have_times_of_their_own() {
        let gone = through(50, 10, &[(1, 1), (11, 3)]);
        assert_eq!(gone, [(51, 1), (61, 3)]);
    }

    #[test]
    fn the_oldest_packet_counts_be_its_number_the_highest() {
        let gone = through(50, 10, &[(1, 5), (41, 2)]);
        assert_eq!(gone, [(51, 2), (51, 5)]);
    }

    #[test]
    fn more_than_it_may_hold_goes_on() {
        let gone = through(1000, 2, &[(1, 1), (2, 3), (3, 5), (4, 0)]);
        assert_eq!(gone, [(3, 1), (4, 0), (1002, 3), (1003, 5)]);
    }

    #[test]
    fn without_it_all_goes_on_at_once() {
        let arrivals = [(1, 3), (2, 0), (3, 4)];
        assert_eq!(through(0, 10, &arrivals), arrivals);
    }
}

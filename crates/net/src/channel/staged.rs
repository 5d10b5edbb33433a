//! The general path of a channel: a queue, a sender and the packets on their way, each with events of its own.
//!
//! It carries what the [line](super::line) cannot: disciplines that decide at departure, token buckets, traces, reordering, and
//! delays beyond four seconds. For everything else the two agree to the nanosecond.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;

use super::line::Contents;
use super::serializer::{Bucket, Serializer};
use super::trace::{Opportunities, Trace};
use crate::ids::{NEVER, Nanos};
use crate::packet::Store;
use crate::queue::{Discipline, Dropped, Queued, Travel, Verdict};

#[derive(Debug)]
enum Pacing {
    Unlimited,
    Serial(Serializer),
    Bucket(Bucket),
    Trace(Opportunities),
}

impl Pacing {
    fn new(now: Nanos, rate: Option<NonZeroU64>, burst: u64) -> Self {
        match rate {
            None => Self::Unlimited,
            Some(rate) if burst > 0 => Self::Bucket(Bucket::new(now, rate, burst)),
            Some(rate) => Self::Serial(Serializer::new(rate)),
        }
    }

    /// From when on the packet at the head may leave the queue.
    fn opens(&self) -> Nanos {
        match self {
            Self::Trace(trace) => trace.at(),
            _ => 0,
        }
    }
}

/// A packet at the head of the queue and when it will have left.
#[derive(Clone, Copy, Debug)]
struct Sending {
    packet: Queued,
    since: Nanos,
    until: Nanos,
}

#[derive(Debug)]
pub(crate) struct Staged {
    pacing: Pacing,
    /// What waits in order of arrival; a discipline by flow keeps packets itself.
    waiting: VecDeque<Queued>,
    waiting_bytes: u64,
    sending: Option<Sending>,
    idle_since: Nanos,
    /// (arrival, order of departure, slot), the first one on top.
    travelling: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    last_arrival: Nanos,
    departures: u64,
    sent_packets: u64,
    sent_bytes: u64,
    max_waiting: u64,
    busy: Nanos,
}

impl Staged {
    pub fn new(now: Nanos, rate: Option<NonZeroU64>, burst: u64) -> Self {
        Self {
            pacing: Pacing::new(now, rate, burst),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sending: None,
            idle_since: now,
            travelling: BinaryHeap::new(),
            last_arrival: 0,
            departures: 0,
            sent_packets: 0,
            sent_bytes: 0,
            max_waiting: 0,
            busy: 0,
        }
    }

    /// Sends at the opportunities of a trace from now on.
    pub fn follow(&mut self, now: Nanos, trace: Arc<Trace>, overhead: u32) {
        self.pacing = Pacing::Trace(Opportunities::new(now, trace, overhead));
    }

    /// Takes over what is on a line. Time in the queue counts from now.
    pub fn take_over(&mut self, now: Nanos, contents: Contents, size_of: impl Fn(u32) -> u32) {
        if !contents.travelling.is_empty() {
            self.last_arrival = contents.first_arrival;
        }
        for entry in contents.travelling {
            self.travel(entry.arrival(), entry.slot);
        }
        let until = contents.unsent.first().map(|entry| entry.departure);
        for entry in contents.unsent {
            let size = size_of(entry.slot);
            self.waiting_bytes += u64::from(size);
            self.waiting.push_back(Queued {
                slot: entry.slot,
                size,
                entered: now,
                travel: Travel::InOrder(Nanos::from(entry.lag)),
            });
        }
        let Some(until) = until else {
            self.idle_since = contents.idle_since;
            return;
        };
        if let (Pacing::Serial(own), Some(mut serializer)) = (&mut self.pacing, contents.serializer)
        {
            // Leaves only the packet being sent in the serializer, with its fraction of a nanosecond.
            let rest = self.waiting.iter().skip(1).map(|packet| packet.size);
            serializer.keep_first(now, rest);
            *own = serializer;
        }
        if let Some(packet) = self.waiting.pop_front() {
            self.waiting_bytes -= u64::from(packet.size);
            self.sending = Some(Sending {
                packet,
                since: now,
                until,
            });
        }
    }

    pub fn next_event(&self, discipline: &Discipline) -> Nanos {
        let departure = match self.sending {
            Some(sending) => sending.until,
            None if self.waiting(discipline).0 == 0 => NEVER,
            None => self.pacing.opens(),
        };
        let arrival = self.travelling.peek().map_or(NEVER, |first| first.0.0);
        departure.min(arrival)
    }

    /// Has the packets that wait pass from one discipline to another, in order of arrival.
    pub fn hand_over(
        &mut self,
        from: &mut Discipline,
        to: &mut Discipline,
        flow_of: impl Fn(u32) -> u32,
    ) {
        if let Some(flows) = from.by_flow() {
            let packets = flows.drain();
            self.waiting_bytes += packets.iter().map(|it| u64::from(it.size)).sum::<u64>();
            self.waiting.extend(packets);
        }
        self.sort_in(to, flow_of);
    }

    /// Has a discipline by flow take over what waits in order of arrival.
    pub fn sort_in(&mut self, discipline: &mut Discipline, flow_of: impl Fn(u32) -> u32) {
        if let Some(flows) = discipline.by_flow() {
            for packet in self.waiting.drain(..) {
                flows.take(packet, flow_of(packet.slot));
            }
            self.waiting_bytes = 0;
        }
    }

    /// Waiting packets and their bytes. With a token bucket, the packet at the head waits too.
    pub fn waiting(&self, discipline: &Discipline) -> (u64, u64) {
        let head = match (&self.pacing, self.sending) {
            (Pacing::Bucket(_), Some(sending)) => (1, u64::from(sending.packet.size)),
            _ => (0, 0),
        };
        let kept = discipline.waiting();
        (
            self.waiting.len() as u64 + kept.0 + head.0,
            self.waiting_bytes + kept.1 + head.1,
        )
    }

    /// Since when nothing waits and nothing is being sent, if that is so.
    pub fn idle_since(&self, discipline: &Discipline) -> Option<Nanos> {
        let idle = self.sending.is_none() && self.waiting(discipline).0 == 0;
        idle.then_some(self.idle_since)
    }

    /// Whether a packet can ever leave.
    pub fn fits(&self, size: u32) -> bool {
        match &self.pacing {
            Pacing::Bucket(bucket) => bucket.holds(size),
            _ => true,
        }
    }

    /// Takes an admitted packet.
    pub fn push(&mut self, packet: Queued) {
        self.waiting_bytes += u64::from(packet.size);
        self.waiting.push_back(packet);
    }

    /// Lets leave what leaves by `now`.
    pub fn depart<B>(
        &mut self,
        now: Nanos,
        discipline: &mut Discipline,
        store: &mut Store<B>,
        dropped: &mut Dropped,
    ) {
        loop {
            if let Some(sending) = self.sending {
                if sending.until > now {
                    break;
                }
                self.sending = None;
                self.finish(sending);
            }
            if self.pacing.opens() > now {
                break;
            }
            let Some(packet) = self.release(now, discipline, store, dropped) else {
                if let Pacing::Trace(trace) = &mut self.pacing {
                    trace.pass(now);
                }
                break;
            };
            let until = match &mut self.pacing {
                Pacing::Unlimited => now,
                Pacing::Serial(serializer) => serializer.send(now, packet.size),
                Pacing::Bucket(bucket) => bucket.ready_at(now, packet.size),
                Pacing::Trace(trace) => trace.send(packet.size),
            };
            self.sending = Some(Sending {
                packet,
                since: now,
                until,
            });
        }
        self.max_waiting = self.max_waiting.max(self.waiting(discipline).0);
    }

    /// The next packet that the discipline lets leave.
    fn release<B>(
        &mut self,
        now: Nanos,
        discipline: &mut Discipline,
        store: &mut Store<B>,
        dropped: &mut Dropped,
    ) -> Option<Queued> {
        if let Some(flows) = discipline.by_flow() {
            return flows.next(now, store, dropped);
        }
        loop {
            let packet = self.waiting.pop_front()?;
            self.waiting_bytes -= u64::from(packet.size);
            let capable = store
                .packet_mut(packet.slot)
                .is_some_and(|packet| packet.ecn.capable());
            let sojourn = now - packet.entered;
            match discipline.release(now, packet.size, capable, sojourn, self.waiting_bytes) {
                Verdict::Pass => return Some(packet),
                Verdict::Mark => {
                    store.mark(packet.slot);
                    return Some(packet);
                }
                Verdict::Drop(reason) => dropped.push((packet.slot, reason)),
            }
        }
    }

    fn finish(
        &mut self,
        Sending {
            packet,
            since,
            until,
        }: Sending,
    ) {
        match &mut self.pacing {
            Pacing::Unlimited | Pacing::Trace(_) => {}
            Pacing::Serial(_) => self.busy += until - since,
            Pacing::Bucket(bucket) => {
                bucket.spend(until, packet.size);
                self.busy += bucket.duration(packet.size);
            }
        }
        self.idle_since = until;
        self.sent_packets += 1;
        self.sent_bytes += u64::from(packet.size);
        match packet.travel {
            Travel::InOrder(lag) => self.travel(until.saturating_add(lag), packet.slot),
            Travel::Ahead => self.travel_at(until, packet.slot),
        }
    }

    fn travel(&mut self, arrival: Nanos, slot: u32) {
        self.last_arrival = self.last_arrival.max(arrival);
        self.travel_at(self.last_arrival, slot);
    }

    fn travel_at(&mut self, arrival: Nanos, slot: u32) {
        self.travelling
            .push(Reverse((arrival, self.departures, slot)));
        self.departures += 1;
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

    /// Packets and bytes sent, the most that waited, and the time spent sending, since this path was taken.
    pub fn totals(&self, now: Nanos) -> (u64, u64, u64, Nanos) {
        let current = match (&self.pacing, self.sending) {
            (Pacing::Serial(_), Some(sending)) => now.saturating_sub(sending.since),
            (Pacing::Trace(trace), _) => trace.busy(now, self.sent_bytes),
            _ => 0,
        };
        (
            self.sent_packets,
            self.sent_bytes,
            self.max_waiting,
            self.busy + current,
        )
    }

    /// Re-times the packet at the head.
    pub fn change_pacing(&mut self, now: Nanos, rate: Option<NonZeroU64>, burst: u64) {
        match (&mut self.pacing, rate) {
            (Pacing::Serial(serializer), Some(rate)) if burst == 0 => {
                let sending = &mut self.sending;
                serializer.change_rate(now, rate, std::iter::empty(), |at| {
                    if let Some(sending) = sending {
                        sending.until = at;
                    }
                });
                return;
            }
            (Pacing::Bucket(bucket), Some(rate)) if burst > 0 => bucket.change(now, rate, burst),
            // A configuration with a trace has no other rate ([`crate::ChannelConfig::check`]).
            (Pacing::Trace(_), _) => return,
            _ => {
                if let (Pacing::Serial(_), Some(sending)) = (&self.pacing, &mut self.sending) {
                    self.busy += now - sending.since;
                    sending.since = now;
                }
                self.pacing = Pacing::new(now, rate, burst);
            }
        }
        if let Some(sending) = &mut self.sending {
            let size = sending.packet.size;
            sending.until = match &mut self.pacing {
                Pacing::Unlimited => now,
                Pacing::Serial(serializer) => serializer.send(now, size),
                Pacing::Bucket(bucket) => bucket.ready_at(now, size),
                Pacing::Trace(_) => sending.until,
            };
        }
    }

    /// Empties everything.
    pub fn drain(&mut self, now: Nanos, discipline: &mut Discipline) -> Vec<u32> {
        let mut slots: Vec<u32> = std::mem::take(&mut self.travelling)
            .into_sorted_vec()
            .into_iter()
            .rev()
            .map(|Reverse((_, _, slot))| slot)
            .collect();
        if let Some(sending) = self.sending.take() {
            match &mut self.pacing {
                Pacing::Serial(serializer) => {
                    self.busy += now - sending.since;
                    serializer.abandon(now);
                }
                Pacing::Trace(trace) => trace.pass(now),
                _ => {}
            }
            self.idle_since = now;
            slots.push(sending.packet.slot);
        }
        let waiting = self.waiting.drain(..).chain(discipline.clear());
        slots.extend(waiting.map(|packet| packet.slot));
        self.waiting_bytes = 0;
        self.last_arrival = 0;
        slots
    }
}

//! The general path of a channel: a queue, a sender and the packets on their way, each with events of its own.
//!
//! It carries what the [line](super::line) cannot: disciplines that decide at departure, token buckets, traces,
//! reordering, and delays beyond four seconds. For everything else the two agree to the nanosecond.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::backlog::Backlog;
use super::flight::Flight;
use super::line::Contents;
use super::serializer::{Bucket, Serializer};
use super::trace::{Opportunities, Trace};
use crate::ids::{NEVER, Nanos};
use crate::packet::Store;
use crate::queue::{Discipline, Dropped, Queued, Travel};

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
    backlog: Backlog,
    sending: Option<Sending>,
    idle_since: Nanos,
    flight: Flight,
    sent_packets: u64,
    sent_bytes: u64,
    max_waiting: u64,
    busy: Nanos,
}

impl Staged {
    pub fn new(now: Nanos, rate: Option<NonZeroU64>, burst: u64) -> Self {
        Self {
            pacing: Pacing::new(now, rate, burst),
            backlog: Backlog::default(),
            sending: None,
            idle_since: now,
            flight: Flight::default(),
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
            self.flight.follow(contents.first_arrival);
        }
        for entry in contents.travelling {
            self.flight.in_order(entry.arrival(), entry.slot);
        }
        let until = contents.unsent.first().map(|entry| entry.departure);
        for entry in contents.unsent {
            self.backlog.push(Queued {
                slot: entry.slot,
                size: size_of(entry.slot),
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
            serializer.keep_first(now, self.backlog.behind_first());
            *own = serializer;
        }
        if let Some(packet) = self.backlog.pop() {
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
        departure.min(self.flight.next_arrival())
    }

    /// As [`Backlog::hand_over`].
    pub fn hand_over(
        &mut self,
        from: &mut Discipline,
        to: &mut Discipline,
        flow_of: impl Fn(u32) -> u32,
    ) {
        self.backlog.hand_over(from, to, flow_of);
    }

    /// Drops from the head what the discipline holds no longer.
    pub fn shorten(&mut self, discipline: &Discipline, dropped: &mut Dropped) {
        let most = discipline.holds().saturating_sub(self.head().0);
        self.backlog.shorten(most, dropped);
    }

    /// As [`Backlog::sort_in`].
    pub fn sort_in(&mut self, discipline: &mut Discipline, flow_of: impl Fn(u32) -> u32) {
        self.backlog.sort_in(discipline, flow_of);
    }

    /// The packet at the head and its bytes, if it waits: with a token bucket it does.
    pub fn head(&self) -> (u64, u64) {
        match (&self.pacing, self.sending) {
            (Pacing::Bucket(_), Some(sending)) => (1, u64::from(sending.packet.size)),
            _ => (0, 0),
        }
    }

    /// Waiting packets and their bytes, the one at the head included.
    pub fn waiting(&self, discipline: &Discipline) -> (u64, u64) {
        let head = self.head();
        let waiting = self.backlog.waiting(discipline);
        (waiting.0 + head.0, waiting.1 + head.1)
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

    /// When a packet queued now would begin to be sent, if that is known.
    pub fn clear_at(&self, now: Nanos) -> Option<Nanos> {
        match &self.pacing {
            Pacing::Unlimited => Some(now),
            Pacing::Serial(serializer) => {
                Some(serializer.free_after(self.backlog.bytes()).max(now))
            }
            Pacing::Bucket(_) | Pacing::Trace(_) => None,
        }
    }

    /// Takes an admitted packet.
    pub fn push(&mut self, packet: Queued) {
        self.backlog.push(packet);
    }

    /// Sends a packet at once, whatever else there is.
    pub fn pass_by(&mut self, now: Nanos, slot: u32, size: u32, travel: Travel) {
        self.sent_packets += 1;
        self.sent_bytes += u64::from(size);
        self.flight.leave(now, slot, travel);
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
            let Some(packet) = self.backlog.release(now, discipline, store, dropped) else {
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
            Pacing::Bucket(bucket) => bucket.spend(until, packet.size),
        }
        self.idle_since = until;
        self.sent_packets += 1;
        self.sent_bytes += u64::from(packet.size);
        self.flight.leave(until, packet.slot, packet.travel);
    }

    /// Takes out a packet that has arrived by `now`.
    pub fn arrive(&mut self, now: Nanos) -> Option<u32> {
        self.flight.arrive(now)
    }

    /// Packets and bytes sent, the most that waited, and the time spent sending, since this path was taken.
    pub fn totals(&self, now: Nanos) -> (u64, u64, u64, Nanos) {
        let current = match (&self.pacing, self.sending) {
            (Pacing::Serial(_), Some(sending)) => now.saturating_sub(sending.since),
            (Pacing::Trace(trace), _) => trace.busy(now, self.sent_bytes),
            (Pacing::Bucket(bucket), _) => bucket.busy(now),
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
                match (&self.pacing, &mut self.sending) {
                    (Pacing::Serial(_), Some(sending)) => {
                        self.busy += now - sending.since;
                        sending.since = now;
                    }
                    (Pacing::Bucket(bucket), _) => self.busy += bucket.busy(now),
                    _ => {}
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
    pub fn drain(&mut self, now: Nanos) -> Vec<u32> {
        let mut slots = self.flight.drain();
        slots.extend(self.withdraw(now));
        slots
    }

    /// Takes away what has not left.
    pub fn withdraw(&mut self, now: Nanos) -> Vec<u32> {
        let mut slots = Vec::new();
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
        slots.extend(self.backlog.drain());
        slots
    }
}

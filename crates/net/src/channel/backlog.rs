//! Packets that wait until a discipline lets them leave.

use std::collections::VecDeque;

use crate::ids::Nanos;
use crate::packet::{DropReason, Store};
use crate::queue::{Discipline, Dropped, Queued, Verdict};

/// Packets in order of arrival; a discipline by flow keeps packets itself.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: VecDeque<Queued>,
    bytes: u64,
}

impl Backlog {
    /// Takes an admitted packet.
    pub fn push(&mut self, packet: Queued) {
        self.bytes += u64::from(packet.size);
        self.waiting.push_back(packet);
    }

    /// The packet that has waited longest, whatever the discipline says.
    pub fn pop(&mut self) -> Option<Queued> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    /// Drops from the head what is beyond so many packets.
    pub fn shorten(&mut self, most: u64, dropped: &mut Dropped) {
        while self.waiting.len() as u64 > most {
            let first = self.pop();
            dropped.extend(first.map(|packet| (packet.slot, DropReason::QueueFull)));
        }
    }

    /// The bytes of the packets that the discipline does not keep itself.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The lengths of all but the packet that has waited longest.
    pub fn behind_first(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.waiting.iter().skip(1).map(|packet| packet.size)
    }

    /// Packets and their bytes, those of the discipline included.
    pub fn waiting(&self, discipline: &Discipline) -> (u64, u64) {
        let kept = discipline.waiting();
        (self.waiting.len() as u64 + kept.0, self.bytes + kept.1)
    }

    /// Has the packets that wait pass from one discipline to another, in order of arrival.
    pub fn hand_over(
        &mut self,
        from: &mut Discipline,
        to: &mut Discipline,
        flow_of: impl Fn(u32) -> u32,
    ) {
        if let Some(flows) = from.keeping() {
            let packets = flows.drain();
            self.bytes += packets.iter().map(|it| u64::from(it.size)).sum::<u64>();
            self.waiting.extend(packets);
        }
        self.sort_in(to, flow_of);
    }

    /// Has a discipline by flow take over what waits in order of arrival.
    pub fn sort_in(&mut self, discipline: &mut Discipline, flow_of: impl Fn(u32) -> u32) {
        if let Some(flows) = discipline.keeping() {
            for packet in self.waiting.drain(..) {
                flows.take(packet, flow_of(packet.slot));
            }
            self.bytes = 0;
        }
    }

    /// The next packet that the discipline lets leave.
    pub fn release<B>(
        &mut self,
        now: Nanos,
        discipline: &mut Discipline,
        store: &mut Store<B>,
        dropped: &mut Dropped,
    ) -> Option<Queued> {
        if let Some(flows) = discipline.keeping() {
            return flows.next(now, store, dropped);
        }
        loop {
            let packet = self.pop()?;
            let capable = store
                .packet_mut(packet.slot)
                .is_some_and(|packet| packet.ecn.capable());
            let sojourn = now - packet.entered;
            match discipline.release(now, packet.size, capable, sojourn, self.bytes) {
                Verdict::Pass => return Some(packet),
                Verdict::Mark => {
                    store.mark(packet.slot);
                    return Some(packet);
                }
                Verdict::Drop(reason) => dropped.push((packet.slot, reason)),
            }
        }
    }

    /// Gives up all packets that the discipline does not keep itself.
    pub fn drain(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.bytes = 0;
        self.waiting.drain(..).map(|packet| packet.slot)
    }
}

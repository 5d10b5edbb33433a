//! Queues of flows, for disciplines that serve one flow after another.

use std::collections::VecDeque;

use rand::RngCore;
use rand_pcg::Pcg64Mcg;

use super::Queued;
use crate::random::mix;

/// No queue yet.
const NONE: u32 = u32::MAX;

/// One queue, first in, first out. Flows whose hashes agree share it.
#[derive(Debug, Default)]
pub(super) struct Flow<S> {
    packets: VecDeque<Queued>,
    pub bytes: u64,
    /// Bytes that it may send before the next one's turn.
    pub deficit: i64,
    /// Whether it is on a list of flows to be served.
    pub listed: bool,
    pub state: S,
}

impl<S> Flow<S> {
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Length of the packet at the head.
    pub fn first_size(&self) -> Option<u32> {
        self.packets.front().map(|packet| packet.size)
    }
}

/// Which queue a packet joins is a hash of its flow with a perturbation of the channel's own (RFC 8290 section 4.1.1). A queue is made
/// when the first packet comes for it, and is known by its number from then on.
#[derive(Debug)]
pub(super) struct Flows<S> {
    perturbation: u64,
    /// The queue's number by hash; empty before the first packet.
    numbers: Vec<u32>,
    hashes: u32,
    flows: Vec<Flow<S>>,
    packets: u64,
    bytes: u64,
}

impl<S: Default> Flows<S> {
    pub fn new(hashes: u32, rng: &mut Pcg64Mcg) -> Self {
        Self {
            perturbation: rng.next_u64(),
            numbers: Vec::new(),
            hashes,
            flows: Vec::new(),
            packets: 0,
            bytes: 0,
        }
    }

    /// Takes a packet and tells its queue.
    pub fn push(&mut self, packet: Queued, flow: u32) -> u32 {
        let number = self.number(flow);
        self.append(packet, number);
        number
    }

    /// The queue that a flow's packets join.
    pub fn number(&mut self, flow: u32) -> u32 {
        if self.numbers.is_empty() {
            self.numbers = vec![NONE; self.hashes as usize];
        }
        let hash = mix(self.perturbation ^ u64::from(flow));
        // The high half of a product scales a 32-bit hash without a division (`reciprocal_scale` of include/linux/kernel.h).
        let scaled = ((hash >> 32) * u64::from(self.hashes)) >> 32;
        let number = &mut self.numbers[scaled as usize];
        if *number == NONE {
            *number = self.flows.len() as u32;
            self.flows.push(Flow::default());
        }
        *number
    }

    /// Takes a packet into a queue.
    pub fn append(&mut self, packet: Queued, number: u32) {
        self.bytes += u64::from(packet.size);
        self.packets += 1;
        let queue = self.get(number);
        queue.bytes += u64::from(packet.size);
        queue.packets.push_back(packet);
    }

    pub fn get(&mut self, number: u32) -> &mut Flow<S> {
        &mut self.flows[number as usize]
    }

    pub fn each(&mut self) -> impl Iterator<Item = &mut Flow<S>> {
        self.flows.iter_mut()
    }

    pub fn pop_first(&mut self, number: u32) -> Option<Queued> {
        let packet = self.get(number).packets.pop_front();
        self.account(number, packet)
    }

    pub fn pop_last(&mut self, number: u32) -> Option<Queued> {
        let packet = self.get(number).packets.pop_back();
        self.account(number, packet)
    }

    fn account(&mut self, number: u32, packet: Option<Queued>) -> Option<Queued> {
        let packet = packet?;
        self.get(number).bytes -= u64::from(packet.size);
        self.bytes -= u64::from(packet.size);
        self.packets -= 1;
        Some(packet)
    }

    /// The first of the queues for which `measure` is greatest.
    pub fn longest(&self, measure: impl Fn(&Flow<S>) -> u64) -> Option<u32> {
        let mut found = None;
        let mut most = 0;
        for (number, flow) in (0u32..).zip(&self.flows) {
            let value = measure(flow);
            if value > most {
                (found, most) = (Some(number), value);
            }
        }
        found
    }

    /// Packets that wait, and their bytes.
    pub fn waiting(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    /// Forgets everything and gives the packets in order of arrival.
    pub fn drain(&mut self) -> Vec<Queued> {
        let flows = std::mem::take(&mut self.flows);
        self.numbers.clear();
        (self.packets, self.bytes) = (0, 0);
        let packets = flows.into_iter().flat_map(|flow| flow.packets);
        let mut packets: Vec<Queued> = packets.collect();
        // Stable: packets of a flow stay in order.
        packets.sort_by_key(|packet| packet.entered);
        packets
    }
}

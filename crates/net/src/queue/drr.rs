//! Deficit round robin (DRR): flows take turns by bytes.
//!
//! Service follows Shreedhar and Varghese 1995, section 3. Buffer stealing follows net/sched/sch_sfq.c (`sfq_drop`):
//! the queue with the most packets loses its last one.

use std::collections::VecDeque;

use rand_pcg::Pcg64Mcg;

use super::flows::Flows;
use super::{Dropped, MIN_QUANTUM, MOST_FLOWS, Marks, QueueConfig, QueueDiscipline, Queued};
use crate::ids::Nanos;
use crate::packet::DropReason;
use polypath_settings::model;

model! {
    "drr",
    "deficit round robin: a queue for each flow, equal shares in bytes; when full, the longest queue loses its last packet",
    "Shreedhar and Varghese 1995, Efficient Fair Queuing Using Deficit Round Robin; dropping as in net/sched/sch_sfq.c";
    /// Settings of DRR.
    DrrConfig {
        /// What a flow may send in its turn; a packet of Ethernet by default.
        quantum_bytes: u32 as Size.at_least(MIN_QUANTUM) = Integer(1514),
        /// Queues that flows are hashed to.
        flows: u32 as Integer.at_least(1).at_most(MOST_FLOWS) = Integer(1024),
        /// Most packets of all flows; beyond it the longest queue loses its last one.
        limit: u64 as Packets = Integer(127),
    }
}

#[derive(Debug)]
pub(super) struct Drr {
    config: DrrConfig,
    flows: Flows<()>,
    /// The flows with packets, in order of service.
    active: VecDeque<u32>,
}

impl Drr {
    pub fn new(config: DrrConfig, rng: &mut Pcg64Mcg) -> Self {
        Self {
            config,
            flows: Flows::new(config.flows, rng),
            active: VecDeque::new(),
        }
    }

    /// A flow without packets leaves the list, and what it did not use is lost.
    fn leave(&mut self, number: u32) {
        self.active.retain(|other| *other != number);
        self.flows.get(number).listed = false;
    }
}

impl QueueDiscipline for Drr {
    fn take(&mut self, packet: Queued, flow: u32) {
        let number = self.flows.push(packet, flow);
        let queue = self.flows.get(number);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(self.config.quantum_bytes);
            self.active.push_back(number);
        }
    }

    fn make_room(&mut self, head: u64, dropped: &mut Dropped) {
        while head + self.flows.waiting().0 > self.config.limit {
            let Some(number) = self.flows.longest(|flow| flow.len() as u64) else {
                return;
            };
            if let Some(packet) = self.flows.pop_last(number) {
                dropped.push((packet.slot, DropReason::Longest));
            }
            if self.flows.get(number).len() == 0 {
                self.leave(number);
            }
        }
    }

    /// `sfq_change`.
    fn change(
        &mut self,
        _: Nanos,
        config: &QueueConfig,
        head: u64,
        _: &mut dyn Marks,
        dropped: &mut Dropped,
    ) -> bool {
        match config {
            QueueConfig::Drr(config) if config.flows == self.config.flows => self.config = *config,
            _ => return false,
        }
        self.make_room(head, dropped);
        true
    }

    fn next(&mut self, _: Nanos, _: &mut dyn Marks, _: &mut Dropped) -> Option<Queued> {
        loop {
            let number = *self.active.front()?;
            let queue = self.flows.get(number);
            let size = queue.first_size().map_or(0, i64::from);
            if size > queue.deficit {
                queue.deficit += i64::from(self.config.quantum_bytes);
                self.active.rotate_left(1);
                continue;
            }
            queue.deficit -= size;
            let packet = self.flows.pop_first(number);
            if self.flows.get(number).len() == 0 {
                self.leave(number);
            }
            return packet;
        }
    }

    fn waiting(&self) -> (u64, u64) {
        self.flows.waiting()
    }

    fn drain(&mut self) -> Vec<Queued> {
        self.active.clear();
        self.flows.drain()
    }
}

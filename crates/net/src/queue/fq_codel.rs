//! Flow queue CoDel (FQ-CoDel, RFC 8290). If the RFC leaves a choice, this follows Linux (net/sched/sch_fq_codel.c).

use std::collections::VecDeque;

use rand_pcg::Pcg64Mcg;

use super::codel::{Control, Goal, Leaving};
use super::flows::Flows;
use super::{
    Dropped, MIN_QUANTUM, MOST_FLOWS, Marks, QueueConfig, QueueDiscipline, Queued, Verdict,
};
use crate::ids::Nanos;
use crate::packet::DropReason;
use polypath_settings::model;

const MS: Nanos = 1_000_000;

model! {
    "fq-codel",
    "a CoDel queue for each flow, served by deficit round robin, flows that do not build a queue first",
    "RFC 8290; net/sched/sch_fq_codel.c";
    /// Settings of FQ-CoDel.
    FqCodelConfig {
        /// What a flow may send in its turn; a packet of Ethernet by default.
        quantum_bytes: u32 as Size.at_least(MIN_QUANTUM) = Integer(1514),
        /// Queues that flows are hashed to.
        flows: u32 as Integer.at_least(1).at_most(MOST_FLOWS) = Integer(1024),
        /// Acceptable standing delay.
        target_ns: Nanos as Period = Integer(5 * MS),
        /// Time in which the delay must come down.
        interval_ns: Nanos as Period = Integer(100 * MS),
        /// Most packets of all flows; beyond it the longest queue loses half of its bytes.
        limit: u64 as Packets = Integer(10_240),
        /// Most packets that it loses then.
        drop_batch: u32 as Packets = Integer(64),
        /// Mark packets of ECN-capable transports instead of dropping them.
        #[serde(default)]
        ecn: bool as Boolean = Boolean(true),
    }
}

#[derive(Debug)]
pub(super) struct FqCodel {
    config: FqCodelConfig,
    goal: Goal,
    flows: Flows<Control>,
    /// Flows that have had no turn since their queue was empty, and the others, each in order of service.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
}

fn goal(config: FqCodelConfig, longest: u64) -> Goal {
    Goal {
        target: config.target_ns,
        interval: config.interval_ns,
        ecn: config.ecn,
        longest,
    }
}

impl FqCodel {
    pub fn new(config: FqCodelConfig, longest: u64, rng: &mut Pcg64Mcg) -> Self {
        Self {
            config,
            goal: goal(config, longest),
            flows: Flows::new(config.flows, rng),
            new: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    /// What CoDel lets leave of a flow (section 4.2, third paragraph).
    fn release(
        &mut self,
        now: Nanos,
        number: u32,
        marks: &mut dyn Marks,
        dropped: &mut Dropped,
    ) -> Option<Queued> {
        while let Some(packet) = self.flows.pop_first(number) {
            let leaving = Leaving {
                ecn_capable: marks.capable(packet.slot),
                sojourn: now - packet.entered,
                // Of all flows (`fq_codel_dequeue` hands `qstats.backlog` to `codel_dequeue`).
                behind: self.flows.waiting().1,
            };
            let control = &mut self.flows.get(number).state;
            match control.release(self.goal, now, leaving) {
                Verdict::Pass => return Some(packet),
                Verdict::Mark => {
                    marks.mark(packet.slot);
                    return Some(packet);
                }
                Verdict::Drop(reason) => dropped.push((packet.slot, reason)),
            }
        }
        self.flows.get(number).state.empty();
        None
    }
}

impl QueueDiscipline for FqCodel {
    /// Section 4.1: a flow that is on no list joins the new ones with a full quantum.
    fn take(&mut self, packet: Queued, flow: u32) {
        let number = self.flows.push(packet, flow);
        let queue = self.flows.get(number);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(self.config.quantum_bytes);
            self.new.push_back(number);
        }
    }

    /// Section 4.1, last paragraph, and `fq_codel_drop`: the queue with the most bytes loses half of them from its head, at most a batch,
    /// and its CoDel counts these drops.
    fn make_room(&mut self, head: u64, dropped: &mut Dropped) {
        if head + self.flows.waiting().0 <= self.config.limit {
            return;
        }
        let Some(number) = self.flows.longest(|flow| flow.bytes) else {
            return;
        };
        let half = self.flows.get(number).bytes / 2;
        let (mut bytes, mut drops) = (0, 0);
        while let Some(packet) = self.flows.pop_first(number) {
            bytes += u64::from(packet.size);
            drops += 1;
            dropped.push((packet.slot, DropReason::Longest));
            if drops >= self.config.drop_batch || bytes >= half {
                break;
            }
        }
        self.flows.get(number).state.count_drops(drops);
    }

    /// `fq_codel_change`, which has what is beyond the limit leave in its turn, to nowhere.
    fn change(
        &mut self,
        now: Nanos,
        config: &QueueConfig,
        head: u64,
        marks: &mut dyn Marks,
        dropped: &mut Dropped,
    ) -> bool {
        match config {
            QueueConfig::FqCodel(config) if config.flows == self.config.flows => {
                self.config = *config;
            }
            _ => return false,
        }
        self.goal = goal(self.config, self.goal.longest);
        while head + self.flows.waiting().0 > self.config.limit {
            let Some(packet) = self.next(now, marks, dropped) else {
                break;
            };
            dropped.push((packet.slot, DropReason::QueueFull));
        }
        true
    }

    /// Section 4.2.
    fn next(&mut self, now: Nanos, marks: &mut dyn Marks, dropped: &mut Dropped) -> Option<Queued> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = list.pop_front()?;
            let queue = self.flows.get(number);
            if queue.deficit <= 0 {
                queue.deficit += i64::from(self.config.quantum_bytes);
                self.old.push_back(number);
                continue;
            }
            if let Some(packet) = self.release(now, number, marks, dropped) {
                self.flows.get(number).deficit -= i64::from(packet.size);
                let list = if is_new { &mut self.new } else { &mut self.old };
                list.push_front(number);
                return Some(packet);
            }
            // A new flow that is empty passes through the old ones, so that it cannot starve them by coming back at once.
            if is_new && !self.old.is_empty() {
                self.old.push_back(number);
            } else {
                self.flows.get(number).listed = false;
            }
        }
    }

    fn waiting(&self) -> (u64, u64) {
        self.flows.waiting()
    }

    fn drain(&mut self) -> Vec<Queued> {
        self.new.clear();
        self.old.clear();
        self.flows.drain()
    }
}

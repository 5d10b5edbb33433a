//! Flow queue PIE: PIE (RFC 8033) for each flow in place of the CoDel of RFC 8290, as net/sched/sch_fq_pie.c has it.

use std::collections::VecDeque;

use rand::RngCore;
use rand_pcg::Pcg64Mcg;

use super::flows::Flows;
use super::pie::{Pie, PieConfig};
use super::{
    Dropped, MIN_QUANTUM, MOST_FLOWS, Marks, QueueConfig, QueueDiscipline, Queued, Verdict,
};
use crate::ids::Nanos;
use crate::packet::DropReason;
use polypath_settings::model;

const MS: Nanos = 1_000_000;
const MOST_GAIN: u64 = 1000;

model! {
    "fq-pie",
    "a queue with PIE for each flow, served by deficit round robin, flows that do not build a queue first",
    "net/sched/sch_fq_pie.c; RFC 8033; RFC 8290";
    /// Settings of FQ-PIE.
    FqPieConfig {
        /// What a flow may send in its turn; a packet of Ethernet by default.
        quantum_bytes: u32 as Size.at_least(MIN_QUANTUM) = Integer(1514),
        /// Queues that flows are hashed to.
        flows: u32 as Integer.at_least(1).at_most(MOST_FLOWS) = Integer(1024),
        /// Delay of a flow's queue that it steers to.
        target_ns: Nanos as Period = Integer(15 * MS),
        /// Time between two updates of the drop probabilities.
        tupdate_ns: Nanos as Period = Integer(15 * MS),
        /// What each second of delay beyond `target` adds to a probability at an update, before it is scaled down at low probabilities.
        alpha: f64 as Number.at_least(0).at_most(MOST_GAIN) = Number(0.125),
        /// What each second by which the delay has grown since the last update adds.
        beta: f64 as Number.at_least(0).at_most(MOST_GAIN) = Number(1.25),
        /// Most packets of all flows.
        limit: u64 as Packets = Integer(10_240),
        /// Mark packets of ECN-capable transports while the flow's probability is at most `ecn_prob`, instead of dropping them.
        #[serde(default)]
        ecn: bool as Boolean = Boolean(false),
        /// Probability above which ECN-capable packets are dropped, too.
        #[serde(default = "ten_percent")]
        ecn_prob: f64 as Share = Number(0.1),
    }
}

const fn ten_percent() -> f64 {
    0.1
}

/// What each flow's control has of the settings.
fn own(config: &FqPieConfig) -> PieConfig {
    PieConfig {
        target_ns: config.target_ns,
        tupdate_ns: config.tupdate_ns,
        alpha: config.alpha,
        beta: config.beta,
        limit: config.limit,
        ecn: config.ecn,
    }
}

#[derive(Debug)]
pub(super) struct FqPie {
    config: FqPieConfig,
    longest: u64,
    flows: Flows<Option<Pie>>,
    /// Flows that have had no turn since their queue was empty, and the others, each in order of service.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// When the first packet came: all flows are updated at the same times (`fq_pie_timer`).
    started: Option<Nanos>,
    rng: Pcg64Mcg,
}

impl FqPie {
    pub fn new(config: FqPieConfig, longest: u64, rng: &mut Pcg64Mcg) -> Self {
        Self {
            config,
            longest,
            flows: Flows::new(config.flows, rng),
            new: VecDeque::new(),
            old: VecDeque::new(),
            started: None,
            rng: Pcg64Mcg::new(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())),
        }
    }

    /// The control of a flow; one that is new has nothing to catch up with.
    fn control(&mut self, now: Nanos, number: u32) -> &mut Pie {
        let Self {
            config,
            longest,
            started,
            flows,
            ..
        } = self;
        flows.get(number).state.get_or_insert_with(|| {
            let since = now.saturating_sub(*started.get_or_insert(now));
            let next = now - since % config.tupdate_ns + config.tupdate_ns;
            Pie::new(own(config), *longest)
                .updated_at(next)
                .marking_to(config.ecn_prob)
        })
    }

    fn put(&mut self, packet: Queued, number: u32) {
        self.flows.append(packet, number);
        let queue = self.flows.get(number);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = i64::from(self.config.quantum_bytes);
            self.new.push_back(number);
        }
    }
}

impl QueueDiscipline for FqPie {
    /// `fq_pie_qdisc_enqueue`: PIE sees its flow's queue, and the limit is of all.
    fn arrive(
        &mut self,
        packet: Queued,
        flow: u32,
        head: u64,
        marks: &mut dyn Marks,
        dropped: &mut Dropped,
    ) {
        let number = self.flows.number(flow);
        let full = head + self.flows.waiting().0 >= self.config.limit;
        let backlog = self.flows.get(number).bytes;
        let now = packet.entered;
        self.control(now, number);
        let Some(control) = &mut self.flows.get(number).state else {
            return;
        };
        let capable = marks.capable(packet.slot);
        match control.admit(now, capable, full, backlog, &mut self.rng) {
            Verdict::Pass => {}
            Verdict::Mark => marks.mark(packet.slot),
            Verdict::Drop(reason) => {
                dropped.push((packet.slot, reason));
                return;
            }
        }
        self.put(packet, number);
    }

    fn take(&mut self, packet: Queued, flow: u32) {
        let number = self.flows.number(flow);
        self.control(packet.entered, number);
        self.put(packet, number);
    }

    /// A packet that does not fit was refused as it arrived.
    fn make_room(&mut self, _: u64, _: &mut Dropped) {}

    /// `fq_pie_change`, which has what is beyond the limit leave in its turn, to nowhere.
    fn change(
        &mut self,
        now: Nanos,
        config: &QueueConfig,
        head: u64,
        marks: &mut dyn Marks,
        dropped: &mut Dropped,
    ) -> bool {
        match config {
            QueueConfig::FqPie(config) if config.flows == self.config.flows => {
                self.config = *config;
            }
            _ => return false,
        }
        let settings = own(&self.config);
        for flow in self.flows.each() {
            let backlog = flow.bytes;
            if let Some(control) = &mut flow.state {
                control.change(now, settings, backlog);
                *control = control.clone().marking_to(self.config.ecn_prob);
            }
        }
        while head + self.flows.waiting().0 > self.config.limit {
            let Some(packet) = self.next(now, marks, dropped) else {
                break;
            };
            dropped.push((packet.slot, DropReason::QueueFull));
        }
        true
    }

    /// `fq_pie_qdisc_dequeue`.
    fn next(&mut self, now: Nanos, _: &mut dyn Marks, _: &mut Dropped) -> Option<Queued> {
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
            if let Some(packet) = self.flows.pop_first(number) {
                let list = if is_new { &mut self.new } else { &mut self.old };
                list.push_front(number);
                let queue = self.flows.get(number);
                queue.deficit -= i64::from(packet.size);
                let sojourn = now - packet.entered;
                if let Some(control) = &mut queue.state {
                    control.release(now, packet.size, sojourn, queue.bytes);
                }
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
        self.started = None;
        self.flows.drain()
    }
}

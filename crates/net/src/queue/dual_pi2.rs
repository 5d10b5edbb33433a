//! Dual-queue coupled PI squared (DualPI2, RFC 9332 appendix A). If the RFC leaves a choice, this follows Linux
//! (net/sched/sch_dualpi2.c): a threshold instead of a ramp for the low-latency queue, and turns by weight.

use std::collections::VecDeque;

use rand::RngCore;
use rand_pcg::Pcg64Mcg;

use super::{Dropped, Marks, QueueConfig, QueueDiscipline, Queued};
use crate::ids::Nanos;
use crate::packet::DropReason;
use crate::random::uniform;
use polypath_settings::model;

const MS: Nanos = 1_000_000;
const MOST_GAIN: u64 = 1000;
const MOST_COUPLING: u64 = 255;
/// Weights of the two queues are in millionths.
const WHOLE: i64 = 1_000_000;

model! {
    "dualpi2",
    "a low-latency queue for ECT(1) that marks early beside a classic queue, coupled so that flows of both get equal shares",
    "RFC 9332; net/sched/sch_dualpi2.c";
    /// Settings of DualPI2.
    DualPi2Config {
        /// Delay of the classic queue that it steers to.
        target_ns: Nanos as Period = Integer(15 * MS),
        /// Time between two updates of the probability.
        tupdate_ns: Nanos as Period.at_least(MS / 10) = Integer(16 * MS),
        /// What each second of delay beyond `target` adds to the probability at an update.
        alpha: f64 as Number.at_least(0).at_most(MOST_GAIN) = Number(0.16),
        /// What each second by which the delay has grown since the last update adds.
        beta: f64 as Number.at_least(0).at_most(MOST_GAIN) = Number(3.2),
        /// Delay of the low-latency queue above which each of its packets is marked.
        step_ns: Nanos as Period = Integer(MS),
        /// Only packets with which the low-latency queue is so long on arrival are marked by `step`.
        step_from: u64 as Packets = Integer(1),
        /// The low-latency queue is marked with so many times the probability whose square the classic queue has.
        coupling: u32 as Integer.at_least(1).at_most(MOST_COUPLING) = Integer(2),
        /// The least share of the link that the classic queue gets while packets wait in both.
        classic_share: f64 as Share = Number(0.1),
        /// Longest queue, of both together.
        limit: u64 as Packets = Integer(10_000),
        /// Once the low-latency queue would mark all packets, drop packets in both queues instead of letting them grow to `limit`.
        drop_overload: bool as Boolean = Boolean(true),
    }
}

/// Which of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Classic,
    LowLatency,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    packet: Queued,
    /// Whether the threshold applies to it (`apply_step`).
    step: bool,
}

#[derive(Debug, Default)]
struct Queues {
    /// Arrived, and of neither queue yet: the ECN field is looked at before the next packet leaves.
    arrived: VecDeque<Queued>,
    classic: VecDeque<Waiting>,
    low_latency: VecDeque<Waiting>,
    bytes: u64,
}

impl Queues {
    fn len(&self) -> u64 {
        (self.arrived.len() + self.classic.len() + self.low_latency.len()) as u64
    }

    /// When the packet arrived that has waited longest. The greater delay of the two queues is its (`calculate_probability`).
    fn oldest(&self) -> Option<Nanos> {
        let first = |lane: &VecDeque<Waiting>| lane.front().map(|it| it.packet.entered);
        let arrived = self.arrived.front().map(|packet| packet.entered);
        [first(&self.classic), first(&self.low_latency), arrived]
            .into_iter()
            .flatten()
            .min()
    }

    /// `dualpi2_skb_classify`, and RFC 9332 section 2.5.1.1.
    fn sort(&mut self, step_from: u64, marks: &mut dyn Marks) {
        for packet in self.arrived.drain(..) {
            if marks.low_latency(packet.slot) {
                let step = self.low_latency.len() as u64 + 1 >= step_from;
                self.low_latency.push_back(Waiting { packet, step });
            } else {
                self.classic.push_back(Waiting {
                    packet,
                    step: false,
                });
            }
        }
    }

    fn pop(&mut self, lane: Lane) -> Option<Waiting> {
        let waiting = match lane {
            Lane::Classic => self.classic.pop_front(),
            Lane::LowLatency => self.low_latency.pop_front(),
        }?;
        self.bytes -= u64::from(waiting.packet.size);
        Some(waiting)
    }
}

/// The base probability (RFC 9332 figures 2 and 6).
#[derive(Debug, Default)]
struct Control {
    probability: f64,
    /// The delay at the last update.
    delay: Nanos,
    next_update: Option<Nanos>,
}

impl Control {
    /// Makes the updates that were due by now, while nothing arrived or left. They depend on nothing else, so that they need no timer.
    fn catch_up(&mut self, config: &DualPi2Config, now: Nanos, oldest: Option<Nanos>) {
        let first = *self.next_update.get_or_insert(now + config.tupdate_ns);
        let mut at = first;
        while at <= now {
            let before = (self.probability, self.delay);
            self.update(
                config,
                oldest.map_or(0, |entered| at.saturating_sub(entered)),
            );
            at = at.saturating_add(config.tupdate_ns);
            if before == (self.probability, self.delay) && at <= now {
                // So will be all others.
                let periods = (now - at) / config.tupdate_ns + 1;
                at = at.saturating_add(periods.saturating_mul(config.tupdate_ns));
            }
        }
        self.next_update = Some(at);
    }

    /// `dualpi2_update` of figure 6, and `calculate_probability`.
    fn update(&mut self, config: &DualPi2Config, delay: Nanos) {
        let seconds = |from: Nanos, to: Nanos| (to as f64 - from as f64) / 1e9;
        let change = config.alpha * seconds(config.target_ns, delay)
            + config.beta * seconds(self.delay, delay);
        self.delay = delay;
        let most = if config.drop_overload {
            1.0
        } else {
            1.0 / f64::from(config.coupling)
        };
        self.probability = (self.probability + change).clamp(0.0, most);
    }
}

#[derive(Debug)]
pub(super) struct DualPi2 {
    config: DualPi2Config,
    /// The link's longest packet (`psched_mtu`).
    longest: u64,
    queues: Queues,
    control: Control,
    /// Whose turn it is: the low-latency queue's unless above 0 (`c_protection_credit`).
    credit: i64,
    rng: Pcg64Mcg,
}

impl DualPi2 {
    pub fn new(config: DualPi2Config, longest: u64, rng: &mut Pcg64Mcg) -> Self {
        let mut made = Self {
            config,
            longest,
            queues: Queues::default(),
            control: Control::default(),
            credit: 0,
            rng: Pcg64Mcg::new(u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())),
        };
        made.credit = made.initial_credit();
        made
    }

    fn classic_weight(&self) -> i64 {
        (self.config.classic_share * WHOLE as f64).round() as i64
    }

    /// `dualpi2_calculate_c_protection`.
    fn initial_credit(&self) -> i64 {
        self.longest as i64 * (2 * self.classic_weight() - WHOLE)
    }

    /// The queue of the next packet, and how its length changes the credit (`dequeue_packet`).
    fn turn(&self) -> Option<(Lane, i64)> {
        let (classic, low) = (&self.queues.classic, &self.queues.low_latency);
        let weight = self.classic_weight();
        match (classic.is_empty(), low.is_empty()) {
            (true, true) => None,
            (true, false) => Some((Lane::LowLatency, 0)),
            (false, true) => Some((Lane::Classic, 0)),
            (false, false) if self.credit <= 0 => Some((Lane::LowLatency, weight)),
            (false, false) => Some((Lane::Classic, weight - WHOLE)),
        }
    }

    fn roll(&mut self, probability: f64) -> bool {
        uniform(&mut self.rng) < probability
    }

    /// With the square of the probability (section 2.1, and `recur` with 2 of figure 5).
    fn roll_twice(&mut self) -> bool {
        let probability = self.control.probability;
        self.roll(probability) && self.roll(probability)
    }

    /// Marks a packet that leaves, or has it dropped: whether it is to be dropped (`must_drop`, `do_step_aqm`).
    fn drops(&mut self, now: Nanos, lane: Lane, waiting: Waiting, marks: &mut dyn Marks) -> bool {
        let slot = waiting.packet.slot;
        let coupled = self.control.probability * f64::from(self.config.coupling);
        // Less than two packets are no standing queue.
        if self.queues.bytes >= 2 * self.longest {
            let overload = coupled > 1.0;
            match lane {
                Lane::Classic => {
                    if self.roll_twice() {
                        if overload || !marks.capable(slot) {
                            return true;
                        }
                        marks.mark(slot);
                    }
                }
                Lane::LowLatency if overload => {
                    if self.config.drop_overload && self.roll_twice() {
                        return true;
                    }
                    marks.mark(slot);
                }
                Lane::LowLatency => {
                    if self.roll(coupled) {
                        marks.mark(slot);
                    }
                }
            }
        }
        if waiting.step && now - waiting.packet.entered > self.config.step_ns {
            marks.mark(slot);
        }
        false
    }
}

impl QueueDiscipline for DualPi2 {
    fn take(&mut self, packet: Queued, _: u32) {
        let oldest = self.queues.oldest();
        self.control.catch_up(&self.config, packet.entered, oldest);
        if self.queues.len() == 0 {
            // `dequeue_packet` found none.
            self.credit = self.initial_credit();
        }
        self.queues.bytes += u64::from(packet.size);
        self.queues.arrived.push_back(packet);
    }

    /// `dualpi2_enqueue_skb`: the packet that arrives is the one that does not fit.
    fn make_room(&mut self, head: u64, dropped: &mut Dropped) {
        if head + self.queues.len() > self.config.limit {
            if let Some(packet) = self.queues.arrived.pop_back() {
                self.queues.bytes -= u64::from(packet.size);
                dropped.push((packet.slot, DropReason::QueueFull));
            }
        }
    }

    /// `dualpi2_change`: what is beyond the limit goes from the head of the classic queue, then of the other.
    fn change(
        &mut self,
        now: Nanos,
        config: &QueueConfig,
        head: u64,
        marks: &mut dyn Marks,
        dropped: &mut Dropped,
    ) -> bool {
        let QueueConfig::DualPi2(config) = config else {
            return false;
        };
        let oldest = self.queues.oldest();
        self.control.catch_up(&self.config, now, oldest);
        self.queues.sort(self.config.step_from, marks);
        self.config = *config;
        self.credit = self.initial_credit();
        while head + self.queues.len() > self.config.limit {
            let first = self.queues.pop(Lane::Classic);
            let Some(waiting) = first.or_else(|| self.queues.pop(Lane::LowLatency)) else {
                break;
            };
            dropped.push((waiting.packet.slot, DropReason::QueueFull));
        }
        true
    }

    /// `dualpi2_dequeue` of figure 5, and `__dualpi2_qdisc_dequeue`.
    fn next(&mut self, now: Nanos, marks: &mut dyn Marks, dropped: &mut Dropped) -> Option<Queued> {
        let oldest = self.queues.oldest();
        self.control.catch_up(&self.config, now, oldest);
        self.queues.sort(self.config.step_from, marks);
        while let Some((lane, weight)) = self.turn() {
            let waiting = self.queues.pop(lane)?;
            if self.drops(now, lane, waiting, marks) {
                dropped.push((waiting.packet.slot, DropReason::Pi2));
                continue;
            }
            self.credit += weight * i64::from(waiting.packet.size);
            return Some(waiting.packet);
        }
        None
    }

    fn waiting(&self) -> (u64, u64) {
        (self.queues.len(), self.queues.bytes)
    }

    /// `dualpi2_reset`.
    fn drain(&mut self) -> Vec<Queued> {
        let queues = std::mem::take(&mut self.queues);
        self.control.probability = 0.0;
        self.credit = self.initial_credit();
        let sorted = queues.classic.into_iter().chain(queues.low_latency);
        let mut packets: Vec<Queued> = sorted.map(|it| it.packet).chain(queues.arrived).collect();
        packets.sort_by_key(|packet| packet.entered);
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Travel;
    use crate::random::stream;

    const CONFIG: DualPi2Config = DualPi2Config {
        target_ns: 15 * MS,
        tupdate_ns: 16 * MS,
        alpha: 0.16,
        beta: 3.2,
        step_ns: MS,
        step_from: 1,
        coupling: 2,
        classic_share: 0.1,
        limit: 10_000,
        drop_overload: true,
    };

    /// Packets with odd slots are ECT(1), those with slots that 4 divides are not ECN-capable, others ECT(0).
    #[derive(Default)]
    struct Field {
        marked: Vec<u32>,
    }

    impl Marks for Field {
        fn capable(&mut self, slot: u32) -> bool {
            slot % 4 != 0
        }

        fn low_latency(&mut self, slot: u32) -> bool {
            slot % 2 == 1
        }

        fn mark(&mut self, slot: u32) {
            self.marked.push(slot);
        }
    }

    fn queue(config: DualPi2Config) -> DualPi2 {
        DualPi2::new(config, 1500, &mut stream(1, "test", 0, "dualpi2"))
    }

    fn packet(slot: u32, entered: Nanos) -> Queued {
        Queued {
            slot,
            size: 1500,
            entered,
            travel: Travel::Ahead,
        }
    }

    /// Figure 6, lines 3 to 5, by hand: a packet that arrived at 24 ms is seen at 16, 32, 48, .. ms.
    #[test]
    fn the_probability_integrates_the_delay_and_its_growth() {
        let mut control = Control {
            next_update: Some(16 * MS),
            ..Control::default()
        };
        control.catch_up(&CONFIG, 16 * MS, None);
        assert_eq!(control.probability, 0.0);
        let mut expected = 0.0;
        let mut last = 0.0;
        for tick in 2..8 {
            control.catch_up(&CONFIG, tick * 16 * MS, Some(24 * MS));
            let delay = (16 * tick - 24) as f64 / 1e3;
            expected += 0.16 * (delay - 0.015) + 3.2 * (delay - last);
            last = delay;
            assert!(
                (control.probability - expected).abs() < 1e-12,
                "{tick}: {} {expected}",
                control.probability
            );
        }
        // 0.16 * (8 - 15) ms + 3.2 * 8 ms, then 0.16 * 9 ms + 3.2 * 16 ms.
        assert!(expected > 0.02448 + 0.05264);
    }

    #[test]
    fn catching_up_is_as_good_as_a_timer() {
        for oldest in [None, Some(0), Some(3 * MS)] {
            for periods in [1, 2, 5, 1_000, 3_000_000] {
                let start = || Control {
                    probability: 0.4,
                    delay: 20 * MS,
                    next_update: Some(16 * MS),
                };
                let (mut late, mut timed) = (start(), start());
                let end = periods * 16 * MS + 5;
                late.catch_up(&CONFIG, end, oldest);
                for period in 1..=periods.min(5_000) {
                    timed.catch_up(&CONFIG, period * 16 * MS, oldest);
                }
                assert_eq!(late.probability, timed.probability, "{oldest:?} {periods}");
                assert_eq!(late.next_update, Some((periods + 1) * 16 * MS));
            }
        }
    }

    fn rates(config: DualPi2Config, probability: f64, slot: u32) -> (f64, f64) {
        let mut queue = queue(config);
        queue.control.probability = probability;
        queue.queues.bytes = 3000;
        let lane = [Lane::Classic, Lane::LowLatency][(slot % 2) as usize];
        let mut field = Field::default();
        let waiting = Waiting {
            packet: packet(slot, 0),
            step: true,
        };
        let tries = 40_000;
        let drops = (0..tries).filter(|_| queue.drops(MS, lane, waiting, &mut field));
        let drops = drops.count() as f64 / f64::from(tries);
        (drops, field.marked.len() as f64 / f64::from(tries))
    }

    /// `p_C` is the square of the base probability and `p_CL` its multiple by `k` (section 2.1, figure 6).
    #[test]
    fn classic_packets_meet_the_square_and_others_the_multiple() {
        let near = |(drops, marks): (f64, f64), expected: (f64, f64)| {
            assert!((drops - expected.0).abs() < 0.01, "{drops} {expected:?}");
            assert!((marks - expected.1).abs() < 0.01, "{marks} {expected:?}");
        };
        near(rates(CONFIG, 0.3, 4), (0.09, 0.0));
        near(rates(CONFIG, 0.3, 2), (0.0, 0.09));
        near(rates(CONFIG, 0.3, 1), (0.0, 0.6));
        let four = DualPi2Config {
            coupling: 4,
            ..CONFIG
        };
        near(rates(four, 0.2, 1), (0.0, 0.8));
        near(rates(four, 0.2, 2), (0.0, 0.04));
        // Overload (appendix A.2): all are dropped alike, and what remains of the low-latency queue is marked.
        near(rates(CONFIG, 0.6, 4), (0.36, 0.0));
        near(rates(CONFIG, 0.6, 2), (0.36, 0.0));
        near(rates(CONFIG, 0.6, 1), (0.36, 0.64));
    }

    #[test]
    fn without_drops_on_overload_the_probability_stops_at_one_in_k() {
        let config = DualPi2Config {
            drop_overload: false,
            ..CONFIG
        };
        let mut control = Control::default();
        for delay in 0..1000 {
            control.update(&config, delay * MS);
        }
        assert_eq!(control.probability, 0.5);
    }

    #[test]
    fn one_packet_is_no_standing_queue_unless_it_waited_beyond_the_step() {
        let mut queue = queue(CONFIG);
        let mut field = Field::default();
        queue.control.probability = 0.5;
        queue.take(packet(1, 0), 0);
        assert_eq!(
            queue
                .next(MS, &mut field, &mut Vec::new())
                .map(|it| it.slot),
            Some(1)
        );
        assert!(field.marked.is_empty());
        queue.take(packet(3, 0), 0);
        queue.next(MS + 1, &mut field, &mut Vec::new());
        assert_eq!(field.marked, [3]);
        // It found none there, and from two on the step counts.
        queue.config.step_from = 2;
        queue.take(packet(5, 2 * MS), 0);
        queue.take(packet(7, 2 * MS), 0);
        queue.next(9 * MS, &mut field, &mut Vec::new());
        assert_eq!(field.marked, [3]);
        queue.next(9 * MS, &mut field, &mut Vec::new());
        assert_eq!(field.marked, [3, 7]);
    }

    /// `c_protection_wc` is 10: nine of ten bytes are of the low-latency queue while both wait, and it begins.
    #[test]
    fn the_classic_queue_keeps_its_share() {
        let mut queue = queue(CONFIG);
        let mut field = Field::default();
        for slot in 0..400 {
            queue.take(packet(slot, 0), 0);
        }
        let mut order = Vec::new();
        for _ in 0..100 {
            let packet = queue.next(0, &mut field, &mut Vec::new());
            order.push(packet.map(|it| it.slot % 2));
        }
        assert_eq!(order[0], Some(1));
        let classic = order.iter().filter(|it| **it == Some(0)).count();
        assert_eq!(classic, 10);
        // Within a lane the order stays.
        assert_eq!(
            queue.queues.classic.front().map(|it| it.packet.slot),
            Some(20)
        );
        // With none of the other kind the classic queue has it all.
        queue.queues.low_latency.clear();
        let next = queue.next(0, &mut field, &mut Vec::new());
        assert_eq!(next.map(|it| it.slot), Some(20));
    }

    #[test]
    fn the_arriving_packet_does_not_fit() {
        let mut queue = queue(DualPi2Config { limit: 3, ..CONFIG });
        let mut dropped = Vec::new();
        let mut field = Field::default();
        for slot in 0..6 {
            queue.arrive(packet(slot, 0), 0, 1, &mut field, &mut dropped);
        }
        let full = DropReason::QueueFull;
        assert_eq!(dropped, [(2, full), (3, full), (4, full), (5, full)]);
        assert_eq!(queue.waiting(), (2, 3000));
        let slots: Vec<u32> = queue.drain().iter().map(|it| it.slot).collect();
        assert_eq!(slots, [0, 1]);
    }
}

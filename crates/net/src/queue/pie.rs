//! Proportional integral controller enhanced (PIE, RFC 8033). Where the RFC leaves a choice, it follows Linux
//! (net/sched/sch_pie.c). The delay is that of the last packet to leave, and the time between departures uses up the
//! burst allowance.

use rand_pcg::Pcg64Mcg;

use super::Verdict;
use crate::ids::Nanos;
use crate::packet::DropReason;
use crate::random::uniform;
use polypath_settings::model;

const MS: Nanos = 1_000_000;
const MOST_GAIN: u64 = 1000;
/// `MAX_BURST` of RFC 8033 section 4.4.
const MAX_BURST: Nanos = 150 * MS;
/// Above this delay the probability rises in larger steps (section 5.5).
const HIGH_DELAY: Nanos = 250 * MS;

model! {
    "pie",
    "proportional integral controller enhanced: drops or marks arrivals with a probability that follows the delay and its trend",
    "RFC 8033; net/sched/sch_pie.c";
    /// Settings of PIE.
    PieConfig {
        /// Delay that it steers to.
        target_ns: Nanos as Period = Integer(15 * MS),
        /// Time between two updates of the drop probability.
        tupdate_ns: Nanos as Period = Integer(15 * MS),
        /// What each second of delay beyond `target` adds to the probability at an update, before it is scaled down at low probabilities.
        alpha: f64 as Number.at_least(0).at_most(MOST_GAIN) = Number(0.125),
        /// What each second by which the delay has grown since the last update adds.
        beta: f64 as Number.at_least(0).at_most(MOST_GAIN) = Number(1.25),
        /// Longest queue.
        limit: u64 as Packets = Integer(1000),
        /// Mark packets of ECN-capable transports while the probability is at most 10 % (section 5.1), instead of dropping them.
        #[serde(default)]
        ecn: bool as Boolean = Boolean(false),
    }
}

/// What the control knows, apart from the time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    probability: f64,
    /// Probabilities of the packets since the last drop (section 5.4).
    accumulated: f64,
    /// How long the packet waited that left last; 0 if it left nothing behind.
    delay: Nanos,
    /// The delay at the last update.
    old_delay: Nanos,
    /// What is left of the burst allowance.
    burst: Nanos,
    last_departure: Option<Nanos>,
}

const INITIAL: State = State {
    probability: 0.0,
    accumulated: 0.0,
    delay: 0,
    old_delay: 0,
    burst: MAX_BURST,
    last_departure: None,
};

#[derive(Clone, Debug)]
pub(crate) struct Pie {
    config: PieConfig,
    /// `MEAN_PKTSIZE` of section 4.1: the link's longest packet, as Linux has it (`psched_mtu`).
    longest: u64,
    /// The greatest probability at which packets are marked.
    marks_to: f64,
    state: State,
    /// When the probability is updated next; absent before the first packet.
    next_update: Option<Nanos>,
}

impl Pie {
    pub fn new(config: PieConfig, longest: u64) -> Self {
        Self {
            config,
            longest,
            marks_to: 0.1,
            state: INITIAL,
            next_update: None,
        }
    }

    pub fn marking_to(self, marks_to: f64) -> Self {
        Self { marks_to, ..self }
    }

    /// With its next update at a time.
    pub fn updated_at(self, next: Nanos) -> Self {
        Self {
            next_update: Some(next),
            ..self
        }
    }

    pub fn limit(&self) -> u64 {
        self.config.limit
    }

    /// `pie_change`: the control goes on, with the updates due by now made under the settings that they were due under.
    pub fn change(&mut self, now: Nanos, config: PieConfig, backlog: u64) {
        self.catch_up(now, backlog);
        self.config = config;
    }

    /// Forgets everything, as its packets are gone.
    pub fn reset(&mut self) {
        self.state = INITIAL;
        self.next_update = None;
    }

    /// Makes the updates that were due by now, between which `backlog` bytes waited. They depend on nothing else that changes without a
    /// packet, so that they need no timer.
    fn catch_up(&mut self, now: Nanos, backlog: u64) {
        let first = *self.next_update.get_or_insert(now + self.config.tupdate_ns);
        let mut at = first;
        while at <= now {
            let before = self.state;
            self.update(backlog);
            at = at.saturating_add(self.config.tupdate_ns);
            if self.state == before && at <= now {
                // So will be all others.
                let periods = (now - at) / self.config.tupdate_ns + 1;
                at = at.saturating_add(periods.saturating_mul(self.config.tupdate_ns));
            }
        }
        self.next_update = Some(at);
    }

    /// Section 4.2, and `pie_calculate_probability`.
    fn update(&mut self, backlog: u64) {
        let State {
            probability,
            delay,
            old_delay,
            ..
        } = self.state;
        let target = self.config.target_ns;
        let seconds = |from: Nanos, to: Nanos| (to as f64 - from as f64) / 1e9;
        let mut change = scale(probability)
            * (self.config.alpha * seconds(target, delay)
                + self.config.beta * seconds(old_delay, delay));
        // Section 5.5.
        if change > 0.02 && probability >= 0.1 {
            change = 0.02;
        }
        if delay > HIGH_DELAY {
            change += 0.02;
        }
        let mut next = (probability + change).clamp(0.0, 1.0);
        // Exponential decay while there is no congestion.
        if delay == 0 && old_delay == 0 && backlog == 0 {
            next -= next / 64.0;
        }
        self.state.probability = next;
        let low = |delay: Nanos| delay < target / 2;
        if low(delay) && low(old_delay) && next == 0.0 {
            // Section 4.4: no congestion, another burst is allowed.
            self.state.accumulated = 0.0;
            self.state.burst = MAX_BURST;
            self.state.last_departure = None;
        }
        self.state.old_delay = delay;
    }

    /// Decides on a packet that arrives; `full`: as many wait as may.
    pub fn admit(
        &mut self,
        now: Nanos,
        ecn_capable: bool,
        full: bool,
        backlog: u64,
        rng: &mut Pcg64Mcg,
    ) -> Verdict {
        self.catch_up(now, backlog);
        if full {
            self.state.accumulated = 0.0;
            return Verdict::Drop(DropReason::QueueFull);
        }
        if !self.drops_early(backlog, rng) {
            return Verdict::Pass;
        }
        if self.config.ecn && ecn_capable && self.state.probability <= self.marks_to {
            return Verdict::Mark;
        }
        self.state.accumulated = 0.0;
        Verdict::Drop(DropReason::Pie)
    }

    /// Sections 4.1 and 5.4, and `pie_drop_early`.
    fn drops_early(&mut self, backlog: u64, rng: &mut Pcg64Mcg) -> bool {
        let state = &mut self.state;
        if state.burst > 0
            || state.delay < self.config.target_ns / 2 && state.probability < 0.2
            || backlog < 2 * self.longest
        {
            return false;
        }
        if state.probability == 0.0 {
            state.accumulated = 0.0;
        } else {
            state.accumulated += state.probability;
        }
        if state.accumulated < 0.85 {
            return false;
        }
        if state.accumulated >= 8.5 {
            return true;
        }
        let drops = uniform(rng) < state.probability;
        if drops {
            state.accumulated = 0.0;
        }
        drops
    }

    /// A packet of `size` bytes leaves the queue after waiting for `sojourn`, and `behind` bytes wait behind it (`pie_process_dequeue`).
    pub fn release(&mut self, now: Nanos, size: u32, sojourn: Nanos, behind: u64) {
        let before = if sojourn > 0 { u64::from(size) } else { 0 };
        self.catch_up(now, behind + before);
        self.state.delay = if behind > 0 { sojourn } else { 0 };
        let since = self.state.last_departure.map_or(0, |last| now - last);
        self.state.last_departure = Some(now);
        self.state.burst = self.state.burst.saturating_sub(since);
    }
}

/// The gains are smaller at lower probabilities, for stability (section 5.2): by a half below 10 %, by another quarter below each of 1 %,
/// 0.1 %, .. 0.0001 %.
fn scale(probability: f64) -> f64 {
    if probability >= 0.1 {
        return 1.0;
    }
    let steps = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
    let below = steps.iter().filter(|step| probability < **step).count();
    0.5 * [
        1.0,
        1.0 / 4.0,
        1.0 / 16.0,
        1.0 / 64.0,
        1.0 / 256.0,
        1.0 / 1024.0,
    ][below]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    fn pie() -> Pie {
        let config = PieConfig {
            target_ns: 15 * MS,
            tupdate_ns: 15 * MS,
            alpha: 0.125,
            beta: 1.25,
            limit: 1000,
            ecn: true,
        };
        Pie::new(config, 1514)
    }

    #[test]
    fn the_probability_follows_the_delay_and_its_trend() {
        let mut pie = pie();
        pie.state.probability = 0.2;
        (pie.state.old_delay, pie.state.delay) = (20 * MS, 25 * MS);
        pie.update(10_000);
        // 0.125 * 10 ms + 1.25 * 5 ms (section 4.2).
        assert!((pie.state.probability - 0.2075).abs() < 1e-12);
        // A fall.
        pie.state.delay = 5 * MS;
        pie.update(10_000);
        assert!((pie.state.probability - (0.2075 - 0.00125 - 0.025)).abs() < 1e-12);
    }

    #[test]
    fn low_probabilities_change_in_smaller_steps() {
        let steps = [
            (0.1, 1.0),
            (0.09, 0.5),
            (0.009, 0.125),
            (0.0009, 0.03125),
            (9e-5, 1.0 / 128.0),
            (9e-6, 1.0 / 512.0),
            (9e-7, 1.0 / 2048.0),
        ];
        for (probability, factor) in steps {
            assert_eq!(scale(probability), factor, "{probability}");
        }
    }

    #[test]
    fn it_rises_by_no_more_than_two_points_unless_the_delay_is_very_high() {
        let rise = |old_delay, delay| {
            let mut pie = pie();
            pie.state.probability = 0.1;
            (pie.state.old_delay, pie.state.delay) = (old_delay, delay);
            pie.update(10_000);
            pie.state.probability - 0.1
        };
        assert!((rise(0, 240 * MS) - 0.02).abs() < 1e-12);
        assert!((rise(0, 260 * MS) - 0.04).abs() < 1e-12);
    }

    #[test]
    fn it_decays_while_nothing_waits_and_then_allows_another_burst() {
        let mut pie = pie();
        pie.state.probability = 0.5;
        pie.state.burst = 0;
        pie.update(0);
        // 0.5 - 0.125 * 15 ms, less a 64th.
        assert!((pie.state.probability - 0.498125 * 63.0 / 64.0).abs() < 1e-12);
        assert_eq!(pie.state.burst, 0);
        for _ in 0..1000 {
            pie.update(0);
        }
        assert_eq!((pie.state.probability, pie.state.burst), (0.0, MAX_BURST));
    }

    /// Updates made late are those that a timer would have made.
    #[test]
    fn catching_up_is_as_good_as_a_timer() {
        let loaded = || {
            let mut pie = pie();
            pie.catch_up(0, 0);
            pie.state.probability = 0.3;
            (pie.state.old_delay, pie.state.delay) = (40 * MS, 30 * MS);
            pie
        };
        for (delay, backlog) in [(0, 0), (30 * MS, 20_000), (0, 500), (400 * MS, 9_000)] {
            for periods in [1, 2, 7, 400, 100_000] {
                let (mut late, mut timed) = (loaded(), loaded());
                (late.state.delay, timed.state.delay) = (delay, delay);
                let end = periods * 15 * MS + 3;
                late.catch_up(end, backlog);
                for period in 1..=periods {
                    timed.update(backlog);
                    timed.next_update = Some((period + 1) * 15 * MS);
                }
                assert_eq!(late.state, timed.state, "{delay} {backlog} {periods}");
                assert_eq!(late.next_update, timed.next_update);
            }
        }
    }

    #[test]
    fn burst_allowance_lasts_150_ms_of_departures() {
        let mut pie = pie();
        let mut rng = stream(1, "test", 0, "pie");
        pie.state.probability = 0.9;
        let spent = (0..200).find(|ms| {
            let now = ms * MS;
            pie.release(now, 1000, 20 * MS, 50_000);
            pie.state.probability = 0.9;
            let admitted = pie.admit(now, false, false, 50_000, &mut rng);
            admitted != Verdict::Pass
        });
        // The first packet after the allowance is dropped with 90 % (accumulated: 0.9 > 0.85).
        assert!(
            spent.is_some_and(|ms| (150..155).contains(&ms)),
            "{spent:?}"
        );
    }

    #[test]
    fn no_early_drop_below_two_packets_or_with_low_delay_and_probability() {
        let mut rng = stream(1, "test", 0, "pie");
        let mut drops = |probability, delay, backlog| {
            let mut pie = pie();
            pie.state.burst = 0;
            (pie.state.probability, pie.state.delay) = (probability, delay);
            (0..100)
                .filter(|_| pie.drops_early(backlog, &mut rng))
                .count()
        };
        assert_eq!(drops(1.0, 100 * MS, 3027), 0);
        assert_eq!(drops(1.0, 100 * MS, 3028), 100);
        assert_eq!(drops(0.19, 7 * MS, 50_000), 0);
        assert!(drops(0.21, 7 * MS, 50_000) > 5);
    }

    #[test]
    fn drops_are_neither_too_close_nor_too_far_apart() {
        let mut rng = stream(1, "test", 0, "pie");
        let mut pie = pie();
        pie.state.burst = 0;
        (pie.state.probability, pie.state.delay) = (0.01, 20 * MS);
        let mut last = 0;
        let mut gaps = Vec::new();
        for packet in 1..100_000 {
            if pie.drops_early(50_000, &mut rng) {
                pie.state.accumulated = 0.0;
                gaps.push(packet - last);
                last = packet;
            }
        }
        // 0.85 / p and 8.5 / p packets (section 5.4).
        assert!(gaps.iter().all(|gap| (85..=851).contains(gap)), "{gaps:?}");
    }
}

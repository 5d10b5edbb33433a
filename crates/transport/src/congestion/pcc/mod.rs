//! PCC: a rate that climbs a utility, which is measured over intervals of about a round trip.
//!
//! `vivace` is the one of a single path, `mpcc` that of several. The rules are those of the authors' programs, whose names stand beside them.
//! For Vivace these are PCCproject/PCC-Uspace, branch NSDI-2018 (`pcc.h`, `core.cpp`), and PCCproject/PCC-Kernel, branch `vivace` (`tcp_pcc.c`).
//! For MPCC it is mpccopensource/mpcc_release (`tcp_mpcc.c`, `tcp_mpcc_loss.c`).

mod monitor;
mod step;

use std::collections::VecDeque;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Ack, CongestionControl, LostPacket, RateSample};
use crate::path::{CaState, INFINITE_SSTHRESH, Member, Path};
use crate::{MILLISECOND, Nanos, SECOND};
use monitor::{Interval, Monitor};
use step::Step;

pub(super) use step::{MEGABIT, Pace, slower_from_four, steeper};

/// What a probe adds to the rate and takes off, as a part of it (`kDelta`, `PCC_PROBING_EPS`).
const PROBE: f64 = 0.05;
/// The exponent of the rate (`kExponent`).
const EXPONENT: f64 = 0.9;
/// Packets in the least window, and in a round trip at the least rate (`pcc_set_cwnd`, `PCC_RATE_MIN_PACKETS_PER_RTT`).
const LEAST_WINDOW: f64 = 4.0;
const LEAST_PACKETS: f64 = 2.0;
/// Less of the rate than this left in an interval: something else than the rate limits it (`pcc_decide_slow_start`).
const USED: f64 = 0.9;

/// What differs between `vivace` and `mpcc`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Bytes a second in which the utility counts the rate.
    pub unit: f64,
    /// Weights of losses and of the growth of the RTT.
    pub loss: f64,
    pub latency: f64,
    /// Growth of the RTT below this is noise.
    pub noise: f64,
    /// Losses below this part do not end the start.
    pub start_loss: f64,
    /// Intervals that may fail before the start ends.
    pub attempts: u32,
    /// Halves of a round trip, and packets, that an interval lasts at least.
    pub halves: Nanos,
    pub packets: u64,
    /// The least probe in bytes a second.
    pub least_probe: f64,
    /// A change that is a larger part of the rate goes on without probes; a smaller one is followed by them.
    pub strides_from: f64,
    /// A loss of more than this part of so many packets halves the rate.
    pub brake: (f64, u64),
    /// Other paths count in the utility.
    pub couples: bool,
    pub pace: Pace,
}

/// A rate in bytes a second, and what it was worth.
#[derive(Clone, Copy, Debug)]
struct Worth {
    rate: f64,
    utility: f64,
}

/// What the next finished interval tells.
#[derive(Debug)]
enum State {
    /// Whether twice the rate is worth more than `last`.
    Start { last: Option<Worth>, attempts: u32 },
    /// In which direction utility grows: two pairs of probes.
    Probing { results: Vec<Worth> },
    /// Whether it still grows in this direction, against the last rate.
    Striding { last: Worth },
}

pub(super) struct Pcc {
    rules: Rules,
    random: Pcg64Mcg,
    monitor: Monitor,
    state: State,
    step: Step,
    /// Bytes a second around which it probes, and those that other paths published when it last began to probe.
    rate: f64,
    others: f64,
    /// Rates of intervals to come.
    plan: VecDeque<f64>,
    utility: f64,
}

impl Pcc {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            random: Pcg64Mcg::seed_from_u64(0),
            monitor: Monitor::default(),
            state: State::Start {
                last: None,
                attempts: rules.attempts,
            },
            step: Step::default(),
            rate: 0.0,
            others: 0.0,
            plan: VecDeque::new(),
            utility: 0.0,
        }
    }

    fn total(&self) -> f64 {
        self.rate + self.others
    }

    /// `utility`, `pcc_calc_utility_vivace`: a power of the rate, less what losses and a growing RTT cost. All of the connection's rate counts,
    /// and the losses and the RTT of this path.
    fn worth(&self, interval: &Interval) -> Worth {
        let starts = matches!(self.state, State::Start { .. });
        let (mut loss, mut slope) = (interval.loss(), interval.slope());
        if slope.abs() < self.rules.noise || (starts && slope < 0.0) {
            slope = 0.0;
        }
        if starts && loss < self.rules.start_loss {
            loss = 0.0;
        }
        let rate = (interval.rate + self.others) / self.rules.unit;
        let cost = self.rules.loss * loss + self.rules.latency * slope;
        Worth {
            rate: interval.rate,
            utility: rate.powf(EXPONENT) - rate * cost,
        }
    }

    /// A gradient for each unit of the rate.
    fn gradient(&self, from: Worth, to: Worth) -> f64 {
        if from.rate == to.rate {
            return 0.0;
        }
        (to.utility - from.utility) * self.rules.unit / (to.rate - from.rate)
    }

    /// `pcc_setup_intervals_probing`: two pairs, each in an order of its own.
    fn probe(&mut self, path: &mut Member) {
        if self.rules.couples {
            path.coupled = (self.rate as u64).max(1);
            self.others = others(path);
        }
        let more = (PROBE * self.total()).max(self.rules.least_probe);
        let high = self.rate + more;
        let low = if more < self.rate {
            self.rate - more
        } else {
            high / 2.0
        };
        self.monitor.disregard();
        self.plan.clear();
        for _ in 0..2 {
            let pair = if self.random.random() {
                [high, low]
            } else {
                [low, high]
            };
            self.plan.extend(pair);
        }
        self.state = State::Probing {
            results: Vec::new(),
        };
    }

    /// `pcc_decide_rate`: both pairs have to agree, and the flatter one counts.
    fn direction(&self, results: &[Worth]) -> f64 {
        let first = self.gradient(results[0], results[1]);
        let second = self.gradient(results[2], results[3]);
        if first * second > 0.0 {
            first.abs().min(second.abs()).copysign(first)
        } else {
            0.0
        }
    }

    fn change(&mut self, gradient: f64) -> f64 {
        let total = self.total();
        (self.step).take(&self.rules.pace, gradient, self.rate, total)
    }

    fn move_by(&mut self, path: &Path, change: f64) {
        let least = LEAST_PACKETS * f64::from(path.mss) * SECOND as f64 / round_trip(path) as f64;
        self.rate = (self.rate + change).max(least);
    }

    /// `onTimeout`, and where an interval lost too much: what is under way says nothing any more.
    fn halve(&mut self, path: &mut Member) {
        self.move_by(path, -self.rate / 2.0);
        self.step.restart();
        self.probe(path);
    }

    /// After the probes.
    fn decide(&mut self, path: &mut Member, results: &[Worth]) {
        let gradient = self.direction(results);
        if gradient == 0.0 {
            self.step.forget();
            self.probe(path);
            return;
        }
        let change = self.change(gradient);
        let strides = change / self.rate > self.rules.strides_from;
        self.move_by(path, change);
        if strides {
            // `pcc_setup_intervals_moving`: against the worse of the first pair.
            let worse = |a: Worth, b: Worth| if b.utility < a.utility { b } else { a };
            self.stride(worse(results[0], results[1]));
        } else {
            self.probe(path);
        }
    }

    fn stride(&mut self, last: Worth) {
        self.state = State::Striding { last };
        self.plan_one();
    }

    /// One interval at the rate as it is now decides what follows; none of those under way does.
    fn plan_one(&mut self) {
        self.monitor.disregard();
        self.plan.clear();
        self.plan.push_back(self.rate);
    }

    /// An interval is over.
    fn take(&mut self, path: &mut Member, interval: &Interval) {
        if !interval.counts {
            return;
        }
        let worth = self.worth(interval);
        self.utility = worth.utility;
        let held_back = interval.throughput(path.mss) < USED * interval.rate;
        let (brake, packets) = self.rules.brake;
        let starts = matches!(self.state, State::Start { .. });
        if interval.app_limited {
            // It says nothing of the path: the same again.
            if starts {
                self.plan_one();
            } else {
                self.probe(path);
            }
            return;
        }
        if !starts && interval.loss() > brake && interval.sent() > packets {
            self.halve(path);
            return;
        }
        match &mut self.state {
            State::Start { last, attempts } => {
                let grows = last.is_none_or(|last| worth.utility > last.utility);
                if grows && !held_back {
                    self.state = State::Start {
                        last: Some(worth),
                        attempts: self.rules.attempts,
                    };
                    self.rate *= 2.0;
                    self.plan_one();
                } else if *attempts > 0 {
                    *attempts -= 1;
                    self.plan_one();
                } else {
                    self.move_by(path, -self.rate / 2.0);
                    self.probe(path);
                }
            }
            State::Probing { results } => {
                results.push(worth);
                if results.len() == 4 {
                    let results = std::mem::take(results);
                    self.decide(path, &results);
                }
            }
            State::Striding { last } => {
                let last = *last;
                let gradient = self.gradient(last, worth);
                let went_up = worth.rate > last.rate;
                if gradient == 0.0 || (gradient > 0.0) != went_up {
                    self.turn(path, gradient);
                    return;
                }
                let change = self.change(gradient);
                let strides = change / self.rate > self.rules.strides_from;
                self.move_by(path, change);
                if strides {
                    self.stride(worth);
                } else {
                    self.probe(path);
                }
            }
        }
    }

    /// The last stride went too far.
    fn turn(&mut self, path: &mut Member, gradient: f64) {
        if gradient != 0.0 {
            let change = self.change(gradient);
            if !self.rules.couples {
                self.move_by(path, change);
            }
        }
        self.probe(path);
    }

    /// Ends the present interval where it is due.
    fn advance(&mut self, path: &Path, ack: &Ack, sample: &RateSample) {
        let due = match self.monitor.present(ack, sample, path.in_flight) {
            Some(present) if present.counts => {
                let least = self.rules.halves * round_trip(path) / 2;
                present.time >= least && present.sent >= self.rules.packets
            }
            Some(_) => !self.plan.is_empty(),
            None => true,
        };
        if due {
            // Until what was sent is acknowledged, more leaves at the rate that is known.
            let next = match self.plan.pop_front() {
                Some(rate) => (rate, true),
                None => (self.rate, false),
            };
            (self.monitor).begin(ack, sample, path.in_flight, next);
        }
    }

    /// `pcc_set_cwnd`: twice the product of rate and round trip.
    fn set(&self, path: &mut Path) {
        let rate = self.monitor.rate().unwrap_or(self.rate);
        let product = rate * round_trip(path) as f64 / SECOND as f64 / f64::from(path.mss);
        path.pacing_rate = rate as u64;
        path.cwnd = (2.0 * product).max(LEAST_WINDOW) as u32;
    }

    /// The first window each round trip, and twice that in the next.
    fn begin(&mut self, path: &mut Member) {
        let window = f64::from(path.cwnd) * f64::from(path.mss);
        self.rate = window * SECOND as f64 / round_trip(path) as f64;
        self.plan_one();
        if self.rules.couples {
            path.coupled = (self.rate as u64).max(1);
            self.others = others(path);
        }
    }
}

/// The smoothed RTT, or a millisecond before there is one (`pcc_get_rtt`).
fn round_trip(path: &Path) -> Nanos {
    if path.srtt > 0 {
        path.srtt
    } else {
        MILLISECOND
    }
}

/// What the other paths have published (`mpcc_get_others_rate`).
fn others(path: &Member) -> f64 {
    let others = path.paths.iter().enumerate();
    others
        .filter(|(index, other)| *index != path.index && other.established)
        .map(|(_, other)| other.coupled as f64)
        .sum()
}

impl CongestionControl for Pcc {
    fn paces(&self) -> bool {
        true
    }

    fn couples(&self) -> bool {
        self.rules.couples
    }

    fn weighs_losses(&self) -> bool {
        true
    }

    fn seed(&mut self, seed: u64) {
        self.random = Pcg64Mcg::seed_from_u64(seed);
    }

    fn on_established(&mut self, path: &mut Member) {
        path.ssthresh = INFINITE_SSTHRESH;
        self.begin(path);
        self.set(path);
    }

    /// A loss is worth something, and sets no window.
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        path.ssthresh
    }

    /// Never called: [`CongestionControl::control`] is.
    fn on_ack(&mut self, _path: &mut Member, _ack: &Ack) {}

    fn on_lost(&mut self, _path: &mut Member, lost: &LostPacket, _sample: &RateSample) {
        self.monitor.on_lost(lost);
    }

    fn control(&mut self, path: &mut Member, ack: &Ack, sample: &RateSample) -> bool {
        if self.rate == 0.0 {
            // A path of QUIC that is another one now.
            self.begin(path);
        }
        self.monitor.on_ack(ack, sample);
        if ack.packets > 0 {
            while let Some(interval) = self.monitor.take(ack.now, round_trip(path)) {
                self.take(path, &interval);
            }
            self.advance(path, ack, sample);
        }
        self.set(path);
        false
    }

    /// `onTimeout`.
    fn on_state(&mut self, path: &mut Member, state: CaState) {
        if state == CaState::Loss {
            self.halve(path);
        }
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        let state = match self.state {
            State::Start { .. } => 0.0,
            State::Probing { .. } => 1.0,
            State::Striding { .. } => 2.0,
        };
        vec![
            ("mode", state),
            ("rate_mbit_s", self.rate / MEGABIT),
            ("others_mbit_s", self.others / MEGABIT),
            ("utility", self.utility),
        ]
    }
}

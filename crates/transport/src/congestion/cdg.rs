//! CAIA Delay-Gradient: backs off at random, the likelier the faster the RTT rises, as in Linux (Hayes and Armitage, Networking 2011).
//!
//! Times are in microseconds.

use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Ack, CongestionControl, Restart, reno};
use crate::MICROSECOND;
use crate::path::{CaState, Member, Path};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "cdg",
    "CAIA Delay-Gradient on each path by itself: backs off at random when the RTT rises, and keeps a shadow window beside loss-based flows",
    "Hayes and Armitage, IFIP Networking 2011; Linux net/ipv4/tcp_cdg.c";
    /// Settings of CDG.
    CdgConfig {
        /// round trips over which the gradient of the RTT is summed
        window: u32 as Integer.at_least(1).at_most(256) = Integer(8),
        /// part of the window that a backoff leaves, in 1/1024
        backoff_beta: u32 as Integer.at_least(0).at_most(1024) = Integer(724),
        /// a gradient of x microseconds backs off with probability 1 - exp(-x * backoff_factor / 1e6)
        backoff_factor: u32 as Integer.at_least(0).at_most(1_000_000) = Integer(42),
        /// what ends slow start early: 0 nothing, 1 a long ACK train, 2 a rise of the delay, 3 either
        hystart_detect: u32 as Integer.at_least(0).at_most(3) = Integer(3),
        /// backoffs without effect after which only losses count; 0: any number
        use_ineff: u32 as Integer.at_least(0).at_most(65535) = Integer(5),
        /// take back after a loss what backoffs took off
        use_shadow: bool as Boolean = Boolean(true),
        /// leave the window as it is after a loss where the queue was not full
        use_tolerance: bool as Boolean = Boolean(false),
    }
}

impl Algorithm<dyn CongestionControl> for CdgConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Cdg {
            gradients: Gradients::over(self.window),
            slow_start: SlowStart::default(),
            random: Pcg64Mcg::seed_from_u64(0),
            rtt: Range::default(),
            previous: Range::default(),
            queue: Queue::Unknown,
            delayed: 0,
            end: 0,
            next_seq: 0,
            una: 0,
            shadow: 0,
            window: 0,
            backoffs: 0,
            config: self,
        })
    }
}

/// Hayes' filter of delayed ACKs forgets after so many.
const DELAYED: u32 = 5;
/// The sum of the gradients falls by this much: a backoff had an effect.
const EFFECT: i64 = -32;
/// With tolerance, changes of the gradient below half of this are none.
const SMALL: i64 = 64;

/// RTTs, or their changes. Both 0: no sample.
#[derive(Clone, Copy, Default, PartialEq)]
struct Range {
    min: i64,
    max: i64,
}

impl Range {
    fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl std::ops::Sub for Range {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            min: self.min - other.min,
            max: self.max - other.max,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Queue {
    Unknown,
    NotFull,
    Full,
    /// The window is being reduced for its gradient.
    BackedOff,
}

/// The last changes of the RTT from round trip to round trip, and their sums. A window of one keeps none.
struct Gradients {
    last: Vec<Range>,
    sum: Range,
    tail: usize,
    filled: bool,
}

impl Gradients {
    fn over(window: u32) -> Self {
        Self {
            last: vec![Range::default(); window as usize],
            sum: Range::default(),
            tail: 0,
            filled: false,
        }
    }

    fn forget(&mut self) {
        *self = Self::over(self.last.len() as u32);
    }

    /// The sums with one more, and the gradient as if the window were full of those that there are (`tcp_cdg_grad`).
    fn add(&mut self, change: Range) -> (Range, i64) {
        let window = self.last.len();
        if window > 1 {
            let oldest = std::mem::replace(&mut self.last[self.tail], change);
            let more = change - oldest;
            self.sum.min += more.min;
            self.sum.max += more.max;
            self.tail = (self.tail + 1) % window;
        } else {
            self.sum = change;
        }
        let sum = self.sum;
        let mut gradient = if sum.min > 0 { sum.min } else { sum.max };
        if !self.filled {
            if self.tail == 0 {
                self.filled = true;
            } else {
                gradient = gradient * window as i64 / self.tail as i64;
            }
        }
        (sum, gradient)
    }
}

/// HyStart as CDG has it: with any window, and trains of ACKs only while the window limits the sender (`tcp_cdg_hystart_update`).
#[derive(Default)]
struct SlowStart {
    least: i64,
    /// Of the ACK train: None before its first.
    last_ack: Option<u64>,
    begin: u64,
    samples: u32,
}

impl SlowStart {
    const ACK_DELTA: u64 = 3_000;
    const LEAST_DELAY: i64 = 125;
    const ENOUGH_SAMPLES: u32 = 8;

    fn look(&mut self, path: &mut Path, ack: &Ack, rtt: Range, detect: u32) {
        if self.least == 0 || (rtt.min > 0 && rtt.min < self.least) {
            self.least = rtt.min;
        }
        if self.least == 0 {
            return;
        }
        let train = detect & 1 != 0 && self.train_is_long(ack);
        if train || (detect & 2 != 0 && self.delay_rose(rtt)) {
            path.ssthresh = path.cwnd;
        }
    }

    fn train_is_long(&mut self, ack: &Ack) -> bool {
        let now = ack.now / MICROSECOND;
        match self.last_ack {
            Some(last) if ack.cwnd_limited => {
                if now >= last + Self::ACK_DELTA {
                    return false;
                }
                self.last_ack = Some(now);
                let one_way = (self.least / 2).max(Self::LEAST_DELAY) as u64;
                now > self.begin + one_way
            }
            _ => {
                self.last_ack = Some(now);
                self.begin = now;
                false
            }
        }
    }

    fn delay_rose(&mut self, rtt: Range) -> bool {
        if self.samples < Self::ENOUGH_SAMPLES {
            self.samples += 1;
            return false;
        }
        rtt.min > (self.least + self.least / 8).max(Self::LEAST_DELAY)
    }

    fn begin_round(&mut self) {
        self.last_ack = None;
        self.samples = 0;
    }
}

struct Cdg {
    config: CdgConfig,
    random: Pcg64Mcg,
    gradients: Gradients,
    slow_start: SlowStart,
    /// Of the present round trip and the one before.
    rtt: Range,
    previous: Range,
    queue: Queue,
    /// ACKs of several packets that are still to be offset by one of a single packet, which may have been delayed.
    delayed: u32,
    /// Where the round trip ends; as of the last ACK, the next sequence number to be sent and the lowest unacknowledged one.
    end: u64,
    next_seq: u64,
    una: u64,
    /// The window without backoffs.
    shadow: u32,
    /// The window after the last acknowledgement: that before idleness shrank it.
    window: u32,
    /// Backoffs since one had an effect.
    backoffs: u32,
}

impl Cdg {
    /// `tcp_cdg_grad`
    fn gradient(&mut self) -> i64 {
        let (sum, gradient) = self.gradients.add(self.rtt - self.previous);
        if sum.min <= EFFECT || sum.max <= EFFECT {
            self.backoffs = 0;
        }
        if self.config.use_tolerance {
            let (min, max) = (rounded(sum.min, SMALL), rounded(sum.max, SMALL));
            if min > 0 && max <= 0 {
                self.queue = Queue::Full;
            } else if (min > 0 && max > 0) || max < 0 {
                self.queue = Queue::NotFull;
            }
        }
        gradient
    }

    /// `tcp_cdg_backoff`: whether the window is to be reduced for a gradient.
    fn backs_off(&mut self, gradient: i64, window: u32) -> bool {
        let millionths = gradient as u64 * u64::from(self.config.backoff_factor);
        if u64::from(self.random.next_u32()) <= negative_exponential(millionths) {
            return false;
        }
        let most = self.config.use_ineff;
        if most > 0 {
            self.backoffs += 1;
            if self.backoffs > most {
                return false;
            }
        }
        self.shadow = self.shadow.max(window);
        self.queue = Queue::BackedOff;
        true
    }

    /// `tcp_cdg_cong_avoid`
    fn avoid(&mut self, path: &mut Member, ack: &Ack) {
        let detect = self.config.hystart_detect;
        if path.in_slow_start() && detect > 0 {
            self.slow_start.look(path, ack, self.rtt, detect);
        }
        if ack.una > self.end && !self.rtt.is_empty() {
            let gradient = if self.previous.is_empty() {
                0
            } else {
                self.gradient()
            };
            self.begin_round();
            self.slow_start.begin_round();
            if gradient > 0 && self.backs_off(gradient, path.cwnd) {
                path.state = CaState::Cwr;
                return;
            }
        }
        if !ack.cwnd_limited {
            self.shadow = self.shadow.min(path.cwnd);
            return;
        }
        let before = path.cwnd;
        reno::avoid(path, ack);
        self.shadow = self.shadow.saturating_add(path.cwnd - before);
    }

    fn begin_round(&mut self) {
        self.end = self.next_seq;
        self.previous = std::mem::take(&mut self.rtt);
    }
}

/// The whole number nearest to `x / divisor`, halves away from zero.
fn rounded(x: i64, divisor: i64) -> i64 {
    (x + x.signum() * (divisor / 2)) / divisor
}

/// exp(-x / 10^6) of 2^32 - 1 (`nexp_u32`): eight bits by the tangent, each further bit by a power of exp(-0.000256).
fn negative_exponential(x: u64) -> u64 {
    /// exp(-0.000256) of 2^64.
    const STEP: u64 = 18_442_022_311_638_014_244;
    /// From where nothing is left.
    const END: u64 = 1 << 24;
    if x >= END {
        return 0;
    }
    let most = u64::from(u32::MAX);
    let mut left = most - (x & 0xff) * most / 1_000_000;
    let (mut bits, mut power) = (x >> 8, STEP);
    while bits > 0 {
        if bits & 1 != 0 {
            left = times(left, power);
        }
        power = times(power, power);
        bits >>= 1;
    }
    left
}

/// `a` times a fraction of 2^64.
fn times(a: u64, fraction: u64) -> u64 {
    ((u128::from(a) * u128::from(fraction)) >> 64) as u64
}

impl CongestionControl for Cdg {
    fn draws(&self) -> bool {
        true
    }

    fn seed(&mut self, seed: u64) {
        self.random = Pcg64Mcg::seed_from_u64(seed);
    }

    fn on_established(&mut self, path: &mut Member) {
        self.shadow = path.cwnd;
        self.window = path.cwnd;
    }

    /// `tcp_cdg_ssthresh`
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        let window = path.cwnd;
        if self.queue == Queue::BackedOff {
            let left = (u64::from(window) * u64::from(self.config.backoff_beta)) >> 10;
            return (left as u32).max(2);
        }
        if self.queue == Queue::NotFull && self.config.use_tolerance {
            return window;
        }
        self.shadow = (self.shadow / 2).min(window);
        let shadow = if self.config.use_shadow {
            self.shadow
        } else {
            0
        };
        (window / 2).max(shadow).max(2)
    }

    /// `tcp_cdg_acked`, with Hayes' filter of delayed ACKs where nothing is out of order, which includes no end of an episode.
    fn on_sample(&mut self, path: &mut Member, ack: &Ack) {
        self.next_seq = ack.next_seq;
        let advanced = std::mem::replace(&mut self.una, ack.una) < ack.una;
        let rtt = ack.rtt.map_or(0, |rtt| (rtt / MICROSECOND) as i64);
        if rtt == 0 {
            return;
        }
        if path.state == CaState::Open && advanced {
            if ack.packets == 1 && self.delayed > 0 {
                self.rtt.min = self.rtt.min.min(rtt);
                self.delayed -= 1;
                return;
            }
            if ack.packets > 1 && self.delayed < DELAYED {
                self.delayed += 1;
            }
        }
        if self.rtt.min == 0 || rtt < self.rtt.min {
            self.rtt.min = rtt;
        }
        self.rtt.max = self.rtt.max.max(rtt);
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        self.avoid(path, ack);
        self.window = path.cwnd;
    }

    fn on_reduced(&mut self, _path: &mut Member) {
        self.queue = Queue::Unknown;
        self.begin_round();
    }

    /// `tcp_cdg_cwnd_event`
    fn on_restart(&mut self, _path: &mut Member, restart: &Restart) {
        if !restart.outdated {
            return;
        }
        self.gradients.forget();
        self.slow_start = SlowStart::default();
        (self.rtt, self.previous) = (Range::default(), Range::default());
        self.queue = Queue::Unknown;
        (self.delayed, self.backoffs) = (0, 0);
        (self.end, self.next_seq) = (restart.next_seq, restart.next_seq);
        self.shadow = self.window;
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("shadow_packets", f64::from(self.shadow)),
            ("backoffs", f64::from(self.backoffs)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_that_of_the_library() {
        for x in (0..=100_000).chain((0..1 << 24).step_by(997)) {
            let exact = (x as f64 * -1e-6).exp() * f64::from(u32::MAX);
            let error = (negative_exponential(x) as f64 - exact).abs();
            assert!(error < 200.0, "{x}: {error}");
        }
        assert_eq!(negative_exponential(0), u64::from(u32::MAX));
        assert_eq!(negative_exponential(1 << 24), 0);
    }

    #[test]
    fn quotients_are_rounded_away_from_zero() {
        let given = [-96, -95, -33, -32, -31, 0, 31, 32, 95, 96];
        let wanted = [-2, -1, -1, -1, 0, 0, 0, 1, 1, 2];
        assert_eq!(given.map(|x| rounded(x, 64)), wanted);
    }
}

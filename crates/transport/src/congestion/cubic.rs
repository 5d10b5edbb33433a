//! CUBIC with HyStart (RFC 9438, RFC 9406's predecessor as in Linux).

use super::hystart::HyStart;
use super::hystart_plus::HyStartPlus;
use super::{Ack, CongestionControl, Restart, additive_increase, slow_start};
use crate::path::{CaState, Member};
use crate::{MICROSECOND, MILLISECOND};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "cubic",
    "CUBIC on each path by itself, with HyStart; Linux's default",
    "RFC 9438; Ha and Rhee 2011 (HyStart); Linux net/ipv4/tcp_cubic.c; RFC 8511, RFC 9406";
    /// Settings of CUBIC.
    CubicConfig {
        /// leave slow start when the delay rises or the ACK train grows long
        hystart: bool as Boolean = Boolean(true),
        /// release bandwidth when the window peak falls (RFC 9438 section 4.7)
        fast_convergence: bool as Boolean = Boolean(true),
        /// after a mark (ECN) leave 85 % of the window instead of 70 % (RFC 8511)
        abe: bool as Boolean = Boolean(false),
        /// slow down slow start while the delay rises (HyStart++, RFC 9406), in place of `hystart`
        hystart_plus: bool as Boolean = Boolean(false),
    }
}

impl Algorithm<dyn CongestionControl> for CubicConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Cubic {
            hystart: self.hystart && !self.hystart_plus,
            fast_convergence: self.fast_convergence,
            abe: self.abe,
            slow_start_plus: self.hystart_plus.then(Box::default),
            ..Cubic::default()
        })
    }
}

/// Multiplicative decrease in 1/1024: RFC 9438's 0.7, in the unit in which Linux computes.
const BETA: u32 = 717;
const ONE: u32 = 1024;
/// What remains after a mark: RFC 8511 section 3.1's 0.85.
const BETA_ECN: (u64, u64) = (17, 20);
/// Packets to acknowledge for one packet more of Reno's window, in eighths of the window (RFC 9438 section 4.3's 1/alpha, cut to an eighth).
const RENO: u32 = 8 * (ONE + BETA) / 3 / (ONE - BETA);
/// The constant C of the cubic function (RFC 9438 section 5): 0.4 packets per second cubed, in 1/1024.
const C: u64 = 410;
/// The cubic function's time is in 1/1024 s; Linux's clock ticks in milliseconds (HZ = 1000).
const TIME_BITS: u32 = 10;
/// A computation of the window holds for this long, in milliseconds.
const HOLDS: u64 = 1000 / 32;

/// Windows are whole packets, as in Linux: near the plateau the rest that rounding takes or gives decides whether the window grows.
#[derive(Default)]
struct Cubic {
    hystart: bool,
    fast_convergence: bool,
    abe: bool,
    slow_start_plus: Option<Box<HyStartPlus>>,
    /// W_max: window before the last reduction.
    last_max: u32,
    origin: u32,
    /// K in 1/1024 s (RFC 9438 section 4.2).
    k: u64,
    /// In milliseconds, as `last_time`.
    epoch_start: Option<u64>,
    /// Window and time of the last computation.
    last_cwnd: u32,
    last_time: u64,
    /// Packets to acknowledge for one packet more.
    per_packet: u32,
    /// The window that Reno would have (RFC 9438 section 4.3) and the packets counted towards its growth.
    reno_cwnd: u32,
    reno_acked: u32,
    /// The least round trip so far, in microseconds.
    delay_min: u64,
    slow_start: HyStart,
}

impl Cubic {
    fn update(&mut self, cwnd: u32, acked: u32, now: u64) {
        self.reno_acked += acked;
        if self.last_cwnd == cwnd && now - self.last_time <= HOLDS {
            return;
        }
        if self.epoch_start.is_none() || now != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = now;
            let target = self.target(cwnd, acked, now);
            let per_packet = match target.checked_sub(cwnd) {
                None | Some(0) => 100 * cwnd,
                Some(more) => cwnd / more,
            };
            // Before the first loss the window grows by at least 5 % a round trip.
            let most = if self.last_max == 0 { 20 } else { u32::MAX };
            self.per_packet = per_packet.min(most);
        }
        let per_reno = (cwnd * RENO) >> 3;
        while self.reno_acked > per_reno {
            self.reno_acked -= per_reno;
            self.reno_cwnd += 1;
        }
        if self.reno_cwnd > cwnd {
            self.per_packet = self.per_packet.min(cwnd / (self.reno_cwnd - cwnd));
        }
        self.per_packet = self.per_packet.max(2);
    }

    /// The window that the cubic function wants a round trip from now (RFC 9438 section 4.2).
    fn target(&mut self, cwnd: u32, acked: u32, now: u64) -> u32 {
        let start = *self.epoch_start.get_or_insert_with(|| {
            self.reno_acked = acked;
            self.reno_cwnd = cwnd;
            self.origin = self.last_max.max(cwnd);
            self.k = cube_root((u64::from(self.origin - cwnd) << (4 * TIME_BITS)) / C);
            now
        });
        let ahead = self.delay_min.div_ceil(1000);
        let t = ((now - start + ahead) << TIME_BITS) / 1000;
        let distance = u128::from(t.abs_diff(self.k));
        let change = (u128::from(C) * distance.pow(3)) >> (4 * TIME_BITS);
        let change = u32::try_from(change).unwrap_or(u32::MAX);
        if t < self.k {
            self.origin.saturating_sub(change)
        } else {
            self.origin.saturating_add(change)
        }
    }
}

/// The largest whole number whose cube is not above `x`.
fn cube_root(x: u64) -> u64 {
    let mut root = (x as f64).cbrt() as u64;
    while u128::from(root).pow(3) > u128::from(x) {
        root -= 1;
    }
    while u128::from(root + 1).pow(3) <= u128::from(x) {
        root += 1;
    }
    root
}

impl CongestionControl for Cubic {
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        let cwnd = path.cwnd;
        self.epoch_start = None;
        let part =
            |of: u32, whole: u32| (u64::from(cwnd) * u64::from(of) / u64::from(whole)) as u32;
        self.last_max = if cwnd < self.last_max && self.fast_convergence {
            part(ONE + BETA, 2 * ONE)
        } else {
            cwnd
        };
        part(BETA, ONE).max(2)
    }

    fn on_sample(&mut self, path: &mut Member, ack: &Ack) {
        let now = ack.now / MILLISECOND;
        // An epoch that idleness moved forward still began in the past.
        self.epoch_start = self.epoch_start.map(|start| start.min(now));
        let Some(rtt) = ack.rtt else { return };
        // Samples right after a reduction still see the queue that caused it.
        if self.epoch_start.is_some_and(|start| now - start < 1000) {
            return;
        }
        let rtt = (rtt / MICROSECOND).max(1);
        if self.delay_min == 0 || rtt < self.delay_min {
            self.delay_min = rtt;
        }
        if self.hystart && path.in_slow_start() {
            (self.slow_start).on_sample(path, ack, rtt, self.delay_min);
        }
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.packets;
        if path.in_slow_start() {
            acked = match &mut self.slow_start_plus {
                Some(plus) => plus.grow(path, ack),
                None => slow_start(path, acked),
            };
            if acked == 0 {
                return;
            }
        }
        self.update(path.cwnd, acked, ack.now / MILLISECOND);
        additive_increase(path, self.per_packet, acked);
    }

    fn on_state(&mut self, path: &mut Member, state: CaState) {
        if self.abe && state == CaState::Cwr {
            let left = u64::from(path.cwnd) * BETA_ECN.0 / BETA_ECN.1;
            path.ssthresh = (left as u32).max(2);
        }
        if state == CaState::Loss {
            *self = Self {
                hystart: self.hystart,
                fast_convergence: self.fast_convergence,
                abe: self.abe,
                slow_start_plus: self.slow_start_plus.take(),
                slow_start: HyStart::after_timeout(),
                ..Self::default()
            };
        }
    }

    fn on_restart(&mut self, _path: &mut Member, restart: &Restart) {
        if let Some(start) = &mut self.epoch_start {
            *start += restart.idle / MILLISECOND;
        }
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("last_max_packets", f64::from(self.last_max)),
            ("k_s", self.k as f64 / f64::from(ONE)),
            ("delay_min_ms", self.delay_min as f64 / 1e3),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_root_is_exact_next_to_every_cube() {
        for root in (0..2_000).chain([12_345, 1 << 20, 2_642_244]) {
            let cube: u64 = u64::pow(root, 3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 1), root.max(u64::from(root == 0)));
            assert_eq!(cube_root(cube.saturating_sub(1)), root.saturating_sub(1));
        }
        assert_eq!(cube_root(u64::MAX), 2_642_245);
    }
}

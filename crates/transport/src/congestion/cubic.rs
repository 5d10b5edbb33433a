//! CUBIC with HyStart (RFC 9438, RFC 9406's predecessor as in Linux).

use super::{Ack, CongestionControl, CongestionEntry, additive_increase, slow_start};
use crate::path::{CaState, Path};
use crate::registry::Parameter;
use crate::{MILLISECOND, Nanos, SECOND};

pub(super) const ENTRY: CongestionEntry = CongestionEntry {
    name: "cubic",
    description: "CUBIC on each path by itself, with HyStart; Linux's default",
    source: "RFC 9438; Ha and Rhee 2011 (HyStart); Linux net/ipv4/tcp_cubic.c",
    parameters: || {
        vec![
            Parameter::boolean(
                "hystart",
                true,
                "leave slow start when the delay rises or the ACK train grows long",
            ),
            Parameter::boolean(
                "fast_convergence",
                true,
                "release bandwidth when the window peak falls (RFC 9438 section 4.7)",
            ),
        ]
    },
    make: |parameters| {
        Box::new(Cubic {
            hystart: parameters.boolean("hystart"),
            fast_convergence: parameters.boolean("fast_convergence"),
            ..Cubic::default()
        })
    },
};

/// Multiplicative decrease: Linux's 717/1024 for RFC 9438's 0.7.
const BETA: f64 = 717.0 / 1024.0;
/// The constant C of the cubic function (RFC 9438 section 5), in packets per second cubed.
const C: f64 = 0.4;

#[derive(Default)]
struct Cubic {
    hystart: bool,
    fast_convergence: bool,
    /// W_max: window before the last reduction.
    last_max: f64,
    origin: f64,
    /// K in seconds (RFC 9438 section 4.2).
    k: f64,
    epoch_start: Option<Nanos>,
    /// Window and time of the last computation.
    last_cwnd: u32,
    last_time: Nanos,
    /// Packets to acknowledge for one packet more.
    per_packet: u32,
    /// The window that Reno would have (RFC 9438 section 4.3) and the packets counted towards its growth.
    reno_cwnd: f64,
    reno_acked: f64,
    delay_min: Nanos,
    round: Round,
}

/// HyStart's view of the present round trip.
#[derive(Default)]
struct Round {
    found: bool,
    end_seq: u64,
    start: Nanos,
    last_ack: Nanos,
    rtt: Nanos,
    samples: u32,
}

/// HyStart's constants in Linux.
const LOW_WINDOW: u32 = 16;
const ACK_DELTA: Nanos = 2 * MILLISECOND;
const MIN_SAMPLES: u32 = 8;
const DELAY_MIN: Nanos = 4 * MILLISECOND;
const DELAY_MAX: Nanos = 16 * MILLISECOND;

impl Cubic {
    fn update(&mut self, cwnd: u32, acked: u32, now: Nanos) {
        self.reno_acked += f64::from(acked);
        if self.last_cwnd == cwnd
            && self.epoch_start.is_some()
            && now - self.last_time <= SECOND / 32
        {
            return;
        }
        let window = f64::from(cwnd);
        let same_instant = self.epoch_start.is_some() && now == self.last_time;
        if !same_instant {
            self.last_cwnd = cwnd;
            self.last_time = now;
            let start = *self.epoch_start.get_or_insert_with(|| {
                self.reno_acked = f64::from(acked);
                self.reno_cwnd = window;
                if self.last_max <= window {
                    self.k = 0.0;
                    self.origin = window;
                } else {
                    self.k = ((self.last_max - window) / C).cbrt();
                    self.origin = self.last_max;
                }
                now
            });
            let t = (now + self.delay_min - start) as f64 / SECOND as f64;
            let target = self.origin + C * (t - self.k).powi(3);
            let per_packet = if target > window {
                window / (target - window)
            } else {
                100.0 * window
            };
            // Before the first loss the window grows by at least 5 % a round trip.
            self.per_packet = if self.last_max == 0.0 {
                per_packet.min(20.0)
            } else {
                per_packet
            } as u32;
        }
        let per_reno = window * (1.0 + BETA) / (3.0 * (1.0 - BETA));
        while self.reno_acked > per_reno {
            self.reno_acked -= per_reno;
            self.reno_cwnd += 1.0;
        }
        if self.reno_cwnd > window {
            self.per_packet = self
                .per_packet
                .min((window / (self.reno_cwnd - window)) as u32);
        }
        self.per_packet = self.per_packet.max(2);
    }

    fn look_for_exit(&mut self, path: &mut Path, ack: &Ack, rtt: Nanos) {
        let round = &mut self.round;
        if ack.una > round.end_seq {
            *round = Round {
                found: round.found,
                end_seq: ack.next_seq,
                start: ack.now,
                last_ack: ack.now,
                rtt: Nanos::MAX,
                samples: 0,
            };
        }
        if round.found || !path.in_slow_start() || path.cwnd < LOW_WINDOW {
            return;
        }
        if ack.now - round.last_ack <= ACK_DELTA {
            round.last_ack = ack.now;
            // Without pacing half the minimum delay is the longest train that fits the path.
            round.found |= ack.now - round.start > self.delay_min / 2;
        }
        round.rtt = round.rtt.min(rtt);
        if round.samples < MIN_SAMPLES {
            round.samples += 1;
        } else {
            round.found |=
                round.rtt > self.delay_min + (self.delay_min / 8).clamp(DELAY_MIN, DELAY_MAX);
        }
        if round.found {
            path.ssthresh = path.cwnd;
        }
    }
}

impl CongestionControl for Cubic {
    fn ssthresh(&mut self, paths: &mut [Path], me: usize) -> u32 {
        let cwnd = paths[me].cwnd;
        let window = f64::from(cwnd);
        self.epoch_start = None;
        self.last_max = if window < self.last_max && self.fast_convergence {
            window * (1.0 + BETA) / 2.0
        } else {
            window
        };
        ((window * BETA) as u32).max(2)
    }

    fn on_sample(&mut self, paths: &mut [Path], me: usize, ack: &Ack) {
        // An epoch that idleness moved forward still began in the past.
        self.epoch_start = self.epoch_start.map(|start| start.min(ack.now));
        let Some(rtt) = ack.rtt else { return };
        // Samples right after a reduction still see the queue that caused it.
        if self
            .epoch_start
            .is_some_and(|start| ack.now - start < SECOND)
        {
            return;
        }
        if self.delay_min == 0 || rtt < self.delay_min {
            self.delay_min = rtt;
        }
        if self.hystart {
            self.look_for_exit(&mut paths[me], ack, rtt);
        }
    }

    fn on_ack(&mut self, paths: &mut [Path], me: usize, ack: &Ack) {
        if !ack.cwnd_limited {
            return;
        }
        let path = &mut paths[me];
        let mut acked = ack.packets;
        if path.in_slow_start() {
            acked = slow_start(path, acked);
            if acked == 0 {
                return;
            }
        }
        self.update(path.cwnd, acked, ack.now);
        additive_increase(path, self.per_packet, acked);
    }

    fn on_state(&mut self, _paths: &mut [Path], _me: usize, state: CaState) {
        if state == CaState::Loss {
            *self = Self {
                hystart: self.hystart,
                fast_convergence: self.fast_convergence,
                ..Self::default()
            };
        }
    }

    fn on_restart(&mut self, _paths: &mut [Path], _me: usize, idle: Nanos) {
        if let Some(start) = &mut self.epoch_start {
            *start += idle;
        }
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("last_max_packets", self.last_max),
            ("k_s", self.k),
            ("delay_min_ms", self.delay_min as f64 / 1e6),
        ]
    }
}

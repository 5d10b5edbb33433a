//! Linked increases (RFC 6356).

use super::{Ack, CongestionControl, CongestionEntry, reno, slow_start};
use crate::path::{CaState, Path};
use crate::registry::Parameter;

pub(super) const ENTRY: CongestionEntry = CongestionEntry {
    name: "lia",
    description: "Linked increases: coupled additive increase, halving on loss",
    source: "RFC 6356 section 3; variant mptcp.org: net/mptcp/mptcp_coupled.c",
    parameters: || {
        vec![Parameter::choice(
            "variant",
            &["rfc", "mptcp.org"],
            "the specification or the out-of-tree kernel's integer arithmetic",
        )]
    },
    make: |parameters| match parameters.text("variant") {
        "rfc" => Box::new(Lia { credit: 0.0 }),
        _ => Box::new(Kernel::default()),
    },
};

/// RFC 6356 section 3, in packets: each acknowledged packet adds `min(alpha / cwnd_total, 1 / cwnd_i)`.
struct Lia {
    /// Increase not yet turned into a whole packet.
    credit: f64,
}

/// `alpha / cwnd_total` = max(w/rtt^2) / (sum w/rtt)^2 over the established paths (RFC 6356 section 4, equation 2).
fn increase(paths: &[Path]) -> f64 {
    let mut best = 0.0_f64;
    let mut rate = 0.0;
    for path in paths
        .iter()
        .filter(|path| path.established && path.srtt > 0)
    {
        let (window, rtt) = (f64::from(path.cwnd), path.srtt as f64);
        let speed = window / rtt;
        best = best.max(speed / rtt);
        rate += speed;
    }
    if rate > 0.0 {
        best / (rate * rate)
    } else {
        f64::INFINITY
    }
}

impl CongestionControl for Lia {
    fn on_ack(&mut self, paths: &mut [Path], me: usize, ack: &Ack) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.packets;
        if paths[me].in_slow_start() {
            acked = slow_start(&mut paths[me], acked);
            if acked == 0 {
                return;
            }
        }
        let alone = 1.0 / f64::from(paths[me].cwnd);
        self.credit += f64::from(acked) * increase(paths).min(alone);
        if self.credit >= 1.0 {
            self.credit -= 1.0;
            paths[me].cwnd += 1;
        }
    }

    fn on_state(&mut self, _paths: &mut [Path], _me: usize, state: CaState) {
        if state >= CaState::Cwr {
            self.credit = 0.0;
        }
    }
}

/// The kernel's arithmetic: alpha as a fixed-point number of 12 bits, recomputed only when the window grew or a loss came.
#[derive(Default)]
struct Kernel {
    alpha: u64,
    stale: bool,
}

const ALPHA_SCALE: u32 = 12;

impl Kernel {
    fn recompute(&mut self, paths: &[Path]) {
        self.stale = false;
        let usable = || {
            paths
                .iter()
                .filter(|path| path.established && path.srtt > 0)
        };
        // `max(w / rtt^2)`, compared as cross products so that nothing is divided.
        let Some(best) = usable().reduce(|best, path| {
            let (rtt, best_rtt) = (u128::from(path.srtt / 1000), u128::from(best.srtt / 1000));
            if u128::from(path.cwnd) * best_rtt * best_rtt >= u128::from(best.cwnd) * rtt * rtt {
                path
            } else {
                best
            }
        }) else {
            self.alpha = 1;
            return;
        };
        let sum: u64 = usable()
            .map(|path| {
                (u64::from(path.cwnd) << 10) * (best.srtt / 1000) / (path.srtt / 1000).max(1)
            })
            .sum();
        let squared = u128::from(sum) * u128::from(sum);
        self.alpha = (u128::from(best.cwnd) << 32)
            .checked_div(squared)
            .map_or(1, |alpha| alpha.max(1) as u64);
    }
}

impl CongestionControl for Kernel {
    fn on_established(&mut self, _paths: &mut [Path], _me: usize) {
        self.stale = true;
    }

    fn on_ack(&mut self, paths: &mut [Path], me: usize, ack: &Ack) {
        if !ack.cwnd_limited {
            return;
        }
        if paths[me].in_slow_start() {
            slow_start(&mut paths[me], ack.packets);
            self.recompute(paths);
            return;
        }
        if paths.iter().filter(|path| path.established).count() <= 1 {
            return reno::avoid(&mut paths[me], ack);
        }
        if self.stale || self.alpha == 0 {
            self.recompute(paths);
        }
        let threshold = ((1u64 << ALPHA_SCALE) / self.alpha).max(u64::from(paths[me].cwnd));
        // The counter is compared before it is raised, so that an increase takes one packet more than the threshold.
        for _ in 0..ack.packets {
            if u64::from(paths[me].cwnd_count) >= threshold {
                paths[me].cwnd += 1;
                paths[me].cwnd_count = 0;
                self.recompute(paths);
            } else {
                paths[me].cwnd_count += 1;
            }
        }
    }

    fn on_state(&mut self, _paths: &mut [Path], _me: usize, state: CaState) {
        if matches!(state, CaState::Recovery | CaState::Loss) {
            self.stale = true;
        }
    }
}

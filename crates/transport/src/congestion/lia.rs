//! Linked increases (RFC 6356).

use super::linked::{self, Credit};
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
        "rfc" => Box::new(Lia::default()),
        _ => Box::new(Kernel::default()),
    },
};

/// RFC 6356 section 3, in packets: each acknowledged packet adds `min(alpha / cwnd_total, 1 / cwnd_i)`.
#[derive(Default)]
struct Lia {
    credit: Credit,
}

/// `alpha / cwnd_total` = max(w/rtt^2) / (sum w/rtt)^2 over the established paths (RFC 6356 section 4, equation 2).
fn increase(paths: &[Path]) -> f64 {
    let (mut best, mut total) = (0.0, 0.0);
    for path in linked::usable(paths) {
        let rate = linked::rate(path);
        best = f64::max(best, rate / path.srtt as f64);
        total += rate;
    }
    if total > 0.0 {
        best / (total * total)
    } else {
        f64::INFINITY
    }
}

impl CongestionControl for Lia {
    fn on_ack(&mut self, paths: &mut [Path], me: usize, ack: &Ack) {
        self.credit.avoid(paths, me, ack, |paths| {
            increase(paths).min(1.0 / f64::from(paths[me].cwnd))
        });
    }

    fn on_state(&mut self, _paths: &mut [Path], _me: usize, state: CaState) {
        if state >= CaState::Cwr {
            self.credit.clear();
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
        // `max(w / rtt^2)`, compared as cross products so that nothing is divided.
        let Some(best) = linked::usable(paths).reduce(|best, path| {
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
        let sum: u64 = linked::usable(paths)
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
        if !linked::several(paths) {
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

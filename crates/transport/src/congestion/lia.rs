//! Linked increases (RFC 6356).

use super::linked::{self, Credit};
use super::{Ack, CongestionControl, CongestionEntry, reno, slow_start};
use crate::path::{CaState, Member, Path};
use crate::registry::Parameter;

pub(super) const ENTRY: CongestionEntry = CongestionEntry {
    name: "lia",
    description: "Linked increases: coupled additive increase, halving on loss",
    source: "RFC 6356 section 3; variant mptcp.org: net/mptcp/mptcp_coupled.c",
    parameters: || {
        vec![Parameter::choice(
            "variant",
            &["rfc", "mptcp.org"],
            "the specification or the out-of-tree kernel (integer arithmetic, a counter of ACKs rather than of packets)",
        )]
    },
    make: |parameters| match parameters.text("variant") {
        "rfc" => Box::new(Lia::default()),
        _ => Box::new(Kernel),
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
        let srtt = linked::srtt(path);
        let rate = f64::from(linked::window(path)) / srtt;
        let slope = rate / srtt;
        if slope > best {
            best = slope;
        }
        total += rate;
    }
    if total > 0.0 {
        best / (total * total)
    } else {
        f64::INFINITY
    }
}

impl CongestionControl for Lia {
    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        self.credit.avoid(path, ack, |path| {
            increase(path.paths).min(1.0 / f64::from(path.cwnd))
        });
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        if state >= CaState::Cwr {
            self.credit.clear();
        }
    }
}

/// The kernel's arithmetic: one alpha for the connection, a fixed-point number of 12 bits, computed again only in slow start, when a window has
/// grown and when a path has changed its state. The counter takes one step per acknowledgement, of however many packets.
struct Kernel;

const ALPHA_SCALE: u32 = 12;

impl Kernel {
    fn recompute(paths: &mut [Path]) {
        let alpha = Self::alpha(paths);
        for path in paths {
            path.linked_alpha = alpha;
        }
    }

    fn alpha(paths: &[Path]) -> u64 {
        if !linked::several(paths) {
            return 1;
        }
        // `max(w / rtt^2)`, compared as cross products so that nothing is divided.
        let Some(best) = linked::usable(paths).reduce(|best, path| {
            let (rtt, best_rtt) = (u128::from(path.srtt / 1000), u128::from(best.srtt / 1000));
            if u128::from(path.cwnd) * best_rtt * best_rtt >= u128::from(best.cwnd) * rtt * rtt {
                path
            } else {
                best
            }
        }) else {
            return 1;
        };
        let sum: u64 = linked::usable(paths)
            .map(|path| {
                (u64::from(path.cwnd) << 10) * (best.srtt / 1000) / (path.srtt / 1000).max(1)
            })
            .sum();
        let squared = u128::from(sum) * u128::from(sum);
        (u128::from(best.cwnd) << 32)
            .checked_div(squared)
            .map_or(1, |alpha| alpha.max(1) as u64)
    }
}

impl CongestionControl for Kernel {
    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if !path.multipath {
            return reno::avoid(path, ack);
        }
        if !ack.cwnd_limited {
            return;
        }
        if path.in_slow_start() {
            slow_start(path, ack.packets);
            return Self::recompute(path.paths);
        }
        if path.linked_alpha == 0 {
            Self::recompute(path.paths);
        }
        let mut threshold = u64::from(path.cwnd);
        if linked::several(path.paths) {
            threshold = threshold.max((1 << ALPHA_SCALE) / path.linked_alpha);
        }
        if linked::count_ack(path, threshold) {
            Self::recompute(path.paths);
        }
    }

    fn on_state(&mut self, path: &mut Member, _state: CaState) {
        for path in path.paths.iter_mut() {
            path.linked_alpha = 0;
        }
    }
}

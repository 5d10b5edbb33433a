//! Opportunistic linked increases (draft-khalili-mptcp-congestion-control-05).

use super::{Ack, CongestionControl, CongestionEntry, reno, slow_start};
use crate::path::{CaState, Path};
use crate::registry::Parameter;

pub(super) const ENTRY: CongestionEntry = CongestionEntry {
    name: "olia",
    description: "Opportunistic linked increases: like LIA, and moves traffic to the paths that lose least",
    source: "draft-khalili-mptcp-congestion-control-05; variant mptcp.org: net/mptcp/mptcp_olia.c",
    parameters: || {
        vec![Parameter::choice(
            "variant",
            &["draft", "mptcp.org"],
            "the draft (window floor of one packet with several subflows) or the out-of-tree kernel (integer steps, floor of two)",
        )]
    },
    make: |parameters| {
        Box::new(Olia {
            kernel: parameters.text("variant") == "mptcp.org",
            ..Olia::default()
        })
    },
};

/// Scale of the kernel's increase counter.
const SCALE: f64 = 1024.0;

#[derive(Default)]
struct Olia {
    kernel: bool,
    /// Path sequence numbers at the last loss but one, at the last loss, and now.
    loss1: u64,
    loss2: u64,
    loss3: u64,
    /// Increase not yet turned into a whole packet; a counter in units of 1/1024 packet in the kernel's variant.
    credit: f64,
}

impl Olia {
    /// l_r: bytes acknowledged between the last two losses or since the last, whichever is more.
    fn between(&self) -> u64 {
        (self.loss3 - self.loss2).max(self.loss2 - self.loss1)
    }

    /// alpha_r (draft section 3.2) given each path's l_r.
    fn alpha(paths: &[Path], me: usize) -> f64 {
        let usable = |path: &&Path| path.established && path.srtt > 0;
        let count = paths.iter().filter(usable).count() as f64;
        let largest = paths
            .iter()
            .filter(usable)
            .map(|path| path.cwnd)
            .max()
            .unwrap_or(0);
        let quality =
            |path: &Path| path.between_losses as f64 / (path.srtt as f64 * path.srtt as f64);
        let best = paths.iter().filter(usable).map(quality).fold(0.0, f64::max);
        let is_best = |path: &Path| quality(path) >= best;
        let collected = |path: &Path| is_best(path) && path.cwnd < largest;
        let best_not_largest = paths
            .iter()
            .filter(usable)
            .filter(|path| collected(path))
            .count() as f64;
        if best_not_largest == 0.0 {
            return 0.0;
        }
        let own = &paths[me];
        if collected(own) {
            1.0 / (count * best_not_largest)
        } else if own.cwnd == largest {
            let largest_count = paths
                .iter()
                .filter(usable)
                .filter(|path| path.cwnd == largest)
                .count() as f64;
            -1.0 / (count * largest_count)
        } else {
            0.0
        }
    }

    /// `(w_r / rtt_r^2) / (sum w_p / rtt_p)^2`, the coupled part of the increase.
    fn coupled(paths: &[Path], me: usize) -> f64 {
        let rate: f64 = paths
            .iter()
            .filter(|path| path.established && path.srtt > 0)
            .map(|path| f64::from(path.cwnd) / path.srtt as f64)
            .sum();
        let rtt = paths[me].srtt as f64;
        if rate > 0.0 && rtt > 0.0 {
            f64::from(paths[me].cwnd) / (rtt * rtt) / (rate * rate)
        } else {
            0.0
        }
    }
}

impl CongestionControl for Olia {
    fn ssthresh(&mut self, paths: &mut [Path], me: usize) -> u32 {
        let several = paths.iter().filter(|path| path.established).count() > 1;
        let floor = if several && !self.kernel { 1 } else { 2 };
        (paths[me].cwnd / 2).max(floor)
    }

    fn on_sample(&mut self, paths: &mut [Path], me: usize, ack: &Ack) {
        self.loss3 = ack.una;
        paths[me].between_losses = self.between();
    }

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
        if paths.iter().filter(|path| path.established).count() <= 1 {
            return reno::avoid(
                &mut paths[me],
                &Ack {
                    packets: acked,
                    ..*ack
                },
            );
        }
        let step = Self::coupled(paths, me) + Self::alpha(paths, me) / f64::from(paths[me].cwnd);
        let path = &mut paths[me];
        if self.kernel {
            self.credit += f64::from(acked) * (step * SCALE).trunc();
            if self.credit >= SCALE - 1.0 {
                path.cwnd += 1;
                self.credit = 0.0;
            } else if self.credit <= 1.0 - SCALE {
                path.cwnd = (path.cwnd - 1).max(1);
                self.credit = 0.0;
            }
        } else {
            self.credit += f64::from(acked) * step;
            if self.credit >= 1.0 {
                self.credit -= 1.0;
                path.cwnd += 1;
            } else if self.credit <= -1.0 {
                self.credit += 1.0;
                path.cwnd = (path.cwnd - 1).max(1);
            }
        }
    }

    fn on_state(&mut self, _paths: &mut [Path], _me: usize, state: CaState) {
        if state >= CaState::Cwr && self.loss3 != self.loss2 {
            self.loss1 = self.loss2;
            self.loss2 = self.loss3;
        }
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("between_losses_bytes", self.between() as f64),
            ("credit_packets", self.credit),
        ]
    }
}

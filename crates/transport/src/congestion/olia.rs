//! Opportunistic linked increases (draft-khalili-mptcp-congestion-control-05).
//!
//! The draft leaves slow start as TCP defines it (RFC 5681: below ssthresh), and so does the kernel's file. A negative
//! alpha may take something off a window at its threshold. The next acknowledgement then gives it back. So only growth
//! since the last loss can be taken away.

use super::linked::{self, Credit};
use super::{Ack, CongestionControl, reno, slow_start};
use crate::path::{CaState, Member, Path};
use polypath_settings::{Algorithm, algorithm, choice};

algorithm! {
    "olia",
    "Opportunistic linked increases: like LIA, and moves traffic to the paths that lose least",
    "draft-khalili-mptcp-congestion-control-05; variant mptcp.org: net/mptcp/mptcp_olia.c";
    /// Settings of OLIA.
    OliaConfig {
        /// the draft (window floor of one packet with several subflows) or the out-of-tree kernel (an integer step for each acknowledgement,
        /// floor of two)
        variant: Variant as Text = Text("draft"),
    }
}

choice! {
    /// Whose OLIA it is.
    Variant {
        Draft = "draft",
        Kernel = "mptcp.org",
    }
}

impl Algorithm<dyn CongestionControl> for OliaConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Olia {
            kernel: self.variant == Variant::Kernel,
            ..Olia::default()
        })
    }
}

/// Scale of the kernel's increase counter.
const SCALE: f64 = 1024.0;

#[derive(Default)]
struct Olia {
    kernel: bool,
    /// Bytes that the path had acknowledged at the last loss but one, at the last loss, and now.
    loss1: u64,
    loss2: u64,
    loss3: u64,
    credit: Credit,
    /// The kernel's increase counter, in units of 1/1024 packet.
    counter: f64,
}

impl Olia {
    /// l_r: bytes acknowledged between the last two losses or since the last, whichever is more.
    fn between(&self) -> u64 {
        (self.loss3 - self.loss2).max(self.loss2 - self.loss1)
    }

    /// The window of a path; in the out-of-tree kernel the threshold during recovery, even where it is the larger.
    fn window(&self, path: &Path) -> u32 {
        if self.kernel && path.state == CaState::Recovery {
            path.ssthresh
        } else {
            linked::window(path)
        }
    }

    /// alpha_r (draft section 3.2) given each path's l_r.
    fn alpha(&self, path: &Member) -> f64 {
        let count = linked::usable(path.paths).count() as f64;
        let windows = || linked::usable(path.paths).map(|path| self.window(path));
        let largest = windows().max().unwrap_or(0);
        let quality =
            |path: &Path| path.between_losses as f64 / (path.srtt as f64 * path.srtt as f64);
        let best = linked::usable(path.paths).map(quality).fold(0.0, f64::max);
        let collected = |path: &Path| quality(path) >= best && self.window(path) < largest;
        let best_not_largest = linked::usable(path.paths)
            .filter(|path| collected(path))
            .count();
        if best_not_largest == 0 {
            0.0
        } else if collected(path) {
            1.0 / (count * best_not_largest as f64)
        } else if self.window(path) == largest {
            let largest_count = windows().filter(|&window| window == largest).count();
            -1.0 / (count * largest_count as f64)
        } else {
            0.0
        }
    }

    /// `(w_r / rtt_r^2) / (sum w_p / rtt_p)^2`, the coupled part of the increase.
    fn coupled(&self, path: &Member) -> f64 {
        let rate: f64 = linked::usable(path.paths)
            .map(|path| f64::from(self.window(path)) / path.srtt as f64)
            .sum();
        let rtt = path.srtt as f64;
        if rate > 0.0 && rtt > 0.0 {
            f64::from(path.cwnd) / (rtt * rtt) / (rate * rate)
        } else {
            0.0
        }
    }

    fn step(&self, path: &Member) -> f64 {
        self.coupled(path) + self.alpha(path) / f64::from(path.cwnd)
    }

    /// The kernel's counter of 10 bits: one step an acknowledgement, of however many packets, whose rest is dropped.
    fn count(&mut self, path: &mut Member, ack: &Ack) {
        if path.in_slow_start() {
            slow_start(path, ack.packets);
            return;
        }
        self.counter += (self.step(path) * SCALE).trunc();
        if self.counter >= SCALE - 1.0 {
            path.cwnd += 1;
            self.counter = 0.0;
        } else if self.counter <= 1.0 - SCALE {
            path.cwnd = (path.cwnd - 1).max(1);
            self.counter = 0.0;
        }
    }
}

impl CongestionControl for Olia {
    fn couples(&self) -> bool {
        true
    }

    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        let floor = if self.kernel {
            2
        } else {
            linked::floor(path.paths)
        };
        (path.cwnd / 2).max(floor)
    }

    /// On a path that has moved, too: what its former way carried does not count.
    fn on_established(&mut self, path: &mut Member) {
        (self.loss1, self.loss2, self.loss3) = (path.acked, path.acked, path.acked);
        path.between_losses = 0;
    }

    fn on_sample(&mut self, path: &mut Member, _ack: &Ack) {
        self.loss3 = path.acked;
        path.between_losses = self.between();
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        let coupled = if self.kernel {
            path.multipath
        } else {
            linked::several(path.paths)
        };
        if !coupled {
            reno::avoid(path, ack);
        } else if !self.kernel {
            let mut credit = std::mem::take(&mut self.credit);
            credit.avoid(path, ack, |path| self.step(path));
            self.credit = credit;
        } else if ack.cwnd_limited {
            self.count(path, ack);
        }
    }

    fn on_state(&mut self, path: &mut Member, state: CaState) {
        self.loss3 = path.acked;
        if state >= CaState::Cwr && self.loss3 != self.loss2 {
            self.loss1 = self.loss2;
            self.loss2 = self.loss3;
        }
        path.between_losses = self.between();
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("between_losses_bytes", self.between() as f64),
            (
                "credit_packets",
                self.credit.packets() + self.counter / SCALE,
            ),
        ]
    }
}

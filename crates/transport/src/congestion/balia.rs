//! Balanced linked adaptation (draft-walid-mptcp-congestion-control-04).

use super::linked::{self, Credit};
use super::{Ack, CongestionControl, reno, slow_start};
use crate::path::{CaState, Member, Path};
use polypath_settings::{Algorithm, algorithm, choice};

algorithm! {
    "balia",
    "Balanced linked adaptation: between LIA's responsiveness and OLIA's friendliness",
    "draft-walid-mptcp-congestion-control-04; Peng et al., ToN 24(1) 2016; variant mptcp.org: net/mptcp/mptcp_balia.c";
    /// Settings of BALIA.
    BaliaConfig {
        /// the draft or the out-of-tree kernel (whole-numbered alpha, increase and decrease fixed when the window last changed, a counter of ACKs
        /// rather than of packets)
        variant: Variant as Text = Text("draft"),
    }
}

choice! {
    /// Whose BALIA it is.
    Variant {
        Draft = "draft",
        Kernel = "mptcp.org",
    }
}

impl Algorithm<dyn CongestionControl> for BaliaConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        match self.variant {
            Variant::Draft => Box::new(Balia::default()),
            Variant::Kernel => Box::new(Kernel::default()),
        }
    }
}

/// With x = w / rtt and alpha_r = max(x) / x_r, each acknowledged packet adds `x_r / (rtt_r (sum x)^2) * (1 + alpha_r)/2 * (4 + alpha_r)/5`
/// and a loss takes `w_r / 2 * min(alpha_r, 1.5)` off (section 3).
#[derive(Default)]
struct Balia {
    credit: Credit,
}

fn alpha(path: &Member) -> f64 {
    let best = linked::usable(path.paths)
        .map(linked::rate)
        .fold(0.0, f64::max);
    if best > 0.0 && path.srtt > 0 {
        (best / linked::rate(path)).max(1.0)
    } else {
        1.0
    }
}

/// Most that a loss takes off, in halves of the window.
const LARGEST_CUT: f64 = 1.5;

impl CongestionControl for Balia {
    fn couples(&self) -> bool {
        true
    }

    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        let window = f64::from(path.cwnd);
        let left = window - window / 2.0 * alpha(path).min(LARGEST_CUT);
        (left as u32).max(linked::floor(path.paths))
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        self.credit.avoid(path, ack, |path| {
            let total = linked::total_rate(path.paths);
            if total == 0.0 || path.srtt == 0 {
                return 1.0 / f64::from(path.cwnd);
            }
            let alpha = alpha(path);
            let linked = linked::rate(path) / (path.srtt as f64 * total * total);
            linked * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
        });
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        if state >= CaState::Cwr {
            self.credit.clear();
        }
    }
}

/// The kernel's arithmetic: rates in bytes a second, scaled down when they are large, and a whole-numbered alpha.
#[derive(Default)]
struct Kernel {
    /// ACKs that enlarge the window by one packet.
    per_increase: u64,
    /// Packets that the next loss takes off.
    cut: u64,
    /// Recovery has not ended since it began.
    reducing: bool,
}

/// Rates above 2^25 bytes a second are shifted by 5 bits until they are not.
const LARGEST_RATE: u64 = 1 << 25;
const RATE_SHIFT: u32 = 5;

impl Kernel {
    fn recompute(&mut self, path: &Member) {
        (self.per_increase, self.cut) = (0, 0);
        let own = path;
        if !linked::several(path.paths) || !own.established || own.srtt == 0 {
            return;
        }
        let mss = u64::from(own.mss);
        let rate = |path: &Path| mss * u64::from(path.cwnd) * 8_000_000 / (path.srtt / 125).max(1);
        let mut largest = linked::usable(path.paths).map(rate).max().unwrap_or(0);
        let unscaled = rate(own);
        if unscaled == 0 {
            return;
        }
        let alpha = largest / unscaled;
        let mut shift = 0;
        while largest > LARGEST_RATE {
            largest >>= RATE_SHIFT;
            shift += RATE_SHIFT;
        }
        let sum: u64 = linked::usable(path.paths)
            .map(|path| rate(path) >> shift)
            .sum();
        let own_rate = unscaled >> shift;
        let window = u64::from(own.cwnd);
        let sum = u128::from(sum);
        let share = sum * sum * 10 / u128::from(own_rate + largest).max(1);
        let per_increase = share * u128::from(window) / u128::from(4 * own_rate + largest).max(1);
        self.per_increase = if per_increase == 0 {
            window
        } else {
            per_increase as u64
        };
        let halves = if alpha >= 2 { 3 } else { 2 };
        self.cut = (window / 2) * halves / 2;
    }
}

impl CongestionControl for Kernel {
    fn couples(&self) -> bool {
        true
    }

    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        if linked::several(path.paths) {
            path.cwnd.saturating_sub(self.cut as u32).max(1)
        } else {
            (path.cwnd / 2).max(2)
        }
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if !path.multipath {
            return reno::avoid(path, ack);
        }
        if !ack.cwnd_limited {
            return;
        }
        if path.in_slow_start() {
            slow_start(path, ack.packets);
            return self.recompute(path);
        }
        let threshold = if linked::several(path.paths) {
            self.per_increase
        } else {
            u64::from(path.cwnd)
        };
        if linked::count_ack(path, threshold) {
            self.recompute(path);
        }
    }

    fn on_state(&mut self, path: &mut Member, state: CaState) {
        let ended = self.reducing && state < CaState::Cwr;
        self.reducing = state >= CaState::Cwr;
        if ended || state == CaState::Loss {
            self.recompute(path);
        }
    }
}

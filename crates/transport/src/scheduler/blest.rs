//! BLEST: blocking estimation.

use polypath_settings::{Algorithm, algorithm, choice};

use super::patience::{self, Patience};
use super::rescue::{self, Help, Rescuer};
use super::{Blocked, Decision, Scheduler, View, fastest, lowest_rtt};
use crate::Nanos;
use crate::path::{INFINITE_SSTHRESH, Path};

algorithm! {
    "blest",
    "Lowest RTT, but leaves a slow path idle where its segment would block the send window; repeats and penalises when blocked \
     (M1, M2) in variant mptcp.org only",
    "Ferlin et al., IFIP Networking 2016; variant mptcp.org: net/mptcp/mptcp_blest.c";
    /// Settings of BLEST.
    BlestConfig {
        /// how the fast path's bytes are estimated; mptcp.org also repeats and penalises as default does
        variant: Variant as Text = Text("paper"),
        /// first value of the correction factor; left out: 1.0, in variant mptcp.org 1.2
        lambda: Option<f64> as Number.within(0.5, 2.0) = Absent(()),
        ..patience: Patience = patience::PREFERRING,
        ..help: Help = rescue::AS_VARIANT
    }
}

choice! {
    /// Whose BLEST it is.
    Variant {
        Paper = "paper",
        Kernel = "mptcp.org",
    }
}

impl Algorithm<dyn Scheduler> for BlestConfig {
    fn make(self) -> Box<dyn Scheduler> {
        let kernel = self.variant == Variant::Kernel;
        Box::new(Blest {
            kernel,
            patience: self.patience,
            help: self.help.or(kernel),
            lambda: self.lambda.unwrap_or(if kernel { 1.2 } else { 1.0 }),
            adapted_at: 0,
            blocked: false,
            extremes: Vec::new(),
        })
    }
}

/// Bounds and steps of the correction factor in the kernel.
const KERNEL_RANGE: (f64, f64) = (1.0, 1.3);
const KERNEL_RAISE: f64 = 0.04;
const KERNEL_LOWER: f64 = 0.01;
/// Step in the paper, for each blocking; 0.001 to 0.02 were tried there.
const PAPER_STEP: f64 = 0.01;

struct Blest {
    kernel: bool,
    patience: Patience,
    help: Help,
    /// Corrects the estimate: more when the window blocked all the same.
    lambda: f64,
    adapted_at: Nanos,
    blocked: bool,
    /// Smallest and largest smoothed RTT of each path so far.
    extremes: Vec<(Nanos, Nanos)>,
}

impl Blest {
    fn observe(&mut self, paths: &[Path]) {
        self.extremes.resize(paths.len(), (Nanos::MAX, 0));
        for (extreme, path) in self
            .extremes
            .iter_mut()
            .zip(paths)
            .filter(|(_, path)| path.srtt > 0)
        {
            *extreme = (extreme.0.min(path.srtt), extreme.1.max(path.srtt));
        }
    }

    /// Once a round trip the factor follows what happened since.
    fn adapt(&mut self, now: Nanos, rtt: Nanos) {
        if now - self.adapted_at < rtt {
            return;
        }
        let blocked = std::mem::take(&mut self.blocked);
        self.adapted_at = now;
        if self.kernel {
            let step = if blocked { KERNEL_RAISE } else { -KERNEL_LOWER };
            self.lambda = (self.lambda + step).clamp(KERNEL_RANGE.0, KERNEL_RANGE.1);
        } else if blocked {
            self.lambda += PAPER_STEP;
        } else {
            self.lambda = (self.lambda - PAPER_STEP).max(1.0);
        }
    }

    /// Bytes that the fast path will send while a segment lingers on the slow one.
    fn fast_bytes(&self, view: &View, fast: usize, slow: usize) -> f64 {
        let (path, other) = (&view.paths[fast], &view.paths[slow]);
        let window = f64::from(path.cwnd);
        let packets = if self.kernel {
            let (least, most) = self.extremes[slow];
            // One that is not measured yet is taken for one that does not linger.
            let least = least.min(most);
            let full = f64::from(other.in_flight + 1) / f64::from(other.cwnd.max(1));
            let spread = (most - least) as f64;
            let linger = if full >= 1.0 {
                most as f64
            } else {
                (least as f64 + spread * full).max(other.srtt as f64)
            };
            let (least, most) = self.extremes[fast];
            let rounds = (linger / ((least + most) as f64 / 2.0)).floor() + 1.0;
            // Before the first loss; afterwards avoidance is taken to begin at once.
            if path.ssthresh == INFINITE_SSTHRESH {
                window * (2f64.powf(rounds.min(16.0)) - 1.0)
            } else {
                (window.max(f64::from(path.ssthresh) + 1.0) + (rounds - 1.0) / 2.0) * rounds
            }
        } else {
            let rounds = other.srtt as f64 / path.srtt.max(1) as f64;
            rounds * (window + (rounds - 1.0) / 2.0)
        };
        packets * f64::from(path.mss) * self.lambda
    }
}

impl Scheduler for Blest {
    fn rescuer(&self) -> Rescuer {
        self.help.rescuer()
    }

    fn select(&mut self, view: &View) -> Decision {
        let Some(next) = &view.next else {
            return Decision::Wait;
        };
        let decision = lowest_rtt::place_patiently(view, next, self.patience);
        let (Decision::Send(chosen), Some(fast), false) =
            (decision, fastest(view.paths), next.reinjection)
        else {
            return decision;
        };
        self.observe(view.paths);
        if !self.kernel {
            self.adapt(view.now, view.paths[fast].srtt);
        }
        if chosen == fast {
            return decision;
        }
        if self.kernel {
            // Where the fast path is full, once a round trip of the slow one (`blestsched_update_lambda`).
            self.adapt(view.now, self.extremes[chosen].0);
        }
        let slow = &view.paths[chosen];
        let on_slow = f64::from(slow.mss) * f64::from(slow.in_flight + 1);
        let window = (view.sent - view.una + view.window) as f64;
        if self.fast_bytes(view, fast, chosen) > window - on_slow {
            Decision::Wait
        } else {
            decision
        }
    }

    fn blocked(&mut self, cause: Blocked) {
        self.blocked |= cause == Blocked::ReceiveWindow;
    }
}

#[cfg(test)]
mod tests {
    use super::{Blest, Help, Patience};

    fn blest(kernel: bool, lambda: f64) -> Blest {
        Blest {
            help: Help::default(),
            kernel,
            patience: Patience::default(),
            lambda,
            adapted_at: 0,
            blocked: false,
            extremes: Vec::new(),
        }
    }

    /// The factor after each of several round trips of 100 ns, of which some were blocked.
    fn factors(mut blest: Blest, rounds: &[bool]) -> Vec<f64> {
        let rounds = rounds.iter().zip(1..);
        let factor = |(blocked, round): (&bool, u64)| {
            blest.blocked = *blocked;
            blest.adapt(100 * round, 100);
            (blest.lambda * 1000.0).round() / 1000.0
        };
        rounds.map(factor).collect()
    }

    #[test]
    fn the_factor_of_the_paper_follows_what_was_blocked() {
        let found = factors(blest(false, 1.0), &[true, true, false, false, false]);
        assert_eq!(found, [1.01, 1.02, 1.01, 1.0, 1.0]);
    }

    #[test]
    fn the_factor_of_the_kernel_rises_faster_than_it_falls_within_its_range() {
        let found = factors(blest(true, 1.2), &[true, false, true, true, true]);
        assert_eq!(found, [1.24, 1.23, 1.27, 1.3, 1.3]);
        let found = factors(blest(true, 1.01), &[false, false]);
        assert_eq!(found, [1.0, 1.0]);
    }

    #[test]
    fn the_factor_changes_once_in_a_round_trip() {
        let mut blest = blest(false, 1.0);
        blest.blocked = true;
        blest.adapt(99, 100);
        assert!((blest.lambda - 1.0).abs() < 1e-9 && blest.blocked);
        blest.adapt(100, 100);
        assert!((blest.lambda - 1.01).abs() < 1e-9 && !blest.blocked);
        blest.blocked = true;
        blest.adapt(199, 100);
        assert!((blest.lambda - 1.01).abs() < 1e-9);
        blest.adapt(200, 100);
        assert!((blest.lambda - 1.02).abs() < 1e-9);
    }
}

//! ECF: earliest completion first.

use polypath_settings::{Algorithm, algorithm, choice};

use super::patience::{self, Patience};
use super::rescue::{self, Help, Rescuer};
use super::{Decision, Scheduler, View, fastest, lowest_rtt};
use crate::path::Path;
use crate::{MILLISECOND, Nanos};

algorithm! {
    "ecf",
    "Lowest RTT, but waits for the fast path where that completes the data earlier; repeats and penalises when blocked (M1, M2) in \
     variant mptcp.org only",
    "Lim et al., CoNEXT 2017; variant mptcp.org: net/mptcp/mptcp_ecf.c";
    /// Settings of ECF.
    EcfConfig {
        /// whether less than a window of data counts as a window and half of the timeout's margin, 100 ms at least, as deviation; mptcp.org also
        /// repeats and penalises as default does
        variant: Variant as Text = Text("paper"),
        /// hysteresis: what must be gained to stop waiting
        beta: f64 as Number.within(0.0, 4.0) = Number(0.25),
        ..patience: Patience = patience::PREFERRING,
        ..help: Help = rescue::AS_VARIANT
    }
}

choice! {
    /// Whose ECF it is.
    Variant {
        Paper = "paper",
        Kernel = "mptcp.org",
    }
}

impl Algorithm<dyn Scheduler> for EcfConfig {
    fn make(self) -> Box<dyn Scheduler> {
        let kernel = self.variant == Variant::Kernel;
        Box::new(Ecf {
            kernel,
            patience: self.patience,
            help: self.help.or(kernel),
            beta: self.beta,
            waiting: false,
        })
    }
}

/// The kernel's `rttvar_us`, of which mptcp_ecf.c takes half: four deviations, but no less than the minimum timeout.
fn margin(path: &Path) -> Nanos {
    match path.timeout_margin {
        0 => (4 * path.rttvar).max(LEAST_MARGIN),
        margin => margin,
    }
}

/// TCP_RTO_MIN, where the path has no timeout of Linux's.
const LEAST_MARGIN: Nanos = 200 * MILLISECOND;

struct Ecf {
    kernel: bool,
    patience: Patience,
    help: Help,
    beta: f64,
    waiting: bool,
}

impl Scheduler for Ecf {
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
        if chosen == fast {
            return decision;
        }
        let (fast, slow) = (&view.paths[fast], &view.paths[chosen]);
        let unsent = view.unsent as f64;
        // The data in units of each path's window.
        let windows = |path: &Path| {
            let window = f64::from(path.cwnd) * f64::from(path.mss);
            if self.kernel {
                unsent.max(window) / window
            } else {
                unsent / window
            }
        };
        let (rtt_fast, rtt_slow) = (fast.srtt as f64, slow.srtt as f64);
        let deviation = if self.kernel {
            margin(fast).max(margin(slow)) as f64 / 2.0
        } else {
            fast.rttvar.max(slow.rttvar) as f64
        };
        let patience = if self.waiting { 1.0 + self.beta } else { 1.0 };
        if (1.0 + windows(fast)) * rtt_fast < patience * (rtt_slow + deviation) {
            if windows(slow) * rtt_slow >= 2.0 * rtt_fast + deviation {
                self.waiting = true;
                return Decision::Wait;
            }
        } else {
            self.waiting = false;
        }
        decision
    }
}

//! Coupled increase, uncoupled decrease (Wischik et al., NSDI 2011 section 2.4).

use super::linked::{self, Credit};
use super::{Ack, CongestionControl};
use crate::path::{CaState, Member};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "semicoupled",
    "Coupled increase and halving on each path by itself: LIA without its compensation for different RTTs",
    "Wischik et al., NSDI 2011 section 2.4";
    /// Settings of semicoupled windows.
    SemicoupledConfig {
        /// aggressiveness: packets that a round trip adds to all windows together
        a: f64 as Number.within(0.01, 100.0) = Number(1.0),
    }
}

impl Algorithm<dyn CongestionControl> for SemicoupledConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Semicoupled {
            aggressiveness: self.a,
            credit: Credit::default(),
        })
    }
}

/// Each acknowledged packet adds `a / w_total`; a loss halves.
struct Semicoupled {
    aggressiveness: f64,
    credit: Credit,
}

impl CongestionControl for Semicoupled {
    fn couples(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        let a = self.aggressiveness;
        self.credit
            .avoid(path, ack, |path| a / linked::total_window(path));
    }

    fn on_state(&mut self, _path: &mut Member, state: CaState) {
        if state >= CaState::Cwr {
            self.credit.clear();
        }
    }
}

//! Coupled increase, uncoupled decrease (Wischik et al., NSDI 2011 section 2.4).

use super::linked::{self, Credit};
use super::{Ack, CongestionControl, CongestionEntry};
use crate::path::{CaState, Member};
use crate::registry::Parameter;

pub(super) const ENTRY: CongestionEntry = CongestionEntry {
    name: "semicoupled",
    description: "Coupled increase and halving on each path by itself: LIA without its compensation for different RTTs",
    source: "Wischik et al., NSDI 2011 section 2.4",
    parameters: || {
        vec![Parameter::number(
            "a",
            1.0,
            0.01,
            100.0,
            "aggressiveness: packets that a round trip adds to all windows together",
        )]
    },
    make: |parameters| {
        Box::new(Semicoupled {
            aggressiveness: parameters.number("a"),
            credit: Credit::default(),
        })
    },
};

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

//! A chain of two states that moves per packet.

use rand::RngCore;

use crate::random::chance;
use polypath_settings::model;

model! {
    "gilbert-elliott",
    "two-state chain that moves per packet, with a loss probability in each state, for bursts of losses",
    "Gilbert 1960; Elliott 1963";
    /// Settings of the chain.
    GilbertElliottConfig {
        /// Probability of entering the bad state.
        good_to_bad: f64 as Share,
        /// Probability of leaving the bad state.
        bad_to_good: f64 as Share,
        /// Loss probability in the good state.
        good_loss: f64 as Share = Number(0.0),
        /// Loss probability in the bad state.
        bad_loss: f64 as Share = Number(1.0),
    }
}

#[derive(Clone, Debug)]
pub(crate) struct GilbertElliott {
    config: GilbertElliottConfig,
    bad: bool,
}

impl GilbertElliott {
    pub fn new(config: GilbertElliottConfig) -> Self {
        Self { config, bad: false }
    }

    /// The chain loses in its present state and then moves on, so that a change of state acts on the next packet, as in Linux's netem.
    pub fn loses(&mut self, rng: &mut impl RngCore) -> bool {
        let (loss, leave) = if self.bad {
            (self.config.bad_loss, self.config.bad_to_good)
        } else {
            (self.config.good_loss, self.config.good_to_bad)
        };
        let lost = chance(rng, loss);
        self.bad ^= chance(rng, leave);
        lost
    }
}

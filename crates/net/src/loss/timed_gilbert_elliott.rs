//! The chain of two states in continuous time.

use rand::RngCore;

use crate::Nanos;
use crate::random::{chance, decay};
use polypath_settings::model;

model! {
    "timed-gilbert-elliott",
    "the same chain in continuous time: it moves whether packets are sent or not, for a channel that fades",
    "Gilbert 1960; Elliott 1963; exponential sojourn times";
    /// Settings of the chain.
    TimedGilbertElliottConfig {
        /// Mean time in the good state (exponential).
        good_time_ns: Nanos as Period,
        /// Mean time in the bad state (exponential).
        bad_time_ns: Nanos as Period,
        /// Loss probability in the good state.
        good_loss: f64 as Share = Number(0.0),
        /// Loss probability in the bad state.
        bad_loss: f64 as Share = Number(1.0),
    }
}

#[derive(Clone, Debug)]
pub(crate) struct TimedGilbertElliott {
    config: TimedGilbertElliottConfig,
    bad: bool,
    /// When the state was last looked at.
    seen: Option<Nanos>,
}

impl TimedGilbertElliott {
    pub fn new(config: TimedGilbertElliottConfig) -> Self {
        Self {
            config,
            bad: false,
            seen: None,
        }
    }

    pub fn loses(&mut self, now: Nanos, rng: &mut impl RngCore) -> bool {
        let bad = self.bad_now(now);
        self.bad = chance(rng, bad);
        let loss = if self.bad {
            self.config.bad_loss
        } else {
            self.config.good_loss
        };
        chance(rng, loss)
    }

    /// The probability of the bad state after the time since the last packet; before the first packet, that of equilibrium. The chain has no
    /// memory, so one draw per packet has the same distribution as a draw of every sojourn in between.
    fn bad_now(&mut self, now: Nanos) -> f64 {
        let good_time = self.config.good_time_ns as f64;
        let bad_time = self.config.bad_time_ns as f64;
        let equilibrium = bad_time / (good_time + bad_time);
        let Some(seen) = self.seen.replace(now) else {
            return equilibrium;
        };
        let elapsed = (now - seen) as f64;
        let kept = decay(elapsed * (1.0 / good_time + 1.0 / bad_time));
        equilibrium + (f64::from(u8::from(self.bad)) - equilibrium) * kept
    }
}

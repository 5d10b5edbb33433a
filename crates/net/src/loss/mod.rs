//! Loss models: whether a packet that enters a channel is lost.
//!
//! A new model is a file here, and in this one a variant of [`LossConfig`] and of [`Loss`], and a line in each of their functions and in [`MODELS`].

mod gilbert_elliott;
mod random;
mod timed_gilbert_elliott;

use rand::RngCore;
use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::random::chance;
use gilbert_elliott::GilbertElliott;
pub use gilbert_elliott::GilbertElliottConfig;
use polypath_settings::{Model, ModelError};
pub use random::RandomConfig;
use timed_gilbert_elliott::TimedGilbertElliott;
pub use timed_gilbert_elliott::TimedGilbertElliottConfig;

const NONE: Model = Model {
    name: "none",
    summary: "loses nothing",
    source: "",
    parameters: &[],
    groups: &[],
};

/// The loss models, by name.
pub const MODELS: &[Model] = &[
    NONE,
    random::MODEL,
    gilbert_elliott::MODEL,
    timed_gilbert_elliott::MODEL,
];

/// A loss model and its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossConfig {
    #[default]
    None,
    Random(RandomConfig),
    GilbertElliott(GilbertElliottConfig),
    TimedGilbertElliott(TimedGilbertElliottConfig),
}

impl LossConfig {
    /// # Errors
    /// The first setting that the model does not take.
    pub fn check(&self) -> Result<(), ModelError> {
        match self {
            Self::None => Ok(()),
            Self::Random(config) => config.within_bounds(),
            Self::GilbertElliott(config) => config.within_bounds(),
            Self::TimedGilbertElliott(config) => config.within_bounds(),
        }
    }
}

/// A loss model with its state.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    None,
    Random(RandomConfig),
    GilbertElliott(GilbertElliott),
    TimedGilbertElliott(TimedGilbertElliott),
}

impl Loss {
    pub fn new(config: &LossConfig) -> Self {
        match *config {
            LossConfig::None => Self::None,
            LossConfig::Random(config) => Self::Random(config),
            LossConfig::GilbertElliott(config) => Self::GilbertElliott(GilbertElliott::new(config)),
            LossConfig::TimedGilbertElliott(config) => {
                Self::TimedGilbertElliott(TimedGilbertElliott::new(config))
            }
        }
    }

    /// Decides on one packet.
    pub fn loses(&mut self, now: Nanos, rng: &mut impl RngCore) -> bool {
        match self {
            Self::None => false,
            Self::Random(config) => chance(rng, config.probability),
            Self::GilbertElliott(chain) => chain.loses(rng),
            Self::TimedGilbertElliott(chain) => chain.loses(now, rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    #[test]
    fn gilbert_elliott_reaches_its_stationary_loss_and_its_burst_length() {
        let mut loss = Loss::new(&LossConfig::GilbertElliott(GilbertElliottConfig {
            good_to_bad: 0.02,
            bad_to_good: 0.25,
            good_loss: 0.0,
            bad_loss: 1.0,
        }));
        let mut rng = stream(3, "test", 0, "loss");
        let n = 200_000;
        let lost: Vec<bool> = (0..n).map(|_| loss.loses(0, &mut rng)).collect();
        let losses = lost.iter().filter(|x| **x).count() as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let stationary = 0.02 / (0.02 + 0.25);
        assert!((losses / f64::from(n) - stationary).abs() < 0.005);
        assert!((losses / bursts - 4.0).abs() < 0.25);
    }

    const MS: Nanos = 1_000_000;

    fn faded(spacing: Nanos) -> (f64, f64) {
        let mut loss = Loss::new(&LossConfig::TimedGilbertElliott(
            TimedGilbertElliottConfig {
                good_time_ns: 900 * MS,
                bad_time_ns: 100 * MS,
                good_loss: 0.0,
                bad_loss: 1.0,
            },
        ));
        let mut rng = stream(5, "test", 0, "loss");
        let n = 400_000;
        let lost: Vec<bool> = (0..n)
            .map(|index| loss.loses(index * spacing, &mut rng))
            .collect();
        let losses = lost.iter().filter(|x| **x).count() as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        (losses / n as f64, losses / bursts)
    }

    #[test]
    fn a_timed_chain_has_its_sojourn_times_whatever_the_rate_of_packets() {
        for spacing in [2 * MS, 10 * MS] {
            let (share, burst) = faded(spacing);
            assert!((share - 0.1).abs() < 0.01, "{share}");
            let bad_time = burst * spacing as f64 / MS as f64;
            assert!((95.0..=112.0).contains(&bad_time), "{bad_time} ms");
        }
    }

    #[test]
    fn packets_far_apart_find_a_timed_chain_in_equilibrium() {
        let (share, burst) = faded(100_000 * MS);
        assert!((share - 0.1).abs() < 0.002, "{share}");
        assert!((burst - 1.0 / 0.9).abs() < 0.01, "{burst}");
    }
}

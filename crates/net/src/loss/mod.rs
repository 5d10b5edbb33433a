//! Loss models: whether a packet that enters a channel is lost.
//!
//! A model that is written elsewhere is a [`LossModel`] of the [`REGISTRY`].

mod gilbert_elliott;
mod periodic;
mod random;
mod timed_gilbert_elliott;

use rand::RngCore;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Nanos;
use crate::random::chance;
use gilbert_elliott::GilbertElliott;
pub use gilbert_elliott::GilbertElliottConfig;
use periodic::Periodic;
pub use periodic::PeriodicConfig;
use polypath_settings::{Added, Model, Registry, RegistryError};
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

/// A loss model that is written elsewhere.
pub trait LossModel: std::fmt::Debug + Send + Sync {
    /// Decides on one packet.
    fn loses(&mut self, now: Nanos, rng: &mut dyn RngCore) -> bool;
}

/// Those that are written elsewhere.
pub static REGISTRY: Registry<dyn LossModel> = Registry::new("loss model", &[]);

/// What can be said of every loss model.
pub fn models() -> Vec<Model> {
    let added = REGISTRY.describe();
    MODELS.iter().copied().chain(added).collect()
}

const MODELS: &[Model] = &[
    NONE,
    random::MODEL,
    periodic::MODEL,
    gilbert_elliott::MODEL,
    timed_gilbert_elliott::MODEL,
];

/// A loss model and its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    deny_unknown_fields,
    remote = "Self"
)]
#[schemars(rename = "Loss")]
pub enum LossConfig {
    #[default]
    None,
    Random(RandomConfig),
    Periodic(PeriodicConfig),
    GilbertElliott(GilbertElliottConfig),
    TimedGilbertElliott(TimedGilbertElliottConfig),
    /// One of the [`REGISTRY`].
    #[serde(skip)]
    Added(Added),
}

impl Serialize for LossConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Added(added) => added.serialize(serializer),
            _ => Self::serialize(self, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LossConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !REGISTRY.has_grown() {
            return Self::deserialize(deserializer);
        }
        let added = Self::Added;
        Added::read(&REGISTRY, deserializer, added, |table| {
            Self::deserialize(table)
        })
    }
}

impl LossConfig {
    /// # Errors
    /// The first setting that the model does not take.
    pub fn check(&self) -> Result<(), RegistryError> {
        match self {
            Self::None => {}
            Self::Random(config) => config.within_bounds()?,
            Self::Periodic(config) => config.within_bounds()?,
            Self::GilbertElliott(config) => config.within_bounds()?,
            Self::TimedGilbertElliott(config) => config.within_bounds()?,
            Self::Added(added) => drop(REGISTRY.make(&added.kind, &added.settings)?),
        }
        Ok(())
    }
}

/// A loss model with its state.
#[derive(Debug)]
pub(crate) enum Loss {
    None,
    Random(RandomConfig),
    Periodic(Periodic),
    GilbertElliott(GilbertElliott),
    TimedGilbertElliott(TimedGilbertElliott),
    Added(Box<dyn LossModel>),
}

impl Loss {
    pub fn new(config: &LossConfig) -> Self {
        match config {
            LossConfig::None => Self::None,
            LossConfig::Random(config) => Self::Random(*config),
            LossConfig::Periodic(config) => Self::Periodic(Periodic::new(*config)),
            LossConfig::GilbertElliott(config) => {
                Self::GilbertElliott(GilbertElliott::new(*config))
            }
            LossConfig::TimedGilbertElliott(config) => {
                Self::TimedGilbertElliott(TimedGilbertElliott::new(*config))
            }
            LossConfig::Added(added) => {
                let made = REGISTRY.make(&added.kind, &added.settings);
                Self::Added(made.expect("the configuration was checked"))
            }
        }
    }

    /// Decides on one packet.
    pub fn loses(&mut self, now: Nanos, rng: &mut impl RngCore) -> bool {
        match self {
            Self::None => false,
            Self::Random(config) => chance(rng, config.probability),
            Self::Periodic(counter) => counter.loses(),
            Self::GilbertElliott(chain) => chain.loses(rng),
            Self::TimedGilbertElliott(chain) => chain.loses(now, rng),
            Self::Added(model) => model.loses(now, rng),
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

    #[test]
    fn periodic_losses_take_every_nth_packet_without_chance() {
        let config = LossConfig::Periodic(PeriodicConfig { every: 3 });
        let mut loss = Loss::new(&config);
        let mut rng = stream(3, "test", 0, "loss");
        let lost: Vec<bool> = (0..7).map(|_| loss.loses(0, &mut rng)).collect();
        assert_eq!(lost, [false, false, true, false, false, true, false]);
        assert_eq!(rng, stream(3, "test", 0, "loss"));
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

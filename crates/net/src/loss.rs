//! Loss models: whether a packet that enters a channel is lost.

use rand::RngCore;

use crate::config::{LossConfig, Model};
use crate::random::chance;

/// The loss models, by name.
pub const MODELS: &[Model] = &[
    Model {
        name: "none",
        summary: "loses nothing",
        source: "",
        parameters: &[],
    },
    Model {
        name: "random",
        summary: "loses each packet with the same probability, independently",
        source: "tc-netem(8)",
        parameters: &["probability"],
    },
    Model {
        name: "gilbert-elliott",
        summary: "two-state chain with a loss probability in each state, for bursts of losses",
        source: "Gilbert 1960; Elliott 1963",
        parameters: &["good_to_bad", "bad_to_good", "good_loss", "bad_loss"],
    },
];

/// A loss model with its state.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    config: LossConfig,
    bad: bool,
}

impl Loss {
    pub fn new(config: LossConfig) -> Self {
        Self { config, bad: false }
    }

    /// Decides on one packet. The chain loses in its present state and then moves on, so that a change of state acts on the next
    /// packet, as in Linux's netem.
    pub fn loses(&mut self, rng: &mut impl RngCore) -> bool {
        match self.config {
            LossConfig::None => false,
            LossConfig::Random { probability } => chance(rng, probability),
            LossConfig::GilbertElliott {
                good_to_bad,
                bad_to_good,
                good_loss,
                bad_loss,
            } => {
                let (loss, leave) = if self.bad {
                    (bad_loss, bad_to_good)
                } else {
                    (good_loss, good_to_bad)
                };
                let lost = chance(rng, loss);
                self.bad ^= chance(rng, leave);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    #[test]
    fn gilbert_elliott_reaches_its_stationary_loss_and_its_burst_length() {
        let mut loss = Loss::new(LossConfig::GilbertElliott {
            good_to_bad: 0.02,
            bad_to_good: 0.25,
            good_loss: 0.0,
            bad_loss: 1.0,
        });
        let mut rng = stream(3, "test", 0, "loss");
        let n = 200_000;
        let lost: Vec<bool> = (0..n).map(|_| loss.loses(&mut rng)).collect();
        let losses = lost.iter().filter(|x| **x).count() as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let stationary = 0.02 / (0.02 + 0.25);
        assert!((losses / f64::from(n) - stationary).abs() < 0.005);
        assert!((losses / bursts - 4.0).abs() < 0.25);
    }
}

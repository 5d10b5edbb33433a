//! Loss models: whether a packet that enters a channel is lost.

use rand::RngCore;

use crate::Nanos;
use crate::config::{LossConfig, Model};
use crate::random::{chance, decay};

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
        summary: "two-state chain that moves per packet, with a loss probability in each state, for bursts of losses",
        source: "Gilbert 1960; Elliott 1963",
        parameters: &["good_to_bad", "bad_to_good", "good_loss", "bad_loss"],
    },
    Model {
        name: "timed-gilbert-elliott",
        summary: "the same chain in continuous time: it moves whether packets are sent or not, for a channel that fades",
        source: "Gilbert 1960; Elliott 1963; exponential sojourn times",
        parameters: &["good_time", "bad_time", "good_loss", "bad_loss"],
    },
];

/// A loss model with its state.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    config: LossConfig,
    bad: bool,
    /// When the state was last looked at.
    seen: Option<Nanos>,
}

impl Loss {
    pub fn new(config: LossConfig) -> Self {
        Self {
            config,
            bad: false,
            seen: None,
        }
    }

    /// Decides on one packet. The chain per packet loses in its present state and then moves on, so that a change of state acts on the next
    /// packet, as in Linux's netem.
    pub fn loses(&mut self, now: Nanos, rng: &mut impl RngCore) -> bool {
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
            LossConfig::TimedGilbertElliott {
                good_time,
                bad_time,
                good_loss,
                bad_loss,
            } => {
                let bad = self.bad_now(now, good_time as f64, bad_time as f64);
                self.bad = chance(rng, bad);
                chance(rng, if self.bad { bad_loss } else { good_loss })
            }
        }
    }

    /// The probability of the bad state after the time since the last packet; before the first packet, that of equilibrium. The chain has no
    /// memory, so one draw per packet has the same distribution as a draw of every sojourn in between.
    fn bad_now(&mut self, now: Nanos, good_time: f64, bad_time: f64) -> f64 {
        let equilibrium = bad_time / (good_time + bad_time);
        let Some(seen) = self.seen.replace(now) else {
            return equilibrium;
        };
        let elapsed = (now - seen) as f64;
        let kept = decay(elapsed * (1.0 / good_time + 1.0 / bad_time));
        equilibrium + (f64::from(u8::from(self.bad)) - equilibrium) * kept
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
        let lost: Vec<bool> = (0..n).map(|_| loss.loses(0, &mut rng)).collect();
        let losses = lost.iter().filter(|x| **x).count() as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let stationary = 0.02 / (0.02 + 0.25);
        assert!((losses / f64::from(n) - stationary).abs() < 0.005);
        assert!((losses / bursts - 4.0).abs() < 0.25);
    }

    const MS: Nanos = 1_000_000;

    fn faded(spacing: Nanos) -> (f64, f64) {
        let mut loss = Loss::new(LossConfig::TimedGilbertElliott {
            good_time: 900 * MS,
            bad_time: 100 * MS,
            good_loss: 0.0,
            bad_loss: 1.0,
        });
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

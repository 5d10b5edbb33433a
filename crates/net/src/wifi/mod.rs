//! Wi-Fi: channels of the air in place of a rate.
//!
//! [`Standard`] has rates and times. [`Chain`] has the rate that a station sends at. [`Window`] has the packets that
//! were sent and not delivered. [`Medium`] decides whose turn it is.

mod chain;
mod medium;
mod standard;
mod window;

use crate::config::{ConfigError, probability};
use crate::ids::Nanos;
pub(crate) use chain::Chain;
pub(crate) use medium::{Airtime, Medium, Queues};
pub(crate) use standard::{BLOCK_ACK_WINDOW, LONGEST_PPDU, Psdu, SIFS};
pub use standard::{Phy, Rate, STANDARDS, Standard};
pub(crate) use window::Window;

/// How one direction of a link sends over the air.
#[derive(Clone, Debug)]
pub struct WifiConfig {
    pub standard: &'static Standard,
    pub phy: Phy,
    /// The channel of the air that it shares with all links that name it; absent: with the other direction of its own link alone.
    pub medium: Option<u32>,
    /// The first one holds at time 0.
    pub states: Vec<State>,
    /// Bounds of an aggregate, beside the standard's own.
    pub most_packets: u32,
    pub most_bytes: u32,
    pub most_airtime: Nanos,
    /// Times that a frame is sent before it is lost.
    pub attempts: u32,
}

/// A state of the air.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The index of modulation and coding.
    pub mcs: u32,
    /// Probability that a frame has to be sent again.
    pub error: f64,
    /// Mean time in the state, exponentially distributed; absent: it is never left.
    pub dwell: Option<Nanos>,
    /// The probability of each state to follow.
    pub next: Vec<f64>,
}

impl PartialEq for WifiConfig {
    fn eq(&self, other: &Self) -> bool {
        let rest = |it: &Self| {
            let limits = (it.most_packets, it.most_bytes, it.most_airtime, it.attempts);
            (it.phy, it.medium, limits)
        };
        std::ptr::eq(self.standard, other.standard)
            && rest(self) == rest(other)
            && self.states == other.states
    }
}

/// Shorter ones would only cost draws.
const SHORTEST_DWELL: Nanos = 1_000_000;
const ROUNDING: f64 = 1e-9;

impl WifiConfig {
    /// The rate of a state. A configuration that was checked has all of them.
    pub(crate) fn rate(&self, state: &State) -> Option<Rate> {
        self.standard.rate(self.phy, state.mcs)
    }

    /// # Errors
    /// The first value that no station can have.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.states.is_empty() {
            return Err(ConfigError::NoState);
        }
        if self.most_packets == 0
            || self.most_bytes == 0
            || self.most_airtime == 0
            || self.attempts == 0
        {
            return Err(ConfigError::NothingSent);
        }
        for state in &self.states {
            if self.rate(state).is_none() {
                return Err(ConfigError::Mcs {
                    standard: self.standard.name,
                    mcs: state.mcs,
                    width: self.phy.width,
                    streams: self.phy.streams,
                });
            }
            probability("error", state.error)?;
            let Some(dwell) = state.dwell else { continue };
            if dwell < SHORTEST_DWELL {
                return Err(ConfigError::Dwell);
            }
            for share in &state.next {
                probability("next", *share)?;
            }
            let sum: f64 = state.next.iter().sum();
            if state.next.len() != self.states.len() || (sum - 1.0).abs() > ROUNDING {
                return Err(ConfigError::Successors);
            }
        }
        Ok(())
    }
}

//! Links over the air.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A channel of the air that links share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Medium {
    pub name: String,
}

/// How one direction of a link sends over the air.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wifi {
    /// By name: the registry's kind `wifi`.
    pub standard: String,
    pub width_mhz: u32,
    /// Spatial streams that are chosen apart from the MCS.
    pub streams: u32,
    /// Whether the guard interval is 400 ns in place of 800.
    pub short_guard: bool,
    /// Index into `media`; absent: shared with the link's other direction alone.
    #[serde(default)]
    pub medium: Option<usize>,
    /// The first one holds at the start.
    pub states: Vec<WifiState>,
    /// Bounds of an aggregate.
    pub packets: u32,
    pub aggregate_bytes: u32,
    pub airtime_ns: u64,
    /// Times that a packet is sent before it is lost.
    pub attempts: u32,
}

/// A state of a Markov chain in continuous time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WifiState {
    /// Index of modulation and coding.
    pub mcs: u32,
    /// Probability that a packet has to be sent again.
    pub error: f64,
    /// Mean time in the state (exponential); absent: it is never left.
    #[serde(default)]
    pub dwell_ns: Option<u64>,
    /// The probability of each state to follow.
    #[serde(default)]
    pub next: Vec<f64>,
}

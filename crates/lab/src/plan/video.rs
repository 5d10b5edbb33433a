//! Adaptive video: the settings of a player.

use polypath_transport::MILLISECOND;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Segments of `segment_ns` each, in one of several representations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Video {
    pub segment_ns: u64,
    /// Absent: the video does not end.
    #[serde(default)]
    pub segments: Option<u64>,
    /// Of the representations, ascending.
    pub rates_bps: Vec<u64>,
    /// The most that is held: no segment is asked for that would not fit.
    pub buffer_ns: u64,
    /// What has to be there before it plays, at the beginning and after a stall.
    pub startup_ns: u64,
    pub rule: VideoRule,
}

/// Which representation comes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum VideoRule {
    /// By the harmonic mean of the rates of the last `window` segments, times `safety`.
    Throughput { window: u32, safety: f64 },
    /// By what is buffered: BBA-0.
    Buffer { reservoir_ns: u64, cushion_ns: u64 },
    /// Always the same one, by its place among the rates, from 0.
    Fixed { representation: u32 },
}

/// A player asks for no shorter ones.
const SHORTEST_SEGMENT_NS: u64 = 10 * MILLISECOND;

impl Video {
    /// What makes it impossible, if anything does, behind the field that is to change.
    pub fn fault(&self) -> Option<String> {
        let descending = self.rates_bps.windows(2).any(|pair| pair[0] >= pair[1]);
        let rates = self.rates_bps.len();
        if rates == 0 {
            Some("rates_bps: a video needs a rate".into())
        } else if self.rates_bps[0] == 0 {
            Some("rates_bps: a rate is above 0".into())
        } else if descending {
            Some("rates_bps: the rates rise from one to the next".into())
        } else if self.segment_ns < SHORTEST_SEGMENT_NS {
            Some("segment_ns: a segment plays for 10 ms at least".into())
        } else if self.buffer_ns < self.segment_ns {
            Some("buffer_ns: the buffer has no room for a segment".into())
        } else if matches!(self.rule, VideoRule::Fixed { representation } if representation as usize >= rates)
        {
            let problem = format!("there are {rates} rates, numbered from 0");
            Some(format!("rule.representation: {problem}"))
        } else {
            None
        }
    }
}

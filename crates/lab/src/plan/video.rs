//! Adaptive video: what a player is told.

use serde::{Deserialize, Serialize};

/// Segments of `segment_ns` each, in one of several representations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum VideoRule {
    /// By the harmonic mean of the rates of the last `window` segments, times `safety`.
    Throughput { window: u32, safety: f64 },
    /// By what is buffered: BBA-0.
    Buffer { reservoir_ns: u64, cushion_ns: u64 },
    /// Always the same one, by its place among the rates, from 0.
    Fixed { representation: u32 },
}

impl Video {
    /// What makes it impossible, if anything does.
    pub fn fault(&self) -> Option<&'static str> {
        let ascending = self.rates_bps.windows(2).all(|pair| pair[0] < pair[1]);
        if self.rates_bps.first().is_none_or(|&rate| rate == 0) || !ascending {
            Some("a video needs rates above 0, ascending")
        } else if self.segment_ns == 0 {
            Some("a segment of a video needs a length")
        } else if self.buffer_ns < self.segment_ns {
            Some("a video's buffer has no room for a segment")
        } else {
            None
        }
    }
}

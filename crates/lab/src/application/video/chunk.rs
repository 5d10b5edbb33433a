//! A part of a video, as its client sees it.

use polypath_transport::{Nanos, SECOND};

/// A segment of the video that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub asked_at: Nanos,
    pub arrived_at: Option<Nanos>,
    pub representation: u32,
    pub rate_bps: u64,
    /// Of the segment, without heads.
    pub bytes: u64,
    /// What was there to play when it was asked for.
    pub buffered_ns: u64,
    /// When its first picture is shown, as far as that is settled.
    pub played_at: Option<Nanos>,
}

impl Chunk {
    /// The rate at which it came, in bit/s, once it did.
    pub fn measured_bps(&self) -> Option<f64> {
        let took = (self.arrived_at? - self.asked_at).max(1);
        Some(self.bytes as f64 * 8.0 * SECOND as f64 / took as f64)
    }
}

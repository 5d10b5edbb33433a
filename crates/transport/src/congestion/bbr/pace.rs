//! The pacing rate from an estimated bandwidth, and packets from a bandwidth and an RTT.

use crate::path::Path;
use crate::{MILLISECOND, Nanos, SECOND};

/// Linux paces a hundredth below the estimate.
const MARGIN: f64 = 0.99;

#[derive(Debug)]
pub(in crate::congestion) struct Pace {
    /// The gain before a bandwidth was measured.
    first_gain: f64,
    rtt_seen: bool,
}

impl Pace {
    pub fn new(first_gain: f64) -> Self {
        Self {
            first_gain,
            rtt_seen: false,
        }
    }

    /// The rate of the initial window, over a millisecond where no RTT is known.
    pub fn begin(&mut self, path: &mut Path) {
        self.rtt_seen = path.srtt > 0;
        let rtt = if self.rtt_seen {
            path.srtt
        } else {
            MILLISECOND
        };
        let bandwidth = f64::from(path.cwnd) * SECOND as f64 / rtt as f64;
        path.pacing_rate = rate(bandwidth, self.first_gain, path);
    }

    /// The rate of `bandwidth`, in packets a second. It does not fall before the pipe was `full`.
    pub fn set(&mut self, path: &mut Path, bandwidth: f64, gain: f64, full: bool) {
        if !self.rtt_seen && path.srtt > 0 {
            self.begin(path);
        }
        let rate = rate(bandwidth, gain, path);
        if full || rate > path.pacing_rate {
            path.pacing_rate = rate;
        }
    }
}

/// Bytes a second at `bandwidth` packets a second.
fn rate(bandwidth: f64, gain: f64, path: &Path) -> u64 {
    (bandwidth * gain * f64::from(path.mss) * MARGIN) as u64
}

/// Bandwidth times RTT times `gain`, in packets, rounded up.
pub(in crate::congestion) fn product(bandwidth: f64, rtt: Nanos, gain: f64) -> u32 {
    (bandwidth * rtt as f64 / SECOND as f64 * gain).ceil() as u32
}

//! Westwood+: what a loss leaves is what the path was seen to carry, as in Linux (Mascolo et al., MobiCom 2001; Grieco and Mascolo, CCR 2004).
//!
//! Times are in milliseconds, as those of a kernel with HZ = 1000.

use super::{Ack, CongestionControl, Restart, reno};
use crate::MILLISECOND;
use crate::path::{Member, Path};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "westwood",
    "Westwood+ on each path by itself: grows as Reno, and falls to the measured rate times the least RTT",
    "Mascolo et al., MobiCom 2001; Grieco and Mascolo, CCR 34(2) 2004; Linux net/ipv4/tcp_westwood.c";
    WestwoodConfig
}

impl Algorithm<dyn CongestionControl> for WestwoodConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Westwood::default())
    }
}

#[derive(Default)]
pub(super) struct WestwoodConfig;

/// The RTT before the first sample, and the shortest interval over which the rate is measured.
const INITIAL_RTT: u64 = 20_000;
const LEAST_INTERVAL: u64 = 50;

struct Westwood {
    /// Bytes a millisecond: after one low-pass filter, and after two.
    filtered: u64,
    estimate: u64,
    /// When the present interval began, and the bytes that were acknowledged in it.
    since: Option<u64>,
    bytes: u64,
    /// Bytes that were acknowledged in order so far; none before the first acknowledgement.
    seen: Option<u64>,
    /// Bytes that acknowledgements out of order were taken for.
    accounted: u64,
    rtt: u64,
    least_rtt: u64,
    /// The next sample becomes the least RTT.
    forget_least: bool,
}

impl Default for Westwood {
    fn default() -> Self {
        Self {
            filtered: 0,
            estimate: 0,
            since: None,
            bytes: 0,
            seen: None,
            accounted: 0,
            rtt: INITIAL_RTT,
            least_rtt: INITIAL_RTT,
            forget_least: true,
        }
    }
}

/// `westwood_do_filter`.
fn smooth(old: u64, new: u64) -> u64 {
    (7 * old + new) >> 3
}

impl Westwood {
    /// `westwood_update_window`, `westwood_filter`.
    fn measure(&mut self, now: u64) {
        let since = *self.since.get_or_insert(now);
        let passed = now - since;
        if passed <= self.rtt.max(LEAST_INTERVAL) {
            return;
        }
        let rate = self.bytes / passed;
        self.filtered = if self.filtered == 0 && self.estimate == 0 {
            self.estimate = rate;
            rate
        } else {
            let filtered = smooth(self.filtered, rate);
            self.estimate = smooth(self.estimate, filtered);
            filtered
        };
        self.bytes = 0;
        self.since = Some(now);
    }

    /// Bytes that an acknowledgement stands for: a packet if it is out of order, and what it acknowledges in order without those that were
    /// counted (`westwood_acked_count`). The first one counts as out of order.
    fn count(&mut self, path: &Path) -> u64 {
        let packet = u64::from(path.mss);
        let seen = self.seen.replace(path.acked).unwrap_or(path.acked);
        let bytes = path.acked - seen;
        if bytes == 0 {
            self.accounted += packet;
            return packet;
        }
        if bytes <= packet {
            return bytes;
        }
        if self.accounted >= bytes {
            self.accounted -= bytes;
            return packet;
        }
        bytes - std::mem::take(&mut self.accounted)
    }

    /// The packets that fill the path without its queue (`tcp_westwood_bw_rttmin`).
    fn carried(&self, path: &Path) -> u32 {
        let packets = self.estimate * self.least_rtt / u64::from(path.mss);
        u32::try_from(packets).unwrap_or(u32::MAX).max(2)
    }
}

impl CongestionControl for Westwood {
    fn on_sample(&mut self, path: &mut Member, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt.div_ceil(MILLISECOND).max(1);
        }
        self.measure(ack.now / MILLISECOND);
        self.bytes += self.count(path);
        self.least_rtt = if std::mem::take(&mut self.forget_least) {
            self.rtt
        } else {
            self.least_rtt.min(self.rtt)
        };
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        reno::avoid(path, ack);
    }

    fn on_timeout(&mut self, path: &mut Member) {
        path.ssthresh = self.carried(path);
        self.forget_least = true;
    }

    fn on_reduced(&mut self, path: &mut Member) {
        path.ssthresh = self.carried(path);
        path.cwnd = path.ssthresh;
    }

    /// The first interval begins with the connection, whose first data leaves now.
    fn on_restart(&mut self, _path: &mut Member, restart: &Restart) {
        self.since.get_or_insert(restart.now / MILLISECOND);
    }

    fn observe(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("bandwidth_mbps", self.estimate as f64 * 8e-3),
            ("least_rtt_ms", self.least_rtt as f64),
        ]
    }
}

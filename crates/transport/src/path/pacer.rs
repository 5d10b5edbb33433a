//! Pacing: packets leave in bursts at the rate that a controller sets (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.2).

use super::Path;
use crate::{NEVER, Nanos, SECOND};

/// Packets that leave before pacing begins (Linux, after sch_fq).
const UNPACED_PACKETS: u64 = 10;
/// Bytes a second below which a burst is one packet (1.2 Mbps), and the largest burst in bytes.
const LOW_RATE: u64 = 150_000;
const LARGEST_BURST: u64 = 65_535;

/// Packets of `mss` bytes that leave together at `rate` bytes a second: those of one millisecond (section 4.2.3, BBR.send_quantum;
/// Linux `bbr_tso_segs_goal`).
pub fn burst(rate: u64, mss: u32) -> u32 {
    let least = if rate < LOW_RATE { 1 } else { 2 };
    let packets = (rate / 1024).min(LARGEST_BURST) / u64::from(mss.max(1));
    (packets as u32).clamp(least, 127)
}

/// What leaves together: a millisecond's worth, and more over short paths (Linux `tcp_tso_autosize`).
fn burst_on(rate: u64, path: &Path) -> u32 {
    let short = match (path.min_rtt / 1000) >> 9 {
        shift @ 0..32 if path.min_rtt > 0 => (LARGEST_BURST + 1) >> shift,
        _ => 0,
    };
    let bytes = (rate / 1024 + short).min(LARGEST_BURST);
    burst(rate, path.mss).max((bytes / u64::from(path.mss.max(1))) as u32)
}

/// The same for low latency (`prague_burst_shift`).
fn short_burst(rate: u64, path: &Path) -> u32 {
    let packets = (rate / 4096) / u64::from(path.mss.max(1));
    (packets as u32).clamp(1, 127)
}

/// The pacer of one path.
#[derive(Debug)]
pub struct Pacer {
    /// Bytes a second, packets that leave together at this rate, packets sent so far.
    rate: u64,
    burst: u32,
    /// Bursts last a quarter of a millisecond at most, as a low-latency queue wants it.
    short: bool,
    packets: u64,
    /// When the next burst may leave.
    departure: Nanos,
    /// The burst that leaves now: when it began, packets that it still may have, delay that it may make up for.
    burst_at: Nanos,
    burst_left: u32,
    credit: Nanos,
    blocked: bool,
}

impl Default for Pacer {
    fn default() -> Self {
        Self {
            rate: 0,
            burst: 1,
            short: false,
            packets: 0,
            departure: 0,
            burst_at: 0,
            burst_left: 0,
            credit: 0,
            blocked: false,
        }
    }
}

impl Pacer {
    pub fn new(short: bool) -> Self {
        Self {
            short,
            ..Self::default()
        }
    }

    /// Takes over the rate that the path's controller set.
    pub fn set_rate(&mut self, path: &Path) {
        if self.rate != path.pacing_rate {
            self.rate = path.pacing_rate;
            self.burst = if self.short {
                short_burst(self.rate, path)
            } else {
                burst_on(self.rate, path)
            };
        }
    }

    /// `bytes` leave: the next burst waits for as long as this one takes at the rate.
    pub fn on_sent(&mut self, now: Nanos, bytes: u32) {
        self.packets += 1;
        if self.rate == 0 || self.packets < UNPACED_PACKETS {
            return;
        }
        if self.burst_left == 0 || self.burst_at != now {
            self.burst_left = self.burst;
            self.burst_at = now;
            self.credit = now.saturating_sub(self.departure);
            self.departure = self.departure.max(now);
        }
        // A burst that left late may be followed sooner, by half its time at most (Linux `tcp_update_skb_after_send`).
        let time = u64::from(bytes) * SECOND / self.rate;
        let made_up = self.credit.min(time / 2);
        self.credit -= made_up;
        self.departure += time - made_up;
        self.burst_left -= 1;
        self.blocked = self.burst_left == 0 && self.departure > now;
    }

    /// Whether the next packet has to wait.
    pub fn blocked(&self) -> bool {
        self.blocked
    }

    /// When the next packet may leave.
    pub fn departure(&self, now: Nanos) -> Nanos {
        self.departure.max(now)
    }

    /// When pacing lets the next burst go, if one waits.
    pub fn deadline(&self) -> Nanos {
        if self.blocked { self.departure } else { NEVER }
    }

    /// Nothing more leaves for now: an unfinished burst is over. Whether the next packet has to wait.
    pub fn end_burst(&mut self, now: Nanos) -> bool {
        self.blocked = self.departure > now;
        self.blocked
    }

    /// Lets the next burst go if its time has come. True: it was waited for.
    pub fn release(&mut self, now: Nanos) -> bool {
        let due = self.deadline() <= now;
        self.blocked &= !due;
        due
    }
}

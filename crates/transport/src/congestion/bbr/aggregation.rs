//! ACK aggregation: how much more data is acknowledged at once than the bandwidth explains (Linux
//! `bbr_update_ack_aggregation`).
//!
//! The window then covers the silence between bursts of ACKs.

use crate::congestion::RateSample;
use crate::{MILLISECOND, Nanos, SECOND};

/// Rounds that each of two slots looks back.
const SLOT_ROUNDS: u32 = 5;
/// Packets after which a stretch begins anew.
const LONGEST_STRETCH: u64 = 1 << 20;
/// The window is raised by what the bandwidth carries in this time at most.
const MOST: Nanos = 100 * MILLISECOND;

/// A stretch in which packets are acknowledged faster than the bandwidth explains.
#[derive(Debug, Default)]
pub(in crate::congestion) struct Stretch {
    since: Nanos,
    acked: u64,
}

impl Stretch {
    /// It begins at `now`.
    pub fn restart(&mut self, now: Nanos) {
        self.since = now;
        self.acked = 0;
    }

    /// Takes `packets` that are acknowledged `now`, at an estimated `bandwidth` of packets a second. Gives what is more than it explains.
    pub fn take(&mut self, now: Nanos, packets: u32, bandwidth: f64) -> u32 {
        let elapsed = now.saturating_sub(self.since);
        let mut expected = (bandwidth * elapsed as f64 / SECOND as f64) as u64;
        if self.acked <= expected || self.acked + u64::from(packets) >= LONGEST_STRETCH {
            self.restart(now);
            expected = 0;
        }
        self.acked += u64::from(packets);
        (self.acked - expected) as u32
    }
}

#[derive(Debug, Default)]
pub(super) struct Aggregation {
    stretch: Stretch,
    excess: [u32; 2],
    slot: usize,
    rounds: u32,
}

impl Aggregation {
    /// A stretch begins at `now`.
    pub fn restart(&mut self, now: Nanos) {
        self.stretch.restart(now);
    }

    /// Takes an ACK of `packets` at an estimated `bandwidth` of packets a second.
    pub fn take(
        &mut self,
        sample: &RateSample,
        packets: u32,
        round_start: bool,
        bandwidth: f64,
        cwnd: u32,
    ) {
        if packets == 0 || sample.interval.is_none() {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= SLOT_ROUNDS {
                self.rounds = 0;
                self.slot = 1 - self.slot;
                self.excess[self.slot] = 0;
            }
        }
        let excess = self.stretch.take(sample.delivered_at, packets, bandwidth);
        let excess = excess.min(cwnd);
        self.excess[self.slot] = self.excess[self.slot].max(excess);
    }

    /// Packets to add to the window.
    pub fn allowance(&self, bandwidth: f64) -> u32 {
        let most = (bandwidth * MOST as f64 / SECOND as f64) as u32;
        self.excess[0].max(self.excess[1]).min(most)
    }
}

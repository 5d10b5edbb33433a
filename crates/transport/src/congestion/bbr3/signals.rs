//! What the path delivered in the last round trip, and whether something was lost in it (section 5.5.10.3).

use crate::congestion::{LostPacket, RateSample};

/// Stretches of lost packets in a round trip that end Startup (section 5.3.1.3).
const STARTUP_LOSSES: u32 = 6;

#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Packets a second, and packets: the most of a round trip.
    pub bandwidth: f64,
    pub in_flight: u32,
    /// Something was lost, or marked, in this round trip.
    pub congested: bool,
    /// The ACK at hand ends a round trip, which begins with a loss if there is one.
    pub round_over: bool,
    round_end: u64,
    stretches: u32,
}

impl Signals {
    /// `UpdateLatestDeliverySignals`.
    pub fn take(&mut self, rate: f64, sample: &RateSample) {
        self.round_over = false;
        let Some(interval) = sample.interval else {
            return;
        };
        self.bandwidth = self.bandwidth.max(rate);
        self.in_flight = self.in_flight.max(interval.packets as u32);
        if interval.prior_delivered >= self.round_end {
            self.round_end = sample.delivered;
            self.round_over = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub fn advance(&mut self, rate: f64, sample: &RateSample) {
        if let (true, Some(interval)) = (self.round_over, sample.interval) {
            self.bandwidth = rate;
            self.in_flight = interval.packets as u32;
        }
        if self.round_over {
            self.stretches = 0;
        }
    }

    /// `ResetCongestionSignals`.
    pub fn reset(&mut self) {
        self.congested = false;
        self.bandwidth = 0.0;
        self.in_flight = 0;
    }

    /// `NoteLoss`. Whether it is the first of a round trip, which begins with it.
    pub fn note(&mut self, delivered: u64) -> bool {
        let first = !self.congested;
        if first {
            self.round_end = delivered;
        }
        self.congested = true;
        first
    }

    pub fn count(&mut self, lost: &LostPacket) {
        self.stretches += u32::from(!lost.adjoins);
    }

    /// Enough was lost in the round trip that is over. Where a receiver cannot tell of several, one is enough.
    pub fn much_lost(&self, sample: &RateSample) -> bool {
        let enough = if sample.selective { STARTUP_LOSSES } else { 1 };
        self.round_over && self.stretches >= enough
    }
}

//! The model of the path: bandwidth and packets in flight, of the last cycles and since the last probe (sections 3.4.2 and 5.5).

use super::signals::Signals;
use crate::congestion::bbr::filter::Maximum;
use crate::congestion::{LostPacket, RateSample};

/// Cycles over which the bandwidth's maximum is taken: this and the last (section 2.11).
const CYCLES: u64 = 1;
/// Part of what is in flight that may be lost while bandwidth is probed for (section 2.8).
const LOSS_THRESHOLD: f64 = 0.02;
/// What losses leave at least in a round trip.
const BETA: f64 = 0.7;
/// What is left free of the most packets in flight.
const HEADROOM: f64 = 0.15;
/// The smallest window (section 2.8): two ACKs of two packets each.
pub(super) const LEAST: u32 = 4;
/// No bound is known.
pub(super) const UNBOUND: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Model {
    /// Packets a second: the most of two cycles, what congestion leaves of it, the lesser of both.
    most: Maximum,
    cycle: u64,
    pub short_bandwidth: f64,
    pub bandwidth: f64,
    /// Packets in flight, likewise (`inflight_longterm`, `inflight_shortterm`).
    pub long_flight: u32,
    pub short_flight: u32,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            most: Maximum::default(),
            cycle: 0,
            short_bandwidth: f64::INFINITY,
            bandwidth: 0.0,
            long_flight: UNBOUND,
            short_flight: UNBOUND,
        }
    }
}

impl Model {
    pub fn most_bandwidth(&self) -> f64 {
        self.most.get()
    }

    /// `UpdateMaxBw` (sections 5.5.4 and 5.5.5).
    pub fn take(&mut self, rate: f64, sample: &RateSample) {
        let limited = sample.interval.is_none_or(|interval| interval.app_limited);
        if rate > 0.0 && (!limited || rate >= self.most.get()) {
            self.most.add(self.cycle, rate, CYCLES);
        }
    }

    /// `AdvanceMaxBwFilter` (section 5.5.6).
    pub fn advance(&mut self) {
        self.cycle += 1;
    }

    /// `InitLowerBounds` and `LossLowerBounds` (section 5.5.10.3).
    pub fn lower(&mut self, signals: &Signals, cwnd: u32) {
        if self.short_bandwidth.is_infinite() {
            self.short_bandwidth = self.most.get();
        }
        if self.short_flight == UNBOUND {
            self.short_flight = cwnd;
        }
        self.short_bandwidth = signals.bandwidth.max(BETA * self.short_bandwidth);
        let left = (BETA * f64::from(self.short_flight)) as u32;
        self.short_flight = signals.in_flight.max(left);
    }

    /// `ResetShortTermModel`.
    pub fn forget_congestion(&mut self) {
        self.short_bandwidth = f64::INFINITY;
        self.short_flight = UNBOUND;
    }

    /// `BoundBWForModel`.
    pub fn bound_bandwidth(&mut self) {
        self.bandwidth = self.most.get().min(self.short_bandwidth);
    }

    /// `InflightWithHeadroom` (section 5.3.3.9).
    pub fn with_headroom(&self) -> u32 {
        if self.long_flight == UNBOUND {
            return UNBOUND;
        }
        let free = (HEADROOM * f64::from(self.long_flight)).max(1.0) as u32;
        self.long_flight.saturating_sub(free).max(LEAST)
    }

    /// `HandleInflightTooHigh`: so many packets in flight were too many, where the path, not the application, set the limit.
    pub fn cap_flight(&mut self, in_flight: u32, target: u32) {
        let left = (BETA * f64::from(target)) as u32;
        self.long_flight = in_flight.max(left);
    }
}

/// `IsInflightTooHigh` (section 5.5.10.2): `lost` since there were so many `in_flight`.
pub(super) fn too_high(lost: u64, in_flight: u32, selective: bool) -> bool {
    let lost = lost as f64;
    lost > f64::from(in_flight) * LOSS_THRESHOLD || (lost > 0.0 && !selective)
}

/// `InflightAtLoss`: how many were in flight when too many were lost.
pub(super) fn flight_at_loss(lost: &LostPacket) -> u32 {
    let before = f64::from(lost.in_flight) - 1.0;
    let lost_before = lost.lost as f64 - 1.0;
    let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
    (before + prefix.max(0.0)).ceil().max(0.0) as u32
}

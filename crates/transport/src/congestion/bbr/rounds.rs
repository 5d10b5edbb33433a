//! Round trips by packets: one is over when a packet arrives that was sent after it began.

use crate::congestion::RateSample;

#[derive(Debug, Default)]
pub(in crate::congestion) struct Rounds {
    pub count: u64,
    /// The ACK at hand is the first of a round trip.
    pub started: bool,
    /// The round ends when a packet sent after this many were delivered is delivered.
    end: u64,
    /// Packets delivered so far.
    pub delivered: u64,
}

impl Rounds {
    pub fn take(&mut self, sample: &RateSample) {
        self.delivered = sample.delivered;
        self.started = sample
            .interval
            .is_some_and(|interval| interval.prior_delivered >= self.end);
        if self.started {
            self.begin();
            self.count += 1;
        }
    }

    /// A round begins here, whatever was in flight.
    pub fn begin(&mut self) {
        self.end = self.delivered;
    }
}

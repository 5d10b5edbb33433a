//! What a recovery that proves needless gives back (section 5.5.11).

use super::Mode;
use super::model::Model;

#[derive(Debug, Default)]
pub(super) struct Undo {
    /// The probe that losses ended.
    pub ended: Option<Mode>,
    bandwidth: f64,
    short_flight: u32,
    long_flight: u32,
}

impl Undo {
    /// `SaveStateUponLoss`.
    pub fn save(&mut self, model: &Model) {
        *self = Self {
            ended: None,
            bandwidth: model.short_bandwidth,
            short_flight: model.short_flight,
            long_flight: model.long_flight,
        };
    }

    /// Of `HandleSpuriousLossDetection`: the model, and the probe to go back to.
    pub fn restore(&mut self, model: &mut Model) -> Option<Mode> {
        model.short_bandwidth = model.short_bandwidth.max(self.bandwidth);
        model.short_flight = model.short_flight.max(self.short_flight);
        model.long_flight = model.long_flight.max(self.long_flight);
        self.ended.take()
    }
}

//! Loses every n-th packet, always the same ones.

use polypath_net::LossModel;
use polypath_settings::{Algorithm, algorithm};
use polypath_transport::Nanos;
use rand::RngCore;

algorithm! {
    "every-nth",
    "loses one packet in so many",
    "docs/extend.md";
    /// Settings of regular losses.
    EveryNthConfig {
        /// One in so many.
        every: u32 as Integer.at_least(1),
    }
}

impl Algorithm<dyn LossModel> for EveryNthConfig {
    fn make(self) -> Box<dyn LossModel> {
        Box::new(EveryNth {
            every: self.every,
            count: 0,
        })
    }
}

#[derive(Debug)]
struct EveryNth {
    every: u32,
    count: u32,
}

impl LossModel for EveryNth {
    fn loses(&mut self, _now: Nanos, _rng: &mut dyn RngCore) -> bool {
        self.count = (self.count + 1) % self.every;
        self.count == 0
    }
}

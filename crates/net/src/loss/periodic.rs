//! The deterministic model in which response functions are derived.

use polypath_settings::model;

model! {
    "periodic",
    "loses every n-th packet, as response functions of congestion control assume it",
    "RFC 9438 section 5; iptables-extensions(8), statistic --mode nth";
    /// Settings of periodic losses.
    PeriodicConfig {
        /// Of so many packets the last one is lost.
        every: u64 as Integer.at_least(1),
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Periodic {
    every: u64,
    passed: u64,
}

impl Periodic {
    pub fn new(config: PeriodicConfig) -> Self {
        Self {
            every: config.every,
            passed: 0,
        }
    }

    pub fn loses(&mut self) -> bool {
        self.passed = (self.passed + 1) % self.every;
        self.passed == 0
    }
}

//! PCC Vivace (Dong et al., NSDI 2018), which ignores other paths.

use super::CongestionControl;
use super::pcc::{MEGABIT, Pace, Pcc, Rules, slower_from_four, steeper};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "vivace",
    "PCC Vivace on each path by itself: probes which rate has the greatest utility, to which losses and a growing RTT count against",
    "Dong et al., NSDI 2018; the authors' PCC-Uspace, branch NSDI-2018, and PCC-Kernel, branch vivace";
    /// Settings of Vivace.
    VivaceConfig {
        /// weight of a growing RTT; 0 is Vivace-Loss
        latency_weight: f64 as Number.within(0.0, 10_000.0) = Number(900.0),
        /// weight of losses
        loss_weight: f64 as Number.within(0.1, 1_000.0) = Number(11.35),
    }
}

impl Algorithm<dyn CongestionControl> for VivaceConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Pcc::new(Rules {
            unit: MEGABIT,
            loss: self.loss_weight,
            latency: self.latency_weight,
            // `kRTTFilter` of the authors' PCC-RL, as `utility` cuts to steps of 0.02.
            noise: 0.02,
            // `pcc_calc_utility_vivace`: 100 of 1000.
            start_loss: 0.1,
            attempts: 0,
            halves: 2,
            packets: 10,
            least_probe: 0.5 * MEGABIT,
            strides_from: 0.1,
            brake: (0.5, 0),
            couples: false,
            pace: Pace {
                wider: 0.06,
                amplify: steeper,
                grow: slower_from_four,
            },
        }))
    }
}

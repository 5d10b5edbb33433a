//! MPCC: PCC over several paths, each of which climbs a utility of the rate of all (Gilad et al., CoNEXT 2020).

use super::CongestionControl;
use super::pcc::{Pace, Pcc, Rules};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "mpcc",
    "MPCC: each path probes for the rate with the greatest utility, in which the rates of all paths count, and the losses and RTT of its own",
    "Gilad et al., CoNEXT 2020; the authors' tcp_mpcc.c and tcp_mpcc_loss.c";
    /// Settings of MPCC.
    MpccConfig {
        /// weight of a growing RTT; 0 is MPCC-loss, 1 MPCC-latency
        latency_weight: f64 as Number.within(0.0, 10_000.0) = Number(1.0),
        /// weight of losses
        loss_weight: f64 as Number.within(0.1, 1_000.0) = Number(11.0),
    }
}

impl Algorithm<dyn CongestionControl> for MpccConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Pcc::new(Rules {
            // Bytes a second, where Vivace has megabits: losses weigh about three times as much beside the rate.
            unit: 1.0,
            loss: self.loss_weight,
            latency: self.latency_weight,
            // `PCC_LAT_INFL_FILTER`.
            noise: 0.03,
            // `pcc_calc_utility_vivace`: 150 of 1000.
            start_loss: 0.15,
            // `PCC_SLOW_START_ATTEMPTS`.
            attempts: 2,
            // `send_end_time`, `PCC_INTERVAL_MIN_PACKETS`.
            halves: 3,
            packets: 1,
            least_probe: 0.0,
            // `pcc_decide`: any change.
            strides_from: f64::NEG_INFINITY,
            // `EMERGENCY_BRAKE_RATIO`.
            brake: (0.3, 100),
            couples: true,
            pace: Pace {
                wider: 0.05,
                amplify: |confidence| 1.0 + confidence,
                grow: |_| 2.0,
            },
        }))
    }
}

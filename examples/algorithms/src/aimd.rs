//! Additive increase, multiplicative decrease, with any factors.

use polypath_settings::{Algorithm, algorithm};
use polypath_transport::congestion::{Ack, CongestionControl, additive_increase, slow_start};
use polypath_transport::path::Member;

algorithm! {
    "aimd",
    "Additive increase and multiplicative decrease on each path by itself",
    "Chiu and Jain, Computer Networks and ISDN Systems 17(1) 1989";
    /// Settings of the increase and the decrease.
    AimdConfig {
        /// packets that a round trip adds
        increase: u32 as Integer.at_least(1).at_most(100) = Integer(1),
        /// part of the window that a loss leaves
        decrease: f64 as Number.within(0.1, 0.9) = Number(0.5),
    }
}

impl Algorithm<dyn CongestionControl> for AimdConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Aimd { config: self })
    }
}

struct Aimd {
    config: AimdConfig,
}

impl CongestionControl for Aimd {
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        ((f64::from(path.cwnd) * self.config.decrease) as u32).max(2)
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.packets;
        if path.in_slow_start() {
            acked = slow_start(path, acked);
        }
        let per_packet = path.cwnd / self.config.increase;
        additive_increase(path, per_packet, acked);
    }
}

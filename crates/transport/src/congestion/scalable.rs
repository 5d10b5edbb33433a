//! Scalable TCP (Kelly, CCR 2003).

use super::{Ack, CongestionControl, additive_increase, slow_start};
use crate::path::Member;
use polypath_settings::{Algorithm, algorithm, choice};

algorithm! {
    "scalable",
    "Scalable TCP on each path by itself: growth and reduction in proportion to the window",
    "Kelly, CCR 33(2) 2003; variant linux: net/ipv4/tcp_scalable.c";
    /// Settings of Scalable TCP.
    ScalableConfig {
        /// the paper (Reno up to a window of 16 packets) or Linux (Reno's increase up to 1/a packets, one reduction for all windows)
        variant: Variant as Text = Text("paper"),
        /// packets that each acknowledged packet adds
        a: f64 as Number.within(0.0001, 1.0) = Number(0.01),
        /// part of the window that a loss takes off
        b: f64 as Number.within(0.01, 0.9) = Number(0.125),
    }
}

choice! {
    /// Whose Scalable TCP it is.
    Variant {
        Paper = "paper",
        Linux = "linux",
    }
}

impl Algorithm<dyn CongestionControl> for ScalableConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Scalable {
            linux: self.variant == Variant::Linux,
            per_packet: (1.0 / self.a).round() as u32,
            cut: self.b,
        })
    }
}

/// The largest window at which the paper's algorithm is Reno, in packets.
const LEGACY_WINDOW: u32 = 16;

struct Scalable {
    linux: bool,
    /// Acknowledged packets for one packet more.
    per_packet: u32,
    cut: f64,
}

impl Scalable {
    fn legacy(&self, window: u32) -> bool {
        !self.linux && window <= LEGACY_WINDOW
    }
}

impl CongestionControl for Scalable {
    fn ssthresh(&mut self, path: &mut Member) -> u32 {
        let window = path.cwnd;
        let cut = if self.legacy(window) {
            window.div_ceil(2)
        } else {
            (f64::from(window) * self.cut) as u32
        };
        (window - cut).max(2)
    }

    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.packets;
        if path.in_slow_start() {
            acked = slow_start(path, acked);
            if acked == 0 {
                return;
            }
        }
        let per_packet = if self.legacy(path.cwnd) {
            path.cwnd
        } else if self.linux {
            path.cwnd.min(self.per_packet)
        } else {
            self.per_packet
        };
        additive_increase(path, per_packet, acked);
    }
}

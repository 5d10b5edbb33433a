//! NewReno: halve the window on loss, add one packet each round trip (RFC 5681, RFC 6582).

use super::{Ack, CongestionControl, additive_increase, slow_start};
use crate::path::{Member, Path};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "reno",
    "NewReno on each path by itself: halves on loss, one packet more each round trip",
    "RFC 5681, RFC 6582; Linux net/ipv4/tcp_cong.c";
    Reno
}

impl Algorithm<dyn CongestionControl> for Reno {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(self)
    }
}

#[derive(Default)]
pub(super) struct Reno;

impl CongestionControl for Reno {
    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        avoid(path, ack);
    }
}

/// Slow start, then additive increase by one packet a window.
pub(super) fn avoid(path: &mut Path, ack: &Ack) {
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
    additive_increase(path, path.cwnd, acked);
}

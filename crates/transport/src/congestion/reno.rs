//! NewReno: halve the window on loss, add one packet each round trip (RFC 5681, RFC 6582).

use super::hystart_plus::HyStartPlus;
use super::{Ack, CongestionControl, additive_increase, slow_start};
use crate::path::{CaState, Member, Path};
use polypath_settings::{Algorithm, algorithm};

algorithm! {
    "reno",
    "NewReno on each path by itself: halves on loss, one packet more each round trip",
    "RFC 5681, RFC 6582; Linux net/ipv4/tcp_cong.c; RFC 8511, RFC 9406";
    /// Settings of Reno.
    RenoConfig {
        /// after a mark (ECN) leave four fifths of the window instead of a half (RFC 8511)
        abe: bool as Boolean = Boolean(false),
        /// slow down slow start while the delay rises (HyStart++, RFC 9406)
        hystart_plus: bool as Boolean = Boolean(false),
    }
}

impl Algorithm<dyn CongestionControl> for RenoConfig {
    fn make(self) -> Box<dyn CongestionControl> {
        Box::new(Reno {
            abe: self.abe,
            slow_start: self.hystart_plus.then(Box::default),
        })
    }
}

#[derive(Default)]
pub(super) struct Reno {
    abe: bool,
    slow_start: Option<Box<HyStartPlus>>,
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, path: &mut Member, ack: &Ack) {
        match &mut self.slow_start {
            Some(slow_start) if path.in_slow_start() && ack.cwnd_limited => {
                let packets = slow_start.grow(path, ack);
                let window = path.cwnd;
                additive_increase(path, window, packets);
            }
            _ => avoid(path, ack),
        }
    }

    /// RFC 8511 section 3.1: beta_ecn is 0.8.
    fn on_state(&mut self, path: &mut Member, state: CaState) {
        if self.abe && state == CaState::Cwr {
            let left = u64::from(path.cwnd) * 4 / 5;
            path.ssthresh = (left as u32).max(2);
        }
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

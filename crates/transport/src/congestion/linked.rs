//! The common parts of coupled controllers.

use super::{Ack, slow_start};
use crate::path::{CaState, Member, Path};

/// The paths over which windows are coupled: those that can send and whose RTT is known.
pub(super) fn usable(paths: &[Path]) -> impl Iterator<Item = &Path> {
    paths
        .iter()
        .filter(|path| path.established && path.srtt > 0)
}

/// Whether the connection has more than one established path.
pub(super) fn several(paths: &[Path]) -> bool {
    paths
        .iter()
        .filter(|path| path.established)
        .nth(1)
        .is_some()
}

/// The least slow-start threshold in packets: RFC 5681's two, or one where other paths keep the ACK clock running (OLIA's and BALIA's drafts).
pub(super) fn floor(paths: &[Path]) -> u32 {
    if several(paths) { 1 } else { 2 }
}

/// A path's window in packets. One that is being reduced counts as what it is being reduced to: until then it follows what is in flight
/// (RFC 6937), which says nothing of the path. One that was given up carries nothing and counts as what a timeout leaves over TCP (RFC 5681
/// section 3.1); a probe timeout of QUIC leaves the window as it was.
pub(super) fn window(path: &Path) -> u32 {
    if path.potentially_failed {
        path.cwnd.min(1)
    } else if path.state == CaState::Recovery {
        path.cwnd.min(path.ssthresh)
    } else {
        path.cwnd
    }
}

/// The smoothed RTT in nanoseconds. No RTT has 64 bits, and a signed number is converted faster.
#[inline]
pub(super) fn srtt(path: &Path) -> f64 {
    path.srtt as i64 as f64
}

/// Window over RTT, in packets per nanosecond.
pub(super) fn rate(path: &Path) -> f64 {
    f64::from(window(path)) / srtt(path)
}

pub(super) fn total_rate(paths: &[Path]) -> f64 {
    usable(paths).map(rate).sum()
}

/// Sum of the windows, in packets: at least the path's own, also before its RTT is known.
pub(super) fn total_window(path: &Member) -> f64 {
    let windows = usable(path.paths).map(|path| f64::from(window(path)));
    windows.sum::<f64>().max(f64::from(window(path)))
}

/// The counter of the out-of-tree kernel: one step per ACK, of however many packets. It is compared before it is raised, so that an increase
/// takes one ACK more than the threshold. True: the window grew.
pub(super) fn count_ack(path: &mut Path, threshold: u64) -> bool {
    if u64::from(path.cwnd_count) < threshold {
        path.cwnd_count += 1;
        return false;
    }
    path.cwnd += 1;
    path.cwnd_count = 0;
    true
}

/// Growth, or shrinking, that makes no whole packet yet.
#[derive(Default)]
pub(super) struct Credit(f64);

impl Credit {
    /// Slow start, then `step` packets for each packet acknowledged, while the window is what limits the sender.
    pub fn avoid(&mut self, path: &mut Member, ack: &Ack, step: impl Fn(&Member) -> f64) {
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
        self.0 += f64::from(acked) * step(path);
        let whole = self.0.trunc();
        self.0 -= whole;
        path.cwnd = (i64::from(path.cwnd) + whole as i64).max(1) as u32;
    }

    pub fn clear(&mut self) {
        self.0 = 0.0;
    }

    pub fn packets(&self) -> f64 {
        self.0
    }
}

//! A corked socket (TCP_CORK) as in Linux: less than a segment waits for more data. While something is in flight, it
//! also waits for the acknowledgement. After that it waits for the timer of window probes, which sends it
//! (`tcp_nagle_check`, `tcp_check_probe_timer`, `tcp_write_wakeup`).

use super::Socket;
use super::timer::Pending;
use crate::tcp::context::Shared;
use crate::{MILLISECOND, Nanos};

/// The least that the timer of window probes takes (TCP_RTO_MIN in `tcp_probe0_base`).
const SHORTEST: Nanos = 200 * MILLISECOND;

impl Socket {
    /// Whether a segment that is not full has to wait. A FIN takes with it what is left (`tcp_send_fin`).
    pub(super) fn corked(&self, shared: &Shared) -> bool {
        (shared.config.cork || shared.more_follows) && !shared.uncorked && !self.lifetime.closing()
    }

    /// Something small could not leave: sees to it that it will, if nothing else is under way that would.
    pub(crate) fn hold(&mut self, shared: &Shared) {
        if self.transfer.flight.is_empty()
            && self.transfer.timers.pending() == Pending::None
            && self.corked(shared)
        {
            let wait = self.transfer.retransmission_timeout(shared).max(SHORTEST);
            self.transfer.timers.set(Pending::Probe, shared.now + wait);
        }
    }
}

/// An acknowledgement arrived while nothing is in flight: what a cork holds waits once more from then on (`tcp_ack_probe`,
/// `tcp_data_snd_check`).
#[cold]
pub(super) fn hold_again(socket: &mut Socket, shared: &Shared) {
    if socket.corked(shared) {
        socket.transfer.timers.stop_retransmission();
        socket.hold(shared);
    }
}

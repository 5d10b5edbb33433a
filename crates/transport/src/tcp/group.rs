//! How upstream Linux groups segments: one buffer leaves as several segments, whose last is pushed, and one that would hold fewer than it
//! might waits for the next acknowledgement if that is near (net/ipv4/tcp_output.c `tcp_write_xmit`, `tcp_tso_should_defer`,
//! `__tcp_transmit_skb`).

use super::{Socket, memory};
use crate::path::{CaState, Path};
use crate::{MILLISECOND, Nanos};

/// A group may wait only within this time of the last one.
const RECENT: Nanos = MILLISECOND;
/// The part of the window that leaves without waiting (`tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;

/// The buffer at the head of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Front {
    /// Bytes in it, and those that the peer's window admits from its first on.
    pub bytes: u64,
    pub window: u64,
    /// Others wait behind it.
    pub followed: bool,
    /// A rest smaller than a segment may leave.
    pub rest_leaves: bool,
}

impl Socket {
    /// How many segments of the head leave together; absent: they wait. The window has room.
    pub(crate) fn group(&self, path: &Path, now: Nanos, head: Front) -> Option<u32> {
        let mss = u64::from(path.mss.max(1));
        let most = memory::segments_sent(path);
        let room = path.cwnd.saturating_sub(self.in_flight());
        if head.bytes > mss && self.defers(path, now, head, most) {
            return None;
        }
        let whole = head.bytes / mss;
        let rest = u64::from(head.rest_leaves && head.bytes % mss > 0);
        let quota = u64::from(room.min((path.cwnd / 2).max(1))).min(most);
        Some(quota.min(whole + rest).max(1) as u32)
    }

    fn defers(&self, path: &Path, now: Nanos, head: Front, most: u64) -> bool {
        if matches!(path.state, CaState::Recovery | CaState::Loss)
            || now > self.last_sent_at + RECENT
        {
            return false;
        }
        let mss = u64::from(path.mss.max(1));
        let admitted = u64::from(path.cwnd.saturating_sub(self.in_flight())) * mss;
        let limit = admitted.min(head.window);
        let fraction = u64::from(path.cwnd) * mss / WINDOW_DIVISOR;
        if limit >= most * mss || (head.followed && limit >= head.bytes) || limit >= fraction {
            return false;
        }
        let Some(first) = self.sent.front() else {
            return false;
        };
        let expected = first.sent_at + path.srtt;
        expected <= now + RECENT.min(path.srtt / 2) && limit <= head.bytes
    }
}

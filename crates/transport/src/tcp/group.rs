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
    /// Nothing follows it any more.
    pub ends: bool,
}

/// The head waits for the next acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deferred {
    /// The congestion window is what keeps it.
    pub by_window: bool,
}

impl Socket {
    /// How many segments of the head leave together. The window has room.
    pub(crate) fn group(&self, path: &Path, now: Nanos, head: Front) -> Result<u32, Deferred> {
        let mss = u64::from(path.mss.max(1));
        let most = memory::segments_sent(path);
        if head.bytes > mss
            && let Some(deferred) = self.defers(path, now, head, most)
        {
            return Err(deferred);
        }
        Ok(self.segments(path, head))
    }

    /// How many segments of the head leave together if none waits.
    pub(crate) fn segments(&self, path: &Path, head: Front) -> u32 {
        let mss = u64::from(path.mss.max(1));
        let whole = head.bytes / mss;
        let rest = u64::from(head.rest_leaves && head.bytes % mss > 0);
        self.quota(path).min(whole + rest).max(1) as u32
    }

    /// The most segments that leave together (`tcp_cwnd_test`, `tcp_tso_segs`).
    pub(crate) fn quota(&self, path: &Path) -> u64 {
        let room = path.cwnd.saturating_sub(self.in_flight());
        u64::from(room.min((path.cwnd / 2).max(1))).min(memory::segments_sent(path))
    }

    fn defers(&self, path: &Path, now: Nanos, head: Front, most: u64) -> Option<Deferred> {
        if matches!(path.state, CaState::Recovery | CaState::Loss)
            || now > self.last_sent_at + RECENT
        {
            return None;
        }
        let mss = u64::from(path.mss.max(1));
        let admitted = u64::from(path.cwnd.saturating_sub(self.in_flight())) * mss;
        let limit = admitted.min(head.window);
        let fraction = u64::from(path.cwnd) * mss / WINDOW_DIVISOR;
        if limit >= most * mss || (head.followed && limit >= head.bytes) || limit >= fraction {
            return None;
        }
        let first = self.sent.front()?;
        let expected = first.sent_at + path.srtt;
        if expected > now + RECENT.min(path.srtt / 2) || (head.ends && limit > head.bytes) {
            return None;
        }
        Some(Deferred {
            by_window: admitted < head.window && admitted <= head.bytes,
        })
    }
}

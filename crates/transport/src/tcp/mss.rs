//! The maximum length of a segment: the limits of both ends and of the path. In the kernels it is also at most half of
//! the peer's largest window, or all of a very small one (`tcp_sync_mss`, `tcp_bound_to_half_wnd`).

use super::{SMALLEST_MSS, Socket, State, TIMESTAMP_OPTION};
use crate::path::Path;
use crate::settings::Profile;
use crate::tcp::context::{Context, Options};

/// Windows up to this are not halved (TCP_MSS_DEFAULT).
const SMALL_WINDOW: u64 = 536;
/// The most payload of a segment for a peer that offered at most `window`, without regard to the path.
pub(crate) fn most_of_window(window: u64) -> u64 {
    if window > SMALL_WINDOW {
        window / 2
    } else {
        window.max(1)
    }
}

/// How long a segment may be, options included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mss {
    /// What the SYN announces: that of this subflow's address family.
    announced: u16,
    /// What both ends and the path take.
    agreed: u16,
    /// What the peer's window admits of it.
    of_window: u16,
    /// The lesser of the two.
    usable: u16,
    /// What the peer's SYN announced.
    peer: u16,
}

impl Mss {
    pub fn new(announced: u16) -> Self {
        Self {
            announced,
            agreed: announced,
            of_window: u16::MAX,
            usable: announced,
            peer: announced,
        }
    }

    pub fn announced(self) -> u16 {
        self.announced
    }

    /// Announces another than that of the MTU (Linux `tcp_advertise_mss`).
    pub fn announce(&mut self, mss: u16) {
        self.announced = mss.max(SMALLEST_MSS);
    }

    pub fn agreed(self) -> u16 {
        self.agreed
    }

    pub fn peer(self) -> u16 {
        self.peer
    }

    /// The peer's SYN announced this.
    pub fn meet(&mut self, peer: u16) {
        self.peer = peer;
        self.agreed = self.agreed.min(peer);
    }

    /// The path takes another; it counts once it is [settled](Self::settle).
    pub fn agree(&mut self, mss: u16) {
        self.agreed = mss;
    }

    fn bound(&mut self, of_window: u16) {
        self.of_window = of_window;
    }

    fn settle(&mut self) {
        self.usable = self.agreed.min(self.of_window);
    }

    #[inline(always)]
    pub fn usable(self) -> u16 {
        self.usable
    }
}

impl Socket {
    /// Options that every segment has.
    pub(super) fn fixed_options(&self) -> u32 {
        if self.negotiated.timestamps {
            TIMESTAMP_OPTION
        } else {
            0
        }
    }

    /// Both SYNs are known, and in an answer to ours the peer's window.
    pub(super) fn settle_mss(&mut self, profile: Profile) {
        if self.lifetime.state() == State::SynSent {
            self.mss.bound(self.half_of_window(profile));
        }
        self.mss.settle();
    }

    /// The path takes another MSS, options included.
    pub(super) fn take_mss(&mut self, path: &mut Path, mss: u16) {
        self.mss.agree(mss);
        self.follow(path);
    }

    fn follow(&mut self, path: &mut Path) {
        let before = self.mss.usable();
        self.mss.settle();
        if !matches!(self.lifetime.state(), State::Closed | State::SynSent) {
            path.mss = (path.mss + u32::from(self.mss.usable())).saturating_sub(before.into());
        }
    }

    /// What the window admits with the largest window there was; the options of every segment fit.
    fn half_of_window(&self, profile: Profile) -> u16 {
        if !profile.halves_windows() || self.window.largest() == 0 {
            return u16::MAX;
        }
        let most = most_of_window(self.window.largest()) + u64::from(self.fixed_options());
        u16::try_from(most).unwrap_or(u16::MAX).max(SMALLEST_MSS)
    }

    /// The peer offered more than ever (`tcp_ack_update_window`).
    #[cold]
    #[inline(never)]
    pub(super) fn note_larger_window(&mut self, cx: &mut Context<impl Options>) {
        if self.searches() {
            self.sync_search(cx);
        }
        self.bound_by_window(cx);
    }

    /// No segment is longer than half of the largest window that there was.
    pub(super) fn bound_by_window(&mut self, cx: &mut Context<impl Options>) {
        let before = self.mss.usable();
        self.mss
            .bound(self.half_of_window(cx.shared.config.profile));
        self.follow(&mut cx.path);
        if self.mss.usable() != before {
            self.queue.lengthen(cx.path.mss);
        }
    }
}

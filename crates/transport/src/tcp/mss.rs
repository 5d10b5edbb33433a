//! How long a segment may be: what both ends and the path take, and in the kernels no more than half of the largest window that the peer
//! offered, or all of a very small one (`tcp_sync_mss`, `tcp_bound_to_half_wnd`).

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
        if self.state == State::SynSent {
            self.window_mss = self.half_of_window(profile);
        }
        self.usable_mss = self.mss.min(self.window_mss);
    }

    /// The path takes another MSS, options included.
    pub(super) fn take_mss(&mut self, path: &mut Path, mss: u16) {
        self.mss = mss;
        self.follow(path);
    }

    fn follow(&mut self, path: &mut Path) {
        let before = self.usable_mss;
        self.usable_mss = self.mss.min(self.window_mss);
        if !matches!(self.state, State::Closed | State::SynSent) {
            path.mss = (path.mss + u32::from(self.usable_mss)).saturating_sub(before.into());
        }
    }

    /// What [`Socket::window_mss`] becomes with the largest window there was; the options of every segment fit.
    fn half_of_window(&self, profile: Profile) -> u16 {
        if !profile.halves_windows() || self.largest_window == 0 {
            return u16::MAX;
        }
        let most = most_of_window(self.largest_window) + u64::from(self.fixed_options());
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
        let before = self.usable_mss;
        self.window_mss = self.half_of_window(cx.shared.config.profile);
        self.follow(&mut cx.path);
        if self.usable_mss != before {
            self.cut_anew(cx.path.mss);
        }
    }
}

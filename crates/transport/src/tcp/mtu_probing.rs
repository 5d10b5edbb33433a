//! The sender's own search for the path's MTU (RFC 4821), as in Linux with `tcp_mtu_probing`.
//!
//! - It sends a segment of another length among the others. The length is too large if only this segment is lost
//!   (`tcp_mtu_probe`, `tcp_mtup_probe_success` and `_failed`).
//! - If segment after segment times out, the length may be too large for the path, and shorter ones are sent
//!   (`tcp_mtu_probing` in `tcp_timer.c`).

use super::Socket;
use super::mss::Mss;
use crate::path::{CaState, INFINITE_SSTHRESH, Path};
use crate::tcp::context::{Context, Options};
use crate::{EventKind, Mib, Nanos};

/// A lost probe takes a window that makes duplicate acknowledgements for it (`tcp_mtu_probe`).
const LEAST_WINDOW: u32 = 11;

/// What the search asks of a sender who has data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// To send on.
    None,
    /// To wait until there is room for a probe.
    Wait,
    /// To send a probe of so many bytes.
    Probe(u32),
}

impl Mss {
    /// The path takes what the search has found. `options`: those of every segment. `connected`: the peer's SYN has come.
    fn take_searched(&mut self, path: &mut Path, options: u32, connected: bool) {
        if let Some(mss) = self.searched(options) {
            self.take(path, mss, connected);
        }
    }

    /// The host was told of the path's MTU. Whether that is news; absent: there is no search.
    pub(super) fn bound_search(
        &mut self,
        path: &mut Path,
        mtu: u32,
        options: u32,
        connected: bool,
    ) -> Option<bool> {
        let news = self.search()?.bound(mtu);
        self.take_searched(path, options, connected);
        Some(news)
    }

    /// A probe of `len` bytes has left as the last segment, which ends at `end`: it counts as two packets.
    pub(crate) fn probe_sent(&mut self, path: &mut Path, end: u64, len: u32, options: u32) {
        if let Some(search) = self.search() {
            search.on_sent(end - u64::from(len), end, len, options);
            path.cwnd -= 1;
        }
    }
}

impl Socket {
    /// Something is about to be cut into segments: the MTU of a route that the last one took counts (`tcp_current_mss`).
    #[cold]
    pub(crate) fn heed_route(&mut self, cx: &mut Context<impl Options>) {
        if self.mss.search().is_some_and(|it| it.heed_route()) {
            self.take_changed_mss(cx);
        }
    }

    /// What waits is cut as it is from now on; what was sent, once it is sent again (`__tcp_retransmit_skb`).
    pub(super) fn take_changed_mss(&mut self, cx: &mut Context<impl Options>) {
        let before = self.mss.usable();
        let connected = self.lifetime.state().has_peer();
        let options = self.negotiated.fixed_options();
        self.mss.take_searched(&mut cx.path, options, connected);
        let after = self.mss.usable();
        if after < before {
            (self.queue).recut(cx.path.mss, cx.options.first_segment_excess());
        } else if after > before {
            self.queue.lengthen(cx.path.mss);
        }
    }

    /// A timeout. One long after the first retransmission has the search begin, further ones have it go down.
    #[cold]
    pub(super) fn suspect_black_hole(
        &mut self,
        cx: &mut Context<impl Options>,
        first_retransmission: Nanos,
    ) {
        let options = self.negotiated.fixed_options();
        let before = self.mss.agreed();
        let search = self.mss.search();
        let Some(mtu) = search.and_then(|search| {
            let base = cx.shared.config.limits.base_mss;
            search.on_timeout(first_retransmission, base, options, cx.shared.now)
        }) else {
            return;
        };
        let connected = self.lifetime.state().has_peer();
        let options = self.negotiated.fixed_options();
        self.mss.take_searched(&mut cx.path, options, connected);
        if self.mss.agreed() < before {
            cx.shared.event(EventKind::PathMtu {
                subflow: cx.path.index,
                mtu,
            });
            self.cut_to_segments(cx);
        }
    }

    /// Whether a probe is to leave now: `waiting` bytes were not sent, of which the window admits `window`, and `offered` is all of the
    /// window (`tcp_mtu_probe`).
    #[cold]
    pub(crate) fn advise(
        &mut self,
        cx: &mut Context<impl Options>,
        (waiting, window, offered): (u64, u64, u64),
    ) -> Advice {
        let options = self.negotiated.fixed_options();
        let more = cx.options.data_len();
        let in_flight = self.transfer.flight.in_flight();
        let several =
            (self.transfer.recovery.reordering_degree() + 1) * u64::from(self.plain_mss());
        let disturbed = self.receiver.has_sack();
        if self.transfer.recovery.state() != CaState::Open
            || cx.path.cwnd < LEAST_WINDOW
            || disturbed
            || self.transfer.controller.blocked()
        {
            return Advice::None;
        }
        let search = self.mss.search();
        let Some((search, len)) = search.and_then(|search| {
            let len = search.candidate(cx.path.mss, options, cx.shared.now)?;
            Some((search, len))
        }) else {
            return Advice::None;
        };
        let needed = u64::from(len) + several;
        // With nothing in flight the window admits all that it offers: there is no acknowledgement to wait for.
        let offered = if in_flight == 0 { window } else { offered };
        if waiting < needed || offered < needed || !search.fits(more) {
            return Advice::None;
        }
        if window < needed || in_flight + 2 > cx.path.cwnd {
            return Advice::Wait;
        }
        Advice::Probe(len)
    }

    /// Sends a probe out of a subflow's queue if one is due. False: nothing is to be sent before it.
    #[cold]
    pub(super) fn probe_unsent(&mut self, cx: &mut Context<impl Options>) -> bool {
        let Some(offset) = self.queue.front().map(|chunk| chunk.offset) else {
            return true;
        };
        let window = cx.shared.send_limit.saturating_sub(offset);
        let bytes = (self.queue.bytes(), window, cx.shared.largest_window);
        match self.advise(cx, bytes) {
            Advice::None => true,
            Advice::Wait => false,
            Advice::Probe(len) => {
                let end = self.transfer.flight.next() + u64::from(len);
                if let Some(chunk) = self.queue.take(len, end) {
                    self.send_chunk(cx, chunk);
                    let options = self.negotiated.fixed_options();
                    let end = self.transfer.flight.next();
                    self.mss.probe_sent(&mut cx.path, end, len, options);
                    (self.queue).recut(cx.path.mss, cx.options.first_segment_excess());
                }
                true
            }
        }
    }

    /// If a sent probe and everything before it was acknowledged: the window keeps its bytes (`tcp_mtup_probe_success`).
    #[cold]
    pub(super) fn settle_probe(&mut self, cx: &mut Context<impl Options>) {
        let una = self.transfer.flight.una();
        let mss = u32::from(self.mss.usable());
        let Some(search) = self.mss.search() else {
            return;
        };
        let Some(mtu) = search.on_acknowledged(una) else {
            return;
        };
        let path = &mut cx.path;
        let bytes = u64::from(path.cwnd) * u64::from(mss + search.headers());
        path.cwnd = ((bytes / u64::from(mtu)) as u32).max(1);
        path.cwnd_count = 0;
        if path.ssthresh != INFINITE_SSTHRESH
            && !matches!(
                self.transfer.recovery.state(),
                CaState::Cwr | CaState::Recovery
            )
        {
            path.ssthresh = path.ssthresh.max(path.cwnd * 3 / 4);
        }
        let connected = self.lifetime.state().has_peer();
        let options = self.negotiated.fixed_options();
        self.mss.take_searched(path, options, connected);
        self.queue.lengthen(path.mss);
        cx.shared.counters.increment(Mib::TcpExtTCPMTUPSuccess);
        cx.shared.event(EventKind::PathMtu {
            subflow: cx.path.index,
            mtu,
        });
    }

    /// Something is lost. True: the probe, and that is no sign of congestion (`tcp_fastretrans_alert`, `tcp_mtup_probe_failed`).
    #[cold]
    pub(super) fn fail_probe(&mut self, cx: &mut Context<impl Options>) -> bool {
        let una = self.transfer.flight.una();
        let calm = self.transfer.recovery.state() < CaState::Cwr;
        let search = self.mss.search().filter(|_| calm);
        if !search.is_some_and(|search| search.on_lost(una)) {
            return false;
        }
        cx.shared.counters.increment(Mib::TcpExtTCPMTUPFail);
        cx.path.cwnd += 1;
        self.cut_long_segments(cx);
        true
    }

    /// Something is sent again, after which a probe tells nothing (`__tcp_retransmit_skb`).
    #[cold]
    pub(super) fn cancel_probe(&mut self, cx: &mut Context<impl Options>) {
        // What is sent again looks for its route first.
        self.mss.find_route();
        self.heed_route(cx);
        if let Some(search) = self.mss.search() {
            search.cancel();
        }
    }
}

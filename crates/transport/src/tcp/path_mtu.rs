//! Path MTU discovery (RFC 1191, RFC 8201) as in Linux. A packet that was too long is split and retransmitted at once,
//! and cwnd is unchanged (`tcp_v4_mtu_reduced`, `tcp_sync_mss`, `tcp_simple_retransmit`).

use super::flight::Sent;
use super::transfer::Transfer;
use super::{Push, Socket, announced_mss};
use crate::linux::small_queue::SmallQueue;
use crate::linux::write_queue::WriteQueue;
use crate::path::Member;
use crate::path::{CaState, INFINITE_SSTHRESH, Path};
use crate::tcp::context::{Context, Options};

/// The least MTU that a report is believed: Linux's ip_rt_min_pmtu, and what every link of IPv6 has (RFC 8200 section 5).
const LEAST_IPV4: u32 = 552;
const LEAST_IPV6: u32 = 1280;

impl Transfer {
    /// What was cut is sent again as after a timeout, but for no congestion (`tcp_non_congestion_loss_retransmit`).
    fn resend_cut(&mut self, path: &mut Member) {
        if !self.sack {
            self.flight.limit_duplicates();
        }
        let reducing = matches!(self.recovery.state(), CaState::Cwr | CaState::Recovery);
        if self.recovery.state() != CaState::Loss {
            if !reducing && path.ssthresh != INFINITE_SSTHRESH {
                path.ssthresh = path.ssthresh.max(path.cwnd * 3 / 4);
            }
            (self.recovery).begin_loss_without_congestion(path, &self.flight, &mut self.controller);
        }
    }
}

impl Socket {
    /// From now on no packet is longer than `mtu` bytes. False: none was.
    pub(crate) fn limit_mtu(&mut self, path: &mut Path, mtu: u32, ipv6: bool) -> bool {
        let least = if ipv6 { LEAST_IPV6 } else { LEAST_IPV4 };
        let options = self.negotiated.fixed_options();
        let connected = self.lifetime.state().has_peer();
        if let Some(news) = (self.mss).bound_search(path, mtu.max(least), options, connected) {
            return news;
        }
        let mss = announced_mss(mtu.max(least), ipv6);
        let less = mss < self.mss.agreed();
        if less {
            self.mss.take(path, mss, connected);
        }
        less
    }

    /// Cuts what is longer than a segment may be now, and takes for lost what of it was sent.
    pub(crate) fn cut_long_segments(&mut self, cx: &mut Context<impl Options>) {
        if self.cut_to_segments(cx) {
            self.transfer.resend_cut(&mut cx.path);
        }
        self.publish(&mut cx.path);
    }

    /// As [`Socket::cut_long_segments`], without what follows from it. True: something was sent that is longer.
    pub(super) fn cut_to_segments(&mut self, cx: &mut Context<impl Options>) -> bool {
        let mss = cx.path.mss;
        let excess = cx.options.first_segment_excess();
        self.queue.cut_to(mss, excess);
        (self.transfer.flight).cut_to(|offset| if offset == 0 { mss - excess } else { mss })
    }

    /// As [`Socket::cut_long_segments`] where segments lie in `buffers`: each that is too long is cut anew from its beginning
    /// (`tcp_set_skb_tso_segs`). `first`: the sequence number at which the buffers' count begins.
    #[cold]
    pub(crate) fn cut_buffers(
        &mut self,
        cx: &mut Context<impl Options>,
        buffers: &WriteQueue,
        first: u64,
    ) {
        let mss = cx.path.mss;
        let longest = |sent: &Sent| match sent.offset {
            0 => mss - cx.options.first_segment_excess(),
            _ => mss,
        };
        let goes_on = |end: u64| {
            let end = end - first;
            buffers.end_of(end - 1).is_some_and(|its_end| its_end > end)
        };
        (self.transfer.flight).join(|sent| sent.len > longest(sent), goes_on);
        self.cut_long_segments(cx);
    }

    /// As [`Socket::cut_buffers`], the buffers being the subflow's own.
    pub(crate) fn cut_own_buffers(&mut self, cx: &mut Context<impl Options>) {
        self.queue.join();
        if let Some(buffers) = self.queue.lend_buffers() {
            self.cut_buffers(cx, &buffers, 0);
            self.queue.give_back_buffers(buffers);
        }
    }

    /// As [`Socket::resend_buffers`], the buffers being the subflow's own.
    pub(crate) fn resend_own_buffers(
        &mut self,
        cx: &mut Context<impl Options>,
        queue: &mut SmallQueue,
    ) -> bool {
        let Some(mut buffers) = self.queue.lend_buffers() else {
            return false;
        };
        let full = self.resend_buffers(cx, (&mut buffers, 0), queue);
        self.queue.give_back_buffers(buffers);
        full
    }

    /// Sends what is queued as far as the host's queue admits (`tcp_tsq_write`). True: the rest waits until the host has passed that on.
    #[cold]
    pub(crate) fn send_through(
        &mut self,
        cx: &mut Context<impl Options>,
        queue: &mut SmallQueue,
    ) -> bool {
        while let Some(first) = self.queue.front()
            && self.transfer.flight.in_flight() < cx.path.cwnd
            && cx.shared.admits(first.offset + u64::from(first.len))
        {
            let Ok(group) = self.next_group(cx, false) else {
                break;
            };
            if queue.full(group.bytes, false) {
                return true;
            }
            queue.push(group.segments.into(), group.bytes);
            self.take_group(group);
            self.send_chunks(cx, group);
        }
        false
    }

    /// Sends again what was cut, a buffer or what may leave of it at a time (`tcp_xmit_retransmit_queue`). True: the rest waits until
    /// the host has passed that on.
    #[cold]
    pub(crate) fn resend_buffers(
        &mut self,
        cx: &mut Context<impl Options>,
        (buffers, first): (&mut WriteQueue, u64),
        queue: &mut SmallQueue,
    ) -> bool {
        while let Some(index) = self
            .transfer
            .flight
            .segments()
            .iter()
            .position(Sent::awaits_repair)
        {
            let together = self.lost_together(&cx.path, index, Some((&*buffers, first)));
            if together.is_empty() {
                break;
            }
            let start = self.transfer.flight.segments()[index].seq - first;
            let end = buffers.end_of(start).unwrap_or(start);
            if queue.full(end - start, true) {
                return true;
            }
            let mut left = start;
            for nth in together.clone() {
                left = self.transfer.flight.segments()[nth].end() - first;
                self.retransmit_as(cx, nth, Push::of_nth(nth, &together));
            }
            buffers.split(left);
            queue.push(together.len() as u64, left - start);
            if index == 0 {
                self.transfer.arm_retransmission(cx.shared);
            }
        }
        self.publish(&mut cx.path);
        false
    }

    /// What is sent again is no longer than a segment may be now: the path takes less, or the options take more, than when it left, or it
    /// was a probe (`__tcp_retransmit_skb`).
    pub(super) fn cut_repeated(&mut self, cx: &Context<impl Options>, index: usize) {
        let options = self.negotiated.fixed_options() + cx.options.data_len();
        let longest = u32::from(self.mss.usable()).saturating_sub(options).max(1);
        if self.transfer.flight.segments()[index].len > longest {
            self.transfer.flight.cut_at(index, longest);
            self.transfer.recovery.recount(&self.transfer.flight);
        }
    }
}

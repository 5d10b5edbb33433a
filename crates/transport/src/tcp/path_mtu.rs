//! Path MTU discovery (RFC 1191, RFC 8201) as in Linux. A packet that was too long is split and retransmitted at once,
//! and cwnd is unchanged (`tcp_v4_mtu_reduced`, `tcp_sync_mss`, `tcp_simple_retransmit`).

use std::collections::VecDeque;

use super::sender::Sent;
use super::{Chunk, Push, Socket, announced_mss};
use crate::linux::small_queue::SmallQueue;
use crate::linux::write_queue::WriteQueue;
use crate::path::Member;
use crate::path::{CaState, INFINITE_SSTHRESH, Path};
use crate::seq::wrap;
use crate::tcp::context::{Context, Options};
use crate::tcp::sender::Kind;

/// The least MTU that a report is believed: Linux's ip_rt_min_pmtu, and what every link of IPv6 has (RFC 8200 section 5).
const LEAST_IPV4: u32 = 552;
const LEAST_IPV6: u32 = 1280;

impl Socket {
    /// Whether a report about a segment that began at `seq` may be about one in flight (RFC 5927 section 4.1).
    pub(crate) fn awaits(&self, seq: u32) -> bool {
        // Not unwrapped: what lies before the initial number has no place.
        u64::from(seq.wrapping_sub(wrap(self.iss, self.una))) <= self.next - self.una
    }

    /// From now on no packet is longer than `mtu` bytes. False: none was.
    pub(crate) fn limit_mtu(&mut self, path: &mut Path, mtu: u32, ipv6: bool) -> bool {
        let least = if ipv6 { LEAST_IPV6 } else { LEAST_IPV4 };
        if let Some(news) = self.bound_search(path, mtu.max(least)) {
            return news;
        }
        let mss = announced_mss(mtu.max(least), ipv6);
        let less = mss < self.mss.agreed();
        if less {
            self.take_mss(path, mss);
        }
        less
    }

    /// Cuts what is longer than a segment may be now, and takes for lost what of it was sent.
    pub(crate) fn cut_long_segments(&mut self, cx: &mut Context<impl Options>) {
        if self.cut_to_segments(cx) {
            self.resend_cut(&mut cx.path);
        }
        self.publish(&mut cx.path);
    }

    /// As [`Socket::cut_long_segments`], without what follows from it. True: something was sent that is longer.
    pub(super) fn cut_to_segments(&mut self, cx: &mut Context<impl Options>) -> bool {
        self.cut_unsent(cx);
        let mss = cx.path.mss;
        let excess = cx.options.first_segment_excess();
        self.cut_sent(|offset| if offset == 0 { mss - excess } else { mss })
    }

    /// The same of what waits alone.
    pub(super) fn cut_unsent(&mut self, cx: &Context<impl Options>) {
        let mss = cx.path.mss;
        let most = |offset: u64| match offset {
            0 => mss - cx.options.first_segment_excess(),
            _ => mss,
        };
        let mut unsent = VecDeque::with_capacity(self.unsent.len());
        for mut chunk in std::mem::take(&mut self.unsent) {
            while chunk.len > most(chunk.offset) {
                let len = most(chunk.offset);
                unsent.push_back(Chunk {
                    len,
                    push: Push::No,
                    kind: Kind::New,
                    ..chunk
                });
                chunk.offset += u64::from(len);
                chunk.len -= len;
            }
            unsent.push_back(chunk);
        }
        self.unsent = unsent;
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
        let mut sent: VecDeque<Sent> = VecDeque::with_capacity(self.sent.len());
        let mut joins = false;
        for next in std::mem::take(&mut self.sent) {
            let goes_on = |last: &&mut Sent| last.is_followed_by(&next) && joins;
            if let Some(last) = sent.back_mut().filter(goes_on) {
                last.take_in(&next);
                self.recovery.join(&next);
            } else {
                sent.push_back(next);
                joins = next.len > longest(&next);
            }
            let end = next.end() - first;
            joins &= buffers.end_of(end - 1).is_some_and(|its_end| its_end > end);
        }
        self.sent = sent;
        self.cut_long_segments(cx);
    }

    /// As [`Socket::cut_buffers`], the buffers being the subflow's own.
    pub(crate) fn cut_own_buffers(&mut self, cx: &mut Context<impl Options>) {
        if let Some(buffers) = self.buffers.take() {
            self.join_unsent(&buffers);
            self.cut_buffers(cx, &buffers, 0);
            self.buffers = Some(buffers);
        }
    }

    /// As [`Socket::resend_buffers`], the buffers being the subflow's own.
    pub(crate) fn resend_own_buffers(
        &mut self,
        cx: &mut Context<impl Options>,
        queue: &mut SmallQueue,
    ) -> bool {
        let Some(mut buffers) = self.buffers.take() else {
            return false;
        };
        let full = self.resend_buffers(cx, (&mut buffers, 0), queue);
        self.buffers = Some(buffers);
        full
    }

    /// Sends what is queued as far as the host's queue admits (`tcp_tsq_write`). True: the rest waits until the host has passed that on.
    #[cold]
    pub(crate) fn send_through(
        &mut self,
        cx: &mut Context<impl Options>,
        queue: &mut SmallQueue,
    ) -> bool {
        while let Some(first) = self.unsent.front()
            && self.in_flight() < cx.path.cwnd
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

    /// Makes one chunk of those that wait in one buffer.
    pub(super) fn join_unsent(&mut self, buffers: &WriteQueue) {
        let mut waiting = std::mem::take(&mut self.unsent).into_iter();
        for mut rest in buffers.lengths() {
            let Some(mut whole) = waiting.next() else {
                break;
            };
            rest = rest.saturating_sub(whole.len.into());
            while rest > 0
                && let Some(next) = waiting.next()
            {
                rest = rest.saturating_sub(next.len.into());
                whole.len += next.len;
                whole.push = next.push;
                whole.kind = next.kind;
            }
            self.unsent.push_back(whole);
        }
        self.unsent.extend(waiting);
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
        while let Some(index) = self.sent.iter().position(Sent::awaits_repair) {
            let together = self.lost_together(&cx.path, index, Some((&*buffers, first)));
            if together.is_empty() {
                break;
            }
            let start = self.sent[index].seq - first;
            let end = buffers.end_of(start).unwrap_or(start);
            if queue.full(end - start, true) {
                return true;
            }
            let mut left = start;
            for nth in together.clone() {
                left = self.sent[nth].end() - first;
                self.retransmit_as(cx, nth, Push::of_nth(nth, &together));
            }
            buffers.split(left);
            queue.push(together.len() as u64, left - start);
            if index == 0 {
                self.arm_retransmission(cx.shared);
            }
        }
        self.publish(&mut cx.path);
        false
    }

    fn cut_sent(&mut self, most: impl Fn(u64) -> u32) -> bool {
        let mut sent = VecDeque::with_capacity(self.sent.len());
        let recovery = &mut self.recovery;
        let mut first = None;
        for mut whole in std::mem::take(&mut self.sent) {
            if whole.len <= most(whole.offset) || whole.has(Sent::SACKED) {
                sent.push_back(whole);
                continue;
            }
            first.get_or_insert(whole.seq);
            recovery.unrepaired.add(whole.seq, whole.end());
            if whole.has(Sent::LOST) {
                recovery.lost -= 1;
            }
            if whole.has(Sent::RETRANSMITTING) {
                whole.clear(Sent::RETRANSMITTING);
                recovery.retransmitting -= 1;
            }
            whole.set(Sent::LOST);
            while whole.len > most(whole.offset) {
                let piece = whole.cut_front(most(whole.offset));
                recovery.lost += 1;
                sent.push_back(piece);
            }
            recovery.lost += 1;
            sent.push_back(whole);
        }
        self.sent = sent;
        first.is_some()
    }

    /// What is sent again is no longer than a segment may be now: the path takes less, or the options take more, than when it left, or it
    /// was a probe (`__tcp_retransmit_skb`).
    pub(super) fn cut_repeated(&mut self, cx: &Context<impl Options>, index: usize) {
        let options = self.fixed_options() + cx.options.data_len();
        let longest = u32::from(self.mss.usable()).saturating_sub(options).max(1);
        if self.sent[index].len > longest {
            self.cut_at(index, longest);
        }
    }

    #[cold]
    fn cut_at(&mut self, index: usize, len: u32) {
        let whole = &mut self.sent[index];
        let first = whole.cut_front(len);
        self.recovery.lost += u32::from(whole.has(Sent::LOST));
        self.recovery.sacked += u32::from(whole.has(Sent::SACKED));
        self.recovery.retransmitting += u32::from(whole.has(Sent::RETRANSMITTING));
        self.sent.insert(index, first);
        self.recount_rack();
    }

    /// What was cut is sent again as after a timeout, but for no congestion (`tcp_non_congestion_loss_retransmit`).
    fn resend_cut(&mut self, path: &mut Member) {
        if !self.negotiated.sack {
            let most = (self.sent.len() as u32).saturating_sub(self.recovery.lost);
            self.recovery.sacked = self.recovery.sacked.min(most);
        }
        let reducing = matches!(self.recovery.state, CaState::Cwr | CaState::Recovery);
        if self.recovery.state != CaState::Loss {
            if !reducing && path.ssthresh != INFINITE_SSTHRESH {
                path.ssthresh = path.ssthresh.max(path.cwnd * 3 / 4);
            }
            self.begin_loss_without_congestion(path);
        }
    }
}

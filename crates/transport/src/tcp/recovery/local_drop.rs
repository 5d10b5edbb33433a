//! A full queue of the own host. The transmitting call reports it. The segment stays unsent, cwnd is reduced as for an
//! ECN mark, and nothing counts as lost (Linux `tcp_write_xmit`, `__tcp_transmit_skb`, `tcp_enter_cwr`).

use polypath_wire::tcp::Segment;

use crate::path::CaState;
use crate::tcp::context::{Context, Options, Shared};
use crate::tcp::flight::Sent;
use crate::tcp::sender::{Kind, Push};
use crate::tcp::timer::Pending;
use crate::tcp::transfer::Transfer;
use crate::tcp::{Chunk, Socket};
use crate::{EventKind, MILLISECOND, Mib, Nanos};

/// The least time until the queue is tried again while nothing is in flight (TCP_RTO_MIN in `tcp_probe0_base`), and the time from then on
/// (TCP_RESOURCE_PROBE_INTERVAL).
const FIRST_PROBE: Nanos = 200 * MILLISECOND;
const PROBE_INTERVAL: Nanos = 500 * MILLISECOND;

impl Transfer {
    /// The segment is as lost as it was before (`tcp_retransmit_skb`).
    fn take_back_repetition(&mut self, shared: &Shared, index: usize) {
        self.flight.take_back_repetition(index);
        self.recovery.uncount_sent(1);
        self.recovery.probe.end();
        if index == 0 && self.recovery.timeouts() > 0 {
            // `tcp_retransmit_timer`
            self.timers.no_later_than(shared.now + PROBE_INTERVAL);
        }
    }
}

impl Socket {
    /// The host's queue refused the segment that begins at `seq`; nothing that follows it has left.
    pub(crate) fn on_local_drop(&mut self, cx: &mut Context<impl Options>, seq: u32) {
        let seq = self
            .transfer
            .flight
            .position(seq, self.transfer.flight.next());
        if let Some(index) = self.transfer.flight.beginning_at(seq) {
            if self.transfer.flight.segments()[index].retransmitted() {
                self.transfer.take_back_repetition(cx.shared, index);
            } else {
                self.take_back(cx.shared, index);
            }
        }
        self.on_local_congestion(cx);
    }

    /// The host's queue asks for a lower rate.
    pub(crate) fn on_local_congestion(&mut self, cx: &mut Context<impl Options>) {
        self.transfer.recovery.undo.end();
        if self.transfer.recovery.state < CaState::Cwr {
            cx.shared.event(EventKind::LocalCongestion(cx.path.index));
            self.transfer.enter_reduction(&mut cx.path);
        }
        self.publish(&mut cx.path);
    }

    /// Whether a segment counts as sent: it occupies none of the sequence space, or none that was taken back.
    pub fn has_sent(&self, segment: &Segment) -> bool {
        self.transfer.flight.has_sent(segment)
    }

    /// Whether the peer is heard: what has waited for it may leave.
    #[cold]
    pub(crate) fn resumes(&mut self, shared: &Shared) -> bool {
        let resumes = self.transfer.silence.heard_at() == shared.now;
        if resumes {
            self.host.resume();
        }
        resumes
    }

    /// The segments from `index` on were not sent.
    fn take_back(&mut self, shared: &mut Shared, index: usize) {
        let number = self.transfer.flight.packets() - index as u32;
        // The attempt counts as sent, what was to follow does not.
        shared.counters.subtract(Mib::TcpOutSegs, number - 1);
        self.transfer.recovery.uncount_sent(number);
        if let Some(buffers) = self.queue.buffers_mut() {
            let last_first = self.transfer.flight.segments().range(index..).rev();
            let data = last_first.filter(|sent| sent.len > 0);
            buffers.take_back(data.map(|sent| (sent.len.into(), sent.has(Sent::PUSH))));
        }
        let mut taken = Vec::new();
        let from = self
            .transfer
            .flight
            .take_back(index, |sent| taken.push(sent));
        for sent in taken {
            self.put_back(shared, sent);
        }
        self.transfer.recovery.rack.take_back(from);
        self.transfer.controller.take_back(from);
        self.host.refuse();
        self.transfer.recovery.probe.take_back(from);
        if self.transfer.flight.is_empty() {
            let wait = match self.host.count_refusal() {
                0 => self
                    .transfer
                    .retransmission_timeout(shared)
                    .max(FIRST_PROBE),
                _ => PROBE_INTERVAL,
            };
            self.transfer.timers.set(Pending::Probe, shared.now + wait);
        }
    }

    fn put_back(&mut self, shared: &mut Shared, sent: Sent) {
        if sent.has(Sent::FIN) {
            self.lifetime.take_back_fin();
        }
        if sent.len == 0 {
            return;
        }
        let len = u64::from(sent.len);
        let elsewhere = shared.once.take_back(sent.offset, sent.len);
        let own = if sent.has(Sent::REINJECTED) {
            elsewhere.min(self.transfer.totals.reinjected)
        } else {
            0
        };
        self.transfer.totals.reinjected -= own;
        shared.once.outrun += elsewhere - own;
        let kind = if sent.has(Sent::FIN) {
            Kind::Last
        } else {
            Kind::New
        };
        let push = if sent.has(Sent::PUSH) {
            Push::Always
        } else {
            Push::No
        };
        self.transfer.totals.sent -= len;
        self.queue.put_back(Chunk {
            offset: sent.offset,
            len: sent.len,
            kind,
            push,
            waits: false,
        });
    }
}

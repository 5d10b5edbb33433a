//! What leaves next, and on which subflow.

use super::{DataSender, Fragments, Record};
use crate::EventKind;
use crate::mptcp::connection::Connection;
use crate::mptcp::subflow::Subflow;
use crate::path::Path;
use crate::scheduler::{
    Carried, Decision, Head, Next, PacketKind, PathSet, View, takes_more, usable,
};
use crate::tcp::context::Shared;
use crate::tcp::{Chunk, Kind, Push, Socket};

/// What a subflow left behind leaves before the next one ends, also while a packet is taken in: the kernel's worker ends subflows
/// (`mptcp_pm_worker`, `__mptcp_push_pending`), which delegates nothing. The writer waits as for any packet.
pub(in crate::mptcp) fn push_left(connection: &mut Connection) {
    let softirq = connection.shared.softirq.take();
    let queues = connection.send.fragments.is_some() && connection.session.multipath.is_some();
    if softirq.is_some() && queues {
        connection.push_fragments();
        connection.watch_window();
    } else {
        connection.push();
    }
    connection.shared.softirq = softirq;
}

impl Connection {
    /// Sends what may be sent.
    pub(in crate::mptcp) fn push(&mut self) {
        self.push_inline();
    }

    /// The same where it is called for each segment.
    #[inline(always)]
    pub(in crate::mptcp) fn push_inline(&mut self) {
        self.push_data();
        if self.paced {
            self.settle_pacing();
        }
    }

    /// Sees to pacing after everything that could leave has left.
    fn settle_pacing(&mut self) {
        for subflow in 0..self.subflows.len() {
            if self.subflows[subflow].socket.transfer.controller.paces()
                && self.paths[subflow].established
            {
                let dry = self.send.unsent() < u64::from(self.paths[subflow].mss);
                self.with(subflow, |socket, cx| socket.settle_pacing(cx, dry));
                self.deadline = self.deadline.min(
                    self.subflows[subflow]
                        .socket
                        .transfer
                        .controller
                        .pacing_deadline(),
                );
            }
        }
    }

    /// Something may be about to leave: routes that subflows' last segments took count.
    #[cold]
    fn heed_routes(&mut self) {
        for subflow in 0..self.subflows.len() {
            let socket = &self.subflows[subflow].socket;
            if self.send.unsent() > 0 || self.send.waiting > 0 || !socket.queue.is_empty() {
                self.with(subflow, |socket, cx| socket.heed_route(cx));
            }
        }
    }

    #[inline(always)]
    fn push_data(&mut self) {
        if !self.established || self.ended.is_some() {
            return;
        }
        if self.tends_queues {
            if self.rerouted {
                self.heed_routes();
            }
            self.note_room();
            if self.send.fragments.is_some() && self.session.multipath.is_some() {
                return self.push_queues();
            }
            self.flush_queues();
            if self.send.buffers.is_some() {
                return self.push_buffers();
            }
            self.sum_buffers();
        }
        self.send.refill(&self.shared.config, &self.paths);
        if self.send.idle() {
            return;
        }
        if self.session.multipath.is_some() {
            self.policy.scheduler().begin();
            self.push_multipath();
        } else {
            self.push_plain();
        }
        self.watch_window();
    }

    /// Upstream MPTCP: what was written goes to the subflows before they send, which may let the writer get on (`ack_update_msk`,
    /// `tcp_data_snd_check`).
    #[inline(never)]
    fn push_queues(&mut self) {
        self.push_fragments();
        if self.shared.softirq.is_none() {
            self.run_writer();
        }
        self.watch_window();
    }

    fn push_fragments(&mut self) {
        if let Some(fragments) = &mut self.send.fragments
            && !fragments.delegated()
        {
            fragments.release();
            self.policy.scheduler().begin();
        }
        self.push_multipath();
        self.sum_buffers();
    }

    fn run_writer(&mut self) {
        loop {
            self.note_held();
            if !self.send.write_call() {
                break;
            }
            self.note_room();
            self.push_fragments();
        }
    }

    /// What waited for an instant's packets: the subflow that the packet of another gave data (`mptcp_napi_poll`), and the writer.
    pub(in crate::mptcp) fn push_after_packets(&mut self) {
        if !self.established || self.ended.is_some() {
            return;
        }
        if self.send.buffers.is_some() {
            self.run_plain_writer();
            self.watch_buffers();
        } else {
            if self.send.fragments.is_some() && self.session.multipath.is_some() {
                if self
                    .send
                    .fragments
                    .as_ref()
                    .is_some_and(Fragments::delegated)
                {
                    self.push_fragments();
                }
                self.send.end_delegation();
                self.run_writer();
            }
            self.watch_window();
        }
        if self.paced {
            self.settle_pacing();
        }
    }

    /// Before a writer begins again whose data has all arrived: what of it the subflows still hold.
    fn note_held(&mut self) {
        let everything_arrived = self.send.una == self.send.written;
        if let Some(fragments) = &mut self.send.fragments
            && everything_arrived
            && self.send.waiting > 0
        {
            let sockets = self.subflows.iter().map(Subflow::socket);
            let held = sockets.flat_map(Socket::undelivered);
            fragments.note_held(held.map(|(at, len)| at + u64::from(len)).max().unwrap_or(0));
        }
    }

    fn note_room(&mut self) {
        let fragments = self.send.fragments.as_ref();
        self.shared.writer_waits = fragments.is_some_and(Fragments::full);
    }

    /// What the next segment of `unsent` bytes may hold: full segments, or less if the rules on small ones admit it. 0: nothing now.
    pub(super) fn cut(&self, subflow: usize) -> u32 {
        self.cut_inline(subflow)
    }

    #[inline(always)]
    fn cut_inline(&self, subflow: usize) -> u32 {
        let mss = self.paths[subflow].mss
            - if self.send.sent == 0 {
                self.session.first_segment_excess()
            } else {
                0
            };
        let window = self.shared.send_limit.saturating_sub(self.send.sent);
        let available = self.send.unsent().min(window);
        if available >= u64::from(mss) {
            return mss;
        }
        let len = available as u32;
        if self.session.multipath.is_some() && self.send.queues {
            // The subflow's queue applies the rules on small segments.
            return len;
        }
        let window_limited = window < self.send.unsent();
        if window_limited
            && !self.send.bursts
            && !self.subflows[subflow].socket.transfer.flight.is_empty()
        {
            // Sender's side of silly-window avoidance (RFC 9293 section 3.8.6.2.1).
            return 0;
        }
        if self.send.finishing()
            || self.subflows[subflow]
                .socket
                .nagle_admits(&self.shared, len, mss)
        {
            len
        } else {
            0
        }
    }

    /// The rules on small segments hold back what the peer's window admits.
    pub(super) fn hold(&mut self, subflow: usize) {
        if (self.shared.config.cork || self.shared.more_follows)
            && self.shared.send_limit > self.send.sent
        {
            self.subflows[subflow].socket.hold(&self.shared);
            self.note_deadline(subflow);
        }
    }

    /// A subflow's corked rest, or what the host's queue refused, has waited long enough.
    pub(in crate::mptcp) fn uncork(&mut self, subflow: usize) {
        self.shared.uncorked = true;
        if self.paths[subflow].queued > 0 || self.subflows[subflow].socket.host.waits() {
            self.with(subflow, |socket, cx| socket.send_unsent(cx));
        } else {
            self.push_data();
        }
        self.shared.uncorked = false;
    }

    pub(super) fn send_new(&mut self, subflow: usize, len: u32, push: Push) {
        self.send_new_inline(subflow, len, push);
    }

    #[inline(always)]
    fn send_new_inline(&mut self, subflow: usize, len: u32, push: Push) {
        let offset = self.send.sent;
        self.send.sent += u64::from(len);
        if self.session.multipath.is_some() {
            let mut carried = PathSet::default();
            carried.insert(subflow);
            self.send.in_flight.push_back(Record {
                offset,
                len,
                carried,
                holder: subflow as u16,
            });
        }
        let (mut kind, mut push) = (Kind::New, push);
        if self.send.unsent() == 0 {
            if self.send.buffers.is_none() {
                push = Push::Always;
            } else if self.send.finishing() {
                kind = Kind::Last;
            }
        }
        let chunk = Chunk {
            offset,
            len,
            kind,
            push,
            waits: self.send.queues
                && self.session.multipath.is_some()
                && (self.shared.config.cork || !self.send.finishing()),
        };
        self.with(subflow, |socket, cx| socket.enqueue(cx, chunk));
        self.note_deadline(subflow);
        self.data_scheduled();
    }

    /// What waits in the subflows' own queues leaves as far as their windows admit, even if the stream needs it no more.
    fn flush_queues(&mut self) {
        let upstream = self.send.fragments.is_some();
        let one_heard = upstream
            && self
                .sockets()
                .any(|socket| socket.transfer.silence.heard_at() == self.shared.now);
        for subflow in 0..self.subflows.len() {
            let socket = &mut self.subflows[subflow].socket;
            let resumes = socket.host.waits();
            if resumes && !socket.resumes(&self.shared) {
                continue;
            }
            // A segment lets its own subflow send, and those that it brought data for.
            let concerned = !one_heard
                || socket.transfer.silence.heard_at() == self.shared.now
                || socket.queue.has_new_data();
            let wants = self.paths[subflow].queued > 0 || self.shared.writer_waits;
            if resumes || (concerned && wants) {
                self.with(subflow, |socket, cx| socket.send_unsent(cx));
                self.note_deadline(subflow);
                if self.shared.writer_waits {
                    self.with(subflow, |socket, cx| socket.transfer.grow_buffer(cx));
                }
            }
        }
    }

    fn push_multipath(&mut self) {
        self.revive_subflows();
        loop {
            if !self.send.queues && !self.paths.iter().any(Path::takes_packet) {
                break;
            }
            let next = self.next_to_send();
            let decision = self.decide(next);
            let progressed = match decision {
                Decision::Send(subflow) => {
                    next.is_some_and(|next| self.carry(subflow, next))
                        || (self.window_too_small() && self.rescue())
                }
                Decision::Repeat { path, offset } => self.repeat(path, offset),
                // A reinjection may wait for a path that is full for long; what holds the window up is repeated meanwhile.
                Decision::Wait
                    if next.is_none_or(|next| next.reinjection && self.window_too_small()) =>
                {
                    self.rescue()
                }
                Decision::Wait => false,
            };
            if !progressed {
                break;
            }
        }
        if self.send.queues {
            self.flush_queues();
        }
    }

    #[inline(always)]
    fn decide(&mut self, next: Option<Next>) -> Decision {
        match next {
            Some(next) if self.send.fragments.is_some() => self.place_fragment(next),
            _ => self.ask(next),
        }
    }

    #[inline(always)]
    fn ask(&mut self, next: Option<Next>) -> Decision {
        let view = Self::view(&self.shared, &self.paths, &self.send, next);
        self.policy.scheduler().select(&view)
    }

    /// Upstream MPTCP: a fragment goes to the subflow that its beginning went to; for another the scheduler is asked.
    #[inline(never)]
    fn place_fragment(&mut self, next: Next) -> Decision {
        let holder = |it: &Fragments| it.holder(next.offset);
        if let Some(subflow) = self.send.fragments.as_ref().and_then(holder) {
            return self.now_or_delegated(subflow);
        }
        let prolonged = self.prolonged(next.offset);
        self.set_interval(prolonged.is_some());
        let decision = match prolonged {
            Some(subflow) => Decision::Send(subflow),
            None => self.ask(Some(next)),
        };
        if let Decision::Send(subflow) = decision
            && let Some(fragments) = &mut self.send.fragments
        {
            fragments.hold(subflow, next.offset, prolonged.is_some());
            return self.now_or_delegated(subflow);
        }
        decision
    }

    /// Data for another subflow than the one whose packet is taken in waits until all packets are (`mptcp_subflow_delegate`).
    fn now_or_delegated(&mut self, subflow: usize) -> Decision {
        let delegated = self.shared.softirq.is_some_and(|own| own != subflow);
        if let Some(fragments) = &mut self.send.fragments {
            fragments.delegate(delegated);
        }
        if delegated {
            Decision::Wait
        } else {
            Decision::Send(subflow)
        }
    }

    /// A decision covers a segment at least, where the subflow takes more (`snd_burst`).
    fn prolonged(&self, offset: u64) -> Option<usize> {
        let (subflow, bytes) = self.send.fragments.as_ref()?.held(offset)?;
        let path = &self.paths[subflow];
        (bytes < u64::from(path.mss) && usable(path) && takes_more(path)).then_some(subflow)
    }

    /// The oldest reinjection still of use, else new data, if the window admits any.
    fn next_to_send(&mut self) -> Option<Next> {
        while let Some(&(offset, len)) = self.send.reinject.front() {
            // What is repeated there would be new data to a peer that fell back.
            if self.subflows.len() == 1 && self.session.is_unconfirmed() {
                break;
            }
            let end = offset + u64::from(len);
            let carried = self
                .send
                .record(offset)
                .map_or(PathSet::default(), |record| record.carried);
            let again = self.shared.config.profile.reinjects_on_timeout();
            let recovered = |subflow: usize| {
                again && carried.contains(subflow) && self.under_way(subflow, offset)
            };
            if end <= self.send.una || (0..self.paths.len()).any(recovered) {
                self.send.reinject.pop_front();
                continue;
            }
            if offset < self.send.una {
                self.send.reinject[0] = (self.send.una, (end - self.send.una) as u32);
                continue;
            }
            return Some(Next {
                offset,
                len: u64::from(len),
                carried,
                reinjection: true,
            });
        }
        let window = self.shared.send_limit.saturating_sub(self.send.sent);
        let len = self.send.unsent().min(window);
        (len > 0).then_some(Next {
            offset: self.send.sent,
            len,
            carried: PathSet::default(),
            reinjection: false,
        })
    }

    pub(super) fn view<'a>(
        shared: &Shared,
        paths: &'a [Path],
        send: &DataSender,
        next: Option<Next>,
    ) -> View<'a> {
        let head = send.in_flight.front().map(|record| Head {
            offset: record.offset,
            carried: record.carried,
            holder: usize::from(record.holder),
        });
        View {
            now: shared.now,
            paths,
            kind: PacketKind::Data,
            next,
            head,
            una: send.una,
            sent: send.sent,
            unsent: send.unsent(),
            window: shared.send_limit.saturating_sub(send.sent),
        }
    }

    /// Puts `next` on a path. False: the rules on small segments hold it back.
    fn carry(&mut self, subflow: usize, next: Next) -> bool {
        if !self.subflows[subflow].socket.state().sends() {
            return false;
        }
        if next.reinjection {
            let (offset, len) = self.send.reinject[0];
            let part = len.min(self.paths[subflow].mss);
            if part < len {
                self.send.reinject[0] = (offset + u64::from(part), len - part);
            } else {
                self.send.reinject.pop_front();
            }
            self.send_again(subflow, offset, part, false);
            return true;
        }
        let mut len = self.cut_inline(subflow);
        if len == 0 {
            self.hold(subflow);
            return false;
        }
        if let Some(fragments) = &self.send.fragments {
            len = u64::from(len).min(fragments.rest(next.offset)) as u32;
        }
        if self.record_decisions {
            self.shared.event(EventKind::Scheduled {
                subflow,
                offset: next.offset,
                bytes: len,
            });
        }
        self.send_new_inline(subflow, len, Push::No);
        self.tell_scheduler(subflow, next.offset, len, true);
        true
    }

    pub(super) fn tell_scheduler(&mut self, path: usize, offset: u64, bytes: u32, new: bool) {
        self.policy.scheduler().carried(Carried {
            path,
            offset,
            bytes,
            new,
        });
    }

    /// The peer's window has room for less than what there is to send.
    fn window_too_small(&self) -> bool {
        self.shared.send_limit.saturating_sub(self.send.sent) < self.send.unsent()
    }
}

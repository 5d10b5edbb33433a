//! The data stream on its way out: buffer, scheduling, reinjection, closing.

use std::collections::VecDeque;

use super::connection::Connection;
use super::core::Core;
use crate::config::Config;
use crate::path::Path;
use crate::scheduler::{Blocked, Carried, Decision, FRAGMENT, Head, Next, PathSet, View};
use crate::tcp::{Chunk, Front, Kind, State, memory};
use crate::{EventKind, MILLISECOND, Mib, NEVER, Nanos};

/// A stretch of the stream in flight at connection level, as it was first cut.
#[derive(Clone, Copy, Debug)]
struct Record {
    offset: u64,
    len: u32,
    carried: PathSet,
    holder: u16,
}

/// The sending half of a connection. Positions are offsets in this side's application stream.
pub(super) struct DataSender {
    /// Acknowledged, sent and written so far.
    una: u64,
    sent: u64,
    written: u64,
    buffer: u64,
    largest_buffer: u64,
    fixed: bool,
    /// Each subflow has a buffer; the connection's is their sum and `least_buffer` more.
    by_subflow: bool,
    least_buffer: u64,
    /// Bytes that the application waits to write.
    waiting: u64,
    /// The scheduler fills the subflows' queues.
    queues: bool,
    /// A writer that filled the buffer waits for a third of it, and did.
    bursts: bool,
    full: bool,
    closing: bool,
    /// The DATA_FIN, or in plain TCP the FIN, was handed over; and acknowledged.
    fin_sent: bool,
    fin_acked: bool,
    in_flight: VecDeque<Record>,
    reinject: VecDeque<(u64, u32)>,
    /// When DATA_FIN or a zero-window probe is due, and how often it was sent.
    fin_at: Nanos,
    fin_count: u32,
    probe_at: Nanos,
    probes: u32,
    /// When the first of them left.
    probed_since: Nanos,
    /// Probes since the peer was last heard of.
    unanswered: u32,
}

impl DataSender {
    pub fn new(config: &Config, queues: bool) -> Self {
        let buffer = config.send_buffer;
        Self {
            una: 0,
            sent: 0,
            written: 0,
            buffer: buffer.default,
            largest_buffer: buffer.maximum.max(buffer.default),
            fixed: buffer.minimum == buffer.maximum,
            by_subflow: config.mptcp && config.profile.buffers_by_subflow(),
            least_buffer: buffer.minimum,
            waiting: 0,
            queues,
            bursts: config.profile.writes_in_bursts(),
            full: false,
            closing: false,
            fin_sent: false,
            fin_acked: false,
            in_flight: VecDeque::new(),
            reinject: VecDeque::new(),
            fin_at: NEVER,
            fin_count: 0,
            probe_at: NEVER,
            probes: 0,
            probed_since: 0,
            unanswered: 0,
        }
    }

    /// Everything written was acknowledged, and nothing more waits.
    fn idle(&self) -> bool {
        self.una == self.written && self.waiting == 0
    }

    pub fn write(&mut self, bytes: u64) {
        self.waiting = self.waiting.saturating_add(bytes);
    }

    pub fn cancel(&mut self) -> u64 {
        std::mem::take(&mut self.waiting)
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    /// Moves what waits into the buffer as far as it has room. `limit`: the peer's window admits the stream up to there.
    fn refill(&mut self, config: &Config, paths: &mut [Path], limit: u64) {
        if self.waiting > 0 {
            self.grow_buffer(config, paths);
            let taken = self.waiting.min(if self.bursts {
                self.burst(paths, limit)
            } else {
                self.buffer.saturating_sub(self.written - self.una)
            });
            self.written += taken;
            self.waiting -= taken;
        }
    }

    /// What a writer gets in under upstream Linux: nothing until a third of a full buffer is free, then whole pieces until it is full.
    /// In TCP the limit counts when a piece is begun; what the window admits leaves the piece meanwhile and makes room in it
    /// (`tcp_sendmsg_locked`).
    fn burst(&mut self, paths: &[Path], limit: u64) -> u64 {
        let unsent = self.written - self.sent;
        let (queued, leaving, piece) = if self.by_subflow {
            (self.written - self.una, 0, FRAGMENT)
        } else {
            let mss = u64::from(paths[0].mss.max(1));
            let admitted = (u64::from(paths[0].room()) * mss).min(limit.saturating_sub(self.sent));
            let leaving = admitted.saturating_sub(unsent);
            let piece = memory::LARGEST_BUFFER / mss * mss;
            (unsent + paths[0].memory, leaving, piece)
        };
        let space = self.buffer.saturating_sub(queued);
        if self.full && space < queued / 2 {
            return 0;
        }
        let pieces = space.saturating_sub(leaving).next_multiple_of(piece);
        let most = leaving + pieces.max(if leaving > 0 { piece } else { 0 });
        self.full = most <= self.waiting;
        most
    }

    /// Twice the windows of all paths, within the limits (Linux `tcp_sndbuf_expand`, summed over the subflows by `__mptcp_sync_sndbuf`).
    fn grow_buffer(&mut self, config: &Config, paths: &mut [Path]) {
        let wanted = |path: &Path| memory::wanted_buffer(path, config.initial_window);
        if self.by_subflow {
            for path in paths.iter_mut() {
                let wanted = memory::next_buffer(path, config.initial_window, path.queued);
                let most = wanted.min(self.largest_buffer);
                path.buffer = path.buffer.max(most);
            }
            let open = paths.iter().filter(|path| path.established);
            self.buffer = self.least_buffer + open.map(|path| path.buffer).sum::<u64>();
        } else if !self.fixed && self.buffer < self.largest_buffer {
            let sum: u64 = if self.bursts {
                memory::next_buffer(&paths[0], config.initial_window, self.unsent())
            } else {
                paths.iter().map(wanted).sum()
            };
            self.buffer = self.buffer.max(sum.min(self.largest_buffer));
        }
    }

    pub fn buffer(&self) -> u64 {
        self.buffer
    }

    pub fn una(&self) -> u64 {
        self.una
    }

    /// The largest data ACK that makes sense: everything sent, and the DATA_FIN.
    pub fn highest_ack(&self) -> u64 {
        self.sent + u64::from(self.fin_sent)
    }

    pub fn acknowledge(&mut self, ack: u64) {
        if self.fin_sent && ack > self.written {
            self.fin_acked = true;
            self.fin_at = NEVER;
        }
        let ack = ack.min(self.sent);
        if ack <= self.una {
            return;
        }
        self.una = ack;
        self.probes = 0;
        self.probe_at = NEVER;
        while self
            .in_flight
            .front()
            .is_some_and(|record| record.offset + u64::from(record.len) <= ack)
        {
            self.in_flight.pop_front();
        }
    }

    /// The peer is alive: while it answers probes, its window may stay closed for ever (RFC 9293 section 3.8.6.1).
    pub fn peer_heard(&mut self) {
        self.unanswered = 0;
    }

    /// Something that was written is not acknowledged yet.
    pub fn outstanding(&self) -> bool {
        self.una < self.written
    }

    /// What was sent of the first `most` bytes that wait for their data ACK, in pieces of `mss`.
    pub fn head(&self, most: u64, mss: u32) -> Vec<(u64, u32)> {
        let end = self.sent.min(self.una + most);
        let mss = u64::from(mss.max(1));
        (self.una..end)
            .step_by(mss as usize)
            .map(|offset| (offset, mss.min(end - offset) as u32))
            .collect()
    }

    pub fn sent(&self) -> u64 {
        self.sent
    }

    pub fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    pub fn unacknowledged(&self) -> u64 {
        self.written - self.una
    }

    pub fn close(&mut self) {
        self.closing = true;
    }

    pub fn closing(&self) -> bool {
        self.closing
    }

    /// Nothing will follow what is in the buffer.
    fn finishing(&self) -> bool {
        self.closing && self.waiting == 0
    }

    /// Everything including the end of the stream was acknowledged.
    pub fn closed(&self) -> bool {
        self.fin_acked
    }

    pub fn stop(&mut self) {
        self.fin_at = NEVER;
        self.probe_at = NEVER;
    }

    pub fn deadline(&self) -> Nanos {
        self.fin_at.min(self.probe_at)
    }

    pub fn forget_chunks(&mut self) {
        self.in_flight.clear();
        self.reinject.clear();
    }

    fn record(&mut self, offset: u64) -> Option<&mut Record> {
        let index = self
            .in_flight
            .partition_point(|record| record.offset <= offset);
        self.in_flight
            .get_mut(index.checked_sub(1)?)
            .filter(|record| offset < record.offset + u64::from(record.len))
    }
}

impl Connection {
    /// Sends what may be sent.
    pub(super) fn push(&mut self) {
        self.push_data();
        if self.paced {
            self.settle_pacing();
        }
    }

    /// Sees to pacing after everything that could leave has left.
    fn settle_pacing(&mut self) {
        for me in 0..self.sockets.len() {
            if self.sockets[me].is_paced() && self.paths[me].established {
                let path = &mut self.paths[me];
                let dry = self.send.unsent() < u64::from(path.mss);
                self.sockets[me].settle_pacing(&self.core, path, dry);
                self.deadline = self.deadline.min(self.sockets[me].pacing_deadline());
            }
        }
    }

    fn push_data(&mut self) {
        if !self.established || self.ended.is_some() {
            return;
        }
        if self.paced || self.send.queues || self.retransmission.upstream {
            if self.send.waiting > 0 && self.send.by_subflow {
                self.send.grow_buffer(&self.core.config, &mut self.paths);
            }
            self.flush_queues();
        }
        self.send
            .refill(&self.core.config, &mut self.paths, self.core.send_limit);
        if self.send.idle() {
            return;
        }
        if self.core.multipath.is_some() {
            self.push_multipath();
        } else {
            self.push_plain();
        }
        self.watch_standstill();
    }

    /// What the next segment of `unsent` bytes may hold: full segments, or less if the rules on small ones admit it. 0: nothing now.
    fn cut(&self, me: usize) -> u32 {
        let mss = self.paths[me].mss
            - if self.send.sent == 0 {
                self.core.first_segment_excess()
            } else {
                0
            };
        let window = self.core.send_limit.saturating_sub(self.send.sent);
        let available = self.send.unsent().min(window);
        if available >= u64::from(mss) {
            return mss;
        }
        let len = available as u32;
        if self.core.multipath.is_some() && self.send.queues {
            // The subflow's queue applies the rules on small segments.
            return len;
        }
        let window_limited = window < self.send.unsent();
        if window_limited && !self.send.bursts && !self.sockets[me].nothing_in_flight() {
            // Sender's side of silly-window avoidance (RFC 9293 section 3.8.6.2.1).
            return 0;
        }
        if self.send.finishing() || self.sockets[me].nagle_admits(&self.core, len, mss) {
            len
        } else {
            0
        }
    }

    /// The rules on small segments hold back what the peer's window admits.
    fn hold(&mut self, me: usize) {
        if self.core.config.cork && self.core.send_limit > self.send.sent {
            self.sockets[me].hold(&self.core);
            self.note_deadline(me);
        }
    }

    /// A subflow's corked rest has waited long enough.
    pub(super) fn uncork(&mut self, me: usize) {
        self.core.uncorked = true;
        if self.paths[me].queued > 0 {
            self.sockets[me].send_unsent(&mut self.core, &mut self.paths, me);
        } else {
            self.push_data();
        }
        self.core.uncorked = false;
    }

    fn push_plain(&mut self) {
        const ME: usize = 0;
        self.sockets[ME].send_unsent(&mut self.core, &mut self.paths, ME);
        let (mut left, mut several) = (0, false);
        while self.sockets[ME].sending() && self.paths[ME].room() > 0 && self.send.unsent() > 0 {
            let len = self.cut(ME);
            if len == 0 {
                self.hold(ME);
                break;
            }
            if self.send.bursts && left == 0 {
                let group = self.sockets[ME].group(&self.paths[ME], self.core.now, self.front());
                let Some(group) = group else {
                    break;
                };
                (left, several) = (group, group > 1);
            }
            left = left.saturating_sub(1);
            self.send_new(ME, len, several && left == 0);
        }
    }

    /// The buffer that plain TCP sends from: the stream is written in pieces of as many segments as one holds.
    fn front(&self) -> Front {
        let mss = u64::from(self.paths[0].mss.max(1));
        let piece = memory::LARGEST_BUFFER / mss * mss;
        let in_piece = piece - self.send.sent % piece;
        let unsent = self.send.unsent();
        let bytes = unsent.min(in_piece);
        let rest = (bytes % mss) as u32;
        Front {
            bytes,
            window: self.core.send_limit.saturating_sub(self.send.sent),
            followed: unsent > in_piece,
            rest_leaves: self.send.finishing()
                || self.sockets[0].nagle_admits(&self.core, rest, self.paths[0].mss),
        }
    }

    fn send_new(&mut self, me: usize, len: u32, push: bool) {
        let offset = self.send.sent;
        self.send.sent += u64::from(len);
        if self.core.multipath.is_some() {
            let mut carried = PathSet::default();
            carried.insert(me);
            self.send.in_flight.push_back(Record {
                offset,
                len,
                carried,
                holder: me as u16,
            });
        }
        let chunk = Chunk {
            offset,
            len,
            kind: Kind::New,
            push: push || self.send.unsent() == 0,
            waits: self.send.queues
                && self.core.multipath.is_some()
                && (self.core.config.cork || !self.send.finishing()),
        };
        self.sockets[me].enqueue(&mut self.core, &mut self.paths, me, chunk);
        self.note_deadline(me);
        self.data_scheduled();
    }

    /// What waits in the subflows' own queues leaves as far as their windows admit, even if the stream needs it no more.
    fn flush_queues(&mut self) {
        for me in 0..self.sockets.len() {
            if self.paths[me].queued > 0 {
                self.sockets[me].send_unsent(&mut self.core, &mut self.paths, me);
                self.note_deadline(me);
            }
        }
    }

    fn push_multipath(&mut self) {
        self.revive_subflows();
        self.scheduler.begin();
        loop {
            let room = |path: &Path| path.established && path.room() > 0;
            if !self.send.queues && !self.paths.iter().any(room) {
                break;
            }
            let next = self.next_to_send();
            let view = Self::view(&self.core, &self.paths, &self.send, next);
            let decision = self.scheduler.select(&view);
            let progressed = match decision {
                Decision::Send(me) => {
                    next.is_some_and(|next| self.carry(me, next))
                        || (self.window_too_small() && self.rescue())
                }
                Decision::Repeat { path, offset } => self.repeat(path, offset),
                Decision::Wait if next.is_none() => self.rescue(),
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

    /// The oldest reinjection still of use, else new data, if the window admits any.
    fn next_to_send(&mut self) -> Option<Next> {
        while let Some(&(offset, len)) = self.send.reinject.front() {
            let end = offset + u64::from(len);
            let carried = self
                .send
                .record(offset)
                .map_or(PathSet::default(), |record| record.carried);
            let again = self.core.config.profile.reinjects_on_timeout();
            let recovered = |me: usize| again && carried.contains(me) && self.under_way(me, offset);
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
        let window = self.core.send_limit.saturating_sub(self.send.sent);
        let len = self.send.unsent().min(window);
        (len > 0).then_some(Next {
            offset: self.send.sent,
            len,
            carried: PathSet::default(),
            reinjection: false,
        })
    }

    fn view<'a>(core: &Core, paths: &'a [Path], send: &DataSender, next: Option<Next>) -> View<'a> {
        let head = send.in_flight.front().map(|record| Head {
            offset: record.offset,
            carried: record.carried,
            holder: usize::from(record.holder),
        });
        View {
            now: core.now,
            paths,
            next,
            head,
            una: send.una,
            sent: send.sent,
            unsent: send.unsent(),
            window: core.send_limit.saturating_sub(send.sent),
        }
    }

    /// Puts `next` on a path. False: the rules on small segments hold it back.
    fn carry(&mut self, me: usize, next: Next) -> bool {
        if !self.sockets[me].sending() {
            return false;
        }
        if next.reinjection {
            let (offset, len) = self.send.reinject[0];
            let part = len.min(self.paths[me].mss);
            if part < len {
                self.send.reinject[0] = (offset + u64::from(part), len - part);
            } else {
                self.send.reinject.pop_front();
            }
            self.send_again(me, offset, part);
            return true;
        }
        let len = self.cut(me);
        if len == 0 {
            self.hold(me);
            return false;
        }
        if self.record_decisions {
            self.core.event(EventKind::Scheduled {
                subflow: me,
                offset: next.offset,
                bytes: len,
            });
        }
        self.send_new(me, len, false);
        self.tell_scheduler(me, next.offset, len, true);
        true
    }

    fn tell_scheduler(&mut self, path: usize, offset: u64, bytes: u32, new: bool) {
        self.scheduler.carried(Carried {
            path,
            offset,
            bytes,
            new,
        });
    }

    /// Sends on another path the segment that begins at `offset`.
    fn repeat(&mut self, me: usize, offset: u64) -> bool {
        let mss = self.paths[me].mss;
        let Some(record) = self.send.record(offset) else {
            return false;
        };
        let rest = (record.offset + u64::from(record.len) - offset) as u32;
        if !self.sockets[me].sending() {
            return false;
        }
        self.send_again(me, offset, rest.min(mss));
        true
    }

    pub(super) fn send_again(&mut self, me: usize, offset: u64, len: u32) {
        if let Some(record) = self.send.record(offset) {
            record.carried.insert(me);
            record.holder = me as u16;
        }
        self.core.counters.increment(Mib::MPTcpExtMPTCPRetrans);
        let chunk = Chunk {
            offset,
            len,
            kind: Kind::Reinjection,
            push: false,
            waits: self.send.queues && self.core.config.cork,
        };
        self.sockets[me].enqueue(&mut self.core, &mut self.paths, me, chunk);
        self.note_deadline(me);
        self.tell_scheduler(me, offset, len, false);
    }

    /// The peer's window has room for less than what there is to send.
    fn window_too_small(&self) -> bool {
        self.core.send_limit.saturating_sub(self.send.sent) < self.send.unsent()
    }

    /// Nothing can be scheduled although a path has room: lets the scheduler help (NSDI 2012, section 4.2).
    fn rescue(&mut self) -> bool {
        let cause = if self.send.unsent() > 0 {
            Blocked::ReceiveWindow
        } else if self.send.waiting > 0 {
            Blocked::SendBuffer
        } else {
            return false;
        };
        let view = Self::view(&self.core, &self.paths, &self.send, None);
        let rescue = self.scheduler.rescue(&view, cause);
        if let Some(me) = rescue.penalise {
            self.sockets[me].penalise(&mut self.paths[me]);
            self.core.event(EventKind::Penalised(me));
        }
        let Some(me) = rescue.repeat_head_on else {
            return false;
        };
        let Some(offset) = self.send.in_flight.front().map(|record| record.offset) else {
            return false;
        };
        self.repeat(me, offset)
    }

    /// A working path has the byte at `offset` in its care: it will repeat it until it is acknowledged. What it delivered before counts
    /// no more: the data ACK may have been on its way on a path that failed.
    fn under_way(&self, me: usize, offset: u64) -> bool {
        self.paths[me].established
            && !self.paths[me].potentially_failed
            && self.sockets[me]
                .undelivered()
                .any(|(start, len)| (start..start + u64::from(len)).contains(&offset))
    }

    /// A subflow timed out or died: what only failed paths carried goes to the others (RFC 8684 section 3.3.6).
    pub(super) fn reinject(&mut self, me: usize) {
        if self.core.multipath.is_none() {
            return;
        }
        if !self.core.config.profile.reinjects_on_timeout() {
            return self.reinject_everything(me);
        }
        let stranded: Vec<(u64, u32)> = self.sockets[me]
            .undelivered()
            .filter(|(offset, len)| offset + u64::from(*len) > self.send.una)
            .collect();
        let mut bytes = 0;
        for (offset, len) in stranded {
            let carried = self
                .send
                .record(offset)
                .map_or(PathSet::default(), |record| record.carried);
            let elsewhere = (0..self.paths.len()).any(|index| {
                index != me && carried.contains(index) && self.under_way(index, offset)
            });
            if !elsewhere && self.send.reinject.iter().all(|entry| entry.0 != offset) {
                bytes += u64::from(len);
                self.send.reinject.push_back((offset, len));
            }
        }
        if bytes > 0 {
            self.send.reinject.make_contiguous().sort_unstable();
            self.core
                .event(EventKind::Reinjection { subflow: me, bytes });
        }
    }

    /// Everything in flight at connection level is scheduled anew, whoever carried it (Linux `__mptcp_retransmit_pending_data`).
    pub(super) fn reinject_everything(&mut self, me: usize) {
        let bytes = self.send.sent - self.send.una;
        if bytes > 0 {
            self.send.reinject.clear();
            self.send.reinject.push_back((self.send.una, bytes as u32));
            self.core
                .event(EventKind::Reinjection { subflow: me, bytes });
        }
    }

    /// Nothing is in flight that the peer would answer, yet its window is closed (RFC 9293 section 3.8.6.1), or it has not acknowledged data
    /// that its subflows did (RFC 8684 section 3.3.6: retransmission at connection level).
    fn watch_standstill(&mut self) {
        let window_closed = self.send.unsent() > 0 && self.core.send_limit <= self.send.sent;
        let unconfirmed = self.core.multipath.is_some() && self.send.una < self.send.sent;
        let stuck = (window_closed || unconfirmed)
            && self
                .sockets
                .iter()
                .zip(&self.paths)
                .all(|(socket, path)| socket.nothing_in_flight() || path.potentially_failed);
        if !stuck {
            self.send.probe_at = NEVER;
        } else if self.send.probe_at == NEVER {
            let mut wait = self.connection_timeout(self.send.probes);
            let timeout = self.core.config.user_timeout;
            if timeout > 0 && window_closed && self.send.probes > 0 {
                let passed = self.core.now - self.send.probed_since;
                wait = wait.min(timeout.saturating_sub(passed).max(MILLISECOND));
            }
            self.send.probe_at = self.core.now + wait;
            self.deadline = self.deadline.min(self.send.probe_at);
        }
    }

    /// The peer answered a probe and still lacks the first segment in flight.
    fn reinject_head(&mut self) {
        if let Some(head) = self.send.in_flight.front()
            && self.send.reinject.is_empty()
        {
            self.core.event(EventKind::Reinjection {
                subflow: usize::from(head.holder),
                bytes: u64::from(head.len),
            });
            self.send.reinject.push_back((head.offset, head.len));
        }
    }

    /// The longest retransmission timeout of the working subflows, backed off.
    pub(super) fn connection_timeout(&self, attempts: u32) -> Nanos {
        let longest = self
            .sockets
            .iter()
            .zip(&self.paths)
            .filter(|(_, path)| path.established)
            .map(|(socket, _)| socket.retransmission_timeout(&self.core))
            .max()
            .unwrap_or(self.core.config.rto_initial);
        (longest << attempts.min(16)).min(self.core.config.rto_max)
    }

    pub(super) fn on_connection_timers(&mut self) {
        if self.next_announcement() <= self.core.now {
            self.repeat_announcements();
        }
        if self.path_manager_at <= self.core.now {
            self.path_manager_at = NEVER;
            self.manage_paths();
        }
        if self.retransmission.deadline() <= self.core.now {
            self.on_data_timeout();
        }
        if self.send.probe_at <= self.core.now {
            self.send.probes += 1;
            self.send.unanswered += 1;
            self.send.probe_at = NEVER;
            if self.send.unanswered > self.core.config.retries || self.window_closed_too_long() {
                self.core.counters.increment(Mib::TcpExtTCPAbortOnTimeout);
                return self.end(crate::CloseReason::TimedOut);
            }
            if let Some(me) = self.working_subflow() {
                self.sockets[me].send_probe(&mut self.core, me, Mib::TcpExtTCPWinProbe);
            }
            if self.send.probes > 1 {
                self.reinject_head();
            }
        }
        if self.send.fin_at <= self.core.now {
            if self.send.fin_count > self.core.config.retries {
                return self.end(crate::CloseReason::TimedOut);
            }
            self.send_data_fin();
        }
    }

    /// The peer's window was closed for the user timeout since the first probe (Linux `tcp_probe_timer`).
    fn window_closed_too_long(&mut self) -> bool {
        if self.send.probes == 1 {
            self.send.probed_since = self.core.now;
        }
        let timeout = self.core.config.user_timeout;
        let closed = self.send.unsent() > 0 && self.core.send_limit <= self.send.sent;
        closed && timeout > 0 && self.core.now - self.send.probed_since >= timeout
    }

    /// The subflow on which connection-level signals travel: not failed, not a backup if that can be had, lowest RTT.
    fn working_subflow(&self) -> Option<usize> {
        (0..self.sockets.len())
            .filter(|&me| self.paths[me].established && self.sockets[me].state.synchronised())
            .min_by_key(|&me| {
                (
                    self.paths[me].potentially_failed,
                    self.paths[me].backup,
                    self.paths[me].srtt,
                )
            })
    }

    /// Moves the closing of this side's stream along: DATA_FIN after the data, FINs after its acknowledgement (RFC 8684 section 3.3.3).
    pub(super) fn step_closing(&mut self) {
        if !self.established {
            return;
        }
        if self.core.multipath.is_some() {
            self.answer_fins();
        }
        if !self.send.finishing() {
            return;
        }
        if self.core.multipath.is_none() {
            if self.send.unsent() == 0 {
                self.sockets[0].close(&mut self.core, &mut self.paths, 0);
                self.send.fin_sent = true;
                let finished = matches!(
                    self.sockets[0].state,
                    State::FinWait2 | State::TimeWait | State::Closed
                );
                self.send.fin_acked |= finished;
            }
            return;
        }
        if self.send.unsent() == 0 && !self.send.fin_sent {
            self.send.fin_sent = true;
            self.send_data_fin();
        }
        if self.send.fin_acked && self.core.receive.at_end() {
            for me in 0..self.sockets.len() {
                if matches!(self.sockets[me].state, State::SynSent | State::SynReceived) {
                    // CLOSE before the handshake is done deletes the subflow (RFC 9293 section 3.10.4).
                    self.close_subflow(me);
                } else if self.dispensable(me) {
                    self.sockets[me].send_reset(&mut self.core, me);
                    self.close_subflow(me);
                } else if !self.sockets[me].closing() {
                    self.sockets[me].close(&mut self.core, &mut self.paths, me);
                }
            }
        }
    }

    /// A subflow that failed while another works: with the stream over there is nothing to wait for on it.
    fn dispensable(&self, me: usize) -> bool {
        let works = |path: &Path| path.established && !path.potentially_failed;
        self.sockets[me].state != State::Closed
            && self.paths[me].potentially_failed
            && self.paths.iter().any(works)
    }

    /// Whether closing has begun in either direction, on any level.
    pub(super) fn closing(&self) -> bool {
        self.send.closing || self.core.fin_seen || self.core.receive.end.is_some()
    }

    /// A FIN on a subflow closes that subflow alone; this side closes it too once its data is through.
    fn answer_fins(&mut self) {
        for me in 0..self.sockets.len() {
            let elsewhere = |other: usize| {
                other != me && self.paths[other].established && self.sockets[other].sending()
            };
            let dispensable = self.send.idle() || (0..self.sockets.len()).any(elsewhere);
            if self.sockets[me].state == State::CloseWait
                && self.sockets[me].nothing_unsent()
                && dispensable
            {
                self.sockets[me].close(&mut self.core, &mut self.paths, me);
            }
        }
    }

    fn send_data_fin(&mut self) {
        let offset = self.send.written;
        self.send.fin_at = self.core.now + self.connection_timeout(self.send.fin_count);
        self.send.fin_count += 1;
        if let Some(me) = self.working_subflow() {
            self.sockets[me].send_data_fin(&mut self.core, me, offset);
        }
    }
}

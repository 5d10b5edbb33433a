//! What leaves: packets, the frames in them, and on which path (RFC 9000 sections 12 and 13, RFC 10069 section 5).

use polypath_wire::quic::Frame;

use super::connection::Connection;
use super::contents::Carried;
use super::crypto::Level;
use super::draft::Draft;
use super::outgoing::Outgoing;
use super::path::LEAST_DATAGRAM;
use crate::config::AckPath;
use crate::path::Path;
use crate::scheduler::{Blocked, Carried as Report, Decision, Next, PathSet, View};
use crate::{EventKind, Nanos, Purpose};

/// No STREAM frame is shorter, as [`stream_fields`] has it.
const LEAST_STREAM: u32 = 4;

/// Bytes of a STREAM frame beside its data, where the data may be as long as a packet.
fn stream_fields(stream: u64, offset: u64) -> u32 {
    // The length takes two bytes from 64 on.
    Frame::stream_len(stream, offset, 0) + 1
}

impl Connection {
    /// Sends whatever may be sent now, and finds the next deadline.
    pub(super) fn flush(&mut self) {
        self.finish_if_done();
        if self.ended.is_some() {
            self.send_close();
        } else {
            if !self.handshake.over() {
                self.send_handshake();
            }
            if self.established || self.handshake.writes(Level::OneRtt) {
                self.release_pacers();
                self.send_application();
            }
        }
        self.find_deadline();
    }

    /// Packets of the application level.
    fn send_application(&mut self) {
        self.manage_paths();
        self.note_blocked();
        let now = self.now;
        let (mut errands, mut acknowledges) = (false, false);
        for member in &mut self.members {
            member.held = false;
            errands |= member.has_errand(now);
            acknowledges |= member.space.received.deadline() <= now;
        }
        if errands {
            for path in 0..self.members.len() {
                self.send_path_frames(path);
                self.send_probes(path);
            }
            self.send_mtu_probes();
        }
        self.push_data();
        if !self.control.is_empty() {
            self.send_control();
        }
        if acknowledges {
            self.send_acknowledgements();
        }
        self.settle_pacing();
    }

    /// Adds the acknowledgement of a space to a packet on its path, if it says anything new.
    #[inline]
    pub(super) fn add_ack(&mut self, draft: &mut Draft, about: usize) {
        let known = draft.level == Level::OneRtt && !self.members[about].space.received.has_news();
        if !known {
            self.add_news(draft, about);
        }
    }

    fn add_news(&mut self, draft: &mut Draft, about: usize) {
        let named =
            (draft.level == Level::OneRtt && self.multipath()).then(|| self.members[about].id);
        let (now, exponent) = (self.now, self.local_parameters.ack_delay_exponent as u8);
        let exponent = if draft.level == Level::OneRtt {
            exponent
        } else {
            0
        };
        let received = match draft.level {
            Level::OneRtt => &mut self.members[about].space.received,
            level => match &mut self.handshake.spaces[level as usize] {
                Some(space) => &mut space.received,
                None => return,
            },
        };
        if !received.has_news() {
            return;
        }
        let mut ack = self.spares.ack();
        if !received.acknowledge(now, named, exponent, &mut ack) {
            return;
        }
        let largest = ack.ranges.first().map_or(0, |range| range.1);
        let frame = Frame::Ack(ack);
        let len = frame.len();
        if len > draft.room {
            return;
        }
        received.on_acknowledged();
        draft.push_measured(frame, len);
        let path = about as u32;
        draft.carried.add_ack(path, largest);
    }

    fn add_control(&mut self, draft: &mut Draft) {
        while let Some(frame) = self.control.take(draft.room) {
            draft.carried.add(Carried::Control(frame.clone()));
            draft.push(frame);
        }
    }

    fn add_datagrams(&mut self, draft: &mut Draft) {
        while let Some(&(number, len)) = self.datagrams.waiting.front() {
            let frame = Frame::Datagram { number, len };
            if frame.len() > draft.room {
                if draft.is_empty() {
                    // It was let in while packets were longer (RFC 9221 section 5).
                    self.datagrams.waiting.pop_front();
                    self.event(EventKind::DatagramRefused(len));
                    continue;
                }
                break;
            }
            self.datagrams.waiting.pop_front();
            draft.purpose = Purpose::Data;
            draft.push(frame);
        }
    }

    /// Handshake packets, coalesced (RFC 9000 section 12.2).
    fn send_handshake(&mut self) {
        loop {
            let limit = self.members[0]
                .allowance(self.client)
                .min(LEAST_DATAGRAM.into()) as u32;
            let mut left = limit;
            let mut drafts = Vec::new();
            for level in [Level::Initial, Level::Handshake] {
                if !self.handshake.writes(level) {
                    continue;
                }
                if let Some(draft) = self.handshake_draft(level, left) {
                    left -= draft.size();
                    drafts.push(draft);
                }
            }
            if drafts.is_empty() {
                return;
            }
            // RFC 9000 section 14.1: what holds an ack-eliciting Initial is padded, by the client in any case.
            let pads = drafts
                .iter()
                .any(|draft| draft.level == Level::Initial && (self.client || draft.eliciting()));
            let sends_handshake = drafts.iter().any(|draft| draft.level == Level::Handshake);
            if let Some(last) = drafts.last_mut().filter(|_| pads) {
                let room = last.room;
                last.pad(room);
            }
            self.send_coalesced(drafts);
            if self.client && sends_handshake {
                // RFC 9001 section 4.9.1.
                self.discard(Level::Initial);
            }
        }
    }

    fn handshake_draft(&mut self, level: Level, limit: u32) -> Option<Draft> {
        let probe = self.probe_level == Some(level);
        let acknowledges = self.space(level, 0).received.deadline() <= self.now;
        if !(self.handshake.has_crypto(level) || acknowledges || probe) {
            return None;
        }
        let mut draft = self.draft(level, 0, limit)?;
        self.add_ack(&mut draft, 0);
        // Type, offset and length of a CRYPTO frame take 1, up to 4 and 2 bytes.
        while draft.room > 8 && self.handshake.has_crypto(level) {
            let Some((offset, data)) = self.handshake.take_crypto(level, draft.room - 7) else {
                break;
            };
            let end = offset + data.len() as u64;
            draft.carried.add(Carried::Crypto { offset, end });
            draft.push(Frame::Crypto { offset, data });
        }
        if probe && !draft.eliciting() && draft.room > 0 {
            self.probe_level = None;
            draft.push(Frame::Ping);
        }
        if draft.is_empty() {
            self.discard_draft(draft);
            return None;
        }
        draft.pad_to_sample();
        Some(draft)
    }

    /// Probe packets go beyond the window: new data, else what is in flight, else a PING (RFC 9002 section 6.2.4).
    fn send_probes(&mut self, path: usize) {
        while self.members[path].probes > 0 {
            let Some(mut draft) = self.application_draft(path) else {
                return;
            };
            self.members[path].probes -= 1;
            self.add_ack(&mut draft, path);
            // What a silent path carries is left to the others.
            if !self.paths[path].potentially_failed {
                self.add_control(&mut draft);
                if !self.fill(&mut draft, None) {
                    self.repeat_oldest(&mut draft);
                }
            }
            if !draft.eliciting() && draft.room > 0 {
                draft.push(Frame::Ping);
            }
            self.event(EventKind::TailLossProbe(path));
            self.send(draft);
        }
    }

    /// Adds the oldest data in flight on the packet's path.
    fn repeat_oldest(&mut self, draft: &mut Draft) {
        let sent = &self.members[draft.path].space.sent;
        let oldest = sent.iter().find_map(|packet| packet.carried.data().next());
        if let Some((position, _)) = oldest {
            self.add_again(draft, position, Purpose::Retransmission);
        }
    }

    /// Data, as the scheduler decides.
    fn push_data(&mut self) {
        self.scheduler.begin();
        // What is in flight counts: redundant schedulers repeat it.
        if self.outgoing.is_empty() && self.datagrams.waiting.is_empty() {
            return;
        }
        loop {
            let open = |path: &Path| path.established && path.room() > 0;
            if !self.paths.iter().any(open) {
                break;
            }
            let next = self.next_to_send();
            let decision =
                self.scheduler
                    .select(&view(self.now, &self.paths, &self.outgoing, next));
            let progressed = match decision {
                Decision::Send(path) => next.is_some_and(|next| self.carry(path, next)),
                Decision::Repeat { path, offset } => self.repeat(path, offset),
                Decision::Wait if next.is_none() => self.rescue(),
                Decision::Wait => false,
            };
            if !progressed {
                break;
            }
        }
        if self.outgoing.wants_to_send() || !self.datagrams.waiting.is_empty() {
            for (member, path) in self.members.iter_mut().zip(&self.paths) {
                member.held = path.room() == 0;
            }
        }
    }

    /// What was lost, else something new, if the peer's limits admit any.
    fn next_to_send(&mut self) -> Option<Next> {
        if let Some((position, len, _)) = self.outgoing.next_again() {
            // Any path may carry it again: its earlier packet is gone.
            return Some(Next {
                offset: position,
                len,
                carried: PathSet::default(),
                reinjection: true,
            });
        }
        let (_, sent) = self.outgoing.positions();
        let datagram = self
            .datagrams
            .waiting
            .front()
            .map(|waiting| (sent, u64::from(waiting.1)));
        let (offset, len) = datagram.or_else(|| self.outgoing.next_new())?;
        Some(Next {
            offset,
            len,
            carried: PathSet::default(),
            reinjection: false,
        })
    }

    /// Sends a packet with `next` and whatever else has room in it.
    fn carry(&mut self, path: usize, next: Next) -> bool {
        if path >= self.members.len() || !self.paths[path].established {
            return false;
        }
        let Some(mut draft) = self.application_draft(path) else {
            return false;
        };
        self.add_datagrams(&mut draft);
        let repeats = !draft.is_empty() && self.scheduler.repeats_datagrams();
        let datagrams = repeats.then(|| draft.frames().to_vec());
        self.add_ack(&mut draft, path);
        self.add_control(&mut draft);
        let again = next.reinjection.then_some(next.offset);
        self.fill(&mut draft, again);
        if !draft.eliciting() {
            self.send_rest(draft);
            return false;
        }
        let data = draft.carried.data();
        let bytes = data.map(|(position, end)| (end - position) as u32).sum();
        if self.record_decisions {
            self.event(EventKind::Scheduled {
                subflow: path,
                offset: next.offset,
                bytes,
            });
        }
        self.send(draft);
        self.scheduler.carried(Report {
            path,
            offset: next.offset,
            bytes,
            new: !next.reinjection,
        });
        if let Some(datagrams) = datagrams {
            self.repeat_datagrams(path, &datagrams);
        }
        true
    }

    /// Sends DATAGRAM frames that went on a path on each other one with room, too: none is kept for later.
    fn repeat_datagrams(&mut self, path: usize, datagrams: &[Frame]) {
        for other in (0..self.paths.len()).filter(|&other| other != path) {
            let open = self.paths[other].established && self.paths[other].room() > 0;
            let draft = if open {
                self.application_draft(other)
            } else {
                None
            };
            let Some(mut draft) = draft else {
                continue;
            };
            for frame in datagrams {
                if frame.len() <= draft.room {
                    draft.push(frame.clone());
                }
            }
            draft.purpose = Purpose::Reinjection;
            if draft.eliciting() {
                self.send(draft);
            } else {
                self.discard_draft(draft);
            }
        }
    }

    /// Fills a packet with stream data: what is sent again first. Whether there was any.
    fn fill(&mut self, draft: &mut Draft, first: Option<u64>) -> bool {
        let mut any = false;
        let mut again = first;
        loop {
            let position = again
                .take()
                .or_else(|| self.outgoing.next_again().map(|(position, ..)| position));
            if any && draft.room < LEAST_STREAM {
                return true;
            }
            let added = match position {
                Some(position) => self.add_again(draft, position, Purpose::Retransmission),
                None => self.add_new(draft),
            };
            if !added {
                return any;
            }
            any = true;
        }
    }

    fn add_new(&mut self, draft: &mut Draft) -> bool {
        let (path, room) = (draft.path, draft.room);
        let Some(chunk) = self.outgoing.take_new(path, room, stream_fields) else {
            return false;
        };
        self.members[path].totals.sent += u64::from(chunk.len);
        if draft.purpose == Purpose::Control {
            draft.purpose = Purpose::Data;
        }
        self.add_chunk(draft, chunk);
        true
    }

    fn add_again(&mut self, draft: &mut Draft, position: u64, purpose: Purpose) -> bool {
        let (path, room) = (draft.path, draft.room);
        let elsewhere = self.outgoing.carried(position);
        let Some(chunk) = self
            .outgoing
            .take_again(position, path, room, stream_fields)
        else {
            return false;
        };
        let totals = &mut self.members[path].totals;
        if elsewhere.contains(path) {
            totals.retransmitted += u64::from(chunk.len);
            totals.retransmitted_segments += 1;
            draft.purpose = purpose;
        } else {
            totals.sent += u64::from(chunk.len);
            totals.reinjected += u64::from(chunk.len);
            draft.purpose = Purpose::Reinjection;
        }
        self.add_chunk(draft, chunk);
        true
    }

    #[inline]
    fn add_chunk(&mut self, draft: &mut Draft, chunk: super::outgoing::Chunk) {
        let frame = Frame::Stream {
            stream: chunk.stream,
            offset: chunk.offset,
            len: chunk.len,
            fin: chunk.fin,
        };
        let len = Frame::stream_len(chunk.stream, chunk.offset, chunk.len);
        draft.push_measured(frame, len);
        draft.carried.add_data(chunk.position, chunk.end());
    }

    /// Sends what lies at a position on another path, too.
    fn repeat(&mut self, path: usize, position: u64) -> bool {
        if path >= self.members.len() || !self.paths[path].established {
            return false;
        }
        let Some(mut draft) = self.application_draft(path) else {
            return false;
        };
        self.add_ack(&mut draft, path);
        let Some(end) = self.outgoing.end_of(position) else {
            return false;
        };
        if !self.add_again(&mut draft, position, Purpose::Reinjection) {
            self.send_rest(draft);
            // It was acknowledged: the scheduler passes on.
            self.scheduler.carried(Report {
                path,
                offset: position,
                bytes: (end - position) as u32,
                new: false,
            });
            return true;
        }
        let data = draft.carried.data();
        let bytes = data.map(|(position, end)| (end - position) as u32).sum();
        self.send(draft);
        self.scheduler.carried(Report {
            path,
            offset: position,
            bytes,
            new: false,
        });
        true
    }

    /// Nothing can be sent although a path has room: opportunistic retransmission and penalisation, as far as asked for.
    fn rescue(&mut self) -> bool {
        if self.outgoing.unsent() == 0 {
            return false;
        }
        let view = view(self.now, &self.paths, &self.outgoing, None);
        let rescue = self.rescuer.rescue(&view, Blocked::ReceiveWindow);
        self.scheduler.blocked(Blocked::ReceiveWindow);
        if let Some(path) = rescue.penalise {
            let window = &mut self.paths[path];
            window.cwnd = (window.cwnd / 2).max(1);
            window.ssthresh = window.cwnd.max(2);
            self.event(EventKind::Penalised(path));
        }
        match (rescue.repeat_head_on, self.outgoing.head()) {
            (Some(path), Some(head)) => self.repeat(path, head.offset),
            _ => false,
        }
    }

    /// Control frames that no data packet took: on the best path that may send.
    fn send_control(&mut self) {
        while !self.control.is_empty() {
            // Before the first path is open, there is no other.
            let open = (0..self.members.len()).filter(|&path| !self.members[path].closed());
            let best = open.min_by_key(|&path| {
                let shown = &self.paths[path];
                let unfit = (!shown.established, shown.potentially_failed, shown.backup);
                (unfit, shown.srtt, path)
            });
            let Some(mut draft) = best.and_then(|path| self.application_draft(path)) else {
                return;
            };
            let path = draft.path;
            self.add_ack(&mut draft, path);
            self.add_control(&mut draft);
            if !draft.eliciting() {
                return self.send_rest(draft);
            }
            self.send(draft);
        }
    }

    /// Looks for the path's MTU with padded PINGs (RFC 9000 section 14.3, RFC 8899).
    fn send_mtu_probes(&mut self) {
        for path in 0..self.members.len() {
            let member = &self.members[path];
            let idle = !self.paths[path].established || !self.handshake.confirmed;
            if idle
                || !member.mtu.due(self.now)
                || member.closed()
                || !member.validated()
                || self.paths[path].room() == 0
            {
                continue;
            }
            let size = member.datagram();
            let Some(size) = self.members[path].mtu.candidate(size, 0, self.now) else {
                continue;
            };
            if !self.members[path].mtu.fits(0) {
                continue;
            }
            let Some(mut draft) = self.draft(Level::OneRtt, path, size) else {
                continue;
            };
            draft.push(Frame::Ping);
            let room = draft.room;
            draft.pad(room);
            draft.carried.add(Carried::Probe);
            let number = draft.header().number;
            self.members[path].mtu.on_sent(number, number + 1, size, 0);
            self.send(draft);
        }
    }

    /// Acknowledgements whose time has come and that no other packet took.
    fn send_acknowledgements(&mut self) {
        for about in 0..self.members.len() {
            if self.members[about].space.received.deadline() > self.now {
                continue;
            }
            let Some(path) = self.path_of_ack(about) else {
                continue;
            };
            let Some(mut draft) = self.application_draft(path) else {
                // Of an abandoned path nobody need hear if no other is left.
                if self.members[path].closed() {
                    self.members[about].space.received.on_acknowledged();
                }
                continue;
            };
            self.add_ack(&mut draft, about);
            if path != about || self.config.ack_path != AckPath::Same {
                // A packet that is no part of its path's own traffic takes along what there is of the others.
                for other in 0..self.members.len() {
                    self.add_ack(&mut draft, other);
                }
            }
            if draft.is_empty() {
                self.discard_draft(draft);
                continue;
            }
            self.send(draft);
            if self.config.ack_path == AckPath::Scheduler {
                let (_, sent) = self.outgoing.positions();
                self.scheduler.carried(Report {
                    path,
                    offset: sent,
                    bytes: 0,
                    new: true,
                });
            }
        }
    }

    /// The path that carries the acknowledgement of another one, or its own.
    fn path_of_ack(&mut self, about: usize) -> Option<usize> {
        let sends = |path: usize| {
            let shown = &self.paths[path];
            shown.established && !shown.potentially_failed && !self.members[path].closed()
        };
        let fastest = || {
            (0..self.paths.len())
                .filter(|&path| sends(path))
                .min_by_key(|&path| (self.paths[path].srtt, path))
        };
        let same = sends(about).then_some(about);
        match self.config.ack_path {
            AckPath::Same => same.or_else(fastest),
            AckPath::Fastest => fastest().or(same),
            AckPath::Scheduler => {
                let fallback = fastest();
                let (_, sent) = self.outgoing.positions();
                let next = Next {
                    offset: sent,
                    len: 1,
                    carried: PathSet::default(),
                    reinjection: false,
                };
                let view = view(self.now, &self.paths, &self.outgoing, Some(next));
                match self.scheduler.select(&view) {
                    Decision::Send(path) if path < self.members.len() => Some(path),
                    _ => same.or(fallback),
                }
            }
        }
        // Before a path is open, its acknowledgements have no other way.
        .or(Some(about))
    }

    fn settle_pacing(&mut self) {
        let now = self.now;
        for (member, path) in self.members.iter_mut().zip(&mut self.paths) {
            path.paced = member.pacer.end_burst(now);
            if member.paces() && !member.held && path.established && path.room() > 0 {
                member.rate.limit_by_application(path.in_flight);
            }
        }
    }

    fn note_blocked(&mut self) {
        if !self.peer_known || !self.outgoing.at_limit() {
            return;
        }
        let (connection, streams) = self.outgoing.take_blocked();
        if let Some(limit) = connection {
            self.control.push(Frame::DataBlocked(limit));
        }
        for (stream, limit) in streams {
            self.control
                .push(Frame::StreamDataBlocked { stream, limit });
        }
    }
}

fn view<'a>(now: Nanos, paths: &'a [Path], outgoing: &Outgoing, next: Option<Next>) -> View<'a> {
    let (una, sent) = outgoing.positions();
    View {
        now,
        paths,
        next,
        head: outgoing.head(),
        una,
        sent,
        unsent: outgoing.unsent(),
        window: outgoing.window(),
    }
}

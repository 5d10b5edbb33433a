//! Data as it leaves: what the scheduler decides, and how packets are filled (RFC 9000 section 2.2, RFC 9221, RFC 10069 section 5).

use polypath_wire::quic::Frame;

use super::connection::Connection;
use super::draft::Draft;
use super::outgoing::{Chunk, Outgoing};
use super::window::LEAST_WINDOW;
use crate::path::Path;
use crate::scheduler::{
    Blocked, Carried as Report, Decision, Next, PacketKind, PathSet, View, candidates_of_class,
};
use crate::{EventKind, Nanos, Purpose};

/// No STREAM frame is shorter, as [`stream_fields`] has it.
const LEAST_STREAM: u32 = 4;

/// Bytes of a STREAM frame beside its data, where the data may be as long as a packet.
fn stream_fields(stream: u64, offset: u64) -> u32 {
    // The length takes two bytes from 64 on.
    Frame::stream_len(stream, offset, 0) + 1
}

impl Connection {
    /// Data, as the scheduler decides, while any path is `open`.
    pub(super) fn push_data(&mut self, mut open: bool) {
        self.policy.scheduler().begin();
        // What is in flight counts: redundant schedulers repeat it.
        if self.streams.outgoing().is_empty() && !self.datagrams.any_wait() {
            return;
        }
        while open {
            let next = self.next_to_send();
            let decision = self.policy.scheduler().select(&view(
                self.now,
                self.paths.all_shown(),
                self.streams.outgoing(),
                next,
            ));
            let progressed = match decision {
                Decision::Send(path) => next.is_some_and(|next| self.carry(path, next)),
                Decision::Repeat { path, offset } => self.repeat(path, offset),
                Decision::Wait if next.is_none() => self.rescue(),
                Decision::Wait => false,
            };
            open = progressed && self.paths.any_has_room();
        }
        if self.streams.outgoing().wants_to_send() || self.datagrams.any_wait() {
            for (member, path) in self.paths.pairs_mut() {
                member.window_mut().hold(path);
            }
        }
    }

    /// What was lost, else something new, if the peer's limits admit any.
    fn next_to_send(&mut self) -> Option<Next> {
        if let Some((position, len, _)) = self.streams.outgoing_mut().next_again() {
            // Any path may carry it again: its earlier packet is gone.
            return Some(Next {
                offset: position,
                len,
                carried: PathSet::default(),
                reinjection: true,
            });
        }
        let (_, sent) = self.streams.outgoing().positions();
        let datagram = self.datagrams.first();
        let datagram = datagram.map(|(_, len)| (sent, u64::from(len)));
        let (offset, len) = datagram.or_else(|| self.streams.outgoing().next_new())?;
        Some(Next {
            offset,
            len,
            carried: PathSet::default(),
            reinjection: false,
        })
    }

    /// Sends a packet with `next` and whatever else has room in it.
    fn carry(&mut self, path: usize, next: Next) -> bool {
        if path >= self.paths.len() || !self.paths.shown(path).established {
            return false;
        }
        let Some(mut draft) = self.application_draft(path) else {
            return false;
        };
        let datagram_bytes = self.add_datagrams(&mut draft);
        let repeats = !draft.is_empty() && self.policy.scheduler().repeats_datagrams();
        let datagrams = repeats.then(|| draft.frames().to_vec());
        self.add_ack(&mut draft, path);
        self.add_control(&mut draft);
        let again = next.reinjection.then_some(next.offset);
        self.fill(&mut draft, again);
        if !draft.eliciting() {
            self.send_rest(draft);
            return false;
        }
        let bytes = draft.carried.data_bytes() as u32;
        if self.output.tells_decisions() {
            self.event(EventKind::Scheduled {
                subflow: path,
                offset: next.offset,
                bytes,
            });
        }
        self.send(draft);
        if datagram_bytes > 0 {
            self.policy
                .scheduler()
                .carries_datagrams(path, datagram_bytes);
        }
        self.policy.scheduler().carried(Report {
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

    /// Sends DATAGRAM frames that went on a path on each other one that data may take and that has room, too: none is kept for later.
    fn repeat_datagrams(&mut self, path: usize, datagrams: &[Frame]) {
        let open = |other: &usize| *other != path && self.paths.shown(*other).room() > 0;
        let others: Vec<usize> = candidates_of_class(self.paths.all_shown())
            .filter(open)
            .collect();
        for other in others {
            let Some(mut draft) = self.application_draft(other) else {
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
    #[inline(always)]
    pub(super) fn fill(&mut self, draft: &mut Draft, first: Option<u64>) -> bool {
        let mut any = false;
        let mut again = first;
        loop {
            let position = again.take().or_else(|| {
                self.streams
                    .outgoing_mut()
                    .next_again()
                    .map(|(position, ..)| position)
            });
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

    #[inline(always)]
    fn add_new(&mut self, draft: &mut Draft) -> bool {
        let (path, room) = (draft.path, draft.room);
        let Some(chunk) = self
            .streams
            .outgoing_mut()
            .take_new(path, room, stream_fields)
        else {
            return false;
        };
        self.paths[path].traffic_mut().on_new(chunk.len);
        if draft.purpose == Purpose::Control {
            draft.purpose = Purpose::Data;
        }
        self.add_chunk(draft, chunk);
        true
    }

    pub(super) fn add_again(&mut self, draft: &mut Draft, position: u64, purpose: Purpose) -> bool {
        let (path, room) = (draft.path, draft.room);
        let elsewhere = self.streams.outgoing().carried(position);
        let Some(chunk) =
            self.streams
                .outgoing_mut()
                .take_again(position, path, room, stream_fields)
        else {
            return false;
        };
        let traffic = self.paths[path].traffic_mut();
        if elsewhere.contains(path) {
            traffic.on_again(chunk.len);
            draft.purpose = purpose;
        } else {
            traffic.on_reinjected(chunk.len);
            draft.purpose = Purpose::Reinjection;
        }
        self.add_chunk(draft, chunk);
        true
    }

    #[inline(always)]
    fn add_chunk(&mut self, draft: &mut Draft, chunk: Chunk) {
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
        if path >= self.paths.len() || !self.paths.shown(path).established {
            return false;
        }
        let Some(mut draft) = self.application_draft(path) else {
            return false;
        };
        self.add_ack(&mut draft, path);
        let Some(end) = self.streams.outgoing().end_of(position) else {
            return false;
        };
        if !self.add_again(&mut draft, position, Purpose::Reinjection) {
            self.send_rest(draft);
            return self.policy.scheduler().passes_over(path, end);
        }
        let bytes = draft.carried.data_bytes() as u32;
        self.send(draft);
        self.policy.scheduler().carried(Report {
            path,
            offset: position,
            bytes,
            new: false,
        });
        true
    }

    /// Nothing can be sent although a path has room: opportunistic retransmission and penalisation, as far as asked for.
    fn rescue(&mut self) -> bool {
        if self.streams.outgoing().unsent() == 0 {
            return false;
        }
        let view = view(
            self.now,
            self.paths.all_shown(),
            self.streams.outgoing(),
            None,
        );
        let rescue = self.policy.rescue(&view, Blocked::ReceiveWindow);
        if let Some(path) = rescue.penalise {
            self.paths.shown_mut(path).penalise(LEAST_WINDOW);
            self.event(EventKind::Penalised(path));
        }
        match (rescue.repeat_head_on, self.streams.outgoing().head()) {
            (Some(path), Some(head)) => self.repeat(path, head.offset),
            _ => false,
        }
    }

    /// As many as have room. The bytes in them.
    fn add_datagrams(&mut self, draft: &mut Draft) -> u32 {
        let mut bytes = 0;
        while let Some((number, len)) = self.datagrams.first() {
            let frame = Frame::Datagram { number, len };
            if frame.len() > draft.room {
                if draft.is_empty() {
                    // It was let in while packets were longer (RFC 9221 section 5).
                    self.datagrams.drop_first();
                    self.event(EventKind::DatagramRefused(len));
                    continue;
                }
                break;
            }
            self.datagrams.drop_first();
            draft.purpose = Purpose::Data;
            draft.push(frame);
            bytes += len;
        }
        bytes
    }
}

/// What a scheduler sees.
pub(super) fn view<'a>(
    now: Nanos,
    paths: &'a [Path],
    outgoing: &Outgoing,
    next: Option<Next>,
) -> View<'a> {
    let (una, sent) = outgoing.positions();
    View {
        now,
        paths,
        kind: PacketKind::Data,
        next,
        head: outgoing.head(),
        una,
        sent,
        unsent: outgoing.unsent(),
        window: outgoing.window(),
    }
}

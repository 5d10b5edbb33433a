//! Outgoing data: the scheduler's decisions, and how packets are filled (RFC 9000 section 2.2, RFC 9221, RFC 10069
//! section 5).

use polypath_wire::quic::Frame;

use super::outgoing::Outgoing;
use super::transfer::Transfer;
use super::window::LEAST_WINDOW;
use crate::path::Path;
use crate::scheduler::{
    Blocked, Carried as Report, Decision, Next, PacketKind, PathSet, View, candidates_of_class,
};
use crate::{EventKind, Nanos, Purpose};

impl Transfer {
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
                self.packets.now,
                self.packets.paths.all_shown(),
                self.streams.outgoing(),
                next,
            ));
            let progressed = match decision {
                Decision::Send(path) => next.is_some_and(|next| self.carry(path, next)),
                Decision::Repeat { path, offset } => self.repeat(path, offset),
                Decision::Wait if next.is_none() => self.rescue(),
                Decision::Wait => false,
            };
            open = progressed && self.packets.paths.any_has_room();
        }
        if self.streams.outgoing().wants_to_send() || self.datagrams.any_wait() {
            for (member, path) in self.packets.paths.pairs_mut() {
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
        if path >= self.packets.paths.len() || !self.packets.paths.shown(path).established {
            return false;
        }
        let Some(mut draft) = self.packets.application_draft(path) else {
            return false;
        };
        let datagram_bytes = draft.add_datagrams(&mut self.datagrams, |len| {
            self.packets
                .output
                .event(self.packets.now, EventKind::DatagramRefused(len));
        });
        let repeats = !draft.is_empty() && self.policy.scheduler().repeats_datagrams();
        let datagrams = repeats.then(|| draft.frames().to_vec());
        self.packets.add_ack(&mut draft, path);
        draft.add_control(&mut self.packets.control);
        let again = next.reinjection.then_some(next.offset);
        let traffic = self.packets.paths[path].traffic_mut();
        draft.fill(self.streams.outgoing_mut(), traffic, again);
        if !draft.eliciting() {
            self.packets.send_rest(draft);
            return false;
        }
        let bytes = draft.carried.data_bytes() as u32;
        if self.packets.output.tells_decisions() {
            self.packets.event(EventKind::Scheduled {
                subflow: path,
                offset: next.offset,
                bytes,
            });
        }
        self.packets.send(draft);
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
        let open = |other: &usize| *other != path && self.packets.paths.shown(*other).room() > 0;
        let others: Vec<usize> = candidates_of_class(self.packets.paths.all_shown())
            .filter(open)
            .collect();
        for other in others {
            let Some(mut draft) = self.packets.application_draft(other) else {
                continue;
            };
            for frame in datagrams {
                if frame.len() <= draft.room {
                    draft.push(frame.clone());
                }
            }
            draft.purpose = Purpose::Reinjection;
            if draft.eliciting() {
                self.packets.send(draft);
            } else {
                self.packets.discard_draft(draft);
            }
        }
    }

    /// Sends what lies at a position on another path, too.
    fn repeat(&mut self, path: usize, position: u64) -> bool {
        if path >= self.packets.paths.len() || !self.packets.paths.shown(path).established {
            return false;
        }
        let Some(mut draft) = self.packets.application_draft(path) else {
            return false;
        };
        self.packets.add_ack(&mut draft, path);
        let Some(end) = self.streams.outgoing().end_of(position) else {
            return false;
        };
        let (outgoing, traffic) = (
            self.streams.outgoing_mut(),
            self.packets.paths[path].traffic_mut(),
        );
        if !draft.add_again(outgoing, traffic, position, Purpose::Reinjection) {
            self.packets.send_rest(draft);
            return self.policy.scheduler().passes_over(path, end);
        }
        let bytes = draft.carried.data_bytes() as u32;
        self.packets.send(draft);
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
            self.packets.now,
            self.packets.paths.all_shown(),
            self.streams.outgoing(),
            None,
        );
        let rescue = self.policy.rescue(&view, Blocked::ReceiveWindow);
        if let Some(path) = rescue.penalise {
            self.packets.paths.shown_mut(path).penalise(LEAST_WINDOW);
            self.packets.event(EventKind::Penalised(path));
        }
        match (rescue.repeat_head_on, self.streams.outgoing().head()) {
            (Some(path), Some(head)) => self.repeat(path, head.offset),
            _ => false,
        }
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

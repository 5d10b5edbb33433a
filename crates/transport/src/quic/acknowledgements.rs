//! Outgoing acknowledgements, with other frames or alone, on their own path or another (RFC 9000 section 13.2,
//! RFC 10069 section 4.1).

use polypath_wire::quic::Frame;

use super::crypto::Level;
use super::data::view;
use super::draft::Draft;
use super::packets::Packets;
use super::transfer::Transfer;
use crate::scheduler::{Carried as Report, Decision, Next, PacketKind, PathSet, View};
use crate::settings::AckPath;

impl Packets {
    /// Adds the acknowledgement of a space to a packet on its path, if it says anything new.
    #[inline]
    pub(super) fn add_ack(&mut self, draft: &mut Draft, about: usize) {
        let known = draft.level == Level::OneRtt && !self.paths[about].space().received.has_news();
        if !known {
            self.add_news(draft, about);
        }
    }

    #[inline(never)]
    fn add_news(&mut self, draft: &mut Draft, about: usize) {
        let named = (draft.level == Level::OneRtt && self.parameters.multipath())
            .then(|| self.paths[about].id());
        let (now, exponent) = (self.now, self.parameters.own().ack_delay_exponent as u8);
        let exponent = if draft.level == Level::OneRtt {
            exponent
        } else {
            0
        };
        let received = match draft.level {
            Level::OneRtt => &mut self.paths[about].space_mut().received,
            level => match self.handshake.space_left(level) {
                Some(space) => &mut space.received,
                None => return,
            },
        };
        if !received.has_news() {
            return;
        }
        let mut ack = self.output.spares().ack();
        if !received.acknowledge(now, named, exponent, &mut ack) {
            return;
        }
        let largest = ack.ranges.first().map_or(0, |range| range.1);
        let len = ack.len();
        if len > draft.room {
            return;
        }
        received.on_acknowledged();
        draft.push_measured(Frame::Ack(ack), len);
        let path = about as u32;
        draft.carried.add_ack(path, largest);
    }

    /// Nobody acknowledges a packet of acknowledgements alone: a path that carries nothing else may fail unnoticed, and with it every path
    /// whose acknowledgements it carries. Once a round trip such a packet asks for an answer, which probes follow if there is none. What came
    /// since the last question must be more than an answer to it, or both sides would ask for ever (RFC 9000 section 13.2.4).
    fn ask_for_answer(&mut self, draft: &mut Draft) {
        let came = self.paths.came_for_acks();
        let member = &mut self.paths[draft.path];
        let sent = &member.space().sent;
        let due = sent.eliciting() == 0
            && sent.last_eliciting_at() + member.rtt().smoothed() <= self.now
            && came != member.traffic().asked_after();
        if due && draft.room > 0 {
            member.traffic_mut().note_asked(came);
            draft.push(Frame::Ping);
        }
    }
}

impl Transfer {
    /// Acknowledgements whose time has come and that no other packet took. Whether the scheduler was told of one.
    pub(super) fn send_acknowledgements(&mut self) -> bool {
        let mut told = false;
        for about in 0..self.packets.paths.len() {
            if self.packets.paths[about].space().received.deadline() > self.packets.now {
                continue;
            }
            let Some(path) = self.path_of_ack(about) else {
                continue;
            };
            if path != about && self.packets.paths.shown(about).potentially_failed {
                // What comes on a path that was given up shows that it works again in one direction. Only an answer on it can show the same
                // of the other, and the path of acknowledgements may have died meanwhile: to both sides it is the only one left.
                self.send_acknowledgement(about, about, false);
                self.packets.paths[about]
                    .space_mut()
                    .received
                    .tell_again(self.packets.now);
            }
            // A packet that is no part of its path's own traffic takes along what there is of the others.
            let all = path != about || self.packets.config.ack_path != AckPath::Same;
            let sent = self.send_acknowledgement(about, path, all);
            if sent && self.packets.config.ack_path == AckPath::Scheduler {
                self.report_placed(path);
                told = true;
            }
        }
        told
    }

    /// Sends what is to be told `about` a path, or about `all`, on that one or another. Whether anything left.
    fn send_acknowledgement(&mut self, about: usize, path: usize, all: bool) -> bool {
        let Some(mut draft) = self.packets.application_draft(path) else {
            // Of an abandoned path nobody need hear if no other is left.
            if self.packets.paths[path].closed() {
                self.packets.paths[about]
                    .space_mut()
                    .received
                    .on_acknowledged();
            }
            return false;
        };
        self.packets.add_ack(&mut draft, about);
        let others = if all {
            0..self.packets.paths.len()
        } else {
            0..0
        };
        for other in others {
            self.packets.add_ack(&mut draft, other);
        }
        if draft.is_empty() {
            self.packets.discard_draft(draft);
            return false;
        }
        if path != about {
            self.packets.ask_for_answer(&mut draft);
        }
        self.packets.send(draft);
        true
    }

    /// The path that carries the acknowledgement of another one, or its own.
    fn path_of_ack(&mut self, about: usize) -> Option<usize> {
        let fastest = || self.packets.paths.fastest();
        let same = self.packets.paths.carries(about).then_some(about);
        match self.packets.config.ack_path {
            AckPath::Same => same.or_else(fastest),
            AckPath::Fastest => fastest().or(same),
            AckPath::Scheduler => {
                let fallback = fastest();
                self.place(PacketKind::Acknowledgement)
                    .or(same)
                    .or(fallback)
            }
        }
        // Before a path is open, its acknowledgements have no other way.
        .or(Some(about))
    }

    /// The path that the scheduler gives a packet without data, if it gives it one.
    pub(super) fn place(&mut self, kind: PacketKind) -> Option<usize> {
        let (_, sent) = self.streams.outgoing().positions();
        let next = Next {
            offset: sent,
            len: 1,
            carried: PathSet::default(),
            reinjection: false,
        };
        let view = View {
            kind,
            ..view(
                self.packets.now,
                self.packets.paths.all_shown(),
                self.streams.outgoing(),
                Some(next),
            )
        };
        match self.policy.scheduler().select(&view) {
            Decision::Send(path) if path < self.packets.paths.len() => Some(path),
            _ => None,
        }
    }

    /// Tells the scheduler that a packet left which it was asked about by [`Transfer::place`].
    pub(super) fn report_placed(&mut self, path: usize) {
        let (_, sent) = self.streams.outgoing().positions();
        self.policy.scheduler().carried(Report {
            path,
            offset: sent,
            bytes: 0,
            new: true,
        });
    }
}

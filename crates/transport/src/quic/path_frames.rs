//! Outgoing challenges to addresses, and answers to them (RFC 9000 section 8.2).

use polypath_wire::quic::Frame;
use rand::RngCore;

use super::contents::Carried;
use super::crypto::Level;
use super::datagram_size::LEAST_DATAGRAM;
use super::draft::Draft;
use super::packets::Packets;
use super::reach::Reach;
use crate::Tuple;

/// Bytes of a challenge or an answer.
const LEN: u32 = 9;

impl Packets {
    /// Challenges and answers of a path, each padded to what every path has to take (RFC 9000 sections 8.2.1 and 8.2.2).
    pub(super) fn send_path_frames(&mut self, path: usize) {
        let member = &self.paths[path];
        if !member.reach().has_errand() || member.closed() {
            return;
        }
        self.answer_elsewhere(path);
        self.challenge_former(path);
        if !self.paths[path].reach().speaks() {
            return;
        }
        let Some(mut draft) = self
            .application_draft(path)
            .filter(|draft| draft.room >= LEN)
        else {
            return;
        };
        self.add_ack(&mut draft, path);
        let member = &mut self.paths[path];
        let answered = member.reach_mut().answer(|data| {
            let fits = draft.room >= LEN;
            if fits {
                draft.push(Frame::PathResponse(data));
            }
            fits
        });
        if answered && member.established_at().is_some_and(|at| at < self.now) && draft.room > 0 {
            // It shows that this side has not moved (RFC 9000 section 9.3.3).
            draft.push(Frame::Ping);
        }
        let challenge = if self.paths[path].reach().asks() && draft.room >= LEN {
            let data = self.random.next_u64();
            draft.push(Frame::PathChallenge(data));
            Some(data)
        } else {
            None
        };
        draft.pad_datagram();
        if let Some(data) = challenge {
            let full = draft.size() >= LEAST_DATAGRAM;
            let reach = self.paths[path].reach_mut();
            reach.on_asked(data, full, self.now);
        }
        self.send(draft);
    }

    /// An answer goes where the challenge came from (RFC 9000 section 8.2.2).
    fn answer_elsewhere(&mut self, path: usize) {
        let here = self.paths[path].tuple();
        for (data, tuple, len) in self.paths[path].reach_mut().take_elsewhere(here) {
            let Some(mut draft) = self.off_path_draft(path, Reach::answer_to(len)) else {
                continue;
            };
            draft.push(Frame::PathResponse(data));
            self.send_off_path(draft, tuple);
        }
    }

    /// Whoever moved may have been a copy of the peer's packet: the peer itself answers from where it was (RFC 9000 section 9.3.3).
    fn challenge_former(&mut self, path: usize) {
        let Some((former, known)) = self.paths[path].reach_mut().ask_former() else {
            return;
        };
        let data = self.random.next_u64();
        if let Some(mut draft) = self.off_path_draft(path, LEAST_DATAGRAM) {
            if let Some(id) = known.filter(|id| id.len() == draft.header().destination.len()) {
                draft.header_mut().destination = id;
            }
            draft.push(Frame::PathChallenge(data));
            self.send_off_path(draft, former);
        }
    }

    fn off_path_draft(&mut self, path: usize, limit: u32) -> Option<Draft> {
        let limit = limit.min(self.paths[path].datagram());
        let mut draft = self.draft(Level::OneRtt, path, limit)?;
        // One id is not sent to two addresses, if there is another (RFC 9000 section 9.5).
        let spare = self.identity.remote().spare(self.paths[path].id());
        if let Some(spare) = spare.filter(|id| id.len() == draft.header().destination.len()) {
            draft.header_mut().destination = spare;
        }
        (draft.room >= LEN).then_some(draft)
    }

    fn send_off_path(&mut self, mut draft: Draft, tuple: Tuple) {
        draft.carried.add(Carried::OffPath);
        draft.pad_datagram();
        let here = self.paths[draft.path].route().is_between(&tuple);
        self.send_alone(draft, (!here).then_some(tuple));
    }
}

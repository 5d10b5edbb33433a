//! Outgoing packets and their order: the handshake, probes, control frames (RFC 9000 sections 12 and 13).
//!
//! Data and acknowledgements have modules of their own.

use polypath_wire::quic::Frame;

use super::connection::Connection;
use super::contents::Carried;
use super::crypto::Level;
use super::datagram_size::LEAST_DATAGRAM;
use super::draft::Draft;
use super::packets::Packets;
use super::transfer::Transfer;
use crate::scheduler::PacketKind;
use crate::settings::ControlPath;
use crate::{EventKind, Purpose};

impl Packets {
    /// Packets of the application level may be sent.
    pub(super) fn sends_application(&self) -> bool {
        self.lifetime.established() || self.handshake.writes(Level::OneRtt)
    }

    /// Handshake packets, coalesced (RFC 9000 section 12.2).
    fn send_handshake(&mut self) {
        loop {
            let limit = self.paths[0]
                .reach()
                .allowance(self.identity.client())
                .min(LEAST_DATAGRAM.into()) as u32;
            let mut left = limit;
            let mut drafts = Vec::new();
            for level in [Level::Initial, Level::Handshake] {
                // RFC 9000 section 14.1: a server's Initial packets wait until it may send as much as they are padded to.
                let waits =
                    level == Level::Initial && !self.identity.client() && limit < LEAST_DATAGRAM;
                if waits || !self.handshake.writes(level) {
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
            let pads = drafts.iter().any(|draft| {
                draft.level == Level::Initial && (self.identity.client() || draft.eliciting())
            });
            let sends_handshake = drafts.iter().any(|draft| draft.level == Level::Handshake);
            if let Some(last) = drafts.last_mut().filter(|_| pads) {
                let room = last.room;
                last.pad(room);
            }
            self.send_coalesced(drafts);
            if self.identity.client() && sends_handshake {
                // RFC 9001 section 4.9.1.
                self.discard(Level::Initial);
            }
        }
    }

    fn handshake_draft(&mut self, level: Level, limit: u32) -> Option<Draft> {
        let probe = self.handshake.is_probed(level);
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
            self.handshake.settle_probe();
            draft.push(Frame::Ping);
        }
        if draft.is_empty() {
            self.discard_draft(draft);
            return None;
        }
        draft.pad_to_sample();
        Some(draft)
    }

    /// Looks for the path's MTU with padded PINGs (RFC 9000 section 14.3, RFC 8899).
    fn send_mtu_probes(&mut self) {
        for path in 0..self.paths.len() {
            let member = &self.paths[path];
            let idle = !self.paths.shown(path).established || !self.handshake.confirmed();
            if idle
                || !member.datagram_size().due(self.now)
                || member.closed()
                || !member.validated()
                || self.paths.shown(path).room() == 0
            {
                continue;
            }
            let search = self.paths[path].datagram_size_mut();
            let Some(size) = search.candidate(self.now) else {
                continue;
            };
            let Some(mut draft) = self.draft(Level::OneRtt, path, size) else {
                continue;
            };
            draft.push(if self.parameters.asks_for_acks() {
                // draft-ietf-quic-ack-frequency-14 section 8.3.
                Frame::ImmediateAck
            } else {
                Frame::Ping
            });
            let room = draft.room;
            draft.pad(room);
            draft.carried.add(Carried::Probe);
            let number = draft.header().number;
            self.paths[path].datagram_size_mut().on_sent(number, size);
            self.send(draft);
        }
    }
}

impl Transfer {
    /// Packets of the application level. Whether the scheduler was told of one without data.
    #[inline(always)]
    fn send_application(&mut self) -> bool {
        let now = self.packets.now;
        let (mut errands, mut acknowledges, mut open) = (false, false, false);
        for (member, path) in self.packets.paths.pairs_mut() {
            member.window_mut().release(path, now);
            errands |= member.has_errand(now);
            acknowledges |= member.space().received.deadline() <= now;
            open |= path.established && path.room() > 0;
        }
        if errands {
            for path in 0..self.packets.paths.len() {
                self.packets.send_path_frames(path);
                self.send_probes(path);
            }
            self.packets.send_mtu_probes();
            open = self.packets.paths.any_has_room();
        }
        self.push_data(open);
        if self.packets.parameters.peer_came() && self.streams.outgoing().at_limit() {
            self.streams.tell_blocked(&mut self.packets.control);
        }
        let mut told = !self.packets.control.is_empty() && self.send_control();
        told |= acknowledges && self.send_acknowledgements();
        told
    }

    /// Probe packets go beyond the window: new data, else what is in flight, else a PING (RFC 9002 section 6.2.4).
    fn send_probes(&mut self, path: usize) {
        while self.packets.paths[path].probing().asks() {
            let Some(mut draft) = self.packets.application_draft(path) else {
                return;
            };
            self.packets.paths[path].probing_mut().on_asked();
            // What a silent path carries is left to the others.
            if !self.packets.paths.shown(path).potentially_failed {
                self.packets.add_ack(&mut draft, path);
                draft.add_control(&mut self.packets.control);
                let (outgoing, traffic) = (
                    self.streams.outgoing_mut(),
                    self.packets.paths[path].traffic_mut(),
                );
                if !draft.fill(outgoing, traffic, None) {
                    self.repeat_oldest(&mut draft);
                }
            }
            if self.packets.parameters.asks_for_acks() && draft.room > 0 {
                // The peer need not wait for more (draft-ietf-quic-ack-frequency-14 section 7).
                draft.push(Frame::ImmediateAck);
            }
            if !draft.eliciting() && draft.room > 0 {
                draft.push(Frame::Ping);
            }
            self.packets.event(EventKind::TailLossProbe(path));
            self.packets.send(draft);
        }
    }

    /// Adds the oldest data in flight on the packet's path.
    fn repeat_oldest(&mut self, draft: &mut Draft) {
        let sent = &self.packets.paths[draft.path].space().sent;
        let oldest = sent.iter().find_map(|packet| packet.carried.data().next());
        if let Some((position, _)) = oldest {
            let (outgoing, traffic) = (
                self.streams.outgoing_mut(),
                self.packets.paths[draft.path].traffic_mut(),
            );
            draft.add_again(outgoing, traffic, position, Purpose::Retransmission);
        }
    }

    /// Control frames that no data packet took: on the best path that may send, or where the scheduler wants them, which is told then.
    fn send_control(&mut self) -> bool {
        let mut told = false;
        while !self.packets.control.is_empty() {
            let asked = self.shows_control();
            let placed = if asked { self.place_control() } else { None };
            let path = placed.or_else(|| self.packets.paths.best_for_control());
            let Some(mut draft) = path.and_then(|path| self.packets.application_draft(path)) else {
                break;
            };
            let path = draft.path;
            self.packets.add_ack(&mut draft, path);
            draft.add_control(&mut self.packets.control);
            if !draft.eliciting() {
                self.packets.send_rest(draft);
                break;
            }
            self.packets.send(draft);
            if asked {
                self.report_placed(path);
                told = true;
            }
        }
        told
    }

    /// The scheduler is asked about packets of control frames, once it has a path to choose.
    fn shows_control(&self) -> bool {
        let chooses = self.packets.config.control_path == ControlPath::Scheduler
            && self.packets.paths.shown(0).multipath;
        chooses
            && self
                .packets
                .paths
                .all_shown()
                .iter()
                .any(|path| path.established)
    }

    fn place_control(&mut self) -> Option<usize> {
        let path = self.place(PacketKind::Control)?;
        let able = self.packets.paths.shown(path).established && !self.packets.paths[path].closed();
        able.then_some(path)
    }
}

impl Connection {
    /// Sends whatever may be sent now, and finds the next deadline.
    pub(super) fn flush(&mut self) {
        self.transfer.finish_if_done();
        if self.transfer.packets.lifetime.over() {
            self.transfer.packets.send_close();
        } else {
            if !self.transfer.packets.handshake.over() {
                self.transfer.packets.send_handshake();
            }
            if self.transfer.packets.sends_application() {
                self.path_management.manage_paths(&mut self.transfer);
                if self.transfer.send_application() {
                    // What the scheduler placed may have ended the turn that data waited for.
                    self.flush();
                }
            }
        }
        self.deadline = self.transfer.find_deadline();
    }
}

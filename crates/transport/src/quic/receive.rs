//! Datagrams that arrive: their packets and frames (RFC 9000 sections 12 and 19).

use std::borrow::Borrow;

use polypath_wire::quic::{
    Datagram, Frame, Kind, Packet, Role, TransportError, TransportParameters,
};

use super::connection::Connection;
use super::control;
use super::crypto::Level;
use super::datagram_size::LEAST_DATAGRAM;
use super::moving;
use super::note::Discard;
use super::packets::Packets;
use super::refusal::{self, admits_ack};
use super::transfer::Transfer;
use crate::Codepoint;
use crate::{EventKind, Tuple};

/// A packet of a datagram.
pub(super) enum Came<P> {
    Packet(P),
    /// On this path, but of no use otherwise. It counts against the amplification limit all the same (RFC 9000 section 8.1).
    Unopened(u64),
}

impl Packets {
    fn ack_delay(&self, level: Level) -> crate::Nanos {
        // Handshake packets are acknowledged at once (RFC 9000 section 13.2.1).
        if level == Level::OneRtt {
            self.parameters.ack_delay()
        } else {
            0
        }
    }

    pub(super) fn issue_ids(&mut self, path: u64, limit: u64) {
        let multipath = self.parameters.multipath();
        let frames = self
            .identity
            .local_mut()
            .issue(path, multipath, limit, &mut self.random);
        for frame in frames {
            self.control.push(Frame::NewConnectionId(Box::new(frame)));
        }
    }
}

impl Transfer {
    /// A control frame was lost.
    pub(super) fn repeat_control(&mut self, frame: Frame) {
        if self.packets.parameters.is_outdated(&frame)
            || self.packets.paths.is_outdated_status(&frame)
        {
            return;
        }
        // What holds data back still is told again (RFC 9000 section 13.3).
        match frame {
            Frame::DataBlocked(limit) => self.streams.outgoing_mut().forget_blocked(None, limit),
            Frame::StreamDataBlocked { stream, limit } => {
                self.streams
                    .outgoing_mut()
                    .forget_blocked(Some(stream), limit);
            }
            _ => {}
        }
        if let Some(frame) = control::repeated(frame, self.streams.incoming()) {
            self.packets.control.push(frame);
        }
    }

    /// The declarations of the peer came.
    fn take_parameters(&mut self, parameters: TransportParameters) {
        self.packets.parameters.note_peer();
        if !self.packets.identity.is_named_by(&parameters) {
            let reason = "connection ids differ from those of the handshake";
            return self.fail(TransportError::TRANSPORT_PARAMETER_ERROR, 0, reason);
        }
        let multipath =
            self.packets.parameters.offers_multipath() && parameters.initial_max_path_id.is_some();
        if multipath && self.packets.identity.peer_has_none() {
            // RFC 10069 section 2.1.
            let reason = "multipath with an empty connection id";
            return self.fail(TransportError::PROTOCOL_VIOLATION, 0, reason);
        }
        self.streams.begin_peer(&parameters);
        self.packets
            .identity
            .remote_mut()
            .set_first_token(parameters.stateless_reset_token);
        for member in self.packets.paths.iter_mut() {
            let size = member.datagram_size_mut();
            size.limit(parameters.max_udp_payload_size);
        }
        self.packets.parameters.take(parameters);
        self.packets.compare_timeouts();
    }

    /// The handshake is complete on this side.
    fn on_established(&mut self) {
        self.packets.lifetime.establish();
        self.packets.event(EventKind::ConnectionEstablished);
        if !self.packets.identity.client() {
            self.packets.handshake.confirm();
            self.packets.control.push(Frame::HandshakeDone);
            self.packets.discard(Level::Handshake);
            self.packets
                .handshake
                .offer_tickets(&mut self.packets.control);
        }
    }
}

impl Connection {
    /// A datagram of `len` bytes came from `tuple.remote` to `tuple.local`.
    pub fn on_datagram(
        &mut self,
        tuple: Tuple,
        datagram: &Datagram,
        len: u32,
        ecn: Codepoint,
        now: crate::Nanos,
    ) {
        self.transfer.packets.now = now;
        if self.transfer.packets.lifetime.over() {
            return self.transfer.packets.answer_after_close();
        }
        let mut counted = false;
        for packet in &datagram.packets {
            self.on_plain(packet, &tuple, len, ecn, &mut counted);
            if self.transfer.packets.lifetime.over() {
                break;
            }
        }
        self.flush();
    }

    /// A packet of a datagram; `counted`: one of the datagram's was counted against the amplification limit before.
    #[inline(always)]
    fn on_plain(
        &mut self,
        packet: &Packet,
        tuple: &Tuple,
        len: u32,
        ecn: Codepoint,
        counted: &mut bool,
    ) {
        let Some((path, home)) = self.path_for(packet, tuple) else {
            return self
                .transfer
                .packets
                .output
                .note_drop(packet, Discard::Unknown);
        };
        if !std::mem::replace(counted, true) && home {
            self.transfer.packets.paths[path]
                .reach_mut()
                .on_received(len);
        }
        // Compiled for itself: most packets are of this kind.
        if let Kind::OneRtt { .. } = packet.header.kind {
            return self.on_packet_of(Level::OneRtt, path, packet, tuple, len, ecn, home);
        }
        self.on_long_packet(path, packet, tuple, len, ecn, home);
    }

    /// The packets of a datagram of `len` bytes, one after the other: one may bring the keys that open the next.
    pub(super) fn on_packets<P: Borrow<Packet>>(
        &mut self,
        tuple: Tuple,
        len: u32,
        ecn: Codepoint,
        now: crate::Nanos,
        mut next: impl FnMut(&mut Self) -> Option<Came<P>>,
    ) {
        self.transfer.packets.now = now;
        if self.transfer.packets.lifetime.over() {
            return self.transfer.packets.answer_after_close();
        }
        let mut counted = false;
        while let Some(came) = next(self) {
            match came {
                Came::Packet(packet) => {
                    self.on_plain(packet.borrow(), &tuple, len, ecn, &mut counted);
                }
                Came::Unopened(id) => {
                    let mut members = self.transfer.packets.paths.iter_mut();
                    let Some(member) = members.find(|member| member.id() == id) else {
                        continue;
                    };
                    if !std::mem::replace(&mut counted, true) && member.route().is_between(&tuple) {
                        member.reach_mut().on_received(len);
                    }
                    continue;
                }
            }
            if self.transfer.packets.lifetime.over() {
                break;
            }
        }
        self.flush();
    }

    /// The path that a packet is on, and whether its addresses are those of the path. A client's packet for a path that the server does not know
    /// yet begins it (RFC 10069 section 3.1).
    #[inline(always)]
    fn path_for(&mut self, packet: &Packet, tuple: &Tuple) -> Option<(usize, bool)> {
        let id = self.transfer.packets.identity.path_for(packet)?;
        if let Some(path) = self.transfer.packets.paths.named(id) {
            let member = &self.transfer.packets.paths[path];
            let home = member.route().is_between(tuple);
            let route = member.route();
            let follows = || route.may_become(tuple, self.transfer.packets.identity.client());
            let usable = member.takes(self.transfer.packets.now) && (home || follows());
            return usable.then_some((path, home));
        }
        self.path_management
            .admit_path(&mut self.transfer, id, tuple)
    }

    /// A packet with a long header.
    #[inline(never)]
    fn on_long_packet(
        &mut self,
        path: usize,
        packet: &Packet,
        tuple: &Tuple,
        len: u32,
        ecn: Codepoint,
        home: bool,
    ) {
        let level = match packet.header.kind {
            Kind::Initial { .. } => Level::Initial,
            Kind::Handshake => Level::Handshake,
            Kind::Retry { .. } | Kind::VersionNegotiation(_) => {
                return self.on_unprotected(&packet.header);
            }
            _ => {
                return self
                    .transfer
                    .packets
                    .output
                    .note_drop(packet, Discard::Unsupported);
            }
        };
        self.on_packet_of(level, path, packet, tuple, len, ecn, home);
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "one body for two callers")]
    fn on_packet_of(
        &mut self,
        level: Level,
        path: usize,
        packet: &Packet,
        tuple: &Tuple,
        len: u32,
        ecn: Codepoint,
        home: bool,
    ) {
        if !self.transfer.packets.handshake.reads(level) {
            return self
                .transfer
                .packets
                .output
                .note_drop(packet, Discard::WithoutKeys);
        }
        let number = packet.header.number;
        if self
            .transfer
            .packets
            .space(level, path)
            .received
            .is_duplicate(number)
        {
            return self
                .transfer
                .packets
                .output
                .note_drop(packet, Discard::Duplicate);
        }
        if let Kind::Initial { token } = &packet.header.kind {
            // RFC 9000 sections 14.1 and 17.2.2.
            let short = !self.transfer.packets.identity.client() && len < LEAST_DATAGRAM;
            if short || self.transfer.packets.identity.client() && !token.is_empty() {
                return self
                    .transfer
                    .packets
                    .output
                    .note_drop(packet, Discard::Invalid);
            }
        }
        if level != Level::OneRtt
            && !self
                .transfer
                .packets
                .identity
                .take_source(packet.header.source)
        {
            return self
                .transfer
                .packets
                .output
                .note_drop(packet, Discard::Invalid);
        }
        self.transfer
            .packets
            .lifetime
            .restart(self.transfer.packets.now);
        if level == Level::Handshake && !self.transfer.packets.identity.client() {
            // The client has shown that it receives at its address (RFC 9000 section 8.1, RFC 9001 section 4.9.1).
            self.transfer.packets.paths[0].reach_mut().validate();
            self.transfer.packets.discard(Level::Initial);
        }
        let mut eliciting = false;
        for frame in &packet.frames {
            // The two that most packets have.
            match frame {
                Frame::Stream { .. } if level == Level::OneRtt => {
                    eliciting = true;
                    self.transfer.on_stream(path, frame);
                }
                Frame::Ack(ack)
                    if level == Level::OneRtt
                        && admits_ack(
                            ack,
                            &self.transfer.packets.parameters,
                            self.path_management.ids(),
                        ) =>
                {
                    self.transfer.on_application_ack(ack);
                }
                _ => {
                    eliciting |= frame.ack_eliciting();
                    self.on_seldom_frame(level, path, packet, frame, (*tuple, len));
                }
            }
            if self.transfer.packets.lifetime.over() {
                return;
            }
        }
        if packet.frames.is_empty() {
            // RFC 9000 section 12.4.
            return self.transfer.fail(
                TransportError::PROTOCOL_VIOLATION,
                0,
                "a packet without frames",
            );
        }
        if level == Level::OneRtt {
            let destination = packet.header.destination;
            if home {
                self.transfer.packets.paths[path]
                    .reach_mut()
                    .note_destination(destination);
            } else {
                let newest =
                    self.transfer.packets.paths[path].space().received.largest() < Some(number);
                let moves = newest && !moving::probing(&packet.frames);
                self.transfer
                    .notice_address(path, *tuple, destination, moves, len);
            }
        }
        let (now, delay) = (
            self.transfer.packets.now,
            self.transfer.packets.ack_delay(level),
        );
        if level == Level::OneRtt || self.transfer.packets.handshake.reads(level) {
            self.transfer
                .packets
                .space(level, path)
                .received
                .on_packet(number, eliciting, ecn, now, delay);
        }
        if !self.transfer.packets.lifetime.established() {
            self.progress();
        }
    }

    /// A frame that few packets have, in a datagram between these addresses and of this length.
    #[inline(never)]
    fn on_seldom_frame(
        &mut self,
        level: Level,
        path: usize,
        packet: &Packet,
        frame: &Frame,
        (tuple, len): (Tuple, u32),
    ) {
        if !frame.allowed_in(&packet.header.kind) {
            let reason = "a frame that this kind of packet cannot have";
            return self.transfer.fail(
                TransportError::PROTOCOL_VIOLATION,
                frame.frame_type(),
                reason,
            );
        }
        let ids = self.path_management.ids();
        if let Some(fault) = refusal::fault(frame, &packet.header, &self.transfer.packets, ids) {
            return self.transfer.fail_for(fault, frame);
        }
        self.transfer.packets.paths[path]
            .traffic_mut()
            .note_frame(frame);
        if let Frame::PathChallenge(data) = frame {
            self.transfer.packets.paths[path]
                .reach_mut()
                .note_challenge(*data, tuple, len);
        }
        if !self.path_management.on_frame(&mut self.transfer, frame) {
            self.transfer.on_frame(level, path, frame);
        }
    }

    /// What the handshake has come to.
    fn progress(&mut self) {
        if !self.transfer.packets.parameters.peer_came()
            && let Some(bytes) = self.transfer.packets.handshake.session().peer_parameters()
        {
            let sender = if self.transfer.packets.identity.client() {
                Role::Server
            } else {
                Role::Client
            };
            match TransportParameters::parse(bytes, sender) {
                Ok(parameters) => {
                    let most = parameters.initial_max_path_id.unwrap_or(0);
                    self.path_management.ids_mut().begin_peer(most);
                    self.transfer.take_parameters(parameters);
                }
                Err(error) => {
                    return self.transfer.fail(
                        TransportError::TRANSPORT_PARAMETER_ERROR,
                        0,
                        error.reason,
                    );
                }
            }
        }
        if self.transfer.packets.handshake.complete()
            && !self.transfer.packets.lifetime.established()
            && !self.transfer.packets.lifetime.over()
        {
            self.transfer.on_established();
            self.path_management.begin(&mut self.transfer);
        }
    }
}

//! A packet under construction, and how it leaves as a datagram (RFC 9000 sections 12 and 14, RFC 9001 section 5.4.2).

use polypath_wire::quic::{Datagram, Frame, Header, Kind, Packet, TAG_LEN, VERSION, number_len};

use super::contents::Contents;
use super::crypto::Level;
use super::datagram_size::{LEAST_DATAGRAM, payload};
use super::loss::Sent;
use super::output::Transmit;
use super::packets::Packets;
use crate::{Purpose, Tuple};

/// Bytes that the payload of a packet has at least, number included, so that there is a sample for header protection (RFC 9001 section 5.4.2).
const SAMPLED: u32 = 4;

/// A packet in the making, where it is to stay: in the datagram that leaves.
pub(super) struct Draft {
    pub level: Level,
    pub path: usize,
    datagram: Datagram,
    /// Bytes of the frames.
    len: u32,
    /// Bytes that further frames may take.
    pub room: u32,
    pub carried: Contents,
    pub purpose: Purpose,
    eliciting: bool,
    padded: bool,
}

impl Draft {
    pub fn push(&mut self, frame: Frame) {
        let len = frame.len();
        self.push_measured(frame, len);
    }

    /// As [`Draft::push`], where the frame's length is known.
    #[inline]
    pub fn push_measured(&mut self, frame: Frame, len: u32) {
        debug_assert_eq!(len, frame.len());
        self.room -= len;
        self.len += len;
        self.eliciting |= frame.ack_eliciting();
        self.padded |= matches!(frame, Frame::Padding(_));
        self.datagram.packets[0].frames.push(frame);
    }

    fn packet(&self) -> &Packet {
        &self.datagram.packets[0]
    }

    pub fn header(&self) -> &Header {
        &self.packet().header
    }

    pub fn header_mut(&mut self) -> &mut Header {
        &mut self.datagram.packets[0].header
    }

    pub fn frames(&self) -> &[Frame] {
        &self.packet().frames
    }

    pub fn is_empty(&self) -> bool {
        self.frames().is_empty()
    }

    pub fn eliciting(&self) -> bool {
        self.eliciting
    }

    /// Bytes of the packet as it stands.
    #[inline]
    pub fn size(&self) -> u32 {
        self.header().len(self.len) + self.len + TAG_LEN
    }

    /// Pads a datagram of its own to the least length of all that can be sent on every path, as far as there is room.
    pub fn pad_datagram(&mut self) {
        self.pad(LEAST_DATAGRAM.saturating_sub(self.size()));
    }

    /// Pads to the least that a packet has.
    #[inline]
    pub fn pad_to_sample(&mut self) {
        let short = SAMPLED.saturating_sub(u32::from(self.header().number_len) + self.len);
        self.pad(short);
    }

    /// Pads the frames by so many bytes.
    pub fn pad(&mut self, bytes: u32) {
        let bytes = bytes.min(self.room);
        if bytes > 0 {
            self.push(Frame::Padding(bytes));
        }
    }
}

/// What frames may take of a packet of `limit` bytes.
fn room(limit: u32, header: u32, number_len: u8) -> Option<u32> {
    let room = limit.checked_sub(header + TAG_LEN)?;
    // Little may go to an address that is not validated, but no packet without a sample.
    (room + u32::from(number_len) >= SAMPLED).then_some(room)
}

impl Packets {
    /// A draft of a packet of at most `limit` bytes; nothing if there are no keys, no id, or too little room.
    pub(super) fn draft(&mut self, level: Level, path: usize, limit: u32) -> Option<Draft> {
        let member = &self.paths[path];
        let (space, kind) = match level {
            Level::Initial => (
                self.handshake.space_left(level)?,
                Kind::Initial {
                    token: self.identity.token(),
                },
            ),
            Level::Handshake => (self.handshake.space_left(level)?, Kind::Handshake),
            Level::OneRtt => return self.short_draft(path, limit),
        };
        let destination = *self.identity.remote().current_id(member.id())?;
        let number = space.sent.next();
        let number_len = number_len(number, space.sent.largest_acked());
        let header = Header {
            kind,
            version: VERSION,
            destination,
            source: self.identity.source(),
            number,
            number_len,
        };
        let room = room(limit, header.len(limit), number_len)?;
        Some(Draft {
            level,
            path,
            datagram: self.output.spares().datagram(header, member.id()),
            len: 0,
            room,
            carried: Contents::default(),
            purpose: Purpose::Control,
            eliciting: false,
            padded: false,
        })
    }

    /// A draft of a 1-RTT packet of at most `limit` bytes.
    #[inline(always)]
    pub(super) fn short_draft(&mut self, path: usize, limit: u32) -> Option<Draft> {
        let member = &self.paths[path];
        let sent = &member.space().sent;
        let destination = self.identity.remote().current_id(member.id())?;
        let number = sent.next();
        let number_len = number_len(number, sent.largest_acked());
        let header = 1 + destination.len() as u32 + u32::from(number_len);
        let room = room(limit, header, number_len)?;
        let datagram = self
            .output
            .spares()
            .short(*destination, number, number_len, member.id());
        debug_assert_eq!(header, datagram.packets[0].header.len(limit));
        Some(Draft {
            level: Level::OneRtt,
            path,
            datagram,
            len: 0,
            room,
            carried: Contents::default(),
            purpose: Purpose::Control,
            eliciting: false,
            padded: false,
        })
    }

    /// A draft of a 1-RTT packet, as long as the path takes and its address may be sent.
    #[inline(never)]
    pub(super) fn application_draft(&mut self, path: usize) -> Option<Draft> {
        let member = &self.paths[path];
        if member.closed() || !self.handshake.writes(Level::OneRtt) {
            return None;
        }
        let allowance = member
            .reach()
            .allowance(self.identity.client())
            .min(member.datagram().into()) as u32;
        self.short_draft(path, allowance)
    }

    /// Registers a packet of `size` bytes as sent; returns the datagram with it.
    #[inline(always)]
    fn register(&mut self, draft: Draft, size: u32) -> Datagram {
        let in_flight = draft.eliciting || draft.padded;
        let (now, path) = (self.now, draft.path);
        let number = draft.header().number;
        let (member, mut shown) = self.paths.pair_mut(path);
        if in_flight && draft.level == Level::OneRtt {
            let alone = member.space().sent.in_flight() == 0;
            if alone {
                member.restart(&mut shown, now, self.parameters.peer_delay());
            }
            let in_flight = shown.in_flight + 1;
            member
                .window_mut()
                .measure_sent(number, now, alone, in_flight);
        }
        let sent = Sent {
            number,
            at: now,
            size,
            eliciting: draft.eliciting,
            in_flight,
            ecn: member.ecn(),
            carried: draft.carried,
        };
        match draft.level {
            Level::OneRtt => member.space_mut().sent.on_sent(sent),
            level => self.space(level, path).sent.on_sent(sent),
        }
        if draft.eliciting {
            self.handshake.wait_from(now);
            self.lifetime.stir(now);
        }
        if in_flight {
            let (member, mut shown) = self.paths.pair_mut(path);
            member.window_mut().on_sent(&mut shown, now, payload(size));
            debug_assert_eq!(self.paths.shown(path).in_flight, self.in_flight(path));
        }
        draft.datagram
    }

    /// Drops a draft; nothing of it was sent.
    pub(super) fn discard_draft(&mut self, draft: Draft) {
        self.output.spares().put(draft.datagram);
    }

    /// Sends a draft as a datagram of its own.
    pub(super) fn send(&mut self, draft: Draft) {
        self.send_alone(draft, None);
    }

    /// Sends a draft that has become no data packet, if it acknowledges anything: what it told counts as told.
    pub(super) fn send_rest(&mut self, draft: Draft) {
        if draft.is_empty() {
            self.discard_draft(draft);
        } else {
            self.send(draft);
        }
    }

    /// As [`Packets::send`]; `elsewhere`: to other addresses than those of the path.
    pub(super) fn send_alone(&mut self, mut draft: Draft, elsewhere: Option<Tuple>) {
        draft.pad_to_sample();
        let (path, purpose) = (draft.path, draft.purpose);
        let size = draft.size();
        let datagram = self.register(draft, size);
        self.transmit(path, elsewhere, datagram, size, purpose);
    }

    /// Sends drafts of one path as one datagram (RFC 9000 section 12.2).
    pub(super) fn send_coalesced(&mut self, drafts: Vec<Draft>) {
        let mut whole: Option<(usize, Datagram)> = None;
        let mut len = 0;
        for draft in drafts {
            let (path, size) = (draft.path, draft.size());
            len += size;
            let mut datagram = self.register(draft, size);
            match &mut whole {
                Some((_, whole)) => whole.packets.append(&mut datagram.packets),
                None => whole = Some((path, datagram)),
            }
        }
        if let Some((path, datagram)) = whole {
            self.transmit(path, None, datagram, len, Purpose::Control);
        }
    }

    /// `elsewhere`: where it goes if not between the addresses of its path.
    #[inline(always)]
    fn transmit(
        &mut self,
        path: usize,
        elsewhere: Option<Tuple>,
        datagram: Datagram,
        len: u32,
        purpose: Purpose,
    ) {
        debug_assert_eq!(len, datagram.len());
        let member = &mut self.paths[path];
        if elsewhere.is_none() {
            member.reach_mut().on_sent(len);
        } else {
            member.route_mut().stray();
        }
        let (ecn, steady) = (member.codepoint(), member.route().steady());
        self.output.transmit(Transmit {
            path,
            tuple: elsewhere.unwrap_or(member.tuple()),
            datagram,
            len,
            purpose,
            ecn,
            steady,
        });
    }
}

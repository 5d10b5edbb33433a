//! The cryptographic handshake: TLS messages in CRYPTO frames, by encryption level (RFC 9001 section 4, RFC 9000 section 7).

use std::collections::VecDeque;

use polypath_wire::quic::Frame;

use super::control::Control;
use super::crypto::{Level, Session, TlsError};
use super::path::Space;
use crate::ranges::RangeSet;
use crate::{NEVER, Nanos};

/// Bytes of messages out of order that are kept (RFC 9000 section 7.5 asks for 4096 at least).
const MOST_AHEAD: u64 = 65_536;

/// Bytes of TLS after the handshake that go in one frame: it has to have room beside an acknowledgement.
const TICKET_PIECE: u32 = 512;

/// One direction's bytes of a level on their way out.
#[derive(Debug, Default)]
struct Out {
    bytes: Vec<u8>,
    sent: u64,
    again: VecDeque<(u64, u64)>,
    acked: RangeSet,
}

/// And on their way in.
#[derive(Debug, Default)]
struct In {
    next: u64,
    bytes: Vec<u8>,
    /// What of `bytes`, which begins at `next`, has arrived.
    ranges: RangeSet,
}

/// What a handshake packet is refused for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HandshakeError {
    /// Too much out of order (CRYPTO_BUFFER_EXCEEDED).
    BufferExceeded,
    /// TLS refuses it (CRYPTO_ERROR).
    Tls(TlsError),
}

/// The handshake of one side.
pub(super) struct Handshake {
    session: Session,
    outs: [Out; 3],
    ins: [In; 3],
    /// Number spaces of the first two levels, until their keys are discarded.
    spaces: [Option<Space>; 2],
    /// Both sides are known to have finished.
    confirmed: bool,
    /// From when a client waits whose server may be held back.
    waits_from: Nanos,
    /// A level at which a PING is to be sent.
    probe: Option<Level>,
}

impl Handshake {
    pub fn new(session: Session, now: Nanos) -> Self {
        let mut handshake = Self {
            session,
            outs: Default::default(),
            ins: Default::default(),
            spaces: [Some(Space::default()), Some(Space::default())],
            confirmed: false,
            waits_from: now,
            probe: None,
        };
        handshake.drain();
        handshake
    }

    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The number space of a level before the application's.
    ///
    /// # Panics
    /// It was discarded.
    #[cold]
    pub fn space(&mut self, level: Level) -> &mut Space {
        self.spaces[level as usize]
            .as_mut()
            .expect("asked only for levels whose keys are there")
    }

    /// The same of a level whose space may be gone.
    pub fn space_left(&mut self, level: Level) -> Option<&mut Space> {
        self.spaces[level as usize].as_mut()
    }

    /// The spaces that are left.
    pub fn spaces(&self) -> impl Iterator<Item = &Space> {
        self.spaces.iter().flatten()
    }

    /// Keys of a level are discarded, and with them what was in flight (RFC 9001 section 4.9). False: they were before.
    pub fn discard(&mut self, level: Level) -> bool {
        self.spaces[level as usize].take().is_some()
    }

    /// The keys of a level were there.
    pub fn discarded(&self, level: Level) -> bool {
        let space = self.spaces.get(level as usize);
        space.is_some_and(Option::is_none)
    }

    /// Both sides are known to have finished (RFC 9001 section 4.1.2).
    pub fn confirmed(&self) -> bool {
        self.confirmed
    }

    pub fn confirm(&mut self) {
        self.confirmed = true;
    }

    /// Packets in flight.
    pub fn in_flight(&self) -> u32 {
        self.spaces().map(|space| space.sent.in_flight()).sum()
    }

    /// When losses are looked for.
    pub fn loss_deadline(&self) -> Nanos {
        let deadlines = self.spaces().map(|space| space.sent.loss_deadline());
        deadlines.min().unwrap_or(NEVER)
    }

    /// When an acknowledgement leaves.
    pub fn ack_deadline(&self) -> Nanos {
        let deadlines = self.spaces().map(|space| space.received.deadline());
        deadlines.min().unwrap_or(NEVER)
    }

    /// When the next probe is due after a timeout, and at which level.
    pub fn probe_deadline(&self, timeout: Nanos) -> Option<(Nanos, Level)> {
        let due = |level: Level| {
            let sent = &self.spaces[level as usize].as_ref()?.sent;
            (sent.eliciting() > 0).then(|| (sent.last_eliciting_at() + timeout, level))
        };
        [Level::Initial, Level::Handshake]
            .into_iter()
            .filter_map(due)
            .min()
    }

    /// The same of a client that has nothing in flight: its server may be at its amplification limit (RFC 9002 section 6.2.2.1).
    pub fn lone_probe_deadline(&self, timeout: Nanos) -> (Nanos, Level) {
        let level = if self.writes(Level::Handshake) {
            Level::Handshake
        } else {
            Level::Initial
        };
        (self.waits_from + timeout, level)
    }

    /// An ack-eliciting packet leaves, or a probe was due.
    pub fn wait_from(&mut self, now: Nanos) {
        self.waits_from = now;
    }

    /// A PING is to be sent at this level.
    pub fn is_probed(&self, level: Level) -> bool {
        self.probe == Some(level)
    }

    pub fn settle_probe(&mut self) {
        self.probe = None;
    }

    /// A probe of a level is due: everything in flight at both goes again, since a server's flight is of both, and the peer can use neither part
    /// alone (RFC 9002 section 6.2.4); a PING where there is nothing.
    pub fn send_probe(&mut self, level: Level) {
        if !self.repeat(level) {
            self.probe = Some(level);
        }
        let other = match level {
            Level::Initial => Level::Handshake,
            _ => Level::Initial,
        };
        let space = self.spaces[other as usize].as_ref();
        if space.is_some_and(|space| space.sent.eliciting() > 0) {
            self.repeat(other);
        }
    }

    /// Keys of this level are there, in both directions (RFC 9001 section 5.7: a server reads 1-RTT packets only once it has finished).
    pub fn reads(&self, level: Level) -> bool {
        let has_space = self.spaces.get(level as usize).is_none_or(Option::is_some);
        let finished = level != Level::OneRtt || self.complete();
        level <= self.session.level() && has_space && finished
    }

    pub fn writes(&self, level: Level) -> bool {
        let has_space = self.spaces.get(level as usize).is_none_or(Option::is_some);
        level <= self.session.level() && has_space
    }

    /// The spaces of the handshake are discarded: what is left is the application level (RFC 9001 section 4.9).
    pub fn over(&self) -> bool {
        self.spaces.iter().all(Option::is_none)
    }

    /// The peer knows that it is over, too, and no key of it is left.
    pub fn settled(&self) -> bool {
        self.confirmed && self.over()
    }

    /// TLS has finished on this side.
    pub fn complete(&self) -> bool {
        !self.session.is_handshaking()
    }

    fn drain(&mut self) {
        while let Some((level, bytes)) = self.session.write() {
            self.outs[level as usize].bytes.extend(bytes);
        }
    }

    /// Takes a CRYPTO frame.
    ///
    /// # Errors
    /// What the connection is closed with.
    pub fn on_crypto(
        &mut self,
        level: Level,
        offset: u64,
        data: &[u8],
    ) -> Result<(), HandshakeError> {
        let into = &mut self.ins[level as usize];
        let end = offset + data.len() as u64;
        if end <= into.next {
            return Ok(());
        }
        if end - into.next > MOST_AHEAD {
            return Err(HandshakeError::BufferExceeded);
        }
        let skip = into.next.saturating_sub(offset);
        let start = (offset + skip - into.next) as usize;
        let fresh = &data[skip as usize..];
        if into.bytes.len() < start + fresh.len() {
            into.bytes.resize(start + fresh.len(), 0);
        }
        into.bytes[start..start + fresh.len()].copy_from_slice(fresh);
        into.ranges.insert(offset + skip, end, |_, _| {});
        let reached = into.ranges.take_up_to(into.next);
        if reached > into.next {
            let ready: Vec<u8> = into.bytes.drain(..(reached - into.next) as usize).collect();
            into.next = reached;
            self.session
                .read(level, &ready)
                .map_err(HandshakeError::Tls)?;
            self.drain();
        }
        Ok(())
    }

    /// Everything of the first level is to be sent once more.
    pub fn begin_again(&mut self) {
        let out = &mut self.outs[Level::Initial as usize];
        out.sent = 0;
        out.again.clear();
        out.acked = RangeSet::default();
    }

    /// Whether messages of a level wait to be sent.
    pub fn has_crypto(&self, level: Level) -> bool {
        let out = &self.outs[level as usize];
        !out.again.is_empty() || (out.sent as usize) < out.bytes.len()
    }

    /// The next bytes of a level, `room` at most, with their offset.
    pub fn take_crypto(&mut self, level: Level, room: u32) -> Option<(u64, Vec<u8>)> {
        let out = &mut self.outs[level as usize];
        let room = u64::from(room);
        if room == 0 {
            return None;
        }
        let (start, end) = match out.again.pop_front() {
            Some((start, end)) => {
                let cut = end.min(start + room);
                if cut < end {
                    out.again.push_front((cut, end));
                }
                (start, cut)
            }
            None => {
                let end = (out.bytes.len() as u64).min(out.sent + room);
                let start = std::mem::replace(&mut out.sent, end);
                (start, end)
            }
        };
        let bytes = &out.bytes[start as usize..end as usize];
        (!bytes.is_empty()).then(|| (start, bytes.to_vec()))
    }

    /// What TLS says after the handshake goes like other frames of the application level (RFC 9001 section 4.1.3).
    pub fn offer_tickets(&mut self, control: &mut Control) {
        while let Some((offset, data)) = self.take_crypto(Level::OneRtt, TICKET_PIECE) {
            control.push(Frame::Crypto { offset, data });
        }
    }

    pub fn on_acked(&mut self, level: Level, start: u64, end: u64) {
        self.outs[level as usize]
            .acked
            .insert(start, end, |_, _| {});
    }

    /// What lies between two offsets is to be sent again, as far as it has not arrived.
    pub fn on_lost(&mut self, level: Level, start: u64, end: u64) {
        let out = &mut self.outs[level as usize];
        if !out.acked.covers(start, end) && !out.again.contains(&(start, end)) {
            out.again.push_back((start, end));
        }
    }

    /// Everything of a level that was sent and has not arrived goes again, as a probe.
    fn repeat(&mut self, level: Level) -> bool {
        let sent = self.outs[level as usize].sent;
        let missing = sent > 0 && !self.outs[level as usize].acked.covers(0, sent);
        if missing && self.outs[level as usize].again.is_empty() {
            let from = match self.outs[level as usize].acked.iter().next() {
                Some((0, end)) => end,
                _ => 0,
            };
            self.on_lost(level, from, sent);
        }
        missing
    }
}

//! The cryptographic handshake: TLS messages in CRYPTO frames, by encryption level (RFC 9001 section 4, RFC 9000 section 7).

use std::collections::VecDeque;

use super::crypto::{Level, Session, TlsError};
use super::path::Space;
use crate::ranges::RangeSet;

/// Bytes of messages out of order that are kept (RFC 9000 section 7.5 asks for 4096 at least).
const MOST_AHEAD: u64 = 65_536;

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
    pub spaces: [Option<Space>; 2],
    /// Both sides are known to have finished (RFC 9001 section 4.1.2).
    pub confirmed: bool,
}

impl Handshake {
    pub fn new(session: Session) -> Self {
        let mut handshake = Self {
            session,
            outs: Default::default(),
            ins: Default::default(),
            spaces: [Some(Space::default()), Some(Space::default())],
            confirmed: false,
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
    pub fn repeat(&mut self, level: Level) -> bool {
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

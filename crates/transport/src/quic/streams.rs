//! The streams of a connection: which exist, how far each end admits them, and their waiting data (RFC 9000 sections 2
//! to 4).

use polypath_wire::quic::{Frame, TransportError, TransportParameters};
use smallvec::SmallVec;

use super::control::Control;
use super::incoming::{Incoming, Violation};
use super::outgoing::Outgoing;
use super::parameters::Parameters;
use crate::stream::{Blocked, Blocking};
use crate::{Nanos, Purpose};

/// Streams of each kind that the peer may open at first (as quinn does).
pub(super) const STREAMS: u64 = 100;

/// Which part of a stream a frame is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Sending,
    Receiving,
}

/// What a connection is closed with for a frame of the peer's.
pub(super) type Fault = (TransportError, &'static str);

/// Both halves of all streams. Pairs are of bidirectional streams and of those of one direction.
pub struct Streams {
    client: bool,
    outgoing: Outgoing,
    incoming: Incoming,
    /// Streams that this side opened and may open.
    opened: [u64; 2],
    admitted: [u64; 2],
    /// Streams that the peer opened, may open, and that are over.
    accepted: [u64; 2],
    offered: [u64; 2],
    over: [u64; 2],
    /// The one that the plain calls of a byte stream write to.
    own: Option<u64>,
    closed: bool,
    /// Some stream was read to its end.
    one_ended: bool,
    /// What data waited for that arrived, and how the packet at hand was sent, as far as the connection's owner can tell.
    blocking: Blocking,
    arriving: Purpose,
}

/// Index of a stream's kind in pairs.
fn kind(stream: u64) -> usize {
    (stream >> 1 & 1) as usize
}

impl Streams {
    /// `window`: bytes that may be left unread.
    pub(super) fn new(client: bool, window: u64) -> Self {
        Self {
            client,
            outgoing: Outgoing::default(),
            incoming: Incoming::new(window, window),
            opened: [0; 2],
            admitted: [0; 2],
            accepted: [0; 2],
            offered: [STREAMS; 2],
            over: [0; 2],
            own: None,
            closed: false,
            one_ended: false,
            blocking: Blocking::default(),
            arriving: Purpose::Data,
        }
    }

    pub(super) fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    pub(super) fn outgoing_mut(&mut self) -> &mut Outgoing {
        &mut self.outgoing
    }

    pub(super) fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    fn by_peer(&self, stream: u64) -> bool {
        (stream & 1 == 0) != self.client
    }

    /// The peer's parameters say what it admits at first.
    pub(super) fn begin_peer(&mut self, peer: &TransportParameters) {
        self.outgoing.raise_max(peer.initial_max_data);
        self.admitted = [peer.initial_max_streams_bidi, peer.initial_max_streams_uni];
    }

    /// The peer admits more streams of a kind (MAX_STREAMS).
    pub(super) fn raise_admitted(&mut self, bidirectional: bool, max: u64) {
        let admitted = &mut self.admitted[usize::from(!bidirectional)];
        *admitted = (*admitted).max(max);
    }

    /// Opens a stream, if the peer admits another one.
    pub(super) fn open(
        &mut self,
        bidirectional: bool,
        parameters: &Parameters,
        control: &mut Control,
    ) -> Option<u64> {
        let kind = usize::from(!bidirectional);
        let (count, limit) = (self.opened[kind], self.admitted[kind]);
        if count >= limit {
            if parameters.peer_came() {
                control.push(Frame::StreamsBlocked {
                    bidirectional,
                    limit,
                });
            }
            return None;
        }
        self.opened[kind] += 1;
        let id = count << 2 | u64::from(!bidirectional) << 1 | u64::from(!self.client);
        let peer = parameters.peer();
        let max = if bidirectional {
            peer.initial_max_stream_data_bidi_remote
        } else {
            peer.initial_max_stream_data_uni
        };
        self.outgoing.open(id, max);
        if bidirectional {
            self.incoming.open(id);
        }
        Some(id)
    }

    /// The stream of the plain calls, if it is open.
    pub(super) fn own(&self) -> Option<u64> {
        self.own
    }

    /// The stream of the plain calls: the client's first, on which the server answers; a server that begins opens one of its own.
    pub(super) fn open_own(
        &mut self,
        parameters: &Parameters,
        control: &mut Control,
    ) -> Option<u64> {
        if self.own.is_none() {
            self.own = if !self.client && self.outgoing.is_open(0) {
                Some(0)
            } else {
                self.open(true, parameters, control)
            };
        }
        self.own
    }

    /// Whether a stream of both directions has begun: most frames are about one.
    #[inline(always)]
    pub(super) fn has_begun(&self, stream: u64) -> bool {
        let begun = match self.by_peer(stream) {
            true => self.accepted[0],
            false => self.opened[0],
        };
        stream & 2 == 0 && stream >> 2 < begun
    }

    /// Whether a frame may be about a part of this stream; one that the peer begins is made, with those of its kind before it (RFC 9000 sections 2.1,
    /// 3 and 19.8).
    ///
    /// # Errors
    /// What the connection is closed with.
    pub(super) fn admit(
        &mut self,
        stream: u64,
        part: Part,
        peer: &TransportParameters,
    ) -> Result<(), Fault> {
        let bidirectional = stream & 2 == 0;
        let (kind, count, by_peer) = (kind(stream), stream >> 2, self.by_peer(stream));
        let one_way = !bidirectional && (part == Part::Receiving) != by_peer;
        if one_way || (!by_peer && count >= self.opened[kind]) {
            let reason = "a stream that cannot be meant";
            return Err((TransportError::STREAM_STATE_ERROR, reason));
        }
        if !by_peer {
            return Ok(());
        }
        if count >= self.offered[kind] {
            let reason = "more streams than were admitted";
            return Err((TransportError::STREAM_LIMIT_ERROR, reason));
        }
        while self.accepted[kind] <= count {
            let id = self.accepted[kind] << 2 | (kind as u64) << 1 | u64::from(self.client);
            self.accepted[kind] += 1;
            self.incoming.open(id);
            if bidirectional {
                self.outgoing
                    .open(id, peer.initial_max_stream_data_bidi_local);
                if self.closed {
                    self.outgoing.finish(id);
                }
            }
        }
        Ok(())
    }

    /// Takes a STREAM frame that came on `path`.
    ///
    /// # Errors
    /// The frame breaks a rule.
    #[inline(always)]
    pub(super) fn on_data(
        &mut self,
        stream: u64,
        offset: u64,
        len: u32,
        fin: bool,
        (path, now): (usize, Nanos),
    ) -> Result<(), Violation> {
        self.incoming.on_data(stream, offset, len.into(), fin)?;
        if self.incoming.has_news() {
            self.note_waiting(path, now);
        }
        Ok(())
    }

    /// Takes a RESET_STREAM frame that came on `path`.
    ///
    /// # Errors
    /// As [`Streams::on_data`].
    pub(super) fn on_reset(
        &mut self,
        stream: u64,
        error: u64,
        final_size: u64,
        (path, now): (usize, Nanos),
    ) -> Result<(), Violation> {
        self.incoming.on_reset(stream, error, final_size)?;
        self.note_waiting(path, now);
        Ok(())
    }

    /// More data waits for what comes before it in its stream, or that came on `path`.
    #[cold]
    fn note_waiting(&mut self, path: usize, now: Nanos) {
        let Some((filled, left)) = self.incoming.take_waiting() else {
            return;
        };
        if filled {
            let cause = self.arriving.into();
            self.blocking.connection_advances(path, left, cause, now);
        } else {
            self.blocking.connection_holds(left, now);
        }
    }

    /// How the datagrams were sent that come next.
    pub(super) fn expect(&mut self, purpose: Purpose) {
        self.arriving = purpose;
    }

    /// How long data that arrived waited up to `now` for what comes before it in its stream, and what for. Where several streams wait at once, that
    /// counts once, and for the hole that is filled first.
    pub fn blocked(&self, now: Nanos) -> Vec<Blocked> {
        self.blocking.report(now)
    }

    /// The connection ended: nothing more is waited for.
    pub(super) fn end(&mut self, now: Nanos) {
        self.blocking.end(now);
    }

    /// The application reads up to `bytes` of a stream, which is forgotten at its end.
    pub(super) fn read(&mut self, stream: u64, bytes: u64) -> u64 {
        let taken = self.incoming.read(stream, bytes);
        if self.incoming.at_end(stream) {
            self.incoming.close(stream);
            if self.by_peer(stream) {
                self.over[kind(stream)] += 1;
            }
            self.one_ended = true;
        }
        taken
    }

    /// Tells the peer of limits that reading moved.
    pub(super) fn tell_limits(&mut self, control: &mut Control) {
        if let Some(max) = self.incoming.take_max() {
            control.push(Frame::MaxData(max));
        }
        self.incoming.take_stream_max(|stream, max| {
            control.push(Frame::MaxStreamData { stream, max });
        });
        for kind in 0..2 {
            let limit = self.over[kind] + STREAMS;
            if limit >= self.offered[kind] + STREAMS / 8 {
                self.offered[kind] = limit;
                control.push(Frame::MaxStreams {
                    bidirectional: kind == 0,
                    max: limit,
                });
            }
        }
    }

    /// Tells the peer of its limits that hold data back, once each.
    pub(super) fn tell_blocked(&mut self, control: &mut Control) {
        let (connection, streams) = self.outgoing.take_blocked();
        if let Some(limit) = connection {
            control.push(Frame::DataBlocked(limit));
        }
        for (stream, limit) in streams {
            control.push(Frame::StreamDataBlocked { stream, limit });
        }
    }

    /// Whether a stream's end was reached and everything was read.
    pub(super) fn was_read(&self, stream: u64) -> bool {
        let begun = if self.by_peer(stream) {
            self.accepted
        } else {
            self.opened
        };
        stream >> 2 < begun[kind(stream)] && !self.incoming.is_open(stream)
    }

    /// The peer ended a stream, everything was read, and no other is open.
    pub(super) fn at_end(&self) -> bool {
        self.one_ended && self.incoming.is_empty()
    }

    /// Nothing follows on any stream, of those that the peer begins either.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.outgoing.finish_all();
    }

    /// The application has said that nothing follows.
    pub(super) fn closed(&self) -> bool {
        self.closed
    }

    /// Both sides said everything.
    pub(super) fn done(&self) -> bool {
        self.closed && self.at_end() && self.outgoing.idle()
    }

    /// Bytes that wait for others before them in their stream.
    pub fn reassembly_bytes(&self) -> u64 {
        self.incoming.reassembly_bytes()
    }

    /// In-order bytes of all streams that wait to be read.
    pub fn available(&self) -> u64 {
        let readable = self.incoming.readable();
        readable.map(|id| self.incoming.available(id)).sum()
    }

    /// The streams with something to read, or at their end.
    pub fn readable(&self) -> SmallVec<[u64; 4]> {
        self.incoming.readable().collect()
    }

    /// The error with which the peer gave up a stream, as long as that is readable.
    pub fn reset_by_peer(&self, stream: u64) -> Option<u64> {
        self.incoming.reset(stream)
    }
}

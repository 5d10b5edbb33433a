//! A session is one application's two ends. Each end sees only its own connection: bytes written at
//! one end tell the other nothing until they are read there.

use polypath_transport::Nanos;

use super::frames::Frames;
use super::load::Loaded;
use super::video::Chunk;
use crate::carrier::Carrier;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    /// Who sends, given whether the server does.
    pub fn sending(reverse: bool) -> Self {
        if reverse { Self::Server } else { Self::Client }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// A request and, once it came, the delay of its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub sent_at: Nanos,
    pub delay: Option<Nanos>,
}

/// Shows what endpoints write to whoever looks at packets.
pub(crate) trait Show {
    /// Shows these bytes of what an endpoint writes, if there are any.
    fn show(&mut self, endpoint: usize, offset: u64, text: &[u8]);
}

/// What an end of a session works with.
pub(crate) struct Io<'a> {
    pub now: Nanos,
    pub side: Side,
    pub connection: &'a mut Carrier,
    /// Bytes written so far.
    pub written: &'a mut u64,
    /// Who shows what is written, and the number of the endpoint that writes.
    pub captures: &'a mut dyn Show,
    pub endpoint: usize,
    /// In-order bytes that just arrived; they are read.
    pub arrived: u64,
    /// The same of QUIC, if any.
    pub frames: Option<&'a mut Frames>,
    /// Set to be called again at this time.
    pub wake: &'a mut Nanos,
    pub requests: &'a mut Vec<Request>,
    /// Bytes that it has room for, if it does not read all at once.
    pub holds: &'a mut u64,
    /// The peer admitted no further stream: it is called at each packet until one does.
    pub wants_stream: &'a mut bool,
    /// Ends of applications that are to be called now.
    pub roused: &'a mut Vec<(usize, Side)>,
}

impl Io<'_> {
    /// Whether it is time, given that the session asked to be woken then.
    pub fn due(&self, at: Nanos) -> bool {
        at <= self.now
    }

    /// Bytes that just arrived on a stream, by its place among those that brought any.
    pub fn arrival(&self, index: usize) -> Option<(u64, u64)> {
        self.frames.as_ref()?.streams.get(index).copied()
    }

    pub fn write(&mut self, bytes: u64) {
        *self.written = self.written.saturating_add(bytes);
        self.connection.write(bytes, self.now);
    }

    /// Writes a message over TCP that begins with this head.
    pub fn write_message(&mut self, head: &str, body: u64) {
        self.captures
            .show(self.endpoint, *self.written, head.as_bytes());
        self.write(head.len() as u64 + body);
    }

    pub fn close(&mut self) {
        self.connection.close(self.now);
    }

    pub fn abort(&mut self) {
        self.connection.abort(self.now);
    }

    /// Another bidirectional stream of QUIC, if the peer admits one.
    pub fn open(&mut self) -> Option<u64> {
        let stream = self.connection.quic_mut()?.open(true);
        // MAX_STREAMS may come in a packet without data (RFC 9000 section 4.6).
        *self.wants_stream = stream.is_none();
        stream
    }

    /// Serves a stream before those of lower priority; each has 0 to begin with.
    pub fn set_priority(&mut self, stream: u64, priority: i32) {
        if let Some(connection) = self.connection.quic_mut() {
            connection.set_priority(stream, priority);
        }
    }

    pub fn write_to(&mut self, stream: u64, bytes: u64) {
        if let Some(connection) = self.connection.quic_mut() {
            connection.write_to(stream, bytes, self.now);
        }
    }

    /// Writes the last bytes of a stream.
    pub fn write_last(&mut self, stream: u64, bytes: u64) {
        if let Some(connection) = self.connection.quic_mut() {
            connection.write_last(stream, bytes, self.now);
        }
    }

    /// Sends bytes in a DATAGRAM frame. False: no packet has room for it.
    pub fn send_datagram(&mut self, bytes: u64) -> bool {
        let (len, now) = (u32::try_from(bytes).unwrap_or(u32::MAX), self.now);
        self.connection
            .quic_mut()
            .is_some_and(|connection| connection.send_datagram(len, now))
    }

    pub fn finish(&mut self, stream: u64) {
        if let Some(connection) = self.connection.quic_mut() {
            connection.finish(stream, self.now);
        }
    }

    pub fn stream_at_end(&self, stream: u64) -> bool {
        let connection = self.connection.quic();
        connection.is_some_and(|connection| connection.stream_at_end(stream))
    }
}

/// Both ends of an application over a connection.
pub(crate) trait Session: Send {
    /// Called when the end's connection is established, when bytes arrived, and when the time it asked for has come.
    fn run(&mut self, io: &mut Io);

    /// How much an end reads at once, if not all that there is; it is then called at each change of its connection.
    fn holds(&self, _side: Side) -> Option<u64> {
        None
    }

    /// Segments of a video that were asked for.
    fn chunks(&self) -> Vec<Chunk> {
        Vec::new()
    }

    /// Objects of a page that were asked for.
    fn loaded(&self) -> Vec<Loaded> {
        Vec::new()
    }
}

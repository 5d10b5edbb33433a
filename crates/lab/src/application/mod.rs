//! What applications do: one file a kind.
//!
//! A session is one application's two ends. Each end sees only its own connection: bytes written at
//! one end tell the other nothing until they are read there.

mod bulk;
mod datagrams;
mod fetch;
mod hq;
mod http;
mod messages;
mod page;
mod ping_pong;
mod request_response;
mod stream;
mod tls;
mod video;

use polypath_transport::Nanos;

use serde_json::{Value, json};

use crate::capture::Captures;
use crate::carrier::Carrier;
use crate::plan::Work;

pub(crate) use datagrams::Datagrams;
pub(crate) use page::{Loaded, Pages};
pub(crate) use video::Chunk;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
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

/// What an end of a session works with.
pub(crate) struct Io<'a> {
    pub now: Nanos,
    pub side: Side,
    pub connection: &'a mut Carrier,
    /// Bytes written so far.
    pub written: &'a mut u64,
    /// Who shows what is written, and the number of the endpoint that writes.
    pub captures: &'a mut Captures,
    pub endpoint: usize,
    /// In-order bytes that just arrived; they are read.
    pub arrived: u64,
    /// The same of QUIC, if any.
    pub frames: Option<&'a mut Frames>,
    /// Set to be called again at this time.
    pub wake: &'a mut Nanos,
    pub requests: &'a mut Vec<Request>,
    /// To be raised by the applications whose clients are to be called now.
    pub roused: &'a mut Vec<usize>,
}

/// What a connection of QUIC brought.
#[derive(Default)]
pub(crate) struct Frames {
    /// Bytes by stream; a stream at its end is here with nothing.
    pub streams: Vec<(u64, u64)>,
    /// DATAGRAM frames: the sender's numbers and lengths.
    pub datagrams: Vec<(u64, u32)>,
    /// To be raised by the bytes of datagrams that the application takes.
    pub taken: u64,
}

impl Frames {
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.datagrams.is_empty()
    }
}

impl Io<'_> {
    /// Whether it is time, given that the session asked to be woken then.
    fn due(&self, at: Nanos) -> bool {
        at <= self.now
    }

    /// Bytes that just arrived on a stream, by its place among those that brought any.
    fn arrival(&self, index: usize) -> Option<(u64, u64)> {
        self.frames.as_ref()?.streams.get(index).copied()
    }

    fn write(&mut self, bytes: u64) {
        *self.written = self.written.saturating_add(bytes);
        self.connection.write(bytes, self.now);
    }

    /// Writes a message over TCP that begins with this head.
    fn write_message(&mut self, head: &str, body: u64) {
        self.captures
            .show(self.endpoint, *self.written, head.as_bytes());
        self.write(head.len() as u64 + body);
    }

    fn close(&mut self) {
        self.connection.close(self.now);
    }

    /// Another bidirectional stream of QUIC, if the peer admits one.
    fn open(&mut self) -> Option<u64> {
        self.connection.quic_mut()?.open(true)
    }

    /// Serves a stream before those of lower priority; each has 0 to begin with.
    fn set_priority(&mut self, stream: u64, priority: i32) {
        if let Some(connection) = self.connection.quic_mut() {
            connection.set_priority(stream, priority);
        }
    }

    fn write_to(&mut self, stream: u64, bytes: u64) {
        if let Some(connection) = self.connection.quic_mut() {
            connection.write_to(stream, bytes, self.now);
        }
    }

    /// Writes the last bytes of a stream.
    fn write_last(&mut self, stream: u64, bytes: u64) {
        if let Some(connection) = self.connection.quic_mut() {
            connection.write_last(stream, bytes, self.now);
        }
    }

    /// Sends bytes in a DATAGRAM frame. False: no packet has room for it.
    fn send_datagram(&mut self, bytes: u64) -> bool {
        let (len, now) = (u32::try_from(bytes).unwrap_or(u32::MAX), self.now);
        self.connection
            .quic_mut()
            .is_some_and(|connection| connection.send_datagram(len, now))
    }

    fn finish(&mut self, stream: u64) {
        if let Some(connection) = self.connection.quic_mut() {
            connection.finish(stream, self.now);
        }
    }

    fn stream_at_end(&self, stream: u64) -> bool {
        let connection = self.connection.quic();
        connection.is_some_and(|connection| connection.stream_at_end(stream))
    }
}

/// Both ends of an application over a connection.
pub(crate) trait Session: Send {
    /// Called when the end's connection is established, when bytes arrived, and when the time it asked for has come.
    fn run(&mut self, io: &mut Io);

    /// Segments of a video that were asked for.
    fn chunks(&self) -> &[Chunk] {
        &[]
    }

    /// Objects of a page that were asked for.
    fn loaded(&self) -> Vec<Loaded> {
        Vec::new()
    }
}

/// The session of an application over a connection, by its number; nothing for those that send datagrams.
pub(crate) fn session(
    work: &Work,
    number: usize,
    quic: bool,
    start: Nanos,
    pages: &mut Pages,
) -> Option<Box<dyn Session>> {
    Some(match *work {
        Work::Bulk {
            duration_ns,
            size_bytes,
            reverse,
            reverse_bytes,
        } => Box::new(bulk::Bulk::new(
            start,
            duration_ns,
            size_bytes,
            reverse_bytes,
            reverse,
        )),
        Work::Stream {
            rate_bps,
            block_bytes,
            duration_ns,
            reverse,
        } => Box::new(stream::Stream::new(
            start,
            rate_bps,
            block_bytes,
            duration_ns,
            reverse,
        )),
        Work::RequestResponse {
            count,
            interval_ns,
            request_bytes,
            response_bytes,
            think_ns,
        } => Box::new(request_response::RequestResponse::new(
            count,
            interval_ns,
            request_bytes,
            response_bytes,
            think_ns,
        )),
        Work::Fetch {
            size_bytes,
            count,
            parallel,
            streams,
            ..
        } if quic => Box::new(hq::Hq::new(size_bytes, count, parallel, streams)),
        Work::Fetch {
            size_bytes,
            count,
            tls,
            ..
        } => Box::new(fetch::Fetch::new(size_bytes, count, tls)),
        Work::PingPong {
            bytes,
            count,
            duration_ns,
        } => Box::new(ping_pong::PingPong::new(start, bytes, count, duration_ns)),
        Work::Messages {
            bytes,
            interval_ns,
            duration_ns,
            delivery,
            reverse,
        } => Box::new(messages::Messages::new(
            start,
            bytes,
            interval_ns,
            duration_ns,
            delivery,
            reverse,
        )),
        Work::Page(ref page) => Box::new(page::Browser::new(page, number, quic, pages)),
        Work::Video(ref video) => Box::new(video::Streaming::new(video)),
        Work::Ping { .. } | Work::Cbr { .. } | Work::OnOff { .. } => return None,
    })
}

/// The kinds for front ends; their fields are those of [`Work`].
pub(crate) fn describe() -> Value {
    let entry = |name: &str, description: &str, source: &str| json!({ "name": name, "description": description, "source": source, "parameters": [] });
    Value::Array(vec![
        entry(bulk::NAME, bulk::DESCRIPTION, bulk::SOURCE),
        entry(stream::NAME, stream::DESCRIPTION, stream::SOURCE),
        entry(
            request_response::NAME,
            request_response::DESCRIPTION,
            request_response::SOURCE,
        ),
        entry(fetch::NAME, fetch::DESCRIPTION, fetch::SOURCE),
        entry(ping_pong::NAME, ping_pong::DESCRIPTION, ping_pong::SOURCE),
        entry(messages::NAME, messages::DESCRIPTION, messages::SOURCE),
        entry(video::NAME, video::DESCRIPTION, video::SOURCE),
        entry(page::NAME, page::DESCRIPTION, page::SOURCE),
        entry(
            "ping",
            "Echo requests (ICMP) at an interval",
            "RFC 792, RFC 4443 section 4",
        ),
        entry("cbr", "UDP datagrams at a constant rate", "iperf -u"),
        entry(
            "on-off",
            "UDP datagrams in exponentially distributed bursts",
            "ns-2 Application/Traffic/Exponential",
        ),
    ])
}

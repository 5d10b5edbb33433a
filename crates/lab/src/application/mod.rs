//! What applications do: one file a kind, which says its settings.
//!
//! A new kind is a file here, and in this one a variant of [`Work`], a line in [`Work::kind`] and one in [`ENTRIES`].
//!
//! A session is one application's two ends. Each end sees only its own connection: bytes written at
//! one end tell the other nothing until they are read there.

mod bulk;
mod cbr;
mod datagrams;
mod fetch;
mod hq;
mod http;
mod messages;
mod on_off;
mod page;
mod ping;
mod ping_pong;
mod request_response;
mod stream;
mod tls;
mod video;

use polypath_settings::Model;
use polypath_transport::Nanos;
use serde::{Deserialize, Serialize};

use crate::capture::Captures;
use crate::carrier::Carrier;
use crate::plan::{Page, Transport, Video};

pub use bulk::BulkConfig;
pub use cbr::CbrConfig;
pub(crate) use datagrams::Datagrams;
pub use fetch::{FetchConfig, Streams, Tls};
pub use messages::{Delivery, MessagesConfig};
pub use on_off::OnOffConfig;
pub(crate) use page::{Loaded, Pages};
pub use ping::PingConfig;
pub use ping_pong::PingPongConfig;
pub use request_response::RequestResponseConfig;
pub use stream::StreamConfig;
pub(crate) use video::Chunk;

/// The kinds for front ends.
pub(crate) const ENTRIES: &[Entry] = &[
    bulk::ENTRY,
    stream::ENTRY,
    request_response::ENTRY,
    fetch::ENTRY,
    ping_pong::ENTRY,
    messages::ENTRY,
    video::ENTRY,
    page::ENTRY,
    ping::ENTRY,
    cbr::ENTRY,
    on_off::ENTRY,
];

/// A kind of application as the registry has it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub model: Model,
    /// What it runs over; the first unless a scenario says otherwise.
    pub transports: &'static [Transport],
}

/// The transports that have a byte stream.
const CONNECTIONS: &[Transport] = &[
    Transport::Mptcp,
    Transport::Tcp,
    Transport::Mpquic,
    Transport::Quic,
];

const MOST_REQUESTS: u64 = 1_000_000_000;

/// What an application does, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Work {
    Bulk(BulkConfig),
    Stream(StreamConfig),
    RequestResponse(RequestResponseConfig),
    Fetch(FetchConfig),
    PingPong(PingPongConfig),
    Messages(MessagesConfig),
    Video(Video),
    Page(Page),
    Ping(PingConfig),
    Cbr(CbrConfig),
    OnOff(OnOffConfig),
}

impl Work {
    /// What makes its settings impossible.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.kind().1.fault().map_or(Ok(()), Err)
    }

    pub(crate) fn kind(&self) -> (Entry, &dyn Kind) {
        match self {
            Self::Bulk(config) => (bulk::ENTRY, config),
            Self::Stream(config) => (stream::ENTRY, config),
            Self::RequestResponse(config) => (request_response::ENTRY, config),
            Self::Fetch(config) => (fetch::ENTRY, config),
            Self::PingPong(config) => (ping_pong::ENTRY, config),
            Self::Messages(config) => (messages::ENTRY, config),
            Self::Video(video) => (video::ENTRY, video),
            Self::Page(page) => (page::ENTRY, page),
            Self::Ping(config) => (ping::ENTRY, config),
            Self::Cbr(config) => (cbr::ENTRY, config),
            Self::OnOff(config) => (on_off::ENTRY, config),
        }
    }
}

/// The settings of a kind, of which an application is made.
pub(crate) trait Kind {
    /// What makes them impossible, if anything does.
    fn fault(&self) -> Option<String>;

    /// Whether it sends in DATAGRAM frames (RFC 9221).
    fn needs_datagrams(&self) -> bool {
        false
    }

    fn begin(&self, at: Beginning) -> Begun;
}

/// Where and when an application begins.
pub(crate) struct Beginning<'a> {
    /// Its place among the plan's.
    pub number: usize,
    pub start: Nanos,
    /// Its connection is one of QUIC.
    pub quic: bool,
    /// The plan's.
    pub seed: u64,
    pub pages: &'a mut Pages,
}

/// What runs of an application: the two ends of a connection's, or the sender of datagrams.
pub(crate) enum Begun {
    Session(Box<dyn Session>),
    Datagrams(Datagrams),
}

impl Begun {
    fn session(session: impl Session + 'static) -> Self {
        Self::Session(Box::new(session))
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    /// Who sends, given whether the server does.
    fn sending(reverse: bool) -> Self {
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

    fn abort(&mut self) {
        self.connection.abort(self.now);
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Settings by their fields: defaults, and the least that there can be where there is none.
    fn usual(model: &Model) -> Value {
        let mut made = json!({ "kind": model.name });
        for parameter in model.parameters {
            made[parameter.field] = match parameter.default {
                Some(default) if !parameter.rest => json!(default),
                _ => json!(parameter.minimum as u64),
            };
        }
        made
    }

    fn read(work: Value) -> Result<Work, String> {
        let work: Work = serde_json::from_value(work).map_err(|error| error.to_string())?;
        work.kind().1.fault().map_or(Ok(work), Err)
    }

    fn declared() -> impl Iterator<Item = &'static Model> {
        let models = ENTRIES.iter().map(|entry| &entry.model);
        models.filter(|model| !model.parameters.is_empty())
    }

    #[test]
    fn a_kind_takes_what_its_entry_says_and_no_more() {
        for model in declared() {
            let work = read(usual(model)).unwrap_or_else(|fault| panic!("{}: {fault}", model.name));
            assert_eq!(work.kind().0.model, *model);
            let mut unknown = usual(model);
            unknown["beyond"] = json!(1);
            assert!(read(unknown).is_err(), "{}", model.name);
            for parameter in model.parameters {
                let (least, most) = (parameter.minimum, parameter.maximum);
                let below = (least > 0.0).then_some(least - 1.0);
                let above = most.is_finite().then_some(most + 1.0);
                for value in below.into_iter().chain(above) {
                    let mut work = usual(model);
                    work[parameter.field] = json!(value as u64);
                    let fault = read(work).expect_err(parameter.name);
                    assert!(fault.contains(&format!("'{}'", parameter.name)), "{fault}");
                }
            }
        }
    }

    #[test]
    fn what_a_plan_may_leave_out_is_the_default() {
        for model in declared() {
            let whole = read(usual(model)).expect(model.name);
            for parameter in model.parameters {
                let mut short = usual(model);
                let fields = short.as_object_mut().expect("an object");
                fields.remove(parameter.field);
                if let Ok(work) = read(short) {
                    assert_eq!(work, whole, "{} without {}", model.name, parameter.field);
                }
            }
        }
    }

    #[test]
    fn a_setting_of_words_takes_each_of_them_and_no_other() {
        let words = |model: &'static Model| model.parameters.iter().map(move |it| (model, it));
        for (model, parameter) in declared().flat_map(words) {
            let with = |word: &str| {
                let mut work = usual(model);
                work[parameter.field] = json!(word);
                read(work)
            };
            assert!(with("other").is_err(), "{}", parameter.name);
            for word in parameter.choices {
                assert!(with(word).is_ok(), "{word}");
            }
        }
    }
}

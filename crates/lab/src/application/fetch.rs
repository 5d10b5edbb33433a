//! Files over HTTP/1.1: request head, response head, body of a stated length.

use polypath_settings::model;

use super::hq::{Hq, Streams};
use super::http::{REQUEST_HEAD, response_head};
use super::kind::{
    Beginning, Begun, CONNECTIONS, Delays, Direction, Entry, Kind, MOST_REQUESTS, Traffic,
};
use super::session::{Io, Request, Session, Side};
use super::tls::{Layer, Tls};

model! {
    "fetch",
    "GET of files over HTTP/1.1, one after the other on a persistent connection, over TLS if asked to; over QUIC by HTTP/0.9, each on a stream",
    "RFC 9112; TLS: RFC 5246, RFC 8446; wget in the SIGCOMM 2020 tutorial, section 2";
    /// Settings of a fetch.
    FetchConfig {
        /// Bytes of a file.
        size_bytes: u64 as Size.at_least(0),
        /// Number of files.
        #[serde(default = "one")]
        count: u64 as Integer.at_least(1).at_most(MOST_REQUESTS) = Integer(1),
        /// Over TLS: the full handshake of version 1.2 (RFC 5246, two round trips) or 1.3 (RFC 8446, one) comes first and
        /// counts for the first file, and records add their bytes; left out: plain HTTP.
        tls: Option<Tls> as Text = Absent(()),
        /// Files that are asked for at once, over QUIC.
        #[serde(default = "one")]
        parallel: u64 as Integer.at_least(1).at_most(100) = Integer(1),
        /// Over QUIC: each file has a stream of its own, and all are sent in turn (`each`); the same, and what was asked for
        /// first is sent first, by the priority of its stream (`ordered`); all come in order on one stream (`one`).
        #[serde(default)]
        streams: Streams as Text = Text("each"),
    }
}

fn one() -> u64 {
    1
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: CONNECTIONS,
    traffic: Traffic::of(Direction::Fetched, Delays::Requests),
};

impl Kind for FetchConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, at: Beginning) -> Begun {
        if at.quic {
            Begun::session(Hq::new(
                self.size_bytes,
                self.count,
                self.parallel,
                self.streams,
            ))
        } else {
            Begun::session(Fetch::new(*self))
        }
    }
}

/// How far one side has come.
#[derive(Default)]
struct Progress {
    /// Exchanges so far, those of the TLS handshake first.
    step: usize,
    heard: u64,
}

struct Fetch {
    tls: &'static Layer,
    /// Heads can be read on the wire.
    plain: bool,
    request: u64,
    response: u64,
    size: u64,
    count: u64,
    waiting: bool,
    client: Progress,
    server: Progress,
}

impl Fetch {
    fn new(config: FetchConfig) -> Self {
        let (size, tls) = (config.size_bytes, Layer::of(config.tls));
        Self {
            tls,
            plain: config.tls.is_none(),
            request: tls.sealed(REQUEST_HEAD.len() as u64),
            response: tls.sealed(response_head(size).len() as u64 + size),
            size,
            count: config.count,
            waiting: false,
            client: Progress::default(),
            server: Progress::default(),
        }
    }

    /// What the client sends in a step, and what it waits for.
    fn exchange(&self, step: usize) -> (u64, u64) {
        let handshake = self.tls.exchanges;
        match handshake.get(step) {
            Some(&flights) => flights,
            None if step == handshake.len() => (self.request + self.tls.parting, self.response),
            None => (self.request, self.response),
        }
    }

    fn client(&mut self, io: &mut Io) {
        let handshake = self.tls.exchanges.len();
        if self.waiting {
            self.client.heard += io.arrived;
            if self.client.heard < self.exchange(self.client.step).1 {
                return;
            }
            self.client.heard = 0;
            self.client.step += 1;
            self.waiting = false;
            let answered = self.client.step > handshake;
            if let Some(last) = io.requests.last_mut().filter(|_| answered) {
                last.delay = Some(io.now - last.sent_at);
            }
        }
        // The first request counts from the beginning of the handshake.
        if self.client.step == 0 || self.client.step > handshake {
            if io.requests.len() as u64 >= self.count {
                return io.close();
            }
            io.requests.push(Request {
                sent_at: io.now,
                delay: None,
            });
        }
        self.waiting = true;
        if self.plain {
            io.write_message(REQUEST_HEAD, 0);
        } else {
            io.write(self.exchange(self.client.step).0);
        }
    }

    fn server(&mut self, io: &mut Io) {
        self.server.heard += io.arrived;
        loop {
            let (flight, answer) = self.exchange(self.server.step);
            if self.server.heard < flight {
                break;
            }
            self.server.heard -= flight;
            self.server.step += 1;
            if self.plain {
                io.write_message(&response_head(self.size), self.size);
            } else {
                io.write(answer);
            }
        }
        if io.connection.at_end() {
            io.close();
        }
    }
}

impl Session for Fetch {
    fn run(&mut self, io: &mut Io) {
        match io.side {
            Side::Client => self.client(io),
            Side::Server => self.server(io),
        }
    }
}

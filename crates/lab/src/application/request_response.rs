//! Requests at an interval, each answered before the next is sent.

use std::collections::VecDeque;

use polypath_settings::model;
use polypath_transport::Nanos;

use super::kind::{
    Beginning, Begun, CONNECTIONS, Delays, Direction, Entry, Kind, MOST_REQUESTS, Traffic,
};
use super::session::{Io, Request, Session, Side};

model! {
    "request-response",
    "Requests at an interval, each answered before the next; the delay of each is recorded",
    "minitopo's msg, the SIGCOMM 2020 tutorial, section 2";
    /// Settings of requests and responses. The delay of one counts from the request's first byte sent to the response's last byte received.
    RequestResponseConfig {
        /// Number of requests.
        count: u64 as Integer.at_least(1).at_most(MOST_REQUESTS),
        /// Sleep before each request.
        interval_ns: Nanos as Time = Integer(0),
        /// Bytes of a request.
        request_bytes: u64 as Size,
        /// Bytes of a response.
        response_bytes: u64 as Size,
        /// Time from the request's last byte to the response's first.
        #[serde(default)]
        think_ns: Nanos as Time = Integer(0),
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: CONNECTIONS,
    traffic: Traffic::of(Direction::BothWays, Delays::Requests),
};

impl Kind for RequestResponseConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, _: Beginning) -> Begun {
        Begun::session(RequestResponse::new(*self))
    }
}

struct RequestResponse {
    config: RequestResponseConfig,
    /// The client's side: when the next request is due, and bytes of the present answer received.
    next_at: Option<Nanos>,
    waiting: bool,
    received: u64,
    /// The server's side: bytes received beyond whole requests, and when answers are due.
    heard: u64,
    answers: VecDeque<Nanos>,
}

impl RequestResponse {
    fn new(config: RequestResponseConfig) -> Self {
        Self {
            config,
            next_at: None,
            waiting: false,
            received: 0,
            heard: 0,
            answers: VecDeque::new(),
        }
    }

    fn client(&mut self, io: &mut Io) {
        if self.waiting {
            self.received += io.arrived;
            if self.received < self.config.response_bytes {
                return;
            }
            self.received -= self.config.response_bytes;
            self.waiting = false;
            if let Some(last) = io.requests.last_mut() {
                last.delay = Some(io.now - last.sent_at);
            }
            self.next_at = None;
        }
        if io.requests.len() as u64 >= self.config.count {
            return io.close();
        }
        let at = *self.next_at.get_or_insert(io.now + self.config.interval_ns);
        if !io.due(at) {
            *io.wake = at;
            return;
        }
        io.requests.push(Request {
            sent_at: io.now,
            delay: None,
        });
        self.waiting = true;
        io.write(self.config.request_bytes);
    }

    fn server(&mut self, io: &mut Io) {
        self.heard += io.arrived;
        while self.heard >= self.config.request_bytes {
            self.heard -= self.config.request_bytes;
            self.answers.push_back(io.now + self.config.think_ns);
        }
        while self.answers.front().is_some_and(|&at| io.due(at)) {
            self.answers.pop_front();
            io.write(self.config.response_bytes);
        }
        match self.answers.front() {
            Some(&at) => *io.wake = at,
            None if io.connection.at_end() => io.close(),
            None => {}
        }
    }
}

impl Session for RequestResponse {
    fn run(&mut self, io: &mut Io) {
        match io.side {
            Side::Client => self.client(io),
            Side::Server => self.server(io),
        }
    }
}

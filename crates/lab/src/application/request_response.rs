//! Requests at an interval, each answered before the next is sent.

use polypath_transport::Nanos;

use super::{Io, Request, Session, Side};

pub(super) const NAME: &str = "request-response";
pub(super) const DESCRIPTION: &str =
    "Requests at an interval, each answered before the next; the delay of each is recorded";
pub(super) const SOURCE: &str = "minitopo's msg, the SIGCOMM 2020 tutorial, section 2";

pub(super) struct RequestResponse {
    count: u64,
    interval: Nanos,
    request: u64,
    response: u64,
    think: Nanos,
    /// The client's side: when the next request is due, and bytes of the present answer received.
    next_at: Option<Nanos>,
    waiting: bool,
    received: u64,
    /// The server's side: bytes received beyond whole requests, and when answers are due.
    heard: u64,
    answers: std::collections::VecDeque<Nanos>,
}

impl RequestResponse {
    pub fn new(count: u64, interval: Nanos, request: u64, response: u64, think: Nanos) -> Self {
        Self {
            count,
            interval,
            request,
            response,
            think,
            next_at: None,
            waiting: false,
            received: 0,
            heard: 0,
            answers: std::collections::VecDeque::new(),
        }
    }

    fn client(&mut self, io: &mut Io) {
        if self.waiting {
            self.received += io.arrived;
            if self.received < self.response {
                return;
            }
            self.received -= self.response;
            self.waiting = false;
            if let Some(last) = io.requests.last_mut() {
                last.delay = Some(io.now - last.sent_at);
            }
            self.next_at = None;
        }
        if io.requests.len() as u64 >= self.count {
            return io.close();
        }
        let at = *self.next_at.get_or_insert(io.now + self.interval);
        if !io.due(at) {
            *io.wake = at;
            return;
        }
        io.requests.push(Request {
            sent_at: io.now,
            delay: None,
        });
        self.waiting = true;
        io.write(self.request);
    }

    fn server(&mut self, io: &mut Io) {
        self.heard += io.arrived;
        while self.heard >= self.request {
            self.heard -= self.request;
            self.answers.push_back(io.now + self.think);
        }
        while self.answers.front().is_some_and(|&at| io.due(at)) {
            self.answers.pop_front();
            io.write(self.response);
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

//! Files over HTTP/1.1: request head, response head, body of a stated length.

use super::{Io, Request, Session, Side};

pub(super) const NAME: &str = "fetch";
pub(super) const DESCRIPTION: &str =
    "GET of files over HTTP/1.1, one after the other on a persistent connection";
pub(super) const SOURCE: &str = "RFC 9112; wget in the SIGCOMM 2020 tutorial, section 2";

/// Length of `GET /file HTTP/1.1`, Host, User-Agent and Accept with their line ends.
const REQUEST_HEAD: &str =
    "GET /file HTTP/1.1\r\nHost: server\r\nUser-Agent: polypath\r\nAccept: */*\r\n\r\n";

/// The response's head (RFC 9112 section 4, RFC 9110 section 8.6).
fn response_head(size: u64) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nServer: polypath\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\r\n"
    )
}

pub(super) struct Fetch {
    response: u64,
    count: u64,
    waiting: bool,
    received: u64,
    heard: u64,
}

impl Fetch {
    pub fn new(size: u64, count: u64) -> Self {
        Self {
            response: response_head(size).len() as u64 + size,
            count,
            waiting: false,
            received: 0,
            heard: 0,
        }
    }

    fn client(&mut self, io: &mut Io) {
        if self.waiting {
            self.received += io.arrived;
            if self.received < self.response {
                return;
            }
            self.received = 0;
            self.waiting = false;
            if let Some(last) = io.requests.last_mut() {
                last.delay = Some(io.now - last.sent_at);
            }
        }
        if io.requests.len() as u64 >= self.count {
            return io.close();
        }
        io.requests.push(Request {
            sent_at: io.now,
            delay: None,
        });
        self.waiting = true;
        io.write(REQUEST_HEAD.len() as u64);
    }

    fn server(&mut self, io: &mut Io) {
        let head = REQUEST_HEAD.len() as u64;
        self.heard += io.arrived;
        while self.heard >= head {
            self.heard -= head;
            io.write(self.response);
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

//! Files over HTTP/1.1: request head, response head, body of a stated length.

use super::http::{REQUEST_HEAD, response_head};
use super::tls::Layer;
use super::{Io, Request, Session, Side};
use crate::plan::Tls;

pub(super) const NAME: &str = "fetch";
pub(super) const DESCRIPTION: &str = "GET of files over HTTP/1.1, one after the other on a persistent connection; over TLS if asked to";
pub(super) const SOURCE: &str =
    "RFC 9112; TLS: RFC 5246, RFC 8446; wget in the SIGCOMM 2020 tutorial, section 2";

/// How far one side has come.
#[derive(Default)]
struct Progress {
    /// Exchanges so far, those of the TLS handshake first.
    step: usize,
    heard: u64,
}

pub(super) struct Fetch {
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
    pub fn new(size: u64, count: u64, tls: Option<Tls>) -> Self {
        let plain = tls.is_none();
        let tls = Layer::of(tls);
        Self {
            tls,
            plain,
            request: tls.sealed(REQUEST_HEAD.len() as u64),
            response: tls.sealed(response_head(size).len() as u64 + size),
            size,
            count,
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

//! The same bytes back and forth: delay without a standing queue.

use polypath_transport::Nanos;

use super::{Io, Request, Session, Side};

pub(super) const NAME: &str = "ping-pong";
pub(super) const DESCRIPTION: &str =
    "Bytes back and forth without pause: application delay without a standing queue";
pub(super) const SOURCE: &str = "K. Levente 2017, measuring MPTCP settings (delay measurement)";

pub(super) struct PingPong {
    bytes: u64,
    count: u64,
    ends_at: Nanos,
    received: u64,
    heard: u64,
}

impl PingPong {
    pub fn new(start: Nanos, bytes: u64, count: Option<u64>, duration: Option<Nanos>) -> Self {
        Self {
            bytes,
            count: count.unwrap_or(u64::MAX),
            ends_at: duration.map_or(Nanos::MAX, |duration| start + duration),
            received: 0,
            heard: 0,
        }
    }

    fn client(&mut self, io: &mut Io) {
        let waiting = io.requests.last().is_some_and(|last| last.delay.is_none());
        if waiting {
            self.received += io.arrived;
            if self.received < self.bytes {
                return;
            }
            self.received -= self.bytes;
            if let Some(last) = io.requests.last_mut() {
                last.delay = Some(io.now - last.sent_at);
            }
        }
        if io.requests.len() as u64 >= self.count || io.due(self.ends_at) {
            return io.close();
        }
        io.requests.push(Request {
            sent_at: io.now,
            delay: None,
        });
        io.write(self.bytes);
    }

    fn server(&mut self, io: &mut Io) {
        self.heard += io.arrived;
        while self.heard >= self.bytes {
            self.heard -= self.bytes;
            io.write(self.bytes);
        }
        if io.connection.at_end() {
            io.close();
        }
    }
}

impl Session for PingPong {
    fn run(&mut self, io: &mut Io) {
        match io.side {
            Side::Client => self.client(io),
            Side::Server => self.server(io),
        }
    }
}

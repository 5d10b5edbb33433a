//! The same bytes back and forth: delay without a standing queue.

use polypath_settings::model;
use polypath_transport::Nanos;

use super::kind::{
    Beginning, Begun, CONNECTIONS, Delays, Direction, Entry, Kind, MOST_REQUESTS, Traffic,
};
use super::session::{Io, Request, Session, Side};

model! {
    "ping-pong",
    "Bytes back and forth without pause: application delay without a standing queue",
    "K. Levente 2017, measuring MPTCP settings (delay measurement)";
    /// Settings of a message that goes back and forth.
    PingPongConfig {
        /// Bytes of the message.
        bytes: u64 as Size.called("size"),
        /// Number of round trips.
        count: Option<u64> as Integer.at_least(1).at_most(MOST_REQUESTS) = Absent(()),
        /// How long it goes on.
        duration_ns: Option<Nanos> as Period = Absent(()),
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: CONNECTIONS,
    traffic: Traffic::of(Direction::BothWays, Delays::Requests),
};

impl Kind for PingPongConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, at: Beginning) -> Begun {
        Begun::session(PingPong::new(at.start, *self))
    }
}

struct PingPong {
    bytes: u64,
    count: u64,
    ends_at: Nanos,
    received: u64,
    heard: u64,
}

impl PingPong {
    fn new(start: Nanos, config: PingPongConfig) -> Self {
        let duration = config.duration_ns;
        Self {
            bytes: config.bytes,
            count: config.count.unwrap_or(u64::MAX),
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

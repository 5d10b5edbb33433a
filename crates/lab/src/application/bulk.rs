//! Bulk transfer: as many bytes as the connection takes, for a time or up to a size. Or a given number of bytes from
//! each end at once.

use polypath_settings::model;
use polypath_transport::Nanos;

use super::kind::{Beginning, Begun, CONNECTIONS, Delays, Direction, Entry, Kind, Traffic};
use super::session::{Io, Session, Side};

model! {
    "bulk",
    "As many bytes as the connection takes, for a time or up to a size, one way or both",
    "iperf";
    /// Settings of a transfer.
    BulkConfig {
        /// How long it sends.
        duration_ns: Option<Nanos> as Period = Absent(()),
        /// How much it sends; "0 B": the connection is opened and closed.
        size_bytes: Option<u64> as Depth = Absent(()),
        /// The server sends.
        #[serde(default)]
        reverse: bool as Boolean = Boolean(false),
        /// How much the server sends at the same time, while the client sends `size`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reverse_bytes: Option<u64> as Depth.called("reverse_size").seldom() = Absent(()),
        /// Its sender aborts the connection at the end of `duration` in place of closing it: by MP_FASTCLOSE (RFC 8684 section 3.5),
        /// over plain TCP by a reset.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        abort: bool as Boolean.seldom() = Boolean(false),
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: CONNECTIONS,
    traffic: Traffic::of(Direction::OneWay, Delays::None),
};

impl Kind for BulkConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, at: Beginning) -> Begun {
        Begun::session(Bulk::new(at.start, *self))
    }
}

struct Bulk {
    sender: Side,
    size: Option<u64>,
    /// What the other end sends meanwhile.
    back: Option<u64>,
    ends_at: Option<Nanos>,
    aborts: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Sending,
    Done,
}

impl Bulk {
    fn new(start: Nanos, config: BulkConfig) -> Self {
        Self {
            sender: Side::sending(config.reverse),
            size: config.size_bytes,
            back: config.reverse_bytes,
            ends_at: config.duration_ns.map(|duration| start + duration),
            aborts: config.abort,
            state: State::Waiting,
        }
    }
}

impl Bulk {
    /// Apart from what the receiver does at each arrival.
    #[inline(never)]
    fn send(&mut self, io: &mut Io) {
        if self.state == State::Waiting && !self.ends_at.is_some_and(|at| io.due(at)) {
            self.state = State::Sending;
            io.write(self.size.unwrap_or(u64::MAX / 2));
            if self.size.is_some() {
                io.close();
            }
            *io.wake = self.ends_at.unwrap_or(Nanos::MAX);
        }
        if self.state != State::Done && self.ends_at.is_some_and(|at| io.due(at)) {
            self.state = State::Done;
            if self.aborts {
                return io.abort();
            }
            io.connection.cancel_writes();
            io.close();
        }
    }
}

impl Session for Bulk {
    fn run(&mut self, io: &mut Io) {
        if io.side == self.sender {
            return self.send(io);
        }
        if let Some(bytes) = self.back.take() {
            io.write(bytes);
            return io.close();
        }
        if io.connection.at_end() {
            io.close();
        }
    }
}

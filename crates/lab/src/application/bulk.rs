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
        /// How much an end sends before its `pause`.
        #[serde(default, skip_serializing_if = "is_zero")]
        first_bytes: u64 as Depth.called("first").seldom() = Integer(0),
        /// How long an end that sends then waits before the rest.
        #[serde(default, skip_serializing_if = "is_zero")]
        pause_ns: Nanos as Time.seldom() = Integer(0),
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

fn is_zero(value: &u64) -> bool {
    *value == 0
}

struct Bulk {
    sender: Side,
    forward: Share,
    /// What the other end sends meanwhile.
    back: Option<Share>,
    pause: Pause,
    ends_at: Option<Nanos>,
    aborts: bool,
    ended: bool,
}

#[derive(Clone, Copy)]
struct Pause {
    first: u64,
    length: Nanos,
}

/// What an end sends.
struct Share {
    size: Option<u64>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    PausedUntil(Nanos),
    Sending,
}

/// Without a size: more than ever leaves.
const ENDLESS: u64 = u64::MAX / 2;

impl Share {
    fn new(size: Option<u64>) -> Self {
        Self {
            size,
            stage: Stage::Waiting,
        }
    }

    /// Writes what goes before the pause, or what comes after it.
    fn feed(&mut self, pause: Pause, io: &mut Io) {
        let bytes = self.size.unwrap_or(ENDLESS);
        match self.stage {
            Stage::Waiting if pause.length > 0 => {
                let resumes_at = io.now + pause.length;
                self.stage = Stage::PausedUntil(resumes_at);
                io.write(bytes.min(pause.first));
                *io.wake = resumes_at;
            }
            Stage::Waiting => self.finish(bytes, io),
            Stage::PausedUntil(at) if io.due(at) => {
                self.finish(bytes.saturating_sub(pause.first), io);
            }
            Stage::PausedUntil(_) | Stage::Sending => {}
        }
    }

    fn finish(&mut self, bytes: u64, io: &mut Io) {
        self.stage = Stage::Sending;
        io.write(bytes);
        if self.size.is_some() {
            io.close();
        }
        *io.wake = Nanos::MAX;
    }
}

impl Bulk {
    fn new(start: Nanos, config: BulkConfig) -> Self {
        Self {
            sender: Side::sending(config.reverse),
            forward: Share::new(config.size_bytes),
            back: config.reverse_bytes.map(|bytes| Share::new(Some(bytes))),
            pause: Pause {
                first: config.first_bytes,
                length: config.pause_ns,
            },
            ends_at: config.duration_ns.map(|duration| start + duration),
            aborts: config.abort,
            ended: false,
        }
    }

    /// Apart from what the receiver does at each arrival.
    #[inline(never)]
    fn send(&mut self, io: &mut Io) {
        if self.ended {
            return;
        }
        let Some(ends_at) = self.ends_at else {
            return self.forward.feed(self.pause, io);
        };
        if !io.due(ends_at) {
            self.forward.feed(self.pause, io);
            *io.wake = ends_at.min(*io.wake);
            return;
        }
        self.ended = true;
        if self.aborts {
            return io.abort();
        }
        io.connection.cancel_writes();
        io.close();
    }
}

impl Session for Bulk {
    fn run(&mut self, io: &mut Io) {
        if io.side == self.sender {
            return self.send(io);
        }
        if let Some(share) = &mut self.back {
            return share.feed(self.pause, io);
        }
        if io.connection.at_end() {
            io.close();
        }
    }
}

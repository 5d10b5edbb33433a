//! Blocks at regular intervals: a constant offered rate.

use polypath_settings::model;
use polypath_transport::{Nanos, SECOND};

use super::kind::{Beginning, Begun, CONNECTIONS, Delays, Direction, Entry, Kind, Traffic};
use super::session::{Io, Session, Side};

const KIB: u64 = 1024;

model! {
    "stream",
    "Blocks at regular intervals, so that a rate is offered",
    "iperf3 -b";
    /// Settings of a stream.
    StreamConfig {
        /// Offered rate.
        rate_bps: u64 as Rate,
        /// Bytes written at a time (iperf3's default).
        block_bytes: u64 as Size = Integer(128 * KIB),
        /// How long it sends.
        duration_ns: Option<Nanos> as Period = Absent(()),
        /// The server sends.
        #[serde(default)]
        reverse: bool as Boolean = Boolean(false),
    }
}

pub(super) const ENTRY: Entry = Entry {
    model: MODEL,
    transports: CONNECTIONS,
    traffic: Traffic::of(Direction::OneWay, Delays::None),
};

impl Kind for StreamConfig {
    fn fault(&self) -> Option<String> {
        self.within_bounds().err().map(|error| error.to_string())
    }

    fn begin(&self, at: Beginning) -> Begun {
        Begun::session(Stream::new(at.start, *self))
    }
}

struct Stream {
    sender: Side,
    block: u64,
    rate: u64,
    ends_at: Option<Nanos>,
    began_at: Option<Nanos>,
    blocks: u64,
    start: Nanos,
}

impl Stream {
    fn new(start: Nanos, config: StreamConfig) -> Self {
        Self {
            sender: Side::sending(config.reverse),
            block: config.block_bytes,
            rate: config.rate_bps,
            ends_at: config.duration_ns.map(|duration| start + duration),
            began_at: None,
            blocks: 0,
            start,
        }
    }

    /// When the block with this number is due.
    fn due_at(&self, number: u64) -> Nanos {
        let bits = u128::from(number) * u128::from(self.block) * 8;
        self.began_at.unwrap_or(self.start)
            + (bits * u128::from(SECOND) / u128::from(self.rate)) as Nanos
    }
}

impl Session for Stream {
    fn run(&mut self, io: &mut Io) {
        if io.side != self.sender {
            if io.connection.at_end() {
                io.close();
            }
            return;
        }
        self.began_at.get_or_insert(io.now);
        if self.ends_at.is_some_and(|at| io.due(at)) {
            io.connection.cancel_writes();
            return io.close();
        }
        while io.due(self.due_at(self.blocks)) {
            io.write(self.block);
            self.blocks += 1;
        }
        *io.wake = self
            .due_at(self.blocks)
            .min(self.ends_at.unwrap_or(Nanos::MAX));
    }
}

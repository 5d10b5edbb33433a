//! Blocks at regular intervals, so that a rate is offered.

use polypath_transport::{Nanos, SECOND};

use super::{Io, Session, Side};

pub(super) const NAME: &str = "stream";
pub(super) const DESCRIPTION: &str = "Blocks at regular intervals, so that a rate is offered";
pub(super) const SOURCE: &str = "iperf3 -b";

pub(super) struct Stream {
    sender: Side,
    block: u64,
    rate: u64,
    ends_at: Option<Nanos>,
    began_at: Option<Nanos>,
    blocks: u64,
    start: Nanos,
}

impl Stream {
    pub fn new(
        start: Nanos,
        rate: u64,
        block: u64,
        duration: Option<Nanos>,
        reverse: bool,
    ) -> Self {
        let sender = if reverse { Side::Server } else { Side::Client };
        Self {
            sender,
            block,
            rate,
            ends_at: duration.map(|duration| start + duration),
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

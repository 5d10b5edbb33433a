//! As many bytes as the connection takes, for a time or up to a size; or so many from each end at once.

use polypath_transport::Nanos;

use super::{Io, Session, Side};

pub(super) const NAME: &str = "bulk";
pub(super) const DESCRIPTION: &str =
    "As many bytes as the connection takes, for a time or up to a size, one way or both";
pub(super) const SOURCE: &str = "iperf";

pub(super) struct Bulk {
    sender: Side,
    size: Option<u64>,
    /// What the other end sends meanwhile.
    back: Option<u64>,
    ends_at: Option<Nanos>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Sending,
    Done,
}

impl Bulk {
    pub fn new(
        start: Nanos,
        duration: Option<Nanos>,
        size: Option<u64>,
        back: Option<u64>,
        reverse: bool,
    ) -> Self {
        let sender = if reverse { Side::Server } else { Side::Client };
        Self {
            sender,
            size,
            back,
            ends_at: duration.map(|duration| start + duration),
            state: State::Waiting,
        }
    }
}

impl Session for Bulk {
    fn run(&mut self, io: &mut Io) {
        if io.side != self.sender {
            if let Some(bytes) = self.back.take() {
                io.write(bytes);
                return io.close();
            }
            if io.connection.at_end() {
                io.close();
            }
            return;
        }
        if self.state == State::Waiting {
            self.state = State::Sending;
            io.write(self.size.unwrap_or(u64::MAX / 2));
            if self.size.is_some() {
                io.close();
            }
            *io.wake = self.ends_at.unwrap_or(Nanos::MAX);
        }
        if self.state == State::Sending && self.ends_at.is_some_and(|at| io.due(at)) {
            self.state = State::Done;
            io.connection.cancel_writes();
            io.close();
        }
    }
}

//! What every endpoint has to offer.

use std::collections::BTreeMap;

use polypath_transport::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Names the bytes that this side sends on a stream.
    pub fn content(self, stream: u64) -> u64 {
        stream << 1 | self as u64
    }
}

pub use polypath_noq::{Arrival, Departure};

/// What came on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub bytes: u64,
    pub ended: bool,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This side or the other closed it without an error.
    Closed,
    TimedOut,
    Error(String),
}

/// One end of a connection. What it does at a time is done when the call returns, but for what [`End::take`] hands out.
pub trait End {
    fn receive(&mut self, arrival: &Arrival<'_>, now: Nanos);

    /// What is due at `now`.
    fn on_time(&mut self, now: Nanos);

    fn deadline(&self) -> Nanos;

    /// Datagrams to be sent.
    fn take(&mut self, now: Nanos) -> Vec<Departure>;

    fn established(&self) -> bool;

    fn outcome(&self) -> Option<Outcome>;

    /// Opens a stream, if the peer admits another one.
    fn open(&mut self, bidirectional: bool, now: Nanos) -> Option<u64>;

    /// Sends so many bytes on a stream, and its end.
    fn send(&mut self, stream: u64, bytes: u64, now: Nanos);

    /// Streams on which something came, each byte of which was compared with what was sent.
    fn received(&self) -> &BTreeMap<u64, Received>;

    fn close(&mut self, now: Nanos);
}

impl<E: End + ?Sized> End for Box<E> {
    fn receive(&mut self, arrival: &Arrival<'_>, now: Nanos) {
        (**self).receive(arrival, now);
    }

    fn on_time(&mut self, now: Nanos) {
        (**self).on_time(now);
    }

    fn deadline(&self) -> Nanos {
        (**self).deadline()
    }

    fn take(&mut self, now: Nanos) -> Vec<Departure> {
        (**self).take(now)
    }

    fn established(&self) -> bool {
        (**self).established()
    }

    fn outcome(&self) -> Option<Outcome> {
        (**self).outcome()
    }

    fn open(&mut self, bidirectional: bool, now: Nanos) -> Option<u64> {
        (**self).open(bidirectional, now)
    }

    fn send(&mut self, stream: u64, bytes: u64, now: Nanos) {
        (**self).send(stream, bytes, now);
    }

    fn received(&self) -> &BTreeMap<u64, Received> {
        (**self).received()
    }

    fn close(&mut self, now: Nanos) {
        (**self).close(now);
    }
}

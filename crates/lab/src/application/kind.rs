//! A kind of application: its entry in the registry, and how an application of it starts.

use polypath_settings::Model;
use polypath_transport::Nanos;
use serde::Serialize;

use super::datagrams::Datagrams;
use super::load::Pages;
use super::session::Session;
use crate::plan::Transport;

/// A kind of application as the registry has it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Entry {
    #[serde(flatten)]
    pub model: Model,
    /// What it runs over; the first unless a scenario says otherwise.
    pub transports: &'static [Transport],
    /// What results need to know of it.
    pub traffic: Traffic,
}

/// What an application sends, for those who read a recording.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Traffic {
    pub direction: Direction,
    /// What a row of the table `requests` is.
    pub delays: Delays,
}

impl Traffic {
    pub const fn of(direction: Direction, delays: Delays) -> Self {
        Self { direction, delays }
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    /// From the client to the server, or back with `reverse`.
    OneWay,
    /// From the server, for what the client asks.
    Fetched,
    BothWays,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Delays {
    /// It has none.
    None,
    /// A request, from its first byte to the last byte of its answer.
    Requests,
    /// A message, until it arrives.
    Messages,
    /// A request for a part of what has a figure of its own: a video, a page.
    Parts,
    /// An echo request.
    Echoes,
}

/// The transports that have a byte stream.
pub(super) const CONNECTIONS: &[Transport] = &[
    Transport::Mptcp,
    Transport::Tcp,
    Transport::Mpquic,
    Transport::Quic,
];

pub(super) const MOST_REQUESTS: u64 = 1_000_000_000;

/// The settings of a kind, of which an application is made.
pub(crate) trait Kind {
    /// What makes them impossible, if anything does.
    fn fault(&self) -> Option<String>;

    /// Whether it sends in DATAGRAM frames (RFC 9221).
    fn needs_datagrams(&self) -> bool {
        false
    }

    fn begin(&self, at: Beginning) -> Begun;
}

/// Where and when an application begins.
pub(crate) struct Beginning<'a> {
    /// Its place among the plan's.
    pub number: usize,
    pub start: Nanos,
    /// Its connection is one of QUIC.
    pub quic: bool,
    /// The plan's.
    pub seed: u64,
    pub pages: &'a mut Pages,
}

/// What runs of an application: the two ends of a connection's, or the sender of datagrams.
pub(crate) enum Begun {
    Session(Box<dyn Session>),
    Datagrams(Datagrams),
}

impl Begun {
    pub fn session(session: impl Session + 'static) -> Self {
        Self::Session(Box::new(session))
    }
}

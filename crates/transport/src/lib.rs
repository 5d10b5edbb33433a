//! Sans-IO endpoints of TCP and Multipath TCP.
//!
//! Nothing here knows a clock, a socket or a simulator: `now` is an argument, segments go in, and segments, events and
//! the next deadline come out. A [`Connection`] is plain TCP with one subflow, or MPTCP with several. A connection that
//! falls back (RFC 8684 section 3.7) becomes plain TCP.

mod accept;
pub mod algorithms;
pub mod congestion;
mod counters;
mod event;
mod host;
pub mod linux;
pub mod mptcp;
pub mod path;
mod path_choice;
pub mod path_manager;
mod policy;
pub mod quic;
mod ranges;
mod retained;
pub mod scheduler;
mod search;
mod sending;
mod seq;
mod sessions;
pub mod settings;
pub mod stream;
pub mod tcp;
mod transmit;

pub use accept::Accept;
pub use algorithms::{Algorithms, ConfigError, Foreign};
pub use counters::{Counters, Mib};
pub use event::{CloseReason, Event, EventKind};
pub use host::{BlackHoles, Ports, Ways};
pub use mptcp::application::Manner;
pub use mptcp::connection::{Connection, Kept, connect_without_route};
pub use mptcp::segment::Arrival;
pub use mptcp::send::plain::Limit;
pub use mptcp::send::standing::standing;
pub use mptcp::subflow::Subflow;
pub use path_choice::{Open, PathChoice, PathWishes};
pub use polypath_settings::RegistryError;
pub use polypath_wire::tcp::Segment;
pub use ranges::RangeSet;
pub use retained::Retained;
pub use sending::{Sending, Standing};
pub use sessions::Sessions;
pub use settings::{
    AckFrequency, AckPath, Buffer, Choice, Config, ControlPath, Keepalive, Limits, MtuProbing,
    Profile, SlowStart, WindowReduction,
};
pub use stream::{Blocked, Cause, Level, Waited};
pub use transmit::{Codepoint, Purpose, Transmit, Tuple};

/// Time in nanoseconds from an origin that the owner chooses.
pub type Nanos = u64;

pub const MICROSECOND: Nanos = 1_000;
pub const MILLISECOND: Nanos = 1_000_000;
pub const SECOND: Nanos = 1_000_000_000;

/// A deadline that never comes.
pub const NEVER: Nanos = Nanos::MAX;

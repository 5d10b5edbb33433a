//! QUIC (RFC 9000, 9001, 9002, 9221) over one path or several (RFC 10069).
//!
//! A [`Connection`] exchanges [`polypath_wire::quic::Datagram`]s: packets as plain data, of exact length, without payload and ciphertext.

mod ack_frequency;
mod acknowledgements;
mod application;
pub mod bytes;
mod challenge;
mod clock;
mod closing;
mod connection;
mod contents;
mod control;
pub mod crypto;
mod data;
mod draft;
pub mod fuzz;
mod handshake;
mod ids;
mod incoming;
mod listener;
mod loss;
mod migration;
mod observe;
mod outgoing;
mod path;
mod path_mtu;
mod paths;
mod receive;
mod received;
mod recovery;
mod refusal;
mod reset;
mod retry;
mod rtt;
mod send;
mod spares;

pub use closing::Cause;
pub use connection::{Connection, Transmit};
pub use listener::{Admission, Greeting, Listener, answer_bytes};
pub use observe::{Discard, Keys, Metrics, Note, RecoveryParameters, RoundTrip};
pub use path::PathState;
pub use received::Codepoint;
pub use reset::ResetKey;
pub use spares::Spares;

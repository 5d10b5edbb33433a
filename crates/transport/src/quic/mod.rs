//! QUIC (RFC 9000, 9001, 9002, 9221) over one path or several (RFC 10069).
//!
//! A [`Connection`] exchanges [`polypath_wire::quic::Datagram`]s: packets as plain data, of exact length, without payload and ciphertext.

mod ack_frequency;
mod ack_requests;
mod acknowledgements;
mod application;
pub mod bytes;
mod challenge;
mod clock;
mod closed;
mod closing;
mod connection;
mod contents;
mod control;
pub mod crypto;
mod data;
mod draft;
pub mod fuzz;
mod handshake;
mod id;
mod ids;
mod incoming;
mod lifetime;
mod listener;
mod loss;
mod migration;
mod moving;
mod note;
mod observe;
mod outgoing;
mod output;
mod parameters;
mod path;
mod path_frames;
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

pub use closed::Cause;
pub use connection::Connection;
pub use listener::{Admission, Greeting, Listener, answer_bytes};
pub use note::{Discard, Note};
pub use observe::{Keys, Metrics, RecoveryParameters, RoundTrip};
pub use output::Transmit;
pub use path::PathState;
pub use received::Codepoint;
pub use reset::ResetKey;
pub use spares::Spares;

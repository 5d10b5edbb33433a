//! Multipath TCP (RFC 8684): one connection over several subflows. A plain TCP connection is the case of one subflow without options.

mod addresses;
mod announcement;
pub(crate) mod application;
mod clock;
pub mod connection;
mod data_timer;
mod ending;
mod fallback;
mod handshake;
pub mod keys;
mod processes;
mod retransmission;
pub mod segment;
pub(crate) mod send;
mod session;
pub mod subflow;

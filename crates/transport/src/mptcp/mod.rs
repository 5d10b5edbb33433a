//! Multipath TCP (RFC 8684): one connection over several subflows. A plain TCP connection is the case of one subflow without options.

mod addresses;
mod application;
mod clock;
pub mod connection;
pub(crate) mod core;
mod ending;
mod handshake;
mod keys;
mod retransmission;
pub mod segment;
mod send;
pub mod subflow;

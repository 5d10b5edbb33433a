//! Multipath TCP (RFC 8684): one connection over several subflows. A plain TCP connection is the case of one subflow without options.

mod addresses;
pub mod connection;
pub(crate) mod core;
mod handshake;
mod keys;
mod receive;
mod retransmission;
pub mod segment;
mod send;
mod window;

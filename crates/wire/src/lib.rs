//! Codecs without state: IPv4, IPv6, TCP and its options, the options of RFC 8684, UDP, ICMP echo, QUIC, OpenFlow,
//! BPDUs of the spanning tree protocols.
//!
//! Parsers take bytes and never panic. Emitters append to a vector, and leave it unchanged when they refuse. Neither
//! keeps anything between calls.

pub mod bpdu;
mod bytes;
mod checksum;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod icmp;
pub mod ip;
pub mod mptcp;
pub mod openflow;
pub mod payload;
pub mod quic;
pub mod tcp;
pub mod udp;

pub use checksum::Checksum;
pub use error::{EmitError, ParseError};

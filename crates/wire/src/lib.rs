//! Codecs without state: IPv4, IPv6, TCP and its options, the options of RFC 8684, UDP.

pub mod mptcp;
pub mod payload;
pub mod tcp;

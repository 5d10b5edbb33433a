//! The Transmission Control Protocol (RFC 9293).

mod segment;

pub use segment::{Flags, Payload, RareOptions, SackBlocks, Segment};

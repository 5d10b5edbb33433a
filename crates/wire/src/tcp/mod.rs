//! The Transmission Control Protocol (RFC 9293).

mod header;
mod options;
mod segment;

pub use header::{MIN_HEADER_LEN, emit, header_len, parse, parse_cut, verify_checksum};
pub use options::{MAX_OPTIONS_LEN, options_len};
pub use segment::{Flags, Payload, RareOptions, SackBlocks, Segment};

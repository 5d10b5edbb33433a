//! QUIC (RFC 9000), datagrams (RFC 9221), multiple paths (RFC 10069) and the frequency of acknowledgements
//! (draft-ietf-quic-ack-frequency-14).
//!
//! A [`Packet`] is plain data, like a TCP segment. Endpoints exchange it in simulation, and the codec converts it from
//! and to an unprotected packet. It does not contain the payload of streams and datagrams; a frame names the stretch
//! that it carries.

mod error;
mod frame;
mod frame_emit;
mod frame_len;
mod frame_parse;
mod frame_type;
mod header;
mod number;
mod packet;
mod parameters;
mod split;
mod varint;

pub use error::{FrameError, ParameterError, TransportError};
pub use frame::{Ack, AckFrequency, Frame, NewConnectionId};
pub use frame_emit::{Carried, encode_frame};
pub use frame_parse::Frames;
pub use header::{is_initial, retry_pseudo_packet};
pub use number::{decode_number, number_len};
pub use packet::{ConnectionId, Datagram, Header, Kind, Packet};
pub use parameters::{PreferredAddress, Role, TransportParameters};
pub use split::{HeaderError, Packets, Protected, reserved_bits_clear, split, split_seen};
pub use varint::{read_varint, varint_len, write_varint};

/// QUIC version 1 (RFC 9000 section 15).
pub const VERSION: u32 = 1;
/// QUIC version 2 (RFC 9369 section 3.1), which observers read; our endpoints speak version 1.
pub const VERSION_2: u32 = 0x6b33_43cf;
/// The authentication tag that packet protection adds (RFC 9001 section 5.3).
pub const TAG_LEN: u32 = 16;
/// The longest value of a variable-length integer (RFC 9000 section 16).
pub const MAX_VARINT: u64 = (1 << 62) - 1;
/// The largest path id, for the nonce has 32 bits for it (RFC 10069 section 2.4).
pub const MAX_PATH_ID: u64 = (1 << 32) - 1;
/// The largest number of streams of a kind (RFC 9000 section 4.6).
pub const MAX_STREAMS: u64 = 1 << 60;

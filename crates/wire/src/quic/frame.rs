//! Frames (RFC 9000 section 19, RFC 9221 section 4, RFC 10069 section 4, draft-ietf-quic-ack-frequency-14 sections 4 and 5).

use super::ConnectionId;

/// An acknowledgement: ACK, or PATH_ACK where it names a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// Absent: ACK, for the space of the packet that carries it (path 0 in the application space).
    pub path: Option<u64>,
    /// The field as it stands in the frame: microseconds, shifted right by the sender's `ack_delay_exponent`.
    pub delay: u64,
    /// First and last packet number of each range, the highest range first.
    pub ranges: Vec<(u64, u64)>,
    /// Packets received with ECT(0), ECT(1), ECN-CE.
    pub ecn: Option<[u64; 3]>,
}

/// NEW_CONNECTION_ID, or PATH_NEW_CONNECTION_ID where it names a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConnectionId {
    pub path: Option<u64>,
    pub sequence: u64,
    pub retire_prior_to: u64,
    pub id: ConnectionId,
    pub reset_token: [u8; 16],
}

/// ACK_FREQUENCY. Each field stands in the frame as it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// A receiver ignores a frame unless its number is above all that it has seen.
    pub sequence: u64,
    /// Ack-eliciting packets that may come without an acknowledgement: the next one is acknowledged at once.
    pub eliciting_threshold: u64,
    /// In microseconds, unlike the transport parameter `max_ack_delay`.
    pub max_delay: u64,
    /// Packet numbers by which a packet may be overtaken before that is acknowledged at once; 0: however many.
    pub reordering_threshold: u64,
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// So many PADDING frames, of one byte each.
    Padding(u32),
    Ping,
    Ack(Box<Ack>),
    ResetStream {
        stream: u64,
        error: u64,
        final_size: u64,
    },
    StopSending {
        stream: u64,
        error: u64,
    },
    Crypto {
        offset: u64,
        data: Vec<u8>,
    },
    NewToken(Vec<u8>),
    /// Payload bytes are not here; in a parsed packet they are where the parser says.
    Stream {
        stream: u64,
        offset: u64,
        len: u32,
        fin: bool,
    },
    MaxData(u64),
    MaxStreamData {
        stream: u64,
        max: u64,
    },
    MaxStreams {
        bidirectional: bool,
        max: u64,
    },
    DataBlocked(u64),
    StreamDataBlocked {
        stream: u64,
        limit: u64,
    },
    StreamsBlocked {
        bidirectional: bool,
        limit: u64,
    },
    NewConnectionId(Box<NewConnectionId>),
    RetireConnectionId {
        path: Option<u64>,
        sequence: u64,
    },
    PathChallenge(u64),
    PathResponse(u64),
    /// CONNECTION_CLOSE of type 0x1c where `frame_type` is present (zero: unknown), of type 0x1d where it is absent.
    ConnectionClose {
        error: u64,
        frame_type: Option<u64>,
        reason: Vec<u8>,
    },
    HandshakeDone,
    /// `number` counts the datagrams of the sender and names their bytes; it is not on the wire.
    Datagram {
        number: u64,
        len: u32,
    },
    /// What the sender asks of acknowledgements.
    AckFrequency(AckFrequency),
    ImmediateAck,
    PathAbandon {
        path: u64,
        error: u64,
    },
    /// PATH_STATUS_BACKUP or PATH_STATUS_AVAILABLE.
    PathStatus {
        path: u64,
        sequence: u64,
        backup: bool,
    },
    MaxPathId(u64),
    PathsBlocked(u64),
    PathCidsBlocked {
        path: u64,
        next_sequence: u64,
    },
}

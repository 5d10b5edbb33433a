//! Types of frames, and what follows from them.

use super::{Frame, Kind};

/// Frame types (RFC 9000 section 19, RFC 9221 section 4, RFC 10069 section 4, draft-ietf-quic-ack-frequency-14 section 11.2).
pub(super) mod code {
    pub const PADDING: u64 = 0x00;
    pub const PING: u64 = 0x01;
    pub const ACK: u64 = 0x02;
    pub const RESET_STREAM: u64 = 0x04;
    pub const STOP_SENDING: u64 = 0x05;
    pub const CRYPTO: u64 = 0x06;
    pub const NEW_TOKEN: u64 = 0x07;
    pub const STREAM: u64 = 0x08;
    /// The highest type of a STREAM frame: every flag set.
    pub const STREAM_LAST: u64 = STREAM | STREAM_OFF | STREAM_LEN | STREAM_FIN;
    pub const MAX_DATA: u64 = 0x10;
    pub const MAX_STREAM_DATA: u64 = 0x11;
    pub const MAX_STREAMS: u64 = 0x12;
    pub const DATA_BLOCKED: u64 = 0x14;
    pub const STREAM_DATA_BLOCKED: u64 = 0x15;
    pub const STREAMS_BLOCKED: u64 = 0x16;
    pub const NEW_CONNECTION_ID: u64 = 0x18;
    pub const RETIRE_CONNECTION_ID: u64 = 0x19;
    pub const PATH_CHALLENGE: u64 = 0x1a;
    pub const PATH_RESPONSE: u64 = 0x1b;
    pub const CONNECTION_CLOSE: u64 = 0x1c;
    pub const CONNECTION_CLOSE_APPLICATION: u64 = 0x1d;
    pub const HANDSHAKE_DONE: u64 = 0x1e;
    pub const IMMEDIATE_ACK: u64 = 0x1f;
    pub const DATAGRAM: u64 = 0x30;
    pub const PATH_ACK: u64 = 0x3e;
    pub const ACK_FREQUENCY: u64 = 0xaf;
    pub const PATH_ABANDON: u64 = 0x3e75;
    pub const PATH_STATUS_BACKUP: u64 = 0x3e76;
    pub const PATH_STATUS_AVAILABLE: u64 = 0x3e77;
    pub const PATH_NEW_CONNECTION_ID: u64 = 0x3e78;
    pub const PATH_RETIRE_CONNECTION_ID: u64 = 0x3e79;
    pub const MAX_PATH_ID: u64 = 0x3e7a;
    pub const PATHS_BLOCKED: u64 = 0x3e7b;
    pub const PATH_CIDS_BLOCKED: u64 = 0x3e7c;

    pub const STREAM_FIN: u64 = 0x01;
    pub const STREAM_LEN: u64 = 0x02;
    pub const STREAM_OFF: u64 = 0x04;
    pub const DATAGRAM_LEN: u64 = 0x01;
    pub const ACK_ECN: u64 = 0x01;
    /// In MAX_STREAMS and STREAMS_BLOCKED.
    pub const UNIDIRECTIONAL: u64 = 0x01;
}

impl Frame {
    /// The type on the wire, with the flags that the canonical layout has.
    pub fn frame_type(&self) -> u64 {
        match self {
            Self::Padding(_) => code::PADDING,
            Self::Ping => code::PING,
            Self::Ack(ack) => {
                let base = if ack.path.is_some() {
                    code::PATH_ACK
                } else {
                    code::ACK
                };
                base | if ack.ecn.is_some() { code::ACK_ECN } else { 0 }
            }
            Self::ResetStream { .. } => code::RESET_STREAM,
            Self::StopSending { .. } => code::STOP_SENDING,
            Self::Crypto { .. } => code::CRYPTO,
            Self::NewToken(_) => code::NEW_TOKEN,
            Self::Stream { offset, fin, .. } => {
                let off = if *offset > 0 { code::STREAM_OFF } else { 0 };
                let fin = if *fin { code::STREAM_FIN } else { 0 };
                code::STREAM | code::STREAM_LEN | off | fin
            }
            Self::MaxData(_) => code::MAX_DATA,
            Self::MaxStreamData { .. } => code::MAX_STREAM_DATA,
            Self::MaxStreams { bidirectional, .. } => code::MAX_STREAMS | direction(*bidirectional),
            Self::DataBlocked(_) => code::DATA_BLOCKED,
            Self::StreamDataBlocked { .. } => code::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked { bidirectional, .. } => {
                code::STREAMS_BLOCKED | direction(*bidirectional)
            }
            Self::NewConnectionId(new) if new.path.is_some() => code::PATH_NEW_CONNECTION_ID,
            Self::NewConnectionId(_) => code::NEW_CONNECTION_ID,
            Self::RetireConnectionId { path: Some(_), .. } => code::PATH_RETIRE_CONNECTION_ID,
            Self::RetireConnectionId { path: None, .. } => code::RETIRE_CONNECTION_ID,
            Self::PathChallenge(_) => code::PATH_CHALLENGE,
            Self::PathResponse(_) => code::PATH_RESPONSE,
            Self::ConnectionClose {
                frame_type: Some(_),
                ..
            } => code::CONNECTION_CLOSE,
            Self::ConnectionClose {
                frame_type: None, ..
            } => code::CONNECTION_CLOSE_APPLICATION,
            Self::HandshakeDone => code::HANDSHAKE_DONE,
            Self::Datagram { .. } => code::DATAGRAM | code::DATAGRAM_LEN,
            Self::AckFrequency(_) => code::ACK_FREQUENCY,
            Self::ImmediateAck => code::IMMEDIATE_ACK,
            Self::PathAbandon { .. } => code::PATH_ABANDON,
            Self::PathStatus { backup: true, .. } => code::PATH_STATUS_BACKUP,
            Self::PathStatus { backup: false, .. } => code::PATH_STATUS_AVAILABLE,
            Self::MaxPathId(_) => code::MAX_PATH_ID,
            Self::PathsBlocked(_) => code::PATHS_BLOCKED,
            Self::PathCidsBlocked { .. } => code::PATH_CIDS_BLOCKED,
        }
    }

    /// Whether the receiver has to acknowledge a packet with it (RFC 9002 section 2).
    #[inline]
    pub fn ack_eliciting(&self) -> bool {
        !matches!(
            self,
            Self::Ack(_) | Self::Padding(_) | Self::ConnectionClose { .. }
        )
    }

    /// Whether a packet of such frames alone leaves the peer's path as it is (RFC 9000 section 9.1).
    pub fn probing(&self) -> bool {
        match self {
            Self::PathChallenge(_) | Self::PathResponse(_) | Self::Padding(_) => true,
            // Of PATH_NEW_CONNECTION_ID the list of probing frames does not speak.
            Self::NewConnectionId(new) => new.path.is_none(),
            _ => false,
        }
    }

    /// Whether a packet of this kind may carry it (RFC 9000 section 12.4, table 3).
    ///
    /// RETIRE_CONNECTION_ID in a 0-RTT packet is allowed, as in the table; no sender has a reason for it (section 12.5).
    pub fn allowed_in(&self, kind: &Kind) -> bool {
        match kind {
            Kind::OneRtt { .. } => true,
            Kind::Initial { .. } | Kind::Handshake => match self {
                Self::Padding(_) | Self::Ping | Self::Crypto { .. } => true,
                Self::Ack(ack) => ack.path.is_none(),
                Self::ConnectionClose { frame_type, .. } => frame_type.is_some(),
                _ => false,
            },
            Kind::ZeroRtt => match self {
                Self::Ack(_)
                | Self::Crypto { .. }
                | Self::NewToken(_)
                | Self::PathResponse(_)
                | Self::HandshakeDone => false,
                // draft-ietf-quic-ack-frequency-14 section 3: what a peer offered before does not count.
                Self::AckFrequency(_) | Self::ImmediateAck => false,
                // RFC 10069 section 4: its frames are for 1-RTT packets alone.
                Self::PathAbandon { .. }
                | Self::PathStatus { .. }
                | Self::MaxPathId(_)
                | Self::PathsBlocked(_)
                | Self::PathCidsBlocked { .. } => false,
                Self::NewConnectionId(new) => new.path.is_none(),
                Self::RetireConnectionId { path, .. } => path.is_none(),
                _ => true,
            },
            Kind::Retry { .. } | Kind::VersionNegotiation(_) => false,
        }
    }
}

fn direction(bidirectional: bool) -> u64 {
    if bidirectional {
        0
    } else {
        code::UNIDIRECTIONAL
    }
}

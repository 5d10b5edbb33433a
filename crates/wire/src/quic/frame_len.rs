//! Encoded sizes.

use super::{Ack, Datagram, Frame, Packet, TAG_LEN, varint_len};

#[allow(
    clippy::len_without_is_empty,
    reason = "a size on the wire, not a collection"
)]
impl Frame {
    /// Bytes of the canonical layout: STREAM and DATAGRAM with their length, STREAM with an offset if it is not 0.
    #[inline]
    pub fn len(&self) -> u32 {
        match self {
            Self::Stream {
                stream,
                offset,
                len,
                ..
            } => Self::stream_len(*stream, *offset, *len),
            Self::Ack(ack) => ack.len(),
            _ => self.other_len(),
        }
    }

    /// The same of a STREAM frame.
    #[inline]
    pub fn stream_len(stream: u64, offset: u64, len: u32) -> u32 {
        let offset = if offset > 0 { varint_len(offset) } else { 0 };
        1 + varint_len(stream) + offset + counted(len)
    }

    fn other_len(&self) -> u32 {
        let kind = varint_len(self.frame_type());
        let fields = match self {
            // `len` has these.
            Self::Stream { .. } | Self::Ack(_) => 0,
            Self::Padding(count) => return *count,
            Self::Ping | Self::HandshakeDone | Self::ImmediateAck => 0,
            Self::ResetStream {
                stream,
                error,
                final_size,
            } => varint_len(*stream) + varint_len(*error) + varint_len(*final_size),
            Self::StopSending { stream, error } => varint_len(*stream) + varint_len(*error),
            Self::Crypto { offset, data } => varint_len(*offset) + counted(data.len() as u32),
            Self::NewToken(token) => counted(token.len() as u32),
            Self::MaxStreamData { stream, max: value }
            | Self::StreamDataBlocked {
                stream,
                limit: value,
            } => varint_len(*stream) + varint_len(*value),
            Self::MaxData(value)
            | Self::MaxStreams { max: value, .. }
            | Self::DataBlocked(value)
            | Self::StreamsBlocked { limit: value, .. }
            | Self::MaxPathId(value)
            | Self::PathsBlocked(value) => varint_len(*value),
            Self::NewConnectionId(new) => {
                optional(new.path)
                    + varint_len(new.sequence)
                    + varint_len(new.retire_prior_to)
                    + 1
                    + new.id.len() as u32
                    + new.reset_token.len() as u32
            }
            Self::RetireConnectionId { path, sequence } => optional(*path) + varint_len(*sequence),
            Self::PathChallenge(_) | Self::PathResponse(_) => 8,
            Self::ConnectionClose {
                error,
                frame_type,
                reason,
            } => varint_len(*error) + optional(*frame_type) + counted(reason.len() as u32),
            Self::Datagram { len, .. } => counted(*len),
            Self::AckFrequency(asked) => {
                varint_len(asked.sequence)
                    + varint_len(asked.eliciting_threshold)
                    + varint_len(asked.max_delay)
                    + varint_len(asked.reordering_threshold)
            }
            Self::PathAbandon { path, error } => varint_len(*path) + varint_len(*error),
            Self::PathStatus { path, sequence, .. }
            | Self::PathCidsBlocked {
                path,
                next_sequence: sequence,
            } => varint_len(*path) + varint_len(*sequence),
        };
        kind + fields
    }
}

#[allow(
    clippy::len_without_is_empty,
    reason = "a size on the wire, not a collection"
)]
impl Ack {
    /// Bytes of its frame; none without a range.
    #[inline]
    pub fn len(&self) -> u32 {
        let Some((&(first, largest), rest)) = self.ranges.split_first() else {
            // Without a range there is no frame.
            return 0;
        };
        let mut len = 1
            + optional(self.path)
            + varint_len(largest)
            + varint_len(self.delay)
            + varint_len(rest.len() as u64)
            + varint_len(largest.wrapping_sub(first));
        let mut smallest = first;
        for &(first, last) in rest {
            len += varint_len(smallest.wrapping_sub(last).wrapping_sub(2))
                + varint_len(last.wrapping_sub(first));
            smallest = first;
        }
        if let Some(ecn) = self.ecn {
            len += ecn.into_iter().map(varint_len).sum::<u32>();
        }
        len
    }
}

/// A length and so many bytes.
#[inline]
fn counted(len: u32) -> u32 {
    varint_len(u64::from(len)) + len
}

#[inline]
fn optional(value: Option<u64>) -> u32 {
    value.map_or(0, varint_len)
}

#[allow(
    clippy::len_without_is_empty,
    reason = "a size on the wire, not a collection"
)]
impl Packet {
    /// Bytes of its frames.
    pub fn payload_len(&self) -> u32 {
        self.frames.iter().map(Frame::len).sum()
    }

    /// Bytes on the wire: header, frames, and the tag of the kinds that have one.
    ///
    /// The packet number and the frames of a protected packet must be 4 bytes or more together (RFC 9001 section 5.4.2); the
    /// endpoint adds PADDING where they are fewer.
    pub fn len(&self) -> u32 {
        let payload = self.payload_len();
        let tag = if self.header.kind.is_protected() {
            TAG_LEN
        } else {
            0
        };
        self.header.len(payload) + payload + tag
    }
}

#[allow(
    clippy::len_without_is_empty,
    reason = "a size on the wire, not a collection"
)]
impl Datagram {
    /// Bytes of the payload of UDP.
    pub fn len(&self) -> u32 {
        self.packets.iter().map(Packet::len).sum()
    }
}

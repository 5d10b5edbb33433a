//! Frames as bytes, in the canonical layout.

use super::frame_type::code;
use super::varint::write_varint;
use super::{
    Ack, ConnectionId, Frame, MAX_PATH_ID, MAX_STREAMS, MAX_VARINT, NewConnectionId, Packet,
};
use crate::EmitError;

/// Which bytes a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    Stream { stream: u64, offset: u64 },
    Datagram { number: u64 },
}

/// Appends a frame. `payload` fills in the bytes of a STREAM or DATAGRAM frame.
pub fn encode_frame(
    frame: &Frame,
    payload: &mut dyn FnMut(Carried, &mut [u8]),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    let start = out.len();
    encode(frame, payload, out).inspect_err(|_| out.truncate(start))
}

impl Packet {
    /// Appends header and frames, before protection and without the tag. Returns where in the packet its number begins.
    pub fn encode(
        &self,
        payload: &mut dyn FnMut(Carried, &mut [u8]),
        out: &mut Vec<u8>,
    ) -> Result<usize, EmitError> {
        let start = out.len();
        let number_offset = self.header.encode(self.payload_len(), out)?;
        for frame in &self.frames {
            encode_frame(frame, payload, out).inspect_err(|_| out.truncate(start))?;
        }
        Ok(number_offset)
    }
}

fn encode(
    frame: &Frame,
    payload: &mut dyn FnMut(Carried, &mut [u8]),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    if let Frame::Padding(count) = frame {
        out.resize(out.len() + *count as usize, code::PADDING as u8);
        return Ok(());
    }
    write_varint(frame.frame_type(), out)?;
    match frame {
        Frame::Padding(_) | Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => Ok(()),
        Frame::Ack(ack) => encode_ack(ack, out),
        Frame::ResetStream {
            stream,
            error,
            final_size,
        } => varints([*stream, *error, *final_size], out),
        Frame::StopSending { stream, error } => varints([*stream, *error], out),
        Frame::Crypto { offset, data } => {
            end_fits(*offset, data.len())?;
            write_varint(*offset, out)?;
            counted(data, out)
        }
        Frame::NewToken(token) => {
            require(!token.is_empty(), "NEW_TOKEN without a token")?;
            counted(token, out)
        }
        Frame::Stream {
            stream,
            offset,
            len,
            fin: _,
        } => {
            end_fits(*offset, *len as usize)?;
            write_varint(*stream, out)?;
            if *offset > 0 {
                write_varint(*offset, out)?;
            }
            let carried = Carried::Stream {
                stream: *stream,
                offset: *offset,
            };
            filled(carried, *len, payload, out)
        }
        Frame::MaxStreamData { stream, max: value }
        | Frame::StreamDataBlocked {
            stream,
            limit: value,
        } => varints([*stream, *value], out),
        Frame::MaxData(value) | Frame::DataBlocked(value) => write_varint(*value, out),
        Frame::MaxStreams { max: value, .. } | Frame::StreamsBlocked { limit: value, .. } => {
            require(*value <= MAX_STREAMS, "more than 2^60 streams")?;
            write_varint(*value, out)
        }
        Frame::NewConnectionId(new) => encode_new_connection_id(new, out),
        Frame::RetireConnectionId { path, sequence } => {
            if let Some(path) = path {
                write_path(*path, out)?;
            }
            write_varint(*sequence, out)
        }
        Frame::PathChallenge(data) | Frame::PathResponse(data) => {
            out.extend(data.to_be_bytes());
            Ok(())
        }
        Frame::ConnectionClose {
            error,
            frame_type,
            reason,
        } => {
            write_varint(*error, out)?;
            if let Some(frame_type) = frame_type {
                write_varint(*frame_type, out)?;
            }
            counted(reason, out)
        }
        Frame::Datagram { number, len } => {
            filled(Carried::Datagram { number: *number }, *len, payload, out)
        }
        Frame::AckFrequency(asked) => varints(
            [
                asked.sequence,
                asked.eliciting_threshold,
                asked.max_delay,
                asked.reordering_threshold,
            ],
            out,
        ),
        Frame::PathAbandon { path, error: value }
        | Frame::PathStatus {
            path,
            sequence: value,
            ..
        }
        | Frame::PathCidsBlocked {
            path,
            next_sequence: value,
        } => {
            write_path(*path, out)?;
            write_varint(*value, out)
        }
        Frame::MaxPathId(path) | Frame::PathsBlocked(path) => write_path(*path, out),
    }
}

/// RFC 9000 section 19.3.
fn encode_ack(ack: &Ack, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let Some((&(first, largest), rest)) = ack.ranges.split_first() else {
        return Err(EmitError::Field("an acknowledgement without a range"));
    };
    if let Some(path) = ack.path {
        write_path(path, out)?;
    }
    varints([largest, ack.delay, rest.len() as u64], out)?;
    write_varint(difference(largest, first, 0)?, out)?;
    let mut smallest = first;
    for &(first, last) in rest {
        // Section 19.3.1: between two ranges one packet is missing at least.
        write_varint(difference(smallest, last, 2)?, out)?;
        write_varint(difference(last, first, 0)?, out)?;
        smallest = first;
    }
    ack.ecn.map_or(Ok(()), |ecn| varints(ecn, out))
}

fn encode_new_connection_id(new: &NewConnectionId, out: &mut Vec<u8>) -> Result<(), EmitError> {
    require(!new.id.is_empty(), "NEW_CONNECTION_ID with an empty id")?;
    require(
        new.retire_prior_to <= new.sequence,
        "NEW_CONNECTION_ID that retires itself",
    )?;
    if let Some(path) = new.path {
        write_path(path, out)?;
    }
    varints([new.sequence, new.retire_prior_to], out)?;
    write_connection_id(&new.id, out);
    out.extend(new.reset_token);
    Ok(())
}

/// Its length in one byte, and the id.
pub(super) fn write_connection_id(id: &ConnectionId, out: &mut Vec<u8>) {
    out.push(id.len() as u8);
    out.extend_from_slice(id.as_slice());
}

fn write_path(path: u64, out: &mut Vec<u8>) -> Result<(), EmitError> {
    require(path <= MAX_PATH_ID, "a path id above 2^32-1")?;
    write_varint(path, out)
}

fn varints<const N: usize>(values: [u64; N], out: &mut Vec<u8>) -> Result<(), EmitError> {
    values
        .into_iter()
        .try_for_each(|value| write_varint(value, out))
}

fn counted(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), EmitError> {
    write_varint(bytes.len() as u64, out)?;
    out.extend_from_slice(bytes);
    Ok(())
}

fn filled(
    carried: Carried,
    len: u32,
    payload: &mut dyn FnMut(Carried, &mut [u8]),
    out: &mut Vec<u8>,
) -> Result<(), EmitError> {
    write_varint(u64::from(len), out)?;
    let start = out.len();
    out.resize(start + len as usize, 0);
    if len > 0 {
        payload(carried, &mut out[start..]);
    }
    Ok(())
}

/// `from - to - less` of packet numbers in the order of an acknowledgement.
fn difference(from: u64, to: u64, less: u64) -> Result<u64, EmitError> {
    from.checked_sub(to)
        .and_then(|difference| difference.checked_sub(less))
        .ok_or(EmitError::Field("acknowledged ranges out of order"))
}

fn end_fits(offset: u64, len: usize) -> Result<(), EmitError> {
    require(
        offset
            .checked_add(len as u64)
            .is_some_and(|end| end <= MAX_VARINT),
        "data beyond the last offset",
    )
}

fn require(condition: bool, otherwise: &'static str) -> Result<(), EmitError> {
    if condition {
        Ok(())
    } else {
        Err(EmitError::Field(otherwise))
    }
}

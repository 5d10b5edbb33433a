//! Frames from the payload of an unprotected packet.

use super::frame_type::code;
use super::varint::Reader;
use super::{
    Ack, AckFrequency, ConnectionId, Frame, FrameError, MAX_PATH_ID, MAX_STREAMS, MAX_VARINT,
    NewConnectionId, TransportError, varint_len,
};

/// The frames of a packet, each with the payload that a STREAM or DATAGRAM frame carries.
///
/// A run of PADDING is one frame. `Datagram::number` is 0. The first error ends the iteration. A packet without frames is an error
/// (RFC 9000 section 12.4). Which frames the kind of packet allows is for [`Frame::allowed_in`] to say.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Between,
    End,
}

/// What is wrong with the fields of a frame.
type Refusal = (TransportError, &'static str);

const TRUNCATED: Refusal = (
    TransportError::FRAME_ENCODING_ERROR,
    "the packet ends within the frame",
);

const fn encoding(reason: &'static str) -> Refusal {
    (TransportError::FRAME_ENCODING_ERROR, reason)
}

impl<'a> Frames<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(payload),
            state: State::Start,
        }
    }

    fn frame(&mut self) -> Result<(Frame, &'a [u8]), FrameError> {
        let before = self.reader.remaining();
        let frame_type = self.reader.varint().ok_or(FrameError {
            code: TransportError::FRAME_ENCODING_ERROR,
            frame_type: 0,
            reason: "the packet ends within the type of a frame",
        })?;
        let (code, reason) = if before - self.reader.remaining() > varint_len(frame_type) as usize {
            // RFC 9000 section 12.4 demands the shortest encoding of the type alone.
            (
                TransportError::PROTOCOL_VIOLATION,
                "the type of the frame is not in its shortest encoding",
            )
        } else {
            match fields(frame_type, &mut self.reader) {
                Ok(frame) => return Ok(frame),
                Err(refusal) => refusal,
            }
        };
        Err(FrameError {
            code,
            frame_type,
            reason,
        })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<(Frame, &'a [u8]), FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let state = std::mem::replace(&mut self.state, State::Between);
        let item = match state {
            State::Start if self.reader.is_empty() => Err(FrameError {
                code: TransportError::PROTOCOL_VIOLATION,
                frame_type: 0,
                reason: "a packet without frames",
            }),
            State::Start | State::Between if !self.reader.is_empty() => self.frame(),
            _ => {
                self.state = State::End;
                return None;
            }
        };
        if item.is_err() {
            self.state = State::End;
        }
        Some(item)
    }
}

fn fields<'a>(frame_type: u64, reader: &mut Reader<'a>) -> Result<(Frame, &'a [u8]), Refusal> {
    let mut carried: &[u8] = &[];
    let frame = match frame_type {
        code::PADDING => Frame::Padding(1 + padding(reader)),
        code::PING => Frame::Ping,
        0x02..=0x03 | 0x3e..=0x3f => Frame::Ack(Box::new(ack(frame_type, reader)?)),
        code::RESET_STREAM => Frame::ResetStream {
            stream: varint(reader)?,
            error: varint(reader)?,
            final_size: varint(reader)?,
        },
        code::STOP_SENDING => Frame::StopSending {
            stream: varint(reader)?,
            error: varint(reader)?,
        },
        code::CRYPTO => {
            let offset = varint(reader)?;
            let data = counted(reader)?.to_vec();
            end_fits(offset, data.len())?;
            Frame::Crypto { offset, data }
        }
        code::NEW_TOKEN => {
            let token = counted(reader)?;
            if token.is_empty() {
                return Err(encoding("NEW_TOKEN without a token"));
            }
            Frame::NewToken(token.to_vec())
        }
        code::STREAM..=code::STREAM_LAST => {
            let stream = varint(reader)?;
            let offset = if frame_type & code::STREAM_OFF != 0 {
                varint(reader)?
            } else {
                0
            };
            carried = payload(frame_type & code::STREAM_LEN != 0, reader)?;
            end_fits(offset, carried.len())?;
            Frame::Stream {
                stream,
                offset,
                len: length(carried)?,
                fin: frame_type & code::STREAM_FIN != 0,
            }
        }
        code::MAX_DATA => Frame::MaxData(varint(reader)?),
        code::MAX_STREAM_DATA => Frame::MaxStreamData {
            stream: varint(reader)?,
            max: varint(reader)?,
        },
        0x12..=0x13 => Frame::MaxStreams {
            bidirectional: frame_type == code::MAX_STREAMS,
            max: streams(reader)?,
        },
        code::DATA_BLOCKED => Frame::DataBlocked(varint(reader)?),
        code::STREAM_DATA_BLOCKED => Frame::StreamDataBlocked {
            stream: varint(reader)?,
            limit: varint(reader)?,
        },
        0x16..=0x17 => Frame::StreamsBlocked {
            bidirectional: frame_type == code::STREAMS_BLOCKED,
            limit: streams(reader)?,
        },
        code::NEW_CONNECTION_ID => new_connection_id(None, reader)?,
        code::PATH_NEW_CONNECTION_ID => new_connection_id(Some(path(reader)?), reader)?,
        code::RETIRE_CONNECTION_ID => Frame::RetireConnectionId {
            path: None,
            sequence: varint(reader)?,
        },
        code::PATH_RETIRE_CONNECTION_ID => Frame::RetireConnectionId {
            path: Some(path(reader)?),
            sequence: varint(reader)?,
        },
        code::PATH_CHALLENGE => Frame::PathChallenge(eight_bytes(reader)?),
        code::PATH_RESPONSE => Frame::PathResponse(eight_bytes(reader)?),
        code::CONNECTION_CLOSE => Frame::ConnectionClose {
            error: varint(reader)?,
            frame_type: Some(varint(reader)?),
            reason: counted(reader)?.to_vec(),
        },
        code::CONNECTION_CLOSE_APPLICATION => Frame::ConnectionClose {
            error: varint(reader)?,
            frame_type: None,
            reason: counted(reader)?.to_vec(),
        },
        code::HANDSHAKE_DONE => Frame::HandshakeDone,
        0x30..=0x31 => {
            carried = payload(frame_type & code::DATAGRAM_LEN != 0, reader)?;
            Frame::Datagram {
                number: 0,
                len: length(carried)?,
            }
        }
        code::ACK_FREQUENCY => Frame::AckFrequency(AckFrequency {
            sequence: varint(reader)?,
            eliciting_threshold: varint(reader)?,
            max_delay: varint(reader)?,
            reordering_threshold: varint(reader)?,
        }),
        code::IMMEDIATE_ACK => Frame::ImmediateAck,
        code::PATH_ABANDON => Frame::PathAbandon {
            path: path(reader)?,
            error: varint(reader)?,
        },
        code::PATH_STATUS_BACKUP | code::PATH_STATUS_AVAILABLE => Frame::PathStatus {
            path: path(reader)?,
            sequence: varint(reader)?,
            backup: frame_type == code::PATH_STATUS_BACKUP,
        },
        code::MAX_PATH_ID => Frame::MaxPathId(path(reader)?),
        code::PATHS_BLOCKED => Frame::PathsBlocked(path(reader)?),
        code::PATH_CIDS_BLOCKED => Frame::PathCidsBlocked {
            path: path(reader)?,
            next_sequence: varint(reader)?,
        },
        _ => return Err(encoding("the type of the frame is unknown")),
    };
    Ok((frame, carried))
}

/// RFC 9000 section 19.3, RFC 10069 section 4.1.
fn ack(frame_type: u64, reader: &mut Reader<'_>) -> Result<Ack, Refusal> {
    const NEGATIVE: Refusal = encoding("a packet number below zero");
    let path = if frame_type & !code::ACK_ECN == code::PATH_ACK {
        Some(path(reader)?)
    } else {
        None
    };
    let mut last = varint(reader)?;
    let delay = varint(reader)?;
    let more = varint(reader)?;
    let mut first = last.checked_sub(varint(reader)?).ok_or(NEGATIVE)?;
    // Each further range takes two bytes at least, whatever the count says.
    let room = more.min(reader.remaining() as u64 / 2) as usize;
    let mut ranges = Vec::with_capacity(1 + room);
    ranges.push((first, last));
    for _ in 0..more {
        // Section 19.3.1.
        let gap = varint(reader)?;
        last = first.checked_sub(gap + 2).ok_or(NEGATIVE)?;
        first = last.checked_sub(varint(reader)?).ok_or(NEGATIVE)?;
        ranges.push((first, last));
    }
    let ecn = if frame_type & code::ACK_ECN != 0 {
        Some([varint(reader)?, varint(reader)?, varint(reader)?])
    } else {
        None
    };
    Ok(Ack {
        path,
        delay,
        ranges,
        ecn,
    })
}

/// RFC 9000 section 19.15.
fn new_connection_id(path: Option<u64>, reader: &mut Reader<'_>) -> Result<Frame, Refusal> {
    let sequence = varint(reader)?;
    let retire_prior_to = varint(reader)?;
    if retire_prior_to > sequence {
        return Err(encoding("a connection id that retires itself"));
    }
    let len = reader.u8().ok_or(TRUNCATED)?;
    if !(1..=ConnectionId::MAX).contains(&usize::from(len)) {
        return Err(encoding(
            "a connection id of less than 1 or more than 20 bytes",
        ));
    }
    let id = ConnectionId::new(reader.take(len.into()).ok_or(TRUNCATED)?);
    Ok(Frame::NewConnectionId(Box::new(NewConnectionId {
        path,
        sequence,
        retire_prior_to,
        id,
        reset_token: reader.array().ok_or(TRUNCATED)?,
    })))
}

fn padding(reader: &mut Reader<'_>) -> u32 {
    let zeros = reader.clone().rest().iter().take_while(|&&byte| byte == 0);
    let count = zeros.count();
    reader.take(count as u64);
    count as u32
}

fn varint(reader: &mut Reader<'_>) -> Result<u64, Refusal> {
    reader.varint().ok_or(TRUNCATED)
}

fn counted<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Refusal> {
    let len = varint(reader)?;
    reader.take(len).ok_or(TRUNCATED)
}

/// Up to the end of the packet where the frame has no length.
fn payload<'a>(has_length: bool, reader: &mut Reader<'a>) -> Result<&'a [u8], Refusal> {
    if has_length {
        counted(reader)
    } else {
        Ok(reader.rest())
    }
}

fn length(carried: &[u8]) -> Result<u32, Refusal> {
    u32::try_from(carried.len()).map_err(|_| encoding("more payload than a datagram holds"))
}

fn eight_bytes(reader: &mut Reader<'_>) -> Result<u64, Refusal> {
    reader.array().map(u64::from_be_bytes).ok_or(TRUNCATED)
}

/// A path id that no endpoint can have announced is a violation (RFC 10069 sections 4 and 4.6).
fn path(reader: &mut Reader<'_>) -> Result<u64, Refusal> {
    match varint(reader)? {
        path @ 0..=MAX_PATH_ID => Ok(path),
        _ => Err((TransportError::PROTOCOL_VIOLATION, "a path id above 2^32-1")),
    }
}

/// RFC 9000 sections 19.11 and 19.14.
fn streams(reader: &mut Reader<'_>) -> Result<u64, Refusal> {
    match varint(reader)? {
        count @ 0..=MAX_STREAMS => Ok(count),
        _ => Err(encoding("more than 2^60 streams")),
    }
}

/// RFC 9000 sections 19.6 and 19.8.
fn end_fits(offset: u64, len: usize) -> Result<(), Refusal> {
    // Neither reaches 2^63.
    if offset + len as u64 <= MAX_VARINT {
        Ok(())
    } else {
        Err(encoding("data beyond the last offset"))
    }
}

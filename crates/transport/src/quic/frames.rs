//! What frames of the peer's do, but for those about paths (RFC 9000 section 19).

use polypath_wire::quic::{Frame, TransportError};

use super::crypto::Level;
use super::handshake::HandshakeError;
use super::streams::{Fault, Part};
use super::transfer::Transfer;
use crate::CloseReason;

impl Transfer {
    /// A frame that is not about paths, on one of them.
    pub(super) fn on_frame(&mut self, level: Level, path: usize, frame: &Frame) {
        match frame {
            Frame::Padding(_) | Frame::Ping | Frame::PathChallenge(_) => {}
            Frame::NewToken(_) => {
                if !self.packets.identity.client() {
                    // RFC 9000 section 19.7.
                    let reason = "only a server gives tokens";
                    self.fail(
                        TransportError::PROTOCOL_VIOLATION,
                        frame.frame_type(),
                        reason,
                    );
                }
            }
            Frame::Ack(ack) if level == Level::OneRtt => self.on_application_ack(ack),
            Frame::Ack(ack) => self.on_handshake_ack(level, path, ack),
            Frame::Crypto { offset, data } => {
                if let Err(error) = self.packets.handshake.on_crypto(level, *offset, data) {
                    match error {
                        HandshakeError::BufferExceeded => self.fail(
                            TransportError::CRYPTO_BUFFER_EXCEEDED,
                            frame.frame_type(),
                            "too many bytes of the handshake out of order",
                        ),
                        HandshakeError::Tls(tls) => self.fail(
                            TransportError::crypto(tls.alert()),
                            frame.frame_type(),
                            "TLS refuses the handshake",
                        ),
                    }
                }
            }
            Frame::Stream { .. } => self.on_stream(path, frame),
            Frame::ResetStream {
                stream,
                error,
                final_size,
            } => {
                if self.admit_stream(*stream, frame, Part::Receiving) {
                    let at = (path, self.packets.now);
                    if let Err(violation) = self.streams.on_reset(*stream, *error, *final_size, at)
                    {
                        self.fail_for(violation.fault(), frame);
                    }
                }
            }
            Frame::StopSending { stream, error } => {
                if self.admit_stream(*stream, frame, Part::Sending)
                    && let Some(final_size) = self.streams.outgoing_mut().reset(*stream)
                {
                    // RFC 9000 section 3.5.
                    self.packets.control.push(Frame::ResetStream {
                        stream: *stream,
                        error: *error,
                        final_size,
                    });
                }
            }
            Frame::MaxData(max) => self.streams.outgoing_mut().raise_max(*max),
            Frame::MaxStreamData { stream, max } => {
                if self.admit_stream(*stream, frame, Part::Sending) {
                    self.streams.outgoing_mut().raise_stream_max(*stream, *max);
                }
            }
            Frame::MaxStreams { bidirectional, max } => {
                self.streams.raise_admitted(*bidirectional, *max);
            }
            Frame::StreamDataBlocked { stream, .. } => {
                self.admit_stream(*stream, frame, Part::Receiving);
            }
            Frame::DataBlocked(_) | Frame::StreamsBlocked { .. } => {}
            Frame::Datagram { number, len } => {
                if u64::from(frame.len()) > self.packets.parameters.own().max_datagram_frame_size {
                    // RFC 9221 section 3.
                    let reason = "a datagram longer than was admitted";
                    return self.fail(
                        TransportError::PROTOCOL_VIOLATION,
                        frame.frame_type(),
                        reason,
                    );
                }
                self.datagrams.on_arrival(*number, *len);
            }
            Frame::ConnectionClose {
                error,
                frame_type,
                reason,
            } => self.on_close(*error, *frame_type, reason),
            Frame::HandshakeDone => {
                if !self.packets.identity.client() {
                    let reason = "only a server confirms the handshake";
                    return self.fail(
                        TransportError::PROTOCOL_VIOLATION,
                        frame.frame_type(),
                        reason,
                    );
                }
                self.packets.handshake.confirm();
                self.packets.discard(Level::Handshake);
            }
            Frame::AckFrequency(asked) => self.on_ack_frequency(*asked),
            Frame::ImmediateAck => self.packets.paths.expedite_acks(path, self.packets.now),
            // These are about paths, and have an owner of their own.
            Frame::PathResponse(_)
            | Frame::NewConnectionId(_)
            | Frame::RetireConnectionId { .. }
            | Frame::PathAbandon { .. }
            | Frame::PathStatus { .. }
            | Frame::MaxPathId(_)
            | Frame::PathsBlocked(_)
            | Frame::PathCidsBlocked { .. } => {}
        }
    }

    #[inline(always)]
    pub(super) fn on_stream(&mut self, path: usize, frame: &Frame) {
        let Frame::Stream {
            stream,
            offset,
            len,
            fin,
        } = *frame
        else {
            return;
        };
        if self.admit_stream(stream, frame, Part::Receiving) {
            let at = (path, self.packets.now);
            match self.streams.on_data(stream, offset, len, fin, at) {
                Ok(()) => {
                    self.packets.paths[path].traffic_mut().on_received(len);
                    if len == 0 {
                        self.packets.paths[path].traffic_mut().note_frame(frame);
                    }
                }
                Err(violation) => self.fail_for(violation.fault(), frame),
            }
        }
    }

    pub(super) fn fail_for(&mut self, (error, reason): Fault, frame: &Frame) {
        self.fail(error, frame.frame_type(), reason);
    }

    fn on_close(&mut self, error: u64, frame_type: Option<u64>, reason: &[u8]) {
        self.packets.lifetime.on_close(error, reason);
        let orderly = error == 0 && (frame_type.is_none() || frame_type == Some(0));
        self.end(if orderly && self.packets.lifetime.established() {
            CloseReason::Finished
        } else {
            CloseReason::Reset
        });
    }

    /// Whether a frame may be about this stream; the connection is closed for it otherwise.
    #[inline(always)]
    fn admit_stream(&mut self, stream: u64, frame: &Frame, part: Part) -> bool {
        self.streams.has_begun(stream) || self.admit_other_stream(stream, frame, part)
    }

    /// The same for a stream of one direction, and for one that has not begun.
    fn admit_other_stream(&mut self, stream: u64, frame: &Frame, part: Part) -> bool {
        let admitted = self
            .streams
            .admit(stream, part, self.packets.parameters.peer());
        if let Err(fault) = admitted {
            self.fail_for(fault, frame);
        }
        admitted.is_ok()
    }
}

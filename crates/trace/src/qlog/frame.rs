//! Frames in qlog (quic-events section 8.13).
//!
//! The frames of RFC 10069 and of draft-ietf-quic-ack-frequency have the names of noq-proto's qlog.

use polypath_wire::quic::{Ack, Frame, NewConnectionId, TransportError};
use serde_json::{Value, json};

use super::{hex, milliseconds};

/// A frame; `exponent` is the `ack_delay_exponent` of its sender.
pub(super) fn frame(frame: &Frame, exponent: u64) -> Value {
    match frame {
        Frame::Padding(count) => json!({"frame_type": "padding", "raw": {"payload_length": count}}),
        Frame::Ping => json!({"frame_type": "ping"}),
        Frame::Ack(value) => ack(value, exponent),
        Frame::ResetStream {
            stream,
            error,
            final_size,
        } => json!({
            "frame_type": "reset_stream", "stream_id": stream, "error": "unknown", "error_code": error, "final_size": final_size,
        }),
        Frame::StopSending { stream, error } => json!({
            "frame_type": "stop_sending", "stream_id": stream, "error": "unknown", "error_code": error,
        }),
        Frame::Crypto { offset, data } => {
            json!({"frame_type": "crypto", "offset": offset, "raw": {"length": data.len()}})
        }
        Frame::NewToken(token) => {
            json!({"frame_type": "new_token", "token": {"raw": {"length": token.len(), "data": hex(token)}}})
        }
        Frame::Stream {
            stream,
            offset,
            len,
            fin,
        } => json!({
            "frame_type": "stream", "stream_id": stream, "offset": offset, "fin": fin, "raw": {"length": len},
        }),
        Frame::MaxData(max) => json!({"frame_type": "max_data", "maximum": max}),
        Frame::MaxStreamData { stream, max } => {
            json!({"frame_type": "max_stream_data", "stream_id": stream, "maximum": max})
        }
        Frame::MaxStreams { bidirectional, max } => {
            json!({"frame_type": "max_streams", "stream_type": kind(*bidirectional), "maximum": max})
        }
        Frame::DataBlocked(limit) => json!({"frame_type": "data_blocked", "limit": limit}),
        Frame::StreamDataBlocked { stream, limit } => {
            json!({"frame_type": "stream_data_blocked", "stream_id": stream, "limit": limit})
        }
        Frame::StreamsBlocked {
            bidirectional,
            limit,
        } => {
            json!({"frame_type": "streams_blocked", "stream_type": kind(*bidirectional), "limit": limit})
        }
        Frame::NewConnectionId(new) => new_connection_id(new),
        Frame::RetireConnectionId { path, sequence } => named(
            "retire_connection_id",
            *path,
            json!({"sequence_number": sequence}),
        ),
        Frame::PathChallenge(data) => {
            json!({"frame_type": "path_challenge", "data": hex(&data.to_be_bytes())})
        }
        Frame::PathResponse(data) => {
            json!({"frame_type": "path_response", "data": hex(&data.to_be_bytes())})
        }
        Frame::ConnectionClose {
            error,
            frame_type,
            reason,
        } => close(*error, *frame_type, reason),
        Frame::HandshakeDone => json!({"frame_type": "handshake_done"}),
        Frame::Datagram { len, .. } => json!({"frame_type": "datagram", "raw": {"length": len}}),
        Frame::AckFrequency(asked) => json!({
            "frame_type": "ack_frequency",
            "sequence_number": asked.sequence,
            "ack_eliciting_threshold": asked.eliciting_threshold,
            "requested_max_ack_delay": asked.max_delay,
            "reordering_threshold": asked.reordering_threshold,
        }),
        Frame::ImmediateAck => json!({"frame_type": "immediate_ack"}),
        Frame::PathAbandon { path, error } => {
            json!({"frame_type": "path_abandon", "path_id": path, "error_code": error})
        }
        Frame::PathStatus {
            path,
            sequence,
            backup,
        } => {
            let name = if *backup {
                "path_status_backup"
            } else {
                "path_status_available"
            };
            json!({"frame_type": name, "path_id": path, "path_status_sequence_number": sequence})
        }
        Frame::MaxPathId(max) => json!({"frame_type": "max_path_id", "maximum_path_id": max}),
        Frame::PathsBlocked(max) => json!({"frame_type": "paths_blocked", "maximum_path_id": max}),
        Frame::PathCidsBlocked {
            path,
            next_sequence,
        } => json!({
            "frame_type": "path_cids_blocked", "path_id": path, "next_sequence_number": next_sequence,
        }),
    }
}

/// A frame that has a form with the id of a path, whose name then begins with `path_`.
fn named(name: &str, path: Option<u64>, mut fields: Value) -> Value {
    match path {
        None => fields["frame_type"] = name.into(),
        Some(path) => {
            fields["frame_type"] = format!("path_{name}").into();
            fields["path_id"] = path.into();
        }
    }
    fields
}

fn ack(ack: &Ack, exponent: u64) -> Value {
    let ranges = ack.ranges.iter().map(|&(first, last)| {
        if first == last {
            json!([first])
        } else {
            json!([first, last])
        }
    });
    let delay = ack.delay.saturating_mul(1 << exponent.min(20));
    let mut fields = json!({
        "ack_delay": milliseconds(delay.saturating_mul(1000)),
        "acked_ranges": ranges.collect::<Vec<_>>(),
    });
    if let Some([ect0, ect1, ce]) = ack.ecn {
        fields["ect0"] = ect0.into();
        fields["ect1"] = ect1.into();
        fields["ce"] = ce.into();
    }
    named("ack", ack.path, fields)
}

fn new_connection_id(new: &NewConnectionId) -> Value {
    let fields = json!({
        "sequence_number": new.sequence,
        "retire_prior_to": new.retire_prior_to,
        "connection_id_length": new.id.len(),
        "connection_id": hex(new.id.as_slice()),
        "stateless_reset_token": hex(&new.reset_token),
    });
    named("new_connection_id", new.path, fields)
}

fn close(error: u64, frame_type: Option<u64>, reason: &[u8]) -> Value {
    let known = frame_type.and_then(|_| error_name(TransportError(error)));
    let mut fields = json!({
        "frame_type": "connection_close",
        "error_space": if frame_type.is_some() { "transport" } else { "application" },
        "reason": String::from_utf8_lossy(reason),
    });
    match known {
        Some(name) => fields["error"] = name.into(),
        None => {
            fields["error"] = "unknown".into();
            fields["error_code"] = error.into();
        }
    }
    if let Some(kind) = frame_type.filter(|kind| *kind != 0) {
        fields["trigger_frame_type"] = kind.into();
    }
    fields
}

/// An error of the transport as qlog names it; absent for one that it has no name for.
pub fn error_name(error: TransportError) -> Option<String> {
    match (error.name(), error.alert()) {
        (Some(name), _) => Some(name.to_lowercase()),
        (None, Some(_)) => Some(format!("crypto_error_{:#x}", error.0)),
        (None, None) => None,
    }
}

fn kind(bidirectional: bool) -> &'static str {
    if bidirectional {
        "bidirectional"
    } else {
        "unidirectional"
    }
}

//! Frames that the peer may not send in the present state (RFC 9000 sections 19.15, 19.16 and 20.1, RFC 10069 section
//! 4).

use polypath_wire::quic::{Ack, Frame, Header, TransportError};

use super::packets::Packets;
use super::parameters::Parameters;
use super::path_ids::PathIds;
use super::streams::Fault;

/// The path that a frame of RFC 10069 names, or the limit in its place.
fn named_path(frame: &Frame) -> Option<u64> {
    match frame {
        Frame::Ack(ack) => ack.path,
        Frame::NewConnectionId(new) => new.path,
        Frame::RetireConnectionId { path, .. } => *path,
        Frame::PathAbandon { path, .. }
        | Frame::PathStatus { path, .. }
        | Frame::PathCidsBlocked { path, .. }
        | Frame::PathsBlocked(path) => Some(*path),
        _ => None,
    }
}

/// Whether nothing speaks against an acknowledgement of the application level.
pub(super) fn admits_ack(ack: &Ack, parameters: &Parameters, path_ids: &PathIds) -> bool {
    ack.path
        .is_none_or(|path| path_ids.admits(path) && parameters.multipath())
}

/// What the connection is closed with if the peer may not send this frame in a packet with this header.
pub(super) fn fault(
    frame: &Frame,
    header: &Header,
    packets: &Packets,
    path_ids: &PathIds,
) -> Option<Fault> {
    let (parameters, identity) = (&packets.parameters, &packets.identity);
    let named = named_path(frame);
    if (named.is_some() || matches!(frame, Frame::MaxPathId(_))) && !parameters.multipath() {
        // Its type is unknown to this connection (RFC 9000 section 12.4).
        let reason = "a frame of multipath, which was not negotiated";
        return Some((TransportError::FRAME_ENCODING_ERROR, reason));
    }
    let asks = matches!(frame, Frame::AckFrequency(_) | Frame::ImmediateAck);
    if asks && parameters.own().min_ack_delay.is_none() {
        // As above (draft-ietf-quic-ack-frequency-14 section 3).
        let reason = "a frame about acknowledgements, which was not offered";
        return Some((TransportError::FRAME_ENCODING_ERROR, reason));
    }
    let reason = match frame {
        _ if named.is_some_and(|path| !path_ids.admits(path)) => "a path id above the limit",
        Frame::MaxPathId(max) if Some(*max) < parameters.peer().initial_max_path_id => {
            "a limit of path ids below the initial one"
        }
        Frame::PathCidsBlocked {
            path,
            next_sequence,
        } if identity
            .local()
            .next_sequence(*path)
            .is_some_and(|next| *next_sequence > next) =>
        {
            "a sequence number of a connection id that is not the next"
        }
        Frame::NewConnectionId(_) if identity.peer_has_none() => {
            "another connection id of a peer whose id is empty"
        }
        Frame::RetireConnectionId { path, sequence }
            if identity
                .local()
                .has(path.unwrap_or(0), *sequence, &header.destination) =>
        {
            "a connection id retired by a packet that it leads"
        }
        _ => return None,
    };
    Some((TransportError::PROTOCOL_VIOLATION, reason))
}

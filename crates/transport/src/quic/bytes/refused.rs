//! Packets that are not taken.

use polypath_wire::quic::TransportError;

use super::super::crypto::OpenError;

/// Why a packet is not taken.
pub(super) enum Refused {
    NotAuthentic,
    Close(TransportError, &'static str),
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NotAuthentic => Self::NotAuthentic,
            // RFC 9000 section 17.2.
            OpenError::ReservedBits => Self::Close(
                TransportError::PROTOCOL_VIOLATION,
                "reserved bits of a header are set",
            ),
        }
    }
}

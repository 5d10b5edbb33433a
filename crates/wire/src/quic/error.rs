//! Error codes of the transport, and the errors of parsers that carry them.

use std::fmt;

/// An error code of the transport (RFC 9000 section 20.1, RFC 10069 section 4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportError(pub u64);

/// Declares the codes and the table of their names.
macro_rules! codes {
    ($($name:ident = $code:literal,)*) => {
        impl TransportError {
            $(pub const $name: Self = Self($code);)*

            /// The name in the registry of error codes; absent for a code of TLS and for an unknown one.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    NO_ERROR = 0x00,
    INTERNAL_ERROR = 0x01,
    CONNECTION_REFUSED = 0x02,
    FLOW_CONTROL_ERROR = 0x03,
    STREAM_LIMIT_ERROR = 0x04,
    STREAM_STATE_ERROR = 0x05,
    FINAL_SIZE_ERROR = 0x06,
    FRAME_ENCODING_ERROR = 0x07,
    TRANSPORT_PARAMETER_ERROR = 0x08,
    CONNECTION_ID_LIMIT_ERROR = 0x09,
    PROTOCOL_VIOLATION = 0x0a,
    INVALID_TOKEN = 0x0b,
    APPLICATION_ERROR = 0x0c,
    CRYPTO_BUFFER_EXCEEDED = 0x0d,
    KEY_UPDATE_ERROR = 0x0e,
    AEAD_LIMIT_REACHED = 0x0f,
    NO_VIABLE_PATH = 0x10,
    APPLICATION_ABANDON_PATH = 0x3e,
    PATH_RESOURCE_LIMIT_REACHED = 0x3e75,
    PATH_UNSTABLE_OR_POOR = 0x3e76,
    NO_CID_AVAILABLE_FOR_PATH = 0x3e77,
}

impl TransportError {
    /// CRYPTO_ERROR with the alert of TLS (RFC 9001 section 4.8).
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 | alert as u64)
    }

    /// The alert of TLS in a CRYPTO_ERROR.
    pub const fn alert(self) -> Option<u8> {
        match self.0 {
            0x100..=0x1ff => Some(self.0 as u8),
            _ => None,
        }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.alert()) {
            (Some(name), _) => f.write_str(name),
            (None, Some(alert)) => write!(f, "CRYPTO_ERROR (TLS alert {alert})"),
            (None, None) => write!(f, "error {:#x}", self.0),
        }
    }
}

impl fmt::Debug for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why the frames of a packet are refused: the fields of a CONNECTION_CLOSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} in a frame of type {frame_type:#x}: {reason}")]
pub struct FrameError {
    pub code: TransportError,
    /// 0 if no frame is to blame.
    pub frame_type: u64,
    pub reason: &'static str,
}

/// Why transport parameters are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transport parameter {parameter:#x}: {reason}")]
pub struct ParameterError {
    /// Its id; 0 if the bytes end before it is known.
    pub parameter: u64,
    pub reason: &'static str,
}

impl ParameterError {
    /// The code to close the connection with (RFC 9000 section 7.4).
    pub const CODE: TransportError = TransportError::TRANSPORT_PARAMETER_ERROR;
}

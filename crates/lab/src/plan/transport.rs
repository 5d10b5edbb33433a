//! What an application runs over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Tcp,
    Mptcp,
    Quic,
    Mpquic,
    Udp,
    Icmp,
}

impl Transport {
    /// Applications read and write over a connection.
    pub fn has_connection(self) -> bool {
        !matches!(self, Self::Udp | Self::Icmp)
    }

    pub fn is_quic(self) -> bool {
        matches!(self, Self::Quic | Self::Mpquic)
    }

    pub fn is_multipath(self) -> bool {
        matches!(self, Self::Mptcp | Self::Mpquic)
    }
}

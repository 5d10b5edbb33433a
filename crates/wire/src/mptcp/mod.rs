//! Options of Multipath TCP version 1 (RFC 8684 section 3).

mod checksum;
pub(crate) mod codec;

use std::net::IpAddr;

pub use checksum::{dss_checksum, dss_checksum_over};

/// The kind of every MPTCP option (RFC 8684 section 3).
pub const KIND: u8 = 30;

/// Eight bytes of an option, aligned as four are, so that options and the segments that they are in stay small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
pub struct Wide(u64);

impl Wide {
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for Wide {
    #[inline]
    fn from(value: u64) -> Self {
        Self(value)
    }
}

/// A data ACK as sent: four or eight bytes (RFC 8684 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataAck {
    Short(u32),
    Long(Wide),
}

/// A data sequence number as sent: four or eight bytes (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dsn {
    Short(u32),
    Long(Wide),
}

/// A data sequence mapping (RFC 8684 section 3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub dsn: Dsn,
    /// Subflow sequence number relative to the subflow's initial one; the first byte has 1.
    /// 0 with length 0 is an infinite mapping's (section 3.7) or a lone DATA_FIN's (section 3.3.3).
    pub subflow_seq: u32,
    /// Length of the mapping in bytes, DATA_FIN's included.
    pub len: u16,
    /// Checksum over payload and pseudo-header, when negotiated.
    pub checksum: Option<u16>,
}

/// Data Sequence Signal (RFC 8684 section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dss {
    pub data_ack: Option<DataAck>,
    pub mapping: Option<Mapping>,
    pub data_fin: bool,
}

/// What MP_CAPABLE carries in each step of the handshake (RFC 8684 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpCapable {
    /// Version, 1 in RFC 8684.
    pub version: u8,
    /// Flag A: checksum required.
    pub checksum_required: bool,
    /// Flag C: the sender will not accept additional subflows to this address and port.
    pub deny_join_initial: bool,
    /// Flag H: HMAC-SHA256.
    pub hmac_sha256: bool,
    /// The sender's key: absent on SYN, present on SYN/ACK and third ACK.
    pub sender_key: Option<u64>,
    /// The receiver's key: on third ACK only.
    pub receiver_key: Option<u64>,
    /// Data-level length and, with checksums, the checksum: on third ACK with data.
    pub data: Option<(u16, Option<u16>)>,
}

/// MP_JOIN in each step of the handshake (RFC 8684 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpJoin {
    Syn {
        backup: bool,
        address_id: u8,
        token: u32,
        nonce: u32,
    },
    SynAck {
        backup: bool,
        address_id: u8,
        hmac: u64,
        nonce: u32,
    },
    Ack {
        hmac: [u8; 20],
    },
}

/// Reason codes of MP_TCPRST (RFC 8684 section 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResetReason {
    Unspecified = 0,
    MptcpSpecific = 1,
    LackOfResources = 2,
    AdministrativelyProhibited = 3,
    TooMuchOutstandingData = 4,
    UnacceptablePerformance = 5,
    MiddleboxInterference = 6,
}

/// Every MPTCP option but DSS, which stands in its own field of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MptcpOption {
    Capable(MpCapable),
    Join(MpJoin),
    /// ADD_ADDR (section 3.4.1); `hmac` is absent exactly when `echo` is set.
    AddAddr {
        echo: bool,
        address_id: u8,
        address: IpAddr,
        port: Option<u16>,
        hmac: Option<u64>,
    },
    /// REMOVE_ADDR (section 3.4.2); at least one id.
    RemoveAddr {
        address_ids: Vec<u8>,
    },
    /// MP_PRIO (section 3.3.8).
    Prio {
        backup: bool,
    },
    /// MP_FAIL (section 3.7).
    Fail {
        dsn: u64,
    },
    /// MP_FASTCLOSE (section 3.5).
    FastClose {
        receiver_key: u64,
    },
    /// MP_TCPRST (section 3.6): flags U, V, W, T as the low four bits, then the reason code.
    TcpRst {
        flags: u8,
        reason: u8,
    },
    /// An option that this version does not know, or that a receiver must ignore: an unassigned
    /// subtype, a length that the subtype does not have, MP_CAPABLE with flag B (section 3.1).
    /// The low four bits that share a byte with the subtype, then the body after that byte.
    Unknown {
        subtype: u8,
        flags: u8,
        body: Vec<u8>,
    },
}

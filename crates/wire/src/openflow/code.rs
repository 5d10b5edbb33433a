//! Errors as `OFPT_ERROR` carries them (section 7.4.4).

/// The type and code of an `OFPT_ERROR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("OFPT_ERROR type {kind}, code {code}")]
pub struct Fault {
    pub kind: u16,
    pub code: u16,
}

impl Fault {
    const fn new(kind: u16, code: u16) -> Self {
        Self { kind, code }
    }

    /// OFPHFC_INCOMPATIBLE
    pub const INCOMPATIBLE: Self = Self::new(0, 0);
    /// OFPBRC_BAD_VERSION
    pub const BAD_VERSION: Self = Self::new(1, 0);
    /// OFPBRC_BAD_TYPE
    pub const BAD_TYPE: Self = Self::new(1, 1);
    /// OFPBRC_BAD_MULTIPART
    pub const BAD_MULTIPART: Self = Self::new(1, 2);
    /// OFPBRC_BAD_EXPERIMENTER
    pub const BAD_EXPERIMENTER: Self = Self::new(1, 3);
    /// OFPBRC_BAD_LEN
    pub const BAD_LEN: Self = Self::new(1, 6);
    /// OFPBRC_BUFFER_UNKNOWN
    pub const BUFFER_UNKNOWN: Self = Self::new(1, 8);
    /// OFPBRC_BAD_TABLE_ID
    pub const REQUEST_BAD_TABLE: Self = Self::new(1, 9);
    /// OFPBRC_IS_SLAVE
    pub const IS_SLAVE: Self = Self::new(1, 10);
    /// OFPBRC_BAD_PORT
    pub const REQUEST_BAD_PORT: Self = Self::new(1, 11);
    /// OFPBRC_BAD_PACKET
    pub const BAD_PACKET: Self = Self::new(1, 12);
    /// OFPBAC_BAD_TYPE
    pub const ACTION_BAD_TYPE: Self = Self::new(2, 0);
    /// OFPBAC_BAD_LEN
    pub const ACTION_BAD_LEN: Self = Self::new(2, 1);
    /// OFPBAC_BAD_EXPERIMENTER
    pub const ACTION_BAD_EXPERIMENTER: Self = Self::new(2, 2);
    /// OFPBAC_BAD_OUT_PORT
    pub const BAD_OUT_PORT: Self = Self::new(2, 4);
    /// OFPBAC_BAD_OUT_GROUP
    pub const BAD_OUT_GROUP: Self = Self::new(2, 9);
    /// OFPBIC_UNKNOWN_INST
    pub const UNKNOWN_INSTRUCTION: Self = Self::new(3, 0);
    /// OFPBIC_UNSUP_INST
    pub const UNSUPPORTED_INSTRUCTION: Self = Self::new(3, 1);
    /// OFPBIC_BAD_TABLE_ID
    pub const BAD_GOTO: Self = Self::new(3, 2);
    /// OFPBIC_BAD_EXPERIMENTER
    pub const INSTRUCTION_BAD_EXPERIMENTER: Self = Self::new(3, 5);
    /// OFPBIC_BAD_LEN
    pub const INSTRUCTION_BAD_LEN: Self = Self::new(3, 7);
    /// OFPBMC_BAD_TYPE
    pub const MATCH_BAD_TYPE: Self = Self::new(4, 0);
    /// OFPBMC_BAD_LEN
    pub const MATCH_BAD_LEN: Self = Self::new(4, 1);
    /// OFPBMC_BAD_WILDCARDS
    pub const BAD_WILDCARDS: Self = Self::new(4, 5);
    /// OFPBMC_BAD_FIELD
    pub const BAD_FIELD: Self = Self::new(4, 6);
    /// OFPBMC_BAD_VALUE
    pub const BAD_VALUE: Self = Self::new(4, 7);
    /// OFPBMC_BAD_MASK
    pub const BAD_MASK: Self = Self::new(4, 8);
    /// OFPBMC_BAD_PREREQ
    pub const BAD_PREREQUISITE: Self = Self::new(4, 9);
    /// OFPBMC_DUP_FIELD
    pub const DUPLICATE_FIELD: Self = Self::new(4, 10);
    /// OFPFMFC_TABLE_FULL
    pub const TABLE_FULL: Self = Self::new(5, 1);
    /// OFPFMFC_BAD_TABLE_ID
    pub const BAD_TABLE: Self = Self::new(5, 2);
    /// OFPFMFC_OVERLAP
    pub const OVERLAP: Self = Self::new(5, 3);
    /// OFPFMFC_BAD_COMMAND
    pub const BAD_COMMAND: Self = Self::new(5, 6);
    /// OFPFMFC_BAD_FLAGS
    pub const BAD_FLAGS: Self = Self::new(5, 7);
    /// OFPGMFC_GROUP_EXISTS
    pub const GROUP_EXISTS: Self = Self::new(6, 0);
    /// OFPGMFC_INVALID_GROUP
    pub const INVALID_GROUP: Self = Self::new(6, 1);
    /// OFPGMFC_OUT_OF_GROUPS
    pub const OUT_OF_GROUPS: Self = Self::new(6, 3);
    /// OFPGMFC_CHAINING_UNSUPPORTED
    pub const CHAINING_UNSUPPORTED: Self = Self::new(6, 5);
    /// OFPGMFC_WATCH_UNSUPPORTED
    pub const WATCH_UNSUPPORTED: Self = Self::new(6, 6);
    /// OFPGMFC_UNKNOWN_GROUP
    pub const UNKNOWN_GROUP: Self = Self::new(6, 8);
    /// OFPGMFC_BAD_TYPE
    pub const GROUP_BAD_TYPE: Self = Self::new(6, 10);
    /// OFPGMFC_BAD_COMMAND
    pub const GROUP_BAD_COMMAND: Self = Self::new(6, 11);
    /// OFPGMFC_BAD_BUCKET
    pub const BAD_BUCKET: Self = Self::new(6, 12);
    /// OFPGMFC_BAD_WATCH
    pub const BAD_WATCH: Self = Self::new(6, 13);
    /// OFPSCFC_BAD_FLAGS
    pub const CONFIG_BAD_FLAGS: Self = Self::new(10, 0);
    /// OFPRRFC_STALE
    pub const STALE: Self = Self::new(11, 0);
    /// OFPRRFC_BAD_ROLE
    pub const BAD_ROLE: Self = Self::new(11, 2);
}

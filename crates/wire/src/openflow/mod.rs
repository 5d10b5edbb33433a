//! OpenFlow 1.3.5, wire protocol 4: the messages between a switch and its controller. Section numbers in this module
//! are of that text.
//!
//! The parser refuses what a switch does not support, and malformed bytes. It answers with the error that the
//! specification names: see [`Fault`].

mod action;
mod code;
mod group;
mod message;
mod multipart;
mod oxm;
mod port;
mod reader;
mod writer;

pub use action::{Action, Instruction};
pub use code::Fault;
pub use group::{Bucket, Group, GroupMod};
pub use message::{
    Config, Features, FlowMod, FlowRemoved, Message, PacketIn, PacketOut, emit, kind, parse, split,
};
pub use multipart::{
    Aggregate, Description, FlowQuery, FlowStats, GroupFeatures, GroupStats, PortStats, Reply,
    Request, TableStats,
};
pub use oxm::{Field, Oxm, oxm_len};
pub use port::{Port, number};

/// The version in every header.
pub const VERSION: u8 = 4;
pub const HEADER_LEN: usize = 8;
/// `OFP_NO_BUFFER`: the packet is in the message.
pub const NO_BUFFER: u32 = u32::MAX;
/// `OFPCML_NO_BUFFER`: the packet is not to be kept by the switch.
pub const WHOLE: u16 = u16::MAX;
/// `OFPTT_ALL`: all tables.
pub const ALL_TABLES: u8 = u8::MAX;

/// `enum ofp_flow_mod_command` (section 7.3.4.1).
pub mod command {
    pub const ADD: u8 = 0;
    pub const MODIFY: u8 = 1;
    pub const MODIFY_STRICT: u8 = 2;
    pub const DELETE: u8 = 3;
    pub const DELETE_STRICT: u8 = 4;
}

/// `enum ofp_flow_mod_flags` (section 7.3.4.1).
pub mod flag {
    pub const SEND_FLOW_REM: u16 = 1;
    pub const CHECK_OVERLAP: u16 = 1 << 1;
    pub const RESET_COUNTS: u16 = 1 << 2;
    pub const NO_PKT_COUNTS: u16 = 1 << 3;
    pub const NO_BYT_COUNTS: u16 = 1 << 4;
    pub const ALL: u16 = (1 << 5) - 1;
}

/// `enum ofp_controller_role` (section 7.3.9).
pub mod role {
    pub const NOCHANGE: u32 = 0;
    pub const EQUAL: u32 = 1;
    pub const MASTER: u32 = 2;
    pub const SLAVE: u32 = 3;
}

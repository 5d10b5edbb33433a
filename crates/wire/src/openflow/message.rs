//! The header and the messages (sections 7.1, 7.3 and 7.4).

use super::reader::Reader;
use super::writer::Writer;
use super::{
    Action, Fault, GroupMod, HEADER_LEN, Instruction, Oxm, Port, Reply, Request, VERSION, action,
    group, multipart, oxm, port,
};
use crate::EmitError;
use crate::bytes::u16_at;

/// `enum ofp_type` (section 7.1.1).
pub mod kind {
    pub const HELLO: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const ECHO_REQUEST: u8 = 2;
    pub const ECHO_REPLY: u8 = 3;
    pub const EXPERIMENTER: u8 = 4;
    pub const FEATURES_REQUEST: u8 = 5;
    pub const FEATURES_REPLY: u8 = 6;
    pub const GET_CONFIG_REQUEST: u8 = 7;
    pub const GET_CONFIG_REPLY: u8 = 8;
    pub const SET_CONFIG: u8 = 9;
    pub const PACKET_IN: u8 = 10;
    pub const FLOW_REMOVED: u8 = 11;
    pub const PORT_STATUS: u8 = 12;
    pub const PACKET_OUT: u8 = 13;
    pub const FLOW_MOD: u8 = 14;
    pub const GROUP_MOD: u8 = 15;
    pub const MULTIPART_REQUEST: u8 = 18;
    pub const MULTIPART_REPLY: u8 = 19;
    pub const BARRIER_REQUEST: u8 = 20;
    pub const BARRIER_REPLY: u8 = 21;
    pub const ROLE_REQUEST: u8 = 24;
    pub const ROLE_REPLY: u8 = 25;
}

/// `OFPT_FEATURES_REPLY` (section 7.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    pub datapath: u64,
    pub buffers: u32,
    pub tables: u8,
    pub auxiliary: u8,
    pub capabilities: u32,
}

/// `struct ofp_switch_config` (section 7.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub flags: u16,
    pub miss_send_len: u16,
}

/// `OFPT_PACKET_IN` (section 7.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketIn {
    pub buffer: u32,
    pub total_len: u16,
    /// `enum ofp_packet_in_reason`
    pub reason: u8,
    pub table: u8,
    pub cookie: u64,
    pub matching: Vec<Oxm>,
    pub data: Vec<u8>,
}

/// `OFPT_PACKET_OUT` (section 7.3.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    pub buffer: u32,
    pub in_port: u32,
    pub actions: Vec<Action>,
    pub data: Vec<u8>,
}

/// `OFPT_FLOW_MOD` (section 7.3.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowMod {
    pub cookie: u64,
    pub cookie_mask: u64,
    pub table: u8,
    pub command: u8,
    /// Seconds.
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub priority: u16,
    pub buffer: u32,
    pub out_port: u32,
    pub out_group: u32,
    pub flags: u16,
    pub matching: Vec<Oxm>,
    pub instructions: Vec<Instruction>,
}

/// `OFPT_FLOW_REMOVED` (section 7.4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    pub cookie: u64,
    pub priority: u16,
    /// `enum ofp_flow_removed_reason`
    pub reason: u8,
    pub table: u8,
    pub seconds: u32,
    pub nanoseconds: u32,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub packets: u64,
    pub bytes: u64,
    pub matching: Vec<Oxm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Of a peer whose highest version is `version`; `versions` has a bit for each that it speaks, where it says so.
    Hello {
        version: u8,
        versions: Option<u32>,
    },
    Error {
        fault: Fault,
        data: Vec<u8>,
    },
    EchoRequest(Vec<u8>),
    EchoReply(Vec<u8>),
    FeaturesRequest,
    FeaturesReply(Features),
    GetConfigRequest,
    GetConfigReply(Config),
    SetConfig(Config),
    PacketIn(PacketIn),
    FlowRemoved(FlowRemoved),
    /// `reason` is of `enum ofp_port_reason`.
    PortStatus {
        reason: u8,
        port: Port,
    },
    PacketOut(PacketOut),
    FlowMod(FlowMod),
    GroupMod(GroupMod),
    MultipartRequest {
        more: bool,
        request: Request,
    },
    MultipartReply {
        more: bool,
        reply: Reply,
    },
    BarrierRequest,
    BarrierReply,
    RoleRequest {
        role: u32,
        generation: u64,
    },
    RoleReply {
        role: u32,
        generation: u64,
    },
}

/// The length of the first message of a stream; nothing as long as its header is not there.
///
/// # Errors
/// A length below that of the header.
pub fn split(stream: &[u8]) -> Result<Option<usize>, Fault> {
    if stream.len() < HEADER_LEN {
        return Ok(None);
    }
    let len = usize::from(u16_at(stream, 2));
    if len < HEADER_LEN {
        return Err(Fault::BAD_LEN);
    }
    Ok(Some(len))
}

/// Parses a message with its header: its transaction id and what it says.
///
/// # Errors
/// What an `OFPT_ERROR` is to say of it.
pub fn parse(bytes: &[u8]) -> Result<(u32, Message), Fault> {
    let mut reader = Reader::new(bytes, Fault::BAD_LEN);
    let (version, kind, len) = (reader.u8()?, reader.u8()?, reader.u16()?);
    let xid = reader.u32()?;
    if version != VERSION && kind != kind::HELLO {
        return Err(Fault::BAD_VERSION);
    }
    if usize::from(len) != bytes.len() {
        return Err(Fault::BAD_LEN);
    }
    body(version, kind, reader).map(|message| (xid, message))
}

fn body(version: u8, kind: u8, mut reader: Reader<'_>) -> Result<Message, Fault> {
    let message = match kind {
        kind::HELLO => {
            return Ok(Message::Hello {
                version,
                versions: versions(reader)?,
            });
        }
        kind::ERROR => Message::Error {
            fault: Fault {
                kind: reader.u16()?,
                code: reader.u16()?,
            },
            data: reader.rest().to_vec(),
        },
        kind::ECHO_REQUEST => Message::EchoRequest(reader.rest().to_vec()),
        kind::ECHO_REPLY => Message::EchoReply(reader.rest().to_vec()),
        kind::EXPERIMENTER => return Err(Fault::BAD_EXPERIMENTER),
        kind::FEATURES_REQUEST => Message::FeaturesRequest,
        kind::FEATURES_REPLY => {
            let (datapath, buffers) = (reader.u64()?, reader.u32()?);
            let (tables, auxiliary) = (reader.u8()?, reader.u8()?);
            reader.take(2)?;
            let capabilities = reader.u32()?;
            reader.take(4)?;
            Message::FeaturesReply(Features {
                datapath,
                buffers,
                tables,
                auxiliary,
                capabilities,
            })
        }
        kind::GET_CONFIG_REQUEST => Message::GetConfigRequest,
        kind::GET_CONFIG_REPLY => Message::GetConfigReply(config(&mut reader)?),
        kind::SET_CONFIG => Message::SetConfig(config(&mut reader)?),
        kind::PACKET_IN => Message::PacketIn(packet_in(&mut reader)?),
        kind::FLOW_REMOVED => Message::FlowRemoved(flow_removed(&mut reader)?),
        kind::PORT_STATUS => {
            let reason = reader.u8()?;
            reader.take(7)?;
            let port = port::parse(&mut reader)?;
            Message::PortStatus { reason, port }
        }
        kind::PACKET_OUT => Message::PacketOut(packet_out(&mut reader)?),
        kind::FLOW_MOD => Message::FlowMod(flow_mod(&mut reader)?),
        kind::GROUP_MOD => return Ok(Message::GroupMod(group::parse_mod(reader)?)),
        kind::MULTIPART_REQUEST => {
            let (more, request) = multipart::parse_request(reader)?;
            return Ok(Message::MultipartRequest { more, request });
        }
        kind::MULTIPART_REPLY => {
            let (more, reply) = multipart::parse_reply(reader)?;
            return Ok(Message::MultipartReply { more, reply });
        }
        kind::BARRIER_REQUEST => Message::BarrierRequest,
        kind::BARRIER_REPLY => Message::BarrierReply,
        kind::ROLE_REQUEST => {
            let (role, generation) = role(&mut reader)?;
            Message::RoleRequest { role, generation }
        }
        kind::ROLE_REPLY => {
            let (role, generation) = role(&mut reader)?;
            Message::RoleReply { role, generation }
        }
        _ => return Err(Fault::BAD_TYPE),
    };
    reader.end()?;
    Ok(message)
}

/// `OFPHET_VERSIONBITMAP`, as far as its first word; elements of other types are passed over (section 7.5.1).
fn versions(mut reader: Reader<'_>) -> Result<Option<u32>, Fault> {
    let mut versions = None;
    while !reader.is_empty() {
        let (kind, len) = (reader.u16()?, usize::from(reader.u16()?));
        let body_len = len.checked_sub(4).ok_or(Fault::BAD_LEN)?;
        let mut body = reader.part(body_len, Fault::BAD_LEN)?;
        // The last one's padding may be missing: many leave it out.
        let padding = len.next_multiple_of(8) - len;
        if reader.take(padding).is_err() {
            reader.rest();
        }
        if kind == 1 {
            versions = Some(body.u32()?);
        }
    }
    Ok(versions)
}

fn config(reader: &mut Reader<'_>) -> Result<Config, Fault> {
    Ok(Config {
        flags: reader.u16()?,
        miss_send_len: reader.u16()?,
    })
}

fn role(reader: &mut Reader<'_>) -> Result<(u32, u64), Fault> {
    let role = reader.u32()?;
    reader.take(4)?;
    Ok((role, reader.u64()?))
}

fn packet_in(reader: &mut Reader<'_>) -> Result<PacketIn, Fault> {
    let (buffer, total_len) = (reader.u32()?, reader.u16()?);
    let (reason, table, cookie) = (reader.u8()?, reader.u8()?, reader.u64()?);
    let matching = oxm::parse(reader)?;
    reader.take(2)?;
    Ok(PacketIn {
        buffer,
        total_len,
        reason,
        table,
        cookie,
        matching,
        data: reader.rest().to_vec(),
    })
}

fn packet_out(reader: &mut Reader<'_>) -> Result<PacketOut, Fault> {
    let (buffer, in_port) = (reader.u32()?, reader.u32()?);
    let actions_len = usize::from(reader.u16()?);
    reader.take(6)?;
    let actions = reader.part(actions_len, Fault::ACTION_BAD_LEN)?;
    Ok(PacketOut {
        buffer,
        in_port,
        actions: action::parse(actions)?,
        data: reader.rest().to_vec(),
    })
}

fn flow_mod(reader: &mut Reader<'_>) -> Result<FlowMod, Fault> {
    let (cookie, cookie_mask) = (reader.u64()?, reader.u64()?);
    let (table, command) = (reader.u8()?, reader.u8()?);
    let (idle_timeout, hard_timeout) = (reader.u16()?, reader.u16()?);
    let (priority, buffer) = (reader.u16()?, reader.u32()?);
    let (out_port, out_group) = (reader.u32()?, reader.u32()?);
    let flags = reader.u16()?;
    reader.take(2)?;
    let matching = oxm::parse(reader)?;
    let rest = Reader::new(reader.rest(), Fault::INSTRUCTION_BAD_LEN);
    Ok(FlowMod {
        cookie,
        cookie_mask,
        table,
        command,
        idle_timeout,
        hard_timeout,
        priority,
        buffer,
        out_port,
        out_group,
        flags,
        matching,
        instructions: action::parse_instructions(rest)?,
    })
}

fn flow_removed(reader: &mut Reader<'_>) -> Result<FlowRemoved, Fault> {
    Ok(FlowRemoved {
        cookie: reader.u64()?,
        priority: reader.u16()?,
        reason: reader.u8()?,
        table: reader.u8()?,
        seconds: reader.u32()?,
        nanoseconds: reader.u32()?,
        idle_timeout: reader.u16()?,
        hard_timeout: reader.u16()?,
        packets: reader.u64()?,
        bytes: reader.u64()?,
        matching: oxm::parse(reader)?,
    })
}

/// Appends a message with its header.
///
/// # Errors
/// It is longer than 65535 bytes; nothing is appended then.
pub fn emit(xid: u32, message: &Message, out: &mut Vec<u8>) -> Result<(), EmitError> {
    let start = out.len();
    let mut writer = Writer(out);
    writer.u8(VERSION).u8(0).u16(0).u32(xid);
    let kind = emit_body(message, &mut writer);
    let version = match message {
        Message::Hello { version, .. } => *version,
        _ => VERSION,
    };
    let len = out.len() - start;
    let Ok(length) = u16::try_from(len) else {
        out.truncate(start);
        return Err(EmitError::TooLong {
            what: "OpenFlow message",
            len,
        });
    };
    out[start..start + 2].copy_from_slice(&[version, kind]);
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn emit_body(message: &Message, out: &mut Writer<'_>) -> u8 {
    match message {
        Message::Hello { versions, .. } => {
            if let Some(versions) = versions {
                out.u16(1).u16(8).u32(*versions);
            }
            kind::HELLO
        }
        Message::Error { fault, data } => {
            out.u16(fault.kind).u16(fault.code).bytes(data);
            kind::ERROR
        }
        Message::EchoRequest(data) => {
            out.bytes(data);
            kind::ECHO_REQUEST
        }
        Message::EchoReply(data) => {
            out.bytes(data);
            kind::ECHO_REPLY
        }
        Message::FeaturesRequest => kind::FEATURES_REQUEST,
        Message::FeaturesReply(it) => {
            out.u64(it.datapath).u32(it.buffers);
            out.u8(it.tables).u8(it.auxiliary).pad(2);
            out.u32(it.capabilities).pad(4);
            kind::FEATURES_REPLY
        }
        Message::GetConfigRequest => kind::GET_CONFIG_REQUEST,
        Message::GetConfigReply(config) => {
            out.u16(config.flags).u16(config.miss_send_len);
            kind::GET_CONFIG_REPLY
        }
        Message::SetConfig(config) => {
            out.u16(config.flags).u16(config.miss_send_len);
            kind::SET_CONFIG
        }
        Message::PacketIn(it) => {
            out.u32(it.buffer).u16(it.total_len);
            out.u8(it.reason).u8(it.table).u64(it.cookie);
            oxm::emit(&it.matching, out);
            out.pad(2).bytes(&it.data);
            kind::PACKET_IN
        }
        Message::FlowRemoved(it) => {
            out.u64(it.cookie).u16(it.priority);
            out.u8(it.reason).u8(it.table);
            out.u32(it.seconds).u32(it.nanoseconds);
            out.u16(it.idle_timeout).u16(it.hard_timeout);
            out.u64(it.packets).u64(it.bytes);
            oxm::emit(&it.matching, out);
            kind::FLOW_REMOVED
        }
        Message::PortStatus { reason, port } => {
            out.u8(*reason).pad(7);
            port::emit(port, out);
            kind::PORT_STATUS
        }
        Message::PacketOut(it) => {
            out.u32(it.buffer).u32(it.in_port);
            let place = out.at();
            out.u16(0).pad(6);
            let start = out.at();
            action::emit(&it.actions, out);
            out.length(start, place).bytes(&it.data);
            kind::PACKET_OUT
        }
        Message::FlowMod(it) => {
            out.u64(it.cookie).u64(it.cookie_mask);
            out.u8(it.table).u8(it.command);
            out.u16(it.idle_timeout).u16(it.hard_timeout);
            out.u16(it.priority).u32(it.buffer);
            out.u32(it.out_port).u32(it.out_group);
            out.u16(it.flags).pad(2);
            oxm::emit(&it.matching, out);
            action::emit_instructions(&it.instructions, out);
            kind::FLOW_MOD
        }
        Message::GroupMod(it) => {
            group::emit_mod(it, out);
            kind::GROUP_MOD
        }
        Message::MultipartRequest { more, request } => {
            multipart::emit_request(*more, request, out);
            kind::MULTIPART_REQUEST
        }
        Message::MultipartReply { more, reply } => {
            multipart::emit_reply(*more, reply, out);
            kind::MULTIPART_REPLY
        }
        Message::BarrierRequest => kind::BARRIER_REQUEST,
        Message::BarrierReply => kind::BARRIER_REPLY,
        Message::RoleRequest { role, generation } => {
            out.u32(*role).pad(4).u64(*generation);
            kind::ROLE_REQUEST
        }
        Message::RoleReply { role, generation } => {
            out.u32(*role).pad(4).u64(*generation);
            kind::ROLE_REPLY
        }
    }
}

//! Multipart messages (section 7.3.5).

use super::reader::Reader;
use super::writer::Writer;
use super::{Fault, Group, Instruction, Oxm, Port, action, group, oxm, port};

const DESC: u16 = 0;
const FLOW: u16 = 1;
const AGGREGATE: u16 = 2;
const TABLE: u16 = 3;
const PORT_STATS: u16 = 4;
const GROUP: u16 = 6;
const GROUP_DESC: u16 = 7;
const GROUP_FEATURES: u16 = 8;
const PORT_DESC: u16 = 13;
const EXPERIMENTER: u16 = 0xffff;

/// `DESC_STR_LEN` and `SERIAL_NUM_LEN`.
const TEXT: usize = 256;
const SERIAL: usize = 32;

/// Which entries are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowQuery {
    pub table: u8,
    pub out_port: u32,
    pub out_group: u32,
    pub cookie: u64,
    pub cookie_mask: u64,
    pub matching: Vec<Oxm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Description,
    Flow(FlowQuery),
    Aggregate(FlowQuery),
    Table,
    /// Of a port, or `OFPP_ANY`.
    Port(u32),
    /// Of a group, or `OFPG_ALL`.
    Group(u32),
    GroupDescription,
    GroupFeatures,
    PortDescription,
}

/// `struct ofp_desc`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    pub manufacturer: Vec<u8>,
    pub hardware: Vec<u8>,
    pub software: Vec<u8>,
    pub serial: Vec<u8>,
    pub datapath: Vec<u8>,
}

/// `struct ofp_flow_stats`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    pub table: u8,
    pub seconds: u32,
    pub nanoseconds: u32,
    pub priority: u16,
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub flags: u16,
    pub cookie: u64,
    pub packets: u64,
    pub bytes: u64,
    pub matching: Vec<Oxm>,
    pub instructions: Vec<Instruction>,
}

/// `struct ofp_aggregate_stats_reply`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    pub packets: u64,
    pub bytes: u64,
    pub flows: u32,
}

/// `struct ofp_table_stats`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    pub table: u8,
    pub active: u32,
    pub lookups: u64,
    pub matched: u64,
}

/// `struct ofp_port_stats`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    pub number: u32,
    /// Packets, bytes, dropped and errors: received, sent, in the struct's order.
    pub counters: [u64; 8],
    /// Frame, overrun and CRC errors, collisions.
    pub errors: [u64; 4],
    pub seconds: u32,
    pub nanoseconds: u32,
}

/// `struct ofp_group_stats`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    pub group: u32,
    pub references: u32,
    pub packets: u64,
    pub bytes: u64,
    pub seconds: u32,
    pub nanoseconds: u32,
    /// Packets and bytes of each bucket.
    pub buckets: Vec<(u64, u64)>,
}

/// `struct ofp_group_features`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupFeatures {
    pub types: u32,
    pub capabilities: u32,
    pub max_groups: [u32; 4],
    pub actions: [u32; 4],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Description(Description),
    Flow(Vec<FlowStats>),
    Aggregate(Aggregate),
    Table(Vec<TableStats>),
    Port(Vec<PortStats>),
    Group(Vec<GroupStats>),
    GroupDescription(Vec<Group>),
    GroupFeatures(GroupFeatures),
    PortDescription(Vec<Port>),
}

fn header(reader: &mut Reader<'_>) -> Result<(u16, bool), Fault> {
    let (kind, flags) = (reader.u16()?, reader.u16()?);
    reader.take(4)?;
    Ok((kind, flags & 1 == 1))
}

fn query(reader: &mut Reader<'_>) -> Result<FlowQuery, Fault> {
    let table = reader.u8()?;
    reader.take(3)?;
    let (out_port, out_group) = (reader.u32()?, reader.u32()?);
    reader.take(4)?;
    Ok(FlowQuery {
        table,
        out_port,
        out_group,
        cookie: reader.u64()?,
        cookie_mask: reader.u64()?,
        matching: oxm::parse(reader)?,
    })
}

fn emit_query(query: &FlowQuery, out: &mut Writer<'_>) {
    out.u8(query.table).pad(3);
    out.u32(query.out_port).u32(query.out_group).pad(4);
    out.u64(query.cookie).u64(query.cookie_mask);
    oxm::emit(&query.matching, out);
}

/// A number behind which four bytes are free.
fn padded(reader: &mut Reader<'_>) -> Result<u32, Fault> {
    let number = reader.u32()?;
    reader.take(4)?;
    Ok(number)
}

pub(super) fn parse_request(mut reader: Reader<'_>) -> Result<(bool, Request), Fault> {
    let (kind, more) = header(&mut reader)?;
    let request = match kind {
        DESC => Request::Description,
        FLOW => Request::Flow(query(&mut reader)?),
        AGGREGATE => Request::Aggregate(query(&mut reader)?),
        TABLE => Request::Table,
        PORT_STATS => Request::Port(padded(&mut reader)?),
        GROUP => Request::Group(padded(&mut reader)?),
        GROUP_DESC => Request::GroupDescription,
        GROUP_FEATURES => Request::GroupFeatures,
        PORT_DESC => Request::PortDescription,
        EXPERIMENTER => return Err(Fault::BAD_EXPERIMENTER),
        _ => return Err(Fault::BAD_MULTIPART),
    };
    reader.end()?;
    Ok((more, request))
}

pub(super) fn emit_request(more: bool, request: &Request, out: &mut Writer<'_>) {
    let kind = match request {
        Request::Description => DESC,
        Request::Flow(_) => FLOW,
        Request::Aggregate(_) => AGGREGATE,
        Request::Table => TABLE,
        Request::Port(_) => PORT_STATS,
        Request::Group(_) => GROUP,
        Request::GroupDescription => GROUP_DESC,
        Request::GroupFeatures => GROUP_FEATURES,
        Request::PortDescription => PORT_DESC,
    };
    out.u16(kind).u16(u16::from(more)).pad(4);
    match request {
        Request::Flow(query) | Request::Aggregate(query) => emit_query(query, out),
        Request::Port(number) | Request::Group(number) => {
            out.u32(*number).pad(4);
        }
        _ => {}
    }
}

/// As many as there are.
fn all<T>(
    reader: &mut Reader<'_>,
    one: impl Fn(&mut Reader<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut all = Vec::new();
    while !reader.is_empty() {
        all.push(one(reader)?);
    }
    Ok(all)
}

pub(super) fn parse_reply(mut reader: Reader<'_>) -> Result<(bool, Reply), Fault> {
    let (kind, more) = header(&mut reader)?;
    let body = &mut reader;
    let reply = match kind {
        DESC => {
            let mut text = |len: usize| {
                let mut text = body.text(len)?;
                text.truncate(len - 1);
                Ok::<_, Fault>(text)
            };
            Reply::Description(Description {
                manufacturer: text(TEXT)?,
                hardware: text(TEXT)?,
                software: text(TEXT)?,
                serial: text(SERIAL)?,
                datapath: text(TEXT)?,
            })
        }
        FLOW => Reply::Flow(all(body, flow_stats)?),
        AGGREGATE => {
            let (packets, bytes) = (body.u64()?, body.u64()?);
            let flows = padded(body)?;
            Reply::Aggregate(Aggregate {
                packets,
                bytes,
                flows,
            })
        }
        TABLE => Reply::Table(all(body, |body| {
            let table = body.u8()?;
            body.take(3)?;
            Ok(TableStats {
                table,
                active: body.u32()?,
                lookups: body.u64()?,
                matched: body.u64()?,
            })
        })?),
        PORT_STATS => Reply::Port(all(body, port_stats)?),
        GROUP => Reply::Group(all(body, group_stats)?),
        GROUP_DESC => Reply::GroupDescription(all(body, group::parse_description)?),
        GROUP_FEATURES => {
            let (types, capabilities) = (body.u32()?, body.u32()?);
            let (max_groups, actions) = (four(body)?, four(body)?);
            Reply::GroupFeatures(GroupFeatures {
                types,
                capabilities,
                max_groups,
                actions,
            })
        }
        PORT_DESC => Reply::PortDescription(all(body, port::parse)?),
        EXPERIMENTER => return Err(Fault::BAD_EXPERIMENTER),
        _ => return Err(Fault::BAD_MULTIPART),
    };
    reader.end()?;
    Ok((more, reply))
}

fn four(reader: &mut Reader<'_>) -> Result<[u32; 4], Fault> {
    Ok([reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?])
}

fn flow_stats(reader: &mut Reader<'_>) -> Result<FlowStats, Fault> {
    let len = usize::from(reader.u16()?);
    let body_len = len.checked_sub(2).ok_or(Fault::BAD_LEN)?;
    let mut body = reader.part(body_len, Fault::BAD_LEN)?;
    let table = body.u8()?;
    body.take(1)?;
    let (seconds, nanoseconds) = (body.u32()?, body.u32()?);
    let (priority, idle_timeout) = (body.u16()?, body.u16()?);
    let (hard_timeout, flags) = (body.u16()?, body.u16()?);
    body.take(4)?;
    let (cookie, packets, bytes) = (body.u64()?, body.u64()?, body.u64()?);
    let matching = oxm::parse(&mut body)?;
    let rest = Reader::new(body.rest(), Fault::INSTRUCTION_BAD_LEN);
    Ok(FlowStats {
        table,
        seconds,
        nanoseconds,
        priority,
        idle_timeout,
        hard_timeout,
        flags,
        cookie,
        packets,
        bytes,
        matching,
        instructions: action::parse_instructions(rest)?,
    })
}

impl FlowStats {
    /// Its length in a reply.
    pub fn wire_len(&self) -> usize {
        let mut bytes = Vec::new();
        emit_flow_stats(self, &mut Writer(&mut bytes));
        bytes.len()
    }
}

fn emit_flow_stats(it: &FlowStats, out: &mut Writer<'_>) {
    let start = out.at();
    out.u16(0).u8(it.table).pad(1);
    out.u32(it.seconds).u32(it.nanoseconds);
    out.u16(it.priority).u16(it.idle_timeout);
    out.u16(it.hard_timeout).u16(it.flags).pad(4);
    out.u64(it.cookie).u64(it.packets).u64(it.bytes);
    oxm::emit(&it.matching, out);
    action::emit_instructions(&it.instructions, out);
    out.length(start, start);
}

fn port_stats(reader: &mut Reader<'_>) -> Result<PortStats, Fault> {
    let number = padded(reader)?;
    let mut stats = PortStats {
        number,
        ..PortStats::default()
    };
    for counter in stats.counters.iter_mut().chain(&mut stats.errors) {
        *counter = reader.u64()?;
    }
    (stats.seconds, stats.nanoseconds) = (reader.u32()?, reader.u32()?);
    Ok(stats)
}

fn group_stats(reader: &mut Reader<'_>) -> Result<GroupStats, Fault> {
    let len = usize::from(reader.u16()?);
    let body_len = len.checked_sub(2).ok_or(Fault::BAD_LEN)?;
    let mut body = reader.part(body_len, Fault::BAD_LEN)?;
    body.take(2)?;
    let (group, references) = (body.u32()?, body.u32()?);
    body.take(4)?;
    let (packets, bytes) = (body.u64()?, body.u64()?);
    let (seconds, nanoseconds) = (body.u32()?, body.u32()?);
    Ok(GroupStats {
        group,
        references,
        packets,
        bytes,
        seconds,
        nanoseconds,
        buckets: all(&mut body, |body| Ok((body.u64()?, body.u64()?)))?,
    })
}

pub(super) fn emit_reply(more: bool, reply: &Reply, out: &mut Writer<'_>) {
    let kind = match reply {
        Reply::Description(_) => DESC,
        Reply::Flow(_) => FLOW,
        Reply::Aggregate(_) => AGGREGATE,
        Reply::Table(_) => TABLE,
        Reply::Port(_) => PORT_STATS,
        Reply::Group(_) => GROUP,
        Reply::GroupDescription(_) => GROUP_DESC,
        Reply::GroupFeatures(_) => GROUP_FEATURES,
        Reply::PortDescription(_) => PORT_DESC,
    };
    out.u16(kind).u16(u16::from(more)).pad(4);
    match reply {
        Reply::Description(it) => {
            for (text, len) in [
                (&it.manufacturer, TEXT),
                (&it.hardware, TEXT),
                (&it.software, TEXT),
                (&it.serial, SERIAL),
                (&it.datapath, TEXT),
            ] {
                out.text(text, len);
            }
        }
        Reply::Flow(flows) => flows.iter().for_each(|it| emit_flow_stats(it, out)),
        Reply::Aggregate(it) => {
            out.u64(it.packets).u64(it.bytes).u32(it.flows).pad(4);
        }
        Reply::Table(tables) => {
            for it in tables {
                out.u8(it.table).pad(3).u32(it.active);
                out.u64(it.lookups).u64(it.matched);
            }
        }
        Reply::Port(ports) => {
            for it in ports {
                out.u32(it.number).pad(4);
                for counter in it.counters.iter().chain(&it.errors) {
                    out.u64(*counter);
                }
                out.u32(it.seconds).u32(it.nanoseconds);
            }
        }
        Reply::Group(groups) => {
            for it in groups {
                let start = out.at();
                out.u16(0).pad(2).u32(it.group).u32(it.references).pad(4);
                out.u64(it.packets).u64(it.bytes);
                out.u32(it.seconds).u32(it.nanoseconds);
                for (packets, bytes) in &it.buckets {
                    out.u64(*packets).u64(*bytes);
                }
                out.length(start, start);
            }
        }
        Reply::GroupDescription(groups) => {
            groups
                .iter()
                .for_each(|it| group::emit_description(it, out));
        }
        Reply::GroupFeatures(it) => {
            out.u32(it.types).u32(it.capabilities);
            for number in it.max_groups.iter().chain(&it.actions) {
                out.u32(*number);
            }
        }
        Reply::PortDescription(ports) => ports.iter().for_each(|it| port::emit(it, out)),
    }
}

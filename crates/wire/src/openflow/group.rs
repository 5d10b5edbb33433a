//! Groups (section 7.3.4.2).

use super::reader::Reader;
use super::writer::Writer;
use super::{Action, Fault, action};

/// `struct ofp_bucket`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub weight: u16,
    /// `OFPP_ANY`: no port's state matters.
    pub watch_port: u32,
    /// `OFPG_ANY`: no group's state matters.
    pub watch_group: u32,
    pub actions: Vec<Action>,
}

/// A group as it is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `enum ofp_group_type`
    pub kind: u8,
    pub group: u32,
    pub buckets: Vec<Bucket>,
}

/// `OFPT_GROUP_MOD`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMod {
    /// `enum ofp_group_mod_command`
    pub command: u16,
    pub group: Group,
}

const BUCKET_LEN: usize = 16;

fn bucket(reader: &mut Reader<'_>) -> Result<Bucket, Fault> {
    let len = usize::from(reader.u16()?);
    let body_len = len.checked_sub(2).filter(|_| len >= BUCKET_LEN);
    let mut body = reader.part(body_len.ok_or(Fault::BAD_BUCKET)?, Fault::BAD_BUCKET)?;
    let (weight, watch_port, watch_group) = (body.u16()?, body.u32()?, body.u32()?);
    body.take(4)?;
    Ok(Bucket {
        weight,
        watch_port,
        watch_group,
        actions: action::parse(Reader::new(body.rest(), Fault::ACTION_BAD_LEN))?,
    })
}

fn buckets(mut reader: Reader<'_>) -> Result<Vec<Bucket>, Fault> {
    let mut buckets = Vec::new();
    while !reader.is_empty() {
        buckets.push(bucket(&mut reader)?);
    }
    Ok(buckets)
}

fn emit_buckets(buckets: &[Bucket], out: &mut Writer<'_>) {
    for bucket in buckets {
        let start = out.at();
        out.u16(0)
            .u16(bucket.weight)
            .u32(bucket.watch_port)
            .u32(bucket.watch_group)
            .pad(4);
        action::emit(&bucket.actions, out);
        out.length(start, start);
    }
}

pub(super) fn parse_mod(mut reader: Reader<'_>) -> Result<GroupMod, Fault> {
    let command = reader.u16()?;
    let kind = reader.u8()?;
    reader.take(1)?;
    let group = reader.u32()?;
    let buckets = buckets(Reader::new(reader.rest(), Fault::BAD_BUCKET))?;
    let group = Group {
        kind,
        group,
        buckets,
    };
    Ok(GroupMod { command, group })
}

pub(super) fn emit_mod(message: &GroupMod, out: &mut Writer<'_>) {
    let group = &message.group;
    out.u16(message.command)
        .u8(group.kind)
        .pad(1)
        .u32(group.group);
    emit_buckets(&group.buckets, out);
}

/// `struct ofp_group_desc`
pub(super) fn parse_description(reader: &mut Reader<'_>) -> Result<Group, Fault> {
    let len = usize::from(reader.u16()?);
    let body_len = len.checked_sub(2).ok_or(Fault::BAD_LEN)?;
    let mut body = reader.part(body_len, Fault::BAD_LEN)?;
    let kind = body.u8()?;
    body.take(1)?;
    let group = body.u32()?;
    let buckets = buckets(Reader::new(body.rest(), Fault::BAD_BUCKET))?;
    Ok(Group {
        kind,
        group,
        buckets,
    })
}

pub(super) fn emit_description(group: &Group, out: &mut Writer<'_>) {
    let start = out.at();
    out.u16(0).u8(group.kind).pad(1).u32(group.group);
    emit_buckets(&group.buckets, out);
    out.length(start, start);
}

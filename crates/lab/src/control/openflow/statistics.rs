//! Answers to multipart requests (section 7.3.5). A counter that is not kept has all bits set.

use polypath_net::NodeId;
use polypath_switch::{Counts, Entry, Fabric, Port as Output, Switch, Wanted};
use polypath_wire::openflow::{
    ALL_TABLES, Aggregate, Description, Fault, FlowQuery, FlowStats, GroupFeatures, GroupStats,
    Port, PortStats, Reply, Request, TableStats, flag, number,
};

use super::Ground;
use super::translate::{ANY_GROUP, ETHERNET_HEADER, matching, oxms, wire_group, wire_instructions};

const UNKNOWN: u64 = u64::MAX;
/// `OFPG_MAX`
const MOST_GROUPS: u32 = 0xffff_ff00;
/// How much of a reply is in one message.
const ROOM: usize = 60_000;
const SECOND: u64 = 1_000_000_000;

/// Seconds and nanoseconds.
pub(super) fn duration(nanoseconds: u64) -> (u32, u32) {
    let seconds = u32::try_from(nanoseconds / SECOND).unwrap_or(u32::MAX);
    (seconds, (nanoseconds % SECOND) as u32)
}

/// Timeouts are whole seconds.
pub(super) fn seconds(timeout: Option<u64>) -> u16 {
    timeout.map_or(0, |timeout| {
        u16::try_from(timeout / SECOND).unwrap_or(u16::MAX)
    })
}

/// Bytes of frames, as ports count them; the switch counts those of packets.
pub(super) fn frame_bytes(counts: Counts) -> u64 {
    let headers = counts.packets.saturating_mul(ETHERNET_HEADER as u64);
    counts.bytes.saturating_add(headers)
}

/// Which entries a query is about.
pub(super) fn wanted(
    fields: &[polypath_wire::openflow::Oxm],
    strict: Option<u16>,
    cookie: (u64, u64),
    out: (u32, u32),
) -> Wanted {
    let (out_port, out_group) = out;
    Wanted {
        strict,
        cookie: cookie.0,
        cookie_mask: cookie.1,
        out_port: match out_port {
            number::ANY => None,
            number::IN_PORT => Some(Output::In),
            number::ALL => Some(Output::All),
            number::FLOOD => Some(Output::Flood),
            number::CONTROLLER => Some(Output::Controller(polypath_switch::WHOLE)),
            other => Some(Output::Number(other)),
        },
        out_group: (out_group != ANY_GROUP).then_some(out_group),
        ..Wanted::included(matching(fields))
    }
}

/// The tables that a number names.
pub(super) fn tables(switch: &Switch, table: u8) -> Result<std::ops::Range<u8>, Fault> {
    let count = switch.limits().tables;
    match table {
        ALL_TABLES => Ok(0..count),
        table if table < count => Ok(table..table + 1),
        _ => Err(Fault::BAD_TABLE),
    }
}

fn selected<'a>(switch: &'a Switch, query: &FlowQuery) -> Result<Vec<(u8, &'a Entry)>, Fault> {
    let cookie = (query.cookie, query.cookie_mask);
    let wanted = wanted(
        &query.matching,
        None,
        cookie,
        (query.out_port, query.out_group),
    );
    let tables = tables(switch, query.table).map_err(|_| Fault::REQUEST_BAD_TABLE)?;
    let mut found = Vec::new();
    for table in tables {
        let ids = switch.selected(table, &wanted).unwrap_or_default();
        let entries = ids.into_iter().filter_map(|id| switch.get(table, id));
        found.extend(entries.map(|entry| (table, entry)));
    }
    Ok(found)
}

/// A list in as many messages as it takes: at least one.
fn parts<T>(all: Vec<T>, len: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut parts, mut left) = (vec![Vec::new()], ROOM);
    for one in all {
        let len = len(&one);
        if len > left {
            parts.push(Vec::new());
            left = ROOM;
        }
        left = left.saturating_sub(len);
        if let Some(last) = parts.last_mut() {
            last.push(one);
        }
    }
    parts
}

/// The answer to a request, in parts.
pub(super) fn answer(
    node: NodeId,
    name: &str,
    ports: &[Port],
    request: &Request,
    ground: &mut Ground<'_>,
) -> Result<Vec<Reply>, Fault> {
    let now = ground.network.now();
    if matches!(
        request,
        Request::Flow(_) | Request::Aggregate(_) | Request::Group(_)
    ) {
        ground.fabric.settle();
    }
    if let Request::Port(number) = request {
        return port_stats(node, ports, *number, ground);
    }
    let Some(switch) = ground.fabric.switch(node) else {
        return Ok(Vec::new());
    };
    Ok(match request {
        Request::Description => vec![Reply::Description(Description {
            manufacturer: b"Polypath".to_vec(),
            hardware: b"simulated switch".to_vec(),
            software: env!("CARGO_PKG_VERSION").into(),
            serial: b"None".to_vec(),
            datapath: name.into(),
        })],
        Request::Flow(query) => {
            let flows = selected(switch, query)?;
            let flows = flows.into_iter().map(|(table, entry)| {
                let (seconds_, nanoseconds) = duration(now - entry.added_at);
                FlowStats {
                    table,
                    seconds: seconds_,
                    nanoseconds,
                    priority: entry.priority,
                    idle_timeout: seconds(entry.timeouts.idle),
                    hard_timeout: seconds(entry.timeouts.hard),
                    flags: if entry.notify { flag::SEND_FLOW_REM } else { 0 },
                    cookie: entry.cookie,
                    packets: entry.counts.packets,
                    bytes: frame_bytes(entry.counts),
                    matching: oxms(&entry.matching),
                    instructions: wire_instructions(&entry.instructions),
                }
            });
            let parts = parts(flows.collect(), FlowStats::wire_len);
            parts.into_iter().map(Reply::Flow).collect()
        }
        Request::Aggregate(query) => {
            let mut sum = Aggregate::default();
            for (_, entry) in selected(switch, query)? {
                sum.flows += 1;
                sum.packets += entry.counts.packets;
                sum.bytes += frame_bytes(entry.counts);
            }
            vec![Reply::Aggregate(sum)]
        }
        Request::Table => {
            let tables = 0..switch.limits().tables;
            let tables = tables.map(|table| TableStats {
                table,
                active: switch.table(table).count() as u32,
                lookups: UNKNOWN,
                matched: UNKNOWN,
            });
            vec![Reply::Table(tables.collect())]
        }
        Request::Group(number) => {
            let all = switch.groups();
            let wanted = all.filter(|(group, ..)| *number >= MOST_GROUPS || group == number);
            let stats = wanted.map(|(group, described, counts)| GroupStats {
                group,
                references: references(switch, group),
                packets: counts.packets,
                bytes: frame_bytes(counts),
                buckets: vec![(UNKNOWN, UNKNOWN); described.buckets.len()],
                // Nobody keeps when it was made.
                seconds: u32::MAX,
                nanoseconds: u32::MAX,
            });
            let parts = parts(stats.collect(), |it| 40 + 16 * it.buckets.len());
            parts.into_iter().map(Reply::Group).collect()
        }
        Request::GroupDescription => {
            let groups = switch.groups();
            let groups = groups.map(|(number, group, _)| wire_group(number, group));
            let len = |group: &polypath_wire::openflow::Group| {
                let buckets = group.buckets.iter();
                8 + buckets.map(|it| 16 + 16 * it.actions.len()).sum::<usize>()
            };
            let parts = parts(groups.collect(), len);
            parts.into_iter().map(Reply::GroupDescription).collect()
        }
        Request::GroupFeatures => {
            let most = u32::try_from(switch.limits().groups).unwrap_or(u32::MAX);
            vec![Reply::GroupFeatures(GroupFeatures {
                types: 0b1111,
                // OFPGFC_SELECT_WEIGHT and OFPGFC_SELECT_LIVENESS
                capabilities: 0b11,
                max_groups: [most; 4],
                // OFPAT_OUTPUT
                actions: [1; 4],
            })]
        }
        Request::PortDescription => {
            let described = ports.iter().map(|port| with_state(port, switch));
            let parts = parts(described.collect(), |_| 64);
            parts.into_iter().map(Reply::PortDescription).collect()
        }
        Request::Port(_) => Vec::new(),
    })
}

/// A port with what is known of its link: `OFPPS_LINK_DOWN` or `OFPPS_LIVE`.
pub(super) fn with_state(port: &Port, switch: &Switch) -> Port {
    let state = if switch.is_up(port.number) { 1 << 2 } else { 1 };
    Port {
        state,
        ..port.clone()
    }
}

/// Entries that name a group.
fn references(switch: &Switch, group: u32) -> u32 {
    let naming = Wanted {
        out_group: Some(group),
        ..Wanted::default()
    };
    let tables = 0..switch.limits().tables;
    let found = tables.map(|table| switch.selected(table, &naming).unwrap_or_default().len());
    found.sum::<usize>() as u32
}

fn port_stats(
    node: NodeId,
    ports: &[Port],
    wanted: u32,
    ground: &mut Ground<'_>,
) -> Result<Vec<Reply>, Fault> {
    let known = |port: &&Port| wanted == number::ANY || port.number == wanted;
    let found: Vec<u32> = ports.iter().filter(known).map(|port| port.number).collect();
    if found.is_empty() && wanted != number::ANY {
        return Err(Fault::REQUEST_BAD_PORT);
    }
    let (seconds, nanoseconds) = duration(ground.network.now());
    let mut stats = Vec::new();
    for number in found {
        let topology = ground.network.topology();
        let out = Fabric::channel(topology, node, number);
        let ways = out.map(|out| (out, topology.opposite(out)));
        let [sent, received] = ways.map_or_else(Default::default, |(out, back)| {
            [ground.network.stats(out), ground.network.stats(back)]
        });
        // What the other end's channel lost on the way did not come in.
        let came = received.sent_packets.saturating_sub(received.lost_packets);
        stats.push(PortStats {
            number,
            counters: [
                came,
                sent.sent_packets,
                received.sent_bytes,
                sent.sent_bytes,
                0,
                sent.dropped_packets,
                0,
                0,
            ],
            errors: [0; 4],
            seconds,
            nanoseconds,
        });
    }
    let parts = parts(stats, |_| 112);
    Ok(parts.into_iter().map(Reply::Port).collect())
}

//! One switch's end of its control channel: its answers, and the messages that it sends unasked.

use std::collections::BTreeMap;
use std::sync::Arc;

use polypath_net::NodeId;
use polypath_switch::{
    Action, Counts, Entry, Expired, Reason, Removed, Switch, SwitchError, Timeouts, WHOLE,
};
use polypath_wire::openflow::{
    self as wire, Config, Fault, Features, FlowMod, FlowRemoved, GroupMod, Message, NO_BUFFER,
    PacketIn, PacketOut, Port, command, flag, number, role,
};

use super::statistics::{answer, duration, frame_bytes, seconds, tables, wanted, with_state};
use super::translate::{action, fault, group, in_port, instructions, matching, oxms};
use super::{Frames, Ground};
use crate::control::Held;

/// Packets that a switch keeps for its controller at most, the latest.
const BUFFERS: u32 = 256;
/// Of a message that is refused, so much goes back (section 7.4.4).
const QUOTED: usize = 64;
/// Of a packet, so much fits a message.
const MOST_DATA: usize = 65_000;
/// `OFPC_FLOW_STATS`, `OFPC_TABLE_STATS`, `OFPC_PORT_STATS`, `OFPC_GROUP_STATS`
const CAPABILITIES: u32 = 0b1111;
/// `OFPG_ALL`
const ALL_GROUPS: u32 = 0xffff_fffc;

/// What a message did to a switch, for its tally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub packet_outs: u64,
    pub flow_mods: u64,
    pub group_mods: u64,
    pub flows_removed: u64,
    pub errors: u64,
}

/// A packet that a controller sends.
#[derive(Debug)]
pub(crate) enum What {
    /// One that came to it.
    Held(Box<Held>),
    /// One of its own.
    Frame(Arc<[u8]>),
}

/// What is done with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Actions(Vec<Action>),
    /// Through the tables, as if it had come in by its port.
    Table,
}

#[derive(Debug)]
pub(crate) struct Sending {
    pub what: What,
    pub in_port: u32,
    pub steps: Vec<Step>,
}

/// What follows from a message.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub replies: Vec<Vec<u8>>,
    pub sending: Option<Sending>,
    pub counted: Counted,
}

#[derive(Debug)]
pub(crate) struct Agent {
    node: NodeId,
    pub datapath: u64,
    name: String,
    ports: Vec<Port>,
    inbox: Vec<u8>,
    config: Config,
    role: u32,
    generation: Option<u64>,
    buffers: BTreeMap<u32, Held>,
    next_buffer: u32,
    next_xid: u32,
    /// The controller said hello; with `closed`, versions did not meet or lengths made no sense.
    greeted: bool,
    closed: bool,
}

impl Agent {
    pub fn new(node: NodeId, datapath: u64, name: String, ports: Vec<Port>) -> Self {
        Self {
            node,
            datapath,
            name,
            ports,
            inbox: Vec::new(),
            config: Config {
                flags: 0,
                miss_send_len: 128,
            },
            role: role::EQUAL,
            generation: None,
            buffers: BTreeMap::new(),
            next_buffer: 0,
            next_xid: 0,
            greeted: false,
            closed: false,
        }
    }

    /// The first message.
    pub fn hello(&mut self) -> Vec<u8> {
        self.own(&Message::Hello {
            version: wire::VERSION,
            versions: Some(1 << wire::VERSION),
        })
    }

    fn own(&mut self, message: &Message) -> Vec<u8> {
        self.next_xid = self.next_xid.wrapping_add(1);
        emit(self.next_xid, message)
    }

    /// Whether the controller hears of what happens by itself; a slave hears of ports alone (section 6.3.4).
    fn tells(&self, of_ports: bool) -> bool {
        self.greeted && !self.closed && (of_ports || self.role != role::SLAVE)
    }

    /// Bytes of the controller's; [`Agent::next`] is to be called until it has no more.
    pub fn receive(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.inbox.extend_from_slice(bytes);
        }
    }

    /// Does what the next whole message says.
    pub fn next(&mut self, frames: &Frames, ground: &mut Ground<'_>) -> Option<Outcome> {
        let mut outcome = Outcome::default();
        let len = match wire::split(&self.inbox) {
            Ok(len) => len?,
            Err(fault) => {
                // Where the next message begins is not known any more.
                let stream = std::mem::take(&mut self.inbox);
                self.closed = true;
                refuse(fault, &stream, &mut outcome);
                return Some(outcome);
            }
        };
        if self.inbox.len() < len {
            return None;
        }
        let bytes: Vec<u8> = self.inbox.drain(..len).collect();
        let done = wire::parse(&bytes)
            .and_then(|(xid, message)| self.act(xid, message, frames, ground, &mut outcome));
        if let Err(fault) = done {
            refuse(fault, &bytes, &mut outcome);
        }
        if self.closed {
            self.inbox.clear();
        }
        Some(outcome)
    }

    fn act(
        &mut self,
        xid: u32,
        message: Message,
        frames: &Frames,
        ground: &mut Ground<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Fault> {
        let reply = match message {
            Message::Hello { version, versions } => {
                let common = versions.map_or(version >= wire::VERSION, |versions| {
                    versions & 1 << wire::VERSION != 0
                });
                self.greeted = common;
                self.closed = !common;
                return if common {
                    Ok(())
                } else {
                    Err(Fault::INCOMPATIBLE)
                };
            }
            Message::EchoRequest(data) => Message::EchoReply(data),
            Message::FeaturesRequest => Message::FeaturesReply(Features {
                datapath: self.datapath,
                buffers: BUFFERS,
                tables: self.switch(ground).map_or(0, |it| it.limits().tables),
                auxiliary: 0,
                capabilities: CAPABILITIES,
            }),
            Message::GetConfigRequest => Message::GetConfigReply(self.config),
            Message::SetConfig(config) => {
                self.may_change()?;
                // Fragments are not handled apart: OFPC_FRAG_NORMAL alone.
                if config.flags != 0 {
                    return Err(Fault::CONFIG_BAD_FLAGS);
                }
                self.config = config;
                return Ok(());
            }
            Message::PacketOut(given) => {
                self.may_change()?;
                return self.packet_out(given, frames, ground, outcome);
            }
            Message::FlowMod(given) => {
                self.may_change()?;
                return self.flow_mod(&given, ground, outcome);
            }
            Message::GroupMod(given) => {
                self.may_change()?;
                return self.group_mod(&given, ground, outcome);
            }
            Message::MultipartRequest { request, .. } => {
                let (node, name) = (self.node, &self.name);
                let parts = answer(node, name, &self.ports, &request, ground)?;
                let last = parts.len().saturating_sub(1);
                let parts = parts.into_iter().enumerate().map(|(at, reply)| {
                    let more = at < last;
                    emit(xid, &Message::MultipartReply { more, reply })
                });
                outcome.replies.extend(parts);
                return Ok(());
            }
            Message::BarrierRequest => Message::BarrierReply,
            Message::RoleRequest { role, generation } => self.take_role(role, generation)?,
            Message::EchoReply(_) | Message::Error { .. } => return Ok(()),
            // What only a switch says.
            _ => return Err(Fault::BAD_TYPE),
        };
        outcome.replies.push(emit(xid, &reply));
        Ok(())
    }

    fn switch<'a>(&self, ground: &'a Ground<'_>) -> Option<&'a Switch> {
        ground.fabric.switch(self.node)
    }

    /// Section 6.3.4: a slave only looks.
    fn may_change(&self) -> Result<(), Fault> {
        if self.role == role::SLAVE {
            return Err(Fault::IS_SLAVE);
        }
        Ok(())
    }

    fn take_role(&mut self, asked: u32, generation: u64) -> Result<Message, Fault> {
        match asked {
            role::NOCHANGE => {}
            role::EQUAL => self.role = asked,
            role::MASTER | role::SLAVE => {
                // Section 6.3.5: older than what was heard, in the order of 64 bits that wrap.
                let stale = |known: u64| (generation.wrapping_sub(known) as i64) < 0;
                if self.generation.is_some_and(stale) {
                    return Err(Fault::STALE);
                }
                self.generation = Some(generation);
                self.role = asked;
            }
            _ => return Err(Fault::BAD_ROLE),
        }
        Ok(Message::RoleReply {
            role: self.role,
            generation: self.generation.unwrap_or(u64::MAX),
        })
    }

    fn packet_out(
        &mut self,
        given: PacketOut,
        frames: &Frames,
        ground: &Ground<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Fault> {
        let Some(switch) = self.switch(ground) else {
            return Ok(());
        };
        let known = switch.ports().any(|(port, _)| port == given.in_port);
        if !known && given.in_port != number::CONTROLLER {
            return Err(Fault::REQUEST_BAD_PORT);
        }
        let mut steps = Vec::new();
        for each in &given.actions {
            if let wire::Action::Output { port, .. } = each
                && *port == number::TABLE
            {
                steps.push(Step::Table);
                continue;
            }
            let action = action(each)?;
            switch.check(&[action]).map_err(fault)?;
            match steps.last_mut() {
                Some(Step::Actions(actions)) => actions.push(action),
                _ => steps.push(Step::Actions(vec![action])),
            }
        }
        let what = if given.buffer != NO_BUFFER {
            let held = self.buffers.remove(&given.buffer);
            What::Held(Box::new(held.ok_or(Fault::BUFFER_UNKNOWN)?))
        } else if let Some(held) = frames.find(&given.data) {
            What::Held(Box::new(held.clone()))
        } else if super::fields(&given.data).is_some() {
            What::Frame(given.data.into())
        } else {
            return Err(Fault::BAD_PACKET);
        };
        outcome.counted.packet_outs += 1;
        outcome.sending = Some(Sending {
            what,
            in_port: given.in_port,
            steps,
        });
        Ok(())
    }

    fn flow_mod(
        &mut self,
        given: &FlowMod,
        ground: &mut Ground<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Fault> {
        if given.flags & !flag::ALL != 0 {
            return Err(Fault::BAD_FLAGS);
        }
        let strict = matches!(
            given.command,
            command::MODIFY_STRICT | command::DELETE_STRICT
        );
        let asked = || {
            let cookie = (given.cookie, given.cookie_mask);
            let out = match given.command {
                command::DELETE | command::DELETE_STRICT => (given.out_port, given.out_group),
                _ => (number::ANY, u32::MAX),
            };
            wanted(
                &given.matching,
                strict.then_some(given.priority),
                cookie,
                out,
            )
        };
        match given.command {
            command::ADD => {
                let second = |time: u16| Some(u64::from(time) * 1_000_000_000);
                let timeouts = Timeouts {
                    idle: second(given.idle_timeout).filter(|time| *time > 0),
                    hard: second(given.hard_timeout).filter(|time| *time > 0),
                };
                let instructions = instructions(&given.instructions)?;
                let matching = matching(&given.matching);
                let (fabric, network) = (&mut *ground.fabric, &mut *ground.network);
                // Section 6.4: the counters of the entry that makes room stay.
                let counts = match given.flags & flag::RESET_COUNTS {
                    0 => fabric.done(self.node, given.table, matching, given.priority),
                    _ => Counts::default(),
                };
                let entry = Entry {
                    timeouts,
                    cookie: given.cookie,
                    notify: given.flags & flag::SEND_FLOW_REM != 0,
                    counts,
                    ..Switch::entry(matching, given.priority, instructions)
                };
                let overlap = given.flags & flag::CHECK_OVERLAP != 0;
                fabric
                    .add(network, self.node, given.table, entry, overlap)
                    .map_err(fault)?;
            }
            command::MODIFY | command::MODIFY_STRICT => {
                let instructions = instructions(&given.instructions)?;
                let reset = given.flags & flag::RESET_COUNTS != 0;
                let (fabric, network) = (&mut *ground.fabric, &mut *ground.network);
                fabric
                    .modify(
                        network,
                        self.node,
                        given.table,
                        &asked(),
                        &instructions,
                        reset,
                    )
                    .map_err(fault)?;
            }
            command::DELETE | command::DELETE_STRICT => {
                let Some(switch) = self.switch(ground) else {
                    return Ok(());
                };
                for table in tables(switch, given.table)? {
                    let (fabric, network) = (&mut *ground.fabric, &mut *ground.network);
                    let gone = fabric
                        .delete(network, self.node, table, &asked())
                        .map_err(fault)?;
                    let now = ground.network.now();
                    self.tell_removed(now, &gone, GONE_DELETED, outcome);
                }
                outcome.counted.flow_mods += 1;
                return Ok(());
            }
            _ => return Err(Fault::BAD_COMMAND),
        }
        outcome.counted.flow_mods += 1;
        if given.buffer != NO_BUFFER {
            // Section 7.3.4.1: as a packet-out to the tables that follows.
            let held = self.buffers.remove(&given.buffer);
            let held = held.ok_or(Fault::BUFFER_UNKNOWN)?;
            outcome.counted.packet_outs += 1;
            outcome.sending = Some(Sending {
                in_port: held.fields.in_port,
                what: What::Held(Box::new(held)),
                steps: vec![Step::Table],
            });
        }
        Ok(())
    }

    fn group_mod(
        &mut self,
        given: &GroupMod,
        ground: &mut Ground<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), Fault> {
        let number = given.group.group;
        let of_group = |error: SwitchError| match error {
            SwitchError::UnknownGroup(_) => Fault::UNKNOWN_GROUP,
            other => fault(other),
        };
        if given.command < 2 {
            if number > wire::number::MAX {
                return Err(Fault::INVALID_GROUP);
            }
            let made = group(&given.group)?;
            let watched = made.buckets.iter().filter_map(|bucket| bucket.watch);
            let ports = self.switch(ground).into_iter().flat_map(Switch::ports);
            let ports: Vec<u32> = ports.map(|(port, _)| port).collect();
            if watched.into_iter().any(|port| !ports.contains(&port)) {
                return Err(Fault::BAD_WATCH);
            }
            let (fabric, network) = (&mut *ground.fabric, &mut *ground.network);
            match given.command {
                0 => fabric.add_group(self.node, number, made),
                _ => fabric.modify_group(network, self.node, number, made),
            }
            .map_err(of_group)?;
        } else if given.command == 2 {
            let groups = self.switch(ground).into_iter().flat_map(Switch::groups);
            let groups: Vec<u32> = groups.map(|(group, ..)| group).collect();
            let doomed = |group: &u32| number == ALL_GROUPS || *group == number;
            for group in groups.into_iter().filter(doomed) {
                let (fabric, network) = (&mut *ground.fabric, &mut *ground.network);
                let gone = fabric.delete_group(network, self.node, group);
                let now = ground.network.now();
                self.tell_removed(now, &gone, GONE_WITH_GROUP, outcome);
            }
        } else {
            return Err(Fault::GROUP_BAD_COMMAND);
        }
        outcome.counted.group_mods += 1;
        Ok(())
    }

    fn tell_removed(&mut self, now: u64, gone: &[Removed], reason: u8, outcome: &mut Outcome) {
        for removed in gone {
            if let Some(message) = self.removed(now, removed, reason) {
                outcome.counted.flows_removed += 1;
                outcome.replies.push(message);
            }
        }
    }

    fn removed(&mut self, now: u64, removed: &Removed, reason: u8) -> Option<Vec<u8>> {
        let entry = &removed.entry;
        if !entry.notify || !self.tells(false) {
            return None;
        }
        let (seconds_, nanoseconds) = duration(now - entry.added_at);
        let message = FlowRemoved {
            cookie: entry.cookie,
            priority: entry.priority,
            reason,
            table: removed.table,
            seconds: seconds_,
            nanoseconds,
            idle_timeout: seconds(entry.timeouts.idle),
            hard_timeout: seconds(entry.timeouts.hard),
            packets: entry.counts.packets,
            bytes: frame_bytes(entry.counts),
            matching: oxms(&entry.matching),
        };
        Some(self.own(&Message::FlowRemoved(message)))
    }

    /// An entry has outlived its timeouts.
    pub fn expired(&mut self, now: u64, removed: &Removed) -> Option<Vec<u8>> {
        let reason = match removed.reason {
            Reason::Expired(Expired::Idle) => 0,
            Reason::Expired(Expired::Hard) => 1,
            Reason::Deleted => GONE_DELETED,
        };
        self.removed(now, removed, reason)
    }

    /// A port's link went up or down (`OFPPR_MODIFY`).
    pub fn port_status(&mut self, port: u32, switch: &Switch) -> Option<Vec<u8>> {
        if !self.tells(true) {
            return None;
        }
        let port = self.ports.iter().find(|it| it.number == port)?;
        let port = with_state(port, switch);
        Some(self.own(&Message::PortStatus { reason: 2, port }))
    }

    /// A packet goes to the controller: whole, or kept here and in part.
    pub fn packet_in(
        &mut self,
        held: Held,
        frame: &[u8],
        (miss, max_len): (bool, u16),
        (table, cookie): (u8, u64),
        frames: &mut Frames,
    ) -> Option<Vec<u8>> {
        if !self.tells(false) {
            return None;
        }
        let from = held.fields.in_port;
        let (buffer, data) = if max_len == WHOLE {
            frames.remember(frame, held);
            (NO_BUFFER, frame)
        } else {
            self.next_buffer = (self.next_buffer + 1) % (1 << 30);
            let oldest = self.next_buffer.wrapping_sub(BUFFERS);
            self.buffers.remove(&oldest);
            self.buffers.insert(self.next_buffer, held);
            (self.next_buffer, &frame[..frame.len().min(max_len.into())])
        };
        let message = PacketIn {
            buffer,
            total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
            // OFPR_NO_MATCH or OFPR_ACTION
            reason: u8::from(!miss),
            table,
            cookie,
            matching: in_port(from),
            data: data[..data.len().min(MOST_DATA)].to_vec(),
        };
        Some(self.own(&Message::PacketIn(message)))
    }
}

/// `OFPRR_DELETE` and `OFPRR_GROUP_DELETE`
const GONE_DELETED: u8 = 2;
const GONE_WITH_GROUP: u8 = 3;

/// A message of ours fits: replies are cut into parts, packets as well.
fn emit(xid: u32, message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = wire::emit(xid, message, &mut bytes);
    bytes
}

fn refuse(fault: Fault, bytes: &[u8], outcome: &mut Outcome) {
    let xid = bytes.get(4..8).map_or(0, |xid| {
        xid.iter()
            .fold(0, |value, byte| value << 8 | u32::from(*byte))
    });
    let data = bytes[..bytes.len().min(QUOTED)].to_vec();
    outcome.counted.errors += 1;
    outcome
        .replies
        .push(emit(xid, &Message::Error { fault, data }));
}

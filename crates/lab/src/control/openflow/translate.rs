//! Translation between the messages' terms and the switch's.

use std::net::IpAddr;

use polypath_switch::{
    Action, Bucket, Fields, Group, GroupKind, Instructions, Match, Port, SwitchError,
};
use polypath_wire::openflow::{self as wire, Fault, Field, Instruction, Oxm, number};
use polypath_wire::{ip, tcp, udp};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
pub(super) const ETHERNET_HEADER: usize = 14;
/// `OFPG_ANY`
pub(super) const ANY_GROUP: u32 = u32::MAX;

/// A match as the switch has it.
pub(super) fn matching(fields: &[Oxm]) -> Match {
    let (mut value, mut mask) = (Fields::default(), Fields::default());
    for oxm in fields {
        let bits = oxm.mask.unwrap_or(oxm.field.full());
        match oxm.field {
            Field::InPort => (value.in_port, mask.in_port) = (oxm.value as u32, bits as u32),
            Field::EthDst => {
                value.ethernet_destination = oxm.value as u64;
                mask.ethernet_destination = bits as u64;
            }
            Field::EthSrc => {
                value.ethernet_source = oxm.value as u64;
                mask.ethernet_source = bits as u64;
            }
            Field::EthType => {
                (value.ethertype, mask.ethertype) = (oxm.value as u16, bits as u16);
                if let Some(version) = version(value.ethertype) {
                    (value.version, mask.version) = (version, u8::MAX);
                }
            }
            Field::IpProto => (value.protocol, mask.protocol) = (oxm.value as u8, bits as u8),
            Field::Ipv4Src => (value.source, mask.source) = (oxm.value << 96, bits << 96),
            Field::Ipv4Dst => (value.destination, mask.destination) = (oxm.value << 96, bits << 96),
            Field::Ipv6Src => (value.source, mask.source) = (oxm.value, bits),
            Field::Ipv6Dst => (value.destination, mask.destination) = (oxm.value, bits),
            Field::TcpSrc | Field::UdpSrc => {
                (value.source_port, mask.source_port) = (oxm.value as u16, bits as u16);
            }
            Field::TcpDst | Field::UdpDst => {
                (value.destination_port, mask.destination_port) = (oxm.value as u16, bits as u16);
            }
        }
    }
    Match::new(&value, &mask)
}

fn version(ethertype: u16) -> Option<u8> {
    match ethertype {
        IPV4 => Some(4),
        IPV6 => Some(6),
        _ => None,
    }
}

/// A match as messages have it, prerequisites first.
pub(super) fn oxms(matching: &Match) -> Vec<Oxm> {
    let (value, mask) = (matching.value(), matching.mask());
    let mut all = Vec::new();
    let mut ask = |field: Field, value: u128, mask: u128| {
        if mask != 0 {
            let mask = Some(mask).filter(|mask| *mask != field.full());
            all.push(Oxm { field, value, mask });
        }
    };
    ask(Field::InPort, value.in_port.into(), mask.in_port.into());
    let (to, from) = (value.ethernet_destination, value.ethernet_source);
    ask(Field::EthDst, to.into(), mask.ethernet_destination.into());
    ask(Field::EthSrc, from.into(), mask.ethernet_source.into());
    ask(
        Field::EthType,
        value.ethertype.into(),
        mask.ethertype.into(),
    );
    ask(Field::IpProto, value.protocol.into(), mask.protocol.into());
    let (from, to, width) = match value.ethertype {
        IPV4 => (Field::Ipv4Src, Field::Ipv4Dst, 96),
        _ => (Field::Ipv6Src, Field::Ipv6Dst, 0),
    };
    ask(from, value.source >> width, mask.source >> width);
    ask(to, value.destination >> width, mask.destination >> width);
    let (from, to) = match value.protocol {
        TCP => (Field::TcpSrc, Field::TcpDst),
        _ => (Field::UdpSrc, Field::UdpDst),
    };
    ask(from, value.source_port.into(), mask.source_port.into());
    let (port, bits) = (value.destination_port, mask.destination_port);
    ask(to, port.into(), bits.into());
    all
}

/// A packet's own fields as a packet-in has them: the port that it came in by.
pub(super) fn in_port(port: u32) -> Vec<Oxm> {
    vec![Oxm::exact(Field::InPort, port.into())]
}

/// An output's port. `OFPP_TABLE` is none of an entry's.
fn port(given: u32, max_len: u16) -> Result<Port, Fault> {
    match given {
        number::IN_PORT => Ok(Port::In),
        number::ALL => Ok(Port::All),
        number::FLOOD => Ok(Port::Flood),
        number::CONTROLLER => Ok(Port::Controller(max_len)),
        1..=number::MAX => Ok(Port::Number(given)),
        _ => Err(Fault::BAD_OUT_PORT),
    }
}

pub(super) fn action(given: &wire::Action) -> Result<Action, Fault> {
    Ok(match *given {
        wire::Action::Output { port: to, max_len } => Action::Output(port(to, max_len)?),
        wire::Action::Group(group) => Action::Group(group),
    })
}

fn actions(given: &[wire::Action]) -> Result<Vec<Action>, Fault> {
    given.iter().map(action).collect()
}

pub(super) fn instructions(given: &[Instruction]) -> Result<Instructions, Fault> {
    let mut made = Instructions::default();
    for instruction in given {
        match instruction {
            Instruction::Goto(table) => made.goto = Some(*table),
            Instruction::Write(given) => made.write = actions(given)?,
            Instruction::Apply(given) => made.apply = actions(given)?,
            Instruction::Clear => made.clear = true,
        }
    }
    Ok(made)
}

fn wire_action(action: &Action) -> wire::Action {
    let output = |port: u32, max_len: u16| wire::Action::Output { port, max_len };
    match *action {
        Action::Group(group) => wire::Action::Group(group),
        Action::Output(Port::Number(port)) => output(port, 0),
        Action::Output(Port::In) => output(number::IN_PORT, 0),
        Action::Output(Port::All) => output(number::ALL, 0),
        Action::Output(Port::Flood) => output(number::FLOOD, 0),
        Action::Output(Port::Controller(max_len)) => output(number::CONTROLLER, max_len),
    }
}

pub(super) fn wire_instructions(given: &Instructions) -> Vec<Instruction> {
    let actions = |actions: &[Action]| actions.iter().map(wire_action).collect::<Vec<_>>();
    let mut made = Vec::new();
    if !given.apply.is_empty() {
        made.push(Instruction::Apply(actions(&given.apply)));
    }
    if given.clear {
        made.push(Instruction::Clear);
    }
    if !given.write.is_empty() {
        made.push(Instruction::Write(actions(&given.write)));
    }
    made.extend(given.goto.map(Instruction::Goto));
    made
}

pub(super) fn group(given: &wire::Group) -> Result<Group, Fault> {
    let kind = match given.kind {
        0 => GroupKind::All,
        1 => GroupKind::Select,
        2 => GroupKind::Indirect,
        3 => GroupKind::FastFailover,
        _ => return Err(Fault::GROUP_BAD_TYPE),
    };
    let watches = matches!(kind, GroupKind::FastFailover | GroupKind::Select);
    let bucket = |given: &wire::Bucket| {
        if given.watch_group != ANY_GROUP && watches {
            return Err(Fault::WATCH_UNSUPPORTED);
        }
        let watched = watches && given.watch_port != number::ANY;
        Ok(Bucket {
            weight: given.weight,
            watch: watched.then_some(given.watch_port),
            actions: actions(&given.actions)?,
        })
    };
    let buckets = given.buckets.iter().map(bucket);
    Ok(Group {
        kind,
        buckets: buckets.collect::<Result<_, _>>()?,
    })
}

pub(super) fn wire_group(number: u32, group: &Group) -> wire::Group {
    let kind = match group.kind {
        GroupKind::All => 0,
        GroupKind::Select => 1,
        GroupKind::Indirect => 2,
        GroupKind::FastFailover => 3,
    };
    let buckets = group.buckets.iter().map(|bucket| wire::Bucket {
        weight: bucket.weight,
        watch_port: bucket.watch.unwrap_or(number::ANY),
        watch_group: ANY_GROUP,
        actions: bucket.actions.iter().map(wire_action).collect(),
    });
    wire::Group {
        kind,
        group: number,
        buckets: buckets.collect(),
    }
}

/// Why a switch refuses an entry or a packet's actions.
pub(super) fn fault(error: SwitchError) -> Fault {
    match error {
        SwitchError::BadTable(_) => Fault::BAD_TABLE,
        SwitchError::BadGoto { .. } => Fault::BAD_GOTO,
        SwitchError::TableFull(_) => Fault::TABLE_FULL,
        SwitchError::Overlap => Fault::OVERLAP,
        SwitchError::UnknownGroup(_) => Fault::BAD_OUT_GROUP,
        SwitchError::GroupExists(_) => Fault::GROUP_EXISTS,
        SwitchError::OutOfGroups => Fault::OUT_OF_GROUPS,
        SwitchError::Chaining => Fault::CHAINING_UNSUPPORTED,
        SwitchError::InvalidGroup => Fault::INVALID_GROUP,
        SwitchError::BadPort(_) => Fault::BAD_OUT_PORT,
    }
}

fn mac(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The fields of a frame; nothing if it has no Ethernet header.
pub(crate) fn fields(frame: &[u8]) -> Option<Fields> {
    let (header, body) = frame.split_at_checked(ETHERNET_HEADER)?;
    let ethertype = u16::from_be_bytes([header[12], header[13]]);
    let network = match ethertype {
        IPV4 => ip::v4::parse(body).ok().map(|(header, payload)| {
            let ends = (IpAddr::V4(header.src), IpAddr::V4(header.dst));
            (ends, header.protocol, payload)
        }),
        IPV6 => ip::v6::parse(body).ok().map(|(header, payload)| {
            let ends = (IpAddr::V6(header.src), IpAddr::V6(header.dst));
            (ends, header.next_header, payload)
        }),
        _ => None,
    };
    let fields = network.map_or_else(Fields::default, |((from, to), protocol, payload)| {
        let ports = match protocol {
            TCP => tcp::parse(payload).ok().map(|(from, to, ..)| (from, to)),
            UDP => udp::parse(payload).ok().map(|(from, to, _)| (from, to)),
            _ => None,
        };
        let (from_port, to_port) = ports.unwrap_or_default();
        Fields::new(0, protocol, (from, from_port).into(), (to, to_port).into())
    });
    let fields = fields.between(mac(&header[6..12]), mac(&header[..6]));
    Some(Fields {
        ethertype,
        ..fields
    })
}

//! Messages between switches and their controller, and their lengths on the wire: OpenFlow 1.3.5 over TCP with
//! timestamps.

use polypath_net::{ChannelId, NodeId, Packet};
use polypath_switch::{Fields, Group, Instructions, Match};

use super::Asked;
use crate::flow::Body;

/// A packet in the hands of a controller.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub flow: Asked,
    pub fields: Fields,
    /// Links that it has crossed.
    pub crossed: u16,
    pub packet: Packet<Body>,
}

/// From a switch.
#[derive(Clone, Debug)]
pub(crate) enum Up {
    /// A packet that no entry knows, whole: no switch has a buffer (`OFP_NO_BUFFER`).
    PacketIn(Box<Held>),
    /// A port's link went up or down.
    PortStatus {
        channel: ChannelId,
        up: bool,
    },
    FlowRemoved {
        fields: Fields,
    },
    /// A message of OpenFlow.
    Bytes(Vec<u8>),
}

/// To a switch.
#[derive(Clone, Debug)]
pub(crate) enum Down {
    Add {
        matching: Match,
        priority: u16,
        instructions: Instructions,
        idle: bool,
        notify: bool,
    },
    Delete {
        matching: Match,
        priority: u16,
    },
    AddGroup {
        number: u32,
        group: Group,
    },
    /// Out by a port, past the tables.
    PacketOut {
        port: u32,
        held: Box<Held>,
    },
    /// Of a controller that speaks OpenFlow, as it sent them at once.
    Bytes(Vec<u8>),
}

/// A message and the switch that it is for.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub node: NodeId,
    pub down: Down,
}

/// Ethernet, IPv4 and TCP with timestamps.
const TRANSPORT: u64 = 14 + 20 + 32;
const ETHERNET: u64 = 14;
/// `ofp_packet_in` with the match of a port (section 7.4.1).
const PACKET_IN: u64 = 24 + 16 + 2;
/// `ofp_packet_out` with one output action (section 7.3.7).
const PACKET_OUT: u64 = 24 + OUTPUT;
/// `ofp_port_status` (section 7.4.3).
const PORT_STATUS: u64 = 16 + 64;
/// `ofp_flow_mod` and `ofp_flow_removed` without the match (sections 7.3.4.1 and 7.4.2).
const FLOW_MOD: u64 = 48;
/// An IPv4 flow's type, protocol, addresses and ports as a match, padded (section 7.2.3).
const FLOW_MATCH: u64 = 48;
/// `ofp_instruction_actions` (section 7.2.4).
const INSTRUCTION: u64 = 8;
/// `ofp_action_output` (section 7.2.5).
const OUTPUT: u64 = 16;
/// `ofp_group_mod` and `ofp_bucket` (section 7.3.4.2).
const GROUP_MOD: u64 = 16;
const BUCKET: u64 = 16;

/// What a TCP segment has room for on Ethernet.
const SEGMENT: u64 = 1500 - 20 - 32;

/// Bytes on the wire of which the first segment's headers are counted already.
fn stretch(bytes: &[u8]) -> u64 {
    let len = bytes.len() as u64;
    len + TRANSPORT * (len.div_ceil(SEGMENT).max(1) - 1)
}

impl Up {
    pub fn bytes(&self) -> u64 {
        TRANSPORT
            + match self {
                Self::PacketIn(held) => PACKET_IN + ETHERNET + u64::from(held.packet.len),
                Self::PortStatus { .. } => PORT_STATUS,
                Self::FlowRemoved { .. } => FLOW_MOD + FLOW_MATCH,
                Self::Bytes(bytes) => stretch(bytes),
            }
    }
}

impl Down {
    pub fn bytes(&self) -> u64 {
        TRANSPORT
            + match self {
                Self::Add { .. } => FLOW_MOD + FLOW_MATCH + INSTRUCTION + OUTPUT,
                Self::Delete { .. } => FLOW_MOD + FLOW_MATCH,
                Self::AddGroup { group, .. } => {
                    let buckets = group.buckets.iter();
                    let lengths = buckets.map(|it| BUCKET + OUTPUT * it.actions.len() as u64);
                    GROUP_MOD + lengths.sum::<u64>()
                }
                Self::PacketOut { held, .. } => PACKET_OUT + ETHERNET + u64::from(held.packet.len),
                Self::Bytes(bytes) => stretch(bytes),
            }
    }
}

//! Bridge protocol data units of the spanning tree protocols (IEEE 802.1D-2004 clause 9), as Ethernet frames.

use crate::ParseError;
use crate::bytes::{array_at, u16_at, u32_at};

/// The Bridge Group Address (clause 7.12.3, table 7-9).
pub const GROUP_ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x00];

/// Length of the MAC header: two addresses and a length.
const MAC_HEADER: usize = 14;
/// LLC: the Bridge Spanning Tree Protocol's address twice, unnumbered information (clause 7.12.3, table 7-8).
const LLC: [u8; 3] = [0x42, 0x42, 0x03];
/// The least length of an Ethernet frame without its check sequence (IEEE 802.3-2018 clause 3.2.8).
const LEAST_FRAME: usize = 60;

/// A bridge identifier (clause 9.2.5); the lower one is the better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgeId {
    /// Four bits of priority, twelve of system ID extension.
    pub priority: u16,
    pub address: [u8; 6],
}

/// Times of the spanning tree in 1/256 s, as they are encoded (clause 9.2.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Times {
    pub message_age: u16,
    pub max_age: u16,
    pub hello_time: u16,
    pub forward_delay: u16,
}

/// The role of the port that sends (clause 9.3.3, bits 3 and 4 of the flags).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PortRole {
    #[default]
    Unknown,
    AlternateOrBackup,
    Root,
    Designated,
}

/// The flags of a BPDU. A configuration BPDU has the first and the last (clause 9.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    pub topology_change: bool,
    pub proposal: bool,
    pub role: PortRole,
    pub learning: bool,
    pub forwarding: bool,
    pub agreement: bool,
    pub acknowledgment: bool,
}

/// What a BPDU says of the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Message {
    pub flags: Flags,
    pub root: BridgeId,
    pub root_path_cost: u32,
    pub bridge: BridgeId,
    /// Four bits of priority, twelve of number (clause 9.2.7).
    pub port: u16,
    pub times: Times,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bpdu {
    /// Of the spanning tree protocol (clause 9.3.1).
    Configuration(Message),
    /// Of the same: a topology change notification (clause 9.3.2).
    TopologyChange,
    /// Of the rapid spanning tree protocol (clause 9.3.3).
    Rapid(Message),
}

const CONFIGURATION: u8 = 0x00;
const TOPOLOGY_CHANGE: u8 = 0x80;
const RAPID: u8 = 0x02;

const CONFIGURATION_LEN: usize = 35;
const TOPOLOGY_CHANGE_LEN: usize = 4;
const RAPID_LEN: usize = 36;

/// Parses the frame of a BPDU; nothing is asked of its addresses.
///
/// # Errors
/// Too few bytes, another protocol, or a type that clause 9.3.4 has a bridge ignore.
pub fn parse(frame: &[u8]) -> Result<Bpdu, ParseError> {
    let header = MAC_HEADER + LLC.len();
    let needs = |needed: usize| match frame.len() {
        found if found < needed => Err(ParseError::Truncated {
            what: "BPDU",
            needed,
            found,
        }),
        _ => Ok(()),
    };
    needs(header + TOPOLOGY_CHANGE_LEN)?;
    let unsupported = |what, kind| Err(ParseError::Unsupported { what, kind });
    if frame[MAC_HEADER..header] != LLC {
        return unsupported("LLC", frame[MAC_HEADER]);
    }
    let len = usize::from(u16_at(frame, 12));
    let bpdu = &frame[header..];
    if u16_at(bpdu, 0) != 0 {
        return unsupported("protocol of a BPDU", bpdu[1]);
    }
    let fits = |least: usize| match len {
        len if len < LLC.len() + least => Err(ParseError::Length { what: "BPDU", len }),
        _ => needs(header + least),
    };
    match (bpdu[2], bpdu[3]) {
        // Clause 9.3.4: a type of 0 counts whatever the version, and so does 0x80.
        (_, CONFIGURATION) => {
            fits(CONFIGURATION_LEN)?;
            let mut message = message(bpdu);
            message.flags = Flags {
                topology_change: message.flags.topology_change,
                acknowledgment: message.flags.acknowledgment,
                ..Flags::default()
            };
            Ok(Bpdu::Configuration(message))
        }
        (_, TOPOLOGY_CHANGE) => {
            fits(TOPOLOGY_CHANGE_LEN)?;
            Ok(Bpdu::TopologyChange)
        }
        (version, RAPID) if version >= 2 => {
            fits(RAPID_LEN)?;
            Ok(Bpdu::Rapid(message(bpdu)))
        }
        (_, kind) => unsupported("BPDU", kind),
    }
}

fn message(bpdu: &[u8]) -> Message {
    let id = |at: usize| BridgeId {
        priority: u16_at(bpdu, at),
        address: array_at(bpdu, at + 2),
    };
    let flags = bpdu[4];
    let bit = |number: u32| flags >> number & 1 == 1;
    Message {
        flags: Flags {
            topology_change: bit(0),
            proposal: bit(1),
            role: match flags >> 2 & 3 {
                1 => PortRole::AlternateOrBackup,
                2 => PortRole::Root,
                3 => PortRole::Designated,
                _ => PortRole::Unknown,
            },
            learning: bit(4),
            forwarding: bit(5),
            agreement: bit(6),
            acknowledgment: bit(7),
        },
        root: id(5),
        root_path_cost: u32_at(bpdu, 13),
        bridge: id(17),
        port: u16_at(bpdu, 25),
        times: Times {
            message_age: u16_at(bpdu, 27),
            max_age: u16_at(bpdu, 29),
            hello_time: u16_at(bpdu, 31),
            forward_delay: u16_at(bpdu, 33),
        },
    }
}

/// Appends the frame of a BPDU from the port of this address, padded to the least length of a frame.
pub fn emit(source: [u8; 6], bpdu: &Bpdu, out: &mut Vec<u8>) {
    let start = out.len();
    let (version, kind, len) = match bpdu {
        Bpdu::Configuration(_) => (0, CONFIGURATION, CONFIGURATION_LEN),
        Bpdu::TopologyChange => (0, TOPOLOGY_CHANGE, TOPOLOGY_CHANGE_LEN),
        Bpdu::Rapid(_) => (2, RAPID, RAPID_LEN),
    };
    out.extend(GROUP_ADDRESS);
    out.extend(source);
    out.extend(((LLC.len() + len) as u16).to_be_bytes());
    out.extend(LLC);
    out.extend([0, 0, version, kind]);
    if let Bpdu::Configuration(message) | Bpdu::Rapid(message) = bpdu {
        let flags = &message.flags;
        let mut bits = u8::from(flags.topology_change) | u8::from(flags.acknowledgment) << 7;
        if kind == RAPID {
            let role = match flags.role {
                PortRole::Unknown => 0,
                PortRole::AlternateOrBackup => 1,
                PortRole::Root => 2,
                PortRole::Designated => 3,
            };
            bits |= u8::from(flags.proposal) << 1
                | role << 2
                | u8::from(flags.learning) << 4
                | u8::from(flags.forwarding) << 5
                | u8::from(flags.agreement) << 6;
        }
        out.push(bits);
        out.extend(message.root.priority.to_be_bytes());
        out.extend(message.root.address);
        out.extend(message.root_path_cost.to_be_bytes());
        out.extend(message.bridge.priority.to_be_bytes());
        out.extend(message.bridge.address);
        out.extend(message.port.to_be_bytes());
        let times = &message.times;
        for time in [
            times.message_age,
            times.max_age,
            times.hello_time,
            times.forward_delay,
        ] {
            out.extend(time.to_be_bytes());
        }
        if kind == RAPID {
            // Version 1 length (clause 9.3.3).
            out.push(0);
        }
    }
    out.resize(out.len().max(start + LEAST_FRAME), 0);
}

/// Whether a frame's destination is one that bridges never relay (clause 7.12.6, table 7-10).
pub fn is_reserved(destination: [u8; 6]) -> bool {
    destination[..5] == GROUP_ADDRESS[..5] && destination[5] & 0xf0 == 0
}

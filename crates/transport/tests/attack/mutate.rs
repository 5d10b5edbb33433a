//! Changes of packets, drawn from a random source.

use std::net::{IpAddr, Ipv4Addr};

use polypath_transport::Segment;
use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MpCapable, MpJoin, MptcpOption};
use polypath_wire::tcp::{self, Flags};
use rand::Rng;

use crate::choices::Choices;

/// The stream offset of bytes that nobody wrote.
pub const FORGED: u64 = 1 << 50;

const ADDRESSES: (IpAddr, IpAddr) = (
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)),
);

/// A number near an edge of a space, or anywhere in it.
pub fn near(rng: &mut Choices, edges: &[u32]) -> u32 {
    let edge = edges[rng.random_range(0..edges.len())];
    let step = match rng.random_range(0..8) {
        0 => 0,
        1 | 2 => 1,
        3 => rng.random_range(0..1_500),
        4 => 1_448 * rng.random_range(0..50),
        5 => 65_536 * rng.random_range(1..16),
        6 => 1 << rng.random_range(0..32),
        _ => return rng.random(),
    };
    if rng.random() {
        edge.wrapping_add(step)
    } else {
        edge.wrapping_sub(step)
    }
}

/// Control bits, those that change a state first.
pub fn flags(rng: &mut Choices) -> Flags {
    match rng.random_range(0..10) {
        0 => Flags::RST,
        1 => Flags::RST | Flags::ACK,
        2 => Flags::SYN,
        3 => Flags::SYN | Flags::ACK,
        4 => Flags::FIN | Flags::ACK,
        5..8 => Flags::ACK,
        8 => Flags::ACK | Flags::PSH,
        _ => Flags::from_bits_truncate(rng.random()),
    }
}

pub fn dss(rng: &mut Choices, payload: u32) -> Dss {
    let dsn = if rng.random() {
        Dsn::Long(any_u64(rng).into())
    } else {
        Dsn::Short(rng.random())
    };
    let ack = if rng.random() {
        DataAck::Long(any_u64(rng).into())
    } else {
        DataAck::Short(rng.random())
    };
    let len = match rng.random_range(0..4) {
        0 => 0,
        1 => rng.random(),
        _ => payload as u16,
    };
    let mapping = rng.random::<bool>().then(|| Mapping {
        dsn,
        subflow_seq: rng.random_range(0..200_000),
        len,
        checksum: rng.random::<bool>().then(|| rng.random()),
    });
    Dss {
        data_ack: rng.random::<bool>().then_some(ack),
        data_fin: mapping.is_some() && rng.random(),
        mapping,
    }
}

/// Any number, those where arithmetic ends more often.
fn any_u64(rng: &mut Choices) -> u64 {
    match rng.random_range(0..4) {
        0 => u64::MAX - rng.random_range(0..3_000),
        1 => rng.random_range(0..3_000),
        _ => rng.random(),
    }
}

pub fn option(rng: &mut Choices) -> MptcpOption {
    match rng.random_range(0..10) {
        0 => MptcpOption::Capable(MpCapable {
            version: rng.random_range(0..3),
            checksum_required: rng.random(),
            deny_join_initial: rng.random(),
            hmac_sha256: rng.random(),
            sender_key: Some(rng.random()),
            receiver_key: Some(rng.random()),
            data: rng.random::<bool>().then(|| (rng.random(), None)),
        }),
        1 => MptcpOption::Join(MpJoin::Ack { hmac: rng.random() }),
        2 => MptcpOption::Join(MpJoin::Syn {
            backup: rng.random(),
            address_id: rng.random(),
            token: rng.random(),
            nonce: rng.random(),
        }),
        3 => MptcpOption::AddAddr {
            echo: false,
            address_id: rng.random_range(0..5),
            address: Ipv4Addr::new(10, 9, 9, rng.random()).into(),
            port: None,
            hmac: Some(rng.random()),
        },
        4 => MptcpOption::AddAddr {
            echo: true,
            address_id: rng.random_range(0..5),
            address: Ipv4Addr::new(10, 1, 1, 1).into(),
            port: None,
            hmac: None,
        },
        5 => MptcpOption::RemoveAddr {
            address_ids: (0..rng.random_range(1..4)).collect(),
        },
        6 => MptcpOption::Prio {
            backup: rng.random(),
        },
        7 => MptcpOption::Fail { dsn: any_u64(rng) },
        8 => MptcpOption::FastClose {
            receiver_key: rng.random(),
        },
        _ => MptcpOption::TcpRst {
            flags: rng.random_range(0..16),
            reason: rng.random_range(0..8),
        },
    }
}

/// Fields of a packet that was seen, changed by steps of windows and segments.
pub fn fields(rng: &mut Choices, segment: &mut Segment) {
    for _ in 0..rng.random_range(1..4) {
        match rng.random_range(0..10) {
            0 => segment.seq = near(rng, &[segment.seq]),
            1 => segment.ack = near(rng, &[segment.ack]),
            2 => segment.flags = flags(rng),
            3 => segment.window = rng.random(),
            4 => {
                segment.payload.len = rng.random_range(0..3_000);
                segment.payload.offset = FORGED;
            }
            5 => segment.payload.offset = FORGED,
            6 => segment.timestamps = rng.random::<bool>().then(|| (rng.random(), rng.random())),
            7 => {
                for _ in 0..rng.random_range(1..5) {
                    let left = near(rng, &[segment.ack]);
                    segment.sack.push(left, near(rng, &[left]));
                }
            }
            8 => segment.dss = Some(dss(rng, segment.payload.len)),
            _ => segment.rare_mut().mptcp.push(option(rng)),
        }
    }
}

/// The packet as bytes, some of its header flipped, cut or made longer, read again as far as it can be. A receiver that checks the checksum
/// sees nothing of it: whoever alters a packet sets that anew.
pub fn bytes(rng: &mut Choices, segment: &Segment) -> Option<Segment> {
    let mut out = Vec::new();
    let payload = vec![0; segment.payload.len as usize];
    tcp::emit(segment, 1, 2, &payload, ADDRESSES, &mut out).ok()?;
    let header = tcp::header_len(segment);
    match rng.random_range(0..6) {
        0 => out.truncate(rng.random_range(0..out.len())),
        1 => out.extend(std::iter::repeat_n(0, rng.random_range(1..1_000))),
        2 if header > 20 => {
            let kind = rng.random_range(20..header);
            out[kind] = rng.random();
        }
        3 if header > 20 => out[12] = (rng.random_range(5..16u8)) << 4,
        _ => {
            for _ in 0..rng.random_range(1..8) {
                let bit = rng.random_range(32..8 * header);
                out[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
    let (_, _, mut read, rest) = tcp::parse(&out).ok()?;
    let same = rest.len() == payload.len();
    read.payload.offset = if same { segment.payload.offset } else { FORGED };
    Some(read)
}

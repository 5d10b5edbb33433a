//! Strategies for everything that has a form on the wire.

use std::net::IpAddr;

use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MpCapable, MpJoin, MptcpOption};
use polypath_wire::tcp::{Flags, MAX_OPTIONS_LEN, RareOptions, SackBlocks, Segment, options_len};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

pub fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(src, dst)| (src.into(), dst.into())),
        any::<([u8; 16], [u8; 16])>().prop_map(|(src, dst)| (src.into(), dst.into())),
    ]
}

fn data_ack() -> impl Strategy<Value = DataAck> {
    prop_oneof![
        any::<u32>().prop_map(DataAck::Short),
        any::<u64>().prop_map(|ack| DataAck::Long(ack.into()))
    ]
}

fn dsn() -> impl Strategy<Value = Dsn> {
    prop_oneof![
        any::<u32>().prop_map(Dsn::Short),
        any::<u64>().prop_map(|dsn| Dsn::Long(dsn.into()))
    ]
}

pub fn dss() -> impl Strategy<Value = Dss> {
    let mapping = (dsn(), any::<u32>(), any::<u16>(), of(any::<u16>())).prop_map(
        |(dsn, subflow_seq, len, checksum)| Mapping {
            dsn,
            subflow_seq,
            len,
            checksum,
        },
    );
    (of(data_ack()), of(mapping), any::<bool>()).prop_map(|(data_ack, mapping, data_fin)| Dss {
        data_ack,
        mapping,
        data_fin,
    })
}

fn capable() -> impl Strategy<Value = MpCapable> {
    (
        0..16u8,
        any::<[bool; 3]>(),
        0..4u8,
        any::<(u64, u64)>(),
        any::<(u16, Option<u16>)>(),
    )
        .prop_map(|(version, flags, step, keys, data)| MpCapable {
            version,
            checksum_required: flags[0],
            deny_join_initial: flags[1],
            hmac_sha256: flags[2],
            sender_key: (step > 0).then_some(keys.0),
            receiver_key: (step > 1).then_some(keys.1),
            data: (step > 2).then_some(data),
        })
}

fn join() -> impl Strategy<Value = MpJoin> {
    prop_oneof![
        any::<(bool, u8, u32, u32)>().prop_map(|(backup, address_id, token, nonce)| MpJoin::Syn {
            backup,
            address_id,
            token,
            nonce
        }),
        any::<(bool, u8, u64, u32)>().prop_map(|(backup, address_id, hmac, nonce)| {
            MpJoin::SynAck {
                backup,
                address_id,
                hmac,
                nonce,
            }
        }),
        any::<[u8; 20]>().prop_map(|hmac| MpJoin::Ack { hmac }),
    ]
}

pub fn mptcp_option() -> impl Strategy<Value = MptcpOption> {
    prop_oneof![
        capable().prop_map(MptcpOption::Capable),
        join().prop_map(MptcpOption::Join),
        (addresses(), any::<(bool, u8, Option<u16>, u64)>()).prop_map(
            |((address, _), (echo, address_id, port, hmac))| MptcpOption::AddAddr {
                echo,
                address_id,
                address,
                port,
                hmac: (!echo).then_some(hmac),
            }
        ),
        vec(any::<u8>(), 1..9).prop_map(|address_ids| MptcpOption::RemoveAddr { address_ids }),
        any::<bool>().prop_map(|backup| MptcpOption::Prio { backup }),
        any::<u64>().prop_map(|dsn| MptcpOption::Fail { dsn }),
        any::<u64>().prop_map(|receiver_key| MptcpOption::FastClose { receiver_key }),
        (0..16u8, any::<u8>()).prop_map(|(flags, reason)| MptcpOption::TcpRst { flags, reason }),
        (9..16u8, 0..16u8, vec(any::<u8>(), 0..12)).prop_map(|(subtype, flags, body)| {
            MptcpOption::Unknown {
                subtype,
                flags,
                body,
            }
        }),
    ]
}

fn sack() -> impl Strategy<Value = SackBlocks> {
    vec(any::<(u32, u32)>(), 0..=SackBlocks::MAX).prop_map(|blocks| {
        let mut sack = SackBlocks::default();
        blocks
            .into_iter()
            .for_each(|(left, right)| sack.push(left, right));
        sack
    })
}

fn rare() -> impl Strategy<Value = RareOptions> {
    let unknown = (
        prop_oneof![6..8u8, 9..30u8, 31..=255u8],
        vec(any::<u8>(), 0..10),
    );
    (
        of(any::<u16>()),
        of(0..=14u8),
        any::<bool>(),
        vec(mptcp_option(), 0..3),
        prop_oneof![3 => Just(Vec::new()), 1 => vec(unknown, 1..3)],
    )
        .prop_map(
            |(mss, window_scale, sack_permitted, mptcp, unknown)| RareOptions {
                mss,
                window_scale,
                sack_permitted,
                mptcp,
                unknown,
            },
        )
}

/// A segment of any options, however many, without payload.
pub fn crowded_segment() -> impl Strategy<Value = Segment> {
    (
        any::<(u32, u32, u16, u16)>(),
        of(any::<(u32, u32)>()),
        prop_oneof![Just(SackBlocks::default()), sack()],
        of(dss()),
        of(rare()),
    )
        .prop_map(
            |((seq, ack, window, flags), timestamps, sack, dss, rare)| Segment {
                seq,
                ack,
                window,
                flags: Flags::from_bits_truncate(flags),
                timestamps,
                sack,
                dss,
                rare: rare.filter(|rare| !rare.is_empty()).map(Box::new),
                ..Segment::default()
            },
        )
}

/// A segment whose options fit, with its payload.
pub fn segment() -> impl Strategy<Value = (Segment, Vec<u8>)> {
    (crowded_segment(), vec(any::<u8>(), 0..40)).prop_map(|(mut segment, payload)| {
        segment.payload.len = payload.len() as u32;
        while options_len(&segment) > MAX_OPTIONS_LEN {
            thin_out(&mut segment);
        }
        (segment, payload)
    })
}

/// Takes one option away.
fn thin_out(segment: &mut Segment) {
    if segment.sack.len() > 1 {
        segment.sack.truncate(segment.sack.len() - 1);
        return;
    }
    if let Some(mut rare) = segment.rare.take() {
        let removed = rare.mptcp.len() > 1 && rare.mptcp.pop().is_some()
            || rare.unknown.pop().is_some()
            || segment.dss.take().is_some()
            || segment.timestamps.take().is_some()
            || rare.mptcp.pop().is_some()
            || rare.mss.take().is_some();
        assert!(removed, "nothing left to take from {rare:?}");
        segment.rare = Some(rare).filter(|rare| !rare.is_empty());
    } else {
        segment.sack.truncate(0);
    }
}

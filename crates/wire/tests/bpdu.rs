//! BPDUs byte by byte, written by hand from IEEE 802.1D-2004 clause 9.

use polypath_wire::bpdu::{
    Bpdu, BridgeId, Flags, GROUP_ADDRESS, Message, PortRole, Times, emit, is_reserved, parse,
};
use polypath_wire::{ParseError, fuzz};
use proptest::collection::vec;
use proptest::prelude::*;

fn message() -> Message {
    Message {
        flags: Flags {
            topology_change: true,
            proposal: true,
            role: PortRole::Designated,
            learning: false,
            forwarding: true,
            agreement: false,
            acknowledgment: true,
        },
        root: BridgeId {
            priority: 0x8000,
            address: [2, 0, 0, 0, 0, 1],
        },
        root_path_cost: 200_000,
        bridge: BridgeId {
            priority: 0x9001,
            address: [2, 0, 0, 0, 0, 2],
        },
        port: 0x8003,
        times: Times {
            message_age: 0x100,
            max_age: 0x1400,
            hello_time: 0x200,
            forward_delay: 0xf00,
        },
    }
}

fn emitted(bpdu: &Bpdu) -> Vec<u8> {
    let mut out = Vec::new();
    emit([2, 0, 0, 0, 0, 9], bpdu, &mut out);
    out
}

/// What follows the flags of a message.
const VECTOR: [u8; 30] = [
    0x80, 0, 2, 0, 0, 0, 0, 1, 0, 3, 0x0d, 0x40, 0x90, 1, 2, 0, 0, 0, 0, 2, 0x80, 3, 1, 0, 0x14, 0,
    2, 0, 15, 0,
];

#[test]
fn a_rapid_bpdu() {
    let frame = emitted(&Bpdu::Rapid(message()));
    let header = [
        0x01, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0, 39, 0x42, 0x42, 3, 0, 0, 2, 2,
    ];
    assert_eq!(frame[..21], header);
    assert_eq!(frame[21], 0b1010_1111);
    assert_eq!(frame[22..52], VECTOR);
    assert_eq!(frame[52..], [0; 8], "version 1 length and padding");
    assert_eq!(parse(&frame), Ok(Bpdu::Rapid(message())));
}

#[test]
fn a_configuration_bpdu_has_two_flags() {
    let frame = emitted(&Bpdu::Configuration(message()));
    assert_eq!(frame[12..22], [0, 38, 0x42, 0x42, 3, 0, 0, 0, 0, 0x81]);
    assert_eq!(frame[22..52], VECTOR);
    let Ok(Bpdu::Configuration(read)) = parse(&frame) else {
        panic!("{frame:?}");
    };
    let flags = Flags {
        topology_change: true,
        acknowledgment: true,
        ..Flags::default()
    };
    assert_eq!(read, Message { flags, ..message() });
}

#[test]
fn a_topology_change_notification_is_four_bytes() {
    let frame = emitted(&Bpdu::TopologyChange);
    assert_eq!(frame.len(), 60);
    assert_eq!(frame[12..21], [0, 7, 0x42, 0x42, 3, 0, 0, 0, 0x80]);
    assert_eq!(parse(&frame), Ok(Bpdu::TopologyChange));
}

#[test]
fn what_is_no_bpdu_is_refused() {
    let good = emitted(&Bpdu::Rapid(message()));
    assert!(matches!(
        parse(&good[..40]),
        Err(ParseError::Truncated { .. })
    ));
    let with = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        parse(&frame)
    };
    assert!(matches!(with(13, 20), Err(ParseError::Length { .. })));
    for (at, byte) in [(14, 0xaa), (18, 1), (20, 7)] {
        assert!(matches!(
            with(at, byte),
            Err(ParseError::Unsupported { .. })
        ));
    }
    // Clause 9.3.4: a rapid BPDU of a later version counts, of an earlier one it does not.
    assert!(with(19, 3).is_ok());
    assert!(with(19, 1).is_err());
}

#[test]
fn sixteen_addresses_are_never_relayed() {
    assert!(is_reserved(GROUP_ADDRESS));
    assert!(is_reserved([0x01, 0x80, 0xc2, 0, 0, 0x0f]));
    assert!(!is_reserved([0x01, 0x80, 0xc2, 0, 0, 0x10]));
    assert!(!is_reserved([0xff; 6]));
}

proptest! {
    #[test]
    fn damaged_bpdus_do_no_harm(flips in vec((0..60usize, any::<u8>()), 0..6), len in 0..61usize) {
        let mut frame = emitted(&Bpdu::Rapid(message()));
        for (at, byte) in flips {
            frame[at] = byte;
        }
        fuzz::bpdu(&frame[..len]);
    }
}

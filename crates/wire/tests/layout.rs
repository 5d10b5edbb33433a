//! Option areas byte by byte, written by hand from the RFCs.

use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping, MpCapable, MpJoin, MptcpOption};
use polypath_wire::tcp::{self, MIN_HEADER_LEN, Segment};
use polypath_wire::{EmitError, ParseError};

fn emitted(segment: &Segment) -> Vec<u8> {
    let address = "10.0.0.1".parse().unwrap();
    let mut out = Vec::new();
    tcp::emit(segment, 1, 2, &[], (address, address), &mut out).unwrap();
    out
}

fn options(segment: &Segment) -> Vec<u8> {
    emitted(segment)[MIN_HEADER_LEN..].to_vec()
}

/// A header with this option area.
fn header(area: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; MIN_HEADER_LEN];
    bytes.extend_from_slice(area);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes[12] = (bytes.len() as u8 / 4) << 4;
    bytes
}

fn parsed(area: &[u8]) -> Segment {
    tcp::parse(&header(area)).unwrap().2
}

fn capable(sender_key: Option<u64>) -> MptcpOption {
    MptcpOption::Capable(MpCapable {
        version: 1,
        checksum_required: false,
        deny_join_initial: false,
        hmac_sha256: true,
        sender_key,
        receiver_key: None,
        data: None,
    })
}

/// The options of a SYN as Linux sends it.
#[test]
fn a_syn() {
    let mut segment = Segment {
        timestamps: Some((0x0102_0304, 0)),
        ..Segment::default()
    };
    let rare = segment.rare_mut();
    rare.mss = Some(1460);
    rare.window_scale = Some(7);
    rare.sack_permitted = true;
    rare.mptcp.push(capable(None));
    let area = [
        2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7, 30, 4, 0x01, 0x01,
    ];
    assert_eq!(options(&segment), area);
    assert_eq!(tcp::header_len(&segment), 44);
}

#[test]
fn an_mp_capable_with_a_key() {
    let mut segment = Segment::default();
    segment
        .rare_mut()
        .mptcp
        .push(capable(Some(0x0102_0304_0506_0708)));
    assert_eq!(
        options(&segment),
        [30, 12, 0x01, 0x01, 1, 2, 3, 4, 5, 6, 7, 8]
    );
}

#[test]
fn a_join_for_backup() {
    let mut segment = Segment::default();
    let join = MpJoin::Syn {
        backup: true,
        address_id: 3,
        token: 0x0a0b_0c0d,
        nonce: 1,
    };
    segment.rare_mut().mptcp.push(MptcpOption::Join(join));
    assert_eq!(
        options(&segment),
        [30, 12, 0x11, 3, 10, 11, 12, 13, 0, 0, 0, 1]
    );
}

/// Timestamps, a long mapping and a long data ACK: what Linux's data segments carry.
#[test]
fn a_data_segment() {
    let segment = Segment {
        timestamps: Some((1, 2)),
        dss: Some(Dss {
            data_ack: Some(DataAck::Long(0x1_0000_0002.into())),
            mapping: Some(Mapping {
                dsn: Dsn::Long(0x3_0000_0004.into()),
                subflow_seq: 5,
                len: 1400,
                checksum: None,
            }),
            data_fin: true,
        }),
        ..Segment::default()
    };
    let area = [
        [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2].as_slice(),
        &[30, 26, 0x20, 0x1f],
        &[0, 0, 0, 1, 0, 0, 0, 2],
        &[0, 0, 0, 3, 0, 0, 0, 4],
        &[0, 0, 0, 5, 5, 120, 0, 0],
    ]
    .concat();
    assert_eq!(options(&segment), area);
    assert_eq!(tcp::options_len(&segment), 40);
}

#[test]
fn options_between_are_padded_with_nops() {
    let mut segment = Segment::default();
    segment.sack.push(1, 2);
    let rare = segment.rare_mut();
    rare.mptcp.push(MptcpOption::Prio { backup: true });
    rare.mptcp.push(MptcpOption::RemoveAddr {
        address_ids: vec![9, 8],
    });
    let area = [
        1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 30, 3, 0x51, 1, 30, 5, 0x40, 9, 8, 0, 0, 0,
    ];
    assert_eq!(options(&segment), area);
}

#[test]
fn what_a_receiver_must_ignore_is_kept_as_unknown() {
    for (area, subtype, flags, body) in [
        // A length that MP_CAPABLE does not have; flag B of MP_CAPABLE.
        (
            [30u8, 5, 0x01, 0x01, 0].as_slice(),
            0,
            1,
            &[1u8, 0] as &[u8],
        ),
        (&[30, 4, 0x01, 0x41], 0, 1, &[0x41]),
        // DSS with a checksum but no mapping; MP_PRIO of RFC 6824; REMOVE_ADDR without an id.
        (&[30, 6, 0x20, 0, 1, 2], 2, 0, &[0, 1, 2]),
        (&[30, 4, 0x51, 7], 5, 1, &[7]),
        (&[30, 3, 0x42], 4, 2, &[]),
        // ADD_ADDR without an HMAC that is no echo.
        (&[30, 8, 0x30, 1, 10, 0, 0, 1], 3, 0, &[1, 10, 0, 0, 1]),
        (&[30, 3, 0xf5], 15, 5, &[]),
    ] {
        let body = body.to_vec();
        let unknown = MptcpOption::Unknown {
            subtype,
            flags,
            body,
        };
        assert_eq!(parsed(area).mptcp(), [unknown], "{area:?}");
    }
}

#[test]
fn a_window_scale_above_14_is_14() {
    let shift = |shift| parsed(&[3, 3, shift]).rare.unwrap().window_scale;
    assert_eq!(
        (shift(14), shift(15), shift(255)),
        (Some(14), Some(14), Some(14))
    );
}

#[test]
fn odd_lengths_of_known_kinds_are_unknown() {
    let unknown = parsed(&[2, 3, 9, 5, 2]).rare.unwrap().unknown;
    assert_eq!(unknown, [(2, vec![9]), (5, vec![])]);
}

#[test]
fn lengths_that_break_the_header_are_errors() {
    let error = |area: &[u8]| tcp::parse(&header(area)).unwrap_err();
    let of = |kind, len, room| ParseError::OptionLength { kind, len, room };
    assert_eq!(error(&[8, 10, 0, 0]), of(8, 10, 4));
    assert_eq!(error(&[1, 30, 1, 0]), of(30, 1, 3));
    assert_eq!(error(&[1, 1, 1, 30]), of(30, 0, 1));

    let mut short = emitted(&Segment::default());
    short.pop();
    let truncated = tcp::parse(&short);
    assert!(matches!(
        truncated,
        Err(ParseError::Truncated {
            needed: 20,
            found: 19,
            ..
        })
    ));
    short.push(0);
    short[12] = 0x40;
    assert!(matches!(
        tcp::parse(&short),
        Err(ParseError::Length { len: 16, .. })
    ));
}

#[test]
fn a_payload_of_another_length_is_refused() {
    let address = "10.0.0.1".parse().unwrap();
    let result = tcp::emit(
        &Segment::default(),
        1,
        2,
        &[0],
        (address, address),
        &mut Vec::new(),
    );
    assert_eq!(
        result,
        Err(EmitError::PayloadLength {
            declared: 0,
            given: 1
        })
    );
}

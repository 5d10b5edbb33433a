//! Frames carry the stream's bytes and right DSS checksums.

use std::net::IpAddr;

use polypath_trace::{Envelope, FrameBuilder, Mac};
use polypath_wire::mptcp::{Dsn, Dss, Mapping, MpCapable, MptcpOption};
use polypath_wire::tcp::{self, Flags, Payload, Segment};
use polypath_wire::{EmitError, ip, payload};

const STREAM: u64 = 9;
const DSN: u64 = 0xffff_fff0_1234_5678;

fn envelope(src: &str, dst: &str) -> Envelope {
    let (src, dst): (IpAddr, IpAddr) = (src.parse().unwrap(), dst.parse().unwrap());
    Envelope {
        src_mac: Mac::local(0x0102_0304),
        dst_mac: Mac::local(2),
        src,
        dst,
        ttl: 63,
        identification: 7,
        ecn: 1,
        corrupted: false,
    }
}

fn v4() -> Envelope {
    envelope("10.0.0.1", "10.0.0.2")
}

/// The segment as it comes back from its frame, and the payload.
fn through_a_frame(segment: &Segment, dsn: Option<u64>) -> (Segment, Vec<u8>) {
    let mut frame = Vec::new();
    let mut builder = FrameBuilder::new();
    builder
        .tcp(&v4(), (1, 2), segment, STREAM, dsn, &mut frame)
        .unwrap();
    let (_, packet) = ip::parse(&frame[14..]).unwrap();
    let (_, _, parsed, payload) = tcp::parse(packet).unwrap();
    (parsed, payload.to_vec())
}

/// RFC 8684 section 3.3.1, sixteen bits at a time.
fn checksum_by_hand(dsn: u64, subflow_seq: u32, len: u16, data: &[u8]) -> u16 {
    let mut text = data.to_vec();
    text.resize(text.len().next_multiple_of(2), 0);
    text.extend(dsn.to_be_bytes());
    text.extend(subflow_seq.to_be_bytes());
    text.extend(len.to_be_bytes());
    text.extend([0; 2]);
    let sum = text.chunks(2).fold(0u32, |sum, pair| {
        let sum = sum + (u32::from(pair[0]) << 8 | u32::from(pair[1]));
        (sum & 0xffff) + (sum >> 16)
    });
    !(sum as u16)
}

fn stretch(offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    payload::fill(STREAM, offset, &mut bytes);
    bytes
}

fn with_mapping(len: u16, payload: u32, data_fin: bool) -> Segment {
    let mapping = Mapping {
        dsn: Dsn::Short(DSN as u32),
        subflow_seq: if payload == 0 { 0 } else { 5 },
        len,
        checksum: Some(0),
    };
    Segment {
        flags: Flags::ACK,
        dss: Some(Dss {
            data_ack: None,
            mapping: Some(mapping),
            data_fin,
        }),
        payload: Payload {
            offset: 1003,
            len: payload,
        },
        ..Segment::default()
    }
}

fn dss_checksum_of(segment: &Segment) -> Option<u16> {
    segment.dss?.mapping?.checksum
}

#[test]
fn headers_and_payload() {
    let segment = Segment {
        payload: Payload {
            offset: 77,
            len: 101,
        },
        ..Segment::default()
    };
    for envelope in [v4(), envelope("fd00::1", "fd00::2")] {
        let mut frame = vec![0xee];
        let mut builder = FrameBuilder::new();
        builder
            .tcp(&envelope, (1, 2), &segment, STREAM, None, &mut frame)
            .unwrap();
        assert_eq!(frame[1..13], [2, 0, 0, 0, 0, 2, 2, 0, 1, 2, 3, 4]);
        let (header, packet) = ip::parse(&frame[15..]).unwrap();
        assert_eq!(header.addresses(), (envelope.src, envelope.dst));
        assert_eq!(header.ecn(), 1);
        match header {
            ip::Header::V4(header) => assert_eq!(
                (header.ttl, header.identification, header.dont_fragment),
                (63, 7, true)
            ),
            ip::Header::V6(header) => assert_eq!(header.hop_limit, 63),
        }
        assert!(tcp::verify_checksum(packet, header.addresses()));
        let (_, _, _, bytes) = tcp::parse(packet).unwrap();
        assert_eq!(
            (payload::check(STREAM, 77, bytes), bytes.len()),
            (Ok(()), 101)
        );
    }
}

#[test]
fn a_mapping_over_one_segment_and_over_more() {
    for (len, payload) in [(501, 501), (3000, 501)] {
        let (parsed, bytes) = through_a_frame(&with_mapping(len, payload, false), Some(DSN));
        let expected = checksum_by_hand(DSN, 5, len, &stretch(1003, len.into()));
        assert_eq!(dss_checksum_of(&parsed), Some(expected));
        assert_eq!(bytes, stretch(1003, payload as usize));
    }
}

#[test]
fn data_fin_counts_in_the_length_alone() {
    let (parsed, _) = through_a_frame(&with_mapping(101, 100, true), Some(DSN));
    let expected = checksum_by_hand(DSN, 5, 101, &stretch(1003, 100));
    assert_eq!(dss_checksum_of(&parsed), Some(expected));

    let (parsed, _) = through_a_frame(&with_mapping(1, 0, true), Some(DSN));
    assert_eq!(
        dss_checksum_of(&parsed),
        Some(checksum_by_hand(DSN, 0, 1, &[]))
    );
}

#[test]
fn an_infinite_mapping_has_checksum_zero() {
    let (parsed, _) = through_a_frame(&with_mapping(0, 10, false), Some(DSN));
    assert_eq!(dss_checksum_of(&parsed), Some(0));
}

#[test]
fn without_the_sequence_number_the_field_stands() {
    let mut segment = with_mapping(10, 10, false);
    if let Some(mapping) = segment.dss.as_mut().and_then(|dss| dss.mapping.as_mut()) {
        mapping.checksum = Some(0x1234);
    }
    let (parsed, _) = through_a_frame(&segment, None);
    assert_eq!(dss_checksum_of(&parsed), Some(0x1234));
}

#[test]
fn the_first_data_with_mp_capable() {
    let mut segment = Segment {
        payload: Payload { offset: 0, len: 33 },
        ..Segment::default()
    };
    segment
        .rare_mut()
        .mptcp
        .push(MptcpOption::Capable(MpCapable {
            version: 1,
            checksum_required: true,
            deny_join_initial: false,
            hmac_sha256: true,
            sender_key: Some(1),
            receiver_key: Some(2),
            data: Some((33, Some(0))),
        }));
    let (parsed, _) = through_a_frame(&segment, Some(DSN));
    let [MptcpOption::Capable(capable)] = parsed.mptcp() else {
        panic!("{:?}", parsed.mptcp());
    };
    let expected = checksum_by_hand(DSN, 1, 33, &stretch(0, 33));
    assert_eq!(capable.data, Some((33, Some(expected))));
}

#[test]
fn a_refused_frame_leaves_nothing() {
    let mut builder = FrameBuilder::new();
    let mut frame = vec![1];
    let segment = Segment::default();
    let mixed = envelope("10.0.0.1", "fd00::1");
    assert_eq!(
        builder.tcp(&mixed, (1, 2), &segment, STREAM, None, &mut frame),
        Err(EmitError::AddressFamilies)
    );
    let ecn = Envelope { ecn: 4, ..v4() };
    let error = builder.tcp(&ecn, (1, 2), &segment, STREAM, None, &mut frame);
    assert!(matches!(error, Err(EmitError::Field(_))), "{error:?}");
    let long = Payload {
        offset: 0,
        len: 65_520,
    };
    let error = builder.udp(&v4(), (1, 2), STREAM, long, &mut frame);
    assert!(matches!(error, Err(EmitError::TooLong { .. })), "{error:?}");
    assert_eq!(frame, [1]);
}

#[test]
fn a_corrupted_datagram_differs_in_its_first_byte_whatever_the_packet_before_it_was() {
    let bytes = [7; 40];
    for before in [0, 10, 1400] {
        let mut builder = FrameBuilder::new();
        let segment = with_mapping(before, before.into(), false);
        builder
            .tcp(&v4(), (1, 2), &segment, STREAM, None, &mut Vec::new())
            .unwrap();
        let [whole, corrupted] = [false, true].map(|corrupted| {
            let mut frame = Vec::new();
            let envelope = Envelope { corrupted, ..v4() };
            builder
                .udp_bytes(&envelope, (1, 2), &bytes, &mut frame)
                .unwrap();
            frame
        });
        let differs: Vec<usize> = (0..whole.len())
            .filter(|&at| whole[at] != corrupted[at])
            .collect();
        assert_eq!(differs, [whole.len() - bytes.len()], "after {before} bytes");
    }
}

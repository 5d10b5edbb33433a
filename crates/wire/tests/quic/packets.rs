//! Integers, packet numbers and headers: examples of RFC 9000 and RFC 9001, and packets that are discarded.

use polypath_wire::quic::{
    Ack, ConnectionId, Frame, Header, HeaderError, Kind, Packet, decode_number, number_len,
    read_varint, reserved_bits_clear, retry_pseudo_packet, split, varint_len, write_varint,
};

use crate::hex;

/// RFC 9000 appendix A.1.
#[test]
fn integers() {
    for (bytes, value, shortest) in [
        ("c2197c5eff14e88c", 151_288_809_941_952_652, true),
        ("9d7f3e7d", 494_878_333, true),
        ("7bbd", 15_293, true),
        ("25", 37, true),
        ("4025", 37, false),
    ] {
        let bytes = hex(bytes);
        assert_eq!(read_varint(&bytes), Some((value, bytes.len())));
        let mut out = Vec::new();
        write_varint(value, &mut out).unwrap();
        assert_eq!(out == bytes, shortest);
    }
    // The largest value of each length (section 16, table 4).
    for (value, len) in [(63, 1), (16_383, 2), (1_073_741_823, 4)] {
        assert_eq!((varint_len(value), varint_len(value + 1)), (len, 2 * len));
    }
}

/// RFC 9000 appendices A.2 and A.3.
#[test]
fn packet_numbers() {
    assert_eq!(number_len(0xac_5c02, Some(0xab_e8b3)), 2);
    assert_eq!(number_len(0xac_e8fe, Some(0xab_e8b3)), 3);
    assert_eq!(decode_number(Some(0xa82f_30ea), 0x9b32, 16), 0xa82f_9b32);
    // Nothing is below zero, nothing above 2^62-1.
    assert_eq!(decode_number(None, 0xff, 8), 0xff);
    let last = (1 << 62) - 1;
    assert_eq!(decode_number(Some(last - 1), 0, 8), last & !0xff);
    // Half a window below the expected number is the next window; half a window above is not yet the last one.
    assert_eq!(decode_number(Some(0x17f), 0x00, 8), 0x200);
    assert_eq!(decode_number(Some(0xff), 0x80, 8), 0x180);
    assert_eq!(decode_number(Some(0xff), 0x81, 8), 0x081);
    // The edge of each length: its range is twice the unacknowledged packets.
    for (unacked, len) in [
        (0x80, 1),
        (0x81, 2),
        (0x8000, 2),
        (0x8001, 3),
        (0x80_0000, 3),
        (0x80_0001, 4),
    ] {
        assert_eq!(number_len(500 + unacked, Some(500)), len);
        assert_eq!(number_len(unacked - 1, None), len);
    }
}

/// RFC 9001 appendix A.2: the unprotected header of the client's Initial, with 1162 bytes of payload.
#[test]
fn a_client_initial() {
    let header = Header {
        kind: Kind::Initial { token: vec![] },
        version: 1,
        destination: ConnectionId::new(&hex("8394c8f03e515708")),
        source: ConnectionId::default(),
        number: 2,
        number_len: 4,
    };
    let mut out = Vec::new();
    assert_eq!(header.encode(1162, &mut out), Ok(18));
    assert_eq!(out, hex("c300000001088394c8f03e5157080000449e00000002"));
    out.resize(1200, 0);
    let protected = split(&out, 0).next().unwrap().unwrap();
    assert_eq!(protected.header(&out, None), (header, 22));
}

/// RFC 9001 appendix A.3: header and frames of the server's Initial.
#[test]
fn a_server_initial() {
    let hello = hex(
        "020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566dc5430b9a045a1200130100002e
         00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00020304",
    );
    let ack = Ack {
        ranges: vec![(0, 0)],
        ..Ack::default()
    };
    let crypto = Frame::Crypto {
        offset: 0,
        data: hello.clone(),
    };
    let packet = Packet {
        header: Header {
            kind: Kind::Initial { token: vec![] },
            version: 1,
            destination: ConnectionId::default(),
            source: ConnectionId::new(&hex("f067a5502a4262b5")),
            number: 1,
            number_len: 2,
        },
        path: 0,
        frames: vec![Frame::Ack(Box::new(ack)), crypto],
    };
    let mut out = Vec::new();
    assert_eq!(packet.encode(&mut |_, _| (), &mut out), Ok(18));
    let mut expected = hex("c1000000010008f067a5502a4262b50040750001 02000000000600405a");
    expected.extend(hello);
    assert_eq!(out, expected);
    assert_eq!(packet.len(), 135);
}

/// The Length field has two bytes even if one is enough.
#[test]
fn a_short_handshake_packet() {
    let header = Header {
        kind: Kind::Handshake,
        version: 1,
        destination: ConnectionId::new(&[0xaa]),
        source: ConnectionId::default(),
        number: 5,
        number_len: 1,
    };
    let mut out = Vec::new();
    assert_eq!(header.encode(3, &mut out), Ok(10));
    assert_eq!(out, hex("e0 00000001 01aa 00 4014 05"));
    assert_eq!(header.len(3), 11);
}

/// RFC 9001 appendix A.4, and the pseudo-packet of section 5.8.
#[test]
fn a_retry() {
    let tag = "04a265ba2eff4d829058fb3f0f2496ba";
    let bytes = hex(&format!("ff000000010008f067a5502a4262b5746f6b656e{tag}"));
    let protected = split(&bytes, 0).next().unwrap().unwrap();
    let kind = Kind::Retry {
        token: b"token".to_vec(),
        integrity_tag: hex(tag).try_into().unwrap(),
    };
    assert_eq!(protected.kind, kind);
    let source = ConnectionId::new(&hex("f067a5502a4262b5"));
    assert_eq!(protected.source, source);
    let original = ConnectionId::new(&hex("8394c8f03e515708"));
    assert_eq!(
        retry_pseudo_packet(&original, &bytes[..bytes.len() - 16]),
        hex("088394c8f03e515708ff000000010008f067a5502a4262b5746f6b656e")
    );
}

/// RFC 9001 appendix A.5: a short header whose number takes three bytes.
#[test]
fn a_short_header() {
    let packet = Packet {
        header: Header {
            kind: Kind::OneRtt {
                key_phase: false,
                spin: false,
            },
            version: 0,
            destination: ConnectionId::default(),
            source: ConnectionId::default(),
            number: 654_360_564,
            number_len: 3,
        },
        path: 0,
        frames: vec![Frame::Ping],
    };
    let mut out = Vec::new();
    assert_eq!(packet.encode(&mut |_, _| (), &mut out), Ok(1));
    assert_eq!(out, hex("4200bff401"));
    assert_eq!(packet.len(), 21);
    out.extend([0; 16]);
    let protected = split(&out, 0).next().unwrap().unwrap();
    let header = protected.header(&out, Some(654_360_560));
    assert_eq!(header, (packet.header, 4));
}

#[test]
fn discarded() {
    let handshake = "e0 00000001 01aa 00 4014 00000000 00000000000000000000000000000000";
    let other = handshake.replace("01aa", "01bb");
    let short = format!("40 aa {}", "00".repeat(20));
    let check = |bytes: &str, expected: &[Result<std::ops::Range<usize>, HeaderError>]| {
        let found: Vec<_> = split(&hex(bytes), 1)
            .map(|packet| packet.map(|packet| packet.range))
            .collect();
        assert_eq!(found, expected, "{bytes}");
    };
    check(&format!("{handshake}{short}"), &[Ok(0..30), Ok(30..52)]);
    // Another destination than the first packet's: left out.
    let three = format!("{handshake}{other}{handshake}");
    check(&three, &[Ok(0..30), Ok(60..90)]);
    // One packet too short to sample does not hide the next.
    let tiny = format!("e0 00000001 01aa 00 01 00 {handshake}");
    check(&tiny, &[Err(HeaderError::NoSample), Ok(10..40)]);
    let one_more = handshake.replace("4014", "4015");
    check(&one_more, &[Err(HeaderError::Truncated)]);
    check(&format!("00{short}"), &[Err(HeaderError::FixedBit)]);
    check("a0 00000001 00 00", &[Err(HeaderError::FixedBit)]);
    check(
        "c0 00000001 15",
        &[Err(HeaderError::ConnectionIdLength(21))],
    );
    let six_bytes = "80 00000000 00 00 000000010000";
    check(six_bytes, &[Err(HeaderError::VersionList(6))]);
    let tag_alone = format!("f0 00000001 00 00 {}", "00".repeat(16));
    check(&tag_alone, &[Err(HeaderError::EmptyRetryToken)]);
    let unknown = HeaderError::Version {
        version: 0x0a1a_2a3a,
        destination: ConnectionId::new(&[0xaa]),
        r#source: ConnectionId::new(&[0xbb]),
    };
    check("c0 0a1a2a3a 01aa 01bb 00", &[Err(unknown)]);
}

/// RFC 9000 section 17.2.1: the fixed bit need not be set.
#[test]
fn version_negotiation() {
    let bytes = hex("80 00000000 01aa 01bb 00000001 0a1a2a3a");
    let parsed = split(&bytes, 0).next().unwrap().unwrap();
    assert_eq!(parsed.kind, Kind::VersionNegotiation(vec![1, 0x0a1a_2a3a]));
}

#[test]
fn reserved_bits() {
    assert!(reserved_bits_clear(0xe3) && reserved_bits_clear(0x67));
    for reserved in [0xe4, 0xe8, 0x48, 0x50] {
        assert!(!reserved_bits_clear(reserved));
    }
}

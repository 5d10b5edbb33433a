//! Frames byte by byte, where they are allowed, and which are refused.

use polypath_wire::quic::{
    Ack, AckFrequency, ConnectionId, Frame, FrameError, Frames, Kind, NewConnectionId,
    TransportError, encode_frame,
};

use crate::hex;

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(frame, &mut |_, bytes| bytes.fill(0xee), &mut out).unwrap();
    out
}

fn new_id(path: Option<u64>, id: &[u8], retire_prior_to: u64) -> Frame {
    Frame::NewConnectionId(Box::new(NewConnectionId {
        path,
        sequence: 5,
        retire_prior_to,
        id: ConnectionId::new(id),
        reset_token: [7; 16],
    }))
}

fn ack(path: Option<u64>, ranges: &[(u64, u64)]) -> Frame {
    Frame::Ack(Box::new(Ack {
        path,
        ranges: ranges.to_vec(),
        ..Ack::default()
    }))
}

#[test]
fn by_hand() {
    let path_ack = Ack {
        path: Some(1),
        delay: 0x40,
        ranges: vec![(90, 100), (80, 80), (1, 5)],
        ecn: Some([1, 2, 3]),
    };
    let token = "07".repeat(16);
    for (frame, bytes) in [
        (Frame::Padding(3), "000000"),
        (Frame::Ping, "01"),
        (ack(None, &[(1, 3)]), "02 03 00 00 02"),
        (
            Frame::Ack(Box::new(path_ack)),
            "3f 01 4064 4040 02 0a 08 00 4049 04 01 02 03",
        ),
        (
            Frame::ResetStream {
                stream: 4,
                error: 5,
                final_size: 6,
            },
            "04 04 05 06",
        ),
        (
            Frame::StopSending {
                stream: 4,
                error: 5,
            },
            "05 04 05",
        ),
        (
            Frame::Crypto {
                offset: 1,
                data: vec![2],
            },
            "06 01 01 02",
        ),
        (Frame::NewToken(vec![3]), "07 01 03"),
        (
            Frame::Stream {
                stream: 4,
                offset: 0,
                len: 1,
                fin: true,
            },
            "0b 04 01 ee",
        ),
        (
            Frame::Stream {
                stream: 4,
                offset: 9,
                len: 1,
                fin: false,
            },
            "0e 04 09 01 ee",
        ),
        (Frame::MaxData(1), "10 01"),
        (Frame::MaxStreamData { stream: 4, max: 1 }, "11 04 01"),
        (
            Frame::MaxStreams {
                bidirectional: true,
                max: 1,
            },
            "12 01",
        ),
        (
            Frame::MaxStreams {
                bidirectional: false,
                max: 1,
            },
            "13 01",
        ),
        (Frame::DataBlocked(1), "14 01"),
        (
            Frame::StreamDataBlocked {
                stream: 4,
                limit: 1,
            },
            "15 04 01",
        ),
        (
            Frame::StreamsBlocked {
                bidirectional: true,
                limit: 1,
            },
            "16 01",
        ),
        (
            Frame::StreamsBlocked {
                bidirectional: false,
                limit: 1,
            },
            "17 01",
        ),
        (
            new_id(None, &[9, 8], 1),
            &format!("18 05 01 02 0908 {token}"),
        ),
        (
            new_id(Some(2), &[9, 8], 1),
            &format!("7e78 02 05 01 02 0908 {token}"),
        ),
        (
            Frame::RetireConnectionId {
                path: None,
                sequence: 1,
            },
            "19 01",
        ),
        (
            Frame::RetireConnectionId {
                path: Some(2),
                sequence: 1,
            },
            "7e79 02 01",
        ),
        (Frame::PathChallenge(1), "1a 0000000000000001"),
        (Frame::PathResponse(1), "1b 0000000000000001"),
        (
            Frame::ConnectionClose {
                error: 7,
                frame_type: Some(6),
                reason: vec![97],
            },
            "1c 07 06 01 61",
        ),
        (
            Frame::ConnectionClose {
                error: 7,
                frame_type: None,
                reason: vec![],
            },
            "1d 07 00",
        ),
        (Frame::HandshakeDone, "1e"),
        (Frame::Datagram { number: 0, len: 2 }, "31 02 eeee"),
        (
            Frame::AckFrequency(AckFrequency {
                sequence: 1,
                eliciting_threshold: 9,
                max_delay: 25_000,
                reordering_threshold: 3,
            }),
            "40af 01 09 800061a8 03",
        ),
        (Frame::ImmediateAck, "1f"),
        (
            Frame::PathAbandon {
                path: 1,
                error: 0x3e,
            },
            "7e75 01 3e",
        ),
        (
            Frame::PathStatus {
                path: 1,
                sequence: 2,
                backup: true,
            },
            "7e76 01 02",
        ),
        (
            Frame::PathStatus {
                path: 1,
                sequence: 2,
                backup: false,
            },
            "7e77 01 02",
        ),
        (Frame::MaxPathId(3), "7e7a 03"),
        (Frame::PathsBlocked(3), "7e7b 03"),
        (
            Frame::PathCidsBlocked {
                path: 3,
                next_sequence: 1,
            },
            "7e7c 03 01",
        ),
    ] {
        assert_eq!(encoded(&frame), hex(bytes), "{frame:?}");
        let bytes = hex(bytes);
        let parsed: Vec<_> = Frames::new(&bytes).map(|frame| frame.unwrap().0).collect();
        assert_eq!(parsed, [frame]);
    }
}

/// Legal forms that are not the canonical ones.
#[test]
fn other_forms() {
    let stream = |stream, offset, len| Frame::Stream {
        stream,
        offset,
        len,
        fin: false,
    };
    for (bytes, frame, payload) in [
        ("08 4004 aabb", stream(4, 0, 2), "aabb"),
        ("0c 04 00 aabb", stream(4, 0, 2), "aabb"),
        ("0a 04 c000000000000001 aa", stream(4, 0, 1), "aa"),
        ("08 04", stream(4, 0, 0), ""),
        ("30 aabb", Frame::Datagram { number: 0, len: 2 }, "aabb"),
    ] {
        let bytes = hex(bytes);
        let mut frames = Frames::new(&bytes);
        assert_eq!(frames.next(), Some(Ok((frame, hex(payload).as_slice()))));
        assert_eq!(frames.next(), None);
    }
}

#[test]
fn refused() {
    let encoding = TransportError::FRAME_ENCODING_ERROR;
    let violation = TransportError::PROTOCOL_VIOLATION;
    let zeros = "00".repeat(21);
    for (bytes, code, frame_type) in [
        ("", violation, 0),
        ("40", encoding, 0),
        ("4001", violation, 0x01),
        ("20", encoding, 0x20),
        ("7e7d", encoding, 0x3e7d),
        // Ranges that go below zero: the first, a gap, a later one.
        ("02 05 00 00 06", encoding, 0x02),
        ("02 05 00 01 03 01 00", encoding, 0x02),
        ("02 05 00 01 01 01 02", encoding, 0x02),
        // More ranges than there are bytes for.
        ("02 05 00 ffffffffffffffff 01 01", encoding, 0x02),
        ("03 05 00 00 00 01 01", encoding, 0x03),
        ("06 ffffffffffffffff 01 aa", encoding, 0x06),
        ("0e 04 ffffffffffffffff 01 aa", encoding, 0x0e),
        ("0c 04 ffffffffffffffff aa", encoding, 0x0c),
        ("0a 04 02 aa", encoding, 0x0a),
        ("07 00", encoding, 0x07),
        ("12 d000000000000001", encoding, 0x12),
        ("17 d000000000000001", encoding, 0x17),
        (&format!("18 01 02 01 {zeros}"), encoding, 0x18),
        (&format!("18 01 00 00 {zeros}"), encoding, 0x18),
        (&format!("18 01 00 15 {zeros}{zeros}"), encoding, 0x18),
        ("1a 00000000000000", encoding, 0x1a),
        ("31 03 aabb", encoding, 0x31),
        ("7e75 c000000100000000 00", violation, 0x3e75),
        ("7e7a c000000100000000", violation, 0x3e7a),
        ("3e c000000100000000 00 00 00 00", violation, 0x3e),
    ] {
        let payload = hex(bytes);
        let errors: Vec<_> = Frames::new(&payload)
            .map(|frame| {
                frame.map_err(
                    |FrameError {
                         code, frame_type, ..
                     }| (code, frame_type),
                )
            })
            .collect();
        assert_eq!(errors, [Err((code, frame_type))], "{bytes}");
    }
    for at_the_edge in [
        "06 fffffffffffffffe 01 aa",
        "12 d000000000000000",
        "7e7a c0000000ffffffff",
        "02 05 00 01 03 00 00",
    ] {
        let bytes = hex(at_the_edge);
        assert!(
            Frames::new(&bytes).all(|frame| frame.is_ok()),
            "{at_the_edge}"
        );
    }
}

#[test]
fn without_a_form() {
    for frame in [
        ack(None, &[]),
        ack(None, &[(2, 1)]),
        ack(None, &[(5, 6), (3, 4)]),
        ack(None, &[(5, 6), (8, 9)]),
        new_id(None, &[], 0),
        new_id(None, &[1], 6),
        Frame::MaxData(1 << 62),
        Frame::MaxPathId(1 << 32),
        Frame::MaxStreams {
            bidirectional: true,
            max: (1 << 60) + 1,
        },
        Frame::NewToken(vec![]),
        Frame::Stream {
            stream: 0,
            offset: (1 << 62) - 1,
            len: 1,
            fin: false,
        },
    ] {
        let mut out = vec![1];
        encode_frame(&frame, &mut |_, _| (), &mut out).expect_err("a frame without a form");
        assert_eq!(out, [1]);
    }
}

/// RFC 9000 section 12.4, table 3: I, H, 0, 1 for the kinds of packets; N: not ack-eliciting; P: probing.
#[test]
fn where_allowed() {
    let kinds = [
        ('I', Kind::Initial { token: vec![] }),
        ('H', Kind::Handshake),
        ('0', Kind::ZeroRtt),
        (
            '1',
            Kind::OneRtt {
                key_phase: false,
                spin: false,
            },
        ),
        (
            'x',
            Kind::Retry {
                token: vec![1],
                integrity_tag: [0; 16],
            },
        ),
        ('x', Kind::VersionNegotiation(vec![])),
    ];
    let close = |frame_type| Frame::ConnectionClose {
        error: 0,
        frame_type,
        reason: vec![],
    };
    for (frame, expected) in [
        (Frame::Padding(1), "IH01NP"),
        (Frame::Ping, "IH01"),
        (ack(None, &[(0, 0)]), "IH1N"),
        (ack(Some(1), &[(0, 0)]), "1N"),
        (
            Frame::ResetStream {
                stream: 0,
                error: 0,
                final_size: 0,
            },
            "01",
        ),
        (
            Frame::StopSending {
                stream: 0,
                error: 0,
            },
            "01",
        ),
        (
            Frame::Crypto {
                offset: 0,
                data: vec![],
            },
            "IH1",
        ),
        (Frame::NewToken(vec![1]), "1"),
        (
            Frame::Stream {
                stream: 0,
                offset: 0,
                len: 0,
                fin: true,
            },
            "01",
        ),
        (Frame::MaxData(0), "01"),
        (Frame::MaxStreamData { stream: 0, max: 0 }, "01"),
        (
            Frame::MaxStreams {
                bidirectional: true,
                max: 0,
            },
            "01",
        ),
        (Frame::DataBlocked(0), "01"),
        (
            Frame::StreamDataBlocked {
                stream: 0,
                limit: 0,
            },
            "01",
        ),
        (
            Frame::StreamsBlocked {
                bidirectional: true,
                limit: 0,
            },
            "01",
        ),
        (new_id(None, &[1], 0), "01P"),
        (new_id(Some(1), &[1], 0), "1"),
        (
            Frame::RetireConnectionId {
                path: None,
                sequence: 0,
            },
            "01",
        ),
        (
            Frame::RetireConnectionId {
                path: Some(1),
                sequence: 0,
            },
            "1",
        ),
        (Frame::PathChallenge(0), "01P"),
        (Frame::PathResponse(0), "1P"),
        (close(Some(0)), "IH01N"),
        (close(None), "01N"),
        (Frame::HandshakeDone, "1"),
        (Frame::Datagram { number: 0, len: 0 }, "01"),
        (
            Frame::AckFrequency(AckFrequency {
                sequence: 0,
                eliciting_threshold: 0,
                max_delay: 0,
                reordering_threshold: 0,
            }),
            "1",
        ),
        (Frame::ImmediateAck, "1"),
        (Frame::PathAbandon { path: 0, error: 0 }, "1"),
        (
            Frame::PathStatus {
                path: 0,
                sequence: 0,
                backup: true,
            },
            "1",
        ),
        (Frame::MaxPathId(0), "1"),
        (Frame::PathsBlocked(0), "1"),
        (
            Frame::PathCidsBlocked {
                path: 0,
                next_sequence: 0,
            },
            "1",
        ),
    ] {
        for (letter, kind) in &kinds {
            let expected = expected.contains(*letter);
            assert_eq!(frame.allowed_in(kind), expected, "{frame:?} {kind:?}");
        }
        assert_eq!(!frame.ack_eliciting(), expected.contains('N'), "{frame:?}");
        assert_eq!(frame.probing(), expected.contains('P'), "{frame:?}");
    }
}

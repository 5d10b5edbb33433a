//! Violations by the peer, and the code with which the connection is closed (RFC 9000 section 20.1).

use polypath_transport::quic::{Codepoint, Connection};
use polypath_transport::{CloseReason, Config, MILLISECOND as MS, Tuple};
use polypath_wire::quic::{
    Ack, ConnectionId, Datagram, Frame, Kind, NewConnectionId, TransportError,
};

use crate::common::reversed;
use crate::pair::{Pair, Side};
use crate::{MBPS, link, multipath, quic};

fn established(config: &Config, paths: usize) -> Pair {
    let mut pair = Pair::new(config, config, vec![link(10 * MBPS, 10 * MS); paths], 1);
    pair.establish();
    pair.run_until(300 * MS, |_| false);
    pair
}

fn side(pair: &mut Pair, side: Side) -> &mut Connection {
    match side {
        Side::Client => &mut pair.client,
        Side::Server => pair.server_mut(),
    }
}

/// A packet that a side could send next, with other frames in it.
fn forged(pair: &mut Pair, from: Side, frames: Vec<Frame>) -> (Datagram, Tuple) {
    let now = pair.now;
    let sender = side(pair, from);
    sender.write(10, now);
    let transmit = sender.transmits().pop().expect("it may send");
    let mut datagram = transmit.datagram;
    datagram.packets[0].frames = frames;
    (datagram, reversed(transmit.tuple))
}

/// The code that a CONNECTION_CLOSE among a connection's datagrams has.
fn close_code(connection: &mut Connection) -> Option<TransportError> {
    let transmits = std::mem::take(connection.transmits());
    let packets = transmits
        .into_iter()
        .flat_map(|transmit| transmit.datagram.packets);
    let mut frames = packets.flat_map(|packet| packet.frames);
    frames.find_map(|frame| match frame {
        Frame::ConnectionClose { error, .. } => Some(TransportError(error)),
        _ => None,
    })
}

/// What the other side closes the connection with when it gets these frames in a packet of the application's level.
pub fn answer(
    config: &Config,
    paths: usize,
    from: Side,
    frames: impl FnOnce(&Datagram) -> Vec<Frame>,
) -> Option<TransportError> {
    let mut pair = established(config, paths);
    let (mut datagram, tuple) = forged(&mut pair, from, Vec::new());
    datagram.packets[0].frames = frames(&datagram);
    let to = match from {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    };
    let now = pair.now;
    let receiver = side(&mut pair, to);
    receiver.on_datagram(tuple, &datagram, 1200, Codepoint::NotEct, now);
    let code = close_code(receiver);
    let ended = receiver.ended();
    assert_eq!(ended, code.map(|_| CloseReason::Aborted), "{code:?}");
    code
}

fn stream(stream: u64, offset: u64, len: u32, fin: bool) -> Frame {
    Frame::Stream {
        stream,
        offset,
        len,
        fin,
    }
}

fn reset(stream: u64, final_size: u64) -> Frame {
    Frame::ResetStream {
        stream,
        error: 0,
        final_size,
    }
}

fn ack(path: Option<u64>, number: u64) -> Frame {
    Frame::Ack(Box::new(Ack {
        path,
        ranges: vec![(number, number)],
        ..Ack::default()
    }))
}

fn new_id(path: Option<u64>, sequence: u64, id: u8, token: u8) -> Frame {
    Frame::NewConnectionId(Box::new(NewConnectionId {
        path,
        sequence,
        retire_prior_to: 0,
        id: ConnectionId::new(&[id; 8]),
        reset_token: [token; 16],
    }))
}

const WINDOW: u64 = 1 << 40;

#[test]
fn each_violation_of_the_client_has_its_code() {
    use TransportError as E;
    let cases: Vec<(&str, Vec<Frame>, Option<E>)> = vec![
        (
            "19.7: a token of a client",
            vec![Frame::NewToken(vec![1])],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "19.20: a client confirms",
            vec![Frame::HandshakeDone],
            Some(E::PROTOCOL_VIOLATION),
        ),
        ("12.4: no frames", vec![], Some(E::PROTOCOL_VIOLATION)),
        (
            "13.1: never sent",
            vec![ack(None, 1_000_000)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4.1: beyond the stream's window",
            vec![stream(0, WINDOW, 1, false)],
            Some(E::FLOW_CONTROL_ERROR),
        ),
        (
            "4.1: a reset beyond it",
            vec![reset(0, WINDOW)],
            Some(E::FLOW_CONTROL_ERROR),
        ),
        (
            "4.5: data beyond the end",
            vec![stream(4, 0, 10, true), stream(4, 10, 1, false)],
            Some(E::FINAL_SIZE_ERROR),
        ),
        (
            "4.5: another end",
            vec![stream(4, 0, 10, true), stream(4, 0, 11, true)],
            Some(E::FINAL_SIZE_ERROR),
        ),
        (
            "4.5: an end below what came",
            vec![stream(4, 0, 10, false), stream(4, 0, 9, true)],
            Some(E::FINAL_SIZE_ERROR),
        ),
        (
            "4.5: a reset below what came",
            vec![stream(4, 0, 10, false), reset(4, 9)],
            Some(E::FINAL_SIZE_ERROR),
        ),
        (
            "4.5: the same end again",
            vec![stream(4, 0, 10, true), stream(4, 5, 5, true), reset(4, 10)],
            None,
        ),
        (
            "4.6: the stream after the last",
            vec![stream(4 * 100, 0, 1, false)],
            Some(E::STREAM_LIMIT_ERROR),
        ),
        (
            "4.6: the last stream",
            vec![stream(4 * 99, 0, 1, false)],
            None,
        ),
        (
            "4.6: unidirectional",
            vec![stream(4 * 100 + 2, 0, 1, false)],
            Some(E::STREAM_LIMIT_ERROR),
        ),
        (
            "4.6: a limit for a stream after the last",
            vec![Frame::MaxStreamData {
                stream: 4 * 100,
                max: 1,
            }],
            Some(E::STREAM_LIMIT_ERROR),
        ),
        (
            "19.8: on a stream of the server's",
            vec![stream(1, 0, 1, false)],
            Some(E::STREAM_STATE_ERROR),
        ),
        (
            "19.8: on one that only the server sends on",
            vec![stream(3, 0, 1, false)],
            Some(E::STREAM_STATE_ERROR),
        ),
        (
            "19.4: a reset of it",
            vec![reset(3, 0)],
            Some(E::STREAM_STATE_ERROR),
        ),
        (
            "19.5: to stop one that only the client sends on",
            vec![Frame::StopSending {
                stream: 2,
                error: 0,
            }],
            Some(E::STREAM_STATE_ERROR),
        ),
        (
            "19.10: a limit for it",
            vec![Frame::MaxStreamData { stream: 2, max: 1 }],
            Some(E::STREAM_STATE_ERROR),
        ),
        (
            "19.13: blocked on one of the server's",
            vec![Frame::StreamDataBlocked {
                stream: 3,
                limit: 0,
            }],
            Some(E::STREAM_STATE_ERROR),
        ),
        (
            "5.1.1: more ids than admitted",
            vec![
                new_id(None, 2, 2, 2),
                new_id(None, 3, 3, 3),
                new_id(None, 4, 4, 4),
            ],
            Some(E::CONNECTION_ID_LIMIT_ERROR),
        ),
        (
            "19.15: one number, two ids",
            vec![new_id(None, 1, 9, 9)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "19.16: never issued",
            vec![Frame::RetireConnectionId {
                path: None,
                sequence: 9,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "19.16: the packet's own",
            vec![Frame::RetireConnectionId {
                path: None,
                sequence: 0,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "19.18: an answer to nothing",
            vec![Frame::PathResponse(1)],
            None,
        ),
        (
            "9221, 3: a datagram too large",
            vec![Frame::Datagram {
                number: 0,
                len: 65_535,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "7.5: far beyond the handshake",
            vec![Frame::Crypto {
                offset: 1 << 20,
                data: vec![0],
            }],
            Some(E::CRYPTO_BUFFER_EXCEEDED),
        ),
        (
            "9001, 6: a KeyUpdate of TLS",
            vec![Frame::Crypto {
                offset: 0,
                data: vec![24, 0, 0, 1, 0],
            }],
            Some(E::crypto(10)),
        ),
        (
            "12.4: a frame of multipath without it",
            vec![Frame::MaxPathId(9)],
            Some(E::FRAME_ENCODING_ERROR),
        ),
        (
            "12.4: an acknowledgement of multipath",
            vec![ack(Some(0), 0)],
            Some(E::FRAME_ENCODING_ERROR),
        ),
    ];
    for (case, frames, code) in cases {
        let got = answer(&quic(), 1, Side::Client, |_| frames);
        assert_eq!(got, code, "{case}");
    }
}

#[test]
fn each_violation_of_the_server_has_its_code() {
    use TransportError as E;
    let cases: Vec<(&str, Vec<Frame>, Option<E>)> = vec![
        (
            "19.8: on a stream that the client has not opened",
            vec![stream(4, 0, 1, false)],
            Some(E::STREAM_STATE_ERROR),
        ),
        (
            "19.8: on one that only the client sends on",
            vec![stream(2, 0, 1, false)],
            Some(E::STREAM_STATE_ERROR),
        ),
        (
            "4.6: a stream after the last",
            vec![stream(4 * 100 + 1, 0, 1, false)],
            Some(E::STREAM_LIMIT_ERROR),
        ),
        ("4.6: the last", vec![stream(4 * 99 + 1, 0, 1, false)], None),
        ("19.7: a token", vec![Frame::NewToken(vec![1])], None),
        ("19.20: again", vec![Frame::HandshakeDone], None),
    ];
    for (case, frames, code) in cases {
        let got = answer(&quic(), 1, Side::Server, |_| frames);
        assert_eq!(got, code, "{case}");
    }
}

#[test]
fn each_violation_of_multipath_has_its_code() {
    use TransportError as E;
    let far = 1_000;
    let cases: Vec<(&str, Vec<Frame>, Option<E>)> = vec![
        (
            "4: an acknowledgement of a path above the limit",
            vec![ack(Some(far), 0)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "13.1: of a path that was not opened",
            vec![ack(Some(5), 0)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "13.1: never sent",
            vec![ack(Some(1), 1_000_000)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4: abandons a path above the limit",
            vec![Frame::PathAbandon {
                path: far,
                error: 0,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "3.4: abandons a path that was not opened",
            vec![Frame::PathAbandon { path: 5, error: 0 }],
            None,
        ),
        (
            "4: the status of a path above the limit",
            vec![Frame::PathStatus {
                path: far,
                sequence: 0,
                backup: true,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4.3: of one that was not opened",
            vec![Frame::PathStatus {
                path: 5,
                sequence: 0,
                backup: true,
            }],
            None,
        ),
        (
            "4: an id for a path above the limit",
            vec![new_id(Some(far), 0, 9, 9)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "5.1.1: more ids than admitted for a path",
            vec![new_id(Some(1), 2, 9, 9), new_id(Some(1), 3, 8, 8)],
            Some(E::CONNECTION_ID_LIMIT_ERROR),
        ),
        (
            "19.15: one number, two ids",
            vec![new_id(Some(6), 1, 9, 9)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4: retires an id of a path above the limit",
            vec![Frame::RetireConnectionId {
                path: Some(far),
                sequence: 0,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "19.16: never issued",
            vec![Frame::RetireConnectionId {
                path: Some(1),
                sequence: 9,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4.6: a limit below the initial one",
            vec![Frame::MaxPathId(6)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        ("4.6: no more than before", vec![Frame::MaxPathId(7)], None),
        (
            "4.7: blocked above the limit",
            vec![Frame::PathsBlocked(far)],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4.7: blocked at the limit",
            vec![Frame::PathsBlocked(7)],
            None,
        ),
        (
            "4.7: ids for a path above it",
            vec![Frame::PathCidsBlocked {
                path: far,
                next_sequence: 0,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4.7: not the next id",
            vec![Frame::PathCidsBlocked {
                path: 1,
                next_sequence: 9,
            }],
            Some(E::PROTOCOL_VIOLATION),
        ),
        (
            "4.7: the next id",
            vec![Frame::PathCidsBlocked {
                path: 1,
                next_sequence: 2,
            }],
            None,
        ),
    ];
    for (case, frames, code) in cases {
        let got = answer(&multipath(), 2, Side::Client, |_| frames);
        assert_eq!(got, code, "{case}");
    }
}

#[test]
fn the_only_path_cannot_be_abandoned() {
    let abandon = |_: &Datagram| vec![Frame::PathAbandon { path: 0, error: 0 }];
    let code = answer(&multipath(), 1, Side::Client, abandon);
    assert_eq!(code, Some(TransportError::NO_VIABLE_PATH));
    assert_eq!(answer(&multipath(), 2, Side::Client, abandon), None);
}

#[test]
fn frames_that_a_handshake_packet_cannot_have_end_the_connection() {
    for frame in [
        stream(0, 0, 1, false),
        Frame::HandshakeDone,
        ack(Some(0), 0),
    ] {
        let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
        let transmit = pair.client.transmits()[0].clone();
        pair.run_until(20 * MS, |_| false);
        let mut datagram = transmit.datagram;
        datagram.packets[0].header.number = 7;
        datagram.packets[0].frames = vec![frame];
        let now = pair.now;
        let server = pair.server.as_mut().expect("a datagram came");
        server.transmits().clear();
        let tuple = reversed(transmit.tuple);
        server.on_datagram(tuple, &datagram, 1200, Codepoint::NotEct, now);
        assert_eq!(close_code(server), Some(TransportError::PROTOCOL_VIOLATION));
    }
}

#[test]
fn a_short_datagram_brings_a_server_no_initial_packet() {
    let mut pair = Pair::new(&quic(), &quic(), vec![link(0, 20 * MS)], 1);
    let transmit = pair.client.transmits()[0].clone();
    pair.run_until(20 * MS, |_| false);
    let mut datagram = transmit.datagram;
    assert!(matches!(
        datagram.packets[0].header.kind,
        Kind::Initial { .. }
    ));
    datagram.packets[0].header.number = 7;
    // It would end the connection.
    datagram.packets[0].frames = vec![Frame::HandshakeDone];
    let now = pair.now;
    let server = pair.server.as_mut().expect("a datagram came");
    let tuple = reversed(transmit.tuple);
    server.on_datagram(tuple, &datagram, 1199, Codepoint::NotEct, now);
    assert_eq!(server.ended(), None, "RFC 9000 section 14.1");
    server.on_datagram(tuple, &datagram, 1200, Codepoint::NotEct, now);
    assert_eq!(server.ended(), Some(CloseReason::Aborted));
}

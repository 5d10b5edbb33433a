//! Strategies for everything of QUIC that has a form on the wire.

use std::net::{SocketAddrV4, SocketAddrV6};

use polypath_wire::quic::{
    Ack, AckFrequency, ConnectionId, Frame, Header, Kind, MAX_PATH_ID, MAX_STREAMS, MAX_VARINT,
    NewConnectionId, PreferredAddress, TransportParameters, VERSION,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// A value of each length of the encoding, up to `max`.
fn up_to(max: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        0..=0x3fu64,
        0x40..=0x3fffu64,
        0x4000..=0x3fff_ffffu64,
        0x4000_0000..=max,
    ]
}

pub fn varint() -> impl Strategy<Value = u64> {
    up_to(MAX_VARINT)
}

fn path() -> impl Strategy<Value = u64> {
    up_to(MAX_PATH_ID)
}

pub fn connection_id(min: usize) -> impl Strategy<Value = ConnectionId> {
    vec(any::<u8>(), min..=ConnectionId::MAX).prop_map(|bytes| ConnectionId::new(&bytes))
}

fn ack() -> impl Strategy<Value = Ack> {
    let steps = vec((up_to(1 << 40), up_to(1 << 40)), 1..6);
    let ecn = of((varint(), varint(), varint()).prop_map(|(a, b, c)| [a, b, c]));
    (of(path()), varint(), steps, up_to(1 << 40), ecn).prop_map(
        |(path, delay, steps, smallest, ecn)| {
            // From the lowest range upwards; between two of them one packet is missing at least.
            let mut next = smallest;
            let mut ranges = Vec::new();
            for (len, gap) in steps {
                ranges.insert(0, (next, next + len));
                next += len + 2 + gap;
            }
            Ack {
                path,
                delay,
                ranges,
                ecn,
            }
        },
    )
}

fn new_connection_id() -> impl Strategy<Value = NewConnectionId> {
    (
        of(path()),
        varint(),
        any::<u64>(),
        connection_id(1),
        any::<[u8; 16]>(),
    )
        .prop_map(
            |(path, sequence, retire, id, reset_token)| NewConnectionId {
                path,
                sequence,
                retire_prior_to: retire % (sequence + 1),
                id,
                reset_token,
            },
        )
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(any::<u8>(), 0..70), 1 => vec(any::<u8>(), 16380..16390)]
}

fn stream_frame() -> impl Strategy<Value = (Frame, Vec<u8>)> {
    let offset = prop_oneof![Just(0), up_to(MAX_VARINT - 20_000)];
    (varint(), offset, data(), any::<bool>()).prop_map(|(stream, offset, data, fin)| {
        let len = data.len() as u32;
        let frame = Frame::Stream {
            stream,
            offset,
            len,
            fin,
        };
        (frame, data)
    })
}

/// A frame and the payload it carries.
pub fn frame() -> impl Strategy<Value = (Frame, Vec<u8>)> {
    let v = varint;
    let streams = || (any::<bool>(), up_to(MAX_STREAMS));
    let plain = prop_oneof![
        (1..2000u32).prop_map(Frame::Padding),
        Just(Frame::Ping),
        ack().prop_map(|ack| Frame::Ack(Box::new(ack))),
        (v(), v(), v()).prop_map(|(stream, error, final_size)| Frame::ResetStream {
            stream,
            error,
            final_size
        }),
        (v(), v()).prop_map(|(stream, error)| Frame::StopSending { stream, error }),
        (up_to(MAX_VARINT - 20_000), data())
            .prop_map(|(offset, data)| Frame::Crypto { offset, data }),
        vec(any::<u8>(), 1..70).prop_map(Frame::NewToken),
        v().prop_map(Frame::MaxData),
        (v(), v()).prop_map(|(stream, max)| Frame::MaxStreamData { stream, max }),
        streams().prop_map(|(bidirectional, max)| Frame::MaxStreams { bidirectional, max }),
        v().prop_map(Frame::DataBlocked),
        (v(), v()).prop_map(|(stream, limit)| Frame::StreamDataBlocked { stream, limit }),
        streams().prop_map(|(bidirectional, limit)| Frame::StreamsBlocked {
            bidirectional,
            limit
        }),
        new_connection_id().prop_map(|new| Frame::NewConnectionId(Box::new(new))),
        (of(path()), v()).prop_map(|(path, sequence)| Frame::RetireConnectionId { path, sequence }),
        any::<u64>().prop_map(Frame::PathChallenge),
        any::<u64>().prop_map(Frame::PathResponse),
        (v(), of(v()), vec(any::<u8>(), 0..70)).prop_map(|(error, frame_type, reason)| {
            Frame::ConnectionClose {
                error,
                frame_type,
                reason,
            }
        }),
        Just(Frame::HandshakeDone),
        (v(), v(), v(), v()).prop_map(
            |(sequence, eliciting_threshold, max_delay, reordering_threshold)| {
                Frame::AckFrequency(AckFrequency {
                    sequence,
                    eliciting_threshold,
                    max_delay,
                    reordering_threshold,
                })
            }
        ),
        Just(Frame::ImmediateAck),
    ];
    let multipath = prop_oneof![
        (path(), v()).prop_map(|(path, error)| Frame::PathAbandon { path, error }),
        (path(), v(), any::<bool>()).prop_map(|(path, sequence, backup)| Frame::PathStatus {
            path,
            sequence,
            backup
        }),
        path().prop_map(Frame::MaxPathId),
        path().prop_map(Frame::PathsBlocked),
        (path(), v()).prop_map(|(path, next_sequence)| Frame::PathCidsBlocked {
            path,
            next_sequence
        }),
    ];
    let datagram = data().prop_map(|data| {
        let len = data.len() as u32;
        (Frame::Datagram { number: 0, len }, data)
    });
    prop_oneof![
        21 => plain.prop_map(|frame| (frame, Vec::new())),
        5 => multipath.prop_map(|frame| (frame, Vec::new())),
        3 => stream_frame(),
        1 => datagram,
    ]
}

/// A header with a packet number that a receiver which has seen `largest` decodes.
pub fn header() -> impl Strategy<Value = (Header, Option<u64>)> {
    let kind = prop_oneof![
        vec(any::<u8>(), 0..70).prop_map(|token| Kind::Initial { token }),
        Just(Kind::ZeroRtt),
        Just(Kind::Handshake),
        any::<(bool, bool)>().prop_map(|(key_phase, spin)| Kind::OneRtt { key_phase, spin }),
        (vec(any::<u8>(), 1..70), any::<[u8; 16]>()).prop_map(|(token, integrity_tag)| {
            Kind::Retry {
                token,
                integrity_tag,
            }
        }),
        vec(any::<u32>(), 0..5).prop_map(Kind::VersionNegotiation),
    ];
    let number = (1..=4u8, of(0..1u64 << 60), 0..=0x7fu64);
    (kind, connection_id(0), connection_id(0), number).prop_map(
        |(kind, destination, source, (number_len, largest, ahead))| {
            let protected = kind.is_protected();
            let long = kind.is_long();
            let negotiation = matches!(kind, Kind::VersionNegotiation(_));
            let header = Header {
                version: if long && !negotiation { VERSION } else { 0 },
                destination,
                source: if long {
                    source
                } else {
                    ConnectionId::default()
                },
                number: if protected {
                    largest.unwrap_or(0) + ahead
                } else {
                    0
                },
                number_len: if protected { number_len } else { 0 },
                kind,
            };
            (header, largest)
        },
    )
}

/// What either side may send.
pub fn parameters() -> impl Strategy<Value = TransportParameters> {
    let v = varint;
    let limits = (v(), 1200..=MAX_VARINT, v(), v(), v(), v());
    let streams = (up_to(MAX_STREAMS), up_to(MAX_STREAMS));
    let acks = (0..=20u64, 0..1u64 << 14, of(any::<u64>()));
    let others = (
        any::<bool>(),
        2..=MAX_VARINT,
        v(),
        of(path()),
        of(connection_id(0)),
    );
    (limits, streams, acks, others).prop_map(|(limits, streams, acks, others)| {
        TransportParameters {
            max_idle_timeout: limits.0,
            max_udp_payload_size: limits.1,
            initial_max_data: limits.2,
            initial_max_stream_data_bidi_local: limits.3,
            initial_max_stream_data_bidi_remote: limits.4,
            initial_max_stream_data_uni: limits.5,
            initial_max_streams_bidi: streams.0,
            initial_max_streams_uni: streams.1,
            ack_delay_exponent: acks.0,
            max_ack_delay: acks.1,
            min_ack_delay: acks.2.map(|delay| delay % (acks.1 * 1000 + 1)),
            disable_active_migration: others.0,
            active_connection_id_limit: others.1,
            max_datagram_frame_size: others.2,
            initial_max_path_id: others.3,
            initial_source_connection_id: others.4,
            ..TransportParameters::default()
        }
    })
}

/// What a server may send.
pub fn server_parameters() -> impl Strategy<Value = TransportParameters> {
    let preferred = (
        any::<([u8; 4], u16, [u8; 16], u16)>(),
        connection_id(1),
        any::<[u8; 16]>(),
    )
        .prop_map(|((v4, v4_port, v6, v6_port), connection_id, reset_token)| {
            Box::new(PreferredAddress {
                v4: SocketAddrV4::new(v4.into(), v4_port),
                v6: SocketAddrV6::new(v6.into(), v6_port, 0, 0),
                connection_id,
                reset_token,
            })
        });
    let ids = (of(connection_id(0)), of(connection_id(0)));
    (parameters(), ids, of(any::<[u8; 16]>()), of(preferred)).prop_map(
        |(parameters, ids, stateless_reset_token, preferred_address)| TransportParameters {
            original_destination_connection_id: ids.0,
            retry_source_connection_id: ids.1,
            stateless_reset_token,
            preferred_address,
            ..parameters
        },
    )
}

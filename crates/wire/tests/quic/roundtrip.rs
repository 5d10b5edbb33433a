//! Emitted QUIC parses to the same again, and has the length that was announced.

use crate::strategies::{frame, header, parameters, server_parameters, varint};
use polypath_wire::quic::{
    Carried, Datagram, Frame, Frames, Kind, MAX_VARINT, Packet, ParameterError, Role, TAG_LEN,
    TransportParameters, decode_number, encode_frame, number_len, read_varint, reserved_bits_clear,
    split, varint_len, write_varint,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Frames that parse apart: two runs of PADDING would be one.
fn frames() -> impl Strategy<Value = Vec<(Frame, Vec<u8>)>> {
    vec(frame(), 1..8).prop_map(|mut frames| {
        frames.dedup_by(|(a, _), (b, _)| matches!((a, b), (Frame::Padding(_), Frame::Padding(_))));
        frames
    })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(9000), ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn integers(value in varint()) {
        let mut out = Vec::new();
        write_varint(value, &mut out).unwrap();
        prop_assert_eq!(out.len(), varint_len(value) as usize);
        prop_assert_eq!(read_varint(&out), Some((value, out.len())));
        prop_assert_eq!(read_varint(&out[..out.len() - 1]), None);
    }

    #[test]
    fn payloads(frames in frames()) {
        let mut out = Vec::new();
        for (frame, payload) in &frames {
            let start = out.len();
            let mut asked = None;
            encode_frame(frame, &mut |carried, bytes| {
                asked = Some(carried);
                bytes.copy_from_slice(payload);
            }, &mut out).unwrap();
            prop_assert_eq!(out.len() - start, frame.len() as usize);
            let expected = match *frame {
                _ if payload.is_empty() => None,
                Frame::Stream { stream, offset, .. } => Some(Carried::Stream { stream, offset }),
                Frame::Datagram { number, .. } => Some(Carried::Datagram { number }),
                _ => None,
            };
            prop_assert_eq!(asked, expected);
            // The type that it speaks of is the one on the wire.
            prop_assert_eq!(read_varint(&out[start..]).unwrap().0, frame.frame_type());
        }
        let parsed: Vec<_> = Frames::new(&out).collect();
        let expected: Vec<_> = frames
            .iter()
            .map(|(frame, payload)| Ok((frame.clone(), payload.as_slice())))
            .collect();
        prop_assert_eq!(parsed, expected);
    }

    #[test]
    fn frames_cut_short_are_errors((frame, payload) in frame(), cut: prop::sample::Index) {
        prop_assume!(!matches!(frame, Frame::Padding(_)));
        let mut out = Vec::new();
        encode_frame(&frame, &mut |_, bytes| bytes.copy_from_slice(&payload), &mut out).unwrap();
        out.truncate(cut.index(out.len()));
        let mut frames = Frames::new(&out);
        prop_assert!(frames.next().unwrap().is_err());
        prop_assert_eq!(frames.next(), None);
    }

    #[test]
    fn headers((header, largest) in header(), payload in vec(any::<u8>(), 4..40), long: bool) {
        let mut payload = payload;
        if long {
            payload.resize(17_000, 0);
        }
        if !header.kind.is_protected() {
            payload.clear();
        }
        let mut out = vec![0xaa];
        let number_offset = header.encode(payload.len() as u32, &mut out).unwrap();
        out.remove(0);
        prop_assert_eq!(out.len(), header.len(payload.len() as u32) as usize);
        prop_assert!(reserved_bits_clear(out[0]) || !header.kind.is_protected());
        let header_len = out.len();
        out.extend_from_slice(&payload);
        if header.kind.is_protected() {
            out.extend([0; TAG_LEN as usize]);
        }

        let packets: Vec<_> = split(&out, header.destination.len()).collect();
        prop_assert_eq!(packets.len(), 1);
        let protected = packets[0].clone().unwrap();
        prop_assert_eq!(&protected.range, &(0..out.len()));
        prop_assert_eq!(protected.number_offset, number_offset);
        prop_assert_eq!(protected.header(&out, largest), (header, header_len));
    }

    #[test]
    fn datagrams(packets in vec((header(), frames()), 1..4)) {
        let destination = packets[0].0.0.destination;
        let mut datagram = Datagram::default();
        let mut bytes = Vec::new();
        let mut largest = Vec::new();
        let last = packets.len() - 1;
        for (index, ((mut header, seen), frames)) in packets.into_iter().enumerate() {
            // Only the last packet may be of a kind without a length.
            let has_length = matches!(header.kind, Kind::Initial { .. } | Kind::ZeroRtt | Kind::Handshake);
            if !header.kind.is_protected() || (index < last && !has_length) {
                continue;
            }
            header.destination = destination;
            let mut packet = Packet { header, path: 0, frames: frames.iter().map(|(frame, _)| frame.clone()).collect() };
            if packet.payload_len() < 3 {
                packet.frames.push(Frame::PathChallenge(7));
            }
            let start = bytes.len();
            packet.encode(&mut |_, payload| payload.fill(7), &mut bytes).unwrap();
            bytes.extend([0; TAG_LEN as usize]);
            prop_assert_eq!(bytes.len() - start, packet.len() as usize);
            datagram.packets.push(packet);
            largest.push(seen);
        }
        prop_assert_eq!(bytes.len(), datagram.len() as usize);
        let mut parsed = Datagram::default();
        for (protected, largest) in split(&bytes, destination.len()).zip(largest) {
            let protected = protected.unwrap();
            let packet = &bytes[protected.range.clone()];
            let (header, at) = protected.header(packet, largest);
            let frames = Frames::new(&packet[at..packet.len() - TAG_LEN as usize])
                .map(|frame| frame.unwrap().0)
                .collect();
            parsed.packets.push(Packet { header, path: 0, frames });
        }
        prop_assert_eq!(parsed, datagram);
    }

    #[test]
    fn packet_numbers(acked in proptest::option::of(0..1u64 << 61), ahead in 1..1u64 << 31, received: prop::sample::Index) {
        let full = acked.map_or(ahead - 1, |acked| acked + ahead);
        let len = number_len(full, acked);
        let bits = 8 * u32::from(len);
        let truncated = full & ((1 << bits) - 1);
        // The receiver has seen what it acknowledged, and perhaps more, but not this one.
        let lowest = acked.map_or(0, |acked| acked + 1);
        let seen = (lowest + received.index((full - lowest + 1) as usize) as u64).checked_sub(1);
        prop_assert_eq!(decode_number(seen, truncated, bits), full);
        if len > 1 {
            // One byte less cannot tell it from the packet acknowledged last.
            let bits = bits - 8;
            prop_assert_ne!(decode_number(acked, full & ((1 << bits) - 1), bits), full);
        }
    }

    #[test]
    fn parameters_of_either((sender, parameters) in prop_oneof![
        parameters().prop_map(|parameters| (Role::Client, parameters)),
        server_parameters().prop_map(|parameters| (Role::Server, parameters)),
    ]) {
        let mut out = Vec::new();
        parameters.encode(&mut out).unwrap();
        prop_assert_eq!(TransportParameters::parse(&out, sender), Ok(parameters.clone()));
        let of_server = parameters.original_destination_connection_id.is_some()
            || parameters.retry_source_connection_id.is_some()
            || parameters.stateless_reset_token.is_some()
            || parameters.preferred_address.is_some();
        let as_client = TransportParameters::parse(&out, Role::Client);
        let refused = matches!(as_client, Err(ParameterError { reason: "a client sent it", .. }));
        prop_assert_eq!(refused, of_server);
    }
}

#[test]
fn an_integer_above_the_longest_is_refused() {
    let mut out = vec![1];
    assert!(write_varint(MAX_VARINT + 1, &mut out).is_err());
    assert_eq!(out, [1]);
}

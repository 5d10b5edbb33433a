//! The fuzz targets on seeded random bytes, and on valid packets cut short or with bits flipped.

mod common;
#[path = "quic/strategies.rs"]
mod strategies;

use common::{addresses, segment};
use polypath_wire::icmp::{self, Echo, Message};
use polypath_wire::{fuzz, ip, quic, tcp, udp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

fn run_all(bytes: &[u8]) {
    for (_, target) in fuzz::TARGETS {
        target(bytes);
    }
}

/// Bits to flip, and where to cut.
fn damage() -> impl Strategy<Value = (Vec<Index>, Option<Index>)> {
    (
        vec(any::<Index>(), 0..4),
        proptest::option::of(any::<Index>()),
    )
}

fn apply(bytes: &mut Vec<u8>, (flips, cut): &(Vec<Index>, Option<Index>)) {
    for flip in flips {
        let bit = flip.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len() + 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(8684), ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..120)) {
        run_all(&bytes);
    }

    #[test]
    fn damaged_segments((segment, payload) in segment(), addresses in addresses(), damage in damage()) {
        let mut bytes = Vec::new();
        tcp::emit(&segment, 1, 2, &payload, addresses, &mut bytes).unwrap();
        if bytes.len() > 22 {
            fuzz::mptcp(&bytes[22..]);
        }
        apply(&mut bytes, &damage);
        run_all(&bytes);
    }

    #[test]
    fn option_areas(area in vec(prop_oneof![2 => 0..12u8, 2 => Just(30u8), 2 => any::<u8>()], 0..=40)) {
        let mut bytes = vec![0; 20];
        bytes.extend(area);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes[12] = (bytes.len() as u8 / 4) << 4;
        fuzz::tcp(&bytes);
    }

    #[test]
    fn damaged_datagrams(data in vec(any::<u8>(), 0..60), addresses in addresses(), damage in damage(), reply: bool) {
        let mut bytes = Vec::new();
        udp::emit(1, 2, &data, addresses, &mut bytes).unwrap();
        apply(&mut bytes, &damage);
        run_all(&bytes);
        for message in [Message::Echo(Echo { reply, identifier: 3, sequence: 4 }), Message::TooBig { mtu: 1400 }] {
            bytes.clear();
            icmp::emit(message, &data, addresses, &mut bytes).unwrap();
            apply(&mut bytes, &damage);
            run_all(&bytes);
        }
    }

    #[test]
    fn damaged_quic((frame, payload) in strategies::frame(), (header, _) in strategies::header(),
                    parameters in strategies::server_parameters(), damage in damage()) {
        let mut frames = Vec::new();
        quic::encode_frame(&frame, &mut |_, bytes| bytes.copy_from_slice(&payload), &mut frames).unwrap();
        let payload_len = if header.kind.is_protected() { frames.len() } else { 0 };
        let mut datagram = Vec::new();
        header.encode(payload_len as u32, &mut datagram).unwrap();
        if header.kind.is_protected() {
            datagram.extend_from_slice(&frames);
            datagram.extend([0; quic::TAG_LEN as usize]);
        }
        let mut extension = Vec::new();
        parameters.encode(&mut extension).unwrap();
        for mut bytes in [frames, datagram, extension] {
            if !bytes.is_empty() {
                run_all(&bytes);
                apply(&mut bytes, &damage);
                run_all(&bytes);
            }
        }
    }

    #[test]
    fn damaged_ip(data in vec(any::<u8>(), 0..60), flow_label in 0..0x10_0000u32,
                  next_header in prop_oneof![Just(0u8), Just(43u8), Just(44u8), Just(60u8), any::<u8>()],
                  options in vec(any::<u8>(), 0..=40), damage in damage()) {
        let mut bytes = Vec::new();
        let v6 = ip::v6::Header {
            src: 1.into(), dst: 2.into(), next_header, hop_limit: 9, dscp: 1, ecn: 1, flow_label,
        };
        ip::v6::emit(&v6, data.len(), &mut bytes).unwrap();
        bytes.extend_from_slice(&data);
        apply(&mut bytes, &damage);
        run_all(&bytes);

        run_all(&v4_with_options(&options, &data));
        let mut bytes = v4_with_options(&options, &data);
        apply(&mut bytes, &damage);
        run_all(&bytes);
    }
}

/// An IPv4 packet with options, its checksum right.
fn v4_with_options(options: &[u8], data: &[u8]) -> Vec<u8> {
    let header_len = 20 + options.len().next_multiple_of(4);
    let mut bytes = vec![0x40 | (header_len / 4) as u8, 0];
    bytes.extend(((header_len + data.len()) as u16).to_be_bytes());
    bytes.resize(20, 0);
    bytes.extend_from_slice(options);
    bytes.resize(header_len, 0);
    let mut sum = polypath_wire::Checksum::new();
    sum.add(&bytes);
    bytes[10..12].copy_from_slice(&sum.finish().to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

#[test]
fn options_of_ipv4_are_skipped() {
    let bytes = v4_with_options(&[7; 9], b"data");
    let (header, payload) = ip::v4::parse(&bytes).unwrap();
    assert_eq!((header.protocol, payload), (0, b"data".as_slice()));
}

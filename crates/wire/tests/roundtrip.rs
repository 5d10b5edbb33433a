//! Emitted packets parse to the same again, and etherparse agrees.

mod common;

use std::net::IpAddr;

use common::{addresses, crowded_segment, mptcp_option, segment};
use etherparse::{
    Icmpv4Type, Icmpv6Type, Ipv4HeaderSlice, Ipv6HeaderSlice, TcpHeaderSlice, UdpHeaderSlice,
};
use polypath_wire::icmp::{self, Echo, Message};
use polypath_wire::mptcp::MptcpOption;
use polypath_wire::{EmitError, ip, tcp, udp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn v4_header() -> impl Strategy<Value = ip::v4::Header> {
    (
        any::<([u8; 4], [u8; 4], u8, u8, u16)>(),
        (0..64u8, 0..4u8, any::<bool>(), any::<bool>(), 0..0x2000u16),
    )
        .prop_map(
            |((src, dst, protocol, ttl, identification), (dscp, ecn, df, mf, offset))| {
                ip::v4::Header {
                    src: src.into(),
                    dst: dst.into(),
                    protocol,
                    ttl,
                    dscp,
                    ecn,
                    identification,
                    dont_fragment: df,
                    more_fragments: mf,
                    fragment_offset: offset,
                }
            },
        )
}

fn v6_header() -> impl Strategy<Value = ip::v6::Header> {
    (
        any::<([u8; 16], [u8; 16], u8)>(),
        1..43u8,
        0..64u8,
        0..4u8,
        0..0x10_0000u32,
    )
        .prop_map(
            |((src, dst, hop_limit), next_header, dscp, ecn, flow_label)| ip::v6::Header {
                src: src.into(),
                dst: dst.into(),
                next_header,
                hop_limit,
                dscp,
                ecn,
                flow_label,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(9293), ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn tcp((segment, payload) in segment(), src: u16, dst: u16, addresses in addresses()) {
        let mut out = vec![0xaa];
        tcp::emit(&segment, src, dst, &payload, addresses, &mut out).unwrap();
        let bytes = &out[1..];
        prop_assert_eq!(bytes.len(), tcp::header_len(&segment) + payload.len());
        prop_assert_eq!(tcp::parse(bytes), Ok((src, dst, segment.clone(), payload.as_slice())));
        prop_assert!(tcp::verify_checksum(bytes, addresses));

        let oracle = TcpHeaderSlice::from_slice(bytes).unwrap();
        prop_assert_eq!(oracle.source_port(), src);
        prop_assert_eq!(oracle.destination_port(), dst);
        prop_assert_eq!(oracle.sequence_number(), segment.seq);
        prop_assert_eq!(oracle.acknowledgment_number(), segment.ack);
        prop_assert_eq!(oracle.window_size(), segment.window);
        prop_assert_eq!(usize::from(oracle.data_offset()) * 4, tcp::header_len(&segment));
        prop_assert_eq!(oracle.fin(), segment.flags.contains(tcp::Flags::FIN));
        prop_assert_eq!(oracle.syn(), segment.flags.contains(tcp::Flags::SYN));
        prop_assert_eq!(oracle.rst(), segment.flags.contains(tcp::Flags::RST));
        prop_assert_eq!(oracle.psh(), segment.flags.contains(tcp::Flags::PSH));
        prop_assert_eq!(oracle.ack(), segment.flags.contains(tcp::Flags::ACK));
        prop_assert_eq!(oracle.urg(), segment.flags.contains(tcp::Flags::URG));
        prop_assert_eq!(oracle.ece(), segment.flags.contains(tcp::Flags::ECE));
        prop_assert_eq!(oracle.cwr(), segment.flags.contains(tcp::Flags::CWR));
        let expected = match addresses {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                oracle.calc_checksum_ipv4_raw(src.octets(), dst.octets(), &payload)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                oracle.to_header().calc_checksum_ipv6_raw(src.octets(), dst.octets(), &payload)
            }
            _ => unreachable!("the strategy gives one family"),
        };
        prop_assert_eq!(oracle.checksum(), expected.unwrap());
    }

    #[test]
    fn every_mptcp_option_alone(option in mptcp_option()) {
        let mut segment = tcp::Segment::default();
        segment.rare_mut().mptcp.push(option.clone());
        let mut out = Vec::new();
        tcp::emit(&segment, 1, 2, &[], ("::".parse().unwrap(), "::".parse().unwrap()), &mut out)
            .unwrap();
        prop_assert_eq!(usize::from(out[21]), option.wire_len());
        let (_, _, parsed, _) = tcp::parse(&out).unwrap();
        prop_assert_eq!(parsed.mptcp(), &[option]);
    }

    #[test]
    fn more_than_forty_bytes_are_refused(segment in crowded_segment()) {
        let mut out = vec![1, 2, 3];
        let len = tcp::options_len(&segment);
        let result = tcp::emit(&segment, 1, 2, &[], ("::".parse().unwrap(), "::".parse().unwrap()), &mut out);
        if len > 40 {
            prop_assert_eq!(result, Err(EmitError::OptionSpace { len }));
            prop_assert_eq!(out, vec![1, 2, 3]);
        } else {
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(out.len(), 3 + 20 + len);
        }
    }

    #[test]
    fn ipv4(header in v4_header(), payload in vec(any::<u8>(), 0..64), padding in vec(any::<u8>(), 0..9)) {
        let mut out = Vec::new();
        ip::v4::emit(&header, payload.len(), &mut out).unwrap();
        out.extend_from_slice(&payload);
        out.extend_from_slice(&padding);
        prop_assert_eq!(ip::v4::parse(&out), Ok((header, payload.as_slice())));
        prop_assert_eq!(ip::parse(&out), Ok((ip::Header::V4(header), payload.as_slice())));

        let oracle = Ipv4HeaderSlice::from_slice(&out).unwrap();
        prop_assert_eq!(oracle.source(), header.src.octets());
        prop_assert_eq!(oracle.destination(), header.dst.octets());
        prop_assert_eq!(oracle.protocol().0, header.protocol);
        prop_assert_eq!(oracle.ttl(), header.ttl);
        prop_assert_eq!(oracle.dcp().value(), header.dscp);
        prop_assert_eq!(oracle.ecn().value(), header.ecn);
        prop_assert_eq!(oracle.identification(), header.identification);
        prop_assert_eq!(oracle.dont_fragment(), header.dont_fragment);
        prop_assert_eq!(oracle.more_fragments(), header.more_fragments);
        prop_assert_eq!(oracle.fragments_offset().value(), header.fragment_offset);
        prop_assert_eq!(usize::from(oracle.total_len()), 20 + payload.len());
        prop_assert_eq!(oracle.header_checksum(), oracle.to_header().calc_header_checksum());
    }

    #[test]
    fn ipv6(header in v6_header(), payload in vec(any::<u8>(), 0..64), padding in vec(any::<u8>(), 0..9)) {
        let mut out = Vec::new();
        ip::v6::emit(&header, payload.len(), &mut out).unwrap();
        out.extend_from_slice(&payload);
        out.extend_from_slice(&padding);
        prop_assert_eq!(ip::v6::parse(&out), Ok((header, payload.as_slice())));
        prop_assert_eq!(ip::parse(&out), Ok((ip::Header::V6(header), payload.as_slice())));

        let oracle = Ipv6HeaderSlice::from_slice(&out).unwrap();
        prop_assert_eq!(oracle.source(), header.src.octets());
        prop_assert_eq!(oracle.destination(), header.dst.octets());
        prop_assert_eq!(oracle.next_header().0, header.next_header);
        prop_assert_eq!(oracle.hop_limit(), header.hop_limit);
        prop_assert_eq!(oracle.traffic_class(), header.dscp << 2 | header.ecn);
        prop_assert_eq!(oracle.flow_label().value(), header.flow_label);
        prop_assert_eq!(usize::from(oracle.payload_length()), payload.len());
    }

    #[test]
    fn udp_datagram(src: u16, dst: u16, payload in vec(any::<u8>(), 0..64), addresses in addresses()) {
        let mut out = Vec::new();
        udp::emit(src, dst, &payload, addresses, &mut out).unwrap();
        prop_assert_eq!(udp::parse(&out), Ok((src, dst, payload.as_slice())));
        prop_assert!(udp::verify_checksum(&out, addresses));

        let oracle = UdpHeaderSlice::from_slice(&out).unwrap().to_header();
        let expected = match addresses {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                oracle.calc_checksum_ipv4_raw(src.octets(), dst.octets(), &payload)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                oracle.calc_checksum_ipv6_raw(src.octets(), dst.octets(), &payload)
            }
            _ => unreachable!("the strategy gives one family"),
        };
        prop_assert_eq!(oracle.checksum, expected.unwrap());
    }

    #[test]
    fn icmp_echo(reply: bool, identifier: u16, sequence: u16, data in vec(any::<u8>(), 0..64), addresses in addresses()) {
        let echo = Echo { reply, identifier, sequence };
        let mut out = Vec::new();
        icmp::emit(echo, &data, addresses, &mut out).unwrap();
        let version = icmp::Version::of(addresses.0);
        prop_assert_eq!(icmp::parse(version, &out), Ok((Message::Echo(echo), data.as_slice())));
        prop_assert!(icmp::verify_checksum(&out, addresses));

        let header = etherparse::IcmpEchoHeader { id: identifier, seq: sequence };
        let checksum = match addresses {
            (IpAddr::V4(_), _) if reply => Icmpv4Type::EchoReply(header).calc_checksum(&data),
            (IpAddr::V4(_), _) => Icmpv4Type::EchoRequest(header).calc_checksum(&data),
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let kind = if reply { Icmpv6Type::EchoReply(header) } else { Icmpv6Type::EchoRequest(header) };
                kind.calc_checksum(src.octets(), dst.octets(), &data).unwrap()
            }
            _ => unreachable!("the strategy gives one family"),
        };
        prop_assert_eq!(&out[2..4], &checksum.to_be_bytes());
    }

    #[test]
    fn icmp_too_big(mtu: u16, quoted in vec(any::<u8>(), 0..64), addresses in addresses()) {
        let message = Message::TooBig { mtu: mtu.into() };
        let mut out = Vec::new();
        icmp::emit(message, &quoted, addresses, &mut out).unwrap();
        let version = icmp::Version::of(addresses.0);
        prop_assert_eq!(icmp::parse(version, &out), Ok((message, quoted.as_slice())));
        prop_assert!(icmp::verify_checksum(&out, addresses));

        let header = match addresses {
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let kind = Icmpv6Type::PacketTooBig { mtu: mtu.into() };
                etherparse::Icmpv6Header::with_checksum(kind, src.octets(), dst.octets(), &quoted).unwrap().to_bytes().to_vec()
            }
            _ => {
                let reason = etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu };
                etherparse::Icmpv4Header::with_checksum(Icmpv4Type::DestinationUnreachable(reason), &quoted).to_bytes().to_vec()
            }
        };
        prop_assert_eq!(&out[..8], &header[..8]);
    }
}

#[test]
fn combinations_without_a_form_are_refused() {
    let address = IpAddr::from([10, 0, 0, 1]);
    let add = |echo, hmac| MptcpOption::AddAddr {
        echo,
        address_id: 1,
        address,
        port: None,
        hmac,
    };
    for option in [
        add(true, Some(1)),
        add(false, None),
        MptcpOption::RemoveAddr {
            address_ids: vec![],
        },
        MptcpOption::TcpRst {
            flags: 16,
            reason: 0,
        },
        MptcpOption::Unknown {
            subtype: 16,
            flags: 0,
            body: vec![],
        },
    ] {
        let mut segment = tcp::Segment::default();
        segment.rare_mut().mptcp.push(option.clone());
        let mut out = Vec::new();
        let result = tcp::emit(&segment, 1, 2, &[], (address, address), &mut out);
        assert!(
            matches!(result, Err(EmitError::Field(_))),
            "{option:?}: {result:?}"
        );
        assert!(out.is_empty());
    }
}

//! The promises of every parser for arbitrary bytes, as functions that fuzz targets and tests call.
//!
//! A parser does not panic. Accepted input can be emitted, and the emitted bytes parse to the same again. A truncated
//! capture of the bytes shows the same lengths. The functions panic when a promise is broken.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::mptcp::KIND;
use crate::{EmitError, bpdu as stp, icmp, ip, openflow, quic, tcp, udp};

/// A promise checked on some bytes.
pub type Target = fn(&[u8]);

/// Every target with its name.
pub const TARGETS: &[(&str, Target)] = &[
    ("ipv4", ipv4),
    ("ipv6", ipv6),
    ("tcp", tcp),
    ("mptcp", mptcp),
    ("udp", udp),
    ("icmp", icmp),
    ("quic_frames", quic_frames),
    ("quic_header", quic_header),
    ("quic_parameters", quic_parameters),
    ("openflow", openflow),
    ("bpdu", bpdu),
];

const V4: (IpAddr, IpAddr) = (
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
);
const V6: (IpAddr, IpAddr) = (
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::UNSPECIFIED),
);

pub fn bpdu(bytes: &[u8]) {
    if let Ok(bpdu) = stp::parse(bytes) {
        let mut out = Vec::new();
        stp::emit([2; 6], &bpdu, &mut out);
        assert_eq!(stp::parse(&out), Ok(bpdu));
    }
}

pub fn ipv4(bytes: &[u8]) {
    if let Ok((header, payload)) = ip::v4::parse(bytes) {
        let mut out = Vec::new();
        ip::v4::emit(&header, payload.len(), &mut out).expect("an IPv4 header as parsed");
        out.extend_from_slice(payload);
        assert_eq!(ip::v4::parse(&out), Ok((header, payload)));
        let cut = out.len() - payload.len() / 2;
        let kept = &payload[..payload.len() - payload.len() / 2];
        let found = ip::v4::parse_cut(&out[..cut], out.len());
        assert_eq!(found, Ok((header, kept, payload.len())));
    }
    let _ = ip::v4::parse_cut(bytes, bytes.len());
}

pub fn ipv6(bytes: &[u8]) {
    if let Ok((header, payload)) = ip::v6::parse(bytes) {
        let mut out = Vec::new();
        ip::v6::emit(&header, payload.len(), &mut out).expect("an IPv6 header as parsed");
        out.extend_from_slice(payload);
        assert_eq!(ip::v6::parse(&out), Ok((header, payload)));
        let (wire_len, len) = (out.len(), payload.len());
        if len > 0 {
            let found = ip::v6::parse_cut(&out, wire_len);
            assert_eq!(found, Ok((header, payload, len)));
        }
    }
    let _ = ip::v6::parse_cut(bytes, bytes.len());
}

pub fn tcp(bytes: &[u8]) {
    let cut = tcp::parse_cut(&bytes[..bytes.len() / 2], bytes.len());
    let Ok((src, dst, segment, payload)) = tcp::parse(bytes) else {
        return;
    };
    if let Ok((_, _, cut)) = cut {
        assert_eq!(cut.payload, segment.payload);
    }
    assert_eq!(
        tcp::parse_cut(bytes, bytes.len()),
        Ok((src, dst, segment.clone()))
    );
    let mut out = Vec::new();
    match tcp::emit(&segment, src, dst, payload, V4, &mut out) {
        Ok(()) => {
            assert_eq!(out.len(), tcp::header_len(&segment) + payload.len());
            assert!(tcp::verify_checksum(&out, V4));
            assert_eq!(tcp::parse(&out), Ok((src, dst, segment, payload)));
        }
        // A sender may pack options more tightly than the aligned layout.
        Err(EmitError::OptionSpace { .. } | EmitError::TooLong { .. }) => assert!(out.is_empty()),
        Err(error) => panic!("{error} for {segment:?} as parsed"),
    }
}

/// The bytes as the body of one MPTCP option of a segment.
pub fn mptcp(bytes: &[u8]) {
    let body = &bytes[..bytes.len().min(tcp::MAX_OPTIONS_LEN - 2)];
    let header_len = (tcp::MIN_HEADER_LEN + 2 + body.len()).next_multiple_of(4);
    let mut header = vec![0; tcp::MIN_HEADER_LEN];
    header[12] = (header_len as u8 / 4) << 4;
    header.extend([KIND, 2 + body.len() as u8]);
    header.extend_from_slice(body);
    header.resize(header_len, 0);
    tcp::parse(&header).expect("one option of any body parses");
    tcp(&header);
}

pub fn udp(bytes: &[u8]) {
    if let Ok((src, dst, payload)) = udp::parse(bytes) {
        for addresses in [V4, V6] {
            let mut out = Vec::new();
            udp::emit(src, dst, payload, addresses, &mut out).expect("a datagram as parsed");
            assert!(udp::verify_checksum(&out, addresses));
            assert_eq!(udp::parse(&out), Ok((src, dst, payload)));
        }
    }
}

pub fn icmp(bytes: &[u8]) {
    for addresses in [V4, V6] {
        let version = icmp::Version::of(addresses.0);
        let Ok((message, data)) = icmp::parse(version, bytes) else {
            continue;
        };
        let mut out = Vec::new();
        match icmp::emit(message, data, addresses, &mut out) {
            Ok(()) => {
                assert!(icmp::verify_checksum(&out, addresses));
                assert_eq!(icmp::parse(version, &out), Ok((message, data)));
            }
            Err(EmitError::TooLong { .. }) => assert!(out.is_empty()),
            Err(error) => panic!("{error} for {message:?} as parsed"),
        }
    }
}

/// The bytes as the payload of an unprotected packet.
pub fn quic_frames(bytes: &[u8]) {
    for parsed in quic::Frames::new(bytes) {
        let Ok((frame, payload)) = parsed else {
            continue;
        };
        let mut out = Vec::new();
        quic::encode_frame(
            &frame,
            &mut |_, bytes| bytes.copy_from_slice(payload),
            &mut out,
        )
        .expect("a frame as parsed");
        assert_eq!(out.len(), frame.len() as usize);
        let again: Vec<_> = quic::Frames::new(&out).collect();
        assert_eq!(again, [Ok((frame, payload))]);
    }
}

/// The bytes as a datagram, header protection removed; own connection ids are empty, or of eight bytes.
pub fn quic_header(bytes: &[u8]) {
    for short_dcid_len in [0, 8] {
        for protected in quic::split(bytes, short_dcid_len).flatten() {
            let packet = &bytes[protected.range.clone()];
            let (header, payload_at) = protected.header(packet, Some(1000));
            let payload = &packet[payload_at..];
            let payload_len = if header.kind.is_protected() {
                payload.len() as u32 - quic::TAG_LEN
            } else {
                0
            };
            let mut out = Vec::new();
            header
                .encode(payload_len, &mut out)
                .expect("a header as parsed");
            assert_eq!(out.len(), header.len(payload_len) as usize);
            out.extend_from_slice(payload);
            let again = quic::split(&out, short_dcid_len)
                .next()
                .expect("a packet")
                .expect("a header as emitted");
            assert_eq!(again.range, 0..out.len());
            let payload_at = out.len() - payload.len();
            assert_eq!(again.header(&out, Some(1000)), (header, payload_at));
        }
    }
}

pub fn quic_parameters(bytes: &[u8]) {
    for sender in [quic::Role::Client, quic::Role::Server] {
        if let Ok(parameters) = quic::TransportParameters::parse(bytes, sender) {
            let mut out = Vec::new();
            parameters
                .encode(&mut out)
                .expect("transport parameters as parsed");
            let again = quic::TransportParameters::parse(&out, sender);
            assert_eq!(again, Ok(parameters));
        }
    }
}

/// The bytes as what a peer sends on a control channel.
pub fn openflow(bytes: &[u8]) {
    let mut stream = bytes;
    while let Ok(Some(len)) = openflow::split(stream) {
        let Some((message, rest)) = stream.split_at_checked(len) else {
            break;
        };
        stream = rest;
        let Ok((xid, message)) = openflow::parse(message) else {
            continue;
        };
        let mut out = Vec::new();
        openflow::emit(xid, &message, &mut out).expect("a message as parsed");
        assert!(out.len() <= len || matches!(message, openflow::Message::Hello { .. }));
        assert_eq!(openflow::parse(&out), Ok((xid, message)));
    }
    let _ = openflow::parse(bytes);
}

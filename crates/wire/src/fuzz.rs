//! What every parser promises, as functions of arbitrary bytes: fuzz targets and tests call them.
//!
//! A parser does not panic; what it accepts can be emitted; and what is emitted parses to the same
//! again. They panic when the promise is broken.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::mptcp::KIND;
use crate::{EmitError, icmp, ip, tcp, udp};

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
];

const V4: (IpAddr, IpAddr) = (
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
);
const V6: (IpAddr, IpAddr) = (
    IpAddr::V6(Ipv6Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::UNSPECIFIED),
);

pub fn ipv4(bytes: &[u8]) {
    if let Ok((header, payload)) = ip::v4::parse(bytes) {
        let mut out = Vec::new();
        ip::v4::emit(&header, payload.len(), &mut out).expect("an IPv4 header as parsed");
        out.extend_from_slice(payload);
        assert_eq!(ip::v4::parse(&out), Ok((header, payload)));
    }
}

pub fn ipv6(bytes: &[u8]) {
    if let Ok((header, payload)) = ip::v6::parse(bytes) {
        let mut out = Vec::new();
        ip::v6::emit(&header, payload.len(), &mut out).expect("an IPv6 header as parsed");
        out.extend_from_slice(payload);
        assert_eq!(ip::v6::parse(&out), Ok((header, payload)));
    }
}

pub fn tcp(bytes: &[u8]) {
    let Ok((src, dst, segment, payload)) = tcp::parse(bytes) else {
        return;
    };
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

//! IP packets from and to segments.

use std::net::{IpAddr, SocketAddr};

use polypath_transport::{Codepoint, Segment, Tuple};
use polypath_wire::mptcp::{MptcpOption, dss_checksum};
use polypath_wire::{icmp, ip, tcp};

/// Hosts send with this TTL (Linux ip_default_ttl).
const TTL: u8 = 64;

/// What came in a packet.
pub(crate) enum Incoming {
    Segment {
        tuple: Tuple,
        segment: Segment,
        ecn: Codepoint,
        corrupted: bool,
    },
    /// A report that the packet of `tuple` whose segment began at `seq` was too long.
    TooBig { tuple: Tuple, seq: u32, mtu: u32 },
}

/// Reads an IP packet; nothing if it holds nothing that an endpoint would take.
pub(crate) fn parse(packet: &[u8]) -> Option<Incoming> {
    let (header, body) = ip::parse(packet).ok()?;
    let (source, destination) = header.addresses();
    if header.protocol() == ip::protocol::TCP {
        let (from, to, segment, _) = tcp::parse(body).ok()?;
        return Some(Incoming::Segment {
            tuple: Tuple {
                local: SocketAddr::new(destination, to),
                remote: SocketAddr::new(source, from),
            },
            segment,
            ecn: Codepoint::of(header.ecn()),
            corrupted: !tcp::verify_checksum(body, (source, destination)),
        });
    }
    let version = icmp::Version::of(source);
    if header.protocol() != version.protocol() {
        return None;
    }
    let (icmp::Message::TooBig { mtu }, quoted) = icmp::parse(version, body).ok()? else {
        return None;
    };
    let (inner, rest, _) = ip::parse_cut(quoted, usize::MAX).ok()?;
    let (local, remote) = inner.addresses();
    let word = |at: usize| Some(u16::from_be_bytes(rest.get(at..at + 2)?.try_into().ok()?));
    Some(Incoming::TooBig {
        tuple: Tuple {
            local: SocketAddr::new(local, word(0)?),
            remote: SocketAddr::new(remote, word(2)?),
        },
        seq: u32::from_be_bytes(rest.get(4..8)?.try_into().ok()?),
        mtu,
    })
}

/// Builds IP packets, whose payload is zeros.
#[derive(Default)]
pub(crate) struct Builder {
    identification: u16,
    transport: Vec<u8>,
}

impl Builder {
    /// A segment's packet; `dsn` is the data sequence number of its first byte. Nothing if it has more options than fit.
    pub fn build(
        &mut self,
        tuple: Tuple,
        segment: &Segment,
        dsn: Option<u64>,
        ecn: Codepoint,
    ) -> Option<Vec<u8>> {
        self.identification = self.identification.wrapping_add(1);
        let payload = vec![0; segment.payload.len as usize];
        let with_checksum = dsn.and_then(|dsn| with_dss_checksum(segment, dsn, &payload));
        let addresses = (tuple.local.ip(), tuple.remote.ip());
        let ports = (tuple.local.port(), tuple.remote.port());
        let segment = with_checksum.as_ref().unwrap_or(segment);
        self.transport.clear();
        tcp::emit(
            segment,
            ports.0,
            ports.1,
            &payload,
            addresses,
            &mut self.transport,
        )
        .ok()?;
        pad_with_nops(&mut self.transport);
        put_addresses_first(&mut self.transport);
        let header = match addresses {
            (IpAddr::V4(src), IpAddr::V4(dst)) => ip::Header::V4(ip::v4::Header {
                dscp: 0,
                ecn: ecn.bits(),
                identification: self.identification,
                dont_fragment: true,
                more_fragments: false,
                fragment_offset: 0,
                ttl: TTL,
                protocol: ip::protocol::TCP,
                src,
                dst,
            }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => ip::Header::V6(ip::v6::Header {
                dscp: 0,
                ecn: ecn.bits(),
                flow_label: 0,
                next_header: ip::protocol::TCP,
                hop_limit: TTL,
                src,
                dst,
            }),
            _ => return None,
        };
        let mut packet = Vec::new();
        ip::emit(&header, self.transport.len(), &mut packet).ok()?;
        packet.extend_from_slice(&self.transport);
        Some(packet)
    }
}

/// The segment with the DSS checksums that it has room for.
fn with_dss_checksum(segment: &Segment, dsn: u64, payload: &[u8]) -> Option<Segment> {
    let mut segment = segment.clone();
    let mut any = false;
    let mut compute = |checksum: &mut u16, subflow_seq: u32, len: u16| {
        // An infinite mapping has 0 (Linux net/mptcp/options.c).
        *checksum = if len == 0 {
            0
        } else {
            dss_checksum(dsn, subflow_seq, len, payload)
        };
        any = true;
    };
    if let Some(mapping) = segment.dss.as_mut().and_then(|dss| dss.mapping.as_mut()) {
        let (subflow_seq, len) = (mapping.subflow_seq, mapping.len);
        if let Some(checksum) = &mut mapping.checksum {
            compute(checksum, subflow_seq, len);
        }
    }
    for option in segment.rare.iter_mut().flat_map(|rare| &mut rare.mptcp) {
        if let MptcpOption::Capable(capable) = option
            && let Some((len, Some(checksum))) = &mut capable.data
        {
            compute(checksum, 1, *len);
        }
    }
    any.then_some(segment)
}

/// Pads a TCP header's options at their end as Linux does, with NOPs instead of zeros (RFC 9293 section 3.1 has both), and keeps the checksum right
/// (RFC 1624).
fn pad_with_nops(segment: &mut [u8]) {
    let end = usize::from(segment[12] >> 4) * 4;
    let mut at = tcp::MIN_HEADER_LEN;
    while at < end && segment[at] != 0 {
        at += match segment[at] {
            1 => 1,
            _ => usize::from(segment[at + 1]).max(2),
        };
    }
    let mut sum = u32::from(!u16::from_be_bytes([segment[16], segment[17]]));
    for (index, byte) in segment[at..end].iter_mut().enumerate() {
        *byte = 1;
        sum += if (at + index) % 2 == 0 { 0x100 } else { 1 };
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    segment[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Puts ADD_ADDR before DSS, as the kernels did for which the scripts were written; RFC 8684 has no order. Both begin at multiples of four bytes,
/// so that the checksum stays.
fn put_addresses_first(segment: &mut [u8]) {
    const MPTCP: u8 = 30;
    const DSS: u8 = 2;
    const ADD_ADDR: u8 = 3;
    let end = usize::from(segment[12] >> 4) * 4;
    let (mut at, mut mapping) = (tcp::MIN_HEADER_LEN, None);
    while at + 2 < end {
        let (kind, len) = (segment[at], usize::from(segment[at + 1]).max(2));
        match (kind, segment[at + 2] >> 4) {
            (1, _) => {
                at += 1;
                continue;
            }
            (MPTCP, DSS) => mapping = Some(at),
            (MPTCP, ADD_ADDR) => {
                if let Some(before) = mapping {
                    segment[before..at + len].rotate_left(at - before);
                }
                return;
            }
            _ => {}
        }
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use polypath_wire::mptcp::{DataAck, Dsn, Dss, Mapping};

    use super::*;

    /// A mapping of 22 bytes leaves two to pad.
    #[test]
    fn the_end_of_the_options_is_padded_with_nops() {
        let segment = Segment {
            dss: Some(Dss {
                data_ack: Some(DataAck::Short(7)),
                mapping: Some(Mapping {
                    dsn: Dsn::Long(9.into()),
                    subflow_seq: 1,
                    len: 3,
                    checksum: None,
                }),
                data_fin: false,
            }),
            ..Segment::default()
        };
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let tuple = Tuple {
            local: address("192.0.2.1:80"),
            remote: address("192.0.2.2:99"),
        };
        let packet = Builder::default()
            .build(tuple, &segment, None, Codepoint::NotEct)
            .unwrap();
        let transport = &packet[20..];
        assert_eq!(transport[transport.len() - 2..], [1, 1]);
        assert!(tcp::verify_checksum(
            transport,
            (tuple.local.ip(), tuple.remote.ip())
        ));
    }
}

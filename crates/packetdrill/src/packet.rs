//! IP packets from and to segments.

use std::net::{IpAddr, SocketAddr};

use polypath_transport::{Segment, Tuple};
use polypath_wire::mptcp::{MptcpOption, dss_checksum};
use polypath_wire::{icmp, ip, tcp};

/// Hosts send with this TTL (Linux ip_default_ttl).
const TTL: u8 = 64;
/// The codepoint ECT(0) (RFC 3168 section 5).
const ECT_0: u8 = 2;
const CONGESTION_EXPERIENCED: u8 = 3;

/// What came in a packet.
pub(crate) enum Incoming {
    Segment {
        tuple: Tuple,
        segment: Segment,
        congestion_experienced: bool,
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
            congestion_experienced: header.ecn() == CONGESTION_EXPERIENCED,
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
        ecn: bool,
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
        let header = match addresses {
            (IpAddr::V4(src), IpAddr::V4(dst)) => ip::Header::V4(ip::v4::Header {
                dscp: 0,
                ecn: if ecn { ECT_0 } else { 0 },
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
                ecn: if ecn { ECT_0 } else { 0 },
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

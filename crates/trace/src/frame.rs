//! Ethernet frames of packets that existed only as plain data.

use std::net::IpAddr;

use polypath_wire::mptcp::{Dss, MpCapable, MptcpOption, dss_checksum};
use polypath_wire::payload::Texts;
use polypath_wire::tcp::{Payload, Segment};
use polypath_wire::{EmitError, icmp, ip, tcp, udp};

/// EtherType of IPv4 and IPv6 (IANA, IEEE 802 Numbers).
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Where in a header without payload a corrupted packet differs: in the low byte of TCP's window,
/// UDP's source port, the echo's sequence number.
const CORRUPTED_TCP: usize = 15;
const CORRUPTED_UDP: usize = 1;
const CORRUPTED_ICMP: usize = 7;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// A locally administered unicast address that ends in `number`.
    pub fn local(number: u32) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        Self([0x02, 0x00, a, b, c, d])
    }
}

/// What a frame's Ethernet and IP headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub src_mac: Mac,
    pub dst_mac: Mac,
    pub src: IpAddr,
    pub dst: IpAddr,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IPv4 identification; IPv6 has none.
    pub identification: u16,
    /// The two bits of RFC 3168.
    pub ecn: u8,
    /// One byte of the frame is wrong: the payload's first, or one of the transport's header. The
    /// checksum is the right packet's.
    pub corrupted: bool,
}

/// Builds frames, the payload filled in from [`polypath_wire::payload`].
///
/// Each method appends a frame to `out`, and nothing when it fails. Frames have no minimum length
/// and no frame check sequence, as a capture on the sending host shows them. IPv4 packets have
/// DF set.
#[derive(Debug, Default)]
pub struct FrameBuilder {
    /// Payload bytes that are given.
    pub texts: Texts,
    payload: Vec<u8>,
    transport: Vec<u8>,
}

impl FrameBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// A TCP segment, `ports` source first, whose payload is a stretch of `stream`.
    ///
    /// `dsn` is the 64-bit data sequence number of the first byte that the segment's DSS maps (or
    /// that its MP_CAPABLE carries). With it, a checksum that the option has room for is computed;
    /// without it, it is written as it stands. The mapping must begin with the segment's payload.
    ///
    /// # Errors
    /// As [`tcp::emit`] and [`ip::emit`].
    pub fn tcp(
        &mut self,
        envelope: &Envelope,
        ports: (u16, u16),
        segment: &Segment,
        stream: u64,
        dsn: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let with_checksum = dsn.and_then(|dsn| self.with_dss_checksum(segment, stream, dsn));
        let segment = with_checksum.as_ref().unwrap_or(segment);
        self.fill(stream, segment.payload);
        self.transport.clear();
        let addresses = (envelope.src, envelope.dst);
        tcp::emit(
            segment,
            ports.0,
            ports.1,
            &self.payload,
            addresses,
            &mut self.transport,
        )?;
        let corrupted = (CORRUPTED_TCP, self.payload.len());
        self.frame(envelope, ip::protocol::TCP, corrupted, out)
    }

    /// A UDP datagram, `ports` source first, whose payload is a stretch of `stream`.
    ///
    /// # Errors
    /// As [`udp::emit`] and [`ip::emit`].
    pub fn udp(
        &mut self,
        envelope: &Envelope,
        ports: (u16, u16),
        stream: u64,
        payload: Payload,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        self.fill(stream, payload);
        self.transport.clear();
        let addresses = (envelope.src, envelope.dst);
        udp::emit(
            ports.0,
            ports.1,
            &self.payload,
            addresses,
            &mut self.transport,
        )?;
        let corrupted = (CORRUPTED_UDP, self.payload.len());
        self.frame(envelope, ip::protocol::UDP, corrupted, out)
    }

    /// A UDP datagram of these bytes.
    ///
    /// # Errors
    /// As [`FrameBuilder::udp`].
    pub fn udp_bytes(
        &mut self,
        envelope: &Envelope,
        ports: (u16, u16),
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        self.transport.clear();
        let addresses = (envelope.src, envelope.dst);
        udp::emit(ports.0, ports.1, bytes, addresses, &mut self.transport)?;
        let corrupted = (CORRUPTED_UDP, bytes.len());
        self.frame(envelope, ip::protocol::UDP, corrupted, out)
    }

    /// An echo request or reply whose data is a stretch of `stream`.
    ///
    /// # Errors
    /// As [`icmp::emit`] and [`ip::emit`].
    pub fn icmp_echo(
        &mut self,
        envelope: &Envelope,
        echo: icmp::Echo,
        stream: u64,
        data: Payload,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        self.fill(stream, data);
        self.transport.clear();
        let addresses = (envelope.src, envelope.dst);
        icmp::emit(echo, &self.payload, addresses, &mut self.transport)?;
        let protocol = icmp::Version::of(envelope.src).protocol();
        let corrupted = (CORRUPTED_ICMP, self.payload.len());
        self.frame(envelope, protocol, corrupted, out)
    }

    /// The report that `packet`, an IP packet of which as much is quoted as the report has room for, is longer than `mtu`.
    ///
    /// # Errors
    /// As [`icmp::emit`] and [`ip::emit`].
    pub fn icmp_too_big(
        &mut self,
        envelope: &Envelope,
        mtu: u32,
        packet: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let quoted = packet.len().min(too_big_quote(envelope.src) as usize);
        self.payload.clear();
        self.payload.extend_from_slice(&packet[..quoted]);
        self.transport.clear();
        let addresses = (envelope.src, envelope.dst);
        let message = icmp::Message::TooBig { mtu };
        icmp::emit(message, &self.payload, addresses, &mut self.transport)?;
        let protocol = icmp::Version::of(envelope.src).protocol();
        let corrupted = (CORRUPTED_ICMP, self.payload.len());
        self.frame(envelope, protocol, corrupted, out)
    }

    fn fill(&mut self, stream: u64, stretch: Payload) {
        self.payload.resize(stretch.len as usize, 0);
        self.texts.fill(stream, stretch.offset, &mut self.payload);
    }

    /// The segment with its DSS checksums computed, when it has any.
    fn with_dss_checksum(&mut self, segment: &Segment, stream: u64, dsn: u64) -> Option<Segment> {
        let in_dss = segment.dss.and_then(|dss| dss.mapping?.checksum).is_some();
        let in_capable = segment.mptcp().iter().any(|option| {
            matches!(option, MptcpOption::Capable(capable) if matches!(capable.data, Some((_, Some(_)))))
        });
        if !in_dss && !in_capable {
            return None;
        }
        let mut segment = segment.clone();
        let offset = segment.payload.offset;
        if let Some(Dss {
            mapping: Some(mapping),
            data_fin,
            ..
        }) = &mut segment.dss
        {
            let bytes = mapping.len.saturating_sub(u16::from(*data_fin));
            let (subflow_seq, len) = (mapping.subflow_seq, mapping.len);
            if let Some(checksum) = &mut mapping.checksum {
                *checksum = self.dss_checksum(stream, offset, bytes, (dsn, subflow_seq, len));
            }
        }
        for option in segment.rare.iter_mut().flat_map(|rare| &mut rare.mptcp) {
            if let MptcpOption::Capable(MpCapable {
                data: Some((len, Some(checksum))),
                ..
            }) = option
            {
                *checksum = self.dss_checksum(stream, offset, *len, (dsn, 1, *len));
            }
        }
        Some(segment)
    }

    /// The checksum of a mapping (data sequence number, subflow sequence number, length) of `bytes`
    /// bytes of the stream. An infinite mapping, of length 0, has 0 (net/mptcp/options.c).
    fn dss_checksum(
        &mut self,
        stream: u64,
        offset: u64,
        bytes: u16,
        (dsn, subflow_seq, len): (u64, u32, u16),
    ) -> u16 {
        if len == 0 {
            return 0;
        }
        self.fill(
            stream,
            Payload {
                offset,
                len: bytes.into(),
            },
        );
        dss_checksum(dsn, subflow_seq, len, &self.payload)
    }

    /// Puts the transport's bytes into an IP packet and the packet into a frame. What is corrupted is the first byte of
    /// so many of payload, and where there is none the byte of the header at that place.
    fn frame(
        &mut self,
        envelope: &Envelope,
        protocol: u8,
        (in_header, payload): (usize, usize),
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let (header, ethertype) = ip_header(envelope, protocol)?;
        if envelope.corrupted {
            let at = match payload {
                0 => in_header,
                len => self.transport.len() - len,
            };
            self.transport[at] ^= 0xff;
        }
        let start = out.len();
        out.extend(envelope.dst_mac.0);
        out.extend(envelope.src_mac.0);
        out.extend(ethertype.to_be_bytes());
        if let Err(error) = ip::emit(&header, self.transport.len(), out) {
            out.truncate(start);
            return Err(error);
        }
        out.extend_from_slice(&self.transport);
        Ok(())
    }
}

/// Bytes of a packet that a report of its length from this address quotes at most.
pub fn too_big_quote(source: IpAddr) -> u32 {
    let ip = if source.is_ipv4() { 20 } else { 40 };
    icmp::Version::of(source).longest_error() - ip - icmp::HEADER_LEN as u32
}

fn ip_header(envelope: &Envelope, protocol: u8) -> Result<(ip::Header, u16), EmitError> {
    match (envelope.src, envelope.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let header = ip::v4::Header {
                src,
                dst,
                protocol,
                ttl: envelope.ttl,
                dscp: 0,
                ecn: envelope.ecn,
                identification: envelope.identification,
                dont_fragment: true,
                more_fragments: false,
                fragment_offset: 0,
            };
            Ok((ip::Header::V4(header), ETHERTYPE_IPV4))
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let header = ip::v6::Header {
                src,
                dst,
                next_header: protocol,
                hop_limit: envelope.ttl,
                dscp: 0,
                ecn: envelope.ecn,
                flow_label: 0,
            };
            Ok((ip::Header::V6(header), ETHERTYPE_IPV6))
        }
        _ => Err(EmitError::AddressFamilies),
    }
}

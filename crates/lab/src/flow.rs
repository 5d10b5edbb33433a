//! Packets as the network carries them, and the flows that they belong to.

use std::net::{IpAddr, SocketAddr};

use polypath_net::{ChannelId, Ecn, RouteId, random};
use polypath_transport::quic::bytes::destination;
use polypath_transport::{Codepoint, Purpose, Segment};
use polypath_wire::quic::{ConnectionId, Datagram};

/// What a packet carries.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// Counts the packets of its flow: IPv4's identification.
    pub identification: u16,
    /// A middlebox changed its payload and set its checksum right.
    pub altered: bool,
    pub purpose: Purpose,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Tcp(Segment),
    Quic(Sealed),
    /// A datagram that was sent at this time.
    Udp {
        sequence: u64,
        sent_at: u64,
        len: u32,
    },
    /// An echo request or reply.
    Echo {
        reply: bool,
        sequence: u16,
        sent_at: u64,
        len: u32,
    },
    /// A router's report of a packet that was longer than the next link takes.
    TooBig {
        mtu: u32,
        /// Number of the packet that it is about among those quoted.
        about: u32,
    },
    /// An Ethernet frame of a controller's own, which no host is meant by: its number among those in `Captures::own`.
    Frame(u32),
}

/// A datagram of QUIC.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    /// Absent where one of the ends is a stack by others, which takes bytes.
    pub datagram: Option<Datagram>,
    /// It as it is on the wire, where somebody captures or there is no `datagram`.
    pub bytes: Vec<u8>,
}

impl Sealed {
    /// What its first packet is addressed to.
    pub fn destination(&self) -> Option<ConnectionId> {
        match &self.datagram {
            Some(datagram) => datagram.packets.first().map(|it| it.header.destination),
            None => destination(&self.bytes),
        }
    }

    /// UDP payload bytes.
    pub fn len(&self) -> u32 {
        match &self.datagram {
            Some(datagram) => datagram.len(),
            None => self.bytes.len() as u32,
        }
    }
}

/// A packet that a report is about, as it reached the router.
#[derive(Clone, Debug)]
pub(crate) struct Quoted {
    pub flow: u32,
    /// Channels that it had crossed.
    pub hop: u16,
    pub ecn: Ecn,
    pub body: Body,
    /// Bytes of it in the report.
    pub shown: u32,
}

/// One direction of a conversation between two addresses and ports, as far as the next middlebox.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Routers that it is steered through, by address.
    pub gateways: Vec<IpAddr>,
    /// Absent: there is no link to cross. Packets then reach the receiver at once if they are `here`, and go nowhere if not.
    pub route: Option<RouteId>,
    pub here: bool,
    /// In place of `route` where the first link's queue is the sending host's.
    pub queued_route: Option<RouteId>,
    /// That link, where packets count as the sender's own until they leave the queue.
    pub held_by: Option<ChannelId>,
    /// Channels crossed before, and those to come behind the middlebox that receives it.
    pub crossed: u16,
    pub rest: Vec<ChannelId>,
    /// The node that it leads to.
    pub receiver_node: u32,
    /// Who sends it.
    pub sender: End,
    /// Who receives it, once known.
    pub receiver: Option<End>,
    /// Names the payload's bytes (see `polypath_wire::payload`).
    pub stream: u64,
    /// The 64-bit data sequence number of stream offset 0, for DSS checksums in captures.
    pub first_dsn: Option<u64>,
    pub sent: u16,
    /// ICMP's identifier.
    pub identifier: u16,
}

impl Flow {
    /// A flow that leads nowhere yet.
    pub fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        Self {
            source,
            destination,
            gateways: Vec::new(),
            route: None,
            here: false,
            queued_route: None,
            held_by: None,
            crossed: 0,
            rest: Vec::new(),
            receiver_node: 0,
            sender: End::Datagrams {
                application: u32::MAX,
            },
            receiver: None,
            stream: 0,
            first_dsn: None,
            sent: 0,
            identifier: source.port(),
        }
    }

    /// What equal-cost multipath hashes: addresses and ports.
    pub fn label(&self) -> u64 {
        label(self.source, self.destination)
    }
}

/// What equal-cost multipath hashes: addresses and ports.
pub fn label(source: SocketAddr, destination: SocketAddr) -> u64 {
    [source, destination].iter().fold(0, |label, end| {
        let address = match end.ip() {
            IpAddr::V4(v4) => u64::from(u32::from(v4)),
            IpAddr::V6(v6) => {
                let bits = u128::from(v6);
                (bits >> 64) as u64 ^ bits as u64
            }
        };
        random::mix(label ^ address).wrapping_add(u64::from(end.port()))
    })
}

/// The end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Subflow {
        endpoint: u32,
        subflow: u32,
    },
    Datagrams {
        application: u32,
    },
    /// A connection of a listener's that no application has.
    Extra {
        index: u32,
    },
    /// The middleboxes of a link, on the way from its first end to its second (`forward`) or back.
    Middlebox {
        stand: u32,
        forward: bool,
    },
    /// The entry of a tunnel, on the way from its client to its server or back.
    Tunnel {
        tunnel: u32,
        to_server: bool,
    },
}

impl End {
    /// Who answers a sender: endpoints come in pairs, the client's first.
    pub fn opposite(self) -> Self {
        match self {
            Self::Subflow { endpoint, subflow } => Self::Subflow {
                endpoint: endpoint ^ 1,
                subflow,
            },
            other => other,
        }
    }

    pub fn endpoint(self) -> Option<u32> {
        match self {
            Self::Subflow { endpoint, .. } => Some(endpoint),
            _ => None,
        }
    }

    /// It, or the other one of two that change places.
    pub fn exchanged(self, one: Self, other: Self) -> Self {
        match self {
            end if end == one => other,
            end if end == other => one,
            end => end,
        }
    }
}

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// IP's protocol number of what a packet carries.
pub(crate) fn protocol(flow: &Flow, content: &Content) -> u8 {
    match content {
        Content::Tcp(_) => TCP,
        Content::Quic(_) | Content::Udp { .. } => UDP,
        Content::Echo { .. } | Content::TooBig { .. } if flow.source.is_ipv4() => 1,
        Content::Echo { .. } | Content::TooBig { .. } => 58,
        Content::Frame(_) => 0,
    }
}

/// UDP's header and ICMP's echo header alike.
pub(crate) const DATAGRAM_HEADER: u32 = 8;

/// IP header without options or extension headers.
pub(crate) fn ip_header_len(address: SocketAddr) -> u32 {
    if address.is_ipv4() { 20 } else { 40 }
}

/// The ECN field as the transport names it.
pub(crate) fn codepoint(ecn: Ecn) -> Codepoint {
    match ecn {
        Ecn::NotEct => Codepoint::NotEct,
        Ecn::Ect0 => Codepoint::Ect0,
        Ecn::Ect1 => Codepoint::Ect1,
        Ecn::Ce => Codepoint::Ce,
    }
}

/// The ECN field as the network names it.
#[inline(always)]
pub(crate) fn ecn(field: Codepoint) -> Ecn {
    match field {
        Codepoint::NotEct => Ecn::NotEct,
        Codepoint::Ect0 => Ecn::Ect0,
        Codepoint::Ect1 => Ecn::Ect1,
        Codepoint::Ce => Ecn::Ce,
    }
}

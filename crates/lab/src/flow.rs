//! Packets as the network carries them, and the flows that they belong to.

use std::net::{IpAddr, SocketAddr};

use polypath_net::{RouteId, random};
use polypath_transport::Segment;

/// What a packet carries.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// Counts the packets of its flow: IPv4's identification.
    pub identification: u16,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Tcp(Segment),
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
}

/// One direction of a conversation between two addresses and ports.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Absent: there is no route, and packets go nowhere.
    pub route: Option<RouteId>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Subflow { endpoint: u32, subflow: u32 },
    Datagrams { application: u32 },
}

/// IP header without options or extension headers.
pub(crate) fn ip_header_len(address: SocketAddr) -> u32 {
    if address.is_ipv4() { 20 } else { 40 }
}

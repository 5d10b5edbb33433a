//! The simulated network with real packets: frames come from hosts' interfaces and go to them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use polypath_lab::plan::{self, NodeKind, Plan};
use polypath_lab::{Built, build, label};
use polypath_net::{ChannelId, Ecn, InterfaceId, Nanos, Network, NodeId, Output, RouteId};
use polypath_wire::{Checksum, ip};
use serde::Deserialize;

use crate::LiveError;

const ETHERNET_HEADER: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const CONGESTION_EXPERIENCED: u8 = 3;

/// An interface of a host that the network is attached to.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Index into the plan's nodes.
    pub node: usize,
    /// Index into the node's interfaces.
    pub interface: usize,
    /// The interface's own Ethernet address.
    pub mac: [u8; 6],
}

/// What became of packets besides what the links did to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub carried: u64,
    /// Not IP to a host of the plan, or sent by another interface than the plan's routes say.
    pub ignored: u64,
    /// Their TTL ended at a router.
    pub expired: u64,
    /// How long after its time in the simulated network the latest packet was handed over.
    pub latest: Nanos,
}

/// A frame for a port: its place in the list of ports, and the time at which it was due.
pub struct Delivery {
    pub port: usize,
    pub due: Nanos,
    pub frame: Vec<u8>,
}

/// The network of a plan. Time is that of the plan: 0 is when the run begins.
pub struct Carrier {
    network: Network<Arc<[u8]>>,
    channels: Vec<(ChannelId, ChannelId)>,
    ports: Vec<Port>,
    /// The interface of each port, by its number over all nodes.
    interfaces: Vec<InterfaceId>,
    routers: Vec<bool>,
    /// A flow keeps its way.
    routes: BTreeMap<(usize, SocketAddr, SocketAddr), Option<RouteId>>,
    tally: Tally,
}

impl Carrier {
    /// # Errors
    /// What the plan says that no network can be, or a port that it does not have.
    pub fn new(plan: &Plan, ports: Vec<Port>) -> Result<Self, LiveError> {
        let Built { network, channels } = build(plan)?;
        let mut first = Vec::new();
        let mut count = 0;
        for node in &plan.nodes {
            first.push(count);
            count += node.interfaces.len();
        }
        let interfaces = ports.iter().map(|port| {
            let known = plan
                .nodes
                .get(port.node)
                .is_some_and(|node| port.interface < node.interfaces.len());
            known
                .then(|| InterfaceId((first[port.node] + port.interface) as u32))
                .ok_or(LiveError::Port(port.node, port.interface))
        });
        let router = |node: &plan::Node| node.kind == NodeKind::Router;
        Ok(Self {
            network,
            channels,
            interfaces: interfaces.collect::<Result<_, _>>()?,
            ports,
            routers: plan.nodes.iter().map(router).collect(),
            routes: BTreeMap::new(),
            tally: Tally::default(),
        })
    }

    /// Brings the network up to a time, at which [`Carrier::take`] puts frames on it.
    pub fn step(&mut self, now: Nanos) {
        self.network.step_until(now, &mut ());
    }

    /// When the network has something to do next.
    pub fn next_time(&mut self) -> Option<Nanos> {
        self.network.next_event_time()
    }

    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Takes a frame that a port's host sent.
    pub fn take(&mut self, port: usize, frame: &[u8]) {
        let injected = self.inject(port, frame);
        self.tally.ignored += u64::from(injected.is_none());
    }

    fn inject(&mut self, port: usize, frame: &[u8]) -> Option<()> {
        let (ethernet, packet) = frame.split_at_checked(ETHERNET_HEADER)?;
        if ethernet[12..] != IPV4 && ethernet[12..] != IPV6 {
            return None;
        }
        let (header, body) = ip::parse(packet).ok()?;
        let (source, destination) = header.addresses();
        let (from, to) = ports_of(header.protocol(), body);
        let ends = (
            SocketAddr::new(source, from),
            SocketAddr::new(destination, to),
        );
        let route = self.route(port, ends)?;
        let ecn = match header.ecn() {
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            CONGESTION_EXPERIENCED => Ecn::Ce,
            _ => Ecn::NotEct,
        };
        let len = packet.len().min(packet_len(packet)?) as u32;
        let body = Arc::from(&packet[..len as usize]);
        self.network
            .inject(route, len, port as u32, ecn, body, &mut ());
        Some(())
    }

    fn route(
        &mut self,
        port: usize,
        (source, destination): (SocketAddr, SocketAddr),
    ) -> Option<RouteId> {
        let key = (port, source, destination);
        if let Some(known) = self.routes.get(&key) {
            return *known;
        }
        let node = NodeId(self.ports[port].node as u32);
        let found = self
            .network
            .route(
                node,
                source.ip(),
                destination.ip(),
                label(source, destination),
            )
            .ok()
            .filter(|&route| {
                let topology = self.network.topology();
                let first = topology.path(route).next();
                first.is_some() && first == topology.channel_of(self.interfaces[port])
            });
        self.routes.insert(key, found);
        found
    }

    /// The frames that have arrived by now.
    pub fn deliveries(&mut self) -> Vec<Delivery> {
        let arrived: Vec<_> = self.network.drain_egress().collect();
        let mut found = Vec::new();
        for (due, output) in arrived {
            let Output::Delivered {
                interface, packet, ..
            } = output
            else {
                continue;
            };
            let Some(port) = self.interfaces.iter().position(|&one| one == interface) else {
                continue;
            };
            let topology = self.network.topology();
            let routers = topology
                .path(packet.route)
                .filter_map(|channel| topology.ends(channel))
                .filter_map(|(_, to)| topology.node_of(to).ok())
                .filter(|node| self.routers[node.index()])
                .count();
            let congested = packet.ecn == Ecn::Ce;
            let frame = self.frame(port, &packet.body);
            match arrive(frame, routers, congested, packet.corrupted) {
                Some(frame) => {
                    self.tally.carried += 1;
                    found.push(Delivery { port, due, frame });
                }
                None => self.tally.expired += 1,
            }
        }
        found
    }

    fn frame(&self, port: usize, packet: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(ETHERNET_HEADER + packet.len());
        frame.extend(self.ports[port].mac);
        // who the last router is does not matter to a host: a locally administered address that no interface has
        frame.extend([2, 1, 0, 0, 0, 0]);
        frame.extend(if packet[0] >> 4 == 4 { IPV4 } else { IPV6 });
        frame.extend(packet);
        frame
    }

    /// Notes that a delivery due then is handed over now.
    pub fn handed_over(&mut self, due: Nanos, now: Nanos) {
        self.tally.latest = self.tally.latest.max(now.saturating_sub(due));
    }

    /// A line for each direction of each link, as the guest's `links` program writes them, and the time that it has sent for.
    pub fn sample(&mut self, now: Nanos) -> String {
        let mut lines = String::new();
        for (link, (forward, backward)) in self.channels.clone().into_iter().enumerate() {
            for (name, channel) in [("a", backward), ("b", forward)] {
                let stats = self.network.stats(channel);
                let (packets, bytes) = self.network.backlog(channel);
                let _ = writeln!(
                    lines,
                    "Q {now} {name}{link} {} {} {} {} {packets} {bytes} {}",
                    stats.sent_bytes,
                    stats.sent_packets,
                    stats.lost_packets + stats.dropped_packets,
                    stats.dropped_packets,
                    stats.busy,
                );
            }
        }
        lines
    }
}

/// Ports of TCP and UDP, which begin both headers; 0 of other protocols.
fn ports_of(protocol: u8, body: &[u8]) -> (u16, u16) {
    match (protocol, body) {
        (ip::protocol::TCP | ip::protocol::UDP, [a, b, c, d, ..]) => {
            (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))
        }
        _ => (0, 0),
    }
}

/// The length that the IP header tells: a frame may be padded.
fn packet_len(packet: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        Some(usize::from(u16::from_be_bytes([
            *packet.get(at)?,
            *packet.get(at + 1)?,
        ])))
    };
    if packet[0] >> 4 == 4 {
        word(2)
    } else {
        Some(word(4)? + 40)
    }
}

/// What the way did to the packet in a frame: routers took from its TTL (RFC 1812 section 5.3.1, RFC 8200 section 3), a queue marked it (RFC
/// 3168), a link spoiled it. None: it came to the end of its TTL.
fn arrive(mut frame: Vec<u8>, routers: usize, congested: bool, corrupted: bool) -> Option<Vec<u8>> {
    let packet = &mut frame[ETHERNET_HEADER..];
    let four = packet[0] >> 4 == 4;
    let ttl = if four { 8 } else { 7 };
    packet[ttl] = packet[ttl].checked_sub(u8::try_from(routers).ok()?)?;
    if packet[ttl] == 0 {
        return None;
    }
    if congested && four {
        packet[1] |= CONGESTION_EXPERIENCED;
    } else if congested {
        packet[1] |= CONGESTION_EXPERIENCED << 4;
    }
    if four {
        let length = usize::from(packet[0] & 0x0f) * 4;
        packet[10..12].fill(0);
        let mut sum = Checksum::new();
        sum.add(&packet[..length]);
        let sum = sum.finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    if corrupted && let Some(last) = packet.last_mut() {
        *last ^= 1;
    }
    Some(frame)
}

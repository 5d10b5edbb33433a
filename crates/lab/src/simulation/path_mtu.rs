//! Packets that are longer than a link's MTU: the router before it tells the sender (RFC 1191 section 4, RFC 4443 section 3.2), whose host
//! remembers what it was told of a destination (Linux's route exceptions, which last ten minutes there and for the run here).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use polypath_net::{ChannelId, Ecn, NodeId, Packet};
use polypath_trace::frame::too_big_quote;
use polypath_transport::Purpose;
use polypath_wire::quic::ConnectionId;

use super::Simulation;
use crate::carrier::Carrier;
use crate::flow::{Body, Content, End, Flow, Quoted, ip_header_len};
use crate::plan::Plan;
use crate::quic::Quic;

/// ICMP's header, version 4 or 6.
const ICMP_HEADER: u32 = 8;

/// What routers without an IPv4 address answer from (RFC 7600 section 4.8, Linux `icmp_send`).
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

impl Simulation {
    /// A packet was dropped before a channel whose MTU it exceeds.
    #[cold]
    pub(super) fn on_refused(&mut self, channel: ChannelId, packet: Packet<Body>) {
        let Some(link) = self
            .channels
            .iter()
            .position(|&(forward, backward)| forward == channel || backward == channel)
        else {
            return;
        };
        let settings = &self.plan.links[link];
        let (from, side) = if self.channels[link].0 == channel {
            (settings.a, &settings.forward)
        } else {
            (settings.b, &settings.backward)
        };
        let (node, mtu) = (from.node, side.mtu.unwrap_or(u32::MAX));
        let answers = side.icmp
            && self.plan.nodes[node].routes()
            && self.control.is_none()
            && !matches!(packet.body.content, Content::TooBig { .. });
        let len = packet.len;
        let report = answers
            .then(|| self.report_flow(node, channel, packet.flow))
            .flatten();
        let told = if report.is_some() { "told" } else { "not told" };
        self.recorder.event(
            self.network.now(),
            "packet-too-big",
            "",
            Some(link as u32),
            format!("{len} bytes before {mtu}, sender {told}"),
        );
        if let Some(flow) = report {
            self.report(flow, mtu, packet);
        }
    }

    fn report(&mut self, flow: u32, mtu: u32, packet: Packet<Body>) {
        let state = &mut self.captures.flows[flow as usize];
        state.sent = state.sent.wrapping_add(1);
        let Flow {
            source,
            route,
            here,
            ..
        } = *state;
        if route.is_none() && !here {
            return;
        }
        let quoted = packet.len.min(too_big_quote(source.ip()));
        let body = Body {
            identification: state.sent,
            altered: false,
            purpose: Purpose::Control,
            content: Content::TooBig {
                mtu,
                about: self.captures.quoted.len() as u32,
            },
        };
        self.captures.quoted.push(Quoted {
            flow: packet.flow,
            hop: packet.hop,
            ecn: packet.ecn,
            body: packet.body,
            shown: quoted,
        });
        let len = ip_header_len(source) + ICMP_HEADER + quoted;
        self.dispatch(route, len, flow, Ecn::NotEct, body);
    }

    /// The flow of a router's reports to the sender of `about`, if there is a way back.
    fn report_flow(&mut self, node: usize, channel: ChannelId, about: u32) -> Option<u32> {
        let key = (channel, about);
        if let Some(&known) = self.reports.get(&key) {
            return known;
        }
        let destination = self.captures.flows[about as usize].source;
        let flow = self.way_back(node, channel, destination).map(|flow| {
            self.captures.flows.push(flow);
            (self.captures.flows.len() - 1) as u32
        });
        self.reports.insert(key, flow);
        flow
    }

    /// The flow of reports about what `channel` did not take. Middleboxes that stand before it saw the packet, so that they see the report.
    fn way_back(&mut self, node: usize, channel: ChannelId, sender: SocketAddr) -> Option<Flow> {
        let destination = sender.ip();
        let own = |interface: &crate::plan::Interface| {
            let mut addresses = interface.addresses.iter();
            addresses
                .find(|address| address.is_ipv4() == destination.is_ipv4())
                .copied()
        };
        let interfaces = &self.plan.nodes[node].interfaces;
        let any = interfaces
            .iter()
            .find_map(own)
            .unwrap_or_else(|| nameless(node, destination));
        let mut flow = Flow {
            receiver_node: self.receiver_node(destination),
            ..Flow::new((any, 0).into(), (destination, 0).into())
        };
        let path = self.path(NodeId(node as u32), &flow)?;
        let pairs = self.channels.iter().zip(&self.plan.links);
        let leaves = path.first().and_then(|&first| {
            pairs.clone().find_map(|(pair, link)| match first {
                first if first == pair.0 => Some(link.a),
                first if first == pair.1 => Some(link.b),
                _ => None,
            })
        });
        // A router's report bears the address of the interface that it leaves by.
        let interfaces = &self.plan.nodes[node].interfaces;
        if let Some(source) = leaves.and_then(|end| own(&interfaces[end.interface])) {
            flow.source.set_ip(source);
        }
        let forward = pairs.into_iter().any(|(pair, _)| pair.0 == channel);
        match self.stand_before(channel) {
            Some(stand) => {
                flow.here = true;
                flow.rest = path;
                flow.receiver = Some(End::Middlebox {
                    stand: stand as u32,
                    forward: !forward,
                });
            }
            None => self.lay(&mut flow, &path, None),
        }
        Some(flow)
    }

    /// A host hears that a packet of its own was too long.
    #[cold]
    pub(super) fn on_too_big(&mut self, packet: &Packet<Body>) {
        let Content::TooBig { mtu, about } = &packet.body.content else {
            return;
        };
        let Some(about) = self.captures.quoted.get(*about as usize) else {
            return;
        };
        if packet.corrupted {
            return;
        }
        let node = self.captures.flows[packet.flow as usize].receiver_node as usize;
        let Flow {
            source,
            destination,
            ..
        } = self.captures.flows[about.flow as usize];
        let known = self
            .path_mtus
            .entry((node, source.ip(), destination.ip()))
            .or_insert(*mtu);
        *known = (*known).min(*mtu);
        if let Content::Quic(sealed) = &about.body.content {
            let (first, len) = (sealed.destination(), sealed.len());
            return self.tell_quic_too_big(about.flow, first, len, *mtu);
        }
        let end = self.demultiplexer.get(node, source, destination);
        let (Content::Tcp(segment), Some(End::Subflow { endpoint, subflow })) =
            (&about.body.content, end)
        else {
            return;
        };
        let now = self.network.now();
        if let Some(connection) = self.endpoints[endpoint as usize].tcp_mut() {
            connection.on_packet_too_big(subflow as usize, segment.seq, *mtu, now);
        }
        self.follow_up(endpoint as usize);
    }

    /// As [`Simulation::on_too_big`], about a datagram of QUIC on a flow. Stacks by others ignore it.
    fn tell_quic_too_big(&mut self, flow: u32, first: Option<ConnectionId>, len: u32, mtu: u32) {
        let sender = self.captures.flows[flow as usize].sender.endpoint();
        let (Some(index), Some(first)) = (sender.map(|index| index as usize), first) else {
            return;
        };
        let now = self.network.now();
        let endpoint = &mut self.endpoints[index];
        let lane = endpoint.flows.iter().position(|&known| known == flow);
        let connection = endpoint.connection.as_mut().and_then(Carrier::quic_mut);
        if let (Some(lane), Some(own)) = (lane, connection.and_then(Quic::own_mut)) {
            own.on_packet_too_big(lane, &first, len, mtu, now);
            self.follow_up(index);
        }
    }

    /// A new subflow begins with what its host knows of the path.
    pub(super) fn recall_mtu(&mut self, endpoint: usize, subflow: usize) {
        let node = self.endpoints[endpoint].node;
        let Some(connection) = self.endpoints[endpoint].tcp_mut() else {
            return;
        };
        let tuple = connection.subflows()[subflow].tuple;
        let key = (node, tuple.local.ip(), tuple.remote.ip());
        if let Some(&mtu) = self.path_mtus.get(&key) {
            connection.limit_mtu(subflow, mtu);
        }
    }
}

/// By node the MTUs of its interfaces on links that have one, by address.
pub(super) fn interface_mtus(plan: &Plan) -> Vec<Vec<(IpAddr, u32)>> {
    let mut found = vec![Vec::new(); plan.nodes.len()];
    for link in &plan.links {
        for (end, side) in [(link.a, &link.forward), (link.b, &link.backward)] {
            if let Some(mtu) = side.mtu {
                let interface = &plan.nodes[end.node].interfaces[end.interface];
                let addresses = interface.addresses.iter();
                found[end.node].extend(addresses.map(|&address| (address, mtu)));
            }
        }
    }
    found
}

/// What a router without an address of the family answers from: in IPv6 one of the discard prefix (RFC 6666), as no router forwards what
/// has a link-local source (RFC 4291 section 2.5.6).
fn nameless(node: usize, destination: IpAddr) -> IpAddr {
    match destination {
        IpAddr::V4(_) => DUMMY.into(),
        IpAddr::V6(_) => Ipv6Addr::from(0x0100 << 112 | (node as u128 + 1)).into(),
    }
}

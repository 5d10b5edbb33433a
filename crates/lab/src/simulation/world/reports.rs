//! Routers' reports of packets that are longer than the next link's MTU (RFC 1191 section 4, RFC 4443 section 3.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use polypath_net::{ChannelId, Ecn, NodeId, Packet};
use polypath_trace::frame::too_big_quote;
use polypath_transport::Purpose;

use super::World;
use super::middleboxes::Behind;
use crate::flow::{Body, Content, End, Flow, Quoted, ip_header_len};

/// ICMP's header, version 4 or 6.
const ICMP_HEADER: u32 = 8;

/// What routers without an IPv4 address answer from (RFC 7600 section 4.8, Linux `icmp_send`).
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

impl World {
    /// A packet was dropped before a channel whose MTU it exceeds.
    #[cold]
    pub fn on_refused(&mut self, channel: ChannelId, packet: Packet<Body>) {
        let Some(link) = self
            .net
            .channels
            .iter()
            .position(|&(forward, backward)| forward == channel || backward == channel)
        else {
            return;
        };
        let settings = &self.plan.links[link];
        let side = if self.net.channels[link].0 == channel {
            &settings.forward
        } else {
            &settings.backward
        };
        let mtu = side.mtu.unwrap_or(u32::MAX);
        self.refuse(channel, link, mtu, packet);
    }

    /// As [`Self::on_refused`], where the channel takes packets of `mtu` bytes now.
    #[cold]
    pub fn refuse(&mut self, channel: ChannelId, link: usize, mtu: u32, packet: Packet<Body>) {
        let settings = &self.plan.links[link];
        let (from, side) = if self.net.channels[link].0 == channel {
            (settings.a, &settings.forward)
        } else {
            (settings.b, &settings.backward)
        };
        let node = from.node;
        let answers = side.icmp
            && self.plan.nodes[node].routes()
            && self.switching.is_none()
            && !matches!(packet.body.content, Content::TooBig { .. });
        let len = packet.len;
        let report = answers
            .then(|| self.report_flow(node, channel, packet.flow))
            .flatten();
        let told = if report.is_some() { "told" } else { "not told" };
        self.recorder.event(
            self.net.network.now(),
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
        let state = &mut self.net.captures.flows[flow as usize];
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
                about: self.net.captures.quoted.len() as u32,
            },
        };
        self.net.captures.quoted.push(Quoted {
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
        let destination = self.net.captures.flows[about as usize].source;
        let flow = self.way_back(node, channel, destination).map(|flow| {
            self.net.captures.flows.push(flow);
            (self.net.captures.flows.len() - 1) as u32
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
            receiver_node: self.net.receiver_node(destination),
            ..Flow::new((any, 0).into(), (destination, 0).into())
        };
        let path = match self.path(NodeId(node as u32), &flow) {
            Some(path) => path,
            None => {
                // A host that forwards sends by the interface of the source; the one that it takes by itself leads there (Linux: icmp_route_lookup).
                let sources = self.net.sources(node, destination);
                flow.source.set_ip(*sources.first()?);
                self.path(NodeId(node as u32), &flow)?
            }
        };
        let pairs = self.net.channels.iter().zip(&self.plan.links);
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
            None => self.lay(&mut flow, &path, Behind::Nothing),
        }
        Some(flow)
    }
}

/// What a router without an address of the family answers from: in IPv6 one of the discard prefix (RFC 6666), as no router forwards what
/// has a link-local source (RFC 4291 section 2.5.6).
fn nameless(node: usize, destination: IpAddr) -> IpAddr {
    match destination {
        IpAddr::V4(_) => DUMMY.into(),
        IpAddr::V6(_) => Ipv6Addr::from(0x0100 << 112 | (node as u128 + 1)).into(),
    }
}

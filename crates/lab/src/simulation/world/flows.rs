//! Flows: the routes of packets, and how packets enter them.

use std::net::{IpAddr, SocketAddr};

use polypath_net::{Ecn, NodeId, RouteId, random};
use polypath_transport::{Purpose, Segment};
use polypath_wire::tcp::header_len;

use super::World;
use super::middleboxes::Behind;
use crate::account::Watch;
use crate::flow::{Body, Content, DATAGRAM_HEADER, End, Flow, Sealed, TCP, UDP, ip_header_len};

impl World {
    pub fn new_flow(
        &mut self,
        node: usize,
        source: SocketAddr,
        destination: SocketAddr,
        gateways: Vec<IpAddr>,
        sender: End,
        stream: u64,
    ) -> u32 {
        let flow = self.unrouted_flow((source, destination), gateways, sender, stream);
        self.route_flow(flow, node);
        flow
    }

    pub fn unrouted_flow(
        &mut self,
        (source, destination): (SocketAddr, SocketAddr),
        gateways: Vec<IpAddr>,
        sender: End,
        stream: u64,
    ) -> u32 {
        self.net.add_flow(Flow {
            gateways,
            sender,
            stream: random::mix(stream),
            receiver_node: self.net.receiver_node(destination.ip()),
            ..Flow::new(source, destination)
        })
    }

    /// Finds a flow's way from a node.
    pub fn route_flow(&mut self, number: u32, node: usize) {
        if self.switching.is_some() {
            // Its way is found when its first packet leaves, on whose protocol it depends.
            let here = self.net.is_local(self.net.flow(number));
            self.net.flow_mut(number).here = here;
            return;
        }
        let mut flow = self.net.flow(number).clone();
        let node = NodeId(node as u32);
        let stopped_nowhere = self.stands.is_empty() && self.tunnelled.is_empty();
        if stopped_nowhere && self.spreading.is_none() {
            let (label, ends) = (flow.label(), (flow.source.ip(), flow.destination.ip()));
            let found = (self.net.network).route_via(node, ends.0, &flow.gateways, ends.1, label);
            flow.route = found.ok();
        } else if let Some(path) = self.path(node, &flow) {
            self.lay(&mut flow, &path, Behind::Nothing);
        }
        *self.net.flow_mut(number) = flow;
    }

    /// Whether a controller reads the first segment of a flow of TCP before it places it.
    pub fn reads_first_segments(&self) -> bool {
        self.spreading.is_some()
    }

    /// Has a controller read the first segment of a flow from a node and place it. False: there is none, or the flow is placed.
    pub fn show_to_controller(&mut self, number: u32, node: usize, first: &Segment) -> bool {
        let flow = &self.net.captures.flows[number as usize];
        let placed = flow.route.or(flow.queued_route).is_some();
        let Some(spreading) = self.spreading.as_mut().filter(|_| !placed) else {
            return false;
        };
        spreading.read(flow.source, flow.destination, first);
        self.route_flow(number, node);
        true
    }

    /// The flow from the receiver of `flow` back to its sender.
    pub fn answering_flow(&mut self, flow: u32) -> u32 {
        if let Some(&known) = self.answers.get(&flow) {
            return known;
        }
        let answer = self.make_answering_flow(flow);
        self.answers.insert(flow, answer);
        answer
    }

    fn make_answering_flow(&mut self, flow: u32) -> u32 {
        let Flow {
            source,
            destination,
            receiver_node,
            sender,
            ref gateways,
            ..
        } = *self.net.flow(flow);
        let gateways = gateways.iter().rev().copied().collect();
        let sender = sender.opposite();
        let stream = sender.endpoint().map_or(0, u64::from);
        let answer = self.unrouted_flow((destination, source), gateways, sender, stream);
        route_unbound(self, answer, receiver_node as usize);
        answer
    }

    /// Sends a segment that is no application's connection's.
    pub fn answer(&mut self, flow: u32, segment: Segment, purpose: Purpose) {
        self.refresh_way(flow, TCP);
        let state = self.net.flow_mut(flow);
        state.sent = state.sent.wrapping_add(1);
        let Flow {
            source,
            route,
            here,
            sent,
            ..
        } = *state;
        if route.is_none() && !here {
            return;
        }
        let len = ip_header_len(source) + header_len(&segment) as u32 + segment.payload.len;
        let body = Body {
            identification: sent,
            altered: false,
            purpose,
            content: Content::Tcp(segment),
        };
        self.dispatch(route, len, flow, Ecn::NotEct, body);
    }

    /// Sends a payload of UDP on its flow, if that leads anywhere.
    #[inline(always)]
    pub fn send_quic(&mut self, flow: u32, len: u32, ecn: Ecn, purpose: Purpose, sealed: Sealed) {
        self.refresh_way(flow, UDP);
        let state = self.net.flow_mut(flow);
        let route = state.route.or(state.queued_route);
        if route.is_none() && !state.here {
            return;
        }
        state.sent = state.sent.wrapping_add(1);
        let body = Body {
            identification: state.sent,
            altered: false,
            purpose,
            content: Content::Quic(sealed),
        };
        let len = ip_header_len(state.source) + DATAGRAM_HEADER + len;
        self.dispatch(route, len, flow, ecn, body);
    }

    pub fn inject(&mut self, route: RouteId, len: u32, flow: u32, ecn: Ecn, body: Body) {
        if !self.observed {
            self.net
                .network
                .inject(route, len, flow, ecn, body, &mut ());
        } else {
            self.inject_observed(route, len, flow, ecn, body);
        }
    }

    /// As [`Self::dispatch`]; what makes the body writes it where the network has it, if no capture or switch looks at it.
    #[inline(always)]
    pub fn dispatch_made(
        &mut self,
        route: Option<RouteId>,
        len: u32,
        flow: u32,
        ecn: Ecn,
        mut make: impl FnMut() -> Body,
    ) {
        match route {
            Some(route) if !self.observed => {
                (self.net.network).inject_made(route, len, flow, ecn, make, &mut ());
            }
            route => self.dispatch(route, len, flow, ecn, make()),
        }
    }

    /// Sends a packet on its flow's route, or to a receiver at the sender's own place.
    #[inline]
    pub fn dispatch(&mut self, route: Option<RouteId>, len: u32, flow: u32, ecn: Ecn, body: Body) {
        match route {
            Some(route) => self.inject(route, len, flow, ecn, body),
            None => self.net.network.inject_local(len, flow, ecn, body),
        }
    }

    #[inline(never)]
    fn inject_observed(&mut self, route: RouteId, len: u32, flow: u32, ecn: Ecn, body: Body) {
        let net = &mut self.net;
        match &mut self.switching {
            Some(switching) => switching.inject(net, route, len, flow, ecn, body),
            None => match &mut self.accounts {
                Some(accounts) => {
                    let mut watch = Watch(&mut net.captures, accounts);
                    (net.network).inject(route, len, flow, ecn, body, &mut watch);
                }
                None => (net.network).inject(route, len, flow, ecn, body, &mut net.captures),
            },
        }
    }

    /// Finds the way of a flow that has none, in a network under a controller: as far as the tables lead now.
    #[inline]
    pub fn refresh_way(&mut self, number: u32, protocol: u8) {
        if let Some(switching) = &mut self.switching {
            switching.refresh_way(&mut self.net, number, protocol);
        }
    }

    /// As [`Self::refresh_way`], for a flow of TCP. False: it has a way, or no controller rules.
    pub fn walk_lost_flow(&mut self, number: u32) -> bool {
        let switching = self.switching.as_mut();
        switching.is_some_and(|switching| switching.walk_lost_flow(&mut self.net, number, TCP))
    }
}

/// As [`World::route_flow`], for packets that are not bound to the interface of their source. Where no way leads from that to the receiver, they
/// leave as those without a source do (Linux: the main table counts where the one of the source knows no way).
pub fn route_unbound(world: &mut World, number: u32, node: usize) {
    world.route_flow(number, node);
    let flow = world.net.flow(number);
    let placed = flow.route.or(flow.queued_route).is_some() || flow.here;
    let stopped_nowhere = world.stands.is_empty() && world.tunnelled.is_empty();
    if placed || world.switching.is_some() || world.spreading.is_some() || !stopped_nowhere {
        return;
    }
    let (label, destination) = (flow.label(), flow.destination.ip());
    let gateways = flow.gateways.clone();
    let Some(&first) = world.net.sources(node, destination).first() else {
        return;
    };
    let network = &mut world.net.network;
    let found = network.route_via(NodeId(node as u32), first, &gateways, destination, label);
    world.net.flow_mut(number).route = found.ok();
}

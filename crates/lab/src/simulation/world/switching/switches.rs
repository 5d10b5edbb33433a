//! Packets at switches that stop them, and messages on control links.

use polypath_net::{ChannelId, InterfaceId, NodeId, Packet};
use polypath_switch::{Decision, Destination, EntryId, Fabric, Fields, Reason, Start, TTL};

use super::Mind;
use super::Switching;
use crate::capture::Captures;
use crate::control::openflow;
use crate::control::{Answer, Down, Due, Held, Order, Up, asked};
use crate::flow::{Body, Content, Flow, TCP, UDP, protocol};
use crate::simulation::world::net::Net;

impl Captures {
    /// A packet's fields: those of its flow and, where a controller asks for them, the hosts' Ethernet addresses.
    fn fields(&self, flow: &Flow, content: Option<&Content>, protocol: u8, in_port: u32) -> Fields {
        if let Some(Content::Frame(number)) = content {
            return openflow::fields(&self.own[*number as usize])
                .unwrap_or_default()
                .at(in_port);
        }
        let fields = fields(flow, protocol, in_port);
        let Some(known) = &self.ethernet else {
            return fields;
        };
        let of = |end: std::net::SocketAddr| {
            let mac = known.get(&end.ip()).copied().unwrap_or_default();
            mac.0
                .iter()
                .fold(0, |value, byte| value << 8 | u64::from(*byte))
        };
        fields.between(of(flow.source), of(flow.destination))
    }
}

/// What the network layer and the transport say. ICMP has no ports.
fn fields(flow: &Flow, protocol: u8, in_port: u32) -> Fields {
    let (mut source, mut destination) = (flow.source, flow.destination);
    if !matches!(protocol, TCP | UDP) {
        source.set_port(0);
        destination.set_port(0);
    }
    Fields::new(in_port, protocol, source, destination)
}

/// How a switch hands a packet to its controller.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    pub miss: bool,
    /// Bytes of the packet that the controller gets.
    pub max_len: u16,
    /// The table and the entry that had it do so.
    pub entry: Option<(u8, EntryId)>,
}

impl Switching {
    /// Finds the way of a flow that has none, in a network under a controller: as far as the tables lead now.
    #[cold]
    #[inline(never)]
    fn walk_flow(&mut self, net: &mut Net, number: u32, protocol: u8) {
        let flow = &net.captures.flows[number as usize];
        let fields = net.captures.fields(flow, None, protocol, 0);
        let flow = &mut net.captures.flows[number as usize];
        let topology = net.network.topology();
        let Some(own) = topology.owner(flow.source.ip()) else {
            return;
        };
        let channel = topology.channel_of(own).filter(|_| !flow.here);
        flow.route = channel.and_then(|channel| {
            let start = Start {
                channel,
                fields,
                crossed: flow.crossed,
            };
            self.fabric.route(&mut net.network, start, number)
        });
    }

    /// As [`Switching::walk_flow`], where the flow's way is gone.
    #[inline]
    pub fn refresh_way(&mut self, net: &mut Net, number: u32, protocol: u8) {
        let flow = net.flow(number);
        if flow.route.or(flow.queued_route).is_none() && !flow.here {
            self.walk_flow(net, number, protocol);
        }
    }

    /// As [`Switching::walk_flow`], where the flow has no way. False: it has one.
    pub fn walk_lost_flow(&mut self, net: &mut Net, number: u32, protocol: u8) -> bool {
        let flow = net.flow(number);
        let lost = flow.route.or(flow.queued_route).is_none();
        if lost {
            self.walk_flow(net, number, protocol);
        }
        lost
    }

    /// A packet reached a host, which gets it if it is meant, or a switch that no way leads through.
    pub(super) fn on_controlled(
        &mut self,
        net: &mut Net,
        node: NodeId,
        interface: InterfaceId,
        mut packet: Packet<Body>,
    ) -> Option<Packet<Body>> {
        let flow = &net.captures.flows[packet.flow as usize];
        if self.fabric.switch(node).is_none() {
            let topology = net.network.topology();
            let is_bridged = matches!(self.mind, Mind::Bridges(_));
            let elsewhere = is_bridged && topology.owner(flow.destination.ip()) != Some(interface);
            if node.0 != flow.receiver_node || elsewhere {
                // Flooded to a host whose address it does not bear (RFC 1122 section 3.2.1.3).
                self.strays += 1;
                return None;
            }
            if let Some(&origin) = self.origins.get(&packet.flow) {
                packet.flow = origin;
            }
            return Some(packet);
        }
        let crossed = flow.crossed + packet.hop;
        self.tally(node).stopped += 1;
        if crossed >= TTL {
            self.tally(node).expired += 1;
            return None;
        }
        let protocol = protocol(flow, &packet.body.content);
        let in_port = self.fabric.port(interface);
        if let (Mind::Bridges(_), Content::Frame(number)) = (&self.mind, &packet.body.content) {
            self.tally(node).bpdus_received += 1;
            let intact = !packet.corrupted;
            let frame = net.captures.own[*number as usize].clone();
            self.on_bpdu(net, node, in_port, frame.as_ref(), intact);
            return None;
        }
        let content = Some(&packet.body.content);
        let fields = net.captures.fields(flow, content, protocol, in_port);
        let now = net.network.now();
        let decision = self.fabric.arrive(now, node, &fields, packet.len);
        self.go_where(net, node, &packet, fields, crossed, decision);
        self.await_control(net);
        None
    }

    /// Does with a packet what its switch has decided.
    pub(super) fn go_where(
        &mut self,
        net: &mut Net,
        node: NodeId,
        packet: &Packet<Body>,
        fields: Fields,
        crossed: u16,
        decision: Decision,
    ) {
        let count = decision.destinations.len() as u64;
        let tally = self.tally(node);
        tally.dropped += u64::from(count == 0);
        tally.copied += count.saturating_sub(1);
        let entry = decision.entries.last().copied();
        for destination in decision.destinations {
            match destination {
                Destination::Port(port) => {
                    self.send_on(net, node, port, fields, crossed, packet.clone());
                }
                Destination::Controller { miss, max_len } => {
                    let how = Asking {
                        miss,
                        max_len,
                        entry,
                    };
                    self.ask(net, node, packet.clone(), fields, crossed, how);
                }
            }
        }
    }

    /// A packet goes to the controller.
    fn ask(
        &mut self,
        net: &mut Net,
        node: NodeId,
        packet: Packet<Body>,
        fields: Fields,
        crossed: u16,
        how: Asking,
    ) {
        let now = net.network.now();
        if let Mind::Bridges(_) = &self.mind {
            return self.on_unknown_source(net, node, &packet, fields, crossed);
        }
        self.tally(node).packet_ins += 1;
        let flow = &net.captures.flows[packet.flow as usize];
        let protocol = protocol(flow, &packet.body.content);
        if !matches!(packet.body.content, Content::Frame(_)) {
            self.note_setup(now, node, &fields, flow, protocol);
        }
        let held = Held {
            flow: asked(self.seed, flow.source, flow.destination, protocol),
            fields,
            crossed,
            packet,
        };
        match &self.mind {
            Mind::BuiltIn(_) => {
                let up = Up::PacketIn(Box::new(held));
                self.wires.send_up(now, node, up);
            }
            Mind::Outside(_) => self.packet_in(net, node, held, how),
            Mind::Bridges(_) => {}
        }
    }

    /// A packet leaves a switch by a port.
    pub(super) fn send_on(
        &mut self,
        net: &mut Net,
        node: NodeId,
        port: u32,
        fields: Fields,
        crossed: u16,
        packet: Packet<Body>,
    ) {
        let tally = self.tallies.entry(node).or_default();
        let Some(channel) = Fabric::channel(net.network.topology(), node, port) else {
            tally.dropped += 1;
            return;
        };
        tally.forwarded += 1;
        let origin = self
            .origins
            .get(&packet.flow)
            .copied()
            .unwrap_or(packet.flow);
        let key = (origin, channel, crossed);
        let flows = &mut net.captures.flows;
        let leg = *self.legs.entry(key).or_insert_with(|| {
            let leg = flows.len() as u32;
            flows.push(Flow {
                crossed,
                route: None,
                queued_route: None,
                held_by: None,
                here: false,
                ..flows[origin as usize].clone()
            });
            self.origins.insert(leg, origin);
            leg
        });
        let known = flows[leg as usize].route;
        let start = Start {
            channel,
            fields,
            crossed,
        };
        let route = known.or_else(|| self.fabric.route(&mut net.network, start, leg));
        net.captures.flows[leg as usize].route = route;
        if let Some(route) = route {
            self.forward(
                net,
                route,
                Packet {
                    flow: leg,
                    ..packet
                },
            );
        }
    }

    /// Does what is due at switches and their controller.
    pub fn on_timer(&mut self, net: &mut Net) {
        let now = net.network.now();
        while let Some(due) = self.wires.pop(now) {
            match due {
                Due::Reached(..) => {}
                Due::Handled(node, up) => self.handle(net, node, up),
                Due::Told(order) => self.tell(net, order),
            }
        }
        for (node, removed) in self.fabric.expire(&mut net.network) {
            if let Some((bridges, mut ground)) = self.bridges(&mut net.network) {
                let done = bridges.expired(node, &removed, &mut ground);
                self.tally(node).errors += u64::from(done.is_err());
                continue;
            }
            if let Mind::Outside(agents) = &mut self.mind {
                let agent = agents.get_mut(node);
                if let Some(bytes) = agent.and_then(|agent| agent.expired(now, &removed)) {
                    self.tally(node).flows_removed += 1;
                    self.wires.send_up(now, node, Up::Bytes(bytes));
                }
                continue;
            }
            if removed.entry.notify && matches!(removed.reason, Reason::Expired(_)) {
                let Some(fields) = removed.entry.matching.only_flow() else {
                    continue;
                };
                self.tally(node).flows_removed += 1;
                self.wires.send_up(now, node, Up::FlowRemoved { fields });
            }
        }
        self.bridges_on_time(net);
        self.drop_ways(net);
        self.await_control(net);
    }

    /// The controller has worked on a message.
    fn handle(&mut self, net: &mut Net, node: NodeId, up: Up) {
        let now = net.network.now();
        let topology = net.network.topology();
        let plane = match &mut self.mind {
            Mind::BuiltIn(plane) => plane,
            Mind::Outside(agents) => {
                if let Up::Bytes(bytes) = up {
                    agents.arrived.push((node, bytes));
                }
                return;
            }
            Mind::Bridges(_) => return,
        };
        let orders = match up {
            Up::PacketIn(held) => match plane.packet_in(now, topology, node, held) {
                Answer::Orders(orders) => orders,
                Answer::NoWay => {
                    self.unroutable += 1;
                    Vec::new()
                }
            },
            Up::PortStatus { channel, up } => plane.port_status(now, topology, channel, up),
            Up::FlowRemoved { fields } => {
                plane.flow_removed(node, &fields);
                Vec::new()
            }
            Up::Bytes(_) => Vec::new(),
        };
        for order in orders {
            self.wires.send_down(now, order);
        }
    }

    /// A message of the controller has come to a switch.
    fn tell(&mut self, net: &mut Net, order: Order) {
        let now = net.network.now();
        if let Down::Bytes(bytes) = &order.down {
            return self.hear(net, order.node, bytes);
        }
        let out = self.obey(&mut net.network, order);
        self.drop_ways(net);
        let Some(Order {
            node,
            down: Down::PacketOut { port, held },
        }) = out
        else {
            return;
        };
        let Held {
            fields,
            crossed,
            packet,
            ..
        } = *held;
        self.tally(node).packet_outs += 1;
        self.end_setup(now, &fields);
        self.send_on(net, node, port, fields, crossed, packet);
    }

    /// A link has changed: the switches at its ends see that at once and tell their controller.
    #[cold]
    pub(super) fn on_changed(&mut self, net: &mut Net, channel: ChannelId) {
        let now = net.network.now();
        for (node, port, up) in self.fabric.link_changed(&mut net.network, channel) {
            if let Some((bridges, mut ground)) = self.bridges(&mut net.network) {
                let done = bridges.link_changed(node, port, up, &mut ground);
                self.tally(node).errors += u64::from(done.is_err());
                continue;
            }
            let message = match &mut self.mind {
                Mind::BuiltIn(_) => Some(Up::PortStatus { channel, up }),
                Mind::Outside(agents) => {
                    let switch = self.fabric.switch(node);
                    let agent = agents.get_mut(node).zip(switch);
                    let bytes = agent.and_then(|(agent, switch)| agent.port_status(port, switch));
                    bytes.map(Up::Bytes)
                }
                Mind::Bridges(_) => None,
            };
            if let Some(message) = message {
                self.tally(node).port_statuses += 1;
                self.wires.send_up(now, node, message);
            }
        }
        self.send_bpdus(net);
        self.drop_ways(net);
        self.await_control(net);
    }

    /// Flows whose ways changed find new ones when they next send.
    pub(super) fn drop_ways(&mut self, net: &mut Net) {
        for flow in self.fabric.stale() {
            let flow = &mut net.captures.flows[flow as usize];
            (flow.route, flow.queued_route) = (None, None);
        }
    }

    pub(super) fn await_control(&mut self, net: &mut Net) {
        match self.next() {
            Some(at) => net.network.set_timer(self.timer, at),
            None => net.network.cancel_timer(self.timer),
        }
    }
}

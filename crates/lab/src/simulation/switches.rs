//! Packets at switches that stop them, and messages on control links.

use polypath_net::{ChannelId, InterfaceId, NodeId, Packet};
use polypath_switch::{Decision, Destination, EntryId, Fabric, Fields, Reason, Start, TTL};

use super::Simulation;
use super::control::{Mind, SwitchTotals};
use crate::capture::Captures;
use crate::control::openflow;
use crate::control::{Answer, Down, Due, Held, Order, Up, asked};
use crate::flow::{Body, Content, Flow};

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// IP's protocol number of what a packet carries.
pub(super) fn protocol(flow: &Flow, content: &Content) -> u8 {
    match content {
        Content::Tcp(_) => TCP,
        Content::Quic(_) | Content::Udp { .. } => UDP,
        Content::Echo { .. } | Content::TooBig { .. } if flow.source.is_ipv4() => 1,
        Content::Echo { .. } | Content::TooBig { .. } => 58,
        Content::Frame(_) => 0,
    }
}

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

impl Simulation {
    /// Where packets went at switches; nothing where no controller rules.
    pub fn switch_totals(&self) -> Option<SwitchTotals> {
        self.control.as_ref().map(|control| control.totals())
    }

    /// Finds the way of a flow that has none, in a network under a controller: as far as the tables lead now.
    #[cold]
    #[inline(never)]
    pub(super) fn walk_flow(&mut self, number: u32, protocol: u8) {
        let Some(control) = &mut self.control else {
            return;
        };
        let flow = &self.captures.flows[number as usize];
        let fields = self.captures.fields(flow, None, protocol, 0);
        let flow = &mut self.captures.flows[number as usize];
        let topology = self.network.topology();
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
            control.fabric.route(&mut self.network, start, number)
        });
    }

    /// As [`Simulation::walk_flow`], where the flow's way is gone and a controller rules.
    #[inline]
    pub(super) fn refresh_way(&mut self, number: u32, protocol: u8) {
        if self.control.is_some() {
            let flow = &self.captures.flows[number as usize];
            if flow.route.or(flow.queued_route).is_none() && !flow.here {
                self.walk_flow(number, protocol);
            }
        }
    }

    /// Whether a flow ends where it begins.
    pub(super) fn is_local(&self, flow: &Flow) -> bool {
        let topology = self.network.topology();
        let of = |address| topology.node_of(topology.owner(address)?).ok();
        of(flow.source.ip()) == of(flow.destination.ip())
    }

    /// A packet reached a host, which gets it if it is meant, or a switch that no way leads through.
    pub(super) fn on_controlled(
        &mut self,
        node: NodeId,
        interface: InterfaceId,
        mut packet: Packet<Body>,
    ) -> Option<Packet<Body>> {
        let control = self.control.as_mut()?;
        let flow = &self.captures.flows[packet.flow as usize];
        if control.fabric.switch(node).is_none() {
            let topology = self.network.topology();
            let is_bridged = matches!(control.mind, Mind::Bridges(_));
            let elsewhere = is_bridged && topology.owner(flow.destination.ip()) != Some(interface);
            if node.0 != flow.receiver_node || elsewhere {
                // Flooded to a host whose address it does not bear (RFC 1122 section 3.2.1.3).
                control.strays += 1;
                return None;
            }
            if let Some(&origin) = control.origins.get(&packet.flow) {
                packet.flow = origin;
            }
            return Some(packet);
        }
        let crossed = flow.crossed + packet.hop;
        control.tally(node).stopped += 1;
        if crossed >= TTL {
            control.tally(node).expired += 1;
            return None;
        }
        let protocol = protocol(flow, &packet.body.content);
        let in_port = control.fabric.port(interface);
        if let (Mind::Bridges(_), Content::Frame(number)) = (&control.mind, &packet.body.content) {
            control.tally(node).bpdus_received += 1;
            let intact = !packet.corrupted;
            let frame = self.captures.own[*number as usize].clone();
            self.on_bpdu(node, in_port, frame.as_ref(), intact);
            return None;
        }
        let content = Some(&packet.body.content);
        let fields = self.captures.fields(flow, content, protocol, in_port);
        let now = self.network.now();
        let decision = control.fabric.arrive(now, node, &fields, packet.len);
        self.go_where(node, &packet, fields, crossed, decision);
        self.await_control();
        None
    }

    /// Does with a packet what its switch has decided.
    pub(super) fn go_where(
        &mut self,
        node: NodeId,
        packet: &Packet<Body>,
        fields: Fields,
        crossed: u16,
        decision: Decision,
    ) {
        let Some(control) = &mut self.control else {
            return;
        };
        let count = decision.destinations.len() as u64;
        let tally = control.tally(node);
        tally.dropped += u64::from(count == 0);
        tally.copied += count.saturating_sub(1);
        let entry = decision.entries.last().copied();
        for destination in decision.destinations {
            match destination {
                Destination::Port(port) => {
                    self.send_on(node, port, fields, crossed, packet.clone());
                }
                Destination::Controller { miss, max_len } => {
                    self.ask(
                        node,
                        packet.clone(),
                        fields,
                        crossed,
                        (miss, max_len),
                        entry,
                    );
                }
            }
        }
    }

    /// A packet goes to the controller.
    fn ask(
        &mut self,
        node: NodeId,
        packet: Packet<Body>,
        fields: Fields,
        crossed: u16,
        how: (bool, u16),
        entry: Option<(u8, EntryId)>,
    ) {
        let Some(control) = &mut self.control else {
            return;
        };
        let now = self.network.now();
        if let Mind::Bridges(_) = &control.mind {
            return self.on_unknown_source(node, &packet, fields, crossed);
        }
        control.tally(node).packet_ins += 1;
        let flow = &self.captures.flows[packet.flow as usize];
        let protocol = protocol(flow, &packet.body.content);
        if !matches!(packet.body.content, Content::Frame(_)) {
            control.note_setup(now, node, &fields, flow, protocol);
        }
        let held = Held {
            flow: asked(control.seed, flow.source, flow.destination, protocol),
            fields,
            crossed,
            packet,
        };
        match &control.mind {
            Mind::BuiltIn(_) => {
                let up = Up::PacketIn(Box::new(held));
                control.wires.send_up(now, node, up);
            }
            Mind::Outside(_) => self.packet_in(node, held, how, entry),
            Mind::Bridges(_) => {}
        }
    }

    /// A packet leaves a switch by a port.
    pub(super) fn send_on(
        &mut self,
        node: NodeId,
        port: u32,
        fields: Fields,
        crossed: u16,
        packet: Packet<Body>,
    ) {
        let Some(control) = &mut self.control else {
            return;
        };
        let tally = control.tallies.entry(node).or_default();
        let Some(channel) = Fabric::channel(self.network.topology(), node, port) else {
            tally.dropped += 1;
            return;
        };
        tally.forwarded += 1;
        let origin = control
            .origins
            .get(&packet.flow)
            .copied()
            .unwrap_or(packet.flow);
        let key = (origin, channel, crossed);
        let flows = &mut self.captures.flows;
        let leg = *control.legs.entry(key).or_insert_with(|| {
            let leg = flows.len() as u32;
            flows.push(Flow {
                crossed,
                route: None,
                queued_route: None,
                held_by: None,
                here: false,
                ..flows[origin as usize].clone()
            });
            control.origins.insert(leg, origin);
            leg
        });
        let known = flows[leg as usize].route;
        let start = Start {
            channel,
            fields,
            crossed,
        };
        let route = known.or_else(|| control.fabric.route(&mut self.network, start, leg));
        self.captures.flows[leg as usize].route = route;
        if let Some(route) = route {
            self.forward(
                route,
                Packet {
                    flow: leg,
                    ..packet
                },
            );
        }
    }

    /// Does what is due at switches and their controller.
    pub(super) fn on_control_timer(&mut self) {
        let now = self.network.now();
        loop {
            let Some(control) = &mut self.control else {
                return;
            };
            let Some(due) = control.wires.pop(now) else {
                break;
            };
            match due {
                Due::Reached(..) => {}
                Due::Handled(node, up) => self.handle(node, up),
                Due::Told(order) => self.tell(order),
            }
        }
        let Some(control) = &mut self.control else {
            return;
        };
        for (node, removed) in control.fabric.expire(&mut self.network) {
            if let Some((bridges, mut ground)) = control.bridges(&mut self.network) {
                let done = bridges.expired(node, &removed, &mut ground);
                control.tally(node).errors += u64::from(done.is_err());
                continue;
            }
            if let Mind::Outside(agents) = &mut control.mind {
                let agent = agents.get_mut(node);
                if let Some(bytes) = agent.and_then(|agent| agent.expired(now, &removed)) {
                    control.tally(node).flows_removed += 1;
                    control.wires.send_up(now, node, Up::Bytes(bytes));
                }
                continue;
            }
            if removed.entry.notify && matches!(removed.reason, Reason::Expired(_)) {
                let Some(fields) = removed.entry.matching.only_flow() else {
                    continue;
                };
                control.tally(node).flows_removed += 1;
                control.wires.send_up(now, node, Up::FlowRemoved { fields });
            }
        }
        self.bridges_on_time();
        self.drop_ways();
        self.await_control();
    }

    /// The controller has worked on a message.
    fn handle(&mut self, node: NodeId, up: Up) {
        let now = self.network.now();
        let topology = self.network.topology();
        let Some(control) = &mut self.control else {
            return;
        };
        let plane = match &mut control.mind {
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
                    control.unroutable += 1;
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
            control.wires.send_down(now, order);
        }
    }

    /// A message of the controller has come to a switch.
    fn tell(&mut self, order: Order) {
        let now = self.network.now();
        let Some(control) = &mut self.control else {
            return;
        };
        if let Down::Bytes(bytes) = &order.down {
            return self.hear(order.node, bytes);
        }
        let out = control.obey(&mut self.network, order);
        self.drop_ways();
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
        if let Some(control) = &mut self.control {
            control.tally(node).packet_outs += 1;
            control.end_setup(now, &fields);
        }
        self.send_on(node, port, fields, crossed, packet);
    }

    /// A link has changed: the switches at its ends see that at once and tell their controller.
    #[cold]
    pub(super) fn on_changed(&mut self, channel: ChannelId) {
        let now = self.network.now();
        let Some(control) = &mut self.control else {
            return;
        };
        for (node, port, up) in control.fabric.link_changed(&mut self.network, channel) {
            if let Some((bridges, mut ground)) = control.bridges(&mut self.network) {
                let done = bridges.link_changed(node, port, up, &mut ground);
                control.tally(node).errors += u64::from(done.is_err());
                continue;
            }
            let message = match &mut control.mind {
                Mind::BuiltIn(_) => Some(Up::PortStatus { channel, up }),
                Mind::Outside(agents) => {
                    let switch = control.fabric.switch(node);
                    let agent = agents.get_mut(node).zip(switch);
                    let bytes = agent.and_then(|(agent, switch)| agent.port_status(port, switch));
                    bytes.map(Up::Bytes)
                }
                Mind::Bridges(_) => None,
            };
            if let Some(message) = message {
                control.tally(node).port_statuses += 1;
                control.wires.send_up(now, node, message);
            }
        }
        self.send_bpdus();
        self.drop_ways();
        self.await_control();
    }

    /// Flows whose ways changed find new ones when they next send.
    pub(super) fn drop_ways(&mut self) {
        let Some(control) = &mut self.control else {
            return;
        };
        for flow in control.fabric.stale() {
            let flow = &mut self.captures.flows[flow as usize];
            (flow.route, flow.queued_route) = (None, None);
        }
    }

    pub(super) fn await_control(&mut self) {
        let Some(control) = &self.control else {
            return;
        };
        match control.next() {
            Some(at) => self.network.set_timer(control.timer, at),
            None => self.network.cancel_timer(control.timer),
        }
    }
}

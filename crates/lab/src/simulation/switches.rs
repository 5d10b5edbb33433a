//! Networks under a controller: packets at switches that stop them, messages on control links, and what is counted of both.

use std::collections::BTreeMap;

use polypath_net::{ChannelId, InterfaceId, Nanos, Network, NodeId, Packet, TimerId};
use polypath_switch::{
    Decision, Destination, Entry, EntryId, Fabric, Fields, Limits, Reason, Start, Switch, TTL,
    Timeouts, Wanted,
};
use polypath_transport::Choice;

use super::Simulation;
use crate::PlanError;
use crate::capture::Captures;
use crate::control::openflow::{self, Agents};
use crate::control::{
    Answer, Choosers, Chosen, Down, Due, Graph, Held, Order, Plane, REGISTRY, Routing as RoutingOf,
    Standing, Up, Wires, asked,
};
use crate::flow::{Body, Content, Flow};
use crate::plan::{self, Mode, Plan, Routing};

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

/// The most pairs of addresses that a controller makes a way each for beforehand.
const MOST_PAIRS: usize = 200_000;

/// What a switch and its control link did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Packets that it looked up one by one, because no way led through it.
    pub stopped: u64,
    /// Those that it sent on, each copy counted.
    pub forwarded: u64,
    /// Copies made beyond the first.
    pub copied: u64,
    /// Packets that no entry, or one without an output, let pass.
    pub dropped: u64,
    /// Packets that had crossed too many links.
    pub expired: u64,
    pub packet_ins: u64,
    pub packet_outs: u64,
    pub flow_mods: u64,
    pub group_mods: u64,
    pub flows_removed: u64,
    pub port_statuses: u64,
    /// Orders that the switch refused.
    pub errors: u64,
}

/// How a flow was made known to the switches: from the first packet that one of them did not know until the controller sent it out.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub at: Nanos,
    pub node: NodeId,
    pub source: std::net::SocketAddr,
    pub destination: std::net::SocketAddr,
    pub protocol: u8,
    /// Packets that went to the controller meanwhile, the first included.
    pub packet_ins: u64,
    /// Absent: the packet was never sent out.
    pub delay: Option<Nanos>,
}

/// Where packets went that the network gave out on the way: for the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchTotals {
    /// Taken out of the network at switches, and put back, each copy counted.
    pub stopped: u64,
    pub forwarded: u64,
    pub copied: u64,
    /// By tables and by TTL.
    pub dropped_at_tables: u64,
    /// Given to the controller: it sent them out, holds them, or dropped them because there was no way.
    pub handed: u64,
    pub sent_out: u64,
    pub held: u64,
    pub unroutable: u64,
    /// Reached hosts that they were not for.
    pub strays: u64,
}

/// Who decides.
enum Mind {
    BuiltIn(Box<Plane>),
    /// Somebody outside, with whom the switches speak OpenFlow.
    Outside(Box<Agents>),
}

/// The switches of a run, their controller and the links between.
pub(super) struct Control {
    pub fabric: Fabric,
    mind: Mind,
    pub wires: Wires,
    idle_timeout: Option<Nanos>,
    pub seed: u64,
    pub timer: TimerId,
    /// Flows that go on from a switch, by the flow that came, the channel and the links crossed; and of each where it is from.
    legs: BTreeMap<(u32, ChannelId, u16), u32>,
    origins: BTreeMap<u32, u32>,
    pub tallies: BTreeMap<NodeId, Tally>,
    pub setups: Vec<Setup>,
    open: BTreeMap<Fields, usize>,
    unroutable: u64,
    strays: u64,
    /// When the last sample was taken, and where its rows begin.
    pub last_sample: Option<(Nanos, usize)>,
}

impl Control {
    /// The switches of a plan; nothing where no controller rules.
    pub fn new(
        plan: &Plan,
        network: &mut Network<Body>,
        choosers: Option<&dyn Choosers>,
    ) -> Result<Option<Self>, PlanError> {
        let Some(settings) = &plan.controller else {
            return Ok(None);
        };
        check(plan)?;
        let is_switch = |node: NodeId| plan.nodes[node.index()].kind != plan::NodeKind::Host;
        let limits = Limits::default();
        let fabric = Fabric::new(network.topology(), plan.seed, limits, is_switch);
        let wires = Wires::new(settings.rate_bps, settings.delay_ns, settings.processing_ns);
        let graph = Graph::new(network.topology(), &fabric);
        let mind = match &settings.app {
            Some(_) => Mind::Outside(Box::new(Agents::new(plan, network, &fabric))),
            None => {
                let routing = checked_routing(plan, settings, choosers)?;
                let plane = Plane::new(routing, settings.mode, plan.seed, graph);
                Mind::BuiltIn(Box::new(plane))
            }
        };
        let mut control = Self {
            tallies: fabric
                .switches()
                .map(|(node, _)| (node, Tally::default()))
                .collect(),
            fabric,
            mind,
            wires,
            idle_timeout: settings.idle_timeout_ns,
            seed: plan.seed,
            timer: network.new_timer(),
            legs: BTreeMap::new(),
            origins: BTreeMap::new(),
            setups: Vec::new(),
            open: BTreeMap::new(),
            unroutable: 0,
            strays: 0,
            last_sample: None,
        };
        // Links that are down from the start are known to be.
        for channel in (0..network.topology().channels() as u32).map(ChannelId) {
            for (_, _, up) in control.fabric.link_changed(network, channel) {
                if let Mind::BuiltIn(plane) = &mut control.mind {
                    plane.port_status(0, network.topology(), channel, up);
                }
            }
        }
        match &mut control.mind {
            Mind::BuiltIn(plane) => {
                for order in plane.start(network.topology()) {
                    control.obey(network, order);
                }
            }
            Mind::Outside(agents) => {
                for (node, agent) in agents.all_mut() {
                    control.wires.send_up(0, node, Up::Bytes(agent.hello()));
                }
            }
        }
        Ok(Some(control))
    }

    pub fn tally(&mut self, node: NodeId) -> &mut Tally {
        self.tallies.entry(node).or_default()
    }

    /// The agents of switches that speak with somebody outside.
    pub fn agents(&mut self) -> Option<&mut Agents> {
        match &mut self.mind {
            Mind::BuiltIn(_) => None,
            Mind::Outside(agents) => Some(agents),
        }
    }

    /// Those together with what they work on.
    pub fn agents_and_fabric(&mut self) -> Option<(&mut Agents, &mut Fabric)> {
        match &mut self.mind {
            Mind::BuiltIn(_) => None,
            Mind::Outside(agents) => Some((agents, &mut self.fabric)),
        }
    }

    pub fn totals(&self) -> SwitchTotals {
        let mut totals = SwitchTotals {
            held: self.wires.packets(),
            unroutable: self.unroutable,
            strays: self.strays,
            ..SwitchTotals::default()
        };
        for tally in self.tallies.values() {
            totals.stopped += tally.stopped;
            totals.forwarded += tally.forwarded;
            totals.copied += tally.copied;
            totals.dropped_at_tables += tally.dropped + tally.expired;
            totals.handed += tally.packet_ins;
            totals.sent_out += tally.packet_outs;
        }
        totals
    }

    /// A switch does what it is told to its tables. Gives back a packet that is to be sent out.
    fn obey(&mut self, network: &mut Network<Body>, order: Order) -> Option<Order> {
        let Order { node, down } = order;
        let (idle, fabric) = (self.idle_timeout, &mut self.fabric);
        let (done, mods, groups) = match down {
            Down::Add {
                matching,
                priority,
                instructions,
                idle: times_out,
                notify,
            } => {
                let timeouts = Timeouts {
                    idle: idle.filter(|_| times_out),
                    hard: None,
                };
                let entry = Entry {
                    timeouts,
                    notify,
                    ..Switch::entry(matching, priority, instructions)
                };
                (fabric.add(network, node, 0, entry, false), 1, 0)
            }
            Down::Delete { matching, priority } => {
                let wanted = Wanted::strictly(matching, priority);
                let gone = fabric.delete(network, node, 0, &wanted);
                (gone.map(|_| ()), 1, 0)
            }
            Down::AddGroup { number, group } => (fabric.add_group(node, number, group), 0, 1),
            Down::PacketOut { .. } | Down::Bytes(_) => return Some(Order { node, down }),
        };
        let tally = self.tally(node);
        tally.flow_mods += mods;
        tally.group_mods += groups;
        tally.errors += u64::from(done.is_err());
        None
    }

    /// A flow's packet is sent out by the controller.
    pub fn end_setup(&mut self, now: Nanos, fields: &Fields) {
        if let Some(setup) = self.open.remove(&fields.at(0)) {
            let setup = &mut self.setups[setup];
            setup.delay = Some(now - setup.at);
        }
    }

    /// When something is next to be done.
    fn next(&self) -> Option<Nanos> {
        let times = [self.wires.next(), self.fabric.next_deadline()];
        times.into_iter().flatten().min()
    }

    /// A flow that a switch does not know: its setup begins, or goes on.
    pub fn note_setup(
        &mut self,
        at: Nanos,
        node: NodeId,
        fields: &Fields,
        flow: &Flow,
        protocol: u8,
    ) {
        let key = fields.at(0);
        if let Some(&known) = self.open.get(&key) {
            self.setups[known].packet_ins += 1;
            return;
        }
        self.open.insert(key, self.setups.len());
        self.setups.push(Setup {
            at,
            node,
            source: flow.source,
            destination: flow.destination,
            protocol,
            packet_ins: 1,
            delay: None,
        });
    }
}

/// The routing that a controller has, if its mode fits it and the network.
fn checked_routing(
    plan: &Plan,
    settings: &plan::Controller,
    choosers: Option<&dyn Choosers>,
) -> Result<Box<dyn RoutingOf>, PlanError> {
    let routing = routing(plan, settings, choosers)?;
    let addresses = plan.nodes.iter().flat_map(|node| &node.interfaces);
    let addresses = addresses
        .map(|interface| interface.addresses.len())
        .sum::<usize>();
    let invalid = |problem: String| Err(PlanError::invalid("controller", problem));
    match (routing.standing(), settings.mode) {
        (Standing::Nothing, Mode::Proactive | Mode::Hybrid) => {
            let name = chosen(settings)?.name.clone();
            invalid(format!("{name} has to see each flow: its mode is reactive"))
        }
        (Standing::Pairs, Mode::Proactive) if addresses * addresses > MOST_PAIRS => {
            invalid(format!(
                "a way for each pair of {addresses} addresses is more than {MOST_PAIRS} ways; take mode reactive"
            ))
        }
        _ => Ok(routing),
    }
}

fn chosen(settings: &plan::Controller) -> Result<&plan::Choice, PlanError> {
    let missing = || PlanError::invalid("controller", "it has neither a routing nor an app");
    settings.routing.as_ref().ok_or_else(missing)
}

/// The routing that a controller has: of the registry, or a chooser's.
fn routing(
    plan: &Plan,
    settings: &plan::Controller,
    choosers: Option<&dyn Choosers>,
) -> Result<Box<dyn RoutingOf>, PlanError> {
    let routing = chosen(settings)?;
    let choice = Choice {
        name: routing.name.clone(),
        parameters: routing.parameters.clone().into_iter().collect(),
    };
    let chooser = choosers.and_then(|choosers| choosers.chooser(&choice));
    let made = match chooser {
        Some(chooser) => chooser.map(|chooser| {
            let names = plan.nodes.iter().map(|node| node.name.clone());
            Box::new(Chosen::new(chooser, names.collect())) as Box<dyn RoutingOf>
        }),
        None => REGISTRY.make(&choice.name, &choice.parameters),
    };
    made.map_err(|error| PlanError::Registry {
        place: "controller".into(),
        error,
    })
}

/// What a controller cannot rule.
fn check(plan: &Plan) -> Result<(), PlanError> {
    let invalid = |problem: String| Err(PlanError::invalid("controller", problem));
    if plan
        .nodes
        .iter()
        .all(|node| node.kind == plan::NodeKind::Host)
    {
        return invalid("there is no switch and no router that it could rule".into());
    }
    if plan.routing != Routing::ShortestPath {
        return invalid("with a controller the scenario has no 'routing' of its own".into());
    }
    if let Some(host) = plan.nodes.iter().find(|node| node.forwards) {
        let name = &host.name;
        return invalid(format!(
            "host {name} forwards for others, and no controller rules hosts"
        ));
    }
    let is_host = |index: usize| {
        let node = plan.nodes.get(index);
        node.is_none_or(|node| node.kind == plan::NodeKind::Host)
    };
    if let Some(route) = plan.routes.iter().find(|route| !is_host(route.node)) {
        let name = &plan.nodes[route.node].name;
        return invalid(format!(
            "{name} has a static route, and a controller fills its tables"
        ));
    }
    if let Some(link) = plan.links.iter().find(|link| !link.middleboxes.is_empty()) {
        let name = &link.name;
        return invalid(format!(
            "link {name} has a middlebox, of which no controller knows"
        ));
    }
    let own = plan.applications.iter();
    let own = own.flat_map(|each| [&each.client_stack, &each.server_stack]);
    let mut stacks = plan
        .nodes
        .iter()
        .map(|node| &node.stack)
        .chain(own)
        .flatten();
    if stacks.any(|stack| stack.path_manager.name == "binder") {
        return invalid(
            "path manager binder steers packets through routers, and switches have tables".into(),
        );
    }
    Ok(())
}

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
            if node.0 != flow.receiver_node {
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
        };
        let orders = match up {
            Up::PacketIn(held) => {
                let flow = held.fields.at(0);
                match plane.packet_in(now, topology, node, held) {
                    Answer::Orders(orders) => orders,
                    Answer::NoWay => {
                        control.unroutable += 1;
                        control.open.remove(&flow);
                        Vec::new()
                    }
                }
            }
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
            let message = match &mut control.mind {
                Mind::BuiltIn(_) => Some(Up::PortStatus { channel, up }),
                Mind::Outside(agents) => {
                    let switch = control.fabric.switch(node);
                    let agent = agents.get_mut(node).zip(switch);
                    let bytes = agent.and_then(|(agent, switch)| agent.port_status(port, switch));
                    bytes.map(Up::Bytes)
                }
            };
            if let Some(message) = message {
                control.tally(node).port_statuses += 1;
                control.wires.send_up(now, node, message);
            }
        }
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

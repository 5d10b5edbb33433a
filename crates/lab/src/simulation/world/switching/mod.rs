//! The controller of a run: its routing, the tables that it fills, and the counters of switches and control links.

mod bridges;
mod observed;
mod openflow;
mod switch_tables;
mod switches;

use std::collections::BTreeMap;

use polypath_net::{ChannelId, Nanos, Network, NodeId, TimerId};
use polypath_switch::{Entry, Fabric, Fields, Limits, Switch, Timeouts, Wanted};
use polypath_transport::Choice;

use crate::PlanError;
use crate::bridging::{Bridges, Ground};
use crate::control::openflow::{Agents, Frames};
use crate::control::{
    Choosers, Chosen, Down, Graph, Order, Plane, REGISTRY, Routing as RoutingOf, Standing, Up,
    Wires,
};
use crate::flow::{Body, Flow};
use crate::plan::{self, Mode, Plan, Routing};

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
    /// Of a bridge.
    pub bpdus_sent: u64,
    pub bpdus_received: u64,
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
    /// Made and taken by bridges themselves.
    pub bpdus_sent: u64,
    pub bpdus_received: u64,
}

/// Who decides.
enum Mind {
    BuiltIn(Box<Plane>),
    /// Somebody outside, with whom the switches speak OpenFlow.
    Outside(Box<Agents>),
    /// Each switch itself, as a bridge.
    Bridges(Box<Bridges>),
}

/// The switches of a run, their controller and the links between.
pub(super) struct Switching {
    fabric: Fabric,
    mind: Mind,
    wires: Wires,
    idle_timeout: Option<Nanos>,
    seed: u64,
    timer: TimerId,
    /// Flows that go on from a switch, by the flow that came, the channel and the links crossed; and of each where it is from.
    legs: BTreeMap<(u32, ChannelId, u16), u32>,
    origins: BTreeMap<u32, u32>,
    tallies: BTreeMap<NodeId, Tally>,
    setups: Vec<Setup>,
    open: BTreeMap<Fields, usize>,
    unroutable: u64,
    strays: u64,
    /// When the last sample was taken, and where its rows begin.
    last_sample: Option<(Nanos, usize)>,
}

impl Switching {
    /// The switches of a plan; nothing where no controller rules.
    pub fn new(
        plan: &Plan,
        network: &mut Network<Body>,
        choosers: Option<&dyn Choosers>,
    ) -> Result<Option<Self>, PlanError> {
        if plan.controller.is_none() && plan.bridging.is_none() {
            return Ok(None);
        }
        check(plan)?;
        let is_switch = |node: NodeId| plan.nodes[node.index()].kind != plan::NodeKind::Host;
        let limits = Limits::default();
        let mut fabric = Fabric::new(network.topology(), plan.seed, limits, is_switch);
        let ruling = plan.controller.as_ref();
        let wires = ruling.map(|it| Wires::new(it.rate_bps, it.delay_ns, it.processing_ns));
        let mind = match (&plan.bridging, ruling) {
            (Some(bridging), _) => {
                know_links(network, &mut fabric);
                let mut ground = Ground {
                    fabric: &mut fabric,
                    network,
                };
                Mind::Bridges(Box::new(Bridges::new(plan, bridging, &mut ground)?))
            }
            (None, Some(settings)) if settings.app.is_none() => {
                let graph = Graph::new(network.topology(), &fabric);
                let routing = checked_routing(plan, settings, choosers)?;
                let plane = Plane::new(routing, settings.mode, plan.seed, graph);
                Mind::BuiltIn(Box::new(plane))
            }
            (None, _) => Mind::Outside(Box::new(Agents::new(plan, network, &fabric))),
        };
        let mut switching = Self {
            tallies: fabric
                .switches()
                .map(|(node, _)| (node, Tally::default()))
                .collect(),
            fabric,
            mind,
            wires: wires.unwrap_or_else(|| Wires::new(None, 0, 0)),
            idle_timeout: ruling.and_then(|it| it.idle_timeout_ns),
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
            for (_, _, up) in switching.fabric.link_changed(network, channel) {
                if let Mind::BuiltIn(plane) = &mut switching.mind {
                    plane.know(channel, up);
                }
            }
        }
        match &mut switching.mind {
            Mind::BuiltIn(plane) => {
                for order in plane.start(network.topology()) {
                    switching.obey(network, order);
                }
            }
            Mind::Outside(agents) => {
                for (node, agent) in agents.all_mut() {
                    switching.wires.send_up(0, node, Up::Bytes(agent.hello()));
                }
            }
            Mind::Bridges(_) => {}
        }
        Ok(Some(switching))
    }

    pub fn timer(&self) -> TimerId {
        self.timer
    }

    pub fn tally(&mut self, node: NodeId) -> &mut Tally {
        self.tallies.entry(node).or_default()
    }

    /// The agents of switches that speak with somebody outside.
    pub fn agents(&mut self) -> Option<&mut Agents> {
        match &mut self.mind {
            Mind::Outside(agents) => Some(agents),
            Mind::BuiltIn(_) | Mind::Bridges(_) => None,
        }
    }

    /// Bridges together with what they work on.
    pub fn bridges<'a>(
        &'a mut self,
        network: &'a mut Network<Body>,
    ) -> Option<(&'a mut Bridges, Ground<'a>)> {
        match &mut self.mind {
            Mind::Bridges(bridges) => {
                let fabric = &mut self.fabric;
                Some((bridges, Ground { fabric, network }))
            }
            Mind::BuiltIn(_) | Mind::Outside(_) => None,
        }
    }

    /// Frames that are not packets of hosts.
    pub fn frames(&mut self) -> Option<&mut Frames> {
        match &mut self.mind {
            Mind::BuiltIn(_) => None,
            Mind::Outside(agents) => Some(&mut agents.frames),
            Mind::Bridges(bridges) => Some(&mut bridges.frames),
        }
    }

    /// Those together with what they work on.
    pub fn agents_and_fabric(&mut self) -> Option<(&mut Agents, &mut Fabric)> {
        match &mut self.mind {
            Mind::Outside(agents) => Some((agents, &mut self.fabric)),
            Mind::BuiltIn(_) | Mind::Bridges(_) => None,
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
            totals.bpdus_sent += tally.bpdus_sent;
            totals.bpdus_received += tally.bpdus_received;
        }
        totals
    }

    /// A switch does what it is told to its tables. Gives back a packet that is to be sent out.
    pub fn obey(&mut self, network: &mut Network<Body>, order: Order) -> Option<Order> {
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
    pub fn next(&self) -> Option<Nanos> {
        let bridges = match &self.mind {
            Mind::Bridges(bridges) => bridges.next_deadline(),
            Mind::BuiltIn(_) | Mind::Outside(_) => None,
        };
        let times = [self.wires.next(), self.fabric.next_deadline(), bridges];
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

/// Switches know of links that are down from the start.
fn know_links(network: &mut Network<Body>, fabric: &mut Fabric) {
    for channel in (0..network.topology().channels() as u32).map(ChannelId) {
        fabric.link_changed(network, channel);
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
            invalid(format!("{name} has to see each flow; use mode reactive"))
        }
        (Standing::Pairs, Mode::Proactive) if addresses * addresses > MOST_PAIRS => {
            invalid(format!(
                "{addresses} addresses make more than {MOST_PAIRS} pairs, each with a path of its own; use mode reactive"
            ))
        }
        _ => Ok(routing),
    }
}

fn chosen(settings: &plan::Controller) -> Result<&plan::Choice, PlanError> {
    let missing = || PlanError::invalid("controller", "it has no routing and no app");
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

/// What neither a controller can rule nor bridges can join.
fn check(plan: &Plan) -> Result<(), PlanError> {
    let bridges = plan.bridging.is_some();
    let place = if bridges { "bridging" } else { "controller" };
    let invalid = |problem: String| Err(PlanError::invalid(place, problem));
    if bridges && plan.controller.is_some() {
        return invalid("switches are bridges or have a controller, but not both".into());
    }
    if plan
        .nodes
        .iter()
        .all(|node| node.kind == plan::NodeKind::Host)
    {
        return invalid(match bridges {
            true => "there is no switch or router that could be a bridge".into(),
            false => "there is no switch or router that it could control".into(),
        });
    }
    if plan.routing != Routing::ShortestPath {
        let with = if bridges { "bridges" } else { "a controller" };
        return invalid(format!(
            "with {with} the scenario cannot set 'routing'; remove it"
        ));
    }
    if let Some(host) = plan.nodes.iter().find(|node| node.forwards) {
        let name = &host.name;
        let why = match bridges {
            true => "bridges do not route through hosts",
            false => "controllers do not control hosts",
        };
        return invalid(format!("host {name} forwards for others, but {why}"));
    }
    let is_host = |index: usize| {
        let node = plan.nodes.get(index);
        node.is_none_or(|node| node.kind == plan::NodeKind::Host)
    };
    if let Some(route) = plan.routes.iter().find(|route| !is_host(route.node)) {
        let name = &plan.nodes[route.node].name;
        let why = match bridges {
            true => "it is a bridge, which ignores IP addresses",
            false => "a controller fills its tables",
        };
        return invalid(format!("{name} has a static route, but {why}"));
    }
    if let Some(link) = plan.links.iter().find(|link| !link.middleboxes.is_empty()) {
        let name = &link.name;
        let who = if bridges { "bridge" } else { "controller" };
        return invalid(format!(
            "link {name} has a middlebox, which a {who} does not support"
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
    if stacks.any(|stack| stack.config.path_manager.name == "binder") {
        return invalid(
            "path manager binder steers packets through routers, but switches follow their tables"
                .into(),
        );
    }
    Ok(())
}

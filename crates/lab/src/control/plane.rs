//! What a controller sends to switches, and when, in each of its modes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use polypath_net::{ChannelId, Nanos, NodeId, Topology, random};
use polypath_switch::{Action, Bucket, Fields, Group, GroupKind, Instructions, Match};

use super::message::{Down, Held, Order};
use super::{Asked, Graph, Routing, Standing};
use crate::flow::Content;
use crate::plan::Mode;

/// Priorities of entries: for whatever no other matches, for a destination, for a flow.
const MISS: u16 = 0;
const STANDING: u16 = 10;
const FLOW: u16 = 100;

/// What a switch does with packets to a destination.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Port(u32),
    /// By hash: ports with their weights.
    Select(Vec<(u32, u16)>),
    /// The first port that is up.
    Failover(Vec<u32>),
}

impl Rule {
    fn group(&self) -> Option<Group> {
        let (kind, buckets) = match self {
            Self::Port(_) => return None,
            Self::Select(ports) => {
                let buckets = ports.iter();
                let buckets = buckets.map(|(port, weight)| Bucket::out(*port, *weight));
                (GroupKind::Select, buckets.collect())
            }
            Self::Failover(ports) => {
                let buckets = ports.iter().map(|port| Bucket::out(*port, 0));
                (GroupKind::FastFailover, buckets.collect())
            }
        };
        Some(Group { kind, buckets })
    }
}

/// Which packets a rule is for: those to an address, from one or from any.
type Pair = (Option<IpAddr>, IpAddr);

/// A flow, and the switch where it begins to have a way, if there can be several.
type Key = (Fields, Option<NodeId>);

/// A flow that the controller has put on a way.
#[derive(Clone, Debug)]
struct Installed {
    flow: Asked,
    path: Vec<ChannelId>,
}

/// What a controller answers to a packet-in.
pub(crate) enum Answer {
    Orders(Vec<Order>),
    /// There is no way to the packet's destination, and it is dropped.
    NoWay,
}

/// A controller's mind.
pub(crate) struct Plane {
    routing: Box<dyn Routing>,
    mode: Mode,
    seed: u64,
    graph: Graph,
    /// Switches that hosts are at.
    edges: BTreeSet<NodeId>,
    rules: BTreeMap<(NodeId, Pair), Rule>,
    groups: BTreeMap<(NodeId, Rule), u32>,
    next_group: u32,
    pairs: BTreeMap<(IpAddr, IpAddr), Vec<ChannelId>>,
    installed: BTreeMap<Key, Installed>,
}

fn begins(topology: &Topology, channel: ChannelId) -> NodeId {
    let ends = topology.ends(channel);
    let node = ends.and_then(|(from, _)| topology.node_of(from).ok());
    node.unwrap_or_default()
}

/// Weights in their least numbers, which sixteen bits hold.
fn weights(counts: &[u64]) -> Vec<u16> {
    let divisor = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let common = counts.iter().copied().fold(0, divisor).max(1);
    let most = counts.iter().copied().max().unwrap_or(0) / common;
    let scale = most / u64::from(u16::MAX) + 1;
    let weight = |count: &u64| (count / common / scale).max(1) as u16;
    counts.iter().map(weight).collect()
}

impl Plane {
    pub fn new(routing: Box<dyn Routing>, mode: Mode, seed: u64, graph: Graph) -> Self {
        let edges = graph.homes().values().map(|home| home.switch).collect();
        Self {
            routing,
            mode,
            seed,
            graph,
            edges,
            rules: BTreeMap::new(),
            groups: BTreeMap::new(),
            next_group: 0,
            pairs: BTreeMap::new(),
            installed: BTreeMap::new(),
        }
    }

    /// A link is up or down before the run.
    pub fn know(&mut self, channel: ChannelId, up: bool) {
        self.graph.set_link(channel, up);
    }

    /// What the tables hold when the run begins.
    pub fn start(&mut self, topology: &Topology) -> Vec<Order> {
        let mut orders = Vec::new();
        if self.mode != Mode::Proactive {
            for &node in self.graph.switches() {
                let asks = self.mode == Mode::Reactive || self.edges.contains(&node);
                orders.extend(asks.then(|| Order {
                    node,
                    down: Down::Add {
                        matching: Match::any(),
                        priority: MISS,
                        instructions: Instructions::controller(),
                        idle: false,
                        notify: false,
                    },
                }));
            }
        }
        orders.extend(self.stand(topology));
        orders
    }

    /// Brings what the tables hold of destinations up to date.
    fn stand(&mut self, topology: &Topology) -> Vec<Order> {
        let standing = match (self.mode, self.routing.standing()) {
            (Mode::Reactive, _) => return Vec::new(),
            // The switches on the way know no flows: they choose by hash what the first left open.
            (Mode::Hybrid, Standing::Pairs) => Standing::Hashed,
            (_, standing) => standing,
        };
        let wanted = match standing {
            Standing::Pairs => self.pairwise(topology),
            standing => self.by_destination(standing),
        };
        let mut orders = Vec::new();
        for (&(node, pair), rule) in &wanted {
            if self.rules.get(&(node, pair)) != Some(rule) {
                let instructions = match self.grouped(node, rule, &mut orders) {
                    Some(group) => Instructions::apply(&[Action::Group(group)]),
                    None => match rule {
                        Rule::Port(port) => Instructions::out(*port),
                        Rule::Select(_) | Rule::Failover(_) => Instructions::default(),
                    },
                };
                let down = Down::Add {
                    matching: matching(pair),
                    priority: STANDING,
                    instructions,
                    idle: false,
                    notify: false,
                };
                orders.push(Order { node, down });
            }
        }
        let gone = self.rules.keys().filter(|key| !wanted.contains_key(key));
        orders.extend(gone.map(|&(node, pair)| Order {
            node,
            down: Down::Delete {
                matching: matching(pair),
                priority: STANDING,
            },
        }));
        self.rules = wanted;
        orders
    }

    /// The number of a rule's group at a switch, which is made the first time.
    fn grouped(&mut self, node: NodeId, rule: &Rule, orders: &mut Vec<Order>) -> Option<u32> {
        let group = rule.group()?;
        let key = (node, rule.clone());
        if let Some(&number) = self.groups.get(&key) {
            return Some(number);
        }
        self.next_group += 1;
        let number = self.next_group;
        self.groups.insert(key, number);
        let down = Down::AddGroup { number, group };
        orders.push(Order { node, down });
        Some(number)
    }

    fn by_destination(&mut self, standing: Standing) -> BTreeMap<(NodeId, Pair), Rule> {
        let homes: Vec<_> = self.graph.homes().clone().into_iter().collect();
        let nodes = self.graph.switches().to_vec();
        let mut rules = BTreeMap::new();
        // Addresses at one switch share what the others do.
        let mut known: BTreeMap<(NodeId, NodeId), Option<Rule>> = BTreeMap::new();
        for (address, home) in homes {
            for &node in &nodes {
                let rule = if node == home.switch {
                    let up = self.graph.is_up(home.channel);
                    up.then(|| Rule::Port(self.graph.port(home.channel)))
                } else if self.mode == Mode::Hybrid && self.edges.contains(&node) {
                    None
                } else {
                    let way = (node, home.switch);
                    let rule = match known.get(&way) {
                        Some(rule) => rule.clone(),
                        None => self.rule(standing, node, home.switch),
                    };
                    known.insert(way, rule.clone());
                    rule
                };
                rules.extend(rule.map(|rule| ((node, (None, address)), rule)));
            }
        }
        rules
    }

    /// What one switch does with packets to another.
    fn rule(&mut self, standing: Standing, node: NodeId, to: NodeId) -> Option<Rule> {
        if standing == Standing::Tree {
            let channel = self.routing.tree(&mut self.graph, node, to)?;
            return Some(Rule::Port(self.graph.port(channel)));
        }
        let next = self.graph.next(node, to);
        let ports: Vec<u32> = next
            .iter()
            .map(|(channel, ..)| self.graph.port(*channel))
            .collect();
        match standing {
            _ if ports.len() < 2 => ports.first().map(|port| Rule::Port(*port)),
            Standing::Shortest => {
                let (quickest, _) = self.graph.quickest(node, to)?;
                let first = self.graph.port(quickest);
                let others = ports.into_iter().filter(|port| *port != first);
                Some(Rule::Failover([first].into_iter().chain(others).collect()))
            }
            _ => {
                let counts: Vec<u64> = next.iter().map(|(.., count)| *count).collect();
                Some(Rule::Select(
                    ports.into_iter().zip(weights(&counts)).collect(),
                ))
            }
        }
    }

    /// A way for each pair of addresses, which it keeps as long as it can.
    fn pairwise(&mut self, topology: &Topology) -> BTreeMap<(NodeId, Pair), Rule> {
        let homes: Vec<_> = self.graph.homes().clone().into_iter().collect();
        let mut rules = BTreeMap::new();
        for (source, from) in &homes {
            for (destination, to) in &homes {
                if from.channel == to.channel || source.is_ipv4() != destination.is_ipv4() {
                    continue;
                }
                let pair = (*source, *destination);
                let whole =
                    |path: &&Vec<ChannelId>| path.iter().all(|each| self.graph.is_up(*each));
                let path = match self.pairs.get(&pair).filter(whole) {
                    Some(path) => Some(path.clone()),
                    None => {
                        let flow =
                            asked(self.seed, (*source, 0).into(), (*destination, 0).into(), 0);
                        (self.routing).path(&mut self.graph, topology, from.switch, &flow)
                    }
                };
                let Some(path) = path else {
                    self.pairs.remove(&pair);
                    continue;
                };
                for channel in &path {
                    let node = begins(topology, *channel);
                    let rule = Rule::Port(self.graph.port(*channel));
                    rules.insert((node, (Some(*source), *destination)), rule);
                }
                self.pairs.insert(pair, path);
            }
        }
        rules
    }

    /// A switch sends a packet that it does not know: the entries for its flow, and the packet itself, which leaves by the last switch at once, as
    /// RipL-POX has it. A flow that has a way keeps it.
    pub fn packet_in(
        &mut self,
        now: Nanos,
        topology: &Topology,
        node: NodeId,
        held: Box<Held>,
    ) -> Answer {
        let Held { flow, fields, .. } = *held;
        let flow = Asked { at: now, ..flow };
        if let Content::Tcp(segment) = &held.packet.body.content {
            self.routing.read(&flow, segment);
        }
        let home = self.graph.home(flow.destination.ip());
        let home = home.filter(|home| self.graph.is_up(home.channel));
        let Some(home) = home.filter(|home| self.graph.count(node, home.switch) > 0) else {
            return Answer::NoWay;
        };
        let Some(way) = self.way(topology, node, &fields, &flow) else {
            return Answer::NoWay;
        };
        let known = self.installed.get(&self.key(&fields, node));
        let first = known.and_then(|known| known.path.first()).copied();
        let mut orders = Vec::new();
        for channel in way {
            // A switch on the way that asks again is not the one that turns the flow over.
            orders.push(self.entry(topology, channel, &fields, Some(channel) == first));
        }
        let port = self.graph.port(home.channel);
        let node = home.switch;
        let down = Down::PacketOut { port, held };
        orders.push(Order { node, down });
        Answer::Orders(orders)
    }

    /// Which entry of the controller's list a flow's way from a switch is.
    fn key(&self, fields: &Fields, node: NodeId) -> Key {
        // In mode hybrid each switch that hosts are at has a choice of its own.
        (fields.at(0), (self.mode == Mode::Hybrid).then_some(node))
    }

    /// The channels from a switch that entries are to lead a flow over, which are noted; an empty list for a packet that was on a way that its
    /// flow no longer takes. Nothing: the flow gets no way.
    fn way(
        &mut self,
        topology: &Topology,
        node: NodeId,
        fields: &Fields,
        flow: &Asked,
    ) -> Option<Vec<ChannelId>> {
        let whole = |graph: &Graph, path: &[ChannelId]| path.iter().all(|each| graph.is_up(*each));
        let key = self.key(fields, node);
        let known = self.installed.get(&key);
        if let Some(known) = known.filter(|known| whole(&self.graph, &known.path)) {
            let mut nodes = known.path.iter().map(|channel| begins(topology, *channel));
            let here = nodes.position(|each| each == node);
            return Some(here.map_or_else(Vec::new, |here| known.path[here..].to_vec()));
        }
        let found = self.routing.path(&mut self.graph, topology, node, flow);
        let mut path = found.filter(|path| whole(&self.graph, path) && !path.is_empty())?;
        if self.mode == Mode::Hybrid {
            path.truncate(1);
        }
        let (flow, kept) = (*flow, path.clone());
        self.installed.insert(key, Installed { flow, path: kept });
        Some(path)
    }

    fn entry(
        &self,
        topology: &Topology,
        channel: ChannelId,
        fields: &Fields,
        first: bool,
    ) -> Order {
        Order {
            node: begins(topology, channel),
            down: Down::Add {
                matching: Match::flow(fields),
                priority: FLOW,
                instructions: Instructions::out(self.graph.port(channel)),
                idle: true,
                notify: first,
            },
        }
    }

    /// The first switch of a flow's way has dropped its entry.
    pub fn flow_removed(&mut self, node: NodeId, fields: &Fields) {
        self.installed.remove(&self.key(fields, node));
    }

    /// A link went up or down, as one of its switches says.
    pub fn port_status(
        &mut self,
        now: Nanos,
        topology: &Topology,
        channel: ChannelId,
        up: bool,
    ) -> Vec<Order> {
        if !self.graph.set_link(channel, up) {
            return Vec::new();
        }
        let mut orders = self.stand(topology);
        match self.mode {
            Mode::Proactive => {}
            Mode::Hybrid => orders.extend(self.choose_again(now, topology)),
            Mode::Reactive => orders.extend(self.reroute(now, topology)),
        }
        orders
    }

    /// New ways for the flows whose ways are broken.
    fn reroute(&mut self, now: Nanos, topology: &Topology) -> Vec<Order> {
        let broken = |each: &Installed| each.path.iter().any(|channel| !self.graph.is_up(*channel));
        let broken = self.installed.iter().filter(|(_, each)| broken(each));
        let broken: Vec<(Key, Installed)> =
            broken.map(|(key, each)| (*key, each.clone())).collect();
        for (_, each) in &broken {
            self.routing.displace(&each.flow);
        }
        let mut orders = Vec::new();
        for (key, Installed { flow, path: old }) in broken {
            let (fields, flow) = (key.0, Asked { at: now, ..flow });
            let Some(first) = old.first().map(|channel| begins(topology, *channel)) else {
                continue;
            };
            let path = self.routing.path(&mut self.graph, topology, first, &flow);
            let path = path.unwrap_or_default();
            let stays: BTreeSet<NodeId> = path
                .iter()
                .map(|channel| begins(topology, *channel))
                .collect();
            // From the last switch to the first, which turns the flow over.
            for (index, channel) in path.iter().enumerate().rev() {
                orders.push(self.entry(topology, *channel, &fields, index == 0));
            }
            for channel in &old {
                let node = begins(topology, *channel);
                if !stays.contains(&node) {
                    let (matching, priority) = (Match::flow(&fields), FLOW);
                    let down = Down::Delete { matching, priority };
                    orders.push(Order { node, down });
                }
            }
            if path.is_empty() {
                self.installed.remove(&key);
            } else {
                self.installed.insert(key, Installed { flow, path });
            }
        }
        orders
    }

    /// The first links of flows whose first links are not the right ones any more.
    fn choose_again(&mut self, now: Nanos, topology: &Topology) -> Vec<Order> {
        let mut orders = Vec::new();
        let all: Vec<(Key, Installed)> = self
            .installed
            .iter()
            .map(|(key, each)| (*key, each.clone()))
            .collect();
        let keeps = matches!(self.routing.standing(), Standing::Hashed | Standing::Pairs);
        for (key, Installed { flow, path: old }) in all {
            let (fields, flow) = (key.0, Asked { at: now, ..flow });
            let (Some(&channel), Some(home)) =
                (old.first(), self.graph.home(flow.destination.ip()))
            else {
                continue;
            };
            let node = begins(topology, channel);
            let next = self.graph.next(node, home.switch);
            let leads = channel == home.channel || next.iter().any(|(each, ..)| *each == channel);
            if keeps && leads && self.graph.is_up(channel) {
                continue;
            }
            let path = self.routing.path(&mut self.graph, topology, node, &flow);
            match path.and_then(|path| path.first().copied()) {
                Some(first) if first == channel => {}
                Some(first) => {
                    orders.push(self.entry(topology, first, &fields, true));
                    let path = vec![first];
                    self.installed.insert(key, Installed { flow, path });
                }
                None => {
                    let (matching, priority) = (Match::flow(&fields), FLOW);
                    let down = Down::Delete { matching, priority };
                    orders.push(Order { node, down });
                    self.installed.remove(&key);
                }
            }
        }
        orders
    }
}

fn matching((source, destination): Pair) -> Match {
    let made = Match::any().destination(destination, u8::MAX);
    match source {
        Some(source) => made.source(source, u8::MAX),
        None => made,
    }
}

/// A flow as a controller is asked about it.
pub(crate) fn asked(
    seed: u64,
    source: std::net::SocketAddr,
    destination: std::net::SocketAddr,
    protocol: u8,
) -> Asked {
    let label = crate::flow::label(source, destination);
    Asked {
        at: 0,
        source,
        destination,
        protocol,
        hash: random::mix(random::mix(seed ^ label) ^ u64::from(protocol)),
    }
}

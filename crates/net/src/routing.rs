//! Routes: from a host's address to another's, as interned lists of channels.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;

use crate::ids::{ChannelId, InterfaceId, Nanos, NodeId, NodeKind, RouteId};
use crate::random::mix;
use crate::topology::Topology;

/// Follows the last channel of a path in the table of paths.
pub(crate) const END: u32 = u32::MAX;

/// Addresses that agree with `address` in their first `length` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the prefix length of {address} must be at most {limit}, not {length}", limit = bits(*.address).1)]
pub struct PrefixError {
    pub address: IpAddr,
    pub length: u8,
}

/// An address's bits, left-aligned in 128, and how many there are.
fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

impl Prefix {
    /// # Errors
    /// A length beyond the address's bits.
    pub fn new(address: IpAddr, length: u8) -> Result<Self, PrefixError> {
        if length > bits(address).1 {
            return Err(PrefixError { address, length });
        }
        Ok(Self { address, length })
    }

    pub fn length(&self) -> u8 {
        self.length
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, width) = bits(self.address);
        let (other, other_width) = bits(address);
        let mask = u128::MAX
            .checked_shl(128 - u32::from(self.length))
            .unwrap_or(0);
        width == other_width && (own ^ other) & mask == 0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct StaticRoute {
    pub source: Option<Prefix>,
    pub destination: Prefix,
    pub out: InterfaceId,
}

impl StaticRoute {
    fn matches(&self, src: IpAddr, dst: IpAddr) -> bool {
        self.destination.contains(dst) && self.source.is_none_or(|source| source.contains(src))
    }
}

/// How a node chooses among its channels on paths of fewest hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EqualPaths {
    /// That of least propagation delay, then of lowest id.
    #[default]
    LeastDelay,
    /// Equal-cost multipath: by a hash of the packet's label, the node and this seed (RFC 2992's hash-threshold with an ideal hash).
    Ecmp { seed: u64 },
    /// The next one for each route that is asked for, as a controller that sees every new flow can place them.
    InTurn,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("there is no {0}")]
    UnknownNode(NodeId),
    #[error("no interface has the address {0}")]
    UnknownDestination(IpAddr),
    #[error("{destination} is an address of {node} itself")]
    Local { node: NodeId, destination: IpAddr },
    #[error("{node} has neither the address {source_address} nor a static route for it")]
    ForeignSource {
        node: NodeId,
        source_address: IpAddr,
    },
    #[error("{interface} of {node} has no link, on the way from {from} to {destination}")]
    NoLink {
        interface: InterfaceId,
        node: NodeId,
        from: NodeId,
        destination: IpAddr,
    },
    #[error("{at} knows no way to {destination}, on the way from {from} to {to}")]
    Unreachable {
        at: NodeId,
        from: NodeId,
        to: NodeId,
        destination: IpAddr,
    },
    #[error("the way from {from} to {destination} ends at {host}, a host, which does not forward")]
    EndsAtHost {
        host: NodeId,
        from: NodeId,
        destination: IpAddr,
    },
    #[error("static routes from {from} to {destination} form a loop through {}", list(.nodes))]
    Loop {
        from: NodeId,
        destination: IpAddr,
        nodes: Vec<NodeId>,
    },
}

fn list(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    names.join(", ")
}

/// How far a forwarding node is from another: (hops, propagation delay).
type Distance = (u32, Nanos);

const UNREACHED: Distance = (u32::MAX, Nanos::MAX);

/// The routes found so far and what was computed on the way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routing {
    equal: EqualPaths,
    /// How many routes lead through a node towards another: whose turn it is.
    placed: BTreeMap<(NodeId, NodeId), u64>,
    /// To each node that was asked for, from every node that forwards, by rank.
    distances: BTreeMap<NodeId, Vec<Distance>>,
    /// The same to the gate of the last query that went round hosts that forward.
    round: Option<(Round, Vec<Distance>)>,
    /// By a hash of the path; where two have the same, the second has the next number.
    known: BTreeMap<u64, RouteId>,
    /// All paths, each followed by [`END`].
    pub table: Vec<u32>,
    /// Where each route's path starts in `table`.
    pub starts: Vec<u32>,
}

impl Routing {
    pub fn forget_distances(&mut self) {
        self.distances.clear();
        self.round = None;
    }

    fn intern(&mut self, path: &[ChannelId]) -> RouteId {
        let mut key = (path.iter()).fold(0, |key, channel| mix(key ^ u64::from(channel.0)));
        while let Some(&route) = self.known.get(&key) {
            if self.leads_over(route, path) {
                return route;
            }
            key = key.wrapping_add(1);
        }
        let route = self.append(path);
        self.known.insert(key, route);
        route
    }

    fn leads_over(&self, route: RouteId, path: &[ChannelId]) -> bool {
        let laid = self.table[self.starts[route.index()] as usize..].iter();
        let own = path.iter().map(|channel| channel.0).chain([END]);
        own.zip(laid).all(|(own, laid)| own == *laid)
    }

    fn append(&mut self, path: &[ChannelId]) -> RouteId {
        let route = RouteId(self.starts.len() as u32);
        self.starts.push(self.table.len() as u32);
        self.table.extend(path.iter().map(|channel| channel.0));
        self.table.push(END);
        route
    }
}

/// A way to a gate that does not lead through its own ends where these are hosts that forward: it begins and ends at the links of the
/// interfaces that own the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    gate: NodeId,
    ends: [NodeId; 2],
}

/// What a route is looked for between.
#[derive(Clone, Copy)]
struct Query {
    from: NodeId,
    src: IpAddr,
    dst: IpAddr,
    label: u64,
    /// The interface that owns `dst`, its node, and the node that leads there: the one at the other end of a host's link, or a router itself.
    target: InterfaceId,
    to: NodeId,
    gate: Option<NodeId>,
}

impl Topology {
    /// How routes that are asked for from now on choose between shortest paths.
    pub fn set_equal_paths(&mut self, equal: EqualPaths) {
        self.routing.equal = equal;
    }

    /// The route of packets from `src` at node `from` to `dst`.
    ///
    /// At each node a static route counts first. Otherwise a host sends by the interface that owns `src`, and every other node along a
    /// path of fewest hops to the link of the interface that owns `dst`, or to its node if that is a router. Where none leads to that link, the
    /// packets take the shortest path to another interface of the host: hosts follow the weak host model, as Linux does. `label` is what ECMP hashes, for example a flow's ports. The
    /// state of links plays no part. The same path always gives the same id. Each call counts as a new flow for
    /// [`EqualPaths::InTurn`].
    ///
    /// # Errors
    /// Why there is no route.
    pub fn route(
        &mut self,
        from: NodeId,
        src: IpAddr,
        dst: IpAddr,
        label: u64,
    ) -> Result<RouteId, RouteError> {
        let path = self.find(from, src, dst, label)?;
        Ok(self.routing.intern(&path))
    }

    /// Whether the node of some channel on a route begins several paths of fewest hops and no static route decides there: by
    /// [`EqualPaths`] flows may differ in what they take.
    ///
    /// # Errors
    /// As [`Topology::route`].
    pub fn has_choice(
        &mut self,
        from: NodeId,
        src: IpAddr,
        dst: IpAddr,
    ) -> Result<bool, RouteError> {
        let (path, query) = self.search(from, src, dst, 0)?;
        let mut begins = path.iter().map(|channel| {
            let from = self.edges[channel.index()].from;
            self.interfaces[from.index()].node
        });
        Ok(begins.any(|node| {
            let fixed = self.fixed(node, query).is_some();
            !fixed && !self.sends_by_source(node, query) && self.candidates(node, query).count() > 1
        }))
    }

    /// As [`Topology::route`] through the owners of the addresses in `via`, in this order: a loose source route (RFC 791 section 3.1).
    ///
    /// # Errors
    /// As there, of each part of the way.
    pub fn route_via(
        &mut self,
        from: NodeId,
        src: IpAddr,
        via: &[IpAddr],
        dst: IpAddr,
        label: u64,
    ) -> Result<RouteId, RouteError> {
        let mut node = from;
        let mut path = Vec::new();
        for &stop in via.iter().chain([&dst]) {
            let target = self
                .owner(stop)
                .ok_or(RouteError::UnknownDestination(stop))?;
            let reached = self.interfaces[target.index()].node;
            if reached != node {
                path.extend(self.find(node, src, stop, label)?);
            }
            node = reached;
            if stop != dst && !self.nodes[node.index()].kind.forwards() {
                return Err(RouteError::EndsAtHost {
                    host: node,
                    from,
                    destination: dst,
                });
            }
        }
        if path.is_empty() {
            return Err(RouteError::Local {
                node: from,
                destination: dst,
            });
        }
        Ok(self.routing.intern(&path))
    }

    fn find(
        &mut self,
        from: NodeId,
        src: IpAddr,
        dst: IpAddr,
        label: u64,
    ) -> Result<Vec<ChannelId>, RouteError> {
        let (path, query) = self.search(from, src, dst, label)?;
        if self.routing.equal == EqualPaths::InTurn
            && let Some(gate) = query.gate
        {
            for channel in &path {
                let from = self.edges[channel.index()].from;
                let node = self.interfaces[from.index()].node;
                *self.routing.placed.entry((node, gate)).or_default() += 1;
            }
        }
        Ok(path)
    }

    /// The channels of a route, and by which interface of the destination's they were found.
    fn search(
        &mut self,
        from: NodeId,
        src: IpAddr,
        dst: IpAddr,
        label: u64,
    ) -> Result<(Vec<ChannelId>, Query), RouteError> {
        if from.index() >= self.nodes.len() {
            return Err(RouteError::UnknownNode(from));
        }
        let target = self.owner(dst).ok_or(RouteError::UnknownDestination(dst))?;
        let to = self.interfaces[target.index()].node;
        if to == from {
            return Err(RouteError::Local {
                node: from,
                destination: dst,
            });
        }
        let gate = if self.nodes[to.index()].kind.is_host() {
            self.neighbour(target).map(|(_, node)| node)
        } else {
            Some(to)
        };
        let query = Query {
            from,
            src,
            dst,
            label,
            target,
            to,
            gate,
        };
        self.measure(query);
        match self.walk(query) {
            Ok(path) => Ok((path, query)),
            Err(refused) => self.walk_to_another_interface(query).ok_or(refused),
        }
    }

    /// The route over these channels, each of which must begin at the node where the one before it ends; nothing for another list or none.
    pub fn route_over(&mut self, path: &[ChannelId]) -> Option<RouteId> {
        self.joined(path).then(|| self.routing.intern(path))
    }

    /// As [`Topology::route_over`], but a route that no other call gives.
    pub(crate) fn lay(&mut self, path: &[ChannelId]) -> Option<RouteId> {
        self.joined(path).then(|| self.routing.append(path))
    }

    /// Ends a route behind each of its channels. An interned one would stay cut for whoever asks next.
    pub(crate) fn cut(&mut self, route: RouteId) {
        let positions = self.positions(route);
        for position in positions.skip(1) {
            self.routing.table[position as usize] = END;
        }
    }

    /// Where a route stands in the table of paths, its end included; empty if there is no such route.
    pub(crate) fn positions(&self, route: RouteId) -> Range<u32> {
        let starts = &self.routing.starts;
        let end = self.routing.table.len() as u32;
        let of = |index: usize| starts.get(index).copied().unwrap_or(end);
        of(route.index())..of(route.index() + 1)
    }

    /// Whether each of these channels begins where the one before it ends, and there are any.
    fn joined(&self, path: &[ChannelId]) -> bool {
        let node = |interface: InterfaceId| self.interfaces[interface.index()].node;
        let ends = path.iter().map(|channel| {
            let edge = self.edges.get(channel.index())?;
            Some((node(edge.from), node(edge.to)))
        });
        let Some(ends) = ends.collect::<Option<Vec<_>>>() else {
            return false;
        };
        !path.is_empty() && ends.windows(2).all(|pair| pair[0].1 == pair[1].0)
    }

    /// The channels of a route; empty if there is no such route.
    pub fn path(&self, route: RouteId) -> impl Iterator<Item = ChannelId> + '_ {
        let start = self
            .routing
            .starts
            .get(route.index())
            .map_or(self.routing.table.len(), |start| *start as usize);
        self.routing.table[start..]
            .iter()
            .take_while(|channel| **channel != END)
            .map(|channel| ChannelId(*channel))
    }

    /// The sum of a route's propagation delays as built.
    pub fn delay(&self, route: RouteId) -> Nanos {
        self.path(route)
            .map(|channel| self.edges[channel.index()].config.delay)
            .fold(0, Nanos::saturating_add)
    }

    /// The channel that leaves an interface and the node that it reaches.
    fn neighbour(&self, interface: InterfaceId) -> Option<(ChannelId, NodeId)> {
        let channel = self.interfaces[interface.index()].channel?;
        let far = self.edges[channel.index()].to;
        Some((channel, self.interfaces[far.index()].node))
    }

    fn walk(&self, query: Query) -> Result<Vec<ChannelId>, RouteError> {
        let mut path = Vec::new();
        let mut visited = vec![query.from];
        loop {
            let node = visited[visited.len() - 1];
            let out = self.choose(node, query)?;
            let (channel, next) = self.neighbour(out).ok_or(RouteError::NoLink {
                interface: out,
                node,
                from: query.from,
                destination: query.dst,
            })?;
            path.push(channel);
            if next == query.to {
                return Ok(path);
            }
            if !self.nodes[next.index()].kind.forwards() {
                return Err(RouteError::EndsAtHost {
                    host: next,
                    from: query.from,
                    destination: query.dst,
                });
            }
            if let Some(first) = visited.iter().position(|node| *node == next) {
                return Err(RouteError::Loop {
                    from: query.from,
                    destination: query.dst,
                    nodes: visited.split_off(first),
                });
            }
            visited.push(next);
        }
    }

    /// The way to a host where none leads to the link of the interface that owns the address: the shortest to another interface of that
    /// host. Hosts take packets to any of their addresses on every interface, as Linux does (the weak host model, RFC 1122 section 3.3.4.2).
    fn walk_to_another_interface(&mut self, query: Query) -> Option<(Vec<ChannelId>, Query)> {
        let host = &self.nodes[query.to.index()];
        if !host.kind.is_host() {
            return None;
        }
        let mut found = Vec::new();
        for target in host.interfaces.clone() {
            let Some((_, gate)) = self.neighbour(target) else {
                continue;
            };
            let gate = Some(gate);
            let other = Query {
                target,
                gate,
                ..query
            };
            self.measure(other);
            found.extend(self.walk(other).ok().map(|path| (path, other)));
        }
        let delay = |path: &[ChannelId]| {
            path.iter()
                .map(|channel| self.edges[channel.index()].config.delay)
                .fold(0, Nanos::saturating_add)
        };
        found
            .into_iter()
            .min_by_key(|(path, _)| (path.len(), delay(path)))
    }

    /// The interface by which packets leave a node.
    fn choose(&self, node: NodeId, query: Query) -> Result<InterfaceId, RouteError> {
        if let Some(out) = self.fixed(node, query) {
            return Ok(out);
        }
        if self.sends_by_source(node, query) {
            return self
                .owner(query.src)
                .filter(|interface| self.interfaces[interface.index()].node == node)
                .ok_or(RouteError::ForeignSource {
                    node,
                    source_address: query.src,
                });
        }
        self.shortest(node, query).ok_or(RouteError::Unreachable {
            at: node,
            from: query.from,
            to: query.to,
            destination: query.dst,
        })
    }

    /// The interface of the static route that counts at a node.
    fn fixed(&self, node: NodeId, query: Query) -> Option<InterfaceId> {
        let routes = self.nodes[node.index()].routes.iter();
        let chosen = routes
            .filter(|route| route.matches(query.src, query.dst))
            .min_by_key(|route| {
                let source = route.source.map(|source| source.length());
                Reverse((source, route.destination.length()))
            });
        chosen.map(|route| route.out)
    }

    /// Whether packets leave a node by the interface that owns their source.
    fn sends_by_source(&self, node: NodeId, query: Query) -> bool {
        let kind = self.nodes[node.index()].kind;
        kind.is_host() && (node == query.from || !kind.forwards())
    }

    /// The interfaces of a forwarding node, other than the gate, on paths of fewest hops.
    fn candidates(&self, node: NodeId, query: Query) -> impl Iterator<Item = InterfaceId> + '_ {
        let known = query.gate.and_then(|gate| self.distances(gate, query));
        let of = move |node: NodeId| {
            let rank = self.nodes[node.index()].rank?;
            Some(known?[rank as usize])
        };
        let hops = of(node).map(|(hops, _)| hops);
        here_interfaces(self, node).filter(move |interface| {
            let beyond = self.neighbour(*interface).and_then(|(_, next)| of(next));
            matches!((beyond, hops), (Some((beyond, _)), Some(hops)) if beyond < hops)
        })
    }

    /// The interface on a shortest path from a forwarding node.
    fn shortest(&self, node: NodeId, query: Query) -> Option<InterfaceId> {
        let gate = query.gate?;
        if node == gate {
            let channel = self.interfaces[query.target.index()].channel?;
            return Some(self.edges[channel.index()].to);
        }
        let distances = self.distances(gate, query)?;
        let of = |node: NodeId| {
            let rank = self.nodes[node.index()].rank?;
            Some(distances[rank as usize])
        };
        let (_, delay) = of(node).filter(|distance| *distance != UNREACHED)?;
        let picked = |number: u64| {
            let candidates: Vec<InterfaceId> = self.candidates(node, query).collect();
            let count = candidates.len().max(1) as u64;
            candidates.get((number % count) as usize).copied()
        };
        match self.routing.equal {
            EqualPaths::Ecmp { seed } => {
                picked(mix(mix(seed ^ mix(query.label)) ^ u64::from(node.0)))
            }
            EqualPaths::InTurn => picked(
                self.routing
                    .placed
                    .get(&(node, gate))
                    .copied()
                    .unwrap_or_default(),
            ),
            EqualPaths::LeastDelay => self
                .candidates(node, query)
                .filter_map(|interface| {
                    let (channel, next) = self.neighbour(interface)?;
                    let link = self.edges[channel.index()].config.delay;
                    let beyond = of(next)?.1;
                    (link.saturating_add(beyond) == delay).then_some((channel, interface))
                })
                .min_by_key(|(channel, _)| *channel)
                .map(|(_, interface)| interface),
        }
    }

    fn round(&self, gate: NodeId, query: Query) -> Option<Round> {
        let ends = [query.from, query.to];
        let relays = |node: NodeId| self.nodes[node.index()].kind == NodeKind::ForwardingHost;
        ends.into_iter().any(relays).then_some(Round { gate, ends })
    }

    fn distances(&self, gate: NodeId, query: Query) -> Option<&Vec<Distance>> {
        match self.round(gate, query) {
            None => self.routing.distances.get(&gate),
            Some(asked) => {
                let (known, distances) = self.routing.round.as_ref()?;
                (*known == asked).then_some(distances)
            }
        }
    }

    /// Computes the distances to a query's gate, unless they are known.
    fn measure(&mut self, query: Query) {
        let Some(gate) = query.gate else {
            return;
        };
        if self.distances(gate, query).is_some() {
            return;
        }
        match self.round(gate, query) {
            None => {
                let distances = self.distances_to(gate, |_| true);
                self.routing.distances.insert(gate, distances);
            }
            Some(round) => {
                let distances = self.distances_to(gate, |node| !round.ends.contains(&node));
                self.routing.round = Some((round, distances));
            }
        }
    }

    /// The distances to a node over those that are `open`: breadth first, backwards.
    fn distances_to(&self, gate: NodeId, open: impl Fn(NodeId) -> bool) -> Vec<Distance> {
        let mut distances = vec![UNREACHED; self.forwarders as usize];
        if let Some(rank) = self.nodes[gate.index()].rank {
            distances[rank as usize] = (0, 0);
        }
        let mut queue = VecDeque::from([gate]);
        while let Some(node) = queue.pop_front() {
            let (hops, delay) = self.nodes[node.index()]
                .rank
                .map_or((0, 0), |rank| distances[rank as usize]);
            for interface in here_interfaces(self, node) {
                let Some((channel, before)) = self.neighbour(interface) else {
                    continue;
                };
                let Some(rank) = self.nodes[before.index()].rank.filter(|_| open(before)) else {
                    continue;
                };
                let inward = &self.edges[channel.index() ^ 1].config;
                let found = (hops + 1, delay.saturating_add(inward.delay));
                let known = &mut distances[rank as usize];
                if *known == UNREACHED {
                    queue.push_back(before);
                }
                *known = found.min(*known);
            }
        }
        distances
    }
}

fn here_interfaces(topology: &Topology, node: NodeId) -> impl Iterator<Item = InterfaceId> + '_ {
    topology.nodes[node.index()].interfaces.iter().copied()
}

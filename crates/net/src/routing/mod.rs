//! Routes: from a host's address to another's, as interned lists of channels.

mod distances;
mod paths;
mod prefix;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

use crate::ids::{ChannelId, InterfaceId, Nanos, NodeId, NodeKind, RouteId};
use crate::random::mix;
use crate::topology::Topology;
use distances::{Measured, Round, Towards};
pub(crate) use paths::{END, Paths};
pub(crate) use prefix::StaticRoute;
pub use prefix::{Prefix, PrefixError};

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
    #[error("{interface} of {node} has no link, on the path from {from} to {destination}")]
    NoLink {
        interface: InterfaceId,
        node: NodeId,
        from: NodeId,
        destination: IpAddr,
    },
    #[error("{at} has no route to {destination}, on the path from {from} to {to}")]
    Unreachable {
        at: NodeId,
        from: NodeId,
        to: NodeId,
        destination: IpAddr,
    },
    #[error("the path from {from} to {destination} ends at {host}, a host that does not forward")]
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

/// The routes found so far and what was computed on the way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routing {
    equal: EqualPaths,
    /// How many routes lead through a node towards another: whose turn it is.
    placed: BTreeMap<(NodeId, NodeId), u64>,
    measured: Measured,
    pub paths: Paths,
}

impl Routing {
    pub fn forget_distances(&mut self) {
        self.measured = Measured::default();
    }
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
        self.routing.forget_distances();
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
        Ok(self.routing.paths.intern(&path))
    }

    /// The channels of a route, without a new flow for [`EqualPaths::InTurn`].
    ///
    /// # Errors
    /// As of [`Topology::route`].
    pub fn way(
        &mut self,
        from: NodeId,
        src: IpAddr,
        dst: IpAddr,
    ) -> Result<Vec<ChannelId>, RouteError> {
        self.search(from, src, dst, 0).map(|(path, _)| path)
    }

    /// The addresses of a host from which packets lead to `dst`, first the one that its routing takes for a packet without a source: by a static
    /// route for any source, else by the shortest way, if it can to the interface that owns `dst`.
    pub fn sources(&mut self, from: NodeId, dst: IpAddr) -> Vec<IpAddr> {
        let unspecified = match dst {
            IpAddr::V4(_) => IpAddr::from([0; 4]),
            IpAddr::V6(_) => IpAddr::from([0; 16]),
        };
        let Some(target) = self.owner(dst) else {
            return Vec::new();
        };
        let own: Vec<_> = (self.addresses())
            .filter(|(address, owner)| {
                address.is_ipv4() == dst.is_ipv4() && self.node_of(*owner) == Ok(from)
            })
            .collect();
        let mut found = Vec::new();
        for (source, out) in own {
            let Ok((path, query)) = self.search(from, source, dst, 0) else {
                continue;
            };
            let unnamed = Query {
                src: unspecified,
                ..query
            };
            let fixed = self.fixed(from, unnamed).is_some_and(|fixed| fixed != out);
            let last = path.last().map(|channel| self.edges[channel.index()].to);
            let rank = (
                fixed,
                last != Some(target),
                path.len(),
                self.delay_of(&path),
                out,
            );
            found.push((rank, source));
        }
        found.sort();
        found.into_iter().map(|(_, source)| source).collect()
    }

    /// The sum of propagation delays as built.
    fn delay_of(&self, path: &[ChannelId]) -> Nanos {
        let delays = path
            .iter()
            .map(|channel| self.edges[channel.index()].config.delay);
        delays.fold(0, Nanos::saturating_add)
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
        let towards = self.towards(query);
        let mut begins = path.iter().map(|channel| {
            let from = self.edges[channel.index()].from;
            self.interfaces[from.index()].node
        });
        Ok(begins.any(|node| {
            let fixed = self.fixed(node, query).is_some();
            !fixed && !self.sends_by_source(node, query) && self.choices(node, towards) > 1
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
        Ok(self.routing.paths.intern(&path))
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
        self.joined(path).then(|| self.routing.paths.intern(path))
    }

    /// As [`Topology::route_over`], but a route that no other call gives.
    pub(crate) fn lay(&mut self, path: &[ChannelId]) -> Option<RouteId> {
        self.joined(path).then(|| self.routing.paths.append(path))
    }

    /// Ends a route behind each of its channels. An interned one would stay cut for whoever asks next.
    pub(crate) fn cut(&mut self, route: RouteId) {
        self.routing.paths.cut(route);
    }

    /// Where a route stands in the table of paths, its end included; empty if there is no such route.
    pub(crate) fn positions(&self, route: RouteId) -> Range<u32> {
        self.routing.paths.positions(route)
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
        self.routing.paths.of(route)
    }

    /// The sum of a route's propagation delays as built.
    pub fn delay(&self, route: RouteId) -> Nanos {
        self.path(route)
            .map(|channel| self.edges[channel.index()].config.delay)
            .fold(0, Nanos::saturating_add)
    }

    /// The channel that leaves an interface and the node that it reaches.
    pub(crate) fn neighbour(&self, interface: InterfaceId) -> Option<(ChannelId, NodeId)> {
        let channel = self.interfaces[interface.index()].channel?;
        let far = self.edges[channel.index()].to;
        Some((channel, self.interfaces[far.index()].node))
    }

    fn walk(&self, query: Query) -> Result<Vec<ChannelId>, RouteError> {
        let towards = self.towards(query);
        let mut path = Vec::new();
        let mut visited = vec![query.from];
        loop {
            let node = visited[visited.len() - 1];
            let (channel, next) = self.choose(node, query, towards)?;
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
        found
            .into_iter()
            .min_by_key(|(path, _)| (path.len(), self.delay_of(path)))
    }

    /// The channel by which packets leave a node, and the node that it reaches.
    fn choose(
        &self,
        node: NodeId,
        query: Query,
        towards: Option<Towards<'_>>,
    ) -> Result<(ChannelId, NodeId), RouteError> {
        let out = if let Some(out) = self.fixed(node, query) {
            out
        } else if self.sends_by_source(node, query) {
            let owner = self.owner(query.src);
            let own = owner.filter(|out| self.interfaces[out.index()].node == node);
            own.ok_or(RouteError::ForeignSource {
                node,
                source_address: query.src,
            })?
        } else {
            let shortest = towards.and_then(|towards| self.shortest(node, query, towards));
            return shortest.ok_or(RouteError::Unreachable {
                at: node,
                from: query.from,
                to: query.to,
                destination: query.dst,
            });
        };
        self.neighbour(out).ok_or(RouteError::NoLink {
            interface: out,
            node,
            from: query.from,
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

    /// How many links of a node are on paths of fewest hops.
    fn choices(&self, node: NodeId, towards: Option<Towards<'_>>) -> usize {
        let rank = self.nodes[node.index()].rank;
        let found = towards.zip(rank);
        found.map_or(0, |(towards, rank)| towards.candidates(node, rank).count())
    }

    /// The first channel of a shortest path from a forwarding node.
    fn shortest(
        &self,
        node: NodeId,
        query: Query,
        towards: Towards<'_>,
    ) -> Option<(ChannelId, NodeId)> {
        let gate = query.gate?;
        if node == gate {
            let (channel, _) = self.neighbour(query.target)?;
            return Some((self.opposite(channel), query.to));
        }
        let rank = self.nodes[node.index()].rank?;
        if !towards.reaches(rank) {
            return None;
        }
        let picked = |number: u64| {
            let count = towards.candidates(node, rank).count().max(1) as u64;
            towards
                .candidates(node, rank)
                .nth((number % count) as usize)
        };
        let link = match self.routing.equal {
            EqualPaths::Ecmp { seed } => {
                picked(mix(mix(seed ^ mix(query.label)) ^ u64::from(node.0)))
            }
            EqualPaths::InTurn => {
                let placed = self.routing.placed.get(&(node, gate));
                picked(placed.copied().unwrap_or_default())
            }
            EqualPaths::LeastDelay => towards.quickest(self, node, rank),
        };
        link.map(|link| (link.channel, link.next))
    }

    fn round(&self, gate: NodeId, query: Query) -> Option<Round> {
        let ends = [query.from, query.to];
        let relays = |node: NodeId| self.nodes[node.index()].kind == NodeKind::ForwardingHost;
        ends.into_iter().any(relays).then_some(Round { gate, ends })
    }

    fn towards(&self, query: Query) -> Option<Towards<'_>> {
        let gate = query.gate?;
        let measured = &self.routing.measured;
        measured.towards(gate, self.round(gate, query))
    }

    /// Computes the distances to a query's gate, unless they are known.
    fn measure(&mut self, query: Query) {
        let Some(gate) = query.gate else {
            return;
        };
        if self.towards(query).is_some() {
            return;
        }
        let round = self.round(gate, query);
        let with_delays = self.routing.equal == EqualPaths::LeastDelay;
        let mut measured = std::mem::take(&mut self.routing.measured);
        measured.measure(self, gate, round, with_delays);
        self.routing.measured = measured;
    }
}

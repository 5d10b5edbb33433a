//! How far forwarding nodes are from the gates that routes lead to.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::{ChannelId, Nanos, NodeId};
use crate::topology::Topology;

/// In place of the rank of a node that does not forward, and of the hops where no path leads to the gate.
const NONE: u32 = u32::MAX;

/// A link of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub channel: ChannelId,
    pub next: NodeId,
    rank: u32,
}

/// The links of each node, in the order of its interfaces.
#[derive(Clone, Debug)]
struct Links {
    all: Vec<Link>,
    /// Where those of each node begin in `all`, and the end.
    begins: Vec<u32>,
}

impl Links {
    fn of(topology: &Topology) -> Self {
        let mut all = Vec::with_capacity(topology.edges.len());
        let mut begins = Vec::with_capacity(topology.nodes.len() + 1);
        for node in &topology.nodes {
            begins.push(all.len() as u32);
            all.extend(node.interfaces.iter().filter_map(|&interface| {
                let (channel, next) = topology.neighbour(interface)?;
                Some(Link {
                    channel,
                    next,
                    rank: topology.nodes[next.index()].rank.unwrap_or(NONE),
                })
            }));
        }
        begins.push(all.len() as u32);
        Self { all, begins }
    }

    fn of_node(&self, node: NodeId) -> &[Link] {
        let (from, to) = (self.begins[node.index()], self.begins[node.index() + 1]);
        &self.all[from as usize..to as usize]
    }
}

/// A way to a gate that does not lead through its own ends where these are hosts that forward: it begins and ends at the links of the
/// interfaces that own the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Round {
    pub gate: NodeId,
    pub ends: [NodeId; 2],
}

/// From every node that forwards to one gate, by rank.
#[derive(Clone, Debug)]
struct Distances {
    hops: Vec<u32>,
    /// The least propagation delay of the paths of fewest hops; empty if nobody asks for it.
    delays: Vec<Nanos>,
}

/// The distances that were asked for so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    links: Option<Links>,
    to: BTreeMap<NodeId, Distances>,
    /// Those to the gate of the last query that went round hosts that forward.
    round: Option<(Round, Distances)>,
}

impl Measured {
    pub fn towards(&self, gate: NodeId, round: Option<Round>) -> Option<Towards<'_>> {
        let distances = match round {
            None => self.to.get(&gate)?,
            Some(asked) => {
                let (known, distances) = self.round.as_ref()?;
                (*known == asked).then_some(distances)?
            }
        };
        let links = self.links.as_ref()?;
        Some(Towards { links, distances })
    }

    pub fn measure(
        &mut self,
        topology: &Topology,
        gate: NodeId,
        round: Option<Round>,
        delays: bool,
    ) {
        let links = self.links.get_or_insert_with(|| Links::of(topology));
        let open = |node: NodeId| round.is_none_or(|round| !round.ends.contains(&node));
        let distances = distances(topology, links, gate, open, delays);
        match round {
            None => _ = self.to.insert(gate, distances),
            Some(round) => self.round = Some((round, distances)),
        }
    }
}

/// Breadth first, backwards, over nodes that are `open`.
fn distances(
    topology: &Topology,
    links: &Links,
    gate: NodeId,
    open: impl Fn(NodeId) -> bool,
    with_delays: bool,
) -> Distances {
    let rank = |node: NodeId| topology.nodes[node.index()].rank;
    let forwarders = topology.forwarders as usize;
    let mut hops = vec![NONE; forwarders];
    let mut delays = vec![Nanos::MAX; if with_delays { forwarders } else { 0 }];
    if let Some(rank) = rank(gate) {
        hops[rank as usize] = 0;
        if let Some(own) = delays.get_mut(rank as usize) {
            *own = 0;
        }
    }
    let mut queue = VecDeque::from([gate]);
    while let Some(node) = queue.pop_front() {
        let here = rank(node).map_or(0, |rank| hops[rank as usize]);
        let delay = rank(node).and_then(|rank| delays.get(rank as usize).copied());
        for link in links.of_node(node) {
            let Some(known) = hops.get_mut(link.rank as usize) else {
                continue;
            };
            if !open(link.next) {
                continue;
            }
            if *known == NONE {
                *known = here + 1;
                queue.push_back(link.next);
            }
            if *known == here + 1
                && let Some(least) = delays.get_mut(link.rank as usize)
            {
                let inward = topology.edges[link.channel.index() ^ 1].config.delay;
                *least = (*least).min(delay.unwrap_or(0).saturating_add(inward));
            }
        }
    }
    Distances { hops, delays }
}

/// What leads to a gate.
#[derive(Clone, Copy)]
pub(super) struct Towards<'a> {
    links: &'a Links,
    distances: &'a Distances,
}

impl<'a> Towards<'a> {
    /// The links of a forwarding node, given by its rank too, on paths of fewest hops.
    pub fn candidates(self, node: NodeId, rank: u32) -> impl Iterator<Item = Link> + use<'a> {
        let hops = &self.distances.hops;
        let here = hops[rank as usize];
        let links = self.links.of_node(node).iter().copied();
        links.filter(move |link| {
            hops.get(link.rank as usize)
                .is_some_and(|&beyond| beyond < here)
        })
    }

    pub fn reaches(self, rank: u32) -> bool {
        self.distances.hops[rank as usize] != NONE
    }

    /// Of a node that reaches the gate, the candidate on the path of least propagation delay, and of lowest channel.
    pub fn quickest(self, topology: &Topology, node: NodeId, rank: u32) -> Option<Link> {
        let delays = &self.distances.delays;
        let least = *delays.get(rank as usize)?;
        let quickest = self.candidates(node, rank).filter(|link| {
            let own = topology.edges[link.channel.index()].config.delay;
            own.saturating_add(delays[link.rank as usize]) == least
        });
        quickest.min_by_key(|link| link.channel)
    }
}

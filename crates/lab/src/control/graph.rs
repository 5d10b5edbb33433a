//! What a controller knows of the network: switches, links that are up, and where each address is.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use polypath_net::{ChannelId, Nanos, NodeId, Topology};
use polypath_switch::Fabric;

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// The switch that its host is at.
    pub switch: NodeId,
    /// The channel from there to the host.
    pub channel: ChannelId,
}

/// The ways of fewest links to one switch, from each node.
#[derive(Clone, Debug)]
struct Ways {
    /// [`u32::MAX`]: there is none.
    hops: Vec<u32>,
    /// How many there are.
    count: Vec<u64>,
    /// The least delay of one.
    delay: Vec<Nanos>,
}

#[derive(Debug)]
pub(crate) struct Graph {
    /// By node: the channels to other switches, by id, and where they lead.
    neighbours: Vec<Vec<(ChannelId, NodeId)>>,
    switches: Vec<NodeId>,
    homes: BTreeMap<IpAddr, Home>,
    /// By channel.
    up: Vec<bool>,
    delays: Vec<Nanos>,
    ports: Vec<u32>,
    ways: BTreeMap<NodeId, Ways>,
}

impl Graph {
    pub fn new(topology: &Topology, fabric: &Fabric) -> Self {
        let channels = (0..topology.channels() as u32).map(ChannelId);
        let mut graph = Self {
            neighbours: vec![Vec::new(); topology.nodes()],
            switches: fabric.switches().map(|(node, _)| node).collect(),
            homes: BTreeMap::new(),
            up: Vec::new(),
            delays: Vec::new(),
            ports: Vec::new(),
            ways: BTreeMap::new(),
        };
        let mut from = Vec::new();
        for channel in channels {
            let ends = topology.ends(channel);
            let node = |interface| topology.node_of(interface).unwrap_or_default();
            let (a, b) = ends.map_or_else(Default::default, |(a, b)| (node(a), node(b)));
            if fabric.switch(a).is_some() && fabric.switch(b).is_some() {
                graph.neighbours[a.index()].push((channel, b));
            }
            let out = ends.map_or(0, |(out, _)| fabric.port(out));
            graph
                .up
                .push(fabric.switch(a).is_none_or(|it| it.is_up(out)));
            graph.ports.push(out);
            graph
                .delays
                .push(topology.propagation(channel).unwrap_or(0));
            from.push(a);
        }
        for (address, interface) in topology.addresses() {
            let Some(channel) = topology.channel_of(interface) else {
                continue;
            };
            let channel = topology.opposite(channel);
            let switch = from[channel.index()];
            if fabric.switch(switch).is_some() {
                graph.homes.insert(address, Home { switch, channel });
            }
        }
        graph
    }

    pub fn switches(&self) -> &[NodeId] {
        &self.switches
    }

    pub fn homes(&self) -> &BTreeMap<IpAddr, Home> {
        &self.homes
    }

    pub fn home(&self, address: IpAddr) -> Option<Home> {
        self.homes.get(&address).copied()
    }

    pub fn is_up(&self, channel: ChannelId) -> bool {
        self.up.get(channel.index()).copied().unwrap_or(false)
    }

    /// The number of the port that a channel leaves by.
    pub fn port(&self, channel: ChannelId) -> u32 {
        self.ports.get(channel.index()).copied().unwrap_or(0)
    }

    /// A link was heard to be up or down, by one of its channels. False: that was known.
    pub fn set_link(&mut self, channel: ChannelId, up: bool) -> bool {
        let both = [channel.index(), channel.index() ^ 1];
        let news = both.iter().any(|index| self.up.get(*index) == Some(&!up));
        for index in both {
            if let Some(state) = self.up.get_mut(index) {
                *state = up;
            }
        }
        if news {
            self.ways.clear();
        }
        news
    }

    /// The links of a switch to others that are up, and where they lead.
    pub fn links(&self, switch: NodeId) -> impl Iterator<Item = (ChannelId, NodeId)> + '_ {
        let all = self.neighbours.get(switch.index()).into_iter().flatten();
        all.copied().filter(|(channel, _)| self.is_up(*channel))
    }

    fn ways(&mut self, to: NodeId) -> &Ways {
        if !self.ways.contains_key(&to) {
            let ways = self.measure(to);
            self.ways.insert(to, ways);
        }
        &self.ways[&to]
    }

    /// Breadth first from `to`, backwards: links are up in both directions or in none.
    fn measure(&self, to: NodeId) -> Ways {
        let count = self.neighbours.len();
        let mut ways = Ways {
            hops: vec![u32::MAX; count],
            count: vec![0; count],
            delay: vec![Nanos::MAX; count],
        };
        (
            ways.hops[to.index()],
            ways.count[to.index()],
            ways.delay[to.index()],
        ) = (0, 1, 0);
        let mut queue = VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            let here = node.index();
            for (channel, before) in self.links(node) {
                let there = before.index();
                if ways.hops[there] == u32::MAX {
                    ways.hops[there] = ways.hops[here] + 1;
                    queue.push_back(before);
                }
                if ways.hops[there] == ways.hops[here] + 1 {
                    ways.count[there] = ways.count[there].saturating_add(ways.count[here]);
                    let link = self.delays[channel.index() ^ 1];
                    let delay = ways.delay[here].saturating_add(link);
                    ways.delay[there] = ways.delay[there].min(delay);
                }
            }
        }
        ways
    }

    /// The links from a switch that begin a way of fewest links to another, with how many ways each begins.
    pub fn next(&mut self, from: NodeId, to: NodeId) -> Vec<(ChannelId, NodeId, u64)> {
        let ways = self.ways(to).hops_from(from);
        let Some(hops) = ways else {
            return Vec::new();
        };
        let ways = &self.ways[&to];
        let closer = self.links(from);
        let closer =
            closer.filter(|(_, node)| ways.hops[node.index()].checked_add(1) == Some(hops));
        closer
            .map(|(channel, node)| (channel, node, ways.count[node.index()]))
            .collect()
    }

    /// How many ways of fewest links there are from one switch to another.
    pub fn count(&mut self, from: NodeId, to: NodeId) -> u64 {
        self.ways(to).count.get(from.index()).copied().unwrap_or(0)
    }

    /// The way of this number, in the order of the links' ids.
    pub fn way(&mut self, from: NodeId, to: NodeId, mut number: u64) -> Option<Vec<ChannelId>> {
        let (mut node, mut path) = (from, Vec::new());
        while node != to {
            let next = self.next(node, to);
            let taken = next.iter().find(|(_, _, count)| {
                let here = number < *count;
                if !here {
                    number -= count;
                }
                here
            });
            let (channel, beyond, _) = *taken?;
            path.push(channel);
            node = beyond;
        }
        Some(path)
    }

    /// The link that begins the way of least delay among those of fewest links, then that of lowest id.
    pub fn quickest(&mut self, from: NodeId, to: NodeId) -> Option<(ChannelId, NodeId)> {
        let next = self.next(from, to);
        let ways = self.ways.get(&to)?;
        let best = next.into_iter().min_by_key(|(channel, node, _)| {
            let link = self.delays[channel.index()];
            (link.saturating_add(ways.delay[node.index()]), *channel)
        });
        best.map(|(channel, node, _)| (channel, node))
    }
}

impl Ways {
    fn hops_from(&self, from: NodeId) -> Option<u32> {
        let hops = self.hops.get(from.index()).copied();
        hops.filter(|hops| *hops != u32::MAX && *hops > 0)
    }
}

//! All flows over one tree, as switches find it that speak the spanning tree protocol.
//!
//! The root is the first switch. Every other switch reaches it over the fewest links, by the first neighbour and the
//! first link.

use std::collections::{BTreeMap, VecDeque};

use polypath_net::{ChannelId, NodeId, Topology};
use polypath_settings::{Algorithm, algorithm};

use super::routing::with_last;
use super::{Asked, Graph, Routing, Standing};

algorithm! {
    "spanning-tree",
    "The path over one spanning tree, whose root is the first switch",
    "IEEE 802.1D-2004 section 17";
    SpanningTree
}

impl Algorithm<dyn Routing> for SpanningTree {
    fn make(self) -> Box<dyn Routing> {
        Box::new(self)
    }
}

#[derive(Default)]
pub(super) struct SpanningTree;

/// From each switch but the root the channel that leads to its parent, and that; the trees of parts that are not joined.
type Parents = BTreeMap<NodeId, (ChannelId, NodeId)>;

fn parents(graph: &Graph) -> Parents {
    let mut parents = Parents::new();
    let mut seen = std::collections::BTreeSet::new();
    for &root in graph.switches() {
        if !seen.insert(root) {
            continue;
        }
        let mut queue = VecDeque::from([root]);
        while let Some(node) = queue.pop_front() {
            let mut links: Vec<_> = graph.links(node).collect();
            links.sort_by_key(|(channel, far)| (*far, *channel));
            for (channel, far) in links {
                if seen.insert(far) {
                    parents.insert(far, (ChannelId(channel.0 ^ 1), node));
                    queue.push_back(far);
                }
            }
        }
    }
    parents
}

/// The channels from a switch to the root.
fn up(parents: &Parents, from: NodeId) -> Vec<(ChannelId, NodeId)> {
    let mut way = Vec::new();
    let mut node = from;
    while let Some(&(channel, parent)) = parents.get(&node) {
        way.push((channel, parent));
        node = parent;
    }
    way
}

fn between(parents: &Parents, from: NodeId, to: NodeId) -> Option<Vec<ChannelId>> {
    let (mut rise, mut fall) = (up(parents, from), up(parents, to));
    let root = |way: &[(ChannelId, NodeId)], start| way.last().map_or(start, |(_, node)| *node);
    if root(&rise, from) != root(&fall, to) {
        return None;
    }
    while rise.last().is_some() && rise.last() == fall.last() {
        rise.pop();
        fall.pop();
    }
    let falling = fall
        .iter()
        .rev()
        .map(|(channel, _)| ChannelId(channel.0 ^ 1));
    Some(
        rise.iter()
            .map(|(channel, _)| *channel)
            .chain(falling)
            .collect(),
    )
}

impl Routing for SpanningTree {
    fn path(
        &mut self,
        graph: &mut Graph,
        _: &Topology,
        from: NodeId,
        flow: &Asked,
    ) -> Option<Vec<ChannelId>> {
        let home = graph.home(flow.destination.ip())?;
        with_last(between(&parents(graph), from, home.switch), home.channel)
    }

    fn tree(&mut self, graph: &mut Graph, from: NodeId, to: NodeId) -> Option<ChannelId> {
        between(&parents(graph), from, to)?.first().copied()
    }

    fn standing(&self) -> Standing {
        Standing::Tree
    }

    fn strays(&self) -> bool {
        true
    }
}

//! The cheapest path between two addresses, by costs of channels that the caller gives.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;

use crate::ids::{ChannelId, InterfaceId, NodeId};
use crate::topology::Topology;

impl Topology {
    /// The channels of the cheapest path from `from`, where `src` is, to the owner of `dst`; of equal ones always the same. A host sends by
    /// the interface that owns `src` and is reached by the link of the one that owns `dst`; the path leads through neither of them, nor
    /// through hosts that do not forward. Nothing if there is no path. Static routes play no part.
    pub fn cheapest(
        &self,
        from: NodeId,
        src: IpAddr,
        dst: IpAddr,
        cost: impl Fn(ChannelId) -> u128,
    ) -> Option<Vec<ChannelId>> {
        let target = self.owner(dst)?;
        let to = self.interfaces[target.index()].node;
        let begins: Vec<InterfaceId> = if self.nodes.get(from.index())?.kind.is_host() {
            let own = self.owner(src)?;
            (self.interfaces[own.index()].node == from).then_some(vec![own])?
        } else {
            self.nodes[from.index()].interfaces.clone()
        };
        let may_end = |channel: ChannelId| {
            let end = self.edges[channel.index()].to;
            end == target || !self.nodes[to.index()].kind.is_host()
        };
        // By node: what it costs to get there, and the channel that does.
        let mut reached: BTreeMap<NodeId, (u128, ChannelId)> = BTreeMap::new();
        let mut open = BinaryHeap::new();
        let mut offer = |open: &mut BinaryHeap<_>, sofar: u128, interface: InterfaceId| {
            let Some(channel) = self.interfaces[interface.index()].channel else {
                return;
            };
            let end = self.edges[channel.index()].to;
            let node = self.interfaces[end.index()].node;
            let passable = self.nodes[node.index()].kind.forwards() && node != to;
            if node == from || !(passable || node == to && may_end(channel)) {
                return;
            }
            let found = (sofar.saturating_add(cost(channel)), channel);
            if reached.get(&node).is_none_or(|known| found < *known) {
                reached.insert(node, found);
                open.push(Reverse((found.0, node.0)));
            }
        };
        for interface in begins {
            offer(&mut open, 0, interface);
        }
        while let Some(Reverse((sofar, node))) = open.pop() {
            if NodeId(node) == to {
                break;
            }
            for &interface in &self.nodes[node as usize].interfaces {
                offer(&mut open, sofar, interface);
            }
        }
        let mut path = Vec::new();
        let mut node = to;
        while node != from {
            let (_, channel) = *reached.get(&node)?;
            path.push(channel);
            let begin = self.edges[channel.index()].from;
            node = self.interfaces[begin.index()].node;
        }
        path.reverse();
        Some(path)
    }
}

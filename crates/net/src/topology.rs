//! Nodes, interfaces, addresses and links.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::config::{ChannelConfig, ConfigError};
use crate::ids::{ChannelId, InterfaceId, Nanos, NodeId, NodeKind};
use crate::routing::{Prefix, Routing, StaticRoute};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TopologyError {
    #[error("there is no {0}")]
    UnknownNode(NodeId),
    #[error("there is no {0}")]
    UnknownInterface(InterfaceId),
    #[error("{address} belongs to {owner} already")]
    AddressTaken { address: IpAddr, owner: InterfaceId },
    #[error("{0} has a link already")]
    Connected(InterfaceId),
    #[error("{0} cannot be linked to itself")]
    SelfLink(InterfaceId),
    #[error("{interface} is not on {node}")]
    ForeignInterface {
        interface: InterfaceId,
        node: NodeId,
    },
    #[error(transparent)]
    Config(#[from] ConfigError),
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    /// Position among the nodes that forward.
    pub rank: Option<u32>,
    pub interfaces: Vec<InterfaceId>,
    pub routes: Vec<StaticRoute>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    pub node: NodeId,
    /// The channel that leaves here.
    pub channel: Option<ChannelId>,
}

/// So many of the last channels are asked whether they are configured alike.
const ALIKE: usize = 4;

/// A channel's ends and what it starts as.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub from: InterfaceId,
    pub to: InterfaceId,
    /// The same one for channels that are alike and were connected together.
    pub config: Arc<ChannelConfig>,
}

/// The network as it is built; also keeps the routes found in it.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    pub(crate) nodes: Vec<Node>,
    /// How many nodes forward.
    pub(crate) forwarders: u32,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) addresses: BTreeMap<IpAddr, InterfaceId>,
    pub(crate) routing: Routing,
}

impl Topology {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn add_node(&mut self, kind: NodeKind) -> NodeId {
        let rank = kind.forwards().then_some(self.forwarders);
        self.forwarders += u32::from(kind.forwards());
        self.routing.forget_distances();
        self.nodes.push(Node {
            kind,
            rank,
            interfaces: Vec::new(),
            routes: Vec::new(),
        });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// An interface of a node that does not exist can be neither linked nor given an address.
    pub fn add_interface(&mut self, node: NodeId) -> InterfaceId {
        let id = InterfaceId(self.interfaces.len() as u32);
        self.interfaces.push(Interface {
            node,
            channel: None,
        });
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.interfaces.push(id);
        }
        id
    }

    /// # Errors
    /// An unknown interface, or an address that is in use.
    pub fn add_address(
        &mut self,
        interface: InterfaceId,
        address: IpAddr,
    ) -> Result<(), TopologyError> {
        self.checked(interface)?;
        if let Some(owner) = self.addresses.get(&address) {
            return Err(TopologyError::AddressTaken {
                address,
                owner: *owner,
            });
        }
        self.addresses.insert(address, interface);
        Ok(())
    }

    /// Links two interfaces; `forward` carries from `a` to `b`.
    ///
    /// # Errors
    /// An interface that is unknown or linked already, or an impossible configuration.
    pub fn connect(
        &mut self,
        a: InterfaceId,
        b: InterfaceId,
        forward: ChannelConfig,
        backward: ChannelConfig,
    ) -> Result<(ChannelId, ChannelId), TopologyError> {
        if a == b {
            return Err(TopologyError::SelfLink(a));
        }
        for interface in [a, b] {
            if self.checked(interface)?.channel.is_some() {
                return Err(TopologyError::Connected(interface));
            }
        }
        forward.check()?;
        backward.check()?;
        let medium = |config: &ChannelConfig| config.wifi.as_ref().map(|wifi| wifi.medium);
        if medium(&forward) != medium(&backward) {
            return Err(ConfigError::HalfWifi.into());
        }
        let first = self.edges.len() as u32;
        let pair = (ChannelId(first), ChannelId(first + 1));
        self.interfaces[a.index()].channel = Some(pair.0);
        self.interfaces[b.index()].channel = Some(pair.1);
        for (from, to, config) in [(a, b, forward), (b, a, backward)] {
            let config = self.shared(config);
            self.edges.push(Edge { from, to, config });
        }
        self.routing.forget_distances();
        Ok(pair)
    }

    /// The configuration as one of the last channels has it already.
    fn shared(&self, config: ChannelConfig) -> Arc<ChannelConfig> {
        let mut last = self.edges.iter().rev().take(ALIKE);
        match last.find(|edge| *edge.config == config) {
            Some(edge) => Arc::clone(&edge.config),
            None => Arc::new(config),
        }
    }

    /// Adds a static route: packets at `node` from `source` (if given) to `destination` leave by `out`. Of several that match, the one
    /// with the most specific source counts, then the one with the longest destination prefix, then the first. It counts for
    /// routes that are asked for afterwards.
    ///
    /// # Errors
    /// An unknown node, or an interface that is not on it.
    pub fn add_route(
        &mut self,
        node: NodeId,
        source: Option<Prefix>,
        destination: Prefix,
        out: InterfaceId,
    ) -> Result<(), TopologyError> {
        if self.checked(out)?.node != node {
            return Err(TopologyError::ForeignInterface {
                interface: out,
                node,
            });
        }
        self.nodes[node.index()].routes.push(StaticRoute {
            source,
            destination,
            out,
        });
        Ok(())
    }

    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn channels(&self) -> usize {
        self.edges.len()
    }

    /// # Errors
    /// An unknown node.
    pub fn kind(&self, node: NodeId) -> Result<NodeKind, TopologyError> {
        let node = self
            .nodes
            .get(node.index())
            .ok_or(TopologyError::UnknownNode(node))?;
        Ok(node.kind)
    }

    /// The node that an interface is on.
    ///
    /// # Errors
    /// An unknown interface, or one of an unknown node.
    pub fn node_of(&self, interface: InterfaceId) -> Result<NodeId, TopologyError> {
        Ok(self.checked(interface)?.node)
    }

    /// A node's interfaces in the order in which they were added; none of an unknown node.
    pub fn interfaces(&self, node: NodeId) -> &[InterfaceId] {
        let node = self.nodes.get(node.index());
        node.map_or(&[], |node| &node.interfaces)
    }

    /// Every address with the interface that owns it, in the addresses' order.
    pub fn addresses(&self) -> impl Iterator<Item = (IpAddr, InterfaceId)> + '_ {
        self.addresses
            .iter()
            .map(|(address, owner)| (*address, *owner))
    }

    /// A channel's propagation delay as built.
    pub fn propagation(&self, channel: ChannelId) -> Option<Nanos> {
        self.edges
            .get(channel.index())
            .map(|edge| edge.config.delay)
    }

    /// The interface that owns an address.
    pub fn owner(&self, address: IpAddr) -> Option<InterfaceId> {
        self.addresses.get(&address).copied()
    }

    /// The interfaces that a channel leaves and reaches.
    pub fn ends(&self, channel: ChannelId) -> Option<(InterfaceId, InterfaceId)> {
        self.edges
            .get(channel.index())
            .map(|edge| (edge.from, edge.to))
    }

    /// The channel of the same link in the other direction.
    pub fn opposite(&self, channel: ChannelId) -> ChannelId {
        ChannelId(channel.0 ^ 1)
    }

    /// The channel that leaves an interface.
    pub fn channel_of(&self, interface: InterfaceId) -> Option<ChannelId> {
        self.interfaces.get(interface.index())?.channel
    }

    fn checked(&self, interface: InterfaceId) -> Result<Interface, TopologyError> {
        let found = self
            .interfaces
            .get(interface.index())
            .ok_or(TopologyError::UnknownInterface(interface))?;
        if found.node.index() >= self.nodes.len() {
            return Err(TopologyError::UnknownNode(found.node));
        }
        Ok(*found)
    }
}

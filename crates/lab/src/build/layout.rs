//! Nodes, links and static routes of a plan as a topology, numbered in the plan's order.

use std::net::IpAddr;

use polypath_net::{ChannelConfig, ChannelId, InterfaceId, NodeId, NodeKind, Prefix, Topology};

use crate::PlanError;
use crate::plan::{self, Attachment};

/// A topology in the making.
#[derive(Default)]
pub(crate) struct Layout {
    topology: Topology,
    /// By node.
    interfaces: Vec<Vec<InterfaceId>>,
    routes: usize,
}

impl Layout {
    /// Adds the next node with its interfaces: the name and the addresses of each.
    ///
    /// # Errors
    /// An address that an interface has already.
    pub fn node<'a>(
        &mut self,
        name: &str,
        kind: plan::NodeKind,
        forwards: bool,
        interfaces: impl IntoIterator<Item = (&'a str, &'a [IpAddr])>,
    ) -> Result<(), PlanError> {
        let node = self.topology.add_node(match kind {
            plan::NodeKind::Host if forwards => NodeKind::ForwardingHost,
            plan::NodeKind::Host => NodeKind::Host,
            plan::NodeKind::Router => NodeKind::Router,
            plan::NodeKind::Switch => NodeKind::Switch,
        });
        let mut own = Vec::new();
        for (interface, addresses) in interfaces {
            let id = self.topology.add_interface(node);
            for address in addresses {
                self.topology
                    .add_address(id, *address)
                    .map_err(|error| PlanError::Topology {
                        place: format!("interface {name}:{interface}"),
                        error,
                    })?;
            }
            own.push(id);
        }
        self.interfaces.push(own);
        Ok(())
    }

    /// Adds the next link, whose channels get the next two ids: forward, then backward.
    ///
    /// # Errors
    /// An end that does not exist or has a link, and what the topology refuses of a direction.
    pub fn link(
        &mut self,
        name: &str,
        (a, b): (Attachment, Attachment),
        forward: ChannelConfig,
        backward: ChannelConfig,
    ) -> Result<(ChannelId, ChannelId), PlanError> {
        let place = format!("link {name}");
        let (a, b) = (self.end(&place, a)?, self.end(&place, b)?);
        self.topology
            .connect(a, b, forward, backward)
            .map_err(|error| PlanError::Topology { place, error })
    }

    /// Adds the next static route.
    ///
    /// # Errors
    /// A node, an interface or a prefix that there is not.
    pub fn route(&mut self, route: &plan::Route) -> Result<(), PlanError> {
        let place = format!("route {}", self.routes);
        let prefix = |prefix: plan::Prefix| {
            Prefix::new(prefix.address, prefix.length).map_err(|error| PlanError::Prefix {
                place: place.clone(),
                error,
            })
        };
        let out = self.end(
            &place,
            Attachment {
                node: route.node,
                interface: route.interface,
            },
        )?;
        let source = route.source.map(prefix).transpose()?;
        let destination = prefix(route.destination)?;
        self.topology
            .add_route(NodeId(route.node as u32), source, destination, out)
            .map_err(|error| PlanError::Topology { place, error })?;
        self.routes += 1;
        Ok(())
    }

    pub fn finish(self) -> Topology {
        self.topology
    }

    fn end(&self, place: &str, end: Attachment) -> Result<InterfaceId, PlanError> {
        let node = self.interfaces.get(end.node);
        let node = node.ok_or_else(|| PlanError::missing(place, "node", end.node))?;
        let interface = node.get(end.interface).copied();
        interface.ok_or_else(|| PlanError::missing(place, "interface", end.interface))
    }
}

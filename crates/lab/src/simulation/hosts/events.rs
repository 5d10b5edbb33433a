//! Scheduled changes that a host learns of.

use std::net::IpAddr;

use polypath_net::InterfaceId;
use polypath_transport::Nanos;

use super::Hosts;
use crate::application::Side;
use crate::carrier::Carrier;
use crate::plan::Action;
use crate::simulation::world::World;

impl Hosts {
    /// Tells a new connection what has changed of its host: interfaces that are down, but for its own address, which is the host's choice, and endpoints.
    #[cold]
    pub(super) fn tell_what_changed(&mut self, world: &mut World, index: usize) {
        let now = world.net.now();
        let endpoint = &mut self.endpoints[index];
        let (node, (source, destination)) =
            (endpoint.node, self.apps[endpoint.application].addresses);
        let own = match endpoint.side {
            Side::Client => source.ip(),
            Side::Server => destination.ip(),
        };
        let Some(connection) = &mut endpoint.connection else {
            return;
        };
        let changed = &self.hosts[node].interfaces;
        let addresses = |interface: usize| &self.plan.nodes[node].interfaces[interface].addresses;
        for &address in changed.down().chain(changed.removed()).flat_map(addresses) {
            if address != own {
                connection.set_address_up(address, false, now);
            }
        }
        for (interface, fullmesh) in changed.fullmesh() {
            for &address in addresses(interface) {
                connection.set_fullmesh(address, fullmesh, now);
            }
        }
        let flushed: Vec<IpAddr> = changed.flushed().flat_map(addresses).copied().collect();
        if !flushed.is_empty() {
            connection.flush_endpoints(&flushed, now);
        }
    }

    /// A change now that a host is told of, if one is.
    pub fn on_action(&mut self, world: &mut World, action: &Action) {
        let now = world.net.now();
        let (node, interface) = match *action {
            Action::Interface {
                node, interface, ..
            }
            | Action::Priority {
                node, interface, ..
            }
            | Action::FullMesh {
                node, interface, ..
            }
            | Action::Endpoint {
                node, interface, ..
            }
            | Action::Migrate {
                node, interface, ..
            } => (node, Some(interface)),
            Action::Flush { node } => (node, None),
            Action::Link { .. } => return,
        };
        let interfaces = &self.plan.nodes[node].interfaces;
        let addresses = |interface: usize| interfaces[interface].addresses.clone();
        let own = match interface {
            Some(interface) => addresses(interface),
            None => (0..interfaces.len()).flat_map(addresses).collect(),
        };
        if let Action::Endpoint {
            interface,
            endpoint,
            ..
        } = *action
            && !self.hosts[node].interfaces.changes(interface, endpoint)
        {
            return;
        }
        self.hosts[node].interfaces.note(action, interfaces.len());
        let others = match *action {
            Action::Migrate { to, .. } => addresses(to),
            _ => Vec::new(),
        };
        // Path managers take leave before their interface goes down, as those do who delete endpoints of the kernel.
        let leaves = interface.filter(|_| matches!(action, Action::Interface { up: false, .. }));
        if let Some(interface) = leaves {
            self.any_went_down = true;
            world.let_send(node, interface, true);
            world.net.forget_receivers(&own);
        }
        for index in 0..self.endpoints.len() {
            if self.endpoints[index].node != node {
                continue;
            }
            if let Some(connection) = &mut self.endpoints[index].connection {
                match action {
                    Action::Flush { .. } => connection.flush_endpoints(&own, now),
                    _ => {
                        for &address in &own {
                            tell(connection, action, address, &others, now);
                        }
                    }
                }
            }
            self.follow_up(world, index);
        }
        if let Some(interface) = leaves {
            world.let_send(node, interface, false);
        }
    }
}

/// Tells a connection of a change of one of its host's addresses; `others`: those of the interface that it migrates to.
fn tell(connection: &mut Carrier, action: &Action, address: IpAddr, others: &[IpAddr], now: Nanos) {
    match *action {
        Action::Interface { up, .. } => connection.set_address_up(address, up, now),
        Action::Priority { backup, .. } => connection.set_backup(address, backup, now),
        Action::Migrate { .. } => {
            let family = |other: &&IpAddr| other.is_ipv4() == address.is_ipv4();
            if let Some(&other) = others.iter().find(family) {
                connection.migrate(address, other, now);
            }
        }
        Action::FullMesh { fullmesh, .. } => connection.set_fullmesh(address, fullmesh, now),
        Action::Endpoint { endpoint, .. } => connection.set_endpoint(address, endpoint, now),
        Action::Flush { .. } | Action::Link { .. } => {}
    }
}

/// Whether the interface of a host's address is down.
pub(super) fn is_down(hosts: &Hosts, node: usize, address: IpAddr) -> bool {
    let own = &hosts.plan.nodes[node].interfaces;
    let has = |interface: usize| own[interface].addresses.contains(&address);
    hosts.hosts[node].interfaces.down().any(has)
}

/// Whether a packet arrived at another interface than its address's, which is down: the host has no such address then (Linux
/// `fib_sync_down_dev`, `addrconf_ifdown`).
#[cold]
#[inline(never)]
pub(super) fn lacks_address(
    hosts: &Hosts,
    world: &World,
    flow: u32,
    at: Option<InterfaceId>,
) -> bool {
    let flow = world.net.flow(flow);
    let node = flow.receiver_node as usize;
    let address = flow.destination.ip();
    is_down(hosts, node, address) && at.is_some() && world.net.topology().owner(address) != at
}

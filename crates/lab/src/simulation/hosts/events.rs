//! Scheduled changes that a host is told of.

use std::net::IpAddr;

use polypath_net::InterfaceId;
use polypath_transport::Nanos;

use super::Hosts;
use crate::application::Side;
use crate::carrier::Carrier;
use crate::plan::Action;
use crate::simulation::world::World;

impl Hosts {
    /// Tells a new connection which interfaces of its host are down. Its own address is the host's choice.
    #[cold]
    pub(super) fn tell_what_is_down(&mut self, world: &mut World, index: usize) {
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
        for interface in self.hosts[node].interfaces.down() {
            for &address in &self.plan.nodes[node].interfaces[interface].addresses {
                if address != own {
                    connection.set_address_up(address, false, now);
                }
            }
        }
    }

    /// A change that a host is told of.
    pub fn on_event(&mut self, world: &mut World, event: usize) {
        let now = world.net.now();
        let action = self.plan.events[event].action.clone();
        let (Action::Interface {
            node, interface, ..
        }
        | Action::Priority {
            node, interface, ..
        }
        | Action::Migrate {
            node, interface, ..
        }) = action
        else {
            return;
        };
        let addresses = |interface: usize| {
            let interfaces = &self.plan.nodes[node].interfaces;
            interfaces[interface].addresses.clone()
        };
        let own = addresses(interface);
        self.hosts[node].interfaces.note(&action);
        let others = match action {
            Action::Migrate { to, .. } => addresses(to),
            _ => Vec::new(),
        };
        // Path managers take leave before their interface goes down, as those do who delete endpoints of the kernel.
        let leaves = matches!(action, Action::Interface { up: false, .. });
        if leaves {
            self.any_went_down = true;
            world.let_send(node, interface, true);
            world.net.forget_receivers(&own);
        }
        for index in 0..self.endpoints.len() {
            if self.endpoints[index].node != node {
                continue;
            }
            if let Some(connection) = &mut self.endpoints[index].connection {
                for &address in &own {
                    tell(connection, &action, address, &others, now);
                }
            }
            self.follow_up(world, index);
        }
        if leaves {
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
        Action::Link { .. } => {}
    }
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
    let own = &hosts.plan.nodes[node].interfaces;
    let has = |interface: usize| own[interface].addresses.contains(&address);
    let mut down = hosts.hosts[node].interfaces.down();
    down.any(has) && at.is_some() && world.net.topology().owner(address) != at
}

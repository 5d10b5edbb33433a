//! The hosts of a capture: addresses that were seen as one end of one connection belong to one host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::join::Connection;
use crate::packet::Merged;
use crate::quic::Quic;
use crate::survey::Survey;

/// An address of a host with the interface that it is of.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Address {
    pub address: IpAddr,
    /// As the capture calls it; the address itself where it does not.
    pub interface: String,
}

#[derive(Clone, Debug, serde::Serialize)]
pub struct Host {
    pub name: String,
    pub addresses: Vec<Address>,
}

/// Every host, in the order of first appearance.
#[derive(Debug, Default)]
pub struct Hosts {
    pub list: Vec<Host>,
    of: BTreeMap<IpAddr, usize>,
}

impl Hosts {
    pub fn of(
        connections: &[Connection],
        survey: &Survey,
        files: &Merged,
        quic: Option<&Quic>,
    ) -> Self {
        let mut groups = Groups::default();
        for connection in connections {
            for side in 0..2 {
                let end = |at: usize| match side {
                    0 => connection.subflows[at].client.ip(),
                    _ => connection.subflows[at].server.ip(),
                };
                for at in 0..connection.subflows.len() {
                    groups.join(end(0), end(at));
                }
            }
        }
        for ends in quic.iter().flat_map(|quic| quic.ends()) {
            for &(client, server) in &ends {
                groups.join(ends[0].0.ip(), client.ip());
                groups.join(ends[0].1.ip(), server.ip());
            }
        }
        let mut named = labels(connections, survey, files);
        for (address, tap) in quic.iter().flat_map(|quic| quic.places()) {
            if let Some(label) = files.interface_name(tap).and_then(label) {
                named.entry(address).or_insert(label);
            }
        }
        let mut hosts = Self::default();
        let mut numbers = BTreeMap::new();
        for address in groups.order.clone() {
            let label = named.get(&address);
            let root = groups.root(address);
            let number = *numbers.entry(root).or_insert_with(|| {
                hosts.list.push(Host {
                    name: root.to_string(),
                    addresses: Vec::new(),
                });
                hosts.list.len() - 1
            });
            if let Some((Some(name), _)) = label {
                hosts.list[number].name.clone_from(name);
            }
            let interface = label.map_or_else(|| address.to_string(), |(_, it)| it.clone());
            hosts.list[number]
                .addresses
                .push(Address { address, interface });
            hosts.of.insert(address, number);
        }
        hosts.tell_apart();
        hosts
    }

    fn tell_apart(&mut self) {
        let mut taken = BTreeSet::new();
        for host in &mut self.list {
            if !taken.insert(host.name.clone()) {
                host.name = format!("{} {}", host.name, host.addresses[0].address);
            }
        }
    }

    pub fn number(&self, address: IpAddr) -> usize {
        self.of.get(&address).copied().unwrap_or_default()
    }

    pub fn name(&self, address: IpAddr) -> &str {
        &self.list[self.number(address)].name
    }

    pub fn interface(&self, address: IpAddr) -> &str {
        let host = &self.list[self.number(address)];
        host.addresses
            .iter()
            .find(|each| each.address == address)
            .map_or("", |each| &each.interface)
    }
}

/// Host, where one is named, and interface of each address that a tap stood at. Captures of this project call an
/// interface `host:interface`, those of tcpdump `interface`.
fn labels(
    connections: &[Connection],
    survey: &Survey,
    files: &Merged,
) -> BTreeMap<IpAddr, (Option<String>, String)> {
    let mut found = BTreeMap::new();
    for subflow in connections.iter().flat_map(|each| &each.subflows) {
        for (side, end) in [subflow.client, subflow.server].into_iter().enumerate() {
            let at = survey
                .flow(subflow.flow)
                .taps
                .iter()
                .find(|seen| seen.tap == subflow.taps[side][0])
                .and_then(|seen| seen.nearness())
                .map(|first| {
                    if subflow.client_direction == side {
                        first
                    } else {
                        1.0 - first
                    }
                });
            if !subflow.near[side] || at.is_none_or(|at| at < AT_THE_END) {
                continue;
            }
            let Some(name) = files.interface_name(subflow.taps[side][0]) else {
                continue;
            };
            if let Some(label) = label(name) {
                found.entry(end.ip()).or_insert(label);
            }
        }
    }
    found
}

/// Host, where it is named, and interface of what a capture calls an interface.
fn label(name: &str) -> Option<(Option<String>, String)> {
    match name.split_once(':') {
        Some((host, interface)) => Some((Some(host.to_owned()), interface.to_owned())),
        None if name == "any" => None,
        None => Some((None, name.to_owned())),
    }
}

/// A tap from which the way to the other end takes so much of a round trip stands at this end.
const AT_THE_END: f64 = 0.99;

/// Addresses by the first one that they were seen with.
#[derive(Default)]
struct Groups {
    parents: BTreeMap<IpAddr, IpAddr>,
    order: Vec<IpAddr>,
}

impl Groups {
    fn root(&mut self, address: IpAddr) -> IpAddr {
        let parent = match self.parents.get(&address) {
            Some(&parent) => parent,
            None => {
                self.parents.insert(address, address);
                self.order.push(address);
                address
            }
        };
        if parent == address {
            return address;
        }
        let root = self.root(parent);
        self.parents.insert(address, root);
        root
    }

    fn join(&mut self, a: IpAddr, b: IpAddr) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents.insert(b, a);
    }
}

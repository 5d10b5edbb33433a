//! A host's knowledge beyond its connections.

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_transport::{BlackHoles, Counters, Ports, Retained, Sessions};

use super::interfaces::Interfaces;
use crate::plan::Plan;

#[derive(Default)]
pub(super) struct Host {
    pub ports: Ports,
    pub black_holes: BlackHoles,
    /// TLS sessions of QUIC.
    pub sessions: Sessions,
    /// What its paths were found to carry.
    pub retained: Retained,
    pub interfaces: Interfaces,
    /// The MTUs of its interfaces on links that have one, by address.
    pub mtus: Vec<(IpAddr, u32)>,
    /// What it was told of paths' MTUs, by own address and destination.
    path_mtus: BTreeMap<(IpAddr, IpAddr), u32>,
    /// The endpoints of its MPTCP connections, by token.
    tokens: BTreeMap<u32, usize>,
    /// What it counts that none of its connections does.
    counters: Option<Box<Counters>>,
}

impl Host {
    /// The endpoint whose connection has this token.
    pub fn named(&self, token: u32) -> Option<usize> {
        self.tokens.get(&token).copied()
    }

    pub fn add_token(&mut self, token: u32, endpoint: usize) {
        self.tokens.insert(token, endpoint);
    }

    pub fn remove_token(&mut self, token: u32) {
        self.tokens.remove(&token);
    }

    /// It is told that a link between these takes no longer packets; what it was told before may be less.
    pub fn learn_path_mtu(&mut self, own: IpAddr, destination: IpAddr, mtu: u32) {
        let known = self.path_mtus.entry((own, destination)).or_insert(mtu);
        *known = (*known).min(mtu);
    }

    pub fn path_mtu(&self, own: IpAddr, destination: IpAddr) -> Option<u32> {
        self.path_mtus.get(&(own, destination)).copied()
    }

    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_deref()
    }

    pub fn counters_mut(&mut self) -> &mut Counters {
        self.counters.get_or_insert_default()
    }
}

/// The hosts and other nodes of a plan.
pub(super) fn hosts(plan: &Plan) -> Vec<Host> {
    let mut hosts: Vec<Host> = plan.nodes.iter().map(|_| Host::default()).collect();
    for link in &plan.links {
        for (end, side) in [(link.a, &link.forward), (link.b, &link.backward)] {
            if let Some(mtu) = side.mtu {
                let interface = &plan.nodes[end.node].interfaces[end.interface];
                let addresses = interface.addresses.iter();
                (hosts[end.node].mtus).extend(addresses.map(|&address| (address, mtu)));
            }
        }
    }
    hosts
}

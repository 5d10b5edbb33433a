//! What a host knows of its ports and ways.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A host's source of ephemeral ports.
#[derive(Clone, Debug, Default)]
pub struct Ports(Arc<AtomicU32>);

/// The ephemeral range (Linux ip_local_port_range).
const FIRST_PORT: u32 = 32_768;
const LAST_PORT: u32 = 60_999;

impl Ports {
    pub fn next(&self) -> u16 {
        let turn = self.0.fetch_add(1, Ordering::Relaxed);
        (FIRST_PORT + turn % (LAST_PORT - FIRST_PORT + 1)) as u16
    }
}

/// By which of its addresses a host reaches a peer's.
#[derive(Clone, Debug, Default)]
pub struct Ways(Arc<BTreeMap<IpAddr, Vec<IpAddr>>>);

impl Ways {
    /// From destination to the host's addresses that lead there, first the one that its routing takes where none is asked for.
    pub fn new(by_destination: BTreeMap<IpAddr, Vec<IpAddr>>) -> Self {
        Self(Arc::new(by_destination))
    }

    /// Whether packets from `source` have a way to `destination`; so it is of what nothing is known.
    pub fn lead(&self, source: IpAddr, destination: IpAddr) -> bool {
        let known = self.0.get(&destination);
        source.is_ipv4() == destination.is_ipv4()
            && known.is_none_or(|sources| sources.contains(&source))
    }

    /// Whether routing takes `source` for packets to `destination` where none is asked for; absent where nothing is known of it.
    pub fn prefer(&self, source: IpAddr, destination: IpAddr) -> Option<bool> {
        let known = self.0.get(&destination)?;
        Some(known.first() == Some(&source))
    }
}

/// What the paths of a connection leave their host by.
#[derive(Debug)]
pub(crate) struct Egress {
    /// Longest packets of interfaces that take shorter ones than the host.
    mtus: Vec<(IpAddr, u32)>,
    ports: Ports,
}

impl Egress {
    pub fn new(mtus: Vec<(IpAddr, u32)>, ports: Ports) -> Self {
        Self { mtus, ports }
    }

    /// The longest packet that leaves from an address, on a host that takes `most`.
    pub fn mtu(&self, local: IpAddr, most: u32) -> u32 {
        let interface = self.mtus.iter().find(|(address, _)| *address == local);
        interface.map_or(most, |(_, mtu)| most.min(*mtu))
    }

    /// A port that no other path of this host has.
    pub fn next_port(&self) -> u16 {
        self.ports.next()
    }
}

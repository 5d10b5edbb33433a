//! What a connection takes from its host.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rand_pcg::Pcg64Mcg;

use crate::config::Config;
use crate::path_manager::LocalAddress;
use crate::sessions::Sessions;

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

/// What a connection takes from its host.
pub struct Accept {
    pub config: Arc<Config>,
    /// Every address of the host; ids are given by the connection.
    pub addresses: Vec<(IpAddr, bool)>,
    /// Longest packets of interfaces that take shorter ones than the host, by address.
    pub mtus: Vec<(IpAddr, u32)>,
    pub ports: Ports,
    pub random: Pcg64Mcg,
    /// TLS sessions that it kept; of use where [`Config::resumption`] is set.
    pub sessions: Sessions,
    /// Where the sequence numbers of an accepted connection begin, if not at random.
    pub isn: Option<u32>,
}

impl Accept {
    /// Those that a connection of Multipath TCP takes.
    pub(crate) fn joinable_addresses(&self, first: IpAddr) -> Vec<LocalAddress> {
        let most = self.config.profile.most_addresses();
        let mut counts = [0; 2];
        let mut taken = |local: &LocalAddress| {
            let count = &mut counts[usize::from(local.address.is_ipv6())];
            *count += 1;
            *count <= most
        };
        let mut local = self.local_addresses(first);
        local.retain(&mut taken);
        local
    }

    /// The host's addresses with the ids that a connection from `first` gives them. Of more than 255 the rest have none (RFC 8684 section
    /// 3.2: eight bits).
    pub fn local_addresses(&self, first: IpAddr) -> Vec<LocalAddress> {
        let mut local = vec![LocalAddress {
            id: 0,
            address: first,
            backup: false,
            up: true,
        }];
        for (index, &(address, backup)) in self.addresses.iter().enumerate() {
            if address == first {
                local[0].backup = backup;
            } else if let Ok(id) = u8::try_from(index + 1) {
                local.push(LocalAddress {
                    id,
                    address,
                    backup,
                    up: true,
                });
            }
        }
        local
    }
}

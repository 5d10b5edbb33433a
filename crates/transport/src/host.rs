//! A host's knowledge of its ports and routes, and of black holes on them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::Nanos;

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

/// Whether a host opens connections without MP_CAPABLE for a while, as a box on its way drops SYNs that have it (Linux `mptcp_active_disable`).
/// Clones know the same.
#[derive(Clone, Debug, Default)]
pub struct BlackHoles(Arc<Found>);

#[derive(Debug, Default)]
struct Found {
    /// In a row, without a connection that got its answer in between.
    times: AtomicU32,
    /// When the last one was found.
    at: AtomicU64,
}

impl BlackHoles {
    /// Each one in a row doubles the time, this often (Linux `mptcp_active_should_disable`).
    const MOST_DOUBLINGS: u32 = 6;

    /// A SYN without the option was answered where those with it were not.
    pub(crate) fn found(&self, now: Nanos) {
        self.0.at.store(now, Ordering::Relaxed);
        self.0.times.fetch_add(1, Ordering::Relaxed);
    }

    /// A SYN with the option was answered.
    pub(crate) fn passed(&self) {
        self.0.times.store(0, Ordering::Relaxed);
    }

    /// Whether the option is left out, where that lasts `timeout` after the first one.
    pub(crate) fn matter(&self, now: Nanos, timeout: Nanos) -> bool {
        let Some(before) = self.0.times.load(Ordering::Relaxed).checked_sub(1) else {
            return false;
        };
        let lasts = timeout.saturating_mul(1 << before.min(Self::MOST_DOUBLINGS));
        now < self.0.at.load(Ordering::Relaxed).saturating_add(lasts)
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

#[cfg(test)]
mod tests {
    use super::BlackHoles;
    use crate::SECOND;

    #[test]
    fn black_holes_in_a_row_matter_twice_as_long_each() {
        let holes = BlackHoles::default();
        assert!(!holes.matter(0, 10 * SECOND));
        for (times, lasts) in [(1, 10), (2, 20), (3, 40), (7, 640), (8, 640), (40, 640)] {
            holes.passed();
            (0..times).for_each(|_| holes.clone().found(5 * SECOND));
            assert!(
                holes.matter((5 + lasts) * SECOND - 1, 10 * SECOND),
                "{times}"
            );
            assert!(!holes.matter((5 + lasts) * SECOND, 10 * SECOND), "{times}");
        }
        holes.passed();
        assert!(!holes.matter(5 * SECOND, 10 * SECOND));
    }
}

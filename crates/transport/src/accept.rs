//! The data that a connection takes from its host.

use std::net::IpAddr;
use std::sync::Arc;

use rand_pcg::Pcg64Mcg;

use crate::algorithms::Algorithms;
use crate::host::{BlackHoles, Ports};
use crate::path_manager::LocalAddress;
use crate::retained::Retained;
use crate::sessions::Sessions;
use crate::settings::Config;

/// What a connection takes from its host.
pub struct Accept {
    pub config: Arc<Config>,
    pub algorithms: Algorithms,
    /// Every address of the host; ids are given by the connection.
    pub addresses: Vec<(IpAddr, bool)>,
    /// Longest packets of interfaces that take shorter ones than the host, by address.
    pub mtus: Vec<(IpAddr, u32)>,
    pub ports: Ports,
    /// Where it found that MP_CAPABLE does not pass.
    pub black_holes: BlackHoles,
    pub random: Pcg64Mcg,
    /// TLS sessions that it kept; of use where [`Config::resumption`] is set.
    pub sessions: Sessions,
    /// What its paths were found to carry; of use where [`Config::careful_resume`] is set.
    pub retained: Retained,
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

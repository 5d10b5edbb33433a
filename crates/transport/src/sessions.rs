//! TLS sessions that outlast their connections, so that later ones can resume them (RFC 8446 section 2.2).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::client::Resumption;
use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

/// Tickets that a server sends at the end of a handshake, each good for one connection: as many as rustls's own servers send.
pub(crate) const TICKETS: usize = 2;
/// Sessions that a server keeps; the oldest make room.
const MOST: usize = 256;

/// What a host keeps of its sessions, as client and as server. Clones keep the same.
#[derive(Clone, Debug, Default)]
pub struct Sessions(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// By server, whatever the port (RFC 8446 section 4.6.1): another one could not resume them.
    as_client: Mutex<BTreeMap<IpAddr, Resumption>>,
    as_server: OnceLock<Arc<ServerSessionMemoryCache>>,
}

impl Sessions {
    /// Those of a client with a server.
    pub fn with(&self, server: IpAddr) -> Resumption {
        let kept = self.0.as_client.lock();
        let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
        let new = || Resumption::in_memory_sessions(1);
        kept.entry(server).or_insert_with(new).clone()
    }

    /// Those of a server.
    pub fn of_clients(&self) -> Arc<dyn StoresServerSessions> {
        let new = || ServerSessionMemoryCache::new(MOST);
        Arc::clone(self.0.as_server.get_or_init(new)) as Arc<dyn StoresServerSessions>
    }
}

//! The addresses of both ends of a connection, and this host's settings for its own.

use std::net::IpAddr;

use crate::Tuple;
use crate::host::Egress;
use crate::path_manager::{LocalAddress, Pair, RemoteAddress};

/// Addresses of the peer with an id of their own; further ones share the last.
const MOST: usize = 255;

/// The addresses of both ends, by id.
#[derive(Debug)]
pub(crate) struct Addresses {
    local: Vec<LocalAddress>,
    remote: Vec<RemoteAddress>,
    egress: Egress,
}

impl Addresses {
    /// Those of this host, and the peer's first, whose id is 0.
    pub fn new(local: Vec<LocalAddress>, remote: IpAddr, egress: Egress) -> Self {
        let first = RemoteAddress {
            id: 0,
            address: remote,
            port: None,
        };
        Self {
            local,
            remote: vec![first],
            egress,
        }
    }

    pub fn local(&self) -> &[LocalAddress] {
        &self.local
    }

    pub fn remote(&self) -> &[RemoteAddress] {
        &self.remote
    }

    pub fn find_local(&self, id: u8) -> Option<&LocalAddress> {
        self.local.iter().find(|local| local.id == id)
    }

    pub fn find_remote(&self, id: u8) -> Option<&RemoteAddress> {
        self.remote.iter().find(|remote| remote.id == id)
    }

    /// This host's own, to be changed.
    pub fn local_at_mut(&mut self, address: IpAddr) -> Option<&mut LocalAddress> {
        self.local.iter_mut().find(|local| local.address == address)
    }

    /// The peer has told of an address.
    pub fn add_remote(&mut self, remote: RemoteAddress) {
        self.remote.push(remote);
    }

    pub fn remove_remote(&mut self, id: u8) {
        self.remote.retain(|remote| remote.id != id);
    }

    /// The id of an address of this host; 0, as of the first, where it is unknown.
    pub fn local_id(&self, address: IpAddr) -> u8 {
        let known = self.local.iter().find(|local| local.address == address);
        known.map_or(0, |local| local.id)
    }

    /// The id of a peer's address, which is given one when it is first seen.
    fn remote_id(&mut self, address: IpAddr) -> u8 {
        if let Some(known) = self.remote.iter().find(|remote| remote.address == address) {
            return known.id;
        }
        let id = self.remote.len().min(MOST) as u8;
        if self.remote.len() > MOST {
            return id;
        }
        self.remote.push(RemoteAddress {
            id,
            address,
            port: None,
        });
        id
    }

    /// The ids of both ends of a path.
    pub fn ids(&mut self, tuple: Tuple) -> Pair {
        Pair {
            local: self.local_id(tuple.local.ip()),
            remote: self.remote_id(tuple.remote.ip()),
        }
    }

    /// The two addresses, if both are known.
    pub fn of(&self, pair: Pair) -> Option<(IpAddr, IpAddr)> {
        let local = self.local.iter().find(|local| local.id == pair.local)?;
        let remote = self.remote.iter().find(|remote| remote.id == pair.remote)?;
        Some((local.address, remote.address))
    }

    /// Paths from the address with this id are to be backups.
    pub fn is_backup(&self, id: u8) -> bool {
        let mut own = self.local.iter();
        own.any(|local| local.id == id && local.backup)
    }

    pub fn set_backup(&mut self, address: IpAddr, backup: bool) {
        let own = self.local.iter_mut();
        for local in own.filter(|local| local.address == address) {
            local.backup = backup;
        }
    }

    /// An address of this host went away or came back: its id, if that is news.
    pub fn set_up(&mut self, address: IpAddr, up: bool) -> Option<u8> {
        let mut own = self.local.iter_mut();
        let local = own.find(|local| local.address == address && local.up != up)?;
        local.up = up;
        Some(local.id)
    }

    /// The addresses of this host that are up.
    pub fn up(&self) -> impl Iterator<Item = IpAddr> {
        let up = self.local.iter().filter(|local| local.up);
        up.map(|local| local.address)
    }

    /// This host has the address, and it is down.
    pub fn is_down(&self, address: IpAddr) -> bool {
        let mut own = self.local.iter();
        own.any(|local| !local.up && local.address == address)
    }

    /// The ids of those that are down.
    pub fn down(&self) -> impl Iterator<Item = u8> {
        let down = self.local.iter().filter(|local| !local.up);
        down.map(|local| local.id)
    }

    pub fn egress(&self) -> &Egress {
        &self.egress
    }
}

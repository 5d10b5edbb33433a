//! Path managers: which subflows a connection has.

mod endpoints;
mod fullmesh;
mod ndiffports;
mod passive;

use std::net::IpAddr;

use crate::registry::{Entry, Registry};

/// An address of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Address id (RFC 8684 section 3.2): 0 is the address that the connection began with.
    pub id: u8,
    pub address: IpAddr,
    /// Subflows from here ask the peer to be backups.
    pub backup: bool,
    pub up: bool,
}

/// An address of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAddress {
    pub id: u8,
    pub address: IpAddr,
    pub port: Option<u16>,
}

/// A subflow that exists or is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub local: u8,
    pub remote: u8,
}

/// What a path manager sees of its connection.
#[derive(Debug)]
pub struct PmView<'a> {
    /// Only the client opens subflows.
    pub client: bool,
    pub local: &'a [LocalAddress],
    pub remote: &'a [RemoteAddress],
    pub subflows: &'a [Pair],
    /// Ids of local addresses that the peer was told of.
    pub announced: &'a [u8],
}

/// What a path manager wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a subflow between these addresses (MP_JOIN).
    Open(Pair),
    /// Tell the peer of a local address (ADD_ADDR).
    Announce(u8),
}

/// A path manager: asked whenever the connection is first ready for more subflows, and whenever addresses or subflows change.
pub trait PathManager: Send {
    fn manage(&mut self, view: &PmView) -> Vec<Action>;
}

/// Every path manager.
pub static REGISTRY: Registry<dyn PathManager> = Registry {
    kind: "path manager",
    entries: &[
        passive::ENTRY,
        fullmesh::ENTRY,
        ndiffports::ENTRY,
        endpoints::ENTRY,
    ],
};

type PathManagerEntry = Entry<dyn PathManager>;

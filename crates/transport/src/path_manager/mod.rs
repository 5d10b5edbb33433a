//! Path managers: which subflows a connection has.

mod binder;
mod endpoints;
mod fullmesh;
mod ndiffports;
mod passive;
mod scripted;

use std::net::{IpAddr, SocketAddr};

use polypath_settings::{Entry, Registry, Settings};

use crate::host::Ways;
use crate::{NEVER, Nanos};

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

/// The number that the first address has among the host's, and no other in the connection.
pub(crate) fn unused_id(local: &[LocalAddress]) -> u8 {
    let unused = |id: &u8| local.iter().all(|local| local.id != *id);
    (1..=u8::MAX).find(unused).unwrap_or(0)
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

/// The one that a connection begins with.
pub(crate) const FIRST: Pair = Pair {
    local: 0,
    remote: 0,
};

/// Why a path manager is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The connection is ready for more subflows, another address may be announced, or the time has come that it named.
    Turn,
    /// An announcement was echoed or given up.
    AnnouncementEnded,
    /// Another subflow is established.
    SubflowEstablished,
    /// A subflow ended; `first`: the one that the connection began with.
    SubflowEnded { first: bool },
    /// The peer told of an address, by its id.
    AddressReceived(u8),
    /// The peer withdrew an address; `closed`: a subflow to it that this side had opened ended by that.
    AddressRemoved { id: u8, closed: bool },
    /// An address of this host came back.
    AddressUp(u8),
    /// An endpoint of this host became another, and the subflows from it have ended.
    EndpointChanged(u8),
    /// An address of this host went away; `left`: the connection has closed the subflows from it, as it has others.
    AddressDown { id: u8, left: bool },
}

/// What a path manager sees of its connection.
#[derive(Debug)]
pub struct PmView<'a> {
    pub occasion: Occasion,
    /// Since the connection was first ready for more subflows.
    pub now: Nanos,
    /// Since the start of the run.
    pub clock: Nanos,
    /// This side opened the connection.
    pub client: bool,
    /// This side may open subflows: over MPTCP either may (RFC 8684 section 3.2), over QUIC the client (RFC 10069 section 3.1).
    pub opens: bool,
    /// The program of this host has taken the connection, which a server finds established a moment before.
    pub taken: bool,
    pub local: &'a [LocalAddress],
    pub remote: &'a [RemoteAddress],
    pub subflows: &'a [Pair],
    /// How many of them, without the one that the connection began with and those that the peer asked for and has not confirmed.
    pub further: usize,
    /// Local address of each of them, and remote address and port; the peer need not have told of its own.
    pub addresses: &'a [(IpAddr, SocketAddr)],
    /// Ids of local addresses that the peer knows: of the first one from the beginning on, of others by being told, until they are withdrawn.
    pub announced: &'a [u8],
    /// How many addresses may be announced now.
    pub most_announced: usize,
    /// An announcement waits for a subflow to leave on.
    pub announcing: bool,
    pub ways: &'a Ways,
    /// Subflows from an address are bound to its interface, where what has no way counts as on the link (Linux
    /// `ip_route_output_key_hash_rcu`; IPv6 has no such rule).
    pub bound: bool,
    /// The peer takes no subflows to its first address (flag C, RFC 8684 section 3.1).
    pub denies_first: bool,
}

impl PmView<'_> {
    /// Whether a subflow between two addresses leaves its host.
    pub(crate) fn leaves(&self, local: &LocalAddress, remote: IpAddr, bound: bool) -> bool {
        let on_link = bound && self.bound && local.up;
        self.ways.lead(local.address, remote)
            || (on_link && local.address.is_ipv4() && remote.is_ipv4())
    }

    /// Every address that the peer does not know, as many as may be announced now.
    pub(crate) fn announcements(&self) -> impl Iterator<Item = Action> {
        self.local
            .iter()
            .filter(|local| local.up && !self.announced.contains(&local.id))
            .map(|local| Action::announce(local.id))
            .take(self.most_announced)
    }
}

/// What a path manager makes of an address of its host whose interface goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Nothing: subflows from there go on trying, as TCP's do.
    Unnoticed,
    /// It is withdrawn as long as subflows from elsewhere work, and unnoticed otherwise.
    UnlessLast,
    /// It is withdrawn and its subflows end, the last one, too, where a connection outlives it.
    Withdrawn,
    /// The peer is told of another id than its subflows have, so that none ends.
    Misnamed,
}

/// What a path manager wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a subflow between these addresses (MP_JOIN).
    Open(Pair),
    /// As [`Action::Open`], from an address that routing took, so that it is bound to no interface.
    OpenRouted(Pair),
    /// Open one whose packets pass the owners of these addresses on their way, in this order.
    OpenVia(Pair, Vec<IpAddr>),
    /// Close the subflows between these addresses, unless no other would remain.
    Close(Pair),
    /// Tell the peer of a local address (ADD_ADDR), with the port to join at if that is another one than the connection's.
    Announce { id: u8, port: Option<u16> },
    /// Tell the peer that a local address is gone (REMOVE_ADDR), and close its subflows, unless no other would remain.
    Withdraw(u8),
    /// Make the subflows between these addresses backups or normal ones and tell the peer (MP_PRIO).
    Priority { pair: Pair, backup: bool },
}

impl Action {
    pub fn announce(id: u8) -> Self {
        Self::Announce { id, port: None }
    }
}

/// A path manager: asked on the occasions that it minds, and at the times it names.
pub trait PathManager: Send {
    fn manage(&mut self, view: &PmView) -> Vec<Action>;

    /// Whether it is asked on an occasion: as it is, when the connection is first ready for more subflows, and whenever addresses come.
    fn minds(&self, occasion: Occasion) -> bool {
        matches!(
            occasion,
            Occasion::Turn
                | Occasion::AddressReceived(_)
                | Occasion::AddressRemoved { .. }
                | Occasion::AddressUp(_)
        )
    }

    /// Whether a subflow that the peer opened is taken, where there are `further` beside the one that the connection began with.
    fn admits(&self, _further: usize) -> bool {
        true
    }

    /// Whether joins are taken at an address and port where no server listens.
    fn listens(&self, _at: SocketAddr) -> bool {
        false
    }

    /// What becomes of an address of the host as its interface goes down, before it does.
    fn departure(&self, _of: &LocalAddress) -> Departure {
        Departure::UnlessLast
    }

    /// Whether an address of the host has a priority of its own, for subflows at a port where one is named; if not, it is no backup, whatever its
    /// interface is.
    fn ranks(&self, _address: IpAddr, _port: Option<u16>) -> bool {
        true
    }

    /// Subflows from an address of the host lead to every address of the peer's from now on, or to its first alone (`ip mptcp endpoint change`).
    /// True: those that are there end, and others are opened.
    fn set_fullmesh(&mut self, _of: IpAddr, _fullmesh: bool) -> bool {
        false
    }

    /// None of these addresses, which are up, is an endpoint any more (`ip mptcp endpoint flush`). Returns the ids that were announced.
    fn flush(&mut self, _of: &[IpAddr]) -> Vec<u8> {
        Vec::new()
    }

    /// When it wants to be asked again at the latest, counted as [`PmView::now`]; a time that has come counts for nothing.
    fn wake(&self) -> Nanos {
        NEVER
    }
}

/// The path manager that does nothing of its own accord.
pub(crate) const PASSIVE: &str = <passive::Passive as Settings>::MODEL.name;

/// What `default` is where the kernel's path manager is in charge of hosts whose addresses have no task, too.
pub(crate) fn kernel_without_tasks() -> Box<dyn PathManager> {
    endpoints::without_tasks()
}

/// Every path manager.
pub static REGISTRY: Registry<dyn PathManager> = Registry::new(
    "path manager",
    &[
        Entry::of::<passive::Passive>(),
        Entry::of::<fullmesh::FullMeshConfig>(),
        Entry::of::<ndiffports::NDiffPortsConfig>(),
        Entry::of::<endpoints::EndpointsConfig>(),
        Entry::of::<binder::BinderConfig>(),
        Entry::of::<scripted::ScriptedConfig>(),
    ],
);

//! The choice of paths for a stack by others, which leaves it to its application. A path manager of the lab makes it.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use crate::path_manager::{
    Action, LocalAddress, Occasion, Pair, PathManager, PmView, RemoteAddress,
};
use crate::{Accept, NEVER, Nanos, Tuple, Ways};

/// An open path by the number that its owner has for it; 0 is the one that the connection began on.
pub type Open = (usize, Tuple);

/// Asks a path manager which paths there are to be.
pub struct PathChoice {
    manager: Box<dyn PathManager>,
    client: bool,
    remote_port: u16,
    local: Vec<LocalAddress>,
    remote: Vec<RemoteAddress>,
    /// Since when the connection is ready for paths, and when the path manager wants to be asked.
    ready_at: Option<Nanos>,
    wake: Nanos,
    /// Pairs for which the stack had no path id or connection id.
    wanted: VecDeque<Pair>,
    /// What the path manager is to be asked for, besides.
    occasion: Option<Occasion>,
}

/// What is to be done besides opening paths.
#[derive(Default)]
pub struct PathWishes {
    pub abandon: Vec<usize>,
    pub status: Vec<(usize, bool)>,
}

impl PathWishes {
    /// Nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.abandon.is_empty() && self.status.is_empty()
    }
}

impl PathChoice {
    pub fn new(host: &Accept, tuple: Tuple, client: bool) -> Self {
        let manager = host.algorithms.path_manager(&host.config);
        Self {
            manager: manager.expect("the plan's algorithms were checked before the run"),
            client,
            remote_port: tuple.remote.port(),
            local: host.local_addresses(tuple.local.ip()),
            remote: vec![RemoteAddress {
                id: 0,
                address: tuple.remote.ip(),
                port: None,
            }],
            ready_at: None,
            wake: NEVER,
            wanted: VecDeque::new(),
            occasion: None,
        }
    }

    pub fn wake(&self) -> Nanos {
        self.wake
    }

    /// The connection is over.
    pub fn end(&mut self) {
        self.wake = NEVER;
    }

    /// The address that the connection began with is a backup's.
    pub fn starts_as_backup(&self) -> bool {
        self.local[0].backup
    }

    /// Whether an address changed by it.
    pub fn set_up(&mut self, address: IpAddr, up: bool) -> bool {
        let known = self.local.iter_mut().find(|local| local.address == address);
        let Some(local) = known.filter(|local| local.up != up) else {
            return false;
        };
        local.up = up;
        let id = local.id;
        let occasion = if up {
            Occasion::AddressUp(id)
        } else {
            Occasion::AddressDown { id, left: true }
        };
        self.occasion = Some(occasion).filter(|occasion| self.manager.minds(*occasion));
        true
    }

    pub fn is_up(&self, address: IpAddr) -> bool {
        let mut own = self.local.iter();
        own.any(|local| local.address == address && local.up)
    }

    pub fn set_backup(&mut self, address: IpAddr, backup: bool) {
        for local in &mut self.local {
            if local.address == address {
                local.backup = backup;
            }
        }
    }

    /// Asks the path manager when it is first time, when it asked to be asked, and when an address changed that it minds.
    pub fn wishes(&mut self, open: impl FnOnce() -> Vec<Open>, now: Nanos) -> PathWishes {
        let mut wishes = PathWishes::default();
        let due = self.ready_at.is_none() || self.wake <= now || self.occasion.is_some();
        if !due {
            return wishes;
        }
        let open = open();
        let occasion = self.occasion.take().unwrap_or(Occasion::Turn);
        let ready_at = *self.ready_at.get_or_insert(now);
        let (subflows, addresses): (Vec<Pair>, Vec<_>) = open
            .iter()
            .filter_map(|(_, tuple)| self.pair(*tuple))
            .chain(self.wanted.iter().copied())
            .filter_map(|pair| {
                let (local, remote) = self.addresses_of(pair)?;
                Some((pair, (local, (remote, self.remote_port).into())))
            })
            .unzip();
        let first = open.iter().any(|(number, _)| *number == 0);
        let actions = self.manager.manage(&PmView {
            occasion,
            further: subflows.len().saturating_sub(usize::from(first)),
            ways: &Ways::default(),
            bound: false,
            now: now - ready_at,
            clock: now,
            client: self.client,
            opens: self.client,
            taken: true,
            local: &self.local,
            remote: &self.remote,
            subflows: &subflows,
            addresses: &addresses,
            announced: &[],
            // QUIC has no frame that tells a peer of an address.
            most_announced: 0,
            announcing: false,
            denies_first: false,
        });
        let wake = ready_at.saturating_add(self.manager.wake());
        self.wake = if wake > now { wake } else { NEVER };
        for action in actions {
            match action {
                // Paths are told apart by their addresses: there is one between two of them.
                Action::Open(pair) | Action::OpenRouted(pair) | Action::OpenVia(pair, _) => {
                    if self.between(&open, pair).is_empty() && !self.wanted.contains(&pair) {
                        self.wanted.push_back(pair);
                    }
                }
                Action::Close(pair) => wishes.abandon.extend(self.between(&open, pair)),
                Action::Withdraw(id) => {
                    let from = |tuple| self.pair(tuple).is_some_and(|pair| pair.local == id);
                    let lost = open.iter().filter(|(_, tuple)| from(*tuple));
                    wishes.abandon.extend(lost.map(|(number, _)| number));
                }
                Action::Priority { pair, backup } => {
                    let of = self.between(&open, pair).into_iter();
                    wishes.status.extend(of.map(|path| (path, backup)));
                }
                Action::Announce { .. } => {}
            }
        }
        wishes
    }

    fn between(&self, open: &[Open], pair: Pair) -> Vec<usize> {
        let own = open
            .iter()
            .filter(|(_, tuple)| self.pair(*tuple) == Some(pair));
        own.map(|(number, _)| *number).collect()
    }

    fn pair(&self, tuple: Tuple) -> Option<Pair> {
        let local = tuple.local.ip();
        let local = self.local.iter().find(|known| known.address == local)?;
        let remote = tuple.remote.ip();
        let remote = self.remote.iter().find(|known| known.address == remote)?;
        Some(Pair {
            local: local.id,
            remote: remote.id,
        })
    }

    fn addresses_of(&self, pair: Pair) -> Option<(IpAddr, IpAddr)> {
        let local = self.local.iter().find(|known| known.id == pair.local)?;
        let remote = self.remote.iter().find(|known| known.id == pair.remote)?;
        Some((local.address, remote.address))
    }

    /// The first pair for which there is no path yet, and whether it is a backup.
    pub fn next(&self) -> Option<(IpAddr, SocketAddr, bool)> {
        let pair = self.wanted.front()?;
        let (local, remote) = self.addresses_of(*pair)?;
        let mut own = self.local.iter();
        let backup = own.any(|known| known.id == pair.local && known.backup);
        Some((local, (remote, self.remote_port).into(), backup))
    }

    /// There is one now.
    pub fn opened(&mut self) {
        self.wanted.pop_front();
    }
}

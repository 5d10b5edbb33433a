//! When a path manager is called, and with what.

use std::net::{IpAddr, SocketAddr};

use super::Addresses;
use crate::host::Ways;
use crate::path_manager::{Action, Occasion, Pair, PathManager, PmView};
use crate::{NEVER, Nanos};

/// How a connection stands, as its protocol knows it: the rest of [`PmView`] follows from its addresses and the time.
pub(crate) struct Standing<'a> {
    pub occasion: Occasion,
    pub client: bool,
    pub opens: bool,
    pub taken: bool,
    pub subflows: &'a [Pair],
    pub further: usize,
    pub addresses: &'a [(IpAddr, SocketAddr)],
    pub announced: &'a [u8],
    pub most_announced: usize,
    pub announcing: bool,
    pub ways: &'a Ways,
    pub bound: bool,
    pub denies_first: bool,
}

/// A path manager, and when it is asked.
pub(crate) struct Manager {
    path_manager: Box<dyn PathManager>,
    /// When it was first asked, and when it is to be asked again.
    ready_at: Option<Nanos>,
    wakes_at: Nanos,
    /// What it is to be asked for then, beside its turn.
    occasions: Vec<Occasion>,
}

impl Manager {
    pub fn new(path_manager: Box<dyn PathManager>) -> Self {
        Self {
            path_manager,
            ready_at: None,
            wakes_at: NEVER,
            occasions: Vec::new(),
        }
    }

    pub fn path_manager(&self) -> &dyn PathManager {
        &*self.path_manager
    }

    pub fn path_manager_mut(&mut self) -> &mut dyn PathManager {
        &mut *self.path_manager
    }

    /// It is to be asked at `now`, in its turn.
    pub fn begin(&mut self, now: Nanos) {
        self.occasions.push(Occasion::Turn);
        self.wakes_at = now;
    }

    /// It is to be asked on an occasion once what arrived at `now` is answered, if it minds and is not to be asked already. True: it is.
    pub fn note(&mut self, occasion: Occasion, now: Nanos) -> bool {
        let noted = self.minds(occasion) && !self.occasions.contains(&occasion);
        if noted {
            self.occasions.push(occasion);
            self.wakes_at = self.wakes_at.min(now);
        }
        noted
    }

    /// What it is to be asked for now.
    pub fn take_occasions(&mut self) -> Vec<Occasion> {
        self.wakes_at = NEVER;
        let mut occasions = std::mem::take(&mut self.occasions);
        if occasions.is_empty() {
            occasions.push(Occasion::Turn);
        }
        occasions
    }

    /// When it was first asked, which is `now` if it never was.
    pub fn ready_at(&mut self, now: Nanos) -> Nanos {
        *self.ready_at.get_or_insert(now)
    }

    pub fn minds(&self, occasion: Occasion) -> bool {
        self.path_manager.minds(occasion)
    }

    /// Whether a subflow from here has the priority of its address.
    pub fn ranks(&self, local: SocketAddr) -> bool {
        self.path_manager.ranks(local.ip(), Some(local.port()))
    }

    /// It was never asked, and is to be now.
    pub fn begins(&self, now: Nanos) -> bool {
        self.ready_at.is_none() && self.wakes_at <= now
    }

    /// It was never asked, or the time has come that it named.
    pub fn is_due(&self, now: Nanos) -> bool {
        self.ready_at.is_none() || self.wakes_at <= now
    }

    pub fn wakes_at(&self) -> Nanos {
        self.wakes_at
    }

    pub fn ask(&mut self, standing: &Standing, addresses: &Addresses, now: Nanos) -> Vec<Action> {
        let ready_at = self.ready_at(now);
        let actions = self.path_manager.manage(&PmView {
            occasion: standing.occasion,
            now: now - ready_at,
            clock: now,
            client: standing.client,
            opens: standing.opens,
            taken: standing.taken,
            local: addresses.local(),
            remote: addresses.remote(),
            subflows: standing.subflows,
            further: standing.further,
            addresses: standing.addresses,
            announced: standing.announced,
            most_announced: standing.most_announced,
            announcing: standing.announcing,
            ways: standing.ways,
            bound: standing.bound,
            denies_first: standing.denies_first,
        });
        let wake = match self.path_manager.wake() {
            wake if wake > now - ready_at => ready_at.saturating_add(wake),
            _ => NEVER,
        };
        // What came in between does not take the place of what it is to be asked for already.
        self.wakes_at = match self.occasions.is_empty() {
            true => wake,
            false => self.wakes_at.min(wake),
        };
        actions
    }
}

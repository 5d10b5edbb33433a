//! Multipath over any transport: the addresses of both ends, and the policies that decide which paths exist and what
//! they carry.

mod addresses;
mod manager;

pub(crate) use addresses::Addresses;
pub(crate) use manager::{Manager, Standing};

use crate::Nanos;
use crate::path_manager::{Action, PathManager};
use crate::scheduler::{Blocked, Rescue, Rescuer, Scheduler, View};

/// What decides about the paths of a connection.
pub(crate) struct Policy {
    scheduler: Box<dyn Scheduler>,
    rescuer: Rescuer,
    manager: Manager,
    addresses: Addresses,
}

impl Policy {
    pub fn new(
        scheduler: Box<dyn Scheduler>,
        rescuer: Rescuer,
        path_manager: Box<dyn PathManager>,
        addresses: Addresses,
    ) -> Self {
        Self {
            scheduler,
            rescuer,
            manager: Manager::new(path_manager),
            addresses,
        }
    }

    pub fn scheduler(&mut self) -> &mut dyn Scheduler {
        &mut *self.scheduler
    }

    /// What to do for a connection that is blocked although a path has room; its scheduler learns of it.
    pub fn rescue(&mut self, view: &View, cause: Blocked) -> Rescue {
        self.scheduler.blocked(cause);
        self.rescuer.rescue(view, cause)
    }

    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    pub fn manager_mut(&mut self) -> &mut Manager {
        &mut self.manager
    }

    /// Asks the path manager what to do.
    pub fn ask_manager(&mut self, standing: &Standing, now: Nanos) -> Vec<Action> {
        self.manager.ask(standing, &self.addresses, now)
    }

    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    pub fn addresses_mut(&mut self) -> &mut Addresses {
        &mut self.addresses
    }
}

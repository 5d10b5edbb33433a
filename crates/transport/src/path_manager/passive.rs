//! The path manager that does nothing of its own accord.

use super::{Action, Departure, LocalAddress, PathManager, PathManagerEntry, PmView};
use crate::registry::no_parameters;

pub(crate) const NAME: &str = "default";

pub(super) const ENTRY: PathManagerEntry = PathManagerEntry {
    name: NAME,
    description: "Opens no subflow and announces no address; takes what the peer opens",
    source: "mptcp.org net/mptcp/mptcp_pm.c",
    parameters: no_parameters,
    make: |_| Box::new(Passive),
};

struct Passive;

impl PathManager for Passive {
    fn manage(&mut self, _view: &PmView) -> Vec<Action> {
        Vec::new()
    }
    /// It hears of no interface (mptcp.org registers for them in `mptcp_fullmesh.c` alone).
    fn departure(&self, _of: &LocalAddress) -> Departure {
        Departure::Unnoticed
    }
}

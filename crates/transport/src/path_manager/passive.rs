//! The path manager that does nothing of its own accord.

use super::{Action, PathManager, PathManagerEntry, PmView};
use crate::registry::no_parameters;

pub(super) const ENTRY: PathManagerEntry = PathManagerEntry {
    name: "default",
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
}

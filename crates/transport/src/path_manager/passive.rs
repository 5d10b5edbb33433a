//! The path manager that does nothing of its own accord.

use polypath_settings::{Algorithm, algorithm};

use super::{Action, Departure, LocalAddress, PathManager, PmView};

algorithm! {
    "default",
    "Opens no subflow and announces no address; takes what the peer opens",
    "mptcp.org net/mptcp/mptcp_pm.c";
    Passive
}

impl Algorithm<dyn PathManager> for Passive {
    fn make(self) -> Box<dyn PathManager> {
        Box::new(self)
    }
}

#[derive(Default)]
pub(super) struct Passive;

impl PathManager for Passive {
    fn manage(&mut self, _view: &PmView) -> Vec<Action> {
        Vec::new()
    }
    /// It hears of no interface (mptcp.org registers for them in `mptcp_fullmesh.c` alone).
    fn departure(&self, _of: &LocalAddress) -> Departure {
        Departure::Unnoticed
    }
}

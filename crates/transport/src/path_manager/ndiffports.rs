//! Several subflows between the same two addresses.

use polypath_settings::{Algorithm, algorithm};

use super::{Action, Departure, LocalAddress, Pair, PathManager, PmView};

algorithm! {
    "ndiffports",
    "Several subflows between the connection's first two addresses, from different source ports",
    "mptcp.org net/mptcp/mptcp_ndiffports.c";
    /// Settings of several subflows between two addresses.
    NDiffPortsConfig {
        /// subflows in all, the first included
        num_subflows: u32 as Integer.at_least(1).at_most(64) = Integer(2),
    }
}

impl Algorithm<dyn PathManager> for NDiffPortsConfig {
    fn make(self) -> Box<dyn PathManager> {
        Box::new(NDiffPorts {
            subflows: self.num_subflows as usize,
        })
    }
}

struct NDiffPorts {
    subflows: usize,
}

impl PathManager for NDiffPorts {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        let first = Pair {
            local: 0,
            remote: 0,
        };
        let up = view.local.iter().any(|local| local.id == 0 && local.up);
        if !view.client || !up {
            return Vec::new();
        }
        let present = view.subflows.iter().filter(|pair| **pair == first).count();
        (present..self.subflows)
            .map(|_| Action::Open(first))
            .collect()
    }
    /// It hears of no interface (mptcp.org registers for them in `mptcp_fullmesh.c` alone).
    fn departure(&self, _of: &LocalAddress) -> Departure {
        Departure::Unnoticed
    }
}

//! Several subflows between the same two addresses.

use super::{Action, Departure, LocalAddress, Pair, PathManager, PathManagerEntry, PmView};
use crate::registry::Parameter;

pub(super) const ENTRY: PathManagerEntry = PathManagerEntry {
    name: "ndiffports",
    description: "Several subflows between the connection's first two addresses, from different source ports",
    source: "mptcp.org net/mptcp/mptcp_ndiffports.c",
    parameters: || {
        vec![Parameter::integer(
            "num_subflows",
            2,
            1,
            64,
            "subflows in all, the first included",
        )]
    },
    make: |parameters| {
        Box::new(NDiffPorts {
            subflows: parameters.integer("num_subflows") as usize,
        })
    },
};

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

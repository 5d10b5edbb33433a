//! A subflow, or several, between every local and every remote address.

use super::{Action, Pair, PathManager, PathManagerEntry, PmView};
use crate::registry::Parameter;

pub(super) const ENTRY: PathManagerEntry = PathManagerEntry {
    name: "fullmesh",
    description: "Subflows between every address of the client and every address of the server",
    source: "mptcp.org net/mptcp/mptcp_fullmesh.c",
    parameters: || {
        vec![Parameter::integer(
            "num_subflows",
            1,
            1,
            64,
            "subflows for each pair of addresses",
        )]
    },
    make: |parameters| {
        Box::new(FullMesh {
            subflows: parameters.integer("num_subflows") as usize,
        })
    },
};

struct FullMesh {
    subflows: usize,
}

impl PathManager for FullMesh {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        if !view.client {
            return view
                .local
                .iter()
                .filter(|local| local.up && local.id != 0 && !view.announced.contains(&local.id))
                .map(|local| Action::Announce(local.id))
                .collect();
        }
        let mut actions = Vec::new();
        for local in view.local.iter().filter(|local| local.up) {
            for remote in view
                .remote
                .iter()
                .filter(|remote| remote.address.is_ipv4() == local.address.is_ipv4())
            {
                let pair = Pair {
                    local: local.id,
                    remote: remote.id,
                };
                let present = view.subflows.iter().filter(|other| **other == pair).count();
                actions.extend((present..self.subflows).map(|_| Action::Open(pair)));
            }
        }
        actions
    }
}

//! A subflow, or several, between every local and every remote address.

use std::collections::BTreeMap;

use polypath_settings::{Algorithm, algorithm};

use super::{Action, FIRST, Pair, PathManager, PmView};

algorithm! {
    "fullmesh",
    "Subflows between every address of the client and every address of the server",
    "mptcp.org net/mptcp/mptcp_fullmesh.c";
    /// Settings of a full mesh.
    FullMeshConfig {
        /// subflows for each pair of addresses
        num_subflows: u32 as Integer.at_least(1).at_most(64) = Integer(1),
    }
}

impl Algorithm<dyn PathManager> for FullMeshConfig {
    fn make(self) -> Box<dyn PathManager> {
        Box::new(FullMesh {
            subflows: self.num_subflows as usize,
            begun: false,
        })
    }
}

struct FullMesh {
    subflows: usize,
    begun: bool,
}

impl FullMesh {
    /// The peer hears at first of a first address that is a backup (RFC 8684 section 3.3.8), which no option of its handshake says (mptcp.org
    /// `mptcp_update_metasocket`, Linux `mptcp_mpc_endpoint_setup`).
    fn begin(&mut self, view: &PmView) -> Option<Action> {
        let begun = std::mem::replace(&mut self.begun, true);
        let mut local = view.local.iter();
        let backup = local.any(|local| local.id == FIRST.local && local.backup);
        (!begun && backup).then_some(Action::Priority {
            pair: FIRST,
            backup: true,
        })
    }
}

impl PathManager for FullMesh {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        let mut actions: Vec<Action> = self.begin(view).into_iter().collect();
        if !view.client {
            actions.extend(view.announcements());
            return actions;
        }
        let mut present = BTreeMap::<(u8, u8), usize>::new();
        for pair in view.subflows {
            *present.entry((pair.local, pair.remote)).or_default() += 1;
        }
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
                let known = present.get(&(pair.local, pair.remote));
                let missing = known.copied().unwrap_or(0)..self.subflows;
                actions.extend(missing.map(|_| Action::Open(pair)));
            }
        }
        actions
    }
}

//! Subflows between the first two addresses that are steered through gateways.

use std::net::IpAddr;

use super::{Action, Departure, LocalAddress, Pair, PathManager, PathManagerEntry, PmView};
use crate::registry::Parameter;

/// Implemented from what `mptcp_binder.c` does with loose source routes (RFC 791 section 3.1). The network takes the gateways as waypoints;
/// packets carry no IP option for it, and answers come back the same way (RFC 1122 section 4.2.3.8).
pub(super) const ENTRY: PathManagerEntry = PathManagerEntry {
    name: "binder",
    description: "A further subflow between the first two addresses through each list of gateways; none without any",
    source: "mptcp.org net/mptcp/mptcp_binder.c; Boccassi et al., Binder, LCDNet 2013",
    parameters: || {
        vec![Parameter::texts(
            "gateways",
            |text| gateways(text).map(drop),
            "for each subflow the addresses of the routers that it passes, with commas between them",
        )]
    },
    make: |parameters| {
        Box::new(Binder {
            lists: parameters
                .texts("gateways")
                .filter_map(|text| gateways(text).ok())
                .collect(),
        })
    },
};

fn gateways(text: &str) -> Result<Vec<IpAddr>, String> {
    text.split(',')
        .map(|part| {
            part.trim()
                .parse()
                .map_err(|_| format!("'{}' is no address", part.trim()))
        })
        .collect()
}

struct Binder {
    /// Of the subflows still to be opened.
    lists: Vec<Vec<IpAddr>>,
}

impl PathManager for Binder {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        let first = Pair {
            local: 0,
            remote: 0,
        };
        let up = view.local.iter().any(|local| local.id == 0 && local.up);
        if !view.client || !up {
            return Vec::new();
        }
        self.lists
            .drain(..)
            .map(|list| Action::OpenVia(first, list))
            .collect()
    }
    /// It hears of no interface (mptcp.org registers for them in `mptcp_fullmesh.c` alone).
    fn departure(&self, _of: &LocalAddress) -> Departure {
        Departure::Unnoticed
    }
}

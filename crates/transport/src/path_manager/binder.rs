//! Subflows between the first two addresses that are steered through gateways.

use std::net::IpAddr;
use std::str::FromStr;

use polypath_settings::{Algorithm, Lines, algorithm};

use super::{Action, Departure, LocalAddress, Pair, PathManager, PmView};

algorithm! {
    "binder",
    "A further subflow between the first two addresses through each list of gateways; none without any",
    "mptcp.org net/mptcp/mptcp_binder.c; Boccassi et al., Binder, LCDNet 2013";
    /// Settings of subflows through gateways.
    BinderConfig {
        /// for each subflow the addresses of the routers that it passes, with commas between them
        gateways: Lines<Gateways> as Texts = Texts(&[]),
    }
}

impl Algorithm<dyn PathManager> for BinderConfig {
    fn make(self) -> Box<dyn PathManager> {
        Box::new(Binder {
            lists: self.gateways.0,
        })
    }
}

/// The routers that a subflow passes.
#[derive(Clone, Debug)]
pub struct Gateways(Vec<IpAddr>);

impl FromStr for Gateways {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let addresses = text.split(',').map(str::trim);
        let parsed =
            addresses.map(|part| part.parse().map_err(|_| format!("'{part}' is no address")));
        parsed.collect::<Result<_, _>>().map(Self)
    }
}

/// Implemented from what `mptcp_binder.c` does with loose source routes (RFC 791 section 3.1). The network takes the gateways as waypoints;
/// packets carry no IP option for it, and answers come back the same way (RFC 1122 section 4.2.3.8).
struct Binder {
    /// Of the subflows still to be opened.
    lists: Vec<Gateways>,
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
            .map(|Gateways(list)| Action::OpenVia(first, list))
            .collect()
    }
    /// It hears of no interface (mptcp.org registers for them in `mptcp_fullmesh.c` alone).
    fn departure(&self, _of: &LocalAddress) -> Departure {
        Departure::Unnoticed
    }
}

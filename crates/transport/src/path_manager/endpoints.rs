//! Upstream Linux's in-kernel path manager: every address of the host is an endpoint with the same flags, within limits.

use super::{Action, Pair, PathManager, PathManagerEntry, PmView, RemoteAddress};
use crate::registry::Parameter;

pub(super) const ENTRY: PathManagerEntry = PathManagerEntry {
    name: "endpoints",
    description: "The kernel's endpoints and limits: each address, after the first, tried once",
    source: "Linux net/mptcp/pm_kernel.c; ip-mptcp(8)",
    parameters: || {
        vec![
            Parameter::choice(
                "flags",
                &["subflow", "fullmesh", "signal", "signal subflow", "none"],
                "what the host's addresses are for: opening subflows to the peer's first address, or to all; being announced",
            ),
            Parameter::integer(
                "subflows",
                2,
                0,
                64,
                "further subflows of a connection at most (ip mptcp limits set subflows)",
            ),
            Parameter::integer(
                "add_addr_accepted",
                0,
                0,
                8,
                "announced addresses to which the client opens subflows at most (ip mptcp limits set add_addr_accepted)",
            ),
        ]
    },
    make: |parameters| {
        let flags = parameters.text("flags");
        Box::new(Endpoints {
            subflow: matches!(flags, "subflow" | "fullmesh" | "signal subflow"),
            fullmesh: flags == "fullmesh",
            signal: flags.starts_with("signal"),
            most_subflows: parameters.integer("subflows") as usize,
            most_accepted: parameters.integer("add_addr_accepted") as usize,
            used: Vec::new(),
            first_left: false,
            seen: Vec::new(),
        })
    },
};

/// Only a client opens subflows: behind its ephemeral port nobody listens for a server's.
struct Endpoints {
    subflow: bool,
    fullmesh: bool,
    signal: bool,
    most_subflows: usize,
    most_accepted: usize,
    /// Local ids that were tried; each once, until its address goes away (`id_avail_bitmap`).
    used: Vec<u8>,
    /// The peer's first address was removed.
    first_left: bool,
    /// Remote ids that were considered, and whether they got subflows; each once, until its address is removed.
    seen: Vec<(u8, bool)>,
}

/// A decision in the making: subflows asked for so far count as open ones.
struct Opening<'a> {
    view: &'a PmView<'a>,
    pairs: Vec<Pair>,
    actions: Vec<Action>,
    most: usize,
}

impl Opening<'_> {
    fn has_room(&self) -> bool {
        let first = usize::from(self.pairs.contains(&Pair {
            local: 0,
            remote: 0,
        }));
        self.pairs.len() - first < self.most
    }

    fn open(&mut self, local: u8, remote: &RemoteAddress) -> bool {
        let pair = Pair {
            local,
            remote: remote.id,
        };
        let family = self
            .view
            .local
            .iter()
            .any(|own| own.id == local && own.address.is_ipv4() == remote.address.is_ipv4());
        let wanted = family && self.has_room() && !self.pairs.contains(&pair);
        if wanted {
            self.pairs.push(pair);
            self.actions.push(Action::Open(pair));
        }
        wanted
    }
}

impl Endpoints {
    /// Subflows from addresses that were not tried yet (`mptcp_pm_create_subflow_or_signal_addr`).
    fn open_own(&mut self, opening: &mut Opening) {
        let view = opening.view;
        for local in view.local.iter().filter(|local| local.up && local.id != 0) {
            if self.used.contains(&local.id) || !opening.has_room() {
                continue;
            }
            self.used.push(local.id);
            for remote in view.remote {
                // Without fullmesh the peer's first address, with it those that subflows lead to.
                let known = remote.id == 0
                    || self.fullmesh && view.subflows.iter().any(|pair| pair.remote == remote.id);
                if known {
                    opening.open(local.id, remote);
                }
            }
        }
    }

    /// Subflows to an address that was announced (`mptcp_pm_nl_add_addr_received`). The first one is if it was removed, and counts towards no
    /// limit of announced ones.
    fn open_announced(&mut self, opening: &mut Opening) {
        let view = opening.view;
        for remote in view.remote {
            let first = remote.id == 0;
            if first && !self.first_left {
                continue;
            }
            if self.seen.iter().any(|&(id, _)| id == remote.id) {
                continue;
            }
            let from = |id: u8| self.fullmesh || id == 0;
            let mut opened = false;
            if first || self.accepted() < self.most_accepted {
                for local in view.local.iter().filter(|local| local.up && from(local.id)) {
                    opened |= opening.open(local.id, remote);
                }
            }
            self.seen.push((remote.id, opened));
        }
    }

    /// Announced addresses that got subflows (`add_addr_accepted`).
    fn accepted(&self) -> usize {
        let counts = |&&(id, opened): &&(u8, bool)| opened && id != 0;
        self.seen.iter().filter(counts).count()
    }
}

impl PathManager for Endpoints {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        self.used
            .retain(|id| view.local.iter().any(|local| local.id == *id && local.up));
        self.seen
            .retain(|(id, _)| view.remote.iter().any(|remote| remote.id == *id));
        self.first_left |= view.remote.iter().all(|remote| remote.id != 0);
        let mut actions: Vec<Action> = if self.signal {
            view.announcements().collect()
        } else {
            Vec::new()
        };
        if view.client {
            let mut opening = Opening {
                view,
                pairs: view.subflows.to_vec(),
                actions: Vec::new(),
                most: self.most_subflows,
            };
            if self.subflow {
                self.open_own(&mut opening);
            }
            self.open_announced(&mut opening);
            actions.append(&mut opening.actions);
        }
        actions
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use serde_json::json;

    use super::*;
    use crate::path_manager::{LocalAddress, REGISTRY};

    fn manager(parameters: serde_json::Value) -> Box<dyn PathManager> {
        REGISTRY
            .make("endpoints", parameters.as_object().unwrap())
            .unwrap()
    }

    fn address(net: u8, host: u8) -> IpAddr {
        Ipv4Addr::new(10, net, 0, host).into()
    }

    fn local(count: u8) -> Vec<LocalAddress> {
        (0..count)
            .map(|id| LocalAddress {
                id,
                address: address(id, 1),
                backup: false,
                up: true,
            })
            .collect()
    }

    fn remote(count: u8) -> Vec<RemoteAddress> {
        (0..count)
            .map(|id| RemoteAddress {
                id,
                address: address(id, 2),
                port: None,
            })
            .collect()
    }

    fn opened(
        manager: &mut dyn PathManager,
        local: &[LocalAddress],
        remote: &[RemoteAddress],
        subflows: &mut Vec<Pair>,
    ) -> Vec<(u8, u8)> {
        let actions = manager.manage(&PmView {
            now: 0,
            clock: 0,
            client: true,
            opens: true,
            local,
            remote,
            subflows,
            addresses: &[],
            announced: &[],
            most_announced: usize::MAX,
        });
        let mut found = Vec::new();
        for action in actions {
            if let Action::Open(pair) = action {
                subflows.push(pair);
                found.push((pair.local, pair.remote));
            }
        }
        found
    }

    const FIRST: Pair = Pair {
        local: 0,
        remote: 0,
    };

    #[test]
    fn each_address_gets_one_subflow_within_the_limit() {
        let mut manager = manager(json!({}));
        let mut subflows = vec![FIRST];
        let found = opened(&mut *manager, &local(5), &remote(1), &mut subflows);
        assert_eq!(found, [(1, 0), (2, 0)]);
        // A subflow that ended makes room for the next address, not for itself.
        subflows.remove(1);
        let found = opened(&mut *manager, &local(5), &remote(1), &mut subflows);
        assert_eq!(found, [(3, 0)]);
    }

    #[test]
    fn an_announced_address_is_left_alone_by_default() {
        let mut manager = manager(json!({"subflows": 8}));
        let mut subflows = vec![FIRST];
        let found = opened(&mut *manager, &local(1), &remote(3), &mut subflows);
        assert_eq!(found, []);
    }

    #[test]
    fn as_many_announced_addresses_are_accepted_as_the_limit_says() {
        let mut manager = manager(json!({"flags": "none", "subflows": 8, "add_addr_accepted": 1}));
        let mut subflows = vec![FIRST];
        let found = opened(&mut *manager, &local(2), &remote(3), &mut subflows);
        assert_eq!(found, [(0, 1)]);
    }

    /// `mptcp_pm_nl_rm_addr`
    #[test]
    fn an_address_that_was_removed_makes_room_for_the_next() {
        let mut manager = manager(json!({"flags": "none", "subflows": 8, "add_addr_accepted": 1}));
        let mut subflows = vec![FIRST];
        for _ in 0..3 {
            let found = opened(&mut *manager, &local(1), &remote(2), &mut subflows);
            assert_eq!(found, [(0, 1)]);
            subflows.pop();
            let found = opened(&mut *manager, &local(1), &remote(1), &mut subflows);
            assert_eq!(found, []);
        }
    }

    /// `mptcp_pm_add_addr_received`
    #[test]
    fn the_first_address_is_announced_only_after_it_was_removed() {
        let mut manager = manager(json!({"flags": "none", "subflows": 8}));
        let mut subflows = vec![FIRST];
        let gone = opened(&mut *manager, &local(2), &remote(2)[1..], &mut subflows);
        assert_eq!(gone, []);
        subflows.clear();
        for back in [vec![(0, 0)], vec![]] {
            let found = opened(&mut *manager, &local(2), &remote(2), &mut subflows);
            assert_eq!(found, back);
        }
    }

    #[test]
    fn fullmesh_pairs_every_address_with_every_accepted_one() {
        let mut manager =
            manager(json!({"flags": "fullmesh", "subflows": 8, "add_addr_accepted": 8}));
        let mut subflows = vec![FIRST];
        let first = opened(&mut *manager, &local(2), &remote(1), &mut subflows);
        assert_eq!(first, [(1, 0)]);
        let later = opened(&mut *manager, &local(2), &remote(2), &mut subflows);
        assert_eq!(later, [(0, 1), (1, 1)]);
    }

    #[test]
    fn an_address_that_came_back_is_tried_again() {
        let mut manager = manager(json!({}));
        let mut addresses = local(2);
        let mut subflows = vec![FIRST];
        assert_eq!(
            opened(&mut *manager, &addresses, &remote(1), &mut subflows),
            [(1, 0)]
        );
        subflows.pop();
        addresses[1].up = false;
        assert_eq!(
            opened(&mut *manager, &addresses, &remote(1), &mut subflows),
            []
        );
        addresses[1].up = true;
        assert_eq!(
            opened(&mut *manager, &addresses, &remote(1), &mut subflows),
            [(1, 0)]
        );
    }

    #[test]
    fn signal_announces_every_further_address() {
        let mut manager = manager(json!({"flags": "signal"}));
        let actions = manager.manage(&PmView {
            now: 0,
            clock: 0,
            client: false,
            opens: true,
            local: &local(3),
            remote: &remote(1),
            subflows: &[FIRST],
            addresses: &[],
            announced: &[0, 2],
            most_announced: usize::MAX,
        });
        assert_eq!(actions, [Action::Announce(1)]);
    }
}

//! Upstream Linux's in-kernel path manager: addresses of the host are endpoints with flags, within limits.

use std::net::{IpAddr, SocketAddr};

use super::{
    Action, Departure, LocalAddress, Occasion, Pair, PathManager, PathManagerEntry, PmView,
    RemoteAddress,
};
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
            Parameter::texts(
                "endpoints",
                |text| endpoint(text).map(drop),
                "in place of flags: the addresses that are endpoints, in their order, each \"ADDRESS [subflow] [signal] \
                 [fullmesh] [port NUMBER]\"; other addresses of the host are none (ip mptcp endpoint add). A port is of \
                 an address that is announced and not opened from",
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
        let flags = Flags {
            subflow: matches!(flags, "subflow" | "fullmesh" | "signal subflow"),
            fullmesh: flags == "fullmesh",
            signal: flags.starts_with("signal"),
        };
        let given = parameters.texts("endpoints");
        let mut chosen: Vec<Endpoint> = given.filter_map(|text| endpoint(text).ok()).collect();
        // Those with a port come before the others, the last one first (`mptcp_pm_nl_append_new_local_addr`).
        chosen.sort_by_key(|it| it.port.is_none());
        let ports = chosen.iter().filter(|it| it.port.is_some()).count();
        chosen[..ports].reverse();
        let most_subflows = parameters.integer("subflows") as usize;
        let most_accepted = parameters.integer("add_addr_accepted") as usize;
        let any = |has: fn(&Flags) -> bool| {
            chosen.iter().any(|it| has(&it.flags)) || (chosen.is_empty() && has(&flags))
        };
        let pending = (any(|it| it.subflow) && most_subflows > 0) || any(|it| it.signal);
        Box::new(Endpoints {
            flags,
            chosen,
            most_subflows,
            most_accepted,
            begun: false,
            tried: Vec::new(),
            used: 0,
            pending,
            accepts: most_accepted > 0 && most_subflows > 0,
            accepted: 0,
        })
    },
};

/// What an address is for.
#[derive(Clone, Copy, Default)]
struct Flags {
    subflow: bool,
    fullmesh: bool,
    signal: bool,
}

/// An address that is an endpoint.
#[derive(Clone, Copy)]
struct Endpoint {
    address: IpAddr,
    flags: Flags,
    /// Where joins are taken that its announcement leads to, if not at the connection's port.
    port: Option<u16>,
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    let mut words = text.split_whitespace();
    let address = words.next().unwrap_or_default();
    let address = address
        .parse()
        .map_err(|_| format!("'{address}' is no IP address"))?;
    let mut found = Endpoint {
        address,
        flags: Flags::default(),
        port: None,
    };
    while let Some(word) = words.next() {
        match word {
            "subflow" => found.flags.subflow = true,
            "signal" => found.flags.signal = true,
            "fullmesh" => found.flags.fullmesh = true,
            "port" => {
                let port = words.next().unwrap_or_default();
                let number = port.parse().ok().filter(|&number| number > 0);
                found.port = Some(number.ok_or_else(|| format!("'{port}' is no port"))?);
            }
            other => {
                return Err(format!(
                    "'{other}' is none of subflow, signal, fullmesh, port"
                ));
            }
        }
    }
    let Flags {
        subflow,
        fullmesh,
        signal,
    } = found.flags;
    if signal && fullmesh {
        return Err("an address is not both for signal and for fullmesh".into());
    }
    if found.port.is_some() && (subflow || !signal) {
        return Err("a port is of an address for signal and not for subflow".into());
    }
    Ok(found)
}

/// Pairs that one announcement or one address opens at most (`MPTCP_PM_ADDR_MAX`).
const MOST_AT_ONCE: usize = 8;

/// One connection's state (`struct mptcp_pm_data`).
struct Endpoints {
    /// Of every address, where none is chosen.
    flags: Flags,
    chosen: Vec<Endpoint>,
    most_subflows: usize,
    most_accepted: usize,
    begun: bool,
    /// Local ids that were announced or opened from, each once until its address goes away (those missing from `id_avail_bitmap`). The first
    /// subflow's is among them.
    tried: Vec<u8>,
    /// How many of them were opened from, but for the first subflow's (`local_addr_used`).
    used: usize,
    /// There may be something to do when an announcement came to its end or a subflow is established (`work_pending`).
    pending: bool,
    /// Announced addresses get subflows (`accept_addr`), and how many did (`add_addr_accepted`).
    accepts: bool,
    accepted: usize,
}

/// A decision in the making.
struct Opening<'a> {
    view: &'a PmView<'a>,
    /// Subflows beside the first, with those asked for so far (`extra_subflows`).
    further: usize,
    actions: Vec<Action>,
}

impl Opening<'_> {
    /// Opens a subflow, unless nothing leads there: then `connect` fails and it counts for nothing. Returns whether it did.
    fn open(&mut self, local: &LocalAddress, remote: &RemoteAddress) -> bool {
        let leads = self.view.ways.lead(local.address, remote.address);
        if leads {
            self.further += 1;
            self.actions.push(Action::Open(Pair {
                local: local.id,
                remote: remote.id,
            }));
        }
        leads
    }
}

fn same_family(local: &LocalAddress, remote: &RemoteAddress) -> bool {
    local.address.is_ipv4() == remote.address.is_ipv4()
}

/// An address of the host that is an endpoint.
#[derive(Clone, Copy)]
struct Own<'a> {
    local: &'a LocalAddress,
    flags: Flags,
    port: Option<u16>,
}

impl Endpoints {
    /// The host's endpoints in the kernel's order, those of interfaces that are up.
    fn own<'a>(&'a self, view: &'a PmView) -> impl Iterator<Item = Own<'a>> {
        let flags = self.flags;
        let all = view.local.iter().filter(|_| self.chosen.is_empty());
        let all = all.map(move |local| Own {
            local,
            flags,
            port: None,
        });
        let chosen = self.chosen.iter().filter_map(|it| {
            let local = view
                .local
                .iter()
                .find(|local| local.address == it.address)?;
            Some(Own {
                local,
                flags: it.flags,
                port: it.port,
            })
        });
        all.chain(chosen).filter(|it| it.local.up)
    }

    /// Before the first use of an address, the peer's or an own one: the first subflow's counts as used, and the peer hears of it if it is a
    /// backup (RFC 8684 section 3.3.8), which no option of its handshake says (`mptcp_mpc_endpoint_setup`).
    fn begin(&mut self, opening: &mut Opening) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        self.tried.push(0);
        let first = self.own(opening.view).find(|it| it.local.id == 0);
        if first.is_some_and(|it| it.local.backup) {
            opening.actions.push(Action::Priority {
                pair: Pair {
                    local: 0,
                    remote: 0,
                },
                backup: true,
            });
        }
    }

    fn next_untried<'a>(&'a self, view: &'a PmView, has: fn(&Flags) -> bool) -> Option<Own<'a>> {
        let untried = |it: &Own| has(&it.flags) && !self.tried.contains(&it.local.id);
        self.own(view).find(untried)
    }

    /// `mptcp_pm_nl_check_work_pending`
    fn has_work(&self, opening: &Opening) -> bool {
        let anything = |flags: &Flags| flags.subflow || flags.signal;
        opening.further != self.most_subflows && self.next_untried(opening.view, anything).is_some()
    }

    /// The peer takes no joins at its first address, and the limits are as they are by default: an announced address gets subflows
    /// nevertheless (`mptcp_pm_add_addr_c_flag_case`).
    fn joins_announced(&self, view: &PmView, further: usize) -> bool {
        view.denies_first
            && self.used == 0
            && self.most_accepted == 0
            && further < self.most_subflows
    }

    fn note_used(&mut self, id: u8) {
        if !self.tried.contains(&id) {
            self.tried.push(id);
        }
        // The first subflow's address does not count.
        self.used += usize::from(id != 0);
    }

    /// The next announcement, and subflows from addresses that were not tried yet (`mptcp_pm_create_subflow_or_signal_addr`). An address that is
    /// for both is opened from as soon as it is announced.
    fn use_addresses(&mut self, opening: &mut Opening) {
        self.begin(opening);
        let view = opening.view;
        let mut announced = None;
        if let Some(Own { local, flags, port }) = self.next_untried(view, |flags| flags.signal) {
            if view.announcing {
                return;
            }
            let (id, for_both) = (local.id, flags.subflow.then_some((local.clone(), flags)));
            self.tried.push(id);
            opening.actions.push(Action::Announce { id, port });
            announced = for_both;
        }
        let opens = view.opens && !self.joins_announced(view, opening.further);
        while opens && opening.further < self.most_subflows {
            let untried = || {
                let own = self.next_untried(view, |flags| flags.subflow)?;
                Some((own.local.clone(), own.flags))
            };
            let Some((local, flags)) = announced.take().or_else(untried) else {
                break;
            };
            self.note_used(local.id);
            self.open_from(&local, flags.fullmesh, opening);
        }
        if let Some((local, _)) = announced {
            self.note_used(local.id);
        }
        self.pending &= self.has_work(opening);
    }

    /// Subflows from an address: to the peer's first one, or to each that subflows lead to (`fill_remote_addresses_vec`). Before the program
    /// took the connection there is no socket for them (`mptcp_subflow_create_socket`).
    fn open_from(&self, local: &LocalAddress, fullmesh: bool, opening: &mut Opening) {
        let view = opening.view;
        if !view.taken {
            return;
        }
        let denied = |remote: &RemoteAddress| view.denies_first && remote.id == 0;
        let remotes = view.remote.iter();
        let remotes = remotes.filter(|remote| same_family(local, remote) && !denied(remote));
        if !fullmesh {
            if let Some(first) = remotes.into_iter().find(|remote| remote.id == 0) {
                opening.open(local, first);
            }
            return;
        }
        let missing = remotes.filter(|remote| {
            let led_to = |pair: &Pair| pair.remote == remote.id;
            let led_from = |pair: &Pair| led_to(pair) && pair.local == local.id;
            let first = remote.id == 0;
            // The kernel keeps the first subflow in its list when it has ended, so that no other takes its place.
            (first || view.subflows.iter().any(led_to))
                && !view.subflows.iter().any(led_from)
                && !(first && local.id == 0)
        });
        for remote in missing.take(MOST_AT_ONCE) {
            opening.open(local, remote);
            if opening.further >= self.most_subflows {
                break;
            }
        }
    }

    /// Subflows to an address that the peer told of (`mptcp_pm_add_addr_received`, `mptcp_pm_nl_add_addr_received`): from every address with
    /// fullmesh, from the one that routing takes otherwise (`fill_local_addresses_vec`). The first address counts towards no limit.
    fn open_towards(&mut self, id: u8, opening: &mut Opening) {
        let view = opening.view;
        let Some(remote) = view.remote.iter().find(|remote| remote.id == id) else {
            return;
        };
        let against_denial = id != 0 && self.joins_announced(view, opening.further);
        let known = match remote.port {
            Some(_) => view.subflows.iter().any(|pair| pair.remote == id),
            None => (view.addresses.iter()).any(|&(_, to)| to == remote.address),
        };
        if id != 0 && !self.accepts && !against_denial {
            return;
        }
        self.begin(opening);
        if known {
            return;
        }
        let before = opening.further;
        for local in self.sources(remote, against_denial, view) {
            if against_denial {
                self.note_used(local.id);
            }
            opening.open(&local, remote);
            if opening.further >= self.most_subflows {
                break;
            }
        }
        if opening.further > before {
            self.accepted += usize::from(id != 0);
            if self.accepted >= self.most_accepted || opening.further >= self.most_subflows {
                self.accepts = false;
            }
        }
    }

    /// The addresses from which subflows to an announced one leave.
    fn sources(
        &self,
        remote: &RemoteAddress,
        against_denial: bool,
        view: &PmView,
    ) -> Vec<LocalAddress> {
        let suits = |it: &Own| same_family(it.local, remote);
        let chosen = |has: &dyn Fn(&Own) -> bool| {
            let own = self.own(view).filter(|it| suits(it) && has(it));
            let own = own.map(|it| it.local.clone());
            own.take(MOST_AT_ONCE).collect()
        };
        if self.own(view).any(|it| it.flags.fullmesh) {
            return chosen(&|it| it.flags.fullmesh);
        }
        if against_denial {
            return chosen(&|it| it.flags.subflow && !self.tried.contains(&it.local.id));
        }
        let mut locals = view.local.iter().filter(|local| same_family(local, remote));
        let routed = locals.find(|local| {
            let preferred = view.ways.prefer(local.address, remote.address);
            preferred.unwrap_or(local.up)
        });
        routed
            .filter(|local| local.up)
            .cloned()
            .into_iter()
            .collect()
    }

    /// It has a task for an address. Others are no endpoints, or such as engine `linux` has for their priority alone.
    fn manages(&self, address: IpAddr) -> bool {
        let Flags {
            subflow,
            fullmesh,
            signal,
        } = self.flags;
        match self.chosen.is_empty() {
            true => subflow || fullmesh || signal,
            false => self.chosen.iter().any(|it| it.address == address),
        }
    }

    fn for_subflows(&self, id: u8, view: &PmView) -> bool {
        let Some(local) = view.local.iter().find(|local| local.id == id) else {
            return false;
        };
        let chosen = self.chosen.iter().find(|it| it.address == local.address);
        match chosen {
            Some(chosen) => chosen.flags.subflow,
            None => self.chosen.is_empty() && self.flags.subflow,
        }
    }
}

impl PathManager for Endpoints {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        let mut opening = Opening {
            view,
            further: view.further,
            actions: Vec::new(),
        };
        match view.occasion {
            Occasion::Turn | Occasion::AnnouncementEnded | Occasion::SubflowEstablished => {
                if self.pending {
                    self.use_addresses(&mut opening);
                }
            }
            // `mptcp_pm_subflow_check_next`
            Occasion::SubflowEnded => {
                if self.has_work(&opening) {
                    self.use_addresses(&mut opening);
                } else {
                    self.pending = false;
                }
            }
            Occasion::AddressReceived(id) => self.open_towards(id, &mut opening),
            // `mptcp_pm_nl_rm_addr`
            Occasion::AddressRemoved { id, closed } => {
                if id != 0 && closed {
                    self.accepted = self.accepted.saturating_sub(1);
                    self.accepts |= self.accepted < self.most_accepted;
                }
            }
            // `mptcp_nl_add_subflow_or_signal_addr`
            Occasion::AddressUp(id) => {
                let back = view.local.iter().find(|local| local.id == id);
                if back.is_some_and(|local| self.manages(local.address)) {
                    self.use_addresses(&mut opening);
                }
            }
            // `mptcp_nl_remove_subflow_and_signal_addr`, `__mark_subflow_endp_available`
            Occasion::AddressDown { id, left } => {
                let before = self.tried.len();
                self.tried.retain(|other| !left || *other != id);
                if self.tried.len() < before && id != 0 && self.for_subflows(id, view) {
                    self.used = self.used.saturating_sub(1);
                }
            }
        }
        opening.actions
    }

    fn minds(&self, _occasion: Occasion) -> bool {
        true
    }

    /// `mptcp_pm_nl_create_listen_socket`
    fn listens(&self, at: SocketAddr) -> bool {
        let own = |it: &Endpoint| it.address == at.ip() && it.port == Some(at.port());
        self.chosen.iter().any(own)
    }

    /// What `ip mptcp endpoint delete` does: the first address has the connection's id once any address was used
    /// (`mptcp_endp_get_local_id`, `mptcp_mpc_endpoint_setup`).
    fn departure(&self, of: &LocalAddress) -> Departure {
        match self.manages(of.address) {
            false => Departure::Unnoticed,
            true if of.id == 0 && !self.begun => Departure::Misnamed,
            true => Departure::Withdrawn,
        }
    }

    /// `mptcp_pm_nl_is_backup`, `mptcp_pm_nl_set_flags`
    fn ranks(&self, address: IpAddr) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|it| it.address == address)
    }

    /// `mptcp_pm_allow_new_subflow`
    fn admits(&self, further: usize) -> bool {
        further < self.most_subflows
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use serde_json::json;

    use super::*;
    use crate::host::Ways;
    use crate::path_manager::REGISTRY;

    fn address(net: u8, host: u8) -> IpAddr {
        Ipv4Addr::new(10, net, 0, host).into()
    }

    /// A manager and what its view shows.
    struct Bench {
        manager: Box<dyn PathManager>,
        client: bool,
        local: Vec<LocalAddress>,
        remote: Vec<RemoteAddress>,
        subflows: Vec<Pair>,
        first_ended: bool,
        denies_first: bool,
        taken: bool,
    }

    impl Bench {
        fn new(parameters: serde_json::Value, addresses: u8) -> Self {
            let parameters = parameters.as_object().unwrap();
            let own = (0..addresses).map(|id| LocalAddress {
                id,
                address: address(id, 1),
                backup: false,
                up: true,
            });
            let mut bench = Self {
                manager: REGISTRY.make("endpoints", parameters).unwrap(),
                client: true,
                local: own.collect(),
                remote: Vec::new(),
                subflows: vec![FIRST],
                first_ended: false,
                denies_first: false,
                taken: true,
            };
            bench.tell(0);
            bench
        }

        fn tell(&mut self, id: u8) {
            self.remote.push(RemoteAddress {
                id,
                address: address(id, 2),
                port: None,
            });
        }

        /// What it wants, in words; opened subflows are there at once.
        fn ask(&mut self, occasion: Occasion) -> Vec<String> {
            let of = |pair: &Pair| (address(pair.local, 1), address(pair.remote, 2));
            let addresses: Vec<_> = self.subflows.iter().map(of).collect();
            let actions = self.manager.manage(&PmView {
                occasion,
                now: 0,
                clock: 0,
                client: self.client,
                opens: true,
                taken: self.taken,
                local: &self.local,
                remote: &self.remote,
                subflows: &self.subflows,
                further: self.subflows.len() - usize::from(!self.first_ended),
                addresses: &addresses,
                announced: &[],
                most_announced: usize::MAX,
                announcing: false,
                ways: &Ways::default(),
                denies_first: self.denies_first,
            });
            let worded = actions.into_iter().map(|action| match action {
                Action::Open(pair) => {
                    self.subflows.push(pair);
                    format!("{}-{}", pair.local, pair.remote)
                }
                Action::Announce { id, port: None } => format!("announce {id}"),
                Action::Announce {
                    id,
                    port: Some(port),
                } => format!("announce {id} at {port}"),
                Action::Priority { pair, backup } => {
                    format!("{}-{} backup {backup}", pair.local, pair.remote)
                }
                other => format!("{other:?}"),
            });
            worded.collect()
        }

        fn received(&mut self, id: u8) -> Vec<String> {
            self.tell(id);
            self.ask(Occasion::AddressReceived(id))
        }

        fn ended(&mut self, subflow: usize) -> Vec<String> {
            self.first_ended |= self.subflows.remove(subflow) == FIRST;
            self.ask(Occasion::SubflowEnded)
        }
    }

    const FIRST: Pair = Pair {
        local: 0,
        remote: 0,
    };
    const NOTHING: [&str; 0] = [];

    #[test]
    fn each_address_gets_one_subflow_within_the_limit() {
        let mut bench = Bench::new(json!({}), 5);
        assert_eq!(bench.ask(Occasion::Turn), ["1-0", "2-0"]);
        // A subflow that ended makes room for the next address, not for itself.
        assert_eq!(bench.ended(1), ["3-0"]);
    }

    #[test]
    fn an_announced_address_is_left_alone_by_default() {
        let mut bench = Bench::new(json!({"subflows": 8}), 1);
        assert_eq!(bench.received(1), NOTHING);
    }

    #[test]
    fn as_many_announced_addresses_are_accepted_as_the_limit_says() {
        let mut bench = Bench::new(
            json!({"flags": "none", "subflows": 8, "add_addr_accepted": 1}),
            2,
        );
        assert_eq!(bench.received(1), ["0-1"]);
        assert_eq!(bench.received(2), NOTHING);
    }

    #[test]
    fn an_address_that_was_removed_makes_room_for_the_next() {
        let mut bench = Bench::new(
            json!({"flags": "none", "subflows": 8, "add_addr_accepted": 1}),
            1,
        );
        for _ in 0..3 {
            assert_eq!(bench.received(1), ["0-1"]);
            bench.subflows.pop();
            bench.remote.pop();
            let removed = Occasion::AddressRemoved {
                id: 1,
                closed: true,
            };
            assert_eq!(bench.ask(removed), NOTHING);
        }
    }

    #[test]
    fn fullmesh_pairs_every_address_with_every_accepted_one() {
        let mut bench = Bench::new(
            json!({"flags": "fullmesh", "subflows": 8, "add_addr_accepted": 8}),
            2,
        );
        assert_eq!(bench.ask(Occasion::Turn), ["1-0"]);
        assert_eq!(bench.received(1), ["0-1", "1-1"]);
    }

    /// `fill_remote_addresses_fullmesh` finds the first subflow in its list after it has ended.
    #[test]
    fn fullmesh_replaces_no_first_subflow() {
        for (flags, again) in [("fullmesh", &NOTHING[..]), ("subflow", &["0-0"])] {
            let mut bench = Bench::new(json!({"flags": flags, "subflows": 8}), 2);
            assert_eq!(bench.ask(Occasion::Turn), ["1-0"]);
            bench.local[0].up = false;
            assert_eq!(bench.ended(0), NOTHING);
            assert_eq!(
                bench.ask(Occasion::AddressDown { id: 0, left: true }),
                NOTHING
            );
            bench.local[0].up = true;
            assert_eq!(bench.ask(Occasion::AddressUp(0)), again, "{flags}");
        }
    }

    #[test]
    fn signal_announces_one_address_at_a_time() {
        let mut bench = Bench::new(json!({"flags": "signal"}), 3);
        bench.client = false;
        assert_eq!(bench.ask(Occasion::Turn), ["announce 1"]);
        assert_eq!(bench.ask(Occasion::AnnouncementEnded), ["announce 2"]);
        assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
    }

    /// `mptcp_pm_nl_check_work_pending` finds none where the limit is reached, and is not asked again until a subflow ends.
    #[test]
    fn at_the_limit_of_subflows_one_address_is_announced() {
        let mut bench = Bench::new(json!({"flags": "signal", "subflows": 0}), 3);
        assert_eq!(bench.ask(Occasion::Turn), ["announce 1"]);
        assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
    }

    #[test]
    fn an_attempt_of_the_server_uses_up_an_address_that_was_to_be_announced() {
        let mut bench = Bench::new(json!({"flags": "signal subflow", "subflows": 8}), 3);
        bench.client = false;
        assert_eq!(bench.ask(Occasion::Turn), ["announce 1", "1-0", "2-0"]);
        assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
    }

    #[test]
    fn a_first_address_of_a_backup_is_told_once() {
        let mut bench = Bench::new(json!({"flags": "subflow"}), 2);
        bench.local[0].backup = true;
        assert_eq!(bench.ask(Occasion::Turn), ["0-0 backup true", "1-0"]);
        assert_eq!(bench.ask(Occasion::SubflowEstablished), NOTHING);
    }

    #[test]
    fn a_first_address_of_a_backup_is_told_before_any_address_is_used() {
        let mut bench = Bench::new(
            json!({"flags": "none", "subflows": 1, "add_addr_accepted": 1}),
            2,
        );
        bench.local[0].backup = true;
        assert_eq!(bench.ask(Occasion::Turn), NOTHING);
        assert_eq!(bench.received(1), ["0-0 backup true", "0-1"]);
        assert_eq!(bench.received(2), NOTHING);
    }

    #[test]
    fn before_the_program_takes_a_connection_attempts_fail_and_use_up_addresses() {
        let mut bench = Bench::new(json!({"flags": "signal subflow", "subflows": 1}), 4);
        bench.client = false;
        bench.taken = false;
        assert_eq!(bench.ask(Occasion::Turn), ["announce 1"]);
        bench.taken = true;
        assert_eq!(bench.ask(Occasion::AnnouncementEnded), NOTHING);
    }
}

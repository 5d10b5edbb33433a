//! Upstream Linux's in-kernel path manager: addresses of the host are endpoints with flags, within limits.

mod list;

use std::net::{IpAddr, SocketAddr};

use polypath_settings::{Algorithm, Lines, algorithm};

use super::{
    Action, Departure, FIRST, LocalAddress, Occasion, Pair, PathManager, PmView, RemoteAddress,
};
use list::{Endpoint, Flags, List, Named, Task};

algorithm! {
    "endpoints",
    "The kernel's endpoints and limits: each address, after the first, tried once",
    "Linux net/mptcp/pm_kernel.c; ip-mptcp(8)";
    /// Settings of the kernel's path manager.
    EndpointsConfig {
        /// what the host's addresses are for: opening subflows to the peer's first address, or to all; being announced
        flags: Task as Text = Text("subflow"),
        /// in place of flags: the addresses that are endpoints, in their order, each "ADDRESS [subflow] [signal]
        /// [fullmesh] [port NUMBER]"; other addresses of the host are none (ip mptcp endpoint add). A port is of
        /// an address that is announced and not opened from
        endpoints: Lines<Named> as Texts = Texts(&[]),
        /// further subflows of a connection at most (ip mptcp limits set subflows)
        subflows: u32 as Integer.at_least(0).at_most(64) = Integer(2),
        /// announced addresses to which the client opens subflows at most (ip mptcp limits set add_addr_accepted)
        add_addr_accepted: u32 as Integer.at_least(0).at_most(8) = Integer(0),
    }
}

impl Algorithm<dyn PathManager> for EndpointsConfig {
    fn make(self) -> Box<dyn PathManager> {
        let list = List::new(self.flags.flags(), self.endpoints.0);
        Box::new(Endpoints::new(
            list,
            self.subflows as usize,
            self.add_addr_accepted as usize,
        ))
    }
}

/// The kernel's path manager on a host whose addresses have no task.
pub(super) fn without_tasks() -> Box<dyn PathManager> {
    let list = List::new(Flags::default(), Vec::new());
    Box::new(Endpoints::new(list, usize::MAX, 0))
}

/// Pairs that one announcement or one address opens at most (`MPTCP_PM_ADDR_MAX`).
const MOST_AT_ONCE: usize = 8;

/// One connection's state (`struct mptcp_pm_data`).
struct Endpoints {
    list: List,
    most_subflows: usize,
    most_accepted: usize,
    begun: bool,
    /// The connection knows which endpoint its first address is (`mpc_endpoint_id`).
    first_known: bool,
    /// The peer's first address, which is opened to even after the peer withdrew it (`fill_remote_addr`).
    first_remote: Option<IpAddr>,
    /// Local ids that were announced or opened from, each once until its address goes away (those missing from `id_avail_bitmap`). The first
    /// subflow's is among them.
    tried: Vec<u8>,
    /// Those that were announced (`add_addr_signaled`).
    announced: Vec<u8>,
    /// How many were opened from, but for the first subflow's (`local_addr_used`).
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
    /// Opens subflows that were chosen together, to addresses with these ids. Where none leaves `connect` fails, and the subflow counts for
    /// nothing any more. Returns whether any was opened.
    fn open(&mut self, chosen: &[(&LocalAddress, u8, IpAddr)], bound: bool) -> bool {
        let mut opened = false;
        for &(local, remote, address) in chosen {
            if self.view.leaves(local, address, bound) {
                opened = true;
                self.further += 1;
                let pair = Pair {
                    local: local.id,
                    remote,
                };
                self.actions.push(match bound {
                    true => Action::Open(pair),
                    false => Action::OpenRouted(pair),
                });
            }
        }
        opened
    }
}

fn same_family(local: IpAddr, remote: IpAddr) -> bool {
    local.is_ipv4() == remote.is_ipv4()
}

fn find<'a>(view: &PmView<'a>, id: u8) -> Option<&'a LocalAddress> {
    view.local.iter().find(|local| local.id == id)
}

impl Endpoints {
    fn new(list: List, most_subflows: usize, most_accepted: usize) -> Self {
        Self {
            list,
            most_subflows,
            most_accepted,
            begun: false,
            first_known: false,
            first_remote: None,
            tried: Vec::new(),
            announced: Vec::new(),
            used: 0,
            pending: true,
            accepts: most_accepted > 0 && most_subflows > 0,
            accepted: 0,
        }
    }

    /// Before the first use of an address, the peer's or an own one: the first subflow's counts as used, and the peer hears of it if it is a
    /// backup (RFC 8684 section 3.3.8), which no option of its handshake says (`mptcp_mpc_endpoint_setup`).
    fn begin(&mut self, opening: &mut Opening) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        if !self.list.iter().any(|it| it.id == 0) {
            return;
        }
        self.first_known = true;
        self.note_tried(0);
        if find(opening.view, 0).is_some_and(|local| local.backup) {
            opening.actions.push(Action::Priority {
                pair: FIRST,
                backup: true,
            });
        }
    }

    fn next_untried(&self, has: fn(&Flags) -> bool) -> Option<Endpoint> {
        let untried = |it: &&Endpoint| has(&it.flags) && !self.tried.contains(&it.id);
        self.list.iter().find(untried).copied()
    }

    /// `mptcp_pm_nl_check_work_pending`
    fn has_work(&self, opening: &Opening) -> bool {
        let untried = |it: &Endpoint| !self.tried.contains(&it.id);
        opening.further != self.most_subflows && self.list.iter().any(untried)
    }

    /// The peer takes no joins at its first address, and the limits are as they are by default: an announced address gets subflows
    /// nevertheless (`mptcp_pm_add_addr_c_flag_case`).
    fn joins_announced(&self, opening: &Opening) -> bool {
        opening.view.denies_first
            && self.used == 0
            && self.most_accepted == 0
            && opening.further < self.most_subflows
    }

    fn note_tried(&mut self, id: u8) {
        if !self.tried.contains(&id) {
            self.tried.push(id);
        }
    }

    /// An address can be used again (`__mark_subflow_endp_available`).
    fn make_available(&mut self, id: u8) {
        let before = self.tried.len();
        self.tried.retain(|other| *other != id);
        if self.tried.len() < before && id != 0 {
            self.used = self.used.saturating_sub(1);
        }
    }

    /// Subflows are opened from an address; the first subflow's does not count.
    fn note_used(&mut self, id: u8) {
        self.note_tried(id);
        self.used += usize::from(id != 0);
    }

    /// The next announcement, and subflows from addresses that were not tried yet (`mptcp_pm_create_subflow_or_signal_addr`). An address that is
    /// for both is opened from as soon as it is announced.
    fn use_addresses(&mut self, opening: &mut Opening) {
        self.begin(opening);
        let view = opening.view;
        let mut for_both = None;
        if self.announced.len() < self.list.count(|flags| flags.signal) {
            if view.announcing {
                return;
            }
            if let Some(next) = self.next_untried(|flags| flags.signal) {
                let Endpoint { id, port, .. } = next;
                self.note_tried(id);
                self.announced.push(id);
                opening.actions.push(Action::Announce { id, port });
                for_both = Some(next).filter(|it| it.flags.subflow);
            }
        }
        let most_used = self.list.count(|flags| flags.subflow);
        let opens = view.opens && !self.joins_announced(opening);
        while opens && self.used < most_used && opening.further < self.most_subflows {
            let untried = || self.next_untried(|flags| flags.subflow);
            let Some(next) = for_both.take().or_else(untried) else {
                break;
            };
            self.note_used(next.id);
            self.open_from(next, opening);
        }
        if let Some(announced) = for_both {
            self.note_used(announced.id);
        }
        self.pending &= self.has_work(opening);
    }

    /// Subflows from an address: to the peer's first one, or to each that subflows lead to (`fill_remote_addresses_vec`). Before the program
    /// took the connection there is no socket for them (`mptcp_subflow_create_socket`).
    fn open_from(&self, from: Endpoint, opening: &mut Opening) {
        let view = opening.view;
        let Some(local) = find(view, from.id).filter(|_| view.taken) else {
            return;
        };
        let suits = |id: u8, remote: IpAddr| {
            same_family(from.address, remote) && !(view.denies_first && id == 0)
        };
        let first = self.first_remote.map(|address| (FIRST, address));
        if !from.flags.fullmesh {
            if let Some((_, address)) = first.filter(|&(_, address)| suits(0, address)) {
                opening.open(&[(local, 0, address)], true);
            }
            return;
        }
        // The kernel keeps the first subflow in its list when it has ended, so that no other takes its place.
        let others = view.subflows.iter().zip(view.addresses);
        let others = others.map(|(&pair, (_, to))| (pair, to.ip()));
        let led_to = first.into_iter().chain(others);
        let mut excluded: Vec<u8> = (led_to.clone())
            .filter(|(pair, _)| pair.local == from.id)
            .map(|(pair, _)| pair.remote)
            .collect();
        let mut chosen = Vec::new();
        for (Pair { remote, .. }, address) in led_to {
            if excluded.contains(&remote) || !suits(remote, address) {
                continue;
            }
            excluded.push(remote);
            chosen.push((local, remote, address));
            if self.is_enough(chosen.len(), opening) {
                break;
            }
        }
        opening.open(&chosen, true);
    }

    /// So many chosen together reach a limit. One is chosen in any case.
    fn is_enough(&self, chosen: usize, opening: &Opening) -> bool {
        opening.further + chosen >= self.most_subflows || chosen == MOST_AT_ONCE
    }

    /// Subflows to an address that the peer told of (`mptcp_pm_add_addr_received`, `mptcp_pm_nl_add_addr_received`). The first address counts
    /// towards no limit.
    fn open_towards(&mut self, id: u8, opening: &mut Opening) {
        let view = opening.view;
        let Some(remote) = view.remote.iter().find(|remote| remote.id == id) else {
            return;
        };
        let against_denial = id != 0 && self.joins_announced(opening);
        if id != 0 && !self.accepts && !against_denial {
            return;
        }
        self.begin(opening);
        let leads = |to: &SocketAddr| {
            to.ip() == remote.address && remote.port.is_none_or(|port| port == to.port())
        };
        if view.addresses.iter().any(|(_, to)| leads(to)) {
            return;
        }
        let (chosen, bound) = self.sources(remote, against_denial, opening);
        let chosen: Vec<_> = (chosen.into_iter())
            .map(|local| (local, id, remote.address))
            .collect();
        if opening.open(&chosen, bound) {
            self.accepted += usize::from(id != 0);
            if self.accepted >= self.most_accepted || opening.further >= self.most_subflows {
                self.accepts = false;
            }
        }
    }

    /// The addresses from which subflows to an announced one leave: all with fullmesh, against a denial those for subflows, and the one that
    /// routing takes otherwise, whose subflow is bound to no interface (`fill_local_addresses_vec`).
    fn sources<'a>(
        &mut self,
        remote: &RemoteAddress,
        against_denial: bool,
        opening: &Opening<'a>,
    ) -> (Vec<&'a LocalAddress>, bool) {
        let view = opening.view;
        let mut chosen = Vec::new();
        if self.list.count(|flags| flags.fullmesh) > 0 {
            let own: Vec<Endpoint> = self.list.iter().copied().collect();
            for endpoint in own.into_iter().filter(|it| it.flags.fullmesh) {
                if !same_family(endpoint.address, remote.address) {
                    continue;
                }
                if against_denial && endpoint.flags.subflow {
                    self.note_used(endpoint.id);
                }
                chosen.extend(find(view, endpoint.id));
                if self.is_enough(chosen.len(), opening) {
                    break;
                }
            }
            return (chosen, true);
        }
        if against_denial {
            let most_used = self.list.count(|flags| flags.subflow);
            while self.used < most_used {
                let Some(next) = self.next_untried(|flags| flags.subflow) else {
                    break;
                };
                self.note_tried(next.id);
                if !same_family(next.address, remote.address) || (next.id == 0 && self.first_known)
                {
                    continue;
                }
                self.note_used(next.id);
                chosen.extend(find(view, next.id));
                if self.is_enough(chosen.len(), opening) {
                    break;
                }
            }
            return (chosen, true);
        }
        let mut locals = view.local.iter();
        let routed = locals.find(|local| {
            let preferred = view.ways.prefer(local.address, remote.address);
            same_family(local.address, remote.address) && preferred.unwrap_or(local.up)
        });
        let routed = routed.filter(|local| local.up);
        (routed.into_iter().collect(), false)
    }
}

impl PathManager for Endpoints {
    fn manage(&mut self, view: &PmView) -> Vec<Action> {
        self.list.follow(view.local);
        if self.first_remote.is_none() {
            // `mptcp_pm_data_reset`
            let opens = self.most_subflows > 0 && self.list.count(|flags| flags.subflow) > 0;
            self.pending = opens || self.list.count(|flags| flags.signal) > 0;
            let mut remote = view.remote.iter();
            self.first_remote = remote.find(|it| it.id == 0).map(|first| first.address);
        }
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
            Occasion::SubflowEnded { first } => {
                if first && !self.pending {
                    return Vec::new();
                }
                if self.has_work(&opening) {
                    self.use_addresses(&mut opening);
                } else {
                    self.pending = false;
                }
            }
            Occasion::AddressReceived(id) => self.open_towards(id, &mut opening),
            // `mptcp_pm_nl_rm_addr`
            Occasion::AddressRemoved { id, closed } => {
                if id != 0 && closed && self.accepted > 0 {
                    self.accepted -= 1;
                    self.accepts |= self.accepted < self.most_accepted;
                }
            }
            // `mptcp_nl_add_subflow_or_signal_addr`
            Occasion::AddressUp(id) => {
                let number = find(view, id).map(|own| self.list.number(own, view.local));
                let suits = |it: &Endpoint| Some(it.id) == number && it.flags.any();
                if self.list.iter().any(suits) {
                    self.first_known |= number == Some(0);
                    self.use_addresses(&mut opening);
                }
            }
            // `mptcp_pm_nl_fullmesh`
            Occasion::EndpointChanged(id) => {
                self.make_available(id);
                self.use_addresses(&mut opening);
            }
            // `mptcp_nl_remove_subflow_and_signal_addr`, `__mark_subflow_endp_available`
            Occasion::AddressDown { id, left } => {
                let Some(own) = find(view, id).filter(|_| left) else {
                    return Vec::new();
                };
                let number = self.list.number(own, view.local);
                self.announced.retain(|other| *other != number);
                match self.list.flags_of(own.address).subflow {
                    true => self.make_available(number),
                    false => self.tried.retain(|other| *other != number),
                }
                self.first_known &= number != 0;
            }
        }
        opening.actions
    }

    fn minds(&self, occasion: Occasion) -> bool {
        match occasion {
            Occasion::AnnouncementEnded | Occasion::SubflowEstablished => self.pending,
            _ => true,
        }
    }

    fn listens(&self, at: SocketAddr) -> bool {
        self.list.listens(at)
    }

    /// What `ip mptcp endpoint delete` does: the first address has the connection's id where that knows its endpoint
    /// (`mptcp_endp_get_local_id`).
    fn departure(&self, of: &LocalAddress) -> Departure {
        match self.list.manages(of.address) {
            false => Departure::Unnoticed,
            true if of.id == 0 && !self.first_known => Departure::Misnamed,
            true => Departure::Withdrawn,
        }
    }

    /// `mptcp_pm_nl_is_backup`, `mptcp_pm_nl_set_flags`
    fn ranks(&self, address: IpAddr, port: Option<u16>) -> bool {
        self.list.names(address, port)
    }

    fn set_fullmesh(&mut self, of: IpAddr, fullmesh: bool) -> bool {
        self.list.set_fullmesh(of, fullmesh)
    }

    /// `mptcp_pm_flush_addrs_and_subflows`
    fn flush(&mut self, of: &[IpAddr]) -> Vec<u8> {
        self.list.flush(of);
        self.tried.clear();
        self.used = 0;
        std::mem::take(&mut self.announced)
    }

    /// `mptcp_pm_allow_new_subflow`
    fn admits(&self, further: usize) -> bool {
        further < self.most_subflows
    }
}

#[cfg(test)]
mod tests;

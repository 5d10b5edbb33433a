//! Addresses: ADD_ADDR, REMOVE_ADDR, MP_PRIO (RFC 8684 sections 3.4 and 3.3.8), and what the path manager makes of them.

use std::net::IpAddr;

use polypath_wire::mptcp::{MptcpOption, ResetReason};
use polypath_wire::tcp::{Flags, Segment, options_len};

use super::announcement::{PendingAddAddr, Unsent, echo, removal};
use super::connection::Connection;
use super::keys;
use super::session::{Multipath, OPTION_SPACE};
use super::subflow::Subflow;
use crate::path_manager::{Action, Departure, Occasion, Pair, RemoteAddress, unused_id};
use crate::policy::Standing;
use crate::tcp::{State, probes_tail};
use crate::{CloseReason, EventKind, Mib, NEVER, Nanos, Purpose, Transmit};

/// An announcement without echo is sent again so often, each time after twice as long (Linux net/mptcp/pm.c `ADD_ADDR_RETRANS_MAX`).
const REPEATS: u32 = 3;

impl Connection {
    /// Asks the path manager on the occasions that wait. Of several at one instant those before the first that it acts on count, as the
    /// kernel's worker makes one of them.
    pub(super) fn take_turn(&mut self) {
        for occasion in self.policy.manager_mut().take_occasions() {
            if self.manage_paths(occasion) {
                break;
            }
        }
    }

    /// Has the path manager asked, once what arrived at this instant is answered, if it minds.
    pub(super) fn note_occasion(&mut self, occasion: Occasion) {
        let confirmed = |multipath: &Multipath| multipath.confirmed;
        let begun = self.session.multipath.as_ref().is_some_and(confirmed);
        let now = self.shared.now;
        if self.ended.is_none() && begun && self.policy.manager_mut().note(occasion, now) {
            self.deadline = self.deadline.min(now);
        }
    }

    /// Asks the path manager what to do and does it. True: it wanted something.
    fn manage_paths(&mut self, occasion: Occasion) -> bool {
        if self.ended.is_some() || !self.policy.manager().minds(occasion) || self.closed_to_joins()
        {
            return false;
        }
        let Some(multipath) = self
            .session
            .multipath
            .as_ref()
            .filter(|multipath| multipath.confirmed)
        else {
            return false;
        };
        let deny_initial = multipath.deny_join_initial;
        let ready_at = self.policy.manager_mut().ready_at(self.shared.now);
        let open = self.subflows.iter();
        // A join of the peer's is none before its third segment, as on the kernel (`mptcp_finish_join`).
        let joined = |state: State| state != State::SynReceived;
        let open = open.filter(|subflow| subflow.is_open() && joined(subflow.socket.state()));
        let (subflows, addresses): (Vec<Pair>, Vec<_>) = open
            .map(|subflow| {
                let pair = Pair {
                    local: subflow.local_id,
                    remote: subflow.remote_id,
                };
                let tuple = subflow.tuple;
                (pair, (tuple.local.ip(), tuple.remote))
            })
            .unzip();
        let most = if self.shared.config.profile.announces_one_by_one() {
            1
        } else {
            usize::MAX
        };
        let standing = Standing {
            occasion,
            further: self.further_subflows(),
            ways: &self.ways,
            bound: self.shared.config.profile.binds_subflows(),
            client: self.session.client,
            opens: true,
            taken: self.session.client || self.shared.now > ready_at,
            subflows: &subflows,
            addresses: &addresses,
            announced: self.announcements.known(),
            most_announced: self.announcements.most(most),
            announcing: self.announcements.is_waiting(),
            denies_first: deny_initial,
        };
        let actions = self.policy.ask_manager(&standing, self.shared.now);
        let acts = !actions.is_empty();
        let invites = self.shared.config.profile.joins_announced_first();
        let denied = deny_initial && !(invites && occasion == Occasion::AddressReceived(0));
        for action in actions {
            match action {
                Action::Open(pair) | Action::OpenRouted(pair) | Action::OpenVia(pair, _)
                    if denied && pair.remote == 0 => {}
                Action::Open(pair) => self.open_subflow(pair, Vec::new(), true),
                Action::OpenRouted(pair) => self.open_subflow(pair, Vec::new(), false),
                Action::OpenVia(pair, gateways) => self.open_subflow(pair, gateways, true),
                Action::Close(pair) => self.close_pair(pair),
                Action::Announce { id, port } => {
                    self.announcements.set_open(most > 1);
                    self.announce(id, port, 0, self.carrier());
                }
                Action::Withdraw(id) => {
                    self.withdraw(id);
                }
                Action::Priority { pair, backup } => {
                    for subflow in self.between(pair) {
                        self.set_priority(subflow, backup);
                    }
                }
            }
        }
        self.deadline = self.deadline.min(self.policy.manager().wakes_at());
        acts
    }

    /// Subflows beside the one that the connection began with, without those that the peer asked for and has not confirmed.
    pub(super) fn further_subflows(&self) -> usize {
        let further = self.subflows.iter().skip(1);
        let counts = |of: &&Subflow| of.is_open() && of.socket.state() != State::SynReceived;
        further.filter(counts).count()
    }

    /// It is the next address's turn.
    pub(super) fn announce_next(&mut self) {
        if self.announcements.reopen() {
            self.note_occasion(Occasion::Turn);
        }
    }

    pub(super) fn end_announcement(&mut self) {
        self.announce_next();
        self.note_occasion(Occasion::AnnouncementEnded);
    }

    fn close_pair(&mut self, pair: Pair) {
        for subflow in self.between(pair) {
            let others =
                (0..self.subflows.len()).any(|other| other != subflow && self.works(other));
            if others {
                self.reset_subflow(subflow, ResetReason::AdministrativelyProhibited);
            }
        }
    }

    /// The open subflows of a pair of addresses.
    fn between(&self, pair: Pair) -> Vec<usize> {
        (0..self.subflows.len())
            .filter(|&subflow| {
                let info = &self.subflows[subflow];
                (info.local_id, info.remote_id) == (pair.local, pair.remote)
                    && self.subflows[subflow].socket.state().synchronised()
            })
            .collect()
    }

    fn works(&self, subflow: usize) -> bool {
        let path = &self.paths[subflow];
        self.subflows[subflow].reaches(path) && !path.potentially_failed
    }

    /// Tells the peer of an address, on a subflow, or later if there is none.
    pub(super) fn announce(&mut self, id: u8, port: Option<u16>, repeats: u32, on: Option<usize>) {
        self.announcements.add(id);
        self.announcements.end(id);
        let announced = PendingAddAddr {
            id,
            port,
            // A time of 0 has no end.
            repeat_at: match announcement_timeout(self) {
                0 => NEVER,
                wait => self.shared.now + (wait << repeats),
            },
            repeats,
        };
        match on {
            Some(subflow) => match self.announcement(announced, subflow) {
                Some(option) => self.send_option_on(subflow, option),
                None => self.with(subflow, |socket, cx| socket.send_ack(cx)),
            },
            None => self.announcements.wait(
                Unsent {
                    announcement: Some(announced),
                    ..Unsent::default()
                },
                self.shared.out.len(),
            ),
        }
    }

    /// The option that announces an address, which leaves now on a subflow, unless it has no room there.
    fn announcement(&mut self, announced: PendingAddAddr, on: usize) -> Option<MptcpOption> {
        let PendingAddAddr {
            id, port, repeats, ..
        } = announced;
        let addresses = self.policy.addresses();
        let own_number = || {
            addresses
                .find_local(0)
                .filter(|_| id == unused_id(addresses.local()))
        };
        let local = addresses.find_local(id).or_else(own_number)?;
        let multipath = self.session.multipath.as_ref()?;
        let address = local.address;
        let crowded = self.subflows[on].socket.negotiated.timestamps
            && !self.shared.config.add_addr_v6_port_drop_ts;
        if crowded && address.is_ipv6() && port.is_some() {
            self.shared.counters.increment(Mib::MPTcpExtAddAddrTxDrop);
            self.end_announcement();
            return None;
        }
        let hmac = keys::add_addr_hmac(
            multipath.local_key,
            multipath.remote_key,
            id,
            address,
            port.unwrap_or(0),
        );
        self.shared.counters.increment(Mib::MPTcpExtAddAddrTx);
        if repeats < REPEATS {
            self.announcements.awaits_echo(announced);
        } else {
            self.end_announcement();
        }
        self.deadline = 0;
        Some(MptcpOption::AddAddr {
            echo: false,
            address_id: id,
            address,
            port,
            hmac: Some(hmac),
        })
    }

    /// Puts what waits for a subflow on the acknowledgements that leave, on each one option, whichever subflow they are of (Linux
    /// `mptcp_established_options`). Where anything else leaves before, its MSS is computed with the options of a segment that there is not
    /// (`tcp_current_mss`), and what has room there is lost. A removal also leaves on other segments, where it has room.
    #[cold]
    pub(super) fn attach_unsent(&mut self) {
        // After a fallback no option leaves (`__mptcp_check_fallback`).
        if self.session.multipath.is_none() {
            return;
        }
        for index in self.announcements.take_older()..self.shared.out.len() {
            let Transmit {
                subflow,
                segment,
                purpose,
            } = &self.shared.out[index];
            let own = &self.subflows[*subflow];
            // Of a SYN the MSS is computed as it is repeated.
            let unconfirmed = own.join.as_ref().is_some_and(|join| join.unconfirmed);
            let answers = segment.seq_len() == 0;
            let carries_none =
                unconfirmed && (answers || own.socket.transfer.recovery.timeouts() == 0);
            if segment.flags.contains(Flags::RST) || carries_none {
                // The third segment of a join has room for a removal of one address, and no announcement (`mptcp_established_options`).
                let room = OPTION_SPACE.saturating_sub(options_len(segment) as u32);
                if answers
                    && unconfirmed
                    && !segment.flags.contains(Flags::RST)
                    && let Some(ids) = self.announcements.take_removal(room)
                {
                    let option = removal(ids, &mut self.shared.counters);
                    put_option(&mut self.shared.out[index].segment, option, false);
                }
                continue;
            }
            if segment.seq_len() > 0 {
                // A repetition finds no way out of an interface that is down before its MSS is computed (`__tcp_retransmit_skb`).
                let repeated = *purpose == Purpose::Retransmission
                    || own.socket.transfer.recovery.timeouts() > 0;
                // A tail loss probe asks for its MSS before all else (`tcp_send_loss_probe`).
                let repeated = repeated && !probes_tail(&own.socket);
                if repeated && self.policy.addresses().is_down(own.tuple.local.ip()) {
                    continue;
                }
                let (subflow, syn) = (*subflow, segment.flags.contains(Flags::SYN));
                let room = OPTION_SPACE - options_len(segment) as u32;
                lose_removal(self, subflow);
                if !syn && let Some(ids) = self.announcements.take_removal(room) {
                    let option = removal(ids, &mut self.shared.counters);
                    put_option(&mut self.shared.out[index].segment, option, false);
                }
                continue;
            }
            let subflow = *subflow;
            let added = if let Some(announced) = self.announcements.take_echo() {
                self.shared.counters.increment(Mib::MPTcpExtEchoAddTx);
                Some(echo(announced))
            } else if let Some(announced) = self.announcements.take_announcement() {
                self.announcement(announced, subflow)
            } else {
                None
            };
            let withdrawn = || {
                let ids = self.announcements.take_removal(OPTION_SPACE)?;
                Some(removal(ids, &mut self.shared.counters))
            };
            if let Some(option) = added.or_else(withdrawn) {
                let alone = self.shared.config.profile.announces_alone();
                put_option(&mut self.shared.out[index].segment, option, alone);
            }
        }
    }

    /// The subflow on which options leave that concern none.
    pub(super) fn carrier(&self) -> Option<usize> {
        let all = || 0..self.subflows.len();
        let working = all().find(|&subflow| self.works(subflow));
        working
            .or_else(|| all().find(|&subflow| self.subflows[subflow].reaches(&self.paths[subflow])))
    }

    fn send_option_on(&mut self, subflow: usize, option: MptcpOption) {
        if self.subflows[subflow].closed_at.is_none() || !acknowledges(&self.shared.out, subflow) {
            self.with(subflow, |socket, cx| socket.send_ack(cx));
        }
        let alone = self.shared.config.profile.announces_alone();
        if let Some(last) = self.shared.out.last_mut() {
            put_option(&mut last.segment, option, alone);
        }
    }

    pub(super) fn on_add_addr(
        &mut self,
        id: u8,
        address: IpAddr,
        port: Option<u16>,
        hmac: Option<u64>,
    ) {
        let Some(multipath) = &self.session.multipath else {
            return;
        };
        let expected = keys::add_addr_hmac(
            multipath.remote_key,
            multipath.local_key,
            id,
            address,
            port.unwrap_or(0),
        );
        if hmac != Some(expected) {
            self.shared.counters.increment(Mib::MPTcpExtAddAddrDrop);
            return;
        }
        self.shared.counters.increment(Mib::MPTcpExtAddAddr);
        self.confirm();
        match self.carrier() {
            Some(subflow) => {
                let option = echo((id, address, port));
                self.shared.counters.increment(Mib::MPTcpExtEchoAddTx);
                self.send_option_on(subflow, option);
            }
            None => self.announcements.wait(
                Unsent {
                    echo: Some((id, address, port)),
                    ..Unsent::default()
                },
                self.shared.out.len(),
            ),
        }
        let family = |remote: &&RemoteAddress| remote.address.is_ipv4() == address.is_ipv4();
        let remotes = self.policy.addresses().remote();
        let room =
            remotes.iter().filter(family).count() < self.shared.config.profile.most_addresses();
        let known = remotes.iter().find(|remote| remote.id == id);
        let told = RemoteAddress { id, address, port };
        let repeated = known.is_some_and(|known| known.address == address);
        if known.is_none() && room {
            self.policy.addresses_mut().add_remote(told);
            self.shared.event(EventKind::AddressAdded { id, address });
        } else if !repeated {
            return;
        }
        self.manage_paths(Occasion::AddressReceived(id));
    }

    pub(super) fn on_remove_addr(&mut self, ids: &[u8]) {
        let mut removed = Vec::new();
        for &id in ids {
            self.shared.counters.increment(Mib::MPTcpExtRmAddr);
            self.policy.addresses_mut().remove_remote(id);
            self.shared.event(EventKind::AddressRemoved { id });
            let mut closed = false;
            for subflow in 0..self.subflows.len() {
                let own = &self.subflows[subflow];
                if own.remote_id != id || !removable(own) {
                    continue;
                }
                closed |= own.opened_here;
                if self.shared.config.profile.finishes_withdrawn_subflows() {
                    self.leave_subflow(subflow, CloseReason::Reset);
                } else {
                    self.reset_subflow(subflow, ResetReason::Unspecified);
                }
            }
            removed.push(Occasion::AddressRemoved { id, closed });
        }
        for occasion in removed {
            self.manage_paths(occasion);
        }
    }

    pub(super) fn refresh_backup(&mut self, subflow: usize) {
        let backup = self.subflows[subflow].backup_local || self.subflows[subflow].backup_remote;
        if self.paths[subflow].backup != backup {
            self.paths[subflow].backup = backup;
            self.shared
                .event(EventKind::PriorityChanged { subflow, backup });
        }
    }

    /// Changes whether subflows from `address` are backups and tells the peer (MP_PRIO): later ones, and those that the profile says.
    pub fn set_backup(&mut self, address: IpAddr, backup: bool, now: Nanos) {
        self.shared.now = now;
        let elsewhere = self.policy.addresses().up().next().is_some();
        let first_alone = self.shared.config.profile.prioritises_first_alone();
        let ranks = self.policy.manager().path_manager().ranks(address, None);
        let Some(local) = self.policy.addresses_mut().local_at_mut(address) else {
            return;
        };
        if !ranks || (first_alone && local.backup == backup) {
            return;
        }
        local.backup = backup;
        let local = local.clone();
        if forgotten(self) {
            return;
        }
        let left = match self.policy.manager().path_manager().departure(&local) {
            Departure::Unnoticed => false,
            Departure::UnlessLast => elsewhere,
            Departure::Withdrawn | Departure::Misnamed => true,
        };
        if !local.up && left {
            // It left the connection as it went down, so that nothing is told of it.
            return;
        }
        let from = self.subflows.iter().map(|subflow| {
            let own = subflow.tuple.local;
            // An endpoint with a port is none of subflows at another (`mptcp_pm_mp_prio_send_ack`).
            let ranked = !first_alone || self.policy.manager().ranks(own);
            own.ip() == address
                && ranked
                && subflow.is_open()
                && subflow.socket.state().synchronised()
        });
        let from = from.enumerate().filter(|(_, from)| *from);
        let most = if first_alone { 1 } else { usize::MAX };
        let told: Vec<_> = from.map(|(subflow, _)| subflow).take(most).collect();
        for subflow in told {
            self.set_priority(subflow, backup);
        }
        self.push();
    }

    fn set_priority(&mut self, subflow: usize, backup: bool) {
        // The kernel asks its endpoint alone (`mptcp_pm_mp_prio_send_ack`).
        let known = self.subflows[subflow].backup_local == backup;
        if known && !self.shared.config.profile.prioritises_first_alone() {
            return;
        }
        self.subflows[subflow].backup_local = backup;
        self.refresh_backup(subflow);
        if self.session.multipath.is_some() {
            self.shared.counters.increment(Mib::MPTcpExtMPPrioTx);
            self.send_option_on(subflow, MptcpOption::Prio { backup });
        }
    }

    /// An address of this host goes away or came back. The path manager says what becomes of its subflows: they are closed and the peer is told,
    /// or they go on trying, as TCP's do.
    pub fn set_address_up(&mut self, address: IpAddr, up: bool, now: Nanos) {
        self.shared.now = now;
        let Some(id) = self.policy.addresses_mut().set_up(address, up) else {
            return;
        };
        if forgotten(self) {
            return;
        }
        if up {
            self.announcements.set_open(true);
            self.manage_paths(Occasion::AddressUp(id));
        } else {
            // A connection that would end with its last subflow keeps it. Before the third segment there is none at a server.
            let begun = self.session.client || self.established;
            let outlives = self.shared.config.profile.outlives_subflows();
            let Some(local) = self.policy.addresses().find_local(id) else {
                return;
            };
            let left = match self.policy.manager().path_manager().departure(local) {
                _ if !begun => false,
                Departure::Unnoticed => false,
                Departure::Withdrawn if outlives => {
                    self.remove(id, address);
                    true
                }
                Departure::UnlessLast | Departure::Withdrawn => self.withdraw(id),
                Departure::Misnamed => {
                    // No subflow has that number, so that any may tell of it.
                    let unknown = unused_id(self.policy.addresses().local());
                    self.announcements.remove(unknown, REPEATS);
                    self.tell_removed(vec![unknown], &[]);
                    true
                }
            };
            self.manage_paths(Occasion::AddressDown { id, left });
        }
        self.push();
        self.housekeep();
    }

    /// Closes the subflows from a local address and tells the peer on another one that it is gone. False: no other works, and nothing is done.
    fn withdraw(&mut self, id: u8) -> bool {
        let Some(local) = self.policy.addresses().find_local(id) else {
            return false;
        };
        let address = local.address;
        let elsewhere = |subflow: usize| {
            self.subflows[subflow].tuple.local.ip() != address && self.works(subflow)
        };
        let leaves = self.session.multipath.is_some() && (0..self.subflows.len()).any(elsewhere);
        if leaves {
            self.remove(id, address);
        }
        leaves
    }

    /// Closes the subflows from a local address, and tells the peer that it is gone, where the peer knows of it.
    fn remove(&mut self, id: u8, address: IpAddr) {
        if self.session.multipath.is_none() {
            return;
        }
        let leaving = open(&self.subflows, |own| own.tuple.local.ip() == address);
        let finishes = self.shared.config.profile.finishes_withdrawn_subflows();
        // The kernel's list has the first subflow after its end, too (`mptcp_pm_has_subflow_saddr`).
        let known = id == 0 || self.announcements.known().contains(&id) || !leaving.is_empty();
        self.announcements.remove(id, REPEATS);
        if finishes && known {
            self.tell_removed(vec![id], &[address]);
        }
        self.end_subflows(&leaving);
        if !finishes {
            self.tell_removed(vec![id], &[address]);
        }
    }

    /// Subflows end by a choice of the host's (`mptcp_pm_rm_subflow`).
    fn end_subflows(&mut self, leaving: &[usize]) {
        for &subflow in leaving {
            self.shared.counters.increment(Mib::MPTcpExtRmSubflow);
            if self.shared.config.profile.finishes_withdrawn_subflows() {
                self.leave_subflow(subflow, CloseReason::Reset);
            } else {
                self.reinject(subflow);
                self.close_subflow(subflow);
            }
        }
    }

    /// Subflows from `address` lead to every address of the peer's from now on, or to its first alone. Those that are there end, and others are
    /// opened (`mptcp_pm_nl_fullmesh`).
    pub fn set_fullmesh(&mut self, address: IpAddr, fullmesh: bool, now: Nanos) {
        self.shared.now = now;
        let manager = self.policy.manager_mut().path_manager_mut();
        let reopens = manager.set_fullmesh(address, fullmesh);
        let Some(local) = self.policy.addresses_mut().local_at_mut(address) else {
            return;
        };
        let local = local.clone();
        if !reopens || !local.up || forgotten(self) {
            return;
        }
        let departure = self.policy.manager().path_manager().departure(&local);
        if departure != Departure::Misnamed {
            let leaving = open(&self.subflows, |own| own.local_id == local.id);
            self.end_subflows(&leaving);
        }
        self.manage_paths(Occasion::EndpointChanged(local.id));
        self.push();
        self.housekeep();
    }

    /// None of these addresses of the host is an endpoint any more: the peer is told of those that were announced, and subflows from any endpoint
    /// end, whether the host or a join made it one (`mptcp_pm_flush_addrs_and_subflows`, `mptcp_pm_nl_get_local_id`).
    pub fn flush_endpoints(&mut self, of: &[IpAddr], now: Nanos) {
        self.shared.now = now;
        let manager = self.policy.manager().path_manager();
        let first = self.policy.addresses().find_local(0).cloned();
        let unknown = first.is_some_and(|it| manager.departure(&it) != Departure::Withdrawn);
        let leaving = open(&self.subflows, |own| {
            let at = own.tuple.local;
            let endpoint = !unknown && manager.ranks(at.ip(), Some(at.port()));
            of.contains(&at.ip()) && (own.local_id != 0 || endpoint)
        });
        let up: Vec<IpAddr> = self.policy.addresses().up().collect();
        let up: Vec<IpAddr> = up.into_iter().filter(|it| of.contains(it)).collect();
        let told = self.policy.manager_mut().path_manager_mut().flush(&up);
        if forgotten(self) {
            return;
        }
        for &id in &told {
            self.announcements.remove(id, REPEATS);
        }
        if !told.is_empty() {
            self.tell_removed(told, &up);
        }
        self.end_subflows(&leaving);
        self.push();
        self.housekeep();
    }

    /// Tells the peer that addresses are gone: on a subflow from another one, if any works (`mptcp_pm_addr_send_ack_avoid_list`). While anything waits for
    /// a subflow nothing is told (`mptcp_pm_remove_addr`).
    fn tell_removed(&mut self, ids: Vec<u8>, addresses: &[IpAddr]) {
        if self.session.multipath.is_none() || self.announcements.any_unsent() {
            return;
        }
        let elsewhere =
            |subflow: &usize| !addresses.contains(&self.subflows[*subflow].tuple.local.ip());
        let mut all = 0..self.subflows.len();
        let subflow = all.find(|subflow| elsewhere(subflow) && self.works(*subflow));
        match subflow.or_else(|| self.carrier()) {
            Some(subflow) => {
                let option = removal(ids, &mut self.shared.counters);
                self.send_option_on(subflow, option);
            }
            None => self.announcements.wait(
                Unsent {
                    removal: Some(ids),
                    ..Unsent::default()
                },
                self.shared.out.len(),
            ),
        }
    }
}

/// The subflows that the kernel's list has as open, and that suit.
fn open(subflows: &[Subflow], suits: impl Fn(&Subflow) -> bool) -> Vec<usize> {
    let all = subflows.iter().enumerate();
    let open = all.filter(|(_, own)| removable(own) && suits(own));
    open.map(|(subflow, _)| subflow).collect()
}

/// A removal that waits is lost, though counted, as the MSS of a segment is computed. The options of one that carries data have room for it
/// beside data ACKs of 32 bits alone, which a host sends that never received data (`mptcp_pm_rm_addr_signal`, `mptcp_established_options_dss`).
pub(super) fn lose_removal(connection: &mut Connection, subflow: usize) {
    let Some(multipath) = &connection.session.multipath else {
        return;
    };
    let socket = &connection.subflows[subflow].socket;
    // A socket whose SYN was not answered knows of no timestamps (`tcp_established_options`).
    let stamped = socket.negotiated.timestamps && socket.state() != State::SynSent;
    let stamps = if stamped { 12 } else { 0 };
    let dss = multipath.data_len();
    let room = OPTION_SPACE.saturating_sub(stamps + dss);
    if let Some(ids) = connection.announcements.take_removal(room) {
        removal(ids, &mut connection.shared.counters);
    }
}

/// Whether a removal ends a subflow: it is there, and its own end has not begun before the peer's (`mptcp_pm_rm_addr_or_subflow`).
fn removable(own: &Subflow) -> bool {
    let begun = own.socket.lifetime.closing() && own.socket.state() != State::LastAck;
    own.is_open() && own.is_known() && !begun
}

/// Both ends of the stream are acknowledged: the kernel's connection is gone, and its subflows finish without it (`mptcp_check_data_fin`,
/// `__mptcp_destroy_sock`).
fn forgotten(connection: &Connection) -> bool {
    connection.shared.config.profile.forgets_at_its_end()
        && connection.session.multipath.is_some()
        && connection.send.closed()
        && connection.shared.receive.at_end()
}

/// `alone`: an announcement and its echo have no DSS beside them.
fn put_option(segment: &mut Segment, option: MptcpOption, alone: bool) {
    if alone && matches!(option, MptcpOption::AddAddr { .. }) {
        segment.dss = None;
    }
    segment.rare_mut().add_mptcp(option);
    segment.fit_options();
}

/// Whether the last of these is an acknowledgement on this subflow, and nothing else.
fn acknowledges(sent: &[Transmit], subflow: usize) -> bool {
    sent.last().is_some_and(|last| {
        let segment = &last.segment;
        last.subflow == subflow && segment.seq_len() == 0 && !segment.flags.contains(Flags::RST)
    })
}

/// The longest retransmission timeout of the subflows that can send, as they backed it off, and of stale ones only if all are
/// stale. It is no longer than the setting, which stands alone if no subflow can send (Linux `mptcp_adjust_add_addr_timeout`).
fn announcement_timeout(connection: &Connection) -> Nanos {
    let longest = |stale: bool| {
        (0..connection.subflows.len())
            .filter(|&subflow| connection.active(subflow))
            .filter(|&subflow| connection.paths[subflow].potentially_failed == stale)
            .map(|subflow| {
                connection.subflows[subflow]
                    .socket
                    .transfer
                    .backed_off(&connection.shared)
            })
            .max()
    };
    let most = connection.shared.config.add_addr_timeout_ns;
    longest(false)
        .or_else(|| longest(true))
        .map_or(most, |longest| longest.min(most))
}

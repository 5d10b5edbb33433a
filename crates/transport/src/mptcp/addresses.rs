//! Addresses: ADD_ADDR, REMOVE_ADDR, MP_PRIO (RFC 8684 sections 3.4 and 3.3.8), and what the path manager makes of them.

use std::net::IpAddr;

use polypath_wire::mptcp::{MptcpOption, ResetReason};
use polypath_wire::tcp::Flags;

use super::announcement::{PendingAddAddr, Unsent, echo, removal};
use super::connection::Connection;
use super::keys;
use super::session::Multipath;
use super::subflow::Subflow;
use crate::path_manager::{Action, Departure, LocalAddress, Occasion, Pair, RemoteAddress};
use crate::policy::Standing;
use crate::tcp::State;
use crate::{CloseReason, EventKind, Mib, NEVER, Nanos, Transmit};

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
        let open = open.filter(|subflow| subflow.is_open() && joined(subflow.socket.state));
        let (subflows, addresses): (Vec<Pair>, Vec<_>) = open
            .map(|subflow| {
                let pair = Pair {
                    local: subflow.local_id,
                    remote: subflow.remote_id,
                };
                let tuple = subflow.tuple;
                (pair, (tuple.local.ip(), tuple.remote.ip()))
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
        for action in actions {
            match action {
                Action::Open(pair) | Action::OpenVia(pair, _)
                    if deny_initial && pair.remote == 0 => {}
                Action::Open(pair) => self.open_subflow(pair, Vec::new()),
                Action::OpenVia(pair, gateways) => self.open_subflow(pair, gateways),
                Action::Close(pair) => self.close_pair(pair),
                Action::Announce { id, port } => {
                    self.announcements.set_open(most > 1);
                    self.announce(id, port, 0, self.carrier());
                }
                Action::Withdraw(id) => {
                    self.withdraw(id);
                }
                Action::Priority { pair, backup } => self.prioritise(pair, backup),
            }
        }
        self.deadline = self.deadline.min(self.policy.manager().wakes_at());
        acts
    }

    /// Subflows beside the one that the connection began with, without those that the peer asked for and has not confirmed.
    pub(super) fn further_subflows(&self) -> usize {
        let further = self.subflows.iter().skip(1);
        let counts = |of: &&Subflow| of.is_open() && of.socket.state != State::SynReceived;
        further.filter(counts).count()
    }

    /// It is the next address's turn.
    pub(super) fn announce_next(&mut self) {
        if self.announcements.reopen() {
            self.note_occasion(Occasion::Turn);
        }
    }

    fn end_announcement(&mut self) {
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

    fn prioritise(&mut self, pair: Pair, backup: bool) {
        for subflow in self.between(pair) {
            self.set_priority(subflow, backup);
        }
    }

    /// The open subflows of a pair of addresses.
    fn between(&self, pair: Pair) -> Vec<usize> {
        (0..self.subflows.len())
            .filter(|&subflow| {
                let info = &self.subflows[subflow];
                (info.local_id, info.remote_id) == (pair.local, pair.remote)
                    && self.subflows[subflow].socket.state.synchronised()
            })
            .collect()
    }

    fn works(&self, subflow: usize) -> bool {
        let path = &self.paths[subflow];
        self.subflows[subflow].reaches(path) && !path.potentially_failed
    }

    /// Tells the peer of an address, on a subflow, or later if there is none.
    fn announce(&mut self, id: u8, port: Option<u16>, repeats: u32, on: Option<usize>) {
        let Some(local) = self.policy.addresses().find_local(id) else {
            return;
        };
        let Some(multipath) = &self.session.multipath else {
            return;
        };
        let address = local.address;
        let hmac = keys::add_addr_hmac(
            multipath.local_key,
            multipath.remote_key,
            id,
            address,
            port.unwrap_or(0),
        );
        self.announcements.add(id);
        self.announcements.end(id);
        let Some(subflow) = on else {
            self.announcements.wait(Unsent {
                announcement: Some((id, port, repeats)),
                ..Unsent::default()
            });
            return;
        };
        self.shared.counters.increment(Mib::MPTcpExtAddAddrTx);
        if repeats < REPEATS {
            // `mptcp_adjust_add_addr_timeout`; a time of 0 has no end.
            let most = self.shared.config.add_addr_timeout_ns;
            let least = match self.carrier() {
                Some(_) => self.connection_timeout(0).min(most),
                None => most,
            };
            let repeat_at = match most {
                0 => NEVER,
                _ => self.shared.now + (least << repeats),
            };
            self.announcements.awaits_echo(PendingAddAddr {
                id,
                port,
                repeat_at,
                repeats,
            });
        } else {
            self.end_announcement();
        }
        self.deadline = 0;
        let option = MptcpOption::AddAddr {
            echo: false,
            address_id: id,
            address,
            port,
            hmac: Some(hmac),
        };
        self.send_option_on(subflow, option);
    }

    /// Says on a subflow what none was there for.
    pub(super) fn send_unsent(&mut self, subflow: usize) {
        let unsent = self.announcements.take_unsent();
        if let Some((id, port, repeats)) = unsent.announcement {
            self.announce(id, port, repeats, Some(subflow));
        }
        if let Some(announced) = unsent.echo {
            self.send_counted(Mib::MPTcpExtEchoAddTx, echo(announced), subflow);
        }
        if let Some(id) = unsent.removal {
            self.send_counted(Mib::MPTcpExtRmAddrTx, removal(id), subflow);
        }
    }

    fn send_counted(&mut self, counter: Mib, option: MptcpOption, subflow: usize) {
        self.shared.counters.increment(counter);
        self.send_option_on(subflow, option);
    }

    pub(super) fn repeat_announcements(&mut self) {
        let now = self.shared.now;
        for one in self.announcements.due(now) {
            self.announce(one.id, one.port, one.repeats + 1, self.carrier());
        }
    }

    /// The subflow on which options leave that concern none.
    fn carrier(&self) -> Option<usize> {
        let all = || 0..self.subflows.len();
        let working = all().find(|&subflow| self.works(subflow));
        working
            .or_else(|| all().find(|&subflow| self.subflows[subflow].reaches(&self.paths[subflow])))
    }

    fn send_option_on(&mut self, subflow: usize, option: MptcpOption) {
        if self.subflows[subflow].closed_at.is_none() || !acknowledges(&self.shared.out, subflow) {
            self.with(subflow, |socket, cx| socket.send_ack(cx));
        }
        let Some(last) = self.shared.out.last_mut() else {
            return;
        };
        last.segment.rare_mut().add_mptcp(option);
        last.segment.fit_options();
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
        match self.carrier() {
            Some(subflow) => {
                let option = echo((id, address, port));
                self.send_counted(Mib::MPTcpExtEchoAddTx, option, subflow);
            }
            None => self.announcements.wait(Unsent {
                echo: Some((id, address, port)),
                ..Unsent::default()
            }),
        }
        let family = |remote: &&RemoteAddress| remote.address.is_ipv4() == address.is_ipv4();
        let remotes = self.policy.addresses().remote();
        let room =
            remotes.iter().filter(family).count() < self.shared.config.profile.most_addresses();
        if room
            && remotes
                .iter()
                .all(|remote| remote.id != id && remote.address != address)
        {
            self.policy
                .addresses_mut()
                .add_remote(RemoteAddress { id, address, port });
            self.shared.event(EventKind::AddressAdded { id, address });
            self.confirm();
            self.manage_paths(Occasion::AddressReceived(id));
        }
    }

    pub(super) fn on_add_addr_echo(&mut self, id: u8) {
        self.shared.counters.increment(Mib::MPTcpExtEchoAdd);
        if self.announcements.end(id) {
            self.end_announcement();
        }
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
                if own.remote_id != id || !own.is_open() {
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
        let ranks = self.policy.manager().path_manager().ranks(address);
        let Some(local) = self.policy.addresses_mut().local_at_mut(address) else {
            return;
        };
        if !ranks || (first_alone && local.backup == backup) {
            return;
        }
        local.backup = backup;
        let local = local.clone();
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
            subflow.tuple.local.ip() == address
                && subflow.is_open()
                && subflow.socket.state.synchronised()
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
        if up {
            self.announcements.set_open(true);
            self.manage_paths(Occasion::AddressUp(id));
        } else {
            // A connection that would end with its last subflow keeps it.
            let outlives = self.shared.config.profile.outlives_subflows();
            let Some(local) = self.policy.addresses().find_local(id) else {
                return;
            };
            let left = match self.policy.manager().path_manager().departure(local) {
                Departure::Unnoticed => false,
                Departure::Withdrawn if outlives => {
                    self.remove(id, address);
                    true
                }
                Departure::UnlessLast | Departure::Withdrawn => self.withdraw(id),
                Departure::Misnamed => {
                    self.tell_removed(unused_id(self.policy.addresses().local()), address);
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
        let from = |own: &Subflow| own.tuple.local.ip() == address && own.is_open();
        let all = self.subflows.iter().enumerate();
        let leaving: Vec<usize> = all
            .filter(|(_, own)| from(own))
            .map(|(subflow, _)| subflow)
            .collect();
        let finishes = self.shared.config.profile.finishes_withdrawn_subflows();
        // The kernel's list has the first subflow after its end, too (`mptcp_pm_has_subflow_saddr`).
        let known = id == 0 || self.announcements.known().contains(&id) || !leaving.is_empty();
        self.announcements.remove(id, REPEATS);
        if finishes && known {
            self.tell_removed(id, address);
        }
        for &subflow in &leaving {
            self.shared.counters.increment(Mib::MPTcpExtRmSubflow);
            if finishes {
                self.leave_subflow(subflow, CloseReason::Reset);
            } else {
                self.reinject(subflow);
                self.close_subflow(subflow);
            }
        }
        if !finishes {
            self.tell_removed(id, address);
        }
    }

    /// Tells the peer that an address is gone: on a subflow from another one, if any works (`mptcp_pm_addr_send_ack_avoid_list`). While anything waits for
    /// a subflow nothing is told (`mptcp_pm_remove_addr`).
    fn tell_removed(&mut self, id: u8, address: IpAddr) {
        if self.session.multipath.is_none() || self.announcements.any_unsent() {
            return;
        }
        let elsewhere = |subflow: &usize| self.subflows[*subflow].tuple.local.ip() != address;
        let mut all = 0..self.subflows.len();
        let subflow = all.find(|subflow| elsewhere(subflow) && self.works(*subflow));
        match subflow.or_else(|| self.carrier()) {
            Some(subflow) => self.send_counted(Mib::MPTcpExtRmAddrTx, removal(id), subflow),
            None => self.announcements.wait(Unsent {
                removal: Some(id),
                ..Unsent::default()
            }),
        }
    }
}

/// Whether the last of these is an acknowledgement on this subflow, and nothing else.
pub(super) fn acknowledges(sent: &[Transmit], subflow: usize) -> bool {
    sent.last().is_some_and(|last| {
        let segment = &last.segment;
        last.subflow == subflow && segment.seq_len() == 0 && !segment.flags.contains(Flags::RST)
    })
}

/// The number that the first address has among the host's, and no other in the connection.
fn unused_id(local: &[LocalAddress]) -> u8 {
    let unused = |id: &u8| local.iter().all(|local| local.id != *id);
    (1..=u8::MAX).find(unused).unwrap_or(0)
}

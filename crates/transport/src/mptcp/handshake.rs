//! The handshakes of the first subflow (RFC 8684 section 3.1) and of additional ones (section 3.2).

use std::net::IpAddr;

use polypath_wire::mptcp::{MpJoin, MptcpOption, ResetReason};
use polypath_wire::tcp::{Flags, Segment};
use rand::RngCore;

use super::connection::Connection;
use super::keys;
use super::session::Join;
use super::subflow::Subflow;
use crate::path_manager::{Occasion, Pair};
use crate::tcp::{HalfOpen, State};
use crate::{CloseReason, Codepoint, EventKind, Mib, Nanos, Tuple};
use polypath_settings::RegistryError;

/// Third ACKs of MP_JOIN that are sent before the subflow is given up.
const JOIN_ACK_ATTEMPTS: u32 = 6;

/// Subflows that never proved the keys, which one connection keeps: whoever sees a token can ask for more (RFC 8684 section 3.2 has a host
/// refuse subflows for a limit of its own).
const MOST_UNPROVEN: usize = 256;

/// How long a link is asked for an address that nobody there has.
const RESOLUTION: Nanos = 3_000_000_000;

impl Connection {
    /// Opens a subflow between two addresses (RFC 8684 section 3.2).
    pub(super) fn open_subflow(&mut self, pair: Pair, gateways: Vec<IpAddr>, bound: bool) {
        if self.closed_to_joins() {
            return;
        }
        let Some(local) = self.policy.addresses().find_local(pair.local).cloned() else {
            return;
        };
        // The peer's first address is known for good, even if the peer withdrew it, and others by the subflows that it opened.
        let first = self.subflows[0].tuple.remote;
        let remote = match self.policy.addresses().find_remote(pair.remote) {
            Some(remote) => (remote.address, remote.port.unwrap_or(first.port())).into(),
            None if pair.remote == 0 => first,
            None => match self.subflows.iter().find(|it| it.remote_id == pair.remote) {
                Some(known) => known.tuple.remote,
                None => return,
            },
        };
        let tuple = Tuple {
            local: (local.address, self.policy.addresses().egress().next_port()).into(),
            remote,
        };
        let backup = local.backup && self.policy.manager().ranks(tuple.local);
        let bound = bound && self.shared.config.profile.binds_subflows();
        let join = Join {
            local_nonce: self.random.next_u32(),
            remote_nonce: 0,
            local_id: pair.local,
            backup,
            unconfirmed: true,
            attempts: 0,
            unresolved_since: bound.then(|| unresolved_since(self, &tuple)).flatten(),
        };
        if let Ok(subflow) = self.add_subflow(tuple, (pair.local, pair.remote), Some(join)) {
            self.subflows[subflow].backup_local = backup;
            self.subflows[subflow].gateways = gateways.into();
            self.subflows[subflow].opened_here = true;
            self.subflows[subflow].bound = bound;
            self.paths[subflow].backup = backup;
            self.shared.counters.increment(Mib::MPTcpExtMPJoinSynTx);
            self.with(subflow, |socket, cx| socket.connect(cx));
            self.note_deadline(subflow);
            self.adopt();
        }
    }

    /// Whether this connection answers an MP_JOIN: it is not over, and not plain TCP by now.
    pub fn accepts_joins(&self) -> bool {
        self.ended.is_none() && self.session.multipath.is_some()
    }

    /// Answers a SYN with MP_JOIN that named this connection's token. Returns the new subflow.
    pub fn accept_join(
        &mut self,
        tuple: Tuple,
        (syn, field): (&Segment, Codepoint),
        now: Nanos,
    ) -> Result<Option<usize>, RegistryError> {
        self.shared.now = now;
        let Some((backup, remote_id, nonce)) = syn.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Syn {
                backup,
                address_id,
                nonce,
                ..
            }) => Some((*backup, *address_id, *nonce)),
            _ => None,
        }) else {
            return Ok(None);
        };
        self.shared.counters.increment(Mib::MPTcpExtMPJoinSynRx);
        self.shared
            .counters
            .add(Mib::MPTcpExtMPJoinSynBackupRx, u32::from(backup));
        let elsewhere = tuple.local.port() != self.subflows[0].tuple.local.port();
        (self.shared.counters).add(Mib::MPTcpExtMPJoinPortSynRx, u32::from(elsewhere));
        let unproven = self.subflows.iter().skip(1);
        if unproven.filter(|it| it.established_at.is_none()).count() >= MOST_UNPROVEN {
            return Ok(None);
        }
        let local = self
            .policy
            .addresses()
            .local()
            .iter()
            .find(|address| address.address == tuple.local.ip());
        let (local_id, local_backup) =
            local.map_or((0, false), |address| (address.id, address.backup));
        let local_backup = local_backup && self.policy.manager().ranks(tuple.local);
        let join = Join {
            local_nonce: self.random.next_u32(),
            remote_nonce: nonce,
            local_id,
            backup: local_backup,
            unconfirmed: false,
            attempts: 0,
            unresolved_since: None,
        };
        let subflow = self.add_subflow(tuple, (local_id, remote_id), Some(join))?;
        self.subflows[subflow].backup_local = local_backup;
        self.subflows[subflow].backup_remote = backup;
        self.paths[subflow].backup = backup || local_backup;
        self.with(subflow, |socket, cx| socket.accept(cx, syn, field));
        self.note_deadline(subflow);
        Ok(Some(subflow))
    }

    /// The client's side: a segment while the SYN is unanswered.
    #[cold]
    pub(super) fn on_syn_sent(&mut self, subflow: usize, segment: &Segment, field: Codepoint) {
        let acknowledges = segment.flags.contains(Flags::ACK);
        if acknowledges
            && segment.ack
                != self.subflows[subflow]
                    .socket
                    .initial_sequence()
                    .wrapping_add(1)
        {
            return self.with(subflow, |socket, cx| socket.on_foreign_ack(cx, segment));
        }
        if segment.flags.contains(Flags::RST) {
            if acknowledges {
                self.count_reset(segment);
                self.lose_subflow(subflow, CloseReason::Reset);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN | Flags::ACK) {
            return;
        }
        if self.subflows[subflow].join.is_some() {
            return self.on_join_syn_ack(subflow, segment, field);
        }
        self.take_capable_syn_ack(segment);
        if !self.with(subflow, |socket, cx| socket.on_syn_ack(cx, segment, field)) {
            return;
        }
        self.with(subflow, |socket, cx| socket.send_third_ack(cx));
        self.first_subflow_established(segment);
    }

    fn take_capable_syn_ack(&mut self, segment: &Segment) {
        let found = self.session.finds_black_hole(&self.shared);
        (self.shared.counters).add(Mib::MPTcpExtBlackhole, found.into());
        let Some(multipath) = &mut self.session.multipath else {
            return;
        };
        let capable = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Capable(capable) => Some(capable),
            _ => None,
        });
        match capable.and_then(|capable| {
            capable
                .sender_key
                .filter(|_| capable.version == 1 && capable.hmac_sha256)
                .map(|key| (key, capable))
        }) {
            Some((key, capable)) => {
                multipath.set_remote_key(key);
                multipath.checksum |= capable.checksum_required;
                multipath.deny_join_initial = capable.deny_join_initial;
                self.session.black_holes.passed();
                self.shared
                    .counters
                    .increment(Mib::MPTcpExtMPCapableSYNACKRX);
            }
            None => {
                self.shared
                    .counters
                    .increment(Mib::MPTcpExtMPCapableFallbackSYNACK);
                self.fall_back("no MP_CAPABLE on the SYN/ACK");
            }
        }
    }

    fn first_subflow_established(&mut self, segment: &Segment) {
        self.established = true;
        self.paths[0].established = true;
        self.paths[0].multipath = self.session.multipath.is_some();
        self.subflows[0].established_at = Some(self.shared.now);
        let shifted = if segment.flags.contains(Flags::SYN) {
            0
        } else {
            self.subflows[0].socket.negotiated.send_shift
        };
        self.shared.send_limit = u64::from(segment.window) << shifted;
        self.shared.largest_window = self.shared.send_limit;
        let now = self.shared.now;
        self.shared.receive.begin(now);
        self.shared.event(EventKind::ConnectionEstablished);
        self.shared.event(EventKind::SubflowEstablished(0));
    }

    /// Further subflows come too late.
    pub(super) fn closed_to_joins(&self) -> bool {
        self.shared.config.profile.joins_while_open()
            && (self.send.finishing() || self.shared.receive.at_end())
    }

    fn on_join_syn_ack(&mut self, subflow: usize, segment: &Segment, field: Codepoint) {
        let answer = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::SynAck {
                backup,
                address_id,
                hmac,
                nonce,
            }) => Some((*backup, *address_id, *hmac, *nonce)),
            _ => None,
        });
        let (Some(multipath), Some(join)) =
            (&self.session.multipath, &mut self.subflows[subflow].join)
        else {
            return;
        };
        let valid = answer.filter(|&(.., hmac, nonce)| {
            let expected = keys::join_hmac(
                multipath.remote_key,
                multipath.local_key,
                nonce,
                join.local_nonce,
            );
            hmac == keys::leading_64(&expected)
        });
        let Some((backup, remote_id, _, nonce)) = valid else {
            self.shared
                .counters
                .increment(Mib::MPTcpExtMPJoinSynAckHMacFailure);
            return self.reset_subflow(subflow, ResetReason::MptcpSpecific);
        };
        join.remote_nonce = nonce;
        if self.closed_to_joins() {
            return self.reset_subflow(subflow, ResetReason::MptcpSpecific);
        }
        self.shared.counters.increment(Mib::MPTcpExtMPJoinSynAckRx);
        self.shared
            .counters
            .add(Mib::MPTcpExtMPJoinSynAckBackupRx, u32::from(backup));
        self.subflows[subflow].remote_id = remote_id;
        self.subflows[subflow].backup_remote = backup;
        self.paths[subflow].backup |= backup;
        if self.with(subflow, |socket, cx| socket.on_syn_ack(cx, segment, field)) {
            self.with(subflow, |socket, cx| socket.send_third_ack(cx));
            self.subflows[subflow]
                .socket
                .transfer
                .await_answer(&self.shared, 0);
        }
    }

    /// The third ACK again, until the fourth arrives (RFC 8684 section 3.2).
    pub(super) fn repeat_join_ack(&mut self, subflow: usize) {
        let Some(join) = &mut self.subflows[subflow].join else {
            return;
        };
        join.attempts += 1;
        let attempts = join.attempts;
        if attempts > JOIN_ACK_ATTEMPTS {
            return self.lose_subflow(subflow, CloseReason::TimedOut);
        }
        self.with(subflow, |socket, cx| socket.send_third_ack(cx));
        self.subflows[subflow]
            .socket
            .transfer
            .await_answer(&self.shared, attempts);
    }

    /// Something arrived on a subflow whose third ACK was unconfirmed: it was taken.
    pub(super) fn confirm_join(&mut self, subflow: usize) {
        if let Some(join) = &mut self.subflows[subflow].join
            && join.unconfirmed
        {
            join.unconfirmed = false;
            self.subflows[subflow]
                .socket
                .transfer
                .answered(&self.shared);
            self.join_established(subflow);
        }
    }

    fn join_established(&mut self, subflow: usize) {
        self.paths[subflow].established = true;
        self.paths[subflow].multipath = true;
        self.subflows[subflow].established_at = Some(self.shared.now);
        self.adopt();
        self.announce_next();
        self.note_occasion(Occasion::SubflowEstablished);
        self.shared.event(EventKind::SubflowEstablished(subflow));
    }

    /// The server's side: a segment while our SYN/ACK is unacknowledged. True: the handshake is done and the segment is to be processed further.
    #[cold]
    pub(super) fn on_syn_received(&mut self, subflow: usize, segment: &Segment) -> bool {
        match self.with(subflow, |socket, cx| socket.on_half_open(cx, segment)) {
            HalfOpen::Waits => return false,
            HalfOpen::Ends => {
                self.lose_subflow(subflow, CloseReason::Reset);
                return false;
            }
            HalfOpen::Acknowledged => {}
        }
        let proceed = match self.subflows[subflow].join {
            Some(_) => self.check_join_ack(subflow, segment),
            None => self.check_capable_ack(segment),
        };
        if !proceed {
            return false;
        }
        let joins = self.subflows[subflow].join.is_some();
        let timed = !joins || !self.shared.config.profile.leaves_joins_untimed();
        if !self.with(subflow, |socket, cx| {
            socket.on_third_ack(cx, segment, timed)
        }) {
            return false;
        }
        if joins {
            self.join_established(subflow);
            // The fourth ACK (RFC 8684 section 3.2).
            self.subflows[subflow].socket.receiver.request_ack();
        } else {
            self.first_subflow_established(segment);
            if self.session.multipath.is_some() {
                self.confirm();
            }
        }
        self.subflows[subflow].socket.state() == State::Established
    }

    fn check_capable_ack(&mut self, segment: &Segment) -> bool {
        let Some(multipath) = &mut self.session.multipath else {
            return true;
        };
        let keys = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Capable(capable) if capable.version == 1 && capable.hmac_sha256 => {
                capable.sender_key.zip(capable.receiver_key)
            }
            _ => None,
        });
        match keys {
            Some((sender, receiver)) if receiver == multipath.local_key => {
                multipath.set_remote_key(sender);
                self.shared.counters.increment(Mib::MPTcpExtMPCapableACKRX);
                true
            }
            // The third ACK was lost and later data overtook it: it will come again.
            _ if segment.dss.is_some() => false,
            _ => {
                self.shared
                    .counters
                    .increment(Mib::MPTcpExtMPCapableFallbackACK);
                self.fall_back("no MP_CAPABLE on the third ACK");
                true
            }
        }
    }

    fn check_join_ack(&mut self, subflow: usize, segment: &Segment) -> bool {
        let given = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Ack { hmac }) => Some(*hmac),
            _ => None,
        });
        let (Some(multipath), Some(join)) = (&self.session.multipath, &self.subflows[subflow].join)
        else {
            self.refuse_join(subflow, ResetReason::MptcpSpecific);
            return false;
        };
        let Some(given) = given else {
            // No data comes before the fourth ACK, so that nothing else can stand for the third.
            self.refuse_join(subflow, ResetReason::MptcpSpecific);
            return false;
        };
        let expected = keys::join_hmac(
            multipath.remote_key,
            multipath.local_key,
            join.remote_nonce,
            join.local_nonce,
        );
        let valid = given == keys::leading_160(&expected);
        let admits = self
            .policy
            .manager()
            .path_manager()
            .admits(self.further_subflows());
        if valid && multipath.confirmed && admits && !self.closed_to_joins() {
            self.shared.counters.increment(Mib::MPTcpExtMPJoinAckRx);
            return true;
        }
        // Linux `subflow_syn_recv_sock`: in this order.
        let (counter, reason) = if valid {
            let reason = ResetReason::AdministrativelyProhibited;
            (Mib::MPTcpExtMPJoinRejected, reason)
        } else {
            let reason = ResetReason::MptcpSpecific;
            (Mib::MPTcpExtMPJoinAckHMacFailure, reason)
        };
        self.shared.counters.increment(counter);
        self.refuse_join(subflow, reason);
        false
    }

    /// Both sides have both keys: path management may begin, once what arrived at this instant is answered. Linux's worker does it, not
    /// the receiving path (net/mptcp/pm.c, `mptcp_pm_schedule_work`), so that joins queue behind the data that this instant released.
    pub(super) fn confirm(&mut self) {
        let Some(multipath) = &mut self.session.multipath else {
            return;
        };
        if !multipath.confirmed {
            multipath.confirmed = true;
            self.policy.manager_mut().begin(self.shared.now);
            self.deadline = self.deadline.min(self.shared.now);
        }
    }

    /// Resets one subflow and says why (RFC 8684 section 3.6).
    pub(super) fn reset_subflow(&mut self, subflow: usize, reason: ResetReason) {
        self.shared.counters.increment(Mib::MPTcpExtMPRstTx);
        self.reset_because(subflow, reason);
    }

    /// Refuses a join at its third ACK; a listener does so without counting the option.
    fn refuse_join(&mut self, subflow: usize, reason: ResetReason) {
        if self.shared.config.profile.refuses_joins_at_listeners() {
            self.reset_because(subflow, reason);
        } else {
            self.reset_subflow(subflow, reason);
        }
    }

    fn reset_because(&mut self, subflow: usize, reason: ResetReason) {
        self.reset_with(
            subflow,
            MptcpOption::TcpRst {
                flags: 0,
                reason: reason as u8,
            },
        );
        self.shared.event(EventKind::SubflowReset(subflow));
        self.lose_subflow(subflow, CloseReason::Reset);
    }

    fn reset_with(&mut self, subflow: usize, option: MptcpOption) {
        self.with(subflow, |socket, cx| socket.send_reset(cx));
        if let Some(last) = self.shared.out.last_mut() {
            last.segment.rare_mut().mptcp = vec![option];
        }
    }

    /// Resets for a reason that has an option of its own.
    pub(super) fn reset_for(&mut self, subflow: usize, option: MptcpOption, reason: ResetReason) {
        self.reset_with(subflow, option);
        if self.shared.config.profile.explains_all_resets()
            && let Some(last) = self.shared.out.last_mut()
        {
            self.shared.counters.increment(Mib::MPTcpExtMPRstTx);
            let reason = reason as u8;
            (last.segment.rare_mut().mptcp).push(MptcpOption::TcpRst { flags: 0, reason });
        }
    }

    /// The peer closed the connection by MP_FASTCLOSE: every subflow is reset (RFC 8684 section 3.5; Linux `mptcp_check_fastclose`).
    pub(super) fn answer_fast_close(&mut self) {
        for subflow in 0..self.subflows.len() {
            if !self.resettable(subflow) {
                continue;
            }
            self.shared.counters.increment(Mib::MPTcpExtMPRstTx);
            self.reset_with(
                subflow,
                MptcpOption::TcpRst {
                    flags: 0,
                    reason: ResetReason::Unspecified as u8,
                },
            );
        }
        self.end(CloseReason::Reset);
    }

    /// Whether the peer knows of a subflow; in SYN-SENT there is nothing to reset yet (RFC 9293 section 3.10.5).
    fn resettable(&self, subflow: usize) -> bool {
        let state = self.subflows[subflow].socket.state();
        !matches!(state, State::Closed | State::SynSent)
    }

    /// MP_FASTCLOSE by reset on every subflow (RFC 8684 section 3.5, option R).
    pub(super) fn fast_close(&mut self) {
        let remote_key = self
            .session
            .multipath
            .as_ref()
            .map(|multipath| multipath.remote_key);
        for subflow in 0..self.subflows.len() {
            if !self.resettable(subflow) {
                continue;
            }
            match remote_key {
                Some(receiver_key) => {
                    self.shared.counters.increment(Mib::MPTcpExtMPFastcloseTx);
                    let option = MptcpOption::FastClose { receiver_key };
                    self.reset_for(subflow, option, ResetReason::Unspecified);
                }
                None => self.with(subflow, |socket, cx| socket.send_reset(cx)),
            }
        }
    }
}

/// When a link was first asked for an address to which no way leads, now at the latest. Attempts that wait for the same address wait together.
fn unresolved_since(connection: &Connection, tuple: &Tuple) -> Option<Nanos> {
    let (from, to) = (tuple.local.ip(), tuple.remote.ip());
    if connection.ways.lead(from, to) {
        return None;
    }
    let others = connection.subflows.iter().filter(|other| other.is_open());
    let same = others.filter(|it| (it.tuple.local.ip(), it.tuple.remote.ip()) == (from, to));
    let before = same.filter_map(|it| it.join.as_ref()?.unresolved_since);
    before.chain([connection.shared.now]).min()
}

/// Nobody answered for a subflow's peer on its link, which is asked three times, each second (Linux `neigh_timer_handler`, with `mcast_solicit` and
/// `retrans_time_ms` as they are by default). What waits is then unreachable (`arp_error_report`).
pub(super) fn unresolved(subflow: &Subflow, now: Nanos) -> bool {
    let since = subflow.join.as_ref().and_then(|join| join.unresolved_since);
    since.is_some_and(|since| now >= since + RESOLUTION)
}

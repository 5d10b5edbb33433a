//! The handshakes of the first subflow (RFC 8684 section 3.1) and of additional ones (section 3.2).

use std::net::IpAddr;

use polypath_wire::mptcp::{MpJoin, MptcpOption, ResetReason};
use polypath_wire::tcp::{Flags, Segment};
use rand::RngCore;

use super::connection::Connection;
use super::core::Join;
use super::keys;
use super::subflow::SubflowInfo;
use crate::path_manager::Pair;
use crate::registry::RegistryError;
use crate::tcp::{HalfOpen, State};
use crate::{CloseReason, EventKind, Mib, Tuple};

/// Third ACKs of MP_JOIN that are sent before the subflow is given up.
const JOIN_ACK_ATTEMPTS: u32 = 6;

impl Connection {
    /// Opens a subflow between two addresses (RFC 8684 section 3.2).
    pub(super) fn open_subflow(&mut self, pair: Pair, gateways: Vec<IpAddr>) {
        let Some(local) = self
            .local
            .iter()
            .find(|address| address.id == pair.local)
            .cloned()
        else {
            return;
        };
        let Some(remote) = self
            .remote
            .iter()
            .find(|address| address.id == pair.remote)
            .cloned()
        else {
            return;
        };
        let port = remote.port.unwrap_or(self.subflows[0].tuple.remote.port());
        let tuple = Tuple {
            local: (local.address, self.ports.next()).into(),
            remote: (remote.address, port).into(),
        };
        let mut info = SubflowInfo::new(tuple, pair.local, pair.remote);
        info.backup_local = local.backup;
        info.gateways = gateways;
        let join = Join {
            local_nonce: self.random.next_u32(),
            remote_nonce: 0,
            local_id: pair.local,
            backup: local.backup,
            unconfirmed: true,
            attempts: 0,
        };
        if let Ok(me) = self.add_subflow(info, Some(Box::new(join))) {
            self.paths[me].backup = local.backup;
            self.sockets[me].connect(&mut self.core, &mut self.paths[me], me);
            self.note_deadline(me);
            self.adopt();
        }
    }

    /// Whether this connection answers an MP_JOIN: it is not over, and not plain TCP by now.
    pub fn accepts_joins(&self) -> bool {
        self.ended.is_none() && self.core.multipath.is_some()
    }

    /// Answers a SYN with MP_JOIN that named this connection's token. Returns the new subflow.
    pub fn accept_join(
        &mut self,
        tuple: Tuple,
        syn: &Segment,
        now: crate::Nanos,
    ) -> Result<Option<usize>, RegistryError> {
        self.core.now = now;
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
        self.core.counters.increment(Mib::MPTcpExtMPJoinSynRx);
        let local = self
            .local
            .iter()
            .find(|address| address.address == tuple.local.ip());
        let (local_id, local_backup) =
            local.map_or((0, false), |address| (address.id, address.backup));
        let mut info = SubflowInfo::new(tuple, local_id, remote_id);
        info.backup_local = local_backup;
        info.backup_remote = backup;
        let join = Join {
            local_nonce: self.random.next_u32(),
            remote_nonce: nonce,
            local_id,
            backup: local_backup,
            unconfirmed: false,
            attempts: 0,
        };
        let me = self.add_subflow(info, Some(Box::new(join)))?;
        self.paths[me].backup = backup || local_backup;
        self.sockets[me].accept(&mut self.core, &mut self.paths[me], me, syn);
        self.note_deadline(me);
        Ok(Some(me))
    }

    /// The client's side: a segment while the SYN is unanswered.
    #[cold]
    pub(super) fn on_syn_sent(&mut self, me: usize, segment: &Segment) {
        let acknowledges = segment.flags.contains(Flags::ACK);
        if acknowledges && segment.ack != self.sockets[me].initial_sequence().wrapping_add(1) {
            return self.sockets[me].on_foreign_ack(&mut self.core, me, segment);
        }
        if segment.flags.contains(Flags::RST) {
            if acknowledges {
                self.count_reset(segment);
                self.lose_subflow(me, CloseReason::Reset);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN | Flags::ACK) {
            return;
        }
        if self.core.joins[me].is_some() {
            return self.on_join_syn_ack(me, segment);
        }
        self.take_capable_syn_ack(segment);
        if !self.sockets[me].on_syn_ack(&mut self.core, &mut self.paths, me, segment) {
            return;
        }
        self.sockets[me].send_third_ack(&mut self.core, me);
        self.first_subflow_established(segment);
    }

    fn take_capable_syn_ack(&mut self, segment: &Segment) {
        let Some(multipath) = &mut self.core.multipath else {
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
                self.core.counters.increment(Mib::MPTcpExtMPCapableSYNACKRX);
            }
            None => {
                self.core
                    .counters
                    .increment(Mib::MPTcpExtMPCapableFallbackSYNACK);
                self.fall_back("no MP_CAPABLE on the SYN/ACK");
            }
        }
    }

    fn first_subflow_established(&mut self, segment: &Segment) {
        self.established = true;
        self.paths[0].established = true;
        self.paths[0].multipath = self.core.multipath.is_some();
        self.subflows[0].established_at = Some(self.core.now);
        let shifted = if segment.flags.contains(Flags::SYN) {
            0
        } else {
            self.sockets[0].negotiated.send_shift
        };
        self.core.send_limit = u64::from(segment.window) << shifted;
        self.core.largest_window = self.core.send_limit;
        let now = self.core.now;
        self.core.receive.begin(now);
        self.core.event(EventKind::ConnectionEstablished);
        self.core.event(EventKind::SubflowEstablished(0));
    }

    fn on_join_syn_ack(&mut self, me: usize, segment: &Segment) {
        let answer = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::SynAck {
                backup,
                hmac,
                nonce,
                ..
            }) => Some((*backup, *hmac, *nonce)),
            _ => None,
        });
        let (Some(multipath), Some(join)) = (&self.core.multipath, &mut self.core.joins[me]) else {
            return;
        };
        self.core.counters.increment(Mib::MPTcpExtMPJoinSynAckRx);
        let valid = answer.filter(|&(_, hmac, nonce)| {
            let expected = keys::join_hmac(
                multipath.remote_key,
                multipath.local_key,
                nonce,
                join.local_nonce,
            );
            hmac == keys::leading_64(&expected)
        });
        let Some((backup, _, nonce)) = valid else {
            self.core
                .counters
                .increment(Mib::MPTcpExtMPJoinSynAckHMacFailure);
            return self.reset_subflow(me, ResetReason::MptcpSpecific);
        };
        join.remote_nonce = nonce;
        self.subflows[me].backup_remote = backup;
        self.paths[me].backup |= backup;
        if self.sockets[me].on_syn_ack(&mut self.core, &mut self.paths, me, segment) {
            self.sockets[me].send_third_ack(&mut self.core, me);
            self.sockets[me].arm_join_ack(&self.core, 0);
        }
    }

    /// The third ACK again, until the fourth arrives (RFC 8684 section 3.2).
    pub(super) fn repeat_join_ack(&mut self, me: usize) {
        let Some(join) = &mut self.core.joins[me] else {
            return;
        };
        join.attempts += 1;
        let attempts = join.attempts;
        if attempts > JOIN_ACK_ATTEMPTS {
            return self.lose_subflow(me, CloseReason::TimedOut);
        }
        self.sockets[me].send_third_ack(&mut self.core, me);
        self.sockets[me].arm_join_ack(&self.core, attempts);
    }

    /// Something arrived on a subflow whose third ACK was unconfirmed: it was taken.
    pub(super) fn confirm_join(&mut self, me: usize) {
        if let Some(join) = &mut self.core.joins[me]
            && join.unconfirmed
        {
            join.unconfirmed = false;
            self.sockets[me].disarm_join_ack(&self.core);
            self.join_established(me);
        }
    }

    fn join_established(&mut self, me: usize) {
        self.paths[me].established = true;
        self.paths[me].multipath = true;
        self.subflows[me].established_at = Some(self.core.now);
        self.adopt();
        self.core.event(EventKind::SubflowEstablished(me));
    }

    /// The server's side: a segment while our SYN/ACK is unacknowledged. True: the handshake is done and the segment is to be processed further.
    #[cold]
    pub(super) fn on_syn_received(&mut self, me: usize, segment: &Segment) -> bool {
        let socket = &mut self.sockets[me];
        match socket.on_half_open(&mut self.core, me, segment) {
            HalfOpen::Waits => return false,
            HalfOpen::Ends => {
                self.lose_subflow(me, CloseReason::Reset);
                return false;
            }
            HalfOpen::Acknowledged => {}
        }
        let proceed = match self.core.joins[me] {
            Some(_) => self.check_join_ack(me, segment),
            None => self.check_capable_ack(segment),
        };
        if !proceed || !self.sockets[me].on_third_ack(&mut self.core, &mut self.paths, me, segment)
        {
            return false;
        }
        if self.core.joins[me].is_some() {
            self.join_established(me);
            // The fourth ACK (RFC 8684 section 3.2).
            self.sockets[me].request_ack();
        } else {
            self.first_subflow_established(segment);
            if self.core.multipath.is_some() {
                self.confirm();
            }
        }
        self.sockets[me].state == State::Established
    }

    fn check_capable_ack(&mut self, segment: &Segment) -> bool {
        let Some(multipath) = &mut self.core.multipath else {
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
                self.core.counters.increment(Mib::MPTcpExtMPCapableACKRX);
                true
            }
            // The third ACK was lost and later data overtook it: it will come again.
            _ if segment.dss.is_some() => false,
            _ => {
                self.core
                    .counters
                    .increment(Mib::MPTcpExtMPCapableFallbackACK);
                self.fall_back("no MP_CAPABLE on the third ACK");
                true
            }
        }
    }

    fn check_join_ack(&mut self, me: usize, segment: &Segment) -> bool {
        let given = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Ack { hmac }) => Some(*hmac),
            _ => None,
        });
        let (Some(multipath), Some(join)) = (&self.core.multipath, &self.core.joins[me]) else {
            self.reset_subflow(me, ResetReason::MptcpSpecific);
            return false;
        };
        let Some(given) = given else {
            // No data comes before the fourth ACK, so that nothing else can stand for the third.
            self.reset_subflow(me, ResetReason::MptcpSpecific);
            return false;
        };
        self.core.counters.increment(Mib::MPTcpExtMPJoinAckRx);
        let expected = keys::join_hmac(
            multipath.remote_key,
            multipath.local_key,
            join.remote_nonce,
            join.local_nonce,
        );
        let valid = given == keys::leading_160(&expected);
        if valid && multipath.confirmed {
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
        self.core.counters.increment(counter);
        self.reset_subflow(me, reason);
        false
    }

    /// Both sides have both keys: path management may begin, once what arrived at this instant is answered. Linux's worker does it, not
    /// the receiving path (net/mptcp/pm.c, `mptcp_pm_schedule_work`), so that joins queue behind the data that this instant released.
    pub(super) fn confirm(&mut self) {
        let Some(multipath) = &mut self.core.multipath else {
            return;
        };
        if !multipath.confirmed {
            multipath.confirmed = true;
            self.path_manager_at = self.core.now;
            self.deadline = self.deadline.min(self.path_manager_at);
        }
    }

    /// Turns into plain TCP (RFC 8684 section 3.7).
    pub(super) fn fall_back(&mut self, why: &'static str) {
        if let Some(multipath) = self.core.multipath.take() {
            if multipath.remote_key != 0 {
                self.core.peer_idsn = Some(multipath.remote_idsn);
                self.core.infinite = Some((multipath, self.send.sent()));
            }
            self.core.event(EventKind::Fallback(why));
            self.send.forget_chunks();
            self.unechoed.clear();
        }
    }

    /// Resets one subflow and says why (RFC 8684 section 3.6).
    pub(super) fn reset_subflow(&mut self, me: usize, reason: ResetReason) {
        self.core.counters.increment(Mib::MPTcpExtMPRstTx);
        self.reset_with(
            me,
            MptcpOption::TcpRst {
                flags: 0,
                reason: reason as u8,
            },
        );
        self.core.event(EventKind::SubflowReset(me));
        self.lose_subflow(me, CloseReason::Reset);
    }

    fn reset_with(&mut self, me: usize, option: MptcpOption) {
        self.sockets[me].send_reset(&mut self.core, me);
        if let Some(last) = self.core.out.last_mut() {
            last.segment.rare_mut().mptcp = vec![option];
        }
    }

    /// MP_FASTCLOSE by reset on every subflow (RFC 8684 section 3.5, option R).
    pub(super) fn fast_close(&mut self) {
        let remote_key = self
            .core
            .multipath
            .as_ref()
            .map(|multipath| multipath.remote_key);
        for me in 0..self.sockets.len() {
            if self.sockets[me].state == State::Closed {
                continue;
            }
            match remote_key {
                Some(receiver_key) => {
                    self.core.counters.increment(Mib::MPTcpExtMPFastcloseTx);
                    self.reset_with(me, MptcpOption::FastClose { receiver_key });
                }
                None => self.sockets[me].send_reset(&mut self.core, me),
            }
        }
    }
}

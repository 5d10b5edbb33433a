//! The client's address on a path changes (RFC 9000 section 9, RFC 10069 section 3.1.2).
//!
//! Only a server moves: a client whose address was translated anew knows nothing of it.

use polypath_wire::quic::{ConnectionId, Frame};

use super::connection::{Connection, payload};
use super::path::Validation;
use super::rtt::Rtt;
use crate::path::Path;
use crate::{Nanos, Tuple};

/// What is remembered of a path's addresses.
#[derive(Debug, Default)]
pub(super) struct Migration {
    /// The last addresses that were validated, while others are being validated.
    former: Option<Tuple>,
    /// A challenge to them is to be sent.
    pub former_due: bool,
    /// What the peer addresses its packets to.
    destination: Option<ConnectionId>,
    /// Packets sent earlier tell nothing of the path as it is now.
    pub since: Nanos,
}

impl Migration {
    pub fn former(&self) -> Option<Tuple> {
        self.former
    }

    /// The addresses of now are validated.
    pub fn settle(&mut self) {
        self.former = None;
        self.former_due = false;
    }
}

/// Whether a packet of these frames alone is no more than a look at a path (RFC 9000 section 9.1).
pub(super) fn probing(frames: &[Frame]) -> bool {
    frames.iter().all(|frame| {
        matches!(
            frame,
            Frame::PathChallenge(_)
                | Frame::PathResponse(_)
                | Frame::NewConnectionId(_)
                | Frame::Padding(_)
        )
    })
}

impl Connection {
    /// Whether a packet from these addresses may be on the path at all: a server's address does not change (RFC 9000 section 9).
    pub(super) fn may_come_from(&self, path: usize, tuple: Tuple) -> bool {
        !self.client || self.members[path].tuple.remote == tuple.remote
    }

    /// A new 1-RTT packet came on a path. The newest one that is more than a probe says where the peer is (RFC 9000 section 9.3).
    pub(super) fn notice_address(
        &mut self,
        path: usize,
        tuple: Tuple,
        destination: ConnectionId,
        moves: bool,
        len: u32,
    ) {
        let member = &mut self.members[path];
        if member.closed() {
            return;
        }
        if tuple == member.tuple {
            member.migration.destination = Some(destination);
        } else if moves && !self.client && self.handshake.confirmed {
            self.migrate(path, tuple, destination, len);
        }
    }

    fn migrate(&mut self, path: usize, tuple: Tuple, destination: ConnectionId, len: u32) {
        let member = &mut self.members[path];
        let left = std::mem::replace(&mut member.tuple, tuple);
        let returned = member.migration.former == Some(tuple);
        if member.validated() {
            // Whoever is there answers if it is still the peer (RFC 9000 section 9.3.3).
            member.migration.former = Some(left);
            member.migration.former_due = true;
        }
        member.challenge = None;
        member.challenged_at = None;
        if returned {
            member.validation = Validation::Done;
            member.challenge_due = false;
            member.migration.settle();
        } else {
            member.validation = Validation::Pending;
            member.challenge_due = true;
            member.restart_allowance(len);
        }
        let deliberate = member.migration.destination.replace(destination) != Some(destination);
        if deliberate {
            self.change_id(path);
        }
        if left.remote.ip() != tuple.remote.ip() || left.local.ip() != tuple.local.ip() {
            let ids = (
                self.local_address_id(tuple.local.ip()),
                self.remote_address_id(tuple.remote.ip()),
            );
            (self.members[path].local_id, self.members[path].remote_id) = ids;
            self.forget_measurements(path);
        }
    }

    /// Another id for a peer that moved on purpose, so that nobody can link its addresses (RFC 9000 section 9.5).
    fn change_id(&mut self, path: usize) {
        let id = self.members[path].id;
        if let Some(sequence) = self.remote_ids.change(id) {
            let path = self.multipath().then_some(id);
            self.control
                .push(Frame::RetireConnectionId { path, sequence });
        }
    }

    /// Another host address means another way through the network; a port alone does not (RFC 9000 section 9.4).
    fn forget_measurements(&mut self, path: usize) {
        let longest = self.peer.max_udp_payload_size;
        let now = self.now;
        let Ok(congestion) = self.config.make_congestion() else {
            return;
        };
        let member = &mut self.members[path];
        member.congestion = congestion;
        member.rtt = Rtt::default();
        member.recovery_since = Some(now);
        member.migration.since = now;
        member.mtu.cancel();
        member.limit_datagrams(longest);
        let fresh = Path::new(payload(member.datagram()), self.config.initial_window);
        let shown = &mut self.paths[path];
        *shown = Path {
            established: shown.established,
            multipath: shown.multipath,
            backup: shown.backup,
            in_flight: shown.in_flight,
            acked: shown.acked,
            ..fresh
        };
        let member = &mut self.members[path];
        member.congestion.on_established(&mut self.paths, path);
    }

    /// Nobody answers at the new addresses: back to those that were validated last (RFC 9000 section 9.3.2). False: there are none.
    pub(super) fn return_to_former(&mut self, path: usize) -> bool {
        let member = &mut self.members[path];
        let Some(former) = member.migration.former.take() else {
            return false;
        };
        member.tuple = former;
        member.validation = Validation::Done;
        member.challenge = None;
        member.challenged_at = None;
        member.challenge_due = false;
        member.migration.settle();
        true
    }
}

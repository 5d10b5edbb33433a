//! The client's address on a path changes (RFC 9000 section 9, RFC 10069 section 3.1.2).
//!
//! A server follows its client. A client moves if it is asked to, or if the address of its only path goes. It does not
//! notice a new translation of its address.

use std::net::IpAddr;

use polypath_wire::quic::{ConnectionId, Frame};

use super::datagram_size::payload;
use super::packets::Packets;
use super::transfer::Transfer;
use crate::path::Path;
use crate::{EventKind, Tuple};

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

impl Packets {
    /// Another id for a peer that moved on purpose, so that nobody can link its addresses (RFC 9000 section 9.5).
    fn change_id(&mut self, path: usize) {
        let id = self.paths[path].id();
        if let Some(sequence) = self.identity.remote_mut().change(id) {
            let path = self.parameters.multipath().then_some(id);
            self.control
                .push(Frame::RetireConnectionId { path, sequence });
        }
    }

    /// A path goes another way through the network.
    fn forget_measurements(&mut self, path: usize) {
        let longest = self.parameters.peer().max_udp_payload_size;
        let now = self.now;
        let tuple = self.paths[path].tuple();
        let Ok(congestion) = self.paths.make_congestion(&self.config, tuple) else {
            return;
        };
        let member = &mut self.paths[path];
        member.forget_measurements(congestion, now, longest);
        let fresh = Path::new(payload(member.datagram()), self.config.initial_window);
        let (member, mut shown) = self.paths.pair_mut(path);
        *shown = Path {
            established: shown.established,
            multipath: shown.multipath,
            backup: shown.backup,
            paces: true,
            acked: shown.acked,
            ..fresh
        };
        member.window_mut().begin(&mut shown);
        self.compare_timeouts();
    }
}

impl Transfer {
    /// A new 1-RTT packet came on a path. The newest one that is more than a probe says where the peer is (RFC 9000 section 9.3).
    pub(super) fn notice_address(
        &mut self,
        path: usize,
        tuple: Tuple,
        destination: ConnectionId,
        moves: bool,
        len: u32,
    ) {
        let member = &mut self.packets.paths[path];
        if member.closed() {
            return;
        }
        if tuple == member.tuple() {
            member.reach_mut().note_destination(destination);
        } else if moves && !self.packets.identity.client() && self.packets.handshake.confirmed() {
            self.follow_peer(path, tuple, destination, len);
        }
    }

    fn follow_peer(&mut self, path: usize, tuple: Tuple, destination: ConnectionId, len: u32) {
        let member = &mut self.packets.paths[path];
        let left = member.route_mut().change(tuple);
        let reach = member.reach_mut();
        reach.follow(left, tuple, len);
        if reach.moved_on_purpose(destination) {
            let used = self
                .packets
                .identity
                .remote()
                .current(self.packets.paths[path].id());
            let used = used.map(|(_, id)| id);
            self.packets.paths[path].reach_mut().keep_former_id(used);
            self.packets.change_id(path);
        }
        self.packets.event(EventKind::PathMigrated {
            subflow: path,
            address: tuple.remote,
        });
        if left.remote.ip() != tuple.remote.ip() || left.local.ip() != tuple.local.ip() {
            let ids = self.policy.addresses_mut().ids(tuple);
            self.packets.paths[path].route_mut().set_ids(ids);
            self.packets.forget_measurements(path);
        }
    }

    /// Why a path cannot have another address of this host.
    fn stays(&self, path: usize, address: IpAddr) -> Option<&'static str> {
        let Some(member) = self
            .packets
            .paths
            .get(path)
            .filter(|member| !member.closed())
        else {
            return Some("no such path");
        };
        if !self.policy.addresses().up().any(|own| own == address) {
            return Some("the address is down");
        }
        if address == member.tuple().local.ip()
            || address.is_ipv4() != member.tuple().local.is_ipv4()
        {
            return Some("no other address of its family");
        }
        if !self.packets.identity.client() || self.packets.lifetime.over() {
            return Some("no client of an open connection");
        }
        if !self.packets.handshake.confirmed() {
            return Some("the handshake is not confirmed");
        }
        if self.packets.parameters.peer().disable_active_migration {
            return Some("the server forbids it");
        }
        let spare = self.packets.identity.remote().spare(member.id());
        spare.is_none().then_some("no spare connection id")
    }

    pub(super) fn move_to(&mut self, path: usize, address: IpAddr) -> Result<(), &'static str> {
        if let Some(reason) = self.stays(path, address) {
            return Err(reason);
        }
        let shared = self
            .packets
            .paths
            .iter()
            .any(|other| !other.closed() && other.tuple().local.ip() == address);
        let port = if shared {
            self.policy.addresses().egress().next_port()
        } else {
            self.packets.paths[path].tuple().local.port()
        };
        let local_id = self.policy.addresses().local_id(address);
        let mtu = self.mtu_of(address);
        let member = &mut self.packets.paths[path];
        let left = member.route_mut().change_local((address, port).into());
        member.reach_mut().leave(left);
        member.route_mut().set_local_id(local_id);
        let tuple = member.tuple();
        member.datagram_size_mut().set_mtu(tuple, mtu);
        self.packets.change_id(path);
        self.packets.event(EventKind::PathMigrated {
            subflow: path,
            address: (address, port).into(),
        });
        self.packets.forget_measurements(path);
        Ok(())
    }

    /// The address of the only way to the peer is gone: another takes its place, if there is one.
    pub(super) fn replace_address(&mut self, local_id: u8) {
        let others: Vec<IpAddr> = self.policy.addresses().up().collect();
        for path in self.packets.paths.at_address(local_id) {
            others
                .iter()
                .any(|&address| self.move_to(path, address).is_ok());
        }
    }

    /// An address is back from which paths moved that have not arrived elsewhere.
    pub(super) fn take_back(&mut self, address: IpAddr) {
        for path in 0..self.packets.paths.len() {
            let member = &self.packets.paths[path];
            let former = member.reach().former().map(|former| former.local.ip());
            if !member.validated() && former == Some(address) {
                self.return_to_former(path);
            }
        }
    }

    /// Nobody answers at the new addresses: back to those that were validated last (RFC 9000 section 9.3.2). False: there are none.
    pub(super) fn return_to_former(&mut self, path: usize) -> bool {
        let member = &mut self.packets.paths[path];
        let Some(former) = member.reach_mut().return_to_former() else {
            return false;
        };
        let moved_itself = former.local != member.tuple().local;
        member.route_mut().change(former);
        self.packets.event(EventKind::PathMigrated {
            subflow: path,
            address: if self.packets.identity.client() {
                former.local
            } else {
                former.remote
            },
        });
        if moved_itself && self.packets.identity.client() {
            let mtu = self.mtu_of(former.local.ip());
            let local_id = self.policy.addresses().local_id(former.local.ip());
            let member = &mut self.packets.paths[path];
            member.route_mut().set_local_id(local_id);
            member.datagram_size_mut().set_mtu(former, mtu);
            self.packets.forget_measurements(path);
            // A packet that is more than a probe tells the peer.
            self.packets.control.push(Frame::Ping);
        }
        true
    }
}

//! The host's calls on a connection about its own addresses.

use std::net::IpAddr;

use super::connection::Connection;
use crate::path_manager::Occasion;
use crate::{EventKind, Nanos};

impl Connection {
    /// Moves a path to another address of this host, with another id for it (RFC 9000 sections 9.2 and 9.5). False: nothing is moved. Only a
    /// client can, once the handshake is confirmed, to an address of the same family that is up, if the server does not forbid it and
    /// has issued a spare id.
    pub fn migrate_to(&mut self, path: usize, address: IpAddr, now: Nanos) -> bool {
        self.transfer.packets.now = now;
        let moved = self.transfer.move_to(path, address);
        self.flush();
        moved.is_ok()
    }

    /// Moves a client's open paths from one of its addresses to another, as [`Connection::migrate_to`] does. A path that cannot move stays, and
    /// an event says why.
    pub fn migrate(&mut self, from: IpAddr, to: IpAddr, now: Nanos) {
        if !self.transfer.packets.identity.client() || self.transfer.packets.lifetime.over() {
            return;
        }
        self.transfer.packets.now = now;
        for path in 0..self.transfer.packets.paths.len() {
            let member = &self.transfer.packets.paths[path];
            if member.closed() || member.tuple().local.ip() != from {
                continue;
            }
            if let Err(reason) = self.transfer.move_to(path, to) {
                self.transfer.packets.event(EventKind::MigrationRefused {
                    subflow: path,
                    reason,
                });
            }
        }
        self.flush();
    }

    /// Changes whether paths from `address` are backups and tells the peer (RFC 10069 section 4.3).
    pub fn set_backup(&mut self, address: IpAddr, backup: bool, now: Nanos) {
        self.transfer.packets.now = now;
        self.transfer
            .policy
            .addresses_mut()
            .set_backup(address, backup);
        for path in 0..self.transfer.packets.paths.len() {
            let member = &self.transfer.packets.paths[path];
            if member.tuple().local.ip() == address && !member.closed() {
                self.transfer.packets.set_path_backup(path, backup);
            }
        }
        self.flush();
    }

    /// An address of this host went away or came back. Its paths are abandoned as long as others carry data; without multipath a client
    /// moves its path to another address.
    pub fn set_address_up(&mut self, address: IpAddr, up: bool, now: Nanos) {
        self.transfer.packets.now = now;
        let Some(id) = self.transfer.policy.addresses_mut().set_up(address, up) else {
            return;
        };
        if up {
            self.transfer.take_back(address);
            self.path_management
                .ask_path_manager(&mut self.transfer, Occasion::AddressUp(id));
        } else {
            let left = self.path_management.abandon_from(&mut self.transfer, id);
            if !self.transfer.packets.parameters.multipath() {
                self.transfer.replace_address(id);
            }
            self.path_management
                .ask_path_manager(&mut self.transfer, Occasion::AddressDown { id, left });
        }
        self.flush();
    }
}

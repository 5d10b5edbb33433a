//! The life of paths: ids, validation, status, and the path manager's actions (RFC 9000 sections 5.1, 8.2 and 9; RFC
//! 10069 sections 3 and 4).

use std::net::IpAddr;

use polypath_wire::quic::{Frame, NewConnectionId, TransportError};

use super::connection::Connection;
use super::ids::IdError;
use super::packets::Packets;
use super::path::PathState;
use crate::host::Ways;
use crate::path_manager::{Action, Occasion, Pair};
use crate::policy::Standing;
use crate::{EventKind, Nanos, Tuple};

/// Probe timeouts for which packets on a path are taken after the peer abandoned it (RFC 10069 section 3.4).
const RETENTION: Nanos = 3;
/// Retired ids that wait to be told, as a multiple of those that may be active: the peer makes more than it lets be told
/// (RFC 9000 section 5.1.2 asks for two at least).
const UNSENT: u64 = 4;

impl Packets {
    fn refresh_backup(&mut self, path: usize) {
        if let Some(backup) = self.paths.refresh_backup(path) {
            self.event(EventKind::PriorityChanged {
                subflow: path,
                backup,
            });
        }
    }

    fn set_path_backup(&mut self, path: usize, backup: bool) {
        if self.paths[path].status_mut().set_local(backup) {
            self.refresh_backup(path);
            self.tell_status(path);
        }
    }

    fn tell_status(&mut self, path: usize) {
        if !self.parameters.multipath() {
            return;
        }
        let member = &mut self.paths[path];
        let id = member.id();
        self.control.push(member.status_mut().tell(id));
    }
}

impl Connection {
    /// Data may be sent on a path from now on.
    pub(super) fn open_path(&mut self, path: usize) {
        self.transfer.packets.paths[path].establish(self.transfer.packets.now);
        self.transfer
            .packets
            .paths
            .choose_senders(&self.transfer.packets.config);
        self.transfer.packets.paths.refresh_backup(path);
        let (member, mut shown) = self.transfer.packets.paths.pair_mut(path);
        member.publish(&mut shown);
        member.window_mut().begin(&mut shown);
        self.transfer
            .packets
            .event(EventKind::SubflowEstablished(path));
        self.transfer.judge_all_silences();
        self.transfer.packets.ask_for_acks();
        if self.transfer.packets.paths[path].status().local() {
            self.transfer.packets.tell_status(path);
        }
        // Those of addresses that are gone had to wait for it.
        let gone: Vec<u8> = self.transfer.policy.addresses().down().collect();
        for id in gone {
            self.abandon_from(id);
        }
    }

    /// Both sides are ready for more paths: the client knows that the handshake is confirmed.
    fn ready_for_paths(&self) -> bool {
        self.transfer.packets.parameters.multipath()
            && self.transfer.packets.lifetime.established()
            && self.transfer.packets.handshake.confirmed()
            && !self.transfer.packets.lifetime.over()
    }

    /// Asks the path manager when it is first time, and when it asked to be asked; opens what waits for an id.
    pub(super) fn manage_paths(&mut self) {
        let due = self
            .transfer
            .policy
            .manager()
            .is_due(self.transfer.packets.now);
        if !due && !self.path_ids.wants_any() || !self.ready_for_paths() {
            return;
        }
        if due {
            self.ask_path_manager(Occasion::Turn);
        }
        if self.path_ids.wants_any() {
            for (pair, gateways) in self.path_ids.take_wanted() {
                self.begin_path(pair, gateways);
            }
        }
    }

    pub(super) fn ask_path_manager(&mut self, occasion: Occasion) {
        if !self.ready_for_paths() || !self.transfer.policy.manager().minds(occasion) {
            return;
        }
        let open = self
            .transfer
            .packets
            .paths
            .iter()
            .filter(|member| !member.closed());
        let open = open.map(|member| {
            let tuple = member.tuple();
            (member.ids(), (tuple.local.ip(), tuple.remote))
        });
        let wanted = self.path_ids.wanted();
        let known = self.transfer.policy.addresses();
        let port = self.transfer.packets.paths[0].tuple().remote.port();
        let wanted = wanted.filter_map(|pair| {
            let (local, remote) = known.of(pair)?;
            Some((pair, (local, (remote, port).into())))
        });
        let (subflows, addresses): (Vec<Pair>, Vec<_>) = open.chain(wanted).unzip();
        let first = |member: &PathState| member.id() == 0 && !member.closed();
        let further = subflows.len() - usize::from(self.transfer.packets.paths.iter().any(first));
        let standing = Standing {
            occasion,
            further,
            ways: &Ways::default(),
            bound: false,
            client: self.transfer.packets.identity.client(),
            opens: self.transfer.packets.identity.client(),
            taken: true,
            subflows: &subflows,
            addresses: &addresses,
            announced: &[],
            // QUIC has no frame that tells a peer of an address.
            most_announced: 0,
            announcing: false,
            denies_first: false,
        };
        let actions = self
            .transfer
            .policy
            .ask_manager(&standing, self.transfer.packets.now);
        for action in actions {
            match action {
                Action::Open(pair) | Action::OpenRouted(pair)
                    if self.transfer.packets.identity.client() =>
                {
                    self.path_ids.want(pair, Vec::new())
                }
                Action::OpenVia(pair, gateways) if self.transfer.packets.identity.client() => {
                    self.path_ids.want(pair, gateways);
                }
                Action::Close(pair) => {
                    for path in self.transfer.packets.paths.between(pair) {
                        self.abandon(path, TransportError::APPLICATION_ABANDON_PATH);
                    }
                }
                Action::Withdraw(id) => {
                    self.abandon_from(id);
                }
                Action::Priority { pair, backup } => {
                    for path in self.transfer.packets.paths.between(pair) {
                        self.transfer.packets.set_path_backup(path, backup);
                    }
                }
                // Only clients open paths (RFC 10069 section 3.1).
                Action::Open(_)
                | Action::OpenRouted(_)
                | Action::OpenVia(..)
                | Action::Announce { .. } => {}
            }
        }
    }

    /// Begins to validate a path between two addresses, or waits for the ids that it needs (RFC 10069 sections 3.1 and 4.7).
    fn begin_path(&mut self, pair: Pair, gateways: Vec<IpAddr>) {
        let remote = self.transfer.packets.identity.remote();
        let id = self.path_ids.next(|id| remote.is_abandoned(id));
        if !self.path_ids.admits(id) {
            self.admit_paths(self.path_ids.admitted());
        }
        let limit = self.path_ids.peer_admits();
        let blocked = if id > limit {
            Some(Frame::PathsBlocked(limit))
        } else if self
            .transfer
            .packets
            .identity
            .remote()
            .current(id)
            .is_none()
        {
            Some(Frame::PathCidsBlocked {
                path: id,
                next_sequence: 0,
            })
        } else {
            None
        };
        if let Some(frame) = blocked {
            if self.path_ids.block(&frame) {
                self.transfer.packets.control.push(frame);
            }
            return self.path_ids.want(pair, gateways);
        }
        let Some((address, remote)) = self.transfer.policy.addresses().of(pair) else {
            return;
        };
        let backup = self.transfer.policy.addresses().is_backup(pair.local);
        let remote = (remote, self.transfer.packets.paths[0].tuple().remote.port()).into();
        let same =
            self.transfer.packets.paths.iter().any(|member| {
                member.tuple().remote == remote && member.tuple().local.ip() == address
            });
        // One path has one pair of addresses and ports; a second between the same addresses takes another port.
        let port = if same {
            self.transfer.policy.addresses().egress().next_port()
        } else {
            self.transfer.packets.paths[0].tuple().local.port()
        };
        let tuple = Tuple {
            local: (address, port).into(),
            remote,
        };
        let Ok(path) = self.add_path(id, tuple, pair) else {
            return;
        };
        self.path_ids.advance();
        self.transfer.packets.identity.remote_mut().put_to_use(id);
        let member = &mut self.transfer.packets.paths[path];
        member.route_mut().steer(gateways);
        member.status_mut().set_local(backup);
        member.reach_mut().ask();
    }

    pub(super) fn on_path_frame(&mut self, frame: &Frame) {
        match frame {
            Frame::PathResponse(data) => self.on_path_response(*data),
            Frame::NewConnectionId(new) => self.on_new_id(new, frame),
            Frame::RetireConnectionId { path, sequence } => {
                let of = path.unwrap_or(0);
                if !self
                    .transfer
                    .packets
                    .identity
                    .local_mut()
                    .retire(of, *sequence)
                {
                    let reason = "an id that was never issued";
                    let kind = frame.frame_type();
                    return self
                        .transfer
                        .fail(TransportError::PROTOCOL_VIOLATION, kind, reason);
                }
                let limit = self
                    .transfer
                    .packets
                    .parameters
                    .peer()
                    .active_connection_id_limit;
                self.transfer.packets.issue_ids(of, limit);
            }
            Frame::PathAbandon { path, .. } => self.on_abandon(*path),
            Frame::PathStatus {
                path,
                sequence,
                backup,
            } => self.on_status(*path, *sequence, *backup),
            Frame::MaxPathId(max) => {
                let limit = self
                    .transfer
                    .packets
                    .parameters
                    .peer()
                    .active_connection_id_limit;
                for id in self.path_ids.raise_peer(*max) {
                    self.transfer.packets.issue_ids(id, limit);
                }
            }
            Frame::PathsBlocked(limit) => self.admit_paths(*limit),
            Frame::PathCidsBlocked { path, .. } if *path <= self.path_ids.peer_admits() => {
                let limit = self
                    .transfer
                    .packets
                    .parameters
                    .peer()
                    .active_connection_id_limit;
                self.transfer.packets.issue_ids(*path, limit);
            }
            _ => {}
        }
    }

    fn on_new_id(&mut self, new: &NewConnectionId, frame: &Frame) {
        let limit = self
            .transfer
            .packets
            .parameters
            .own()
            .active_connection_id_limit;
        let waiting = self.transfer.packets.control.iter().filter(
            |frame| matches!(frame, Frame::RetireConnectionId { path, .. } if *path == new.path),
        );
        // RFC 9000 section 5.1.2.
        let too_many = waiting.count() as u64 > UNSENT * limit;
        match self.transfer.packets.identity.remote_mut().add(new, limit) {
            _ if too_many => self.transfer.fail(
                TransportError::CONNECTION_ID_LIMIT_ERROR,
                frame.frame_type(),
                "more ids retired than can be told",
            ),
            Ok(retired) => {
                for sequence in retired {
                    self.transfer
                        .packets
                        .control
                        .push(Frame::RetireConnectionId {
                            path: new.path,
                            sequence,
                        });
                }
            }
            Err(IdError::Limit) => self.transfer.fail(
                TransportError::CONNECTION_ID_LIMIT_ERROR,
                frame.frame_type(),
                "more ids than were admitted",
            ),
            Err(IdError::Contradiction) => self.transfer.fail(
                TransportError::PROTOCOL_VIOLATION,
                frame.frame_type(),
                "an id with two meanings",
            ),
        }
    }

    /// The answer to a challenge: the path works in both directions (RFC 9000 section 8.2.3).
    fn on_path_response(&mut self, data: u64) {
        let mut members = self.transfer.packets.paths.iter().enumerate();
        let asked = members.find_map(|(path, member)| Some((path, member.reach().answered(data)?)));
        let Some((path, full)) = asked else {
            return;
        };
        self.transfer.packets.paths[path]
            .reach_mut()
            .on_answer(full);
        let new = self.transfer.packets.paths[path].established_at().is_none();
        if new
            && !self.transfer.packets.paths[path].closed()
            && self.transfer.packets.lifetime.established()
        {
            self.open_path(path);
        }
    }

    fn on_abandon(&mut self, id: u64) {
        let open = |member: &PathState| !member.closed();
        let Some(path) = self
            .transfer
            .packets
            .paths
            .iter()
            .position(|member| member.id() == id)
        else {
            return self.abandon_unused(id);
        };
        let delay = self.transfer.packets.parameters.peer_delay();
        self.transfer.packets.paths[path].retain(self.transfer.packets.now, RETENTION, delay);
        if self.transfer.packets.paths[path].closed() {
            return;
        }
        let mut others = self
            .transfer
            .packets
            .paths
            .iter()
            .filter(|member| member.id() != id);
        if others.any(open) {
            return self.leave(path, TransportError::NO_ERROR);
        }
        // RFC 10069 section 3.4.
        let reason = "the only path is abandoned";
        self.transfer
            .fail(TransportError::NO_VIABLE_PATH, 0, reason);
    }

    /// The peer abandons a path on which nothing came or went.
    fn abandon_unused(&mut self, id: u64) {
        if !self.transfer.packets.identity.remote().is_abandoned(id) {
            self.transfer.packets.identity.local_mut().forget(id);
            self.transfer.packets.identity.remote_mut().forget(id);
            self.path_ids.take_status(id);
            self.transfer.packets.control.push(Frame::PathAbandon {
                path: id,
                error: TransportError::NO_ERROR.0,
            });
        }
    }

    /// Abandons a path, unless no other carries data.
    pub(super) fn abandon(&mut self, path: usize, error: TransportError) {
        if !self.transfer.packets.paths[path].closed() && !self.transfer.packets.paths.is_last(path)
        {
            self.leave(path, error);
        }
    }

    /// Leaves a path and tells the peer (RFC 10069 section 3.4).
    fn leave(&mut self, path: usize, error: TransportError) {
        let id = self.transfer.packets.paths[path].id();
        self.transfer.packets.paths[path].close(self.transfer.packets.now);
        self.transfer.packets.compare_timeouts();
        self.transfer
            .packets
            .paths
            .choose_senders(&self.transfer.packets.config);
        self.transfer.give_up_flight(path);
        self.transfer.packets.control.push(Frame::PathAbandon {
            path: id,
            error: error.0,
        });
        // Packets of the peer's may still come, until it has answered and a while after that.
        self.transfer.packets.identity.local_mut().abandon(id);
        self.transfer.packets.identity.remote_mut().forget(id);
        self.transfer.packets.event(EventKind::SubflowClosed(path));
        if !self.transfer.packets.identity.client() {
            // The id is not used again: another may take its place (section 4.6).
            self.admit_paths(self.path_ids.admitted());
        }
    }

    /// Abandons the paths from an address. False: no other carries data, and nothing is done.
    fn abandon_from(&mut self, local_id: u8) -> bool {
        if !self.transfer.packets.paths.any_elsewhere(local_id) {
            return false;
        }
        for path in self.transfer.packets.paths.at_address(local_id) {
            self.abandon(path, TransportError::APPLICATION_ABANDON_PATH);
        }
        true
    }

    fn on_status(&mut self, id: u64, sequence: u64, backup: bool) {
        let Some(path) = self
            .transfer
            .packets
            .paths
            .iter()
            .position(|member| member.id() == id)
        else {
            // It may come before the path is opened.
            if !self.transfer.packets.identity.remote().is_abandoned(id) {
                self.path_ids.keep_status(id, sequence, backup);
            }
            return;
        };
        if self.transfer.packets.paths[path]
            .status_mut()
            .take(sequence, backup)
        {
            self.transfer.packets.refresh_backup(path);
        }
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
            self.ask_path_manager(Occasion::AddressUp(id));
        } else {
            let left = self.abandon_from(id);
            if !self.transfer.packets.parameters.multipath() {
                self.transfer.replace_address(id);
            }
            self.ask_path_manager(Occasion::AddressDown { id, left });
        }
        self.flush();
    }

    /// The peer does not answer on a path.
    pub(super) fn give_up_validation(&mut self, path: usize) {
        let (former, own) = (
            self.transfer.packets.paths[path].reach().former(),
            self.transfer.policy.addresses(),
        );
        let up = former.is_some_and(|former| !own.is_down(former.local.ip()));
        if up && self.transfer.return_to_former(path) {
            return;
        }
        if self.transfer.packets.paths.is_last(path) {
            // There is no other way to the peer; the idle timeout bounds the attempts.
            self.transfer.packets.paths[path].reach_mut().persist();
            return;
        }
        self.abandon(path, TransportError::PATH_UNSTABLE_OR_POOR);
    }
}

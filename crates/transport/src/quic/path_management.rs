//! The life of paths: ids, validation, status, and the path manager's actions (RFC 9000 sections 5.1, 8.2 and 9; RFC
//! 10069 sections 3 and 4).

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_wire::quic::{Frame, NewConnectionId, TransportError};

use super::datagram_size::{DatagramSize, payload};
use super::ids::IdError;
use super::packets::Packets;
use super::path::PathState;
use super::path_ids::PathIds;
use super::route::Route;
use super::transfer::Transfer;
use crate::host::Ways;
use crate::path::Path;
use crate::path_manager::{Action, Occasion, Pair};
use crate::policy::Standing;
use crate::{EventKind, Nanos, Tuple};
use polypath_settings::RegistryError;

/// Probe timeouts for which packets on a path are taken after the peer abandoned it (RFC 10069 section 3.4).
const RETENTION: Nanos = 3;
/// Retired ids that wait to be told, as a multiple of those that may be active: the peer makes more than it lets be told
/// (RFC 9000 section 5.1.2 asks for two at least).
const UNSENT: u64 = 4;

/// A pair of addresses, and the routers through which packets between them are steered.
type Wanted = (Pair, Vec<IpAddr>);

/// What is known of paths beyond each one's own state.
#[derive(Debug, Default)]
pub(super) struct PathManagement {
    ids: PathIds,
    /// Paths that wait for an id.
    wanted: Vec<Wanted>,
    /// Status of paths that are not open yet, by id: sequence number, and whether they are backups.
    early_statuses: BTreeMap<u64, (u64, bool)>,
    /// What the peer was told last of an id that is missing.
    told_blocked: Option<Frame>,
}

impl Packets {
    /// Both sides are ready for more paths: the client knows that the handshake is confirmed.
    fn ready_for_paths(&self) -> bool {
        self.parameters.multipath()
            && self.lifetime.established()
            && self.handshake.confirmed()
            && !self.lifetime.over()
    }

    fn refresh_backup(&mut self, path: usize) {
        if let Some(backup) = self.paths.refresh_backup(path) {
            self.event(EventKind::PriorityChanged {
                subflow: path,
                backup,
            });
        }
    }

    pub(super) fn set_path_backup(&mut self, path: usize, backup: bool) {
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

impl Transfer {
    fn on_new_id(&mut self, new: &NewConnectionId, frame: &Frame) {
        let limit = self.packets.parameters.own().active_connection_id_limit;
        let waiting = self.packets.control.iter().filter(
            |frame| matches!(frame, Frame::RetireConnectionId { path, .. } if *path == new.path),
        );
        // RFC 9000 section 5.1.2.
        let too_many = waiting.count() as u64 > UNSENT * limit;
        match self.packets.identity.remote_mut().add(new, limit) {
            _ if too_many => self.fail(
                TransportError::CONNECTION_ID_LIMIT_ERROR,
                frame.frame_type(),
                "more ids retired than can be told",
            ),
            Ok(retired) => {
                for sequence in retired {
                    self.packets.control.push(Frame::RetireConnectionId {
                        path: new.path,
                        sequence,
                    });
                }
            }
            Err(IdError::Limit) => self.fail(
                TransportError::CONNECTION_ID_LIMIT_ERROR,
                frame.frame_type(),
                "more ids than were admitted",
            ),
            Err(IdError::Contradiction) => self.fail(
                TransportError::PROTOCOL_VIOLATION,
                frame.frame_type(),
                "an id with two meanings",
            ),
        }
    }
}

impl PathManagement {
    pub fn ids(&self) -> &PathIds {
        &self.ids
    }

    pub fn ids_mut(&mut self) -> &mut PathIds {
        &mut self.ids
    }

    pub(super) fn add_path(
        &mut self,
        transfer: &mut Transfer,
        id: u64,
        tuple: Tuple,
        ids: Pair,
    ) -> Result<usize, RegistryError> {
        let mtu = transfer.mtu_of(tuple.local.ip());
        let takes = transfer.packets.parameters.peer().max_udp_payload_size;
        let congestion = transfer
            .packets
            .paths
            .make_congestion(&transfer.packets.config, tuple)?;
        let route = Route::new(tuple, ids);
        let size = DatagramSize::new(tuple, mtu, takes);
        let mut member = PathState::new(&transfer.packets.config, congestion, id, route, size);
        member
            .space_mut()
            .received
            .set_policy(transfer.packets.parameters.ack_policy());
        if let Some((sequence, backup)) = self.early_statuses.remove(&id) {
            member.status_mut().take(sequence, backup);
        }
        let mut path = Path::new(
            payload(member.datagram()),
            transfer.packets.config.initial_window,
        );
        path.multipath = transfer.packets.config.multipath;
        path.paces = true;
        let index = transfer.packets.paths.add(member, path);
        transfer.packets.compare_timeouts();
        Ok(index)
    }

    #[cold]
    pub(super) fn admit_path(
        &mut self,
        transfer: &mut Transfer,
        id: u64,
        tuple: &Tuple,
    ) -> Option<(usize, bool)> {
        if transfer.packets.identity.client() || !transfer.packets.lifetime.established() {
            return None;
        }
        let ids = transfer.policy.addresses_mut().ids(*tuple);
        let path = self.add_path(transfer, id, *tuple, ids).ok()?;
        transfer.packets.identity.remote_mut().put_to_use(id);
        transfer.packets.paths[path].reach_mut().ask();
        Some((path, true))
    }

    /// The handshake is complete on this side: the first path opens, and ids for others are issued.
    pub(super) fn begin(&mut self, transfer: &mut Transfer) {
        self.open_path(transfer, 0);
        let limit = transfer
            .packets
            .parameters
            .peer()
            .active_connection_id_limit;
        let multipath = transfer.packets.parameters.multipath();
        let last = if multipath { self.ids.common() } else { 0 };
        for path in 0..=last {
            transfer.packets.issue_ids(path, limit);
        }
    }

    /// Data may be sent on a path from now on.
    pub(super) fn open_path(&mut self, transfer: &mut Transfer, path: usize) {
        transfer.packets.paths[path].establish(transfer.packets.now);
        transfer
            .packets
            .paths
            .choose_senders(&transfer.packets.config);
        transfer.packets.paths.refresh_backup(path);
        let (member, mut shown) = transfer.packets.paths.pair_mut(path);
        member.publish(&mut shown);
        member.window_mut().begin(&mut shown);
        transfer.packets.event(EventKind::SubflowEstablished(path));
        transfer.judge_all_silences();
        transfer.packets.ask_for_acks();
        if transfer.packets.paths[path].status().local() {
            transfer.packets.tell_status(path);
        }
        // Those of addresses that are gone had to wait for it.
        let gone: Vec<u8> = transfer.policy.addresses().down().collect();
        for id in gone {
            self.abandon_from(transfer, id);
        }
    }

    /// Asks the path manager when it is first time, and when it asked to be asked; opens what waits for an id.
    pub(super) fn manage_paths(&mut self, transfer: &mut Transfer) {
        let due = transfer.policy.manager().is_due(transfer.packets.now);
        if !due && self.wanted.is_empty() || !transfer.packets.ready_for_paths() {
            return;
        }
        if due {
            self.ask_path_manager(transfer, Occasion::Turn);
        }
        if !self.wanted.is_empty() {
            for (pair, gateways) in std::mem::take(&mut self.wanted) {
                self.begin_path(transfer, pair, gateways);
            }
        }
    }

    pub(super) fn ask_path_manager(&mut self, transfer: &mut Transfer, occasion: Occasion) {
        if !transfer.packets.ready_for_paths() || !transfer.policy.manager().minds(occasion) {
            return;
        }
        let open = transfer
            .packets
            .paths
            .iter()
            .filter(|member| !member.closed());
        let open = open.map(|member| {
            let tuple = member.tuple();
            (member.ids(), (tuple.local.ip(), tuple.remote))
        });
        let wanted = self.wanted.iter().map(|(pair, _)| *pair);
        let known = transfer.policy.addresses();
        let port = transfer.packets.paths[0].tuple().remote.port();
        let wanted = wanted.filter_map(|pair| {
            let (local, remote) = known.of(pair)?;
            Some((pair, (local, (remote, port).into())))
        });
        let (subflows, addresses): (Vec<Pair>, Vec<_>) = open.chain(wanted).unzip();
        let first = |member: &PathState| member.id() == 0 && !member.closed();
        let further = subflows.len() - usize::from(transfer.packets.paths.iter().any(first));
        let standing = Standing {
            occasion,
            further,
            ways: &Ways::default(),
            bound: false,
            client: transfer.packets.identity.client(),
            opens: transfer.packets.identity.client(),
            taken: true,
            subflows: &subflows,
            addresses: &addresses,
            announced: &[],
            // QUIC has no frame that tells a peer of an address.
            most_announced: 0,
            announcing: false,
            denies_first: false,
        };
        let actions = transfer.policy.ask_manager(&standing, transfer.packets.now);
        for action in actions {
            match action {
                Action::Open(pair) | Action::OpenRouted(pair)
                    if transfer.packets.identity.client() =>
                {
                    self.wanted.push((pair, Vec::new()))
                }
                Action::OpenVia(pair, gateways) if transfer.packets.identity.client() => {
                    self.wanted.push((pair, gateways));
                }
                Action::Close(pair) => {
                    for path in transfer.packets.paths.between(pair) {
                        self.abandon(transfer, path, TransportError::APPLICATION_ABANDON_PATH);
                    }
                }
                Action::Withdraw(id) => {
                    self.abandon_from(transfer, id);
                }
                Action::Priority { pair, backup } => {
                    for path in transfer.packets.paths.between(pair) {
                        transfer.packets.set_path_backup(path, backup);
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
    fn begin_path(&mut self, transfer: &mut Transfer, pair: Pair, gateways: Vec<IpAddr>) {
        let remote = transfer.packets.identity.remote();
        let id = self.ids.next(|id| remote.is_abandoned(id));
        if !self.ids.admits(id) {
            self.admit_paths(transfer, self.ids.admitted());
        }
        let limit = self.ids.peer_admits();
        let blocked = if id > limit {
            Some(Frame::PathsBlocked(limit))
        } else if transfer.packets.identity.remote().current(id).is_none() {
            Some(Frame::PathCidsBlocked {
                path: id,
                next_sequence: 0,
            })
        } else {
            None
        };
        if let Some(frame) = blocked {
            if self.tells_blocked(&frame) {
                transfer.packets.control.push(frame);
            }
            return self.wanted.push((pair, gateways));
        }
        let Some((address, remote)) = transfer.policy.addresses().of(pair) else {
            return;
        };
        let backup = transfer.policy.addresses().is_backup(pair.local);
        let remote = (remote, transfer.packets.paths[0].tuple().remote.port()).into();
        let same =
            transfer.packets.paths.iter().any(|member| {
                member.tuple().remote == remote && member.tuple().local.ip() == address
            });
        // One path has one pair of addresses and ports; a second between the same addresses takes another port.
        let port = if same {
            transfer.policy.addresses().egress().next_port()
        } else {
            transfer.packets.paths[0].tuple().local.port()
        };
        let tuple = Tuple {
            local: (address, port).into(),
            remote,
        };
        let Ok(path) = self.add_path(transfer, id, tuple, pair) else {
            return;
        };
        self.ids.advance();
        transfer.packets.identity.remote_mut().put_to_use(id);
        let member = &mut transfer.packets.paths[path];
        member.route_mut().steer(gateways);
        member.status_mut().set_local(backup);
        member.reach_mut().ask();
    }

    /// Admits as many more path ids as the peer's need suggests.
    pub(super) fn admit_paths(&mut self, transfer: &mut Transfer, asked: u64) {
        let abandoned = transfer
            .packets
            .paths
            .iter()
            .filter(|member| member.closed())
            .count() as u64;
        let Some(common) = self.ids.raise(asked, abandoned) else {
            return;
        };
        transfer
            .packets
            .control
            .push(Frame::MaxPathId(self.ids.admitted()));
        let limit = transfer
            .packets
            .parameters
            .peer()
            .active_connection_id_limit;
        for path in common {
            transfer.packets.issue_ids(path, limit);
        }
    }

    /// A frame about paths. False: it is about something else.
    pub(super) fn on_frame(&mut self, transfer: &mut Transfer, frame: &Frame) -> bool {
        match frame {
            Frame::PathResponse(data) => self.on_path_response(transfer, *data),
            Frame::NewConnectionId(new) => transfer.on_new_id(new, frame),
            Frame::RetireConnectionId { path, sequence } => {
                let of = path.unwrap_or(0);
                if !transfer.packets.identity.local_mut().retire(of, *sequence) {
                    let reason = "an id that was never issued";
                    let kind = frame.frame_type();
                    transfer.fail(TransportError::PROTOCOL_VIOLATION, kind, reason);
                    return true;
                }
                let limit = transfer
                    .packets
                    .parameters
                    .peer()
                    .active_connection_id_limit;
                transfer.packets.issue_ids(of, limit);
            }
            Frame::PathAbandon { path, .. } => self.on_abandon(transfer, *path),
            Frame::PathStatus {
                path,
                sequence,
                backup,
            } => self.on_status(transfer, *path, *sequence, *backup),
            Frame::MaxPathId(max) => {
                let limit = transfer
                    .packets
                    .parameters
                    .peer()
                    .active_connection_id_limit;
                for id in self.ids.raise_peer(*max) {
                    transfer.packets.issue_ids(id, limit);
                }
            }
            Frame::PathsBlocked(limit) => self.admit_paths(transfer, *limit),
            Frame::PathCidsBlocked { path, .. } if *path <= self.ids.peer_admits() => {
                let limit = transfer
                    .packets
                    .parameters
                    .peer()
                    .active_connection_id_limit;
                transfer.packets.issue_ids(*path, limit);
            }
            _ => return false,
        }
        true
    }

    /// The answer to a challenge: the path works in both directions (RFC 9000 section 8.2.3).
    fn on_path_response(&mut self, transfer: &mut Transfer, data: u64) {
        let mut members = transfer.packets.paths.iter().enumerate();
        let asked = members.find_map(|(path, member)| Some((path, member.reach().answered(data)?)));
        let Some((path, full)) = asked else {
            return;
        };
        transfer.packets.paths[path].reach_mut().on_answer(full);
        let new = transfer.packets.paths[path].established_at().is_none();
        if new && !transfer.packets.paths[path].closed() && transfer.packets.lifetime.established()
        {
            self.open_path(transfer, path);
        }
    }

    fn on_abandon(&mut self, transfer: &mut Transfer, id: u64) {
        let open = |member: &PathState| !member.closed();
        let Some(path) = transfer
            .packets
            .paths
            .iter()
            .position(|member| member.id() == id)
        else {
            return self.abandon_unused(transfer, id);
        };
        let delay = transfer.packets.parameters.peer_delay();
        transfer.packets.paths[path].retain(transfer.packets.now, RETENTION, delay);
        if transfer.packets.paths[path].closed() {
            return;
        }
        let mut others = transfer
            .packets
            .paths
            .iter()
            .filter(|member| member.id() != id);
        if others.any(open) {
            return self.leave(transfer, path, TransportError::NO_ERROR);
        }
        // RFC 10069 section 3.4.
        let reason = "the only path is abandoned";
        transfer.fail(TransportError::NO_VIABLE_PATH, 0, reason);
    }

    /// The peer abandons a path on which nothing came or went.
    fn abandon_unused(&mut self, transfer: &mut Transfer, id: u64) {
        if !transfer.packets.identity.remote().is_abandoned(id) {
            transfer.packets.identity.local_mut().forget(id);
            transfer.packets.identity.remote_mut().forget(id);
            self.early_statuses.remove(&id);
            transfer.packets.control.push(Frame::PathAbandon {
                path: id,
                error: TransportError::NO_ERROR.0,
            });
        }
    }

    /// Abandons a path, unless no other carries data.
    pub(super) fn abandon(&mut self, transfer: &mut Transfer, path: usize, error: TransportError) {
        if !transfer.packets.paths[path].closed() && !transfer.packets.paths.is_last(path) {
            self.leave(transfer, path, error);
        }
    }

    /// Leaves a path and tells the peer (RFC 10069 section 3.4).
    fn leave(&mut self, transfer: &mut Transfer, path: usize, error: TransportError) {
        let id = transfer.packets.paths[path].id();
        transfer.packets.paths[path].close(transfer.packets.now);
        transfer.packets.compare_timeouts();
        transfer
            .packets
            .paths
            .choose_senders(&transfer.packets.config);
        transfer.give_up_flight(path);
        transfer.packets.control.push(Frame::PathAbandon {
            path: id,
            error: error.0,
        });
        // Packets of the peer's may still come, until it has answered and a while after that.
        transfer.packets.identity.local_mut().abandon(id);
        transfer.packets.identity.remote_mut().forget(id);
        transfer.packets.event(EventKind::SubflowClosed(path));
        if !transfer.packets.identity.client() {
            // The id is not used again: another may take its place (section 4.6).
            self.admit_paths(transfer, self.ids.admitted());
        }
    }

    /// Abandons the paths from an address. False: no other carries data, and nothing is done.
    pub(super) fn abandon_from(&mut self, transfer: &mut Transfer, local_id: u8) -> bool {
        if !transfer.packets.paths.any_elsewhere(local_id) {
            return false;
        }
        for path in transfer.packets.paths.at_address(local_id) {
            self.abandon(transfer, path, TransportError::APPLICATION_ABANDON_PATH);
        }
        true
    }

    fn on_status(&mut self, transfer: &mut Transfer, id: u64, sequence: u64, backup: bool) {
        let Some(path) = transfer
            .packets
            .paths
            .iter()
            .position(|member| member.id() == id)
        else {
            // It may come before the path is opened.
            if !transfer.packets.identity.remote().is_abandoned(id) {
                self.keep_status(id, sequence, backup);
            }
            return;
        };
        if transfer.packets.paths[path]
            .status_mut()
            .take(sequence, backup)
        {
            transfer.packets.refresh_backup(path);
        }
    }

    /// The peer does not answer on a path.
    pub(super) fn give_up_validation(&mut self, transfer: &mut Transfer, path: usize) {
        let (former, own) = (
            transfer.packets.paths[path].reach().former(),
            transfer.policy.addresses(),
        );
        let up = former.is_some_and(|former| !own.is_down(former.local.ip()));
        if up && transfer.return_to_former(path) {
            return;
        }
        if transfer.packets.paths.is_last(path) {
            // There is no other way to the peer; the idle timeout bounds the attempts.
            transfer.packets.paths[path].reach_mut().persist();
            return;
        }
        self.abandon(transfer, path, TransportError::PATH_UNSTABLE_OR_POOR);
    }

    /// An id is missing, as this frame says. Whether the peer is to be told, which does not know it yet.
    fn tells_blocked(&mut self, frame: &Frame) -> bool {
        let new = self.told_blocked.as_ref() != Some(frame);
        if new {
            self.told_blocked = Some(frame.clone());
        }
        new
    }

    /// A status came before its path.
    fn keep_status(&mut self, id: u64, sequence: u64, backup: bool) {
        let early = self.early_statuses.entry(id).or_insert((sequence, backup));
        *early = (*early).max((sequence, backup));
    }
}

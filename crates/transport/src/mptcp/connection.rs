//! A connection: its subflows, its data stream, and the calls by which its owner drives it.
//!
//! The owner hands in segments ([`Connection::on_segment`]), the time ([`Connection::on_time`]), and the application's wishes
//! ([`Connection::write`], [`Connection::read`], [`Connection::close`]); after each call it takes what is to be sent
//! ([`Connection::transmits`]) and what happened ([`Connection::events`]), and asks when to call again ([`Connection::next_deadline`]).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use polypath_wire::mptcp::{MpCapable, MptcpOption};
use polypath_wire::tcp::Segment;
use rand::RngCore;
use rand_pcg::Pcg64Mcg;

use super::addresses::Unechoed;
use super::core::{Core, Join, Multipath};
use super::receive::DataReceiver;
use super::retransmission::Retransmission;
use super::send::DataSender;
use crate::blocking::{Blocked, Blocking, Cause};
use crate::config::Config;
use crate::path::Path;
use crate::path_manager::{LocalAddress, PathManager, RemoteAddress};
use crate::registry::RegistryError;
use crate::scheduler::Scheduler;
use crate::tcp::{Fired, Socket, State};
use crate::{CloseReason, Counters, Event, EventKind, Mib, NEVER, Nanos};

/// Bytes that an application reads at a time, as the programs of the kernel engines do.
const PIECE: u64 = 1 << 16;

/// The two ends of a subflow, this host's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// A segment to be sent on a subflow.
#[derive(Clone, Debug)]
pub struct Transmit {
    pub subflow: usize,
    pub segment: Segment,
    pub purpose: Purpose,
}

/// Why a segment is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// No payload: SYN, ACK, FIN, RST.
    Control,
    #[default]
    Data,
    /// Sent before on the same subflow.
    Retransmission,
    /// Sent before on another subflow.
    Reinjection,
}

/// A host's source of ephemeral ports.
#[derive(Clone, Debug, Default)]
pub struct Ports(Arc<AtomicU32>);

/// The ephemeral range (Linux ip_local_port_range).
const FIRST_PORT: u32 = 32_768;
const LAST_PORT: u32 = 60_999;

impl Ports {
    pub fn next(&self) -> u16 {
        let turn = self.0.fetch_add(1, Ordering::Relaxed);
        (FIRST_PORT + turn % (LAST_PORT - FIRST_PORT + 1)) as u16
    }
}

/// What a connection takes from its host.
pub struct Accept {
    pub config: Arc<Config>,
    /// Every address of the host; ids are given by the connection.
    pub addresses: Vec<(IpAddr, bool)>,
    /// Longest packets of interfaces that take shorter ones than the host, by address.
    pub mtus: Vec<(IpAddr, u32)>,
    pub ports: Ports,
    pub random: Pcg64Mcg,
}

/// A subflow as its owner sees it.
pub struct SubflowInfo {
    pub tuple: Tuple,
    pub local_id: u8,
    pub remote_id: u8,
    /// Addresses of routers through which its packets are steered.
    pub gateways: Vec<IpAddr>,
    /// This host asked for it to be a backup, or the peer did.
    pub backup_local: bool,
    pub backup_remote: bool,
    pub established_at: Option<Nanos>,
    pub closed_at: Option<Nanos>,
    /// Mappings that cover more than the segment they came with: subflow sequence number, stream offset, length.
    pub(super) mappings: Vec<(u64, u64, u32)>,
}

impl SubflowInfo {
    pub(super) fn new(tuple: Tuple, local_id: u8, remote_id: u8) -> Self {
        Self {
            tuple,
            local_id,
            remote_id,
            gateways: Vec::new(),
            backup_local: false,
            backup_remote: false,
            established_at: None,
            closed_at: None,
            mappings: Vec::new(),
        }
    }
}

/// One end of a TCP or MPTCP connection.
pub struct Connection {
    pub(super) core: Core,
    pub(super) paths: Vec<Path>,
    pub(super) sockets: Vec<Socket>,
    pub(super) subflows: Vec<SubflowInfo>,
    pub(super) send: DataSender,
    pub(super) retransmission: Retransmission,
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) path_manager: Box<dyn PathManager>,
    /// When the path manager was first asked, and when it is to be asked again.
    pub(super) ready_at: Option<Nanos>,
    pub(super) path_manager_at: Nanos,
    pub(super) local: Vec<LocalAddress>,
    pub(super) remote: Vec<RemoteAddress>,
    /// Ids that the peer was told of, and those whose echo is awaited.
    pub(super) announced: Vec<u8>,
    pub(super) unechoed: Vec<Unechoed>,
    pub(super) random: Pcg64Mcg,
    pub(super) ports: Ports,
    mtus: Vec<(IpAddr, u32)>,
    pub(super) established: bool,
    pub(super) ended: Option<CloseReason>,
    pub(super) record_decisions: bool,
    /// Some subflow has a congestion controller that sets a rate.
    pub(super) paced: bool,
    /// No deadline lies before this.
    pub(super) deadline: Nanos,
}

impl Connection {
    fn new(host: Accept, tuple: Tuple, client: bool, now: Nanos) -> Result<Self, RegistryError> {
        let Accept {
            config,
            addresses,
            mtus,
            ports,
            mut random,
        } = host;
        let mut local = vec![LocalAddress {
            id: 0,
            address: tuple.local.ip(),
            backup: false,
            up: true,
        }];
        for (index, (address, backup)) in addresses.into_iter().enumerate() {
            if address == tuple.local.ip() {
                local[0].backup = backup;
            } else {
                local.push(LocalAddress {
                    id: index as u8 + 1,
                    address,
                    backup,
                    up: true,
                });
            }
        }
        let multipath = config
            .mptcp
            .then(|| Multipath::new(&config, random.next_u64()));
        let core = Core {
            receive: DataReceiver::new(&config),
            blocking: Blocking::default(),
            arriving: Purpose::Data,
            multipath,
            infinite: None,
            client,
            fin_seen: false,
            now,
            out: Vec::new(),
            events: Vec::new(),
            counters: Counters::default(),
            joins: Vec::new(),
            send_limit: 0,
            uncorked: false,
            largest_window: 0,
            scratch: Vec::new(),
            config: config.clone(),
        };
        let scheduler = config.make_scheduler()?;
        let mut connection = Self {
            core,
            paths: Vec::new(),
            sockets: Vec::new(),
            subflows: Vec::new(),
            send: DataSender::new(&config, scheduler.fills_queues()),
            retransmission: Retransmission::new(&config),
            scheduler,
            path_manager: config.make_path_manager()?,
            ready_at: None,
            path_manager_at: NEVER,
            local,
            remote: vec![RemoteAddress {
                id: 0,
                address: tuple.remote.ip(),
                port: None,
            }],
            announced: Vec::new(),
            unechoed: Vec::new(),
            random,
            ports,
            mtus,
            established: false,
            ended: None,
            record_decisions: false,
            paced: false,
            deadline: 0,
        };
        connection.add_subflow(SubflowInfo::new(tuple, 0, 0), None)?;
        Ok(connection)
    }

    /// Opens a connection from `tuple.local` to `tuple.remote`.
    pub fn connect(host: Accept, tuple: Tuple, now: Nanos) -> Result<Self, RegistryError> {
        let mut connection = Self::new(host, tuple, true, now)?;
        connection.core.counters.increment(Mib::TcpActiveOpens);
        connection.sockets[0].connect(&mut connection.core, &mut connection.paths[0], 0);
        Ok(connection)
    }

    /// Answers a SYN without MP_JOIN.
    pub fn accept(
        host: Accept,
        tuple: Tuple,
        syn: &Segment,
        now: Nanos,
    ) -> Result<Self, RegistryError> {
        let mut connection = Self::new(host, tuple, false, now)?;
        connection.core.counters.increment(Mib::TcpPassiveOpens);
        let offered = syn.mptcp().iter().find_map(|option| match option {
            MptcpOption::Capable(capable) if capable.version >= 1 && capable.hmac_sha256 => {
                Some(*capable)
            }
            _ => None,
        });
        match offered {
            Some(MpCapable {
                checksum_required,
                deny_join_initial,
                ..
            }) => {
                connection
                    .core
                    .counters
                    .increment(Mib::MPTcpExtMPCapableSYNRX);
                if let Some(multipath) = &mut connection.core.multipath {
                    multipath.checksum |= checksum_required;
                    multipath.deny_join_initial = deny_join_initial;
                }
            }
            None => connection.core.multipath = None,
        }
        connection.sockets[0].accept(&mut connection.core, &mut connection.paths[0], 0, syn);
        Ok(connection)
    }

    pub(super) fn add_subflow(
        &mut self,
        info: SubflowInfo,
        join: Option<Box<Join>>,
    ) -> Result<usize, RegistryError> {
        let config = &self.core.config;
        let local = info.tuple.local.ip();
        let interface = self.mtus.iter().find(|(address, _)| *address == local);
        let mtu = interface.map_or(config.mtu, |(_, mtu)| config.mtu.min(*mtu));
        let mss = crate::tcp::announced_mss(mtu, local.is_ipv6());
        self.paths.push(Path {
            buffer: config.send_buffer.default,
            ..Path::new(mss.into(), config.initial_window)
        });
        self.sockets.push(Socket::new(
            config,
            mss,
            self.random.next_u32(),
            config.make_congestion()?,
            self.scheduler.fills_queues() || config.profile.writes_in_bursts(),
        ));
        self.paced |= self.sockets.last().is_some_and(Socket::is_paced);
        self.subflows.push(info);
        self.core.joins.push(join);
        Ok(self.sockets.len() - 1)
    }

    /// Handles what is due at `now`.
    pub fn on_time(&mut self, now: Nanos) {
        self.core.now = now;
        for me in 0..self.sockets.len() {
            let socket = &self.sockets[me];
            if socket.next_deadline().min(socket.pacing_deadline()) > now {
                continue;
            }
            self.sockets[me].on_delayed_ack(&mut self.core, me);
            match self.sockets[me].on_timer(&mut self.core, &mut self.paths, me) {
                Fired::Retransmission => self.on_retransmission_timeout(me),
                Fired::TimeWaitOver => self.close_subflow(me),
                Fired::Keepalive => {
                    if !self.sockets[me].on_keepalive(&mut self.core, me) {
                        self.lose_subflow(me, CloseReason::TimedOut);
                    }
                }
                Fired::Cork => self.uncork(me),
                Fired::Nothing | Fired::LossProbe | Fired::Reordering => {}
            }
            self.sockets[me].send_lost(&mut self.core, &mut self.paths[me], me);
        }
        self.on_connection_timers();
        self.push();
        self.housekeep();
        self.find_deadline();
    }

    fn on_retransmission_timeout(&mut self, me: usize) {
        if self.core.joins[me]
            .as_ref()
            .is_some_and(|join| join.unconfirmed)
            && self.sockets[me].state.synchronised()
        {
            return self.repeat_join_ack(me);
        }
        if !self.sockets[me].on_timeout(&mut self.core, &mut self.paths, me) {
            let reason = if self.sockets[me].state.synchronised() {
                CloseReason::TimedOut
            } else {
                CloseReason::Unreachable
            };
            return self.lose_subflow(me, reason);
        }
        if self.sockets[me].state.synchronised()
            && self.core.multipath.is_some()
            && self.core.config.profile.reinjects_on_timeout()
        {
            if !self.paths[me].potentially_failed {
                self.paths[me].potentially_failed = true;
                self.core.event(EventKind::PotentiallyFailed(me));
            }
            self.reinject(me);
        }
    }

    /// When [`Connection::on_time`] must be called next at the latest; [`NEVER`] when nothing is pending. Called too early it does nothing.
    pub fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// Takes the deadline of a subflow into account that may have come closer.
    pub(super) fn note_deadline(&mut self, me: usize) {
        self.deadline = self.deadline.min(self.sockets[me].next_deadline());
    }

    /// Finds the next deadline anew.
    pub(super) fn find_deadline(&mut self) {
        let sockets = self
            .sockets
            .iter()
            .map(Socket::next_deadline)
            .min()
            .unwrap_or(NEVER);
        self.deadline = sockets
            .min(self.pacing_deadline())
            .min(self.next_announcement())
            .min(self.path_manager_at)
            .min(self.send.deadline())
            .min(self.retransmission.deadline());
    }

    fn pacing_deadline(&self) -> Nanos {
        if !self.paced {
            return NEVER;
        }
        let sockets = self.sockets.iter().map(Socket::pacing_deadline);
        sockets.min().unwrap_or(NEVER)
    }

    /// Segments to be sent, in order.
    pub fn transmits(&mut self) -> &mut Vec<Transmit> {
        &mut self.core.out
    }

    /// What happened since this was last emptied.
    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.core.events
    }

    /// Tells each scheduler decision as an event.
    pub fn record_decisions(&mut self) {
        self.record_decisions = true;
    }

    /// The application writes `bytes`, as a blocking write does: what the send buffer has no room for waits until it has.
    pub fn write(&mut self, bytes: u64, now: Nanos) {
        self.core.now = now;
        if self.ended.is_some() || self.send.closing() {
            return;
        }
        self.send.write(bytes);
        if self.established {
            self.push();
            self.housekeep();
        }
    }

    /// Takes back what was written and has not reached the send buffer; returns how much.
    pub fn cancel_writes(&mut self) -> u64 {
        self.send.cancel()
    }

    /// Bytes that the application ever got into the send buffer.
    pub fn written(&self) -> u64 {
        self.send.written()
    }

    /// Gives up to `bytes` in-order bytes to the application, which reads in pieces.
    pub fn read(&mut self, bytes: u64, now: Nanos) -> u64 {
        self.core.now = now;
        let taken = bytes.min(self.core.receive.available());
        let mut left = taken;
        while left > 0 {
            let piece = left.min(PIECE);
            left -= piece;
            if self.core.receive.read(piece, now) {
                self.announce_window();
            }
        }
        taken
    }

    fn announce_window(&mut self) {
        if self.core.receive.by_subflow() {
            return self.announce_windows();
        }
        if let Some(me) = (0..self.sockets.len())
            .find(|&me| self.paths[me].established && self.sockets[me].state.receives())
        {
            self.sockets[me].send_ack(&mut self.core, me);
        }
    }

    /// Every subflow whose window opened far tells so (Linux `mptcp_cleanup_rbuf`).
    fn announce_windows(&mut self) {
        for me in 0..self.sockets.len() {
            let socket = &mut self.sockets[me];
            if self.paths[me].established
                && socket.state.receives()
                && self.core.receive.reopens(me, socket.received())
            {
                socket.send_ack(&mut self.core, me);
            }
        }
    }

    /// In-order bytes that wait to be read.
    pub fn available(&self) -> u64 {
        self.core.receive.available()
    }

    /// The peer closed its direction and everything was read.
    pub fn at_end(&self) -> bool {
        self.core.receive.at_end() && self.core.receive.available() == 0
    }

    /// Closes the sending direction after what was written.
    pub fn close(&mut self, now: Nanos) {
        self.core.now = now;
        self.send.close();
        if self.established {
            self.push();
            self.housekeep();
        }
    }

    /// Closes both directions at once: MP_FASTCLOSE and reset (RFC 8684 section 3.5).
    pub fn abort(&mut self, now: Nanos) {
        self.core.now = now;
        self.deadline = 0;
        if self.ended.is_none() {
            self.fast_close();
            self.end(CloseReason::Aborted);
        }
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        self.deadline = 0;
        if self.ended.is_none() {
            self.ended = Some(reason);
            if reason != CloseReason::Finished {
                let counter = if self.established {
                    Mib::TcpEstabResets
                } else {
                    Mib::TcpAttemptFails
                };
                self.core.counters.increment(counter);
                for me in 0..self.sockets.len() {
                    self.close_subflow(me);
                }
                self.send.stop();
                self.core.blocking.end(self.core.now);
                self.unechoed.clear();
            }
            self.core.event(EventKind::ConnectionClosed(reason));
        }
    }

    /// Ends the subflow's life on this side.
    pub(super) fn close_subflow(&mut self, me: usize) {
        self.deadline = 0;
        let waiting = self.sockets[me].out_of_order_bytes();
        if waiting > 0 {
            self.core.receive.held -= waiting;
            let now = self.core.now;
            (self.core.blocking).subflow_advances(me, 0, Cause::Missing, now);
        }
        self.sockets[me].abandon(&mut self.paths[me]);
        if self.subflows[me].closed_at.is_none() {
            self.subflows[me].closed_at = Some(self.core.now);
            self.core.event(EventKind::SubflowClosed(me));
        }
    }

    /// A subflow died: its data goes to the others, or the connection with it (RFC 8684 section 3.6).
    pub(super) fn lose_subflow(&mut self, me: usize, reason: CloseReason) {
        self.reinject(me);
        self.close_subflow(me);
        let alive = self
            .sockets
            .iter()
            .any(|socket| socket.state != State::Closed);
        if !alive {
            let complete = self.send.closed() && self.core.receive.at_end();
            self.end(if complete {
                CloseReason::Finished
            } else {
                reason
            });
        }
    }

    /// Follows up on what the last call changed: closing, the end of the connection.
    pub(super) fn housekeep(&mut self) {
        if self.ended.is_some() || !self.closing() {
            return;
        }
        self.step_closing();
        self.deadline = 0;
        let over = |state: State| matches!(state, State::Closed | State::TimeWait);
        if self.established && self.send.closed() && self.core.receive.at_end() {
            for me in 0..self.sockets.len() {
                match self.sockets[me].state {
                    State::Closed if self.subflows[me].closed_at.is_none() => {
                        self.close_subflow(me);
                    }
                    State::FinWait2 => self.sockets[me].limit_fin_wait(&self.core),
                    _ => {}
                }
            }
            if self.sockets.iter().all(|socket| over(socket.state)) {
                self.end(CloseReason::Finished);
            }
        }
    }

    pub fn established(&self) -> bool {
        self.established
    }

    /// How the connection ended, if it did.
    pub fn ended(&self) -> Option<CloseReason> {
        self.ended
    }

    /// Whether it is (still) MPTCP.
    pub fn multipath(&self) -> bool {
        self.core.multipath.is_some()
    }

    /// The token by which the peer's MP_JOINs name this connection.
    pub fn token(&self) -> Option<u32> {
        self.core
            .multipath
            .as_ref()
            .map(|multipath| multipath.local_token)
    }

    pub fn subflows(&self) -> &[SubflowInfo] {
        &self.subflows
    }

    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    pub fn sockets(&self) -> &[Socket] {
        &self.sockets
    }

    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Bytes written by the application and not yet acknowledged at connection level; and those never sent.
    pub fn send_queue(&self) -> (u64, u64) {
        (self.send.unacknowledged(), self.send.unsent())
    }

    /// Bytes that wait for others at connection level.
    pub fn reassembly_bytes(&self) -> u64 {
        self.core.receive.reassembly_bytes()
    }

    /// How long received data waited up to `now`, and what for.
    pub fn blocked(&self, now: Nanos) -> Vec<Blocked> {
        self.core.blocking.report(now)
    }

    /// Sizes of the send and the receive buffer.
    pub fn buffers(&self) -> (u64, u64) {
        (self.send.buffer(), self.core.receive.buffer())
    }

    /// The receive window that this side would offer now.
    pub fn receive_window(&mut self) -> u64 {
        if self.core.receive.by_subflow() {
            return self.core.receive.offered();
        }
        self.core.receive.window(0, 0)
    }

    /// The 64-bit data sequence number of the stream offset `offset` in the direction that this side sends.
    pub fn data_sequence(&self, offset: u64) -> Option<u64> {
        self.core
            .multipath
            .as_ref()
            .map(|multipath| multipath.local_idsn.wrapping_add(1).wrapping_add(offset))
    }
}

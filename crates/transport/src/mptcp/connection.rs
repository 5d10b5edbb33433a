//! A connection: its subflows, its data stream, and the calls by which its owner drives it.
//!
//! The owner passes these in:
//!
//! - segments ([`Connection::on_segment`]) and the time ([`Connection::on_time`])
//! - the application's calls ([`Connection::write`], [`Connection::read`], [`Connection::close`])
//!
//! After each call it takes the output ([`Connection::transmits`]), the events ([`Connection::events`]), and the time
//! of the next call ([`Connection::next_deadline`]).

use std::net::SocketAddr;

use polypath_wire::mptcp::{MpCapable, MptcpOption};
use polypath_wire::tcp::Segment;
use rand::RngCore;
use rand_pcg::Pcg64Mcg;

use super::announcement::Announcements;
use super::data_timer::DataTimer;
use super::send::DataSender;
use super::session::{Join, Multipath, Session, SubflowOptions};
use super::subflow::Subflow;
use crate::accept::Accept;
use crate::algorithms::Algorithms;
use crate::host::{Egress, Ways};
use crate::path::{Member, Path};
use crate::policy::{Addresses, Policy};
use crate::scheduler::Scheduler;
use crate::stream::Blocked;
use crate::tcp::context::{Context, Shared};
use crate::tcp::{Reckoning, Socket, State};
use crate::{
    CloseReason, Codepoint, Config, Counters, Event, Mib, Nanos, Purpose, Transmit, Tuple,
};
use polypath_settings::RegistryError;

/// One end of a TCP or MPTCP connection.
pub struct Connection {
    pub(super) shared: Shared,
    pub(super) session: Session,
    pub(super) subflows: Vec<Subflow>,
    /// What schedulers and coupled congestion controls see of each subflow, side by side.
    pub(super) paths: Vec<Path>,
    pub(super) send: DataSender,
    pub(super) data_timer: DataTimer,
    pub(super) policy: Policy,
    pub(super) ways: Ways,
    pub(super) announcements: Announcements,
    pub(super) random: Pcg64Mcg,
    algorithms: Algorithms,
    pub(super) established: bool,
    pub(super) ended: Option<CloseReason>,
    /// Every subflow is gone: until when another may join, and why the connection ends otherwise.
    pub(super) orphaned: Option<(Nanos, CloseReason)>,
    pub(super) record_decisions: bool,
    /// Some subflow has a congestion controller that sets a rate.
    pub(super) paced: bool,
    /// Data may wait in the subflows' own queues, or the profile's writer and timer follow other rules.
    pub(super) tends_queues: bool,
    /// Some subflow's route was replaced.
    pub(super) rerouted: bool,
    /// Readers and writers run after all packets of an instant.
    pub(super) processes_run_last: bool,
    /// No deadline lies before this.
    pub(super) deadline: Nanos,
}

/// Entries that a connection keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub subflows: usize,
    /// In the queues of its sockets.
    pub segments: usize,
    /// Of more than the segment that they came with.
    pub mappings: usize,
    /// Out of order at connection level.
    pub ranges: usize,
    /// Of the peer, announced to it, and with an echo pending.
    pub addresses: usize,
}

/// Whether subflows take more than their windows admit: with a scheduler that fills queues, and in upstream MPTCP with any, since there a
/// data fragment goes to a subflow as a whole.
fn fills_queues(config: &Config, scheduler: &dyn Scheduler) -> bool {
    scheduler.fills_queues() || (config.multipath && config.profile.buffers_by_subflow())
}

impl Connection {
    fn new(host: Accept, tuple: Tuple, client: bool, now: Nanos) -> Result<Self, RegistryError> {
        let mut local = host.joinable_addresses(tuple.local.ip());
        let Accept {
            config,
            algorithms,
            addresses: _,
            mtus,
            ports,
            black_holes,
            mut random,
            sessions: _,
            retained: _,
            isn: _,
        } = host;
        let multipath = config
            .multipath
            .then(|| Multipath::new(&config, random.next_u64()));
        let session = Session {
            multipath,
            infinite: None,
            peer_idsn: None,
            client,
            black_holes,
            withheld: false,
        };
        let scheduler = algorithms.scheduler(&config)?;
        let rescuer = scheduler.rescuer();
        let path_manager = algorithms.path_manager(&config)?;
        for own in &mut local {
            own.backup &= path_manager.ranks(own.address, None);
        }
        let mut connection = Self {
            shared: Shared::new(config.clone(), now),
            session,
            paths: Vec::new(),
            subflows: Vec::new(),
            send: DataSender::new(&config, fills_queues(&config, &*scheduler)),
            data_timer: DataTimer::new(&config),
            policy: Policy::new(
                scheduler,
                rescuer,
                path_manager,
                Addresses::new(local, tuple.remote.ip(), Egress::new(mtus, ports)),
            ),
            ways: Ways::default(),
            announcements: Announcements::default(),
            random,
            algorithms,
            established: false,
            ended: None,
            orphaned: None,
            record_decisions: false,
            paced: false,
            tends_queues: false,
            rerouted: false,
            processes_run_last: config.profile.processes_run_last(),
            deadline: 0,
        };
        connection.tends_queues = connection.send.fills_queues() || connection.data_timer.upstream;
        connection.add_subflow(tuple, (0, 0), None)?;
        Ok(connection)
    }

    /// Opens a connection from `tuple.local` to `tuple.remote`.
    pub fn connect(host: Accept, tuple: Tuple, now: Nanos) -> Result<Self, RegistryError> {
        let mut connection = Self::new(host, tuple, true, now)?;
        connection.shared.counters.increment(Mib::TcpActiveOpens);
        if connection.session.shuns_capable(&connection.shared) {
            connection
                .shared
                .counters
                .increment(Mib::MPTcpExtMPCapableSYNTXDisabled);
            connection.fall_back("SYNs with MP_CAPABLE were lost before");
        } else if connection.session.multipath.is_some() {
            connection
                .shared
                .counters
                .increment(Mib::MPTcpExtMPCapableSYNTX);
        }
        connection.with(0, |socket, cx| socket.connect(cx));
        Ok(connection)
    }

    /// Answers a SYN without MP_JOIN.
    pub fn accept(
        host: Accept,
        tuple: Tuple,
        (syn, field): (&Segment, Codepoint),
        now: Nanos,
    ) -> Result<Self, RegistryError> {
        let isn = host.isn;
        let mut connection = Self::new(host, tuple, false, now)?;
        if let Some(isn) = isn {
            connection.subflows[0].socket.transfer.flight.begin_at(isn);
        }
        connection.shared.counters.increment(Mib::TcpPassiveOpens);
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
                    .shared
                    .counters
                    .increment(Mib::MPTcpExtMPCapableSYNRX);
                if let Some(multipath) = &mut connection.session.multipath {
                    multipath.checksum |= checksum_required;
                    multipath.deny_join_initial = deny_join_initial;
                }
            }
            None => connection.session.multipath = None,
        }
        connection.with(0, |socket, cx| socket.accept(cx, syn, field));
        Ok(connection)
    }

    /// Learns by which of the host's addresses it reaches those of the peer.
    pub fn learn_ways(&mut self, ways: Ways) {
        self.ways = ways;
    }

    pub(super) fn add_subflow(
        &mut self,
        tuple: Tuple,
        ids: (u8, u8),
        join: Option<Join>,
    ) -> Result<usize, RegistryError> {
        let config = &self.shared.config;
        let local = tuple.local.ip();
        let mtu = self.policy.addresses().egress().mtu(local, config.mtu);
        let mss = crate::tcp::announced_mss(mtu, local.is_ipv6());
        let fills_queues = fills_queues(config, self.policy.scheduler());
        let reckoning = if fills_queues && config.multipath {
            Reckoning::RateAndMemory
        } else if fills_queues || config.profile.writes_in_bursts() {
            Reckoning::Rate
        } else {
            Reckoning::Nothing
        };
        let isn = self.random.next_u32();
        let congestion = self.algorithms.congestion(config)?;
        let mut socket = Socket::new(config, mss, isn, congestion, reckoning);
        socket.mss.prepare_search(config, mtu, local.is_ipv6());
        if let Some(announced) = config.limits.announced_mss {
            socket.mss.announce(announced);
        }
        self.paced |= socket.transfer.controller.paces();
        self.tends_queues |= self.paced;
        self.paths.push(Path {
            buffer: config.send_buffer.default,
            least_burst: config.limits.least_burst.max(1),
            ..Path::new(mss.into(), config.initial_window)
        });
        self.subflows.push(Subflow::new(tuple, ids, socket, join));
        Ok(self.subflows.len() - 1)
    }

    /// Calls a subflow's socket with what it needs of the connection.
    #[inline(always)]
    pub(super) fn with<T>(
        &mut self,
        subflow: usize,
        call: impl FnOnce(&mut Socket, &mut Context<SubflowOptions>) -> T,
    ) -> T {
        let Subflow { socket, join, .. } = &mut self.subflows[subflow];
        let mut context = Context {
            shared: &mut self.shared,
            path: Member {
                paths: &mut self.paths,
                index: subflow,
            },
            options: SubflowOptions {
                session: &self.session,
                join: join.as_deref(),
            },
        };
        call(socket, &mut context)
    }

    /// Every subflow's socket.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.subflows.iter().map(Subflow::socket)
    }

    /// Whether a SYN from the addresses and ports of a subflow begins a new connection, because this one is over or in TIME-WAIT and older.
    pub fn gives_way(&self, subflow: usize, syn: &Segment) -> bool {
        self.subflows[subflow].socket.gives_way(syn)
    }

    /// Ends the TIME-WAIT of a subflow, if it is there, for a connection of the same addresses and ports. Gives where that one's sequence
    /// numbers are to begin (RFC 6191).
    pub fn end_time_wait(&mut self, subflow: usize, now: Nanos) -> Option<u32> {
        let socket = &self.subflows[subflow].socket;
        let isn = (socket.state() == State::TimeWait).then(|| socket.transfer.successor_isn())?;
        self.shared.now = now;
        self.close_subflow(subflow);
        Some(isn)
    }

    pub fn has_transmits(&self) -> bool {
        !self.shared.out.is_empty()
    }

    /// Segments to be sent, in order.
    pub fn transmits(&mut self) -> &mut Vec<Transmit> {
        if self.announcements.any_unsent() {
            self.attach_unsent();
        }
        if self.rerouted {
            for transmit in &self.shared.out {
                self.subflows[transmit.subflow].socket.mss.find_route();
            }
        }
        &mut self.shared.out
    }

    /// What happened since this was last emptied.
    pub fn events(&mut self) -> &mut Vec<Event> {
        &mut self.shared.events
    }

    /// Tells each scheduler decision as an event.
    pub fn record_decisions(&mut self) {
        self.record_decisions = true;
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
        self.session.multipath.is_some()
    }

    /// Whether it takes joins at an address and port where no server listens.
    pub fn listens(&self, at: SocketAddr) -> bool {
        self.policy.manager().path_manager().listens(at)
    }

    /// The token by which the peer's MP_JOINs name this connection.
    pub fn token(&self) -> Option<u32> {
        self.session
            .multipath
            .as_ref()
            .map(|multipath| multipath.local_token)
    }

    /// The ECN field of a segment that is sent.
    #[inline]
    pub fn ecn_field(&self, subflow: usize, segment: &Segment, purpose: Purpose) -> Codepoint {
        self.subflows[subflow].socket.ecn_field(segment, purpose)
    }

    pub fn subflows(&self) -> &[Subflow] {
        &self.subflows
    }

    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Bytes written by the application and not yet acknowledged at connection level; and those never sent.
    pub fn send_queue(&self) -> (u64, u64) {
        (self.send.unacknowledged(), self.send.unsent())
    }

    /// What it keeps beside the bytes that its buffers bound, in entries.
    pub fn kept(&self) -> Kept {
        let mappings = self.subflows.iter().map(|it| it.mappings().len());
        Kept {
            subflows: self.subflows.len(),
            segments: self.sockets().map(Socket::entries).sum(),
            mappings: mappings.sum(),
            ranges: self.shared.receive.ranges(),
            addresses: self.policy.addresses().remote().len() + self.announcements.len(),
        }
    }

    /// Bytes that wait for others at connection level.
    pub fn reassembly_bytes(&self) -> u64 {
        self.shared.receive.reassembly_bytes()
    }

    /// How long received data waited up to `now`, and what for.
    pub fn blocked(&self, now: Nanos) -> Vec<Blocked> {
        self.shared.blocking.report(now)
    }

    /// Sizes of the send and the receive buffer.
    pub fn buffers(&self) -> (u64, u64) {
        (self.send.buffer(), self.shared.receive.buffer())
    }

    /// The receive window that this side would offer now.
    pub fn receive_window(&self) -> u64 {
        self.shared.receive.shown_window()
    }

    /// The 64-bit data sequence number of the stream offset `offset` in the direction that this side sends.
    pub fn data_sequence(&self, offset: u64) -> Option<u64> {
        self.session
            .multipath
            .as_ref()
            .map(|multipath| multipath.local_idsn.wrapping_add(1).wrapping_add(offset))
    }

    /// The same in the direction that this side receives.
    pub fn peer_data_sequence(&self, offset: u64) -> Option<u64> {
        self.session
            .multipath
            .as_ref()
            .map(|multipath| multipath.remote_idsn.wrapping_add(1).wrapping_add(offset))
    }
}

/// What becomes of a connection from an address whose interface is down: there is no route, so that no SYN leaves and none is repeated (Linux
/// `tcp_v4_connect`, `tcp_v6_connect`). MP_CAPABLE was counted before (`mptcp_connect`).
pub fn connect_without_route(
    host: Accept,
    tuple: Tuple,
    now: Nanos,
) -> Result<Connection, RegistryError> {
    let mut connection = Connection::new(host, tuple, true, now)?;
    if connection.session.multipath.is_some() {
        let counters = &mut connection.shared.counters;
        counters.increment(Mib::MPTcpExtMPCapableSYNTX);
    }
    connection.end(CloseReason::Unreachable);
    Ok(connection)
}

//! The host under test: its clock, its connections, and the packets between them and packetdrill.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use polypath_transport::tcp::refusal;
use polypath_transport::{
    Accept, Algorithms, Arrival, BlackHoles, CloseReason, Codepoint, Connection, EventKind, Limit,
    MICROSECOND, NEVER, Nanos, Ports, Retained, SECOND, Segment, Sessions, Tuple,
};
use polypath_wire::mptcp::{MpJoin, MptcpOption, ResetReason};
use polypath_wire::tcp::Flags;
use rand_pcg::Pcg64Mcg;

use crate::Errno;
use crate::call::Waiting;
use crate::descriptor::{Descriptor, Options, Role, Socket};
use crate::epoll::Epoll;
use crate::host::Host;
use crate::packet::{self, Builder, Incoming};

/// Descriptors begin here, apart from those of the process.
pub(crate) const FIRST_DESCRIPTOR: i32 = 1 << 20;
/// The clock begins here, so that nothing lies before its origin.
const BEGIN: Nanos = SECOND;
/// What is awaited longer never comes.
const PATIENCE: Nanos = 300 * SECOND;

/// A packet that left, and when.
pub(crate) struct Departure {
    pub at: Nanos,
    pub bytes: Vec<u8>,
}

/// A connection with what its socket keeps of it.
pub(crate) struct Endpoint {
    pub connection: Connection,
    /// Of the route to its peer, as the host has it.
    mtu: u32,
    /// The listener that has not handed it out yet.
    listener: Option<i32>,
    /// Its socket was closed.
    orphan: bool,
    /// It exists no more, whatever its connection says.
    gone: bool,
    pub shut_read: bool,
    pub shut_write: bool,
    /// What the next call is told (`sk_err`).
    pub error: Option<Errno>,
    /// How often readers and writers were woken, and what was there then.
    pub wakes: (u64, u64),
    known: (u64, bool, bool),
    /// What limits sending, since when, and for how long anything, the peer's window and the send buffer did.
    limit: (Limit, Nanos),
    pub limited: [Nanos; 3],
}

pub(crate) struct Machine {
    pub now: Nanos,
    pub host: Host,
    descriptors: BTreeMap<i32, Descriptor>,
    next_descriptor: i32,
    endpoints: Vec<Endpoint>,
    packets: VecDeque<Departure>,
    pub waiting: Option<Waiting>,
    builder: Builder,
    ports: Ports,
    black_holes: BlackHoles,
    made: u64,
}

impl Machine {
    pub fn new(host: Host) -> Self {
        Self {
            now: BEGIN,
            host,
            descriptors: BTreeMap::new(),
            next_descriptor: FIRST_DESCRIPTOR,
            endpoints: Vec::new(),
            packets: VecDeque::new(),
            waiting: None,
            builder: Builder::default(),
            ports: Ports::default(),
            black_holes: BlackHoles::default(),
            made: 0,
        }
    }

    // Descriptors.

    fn add(&mut self, descriptor: Descriptor) -> i32 {
        let fd = self.next_descriptor;
        self.next_descriptor += 1;
        self.descriptors.insert(fd, descriptor);
        fd
    }

    pub fn open(&mut self, ipv6: bool, multipath: bool, blocking: bool) -> i32 {
        self.add(Descriptor::Socket(Socket {
            ipv6,
            multipath,
            blocking,
            bound: None,
            role: Role::Fresh,
            options: Options::default(),
        }))
    }

    pub fn open_epoll(&mut self) -> i32 {
        self.add(Descriptor::Epoll(Epoll::default()))
    }

    pub fn socket(&mut self, fd: i32) -> Result<&mut Socket, Errno> {
        match self.descriptors.get_mut(&fd) {
            Some(Descriptor::Socket(socket)) => Ok(socket),
            Some(Descriptor::Epoll(_)) => Err(libc::ENOTSOCK),
            None => Err(libc::EBADF),
        }
    }

    pub fn epoll(&mut self, fd: i32) -> Result<&mut Epoll, Errno> {
        match self.descriptors.get_mut(&fd) {
            Some(Descriptor::Epoll(epoll)) => Ok(epoll),
            Some(Descriptor::Socket(_)) => Err(libc::EINVAL),
            None => Err(libc::EBADF),
        }
    }

    /// The connection of a socket.
    pub fn endpoint(&mut self, fd: i32) -> Result<&mut Endpoint, Errno> {
        let index = self.socket(fd)?.connection().ok_or(libc::ENOTCONN)?;
        Ok(&mut self.endpoints[index])
    }

    pub fn bind(&mut self, fd: i32, address: SocketAddr) -> Result<(), Errno> {
        self.socket(fd)?.bound = Some(address);
        Ok(())
    }

    pub fn listen(&mut self, fd: i32) -> Result<(), Errno> {
        let port = self.ports.next();
        let socket = self.socket(fd)?;
        if socket.bound.is_none() {
            socket.bound = Some((Ipv4Addr::UNSPECIFIED, port).into());
        }
        match socket.role {
            Role::Fresh => socket.role = Role::Listening(VecDeque::new()),
            Role::Listening(_) => {}
            Role::Connected(_) => return Err(libc::EINVAL),
        }
        Ok(())
    }

    /// Sends the SYN.
    pub fn connect(&mut self, fd: i32, remote: SocketAddr) -> Result<(), Errno> {
        let ports = self.ports.clone();
        let socket = self.socket(fd)?;
        match socket.role {
            Role::Fresh => {}
            Role::Listening(_) => return Err(libc::EISCONN),
            Role::Connected(index) => {
                let endpoint = &mut self.endpoints[index];
                return Err(match endpoint.error.take() {
                    Some(error) => error,
                    None if endpoint.connection.established() => libc::EISCONN,
                    None => libc::EALREADY,
                });
            }
        }
        let bound = socket.bound;
        let (multipath, options) = (socket.multipath, socket.options);
        let address = match bound.map(|it| it.ip()) {
            Some(ip) if !ip.is_unspecified() => ip,
            _ => *self.host.addresses.first().ok_or(libc::EADDRNOTAVAIL)?,
        };
        let port = bound.map(|it| it.port()).filter(|port| *port != 0);
        let tuple = Tuple {
            local: SocketAddr::new(address, port.unwrap_or_else(|| ports.next())),
            remote,
        };
        let accept = self.accept((address, remote.ip()), multipath, options);
        let connection = Connection::connect(accept, tuple, self.now).map_err(|_| libc::EINVAL)?;
        let index = self.begin(connection, None);
        self.socket(fd)?.role = Role::Connected(index);
        self.settle();
        Ok(())
    }

    /// What a new connection from one address to another takes from the host.
    fn accept(
        &mut self,
        (first, remote): (IpAddr, IpAddr),
        multipath: bool,
        options: Options,
    ) -> Accept {
        self.made += 1;
        let mut config = self.host.config(multipath && self.host.multipath());
        self.host.apply_route(remote, &mut config);
        options.apply(&mut config);
        if let Some(bytes) = options.receive_buffer {
            config.receive_buffer.default = bytes;
            config.receive_buffer.maximum = bytes;
            config.autotuning = false;
        }
        Accept {
            config: Arc::new(config),
            algorithms: Algorithms::default(),
            addresses: self.host.endpoints(first),
            mtus: Vec::new(),
            ports: self.ports.clone(),
            black_holes: self.black_holes.clone(),
            random: Pcg64Mcg::new(u128::from(self.made) << 32 | 1),
            sessions: Sessions::default(),
            retained: Retained::default(),
            isn: None,
        }
    }

    /// Commands were run: routes of connections may be others.
    pub fn look_at_routes(&mut self) {
        for endpoint in &mut self.endpoints {
            let remote = endpoint.connection.subflows()[0].tuple.remote.ip();
            let mtu = self.host.mtu_to(remote);
            if std::mem::replace(&mut endpoint.mtu, mtu) != mtu {
                endpoint.connection.reroute(0, mtu);
            }
        }
    }

    fn begin(&mut self, connection: Connection, listener: Option<i32>) -> usize {
        let remote = connection.subflows()[0].tuple.remote.ip();
        self.endpoints.push(Endpoint {
            connection,
            mtu: self.host.mtu_to(remote),
            listener,
            orphan: false,
            gone: false,
            shut_read: false,
            shut_write: false,
            error: None,
            wakes: (0, 0),
            known: (0, false, false),
            limit: (Limit::Idle, self.now),
            limited: [0; 3],
        });
        self.endpoints.len() - 1
    }

    /// Hands out a connection that was established at a listener.
    pub fn hand_out(&mut self, fd: i32) -> Result<Option<(i32, SocketAddr)>, Errno> {
        let socket = self.socket(fd)?;
        let (ipv6, multipath, options) = (socket.ipv6, socket.multipath, socket.options);
        let Role::Listening(queue) = &mut socket.role else {
            return Err(libc::EINVAL);
        };
        let Some(index) = queue.pop_front() else {
            return Ok(None);
        };
        self.endpoints[index].listener = None;
        let tuple = self.endpoints[index].connection.subflows()[0].tuple;
        let fd = self.add(Descriptor::Socket(Socket {
            ipv6,
            multipath,
            blocking: true,
            bound: Some(tuple.local),
            role: Role::Connected(index),
            options,
        }));
        Ok(Some((fd, tuple.remote)))
    }

    pub fn close(&mut self, fd: i32) -> Result<(), Errno> {
        match self.descriptors.remove(&fd) {
            None => return Err(libc::EBADF),
            Some(Descriptor::Epoll(_)) => {}
            Some(Descriptor::Socket(socket)) => {
                for descriptor in self.descriptors.values_mut() {
                    if let Descriptor::Epoll(epoll) = descriptor {
                        epoll.forget(fd);
                    }
                }
                match socket.role {
                    Role::Fresh => {}
                    Role::Listening(queue) => {
                        queue.into_iter().for_each(|index| self.leave(index, true))
                    }
                    Role::Connected(index) => self.leave(index, socket.options.aborts),
                }
            }
        }
        self.settle();
        Ok(())
    }

    /// A connection's socket is closed: in order, or by reset where data was left unread (RFC 2525 section 2.17) or it is asked for.
    fn leave(&mut self, index: usize, aborts: bool) {
        let now = self.now;
        let endpoint = &mut self.endpoints[index];
        endpoint.orphan = true;
        let connection = &mut endpoint.connection;
        if aborts || connection.available() > 0 || !connection.established() {
            connection.abort(now);
        } else {
            connection.close(now);
        }
    }

    /// Ends one direction, or both.
    pub fn shut(&mut self, fd: i32, read: bool, write: bool) -> Result<(), Errno> {
        let now = self.now;
        let endpoint = self.endpoint(fd)?;
        if endpoint.connection.ended().is_some() {
            return Err(libc::ENOTCONN);
        }
        endpoint.shut_read |= read;
        if write {
            endpoint.shut_write = true;
            endpoint.connection.close(now);
        }
        self.settle();
        Ok(())
    }

    // Packets.

    /// Takes a packet of packetdrill's.
    pub fn take(&mut self, bytes: &[u8]) {
        match packet::parse(bytes) {
            Some(Incoming::Segment {
                tuple,
                segment,
                ecn,
                corrupted,
            }) => {
                let arrival = Arrival {
                    ecn,
                    corrupted,
                    ..Arrival::default()
                };
                self.on_segment(tuple, segment, arrival);
            }
            Some(Incoming::TooBig { tuple, seq, mtu }) => {
                if let Some((index, me)) = self.find(tuple)
                    && !self.fixes_mtu(index)
                    && !self.host.mtu_locked(tuple.remote.ip())
                {
                    let now = self.now;
                    self.endpoints[index]
                        .connection
                        .on_packet_too_big(me, seq, mtu, now);
                }
            }
            None => {}
        }
        self.settle();
    }

    /// The connection and subflow between two addresses, the newest first.
    fn find(&self, tuple: Tuple) -> Option<(usize, usize)> {
        self.endpoints
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, endpoint)| {
                let subflows = endpoint.connection.subflows();
                if endpoint.gone {
                    return None;
                }
                let me = subflows
                    .iter()
                    .rposition(|subflow| subflow.tuple == tuple)?;
                Some((index, me))
            })
    }

    /// Whether a connection's socket hears no reports of a smaller MTU.
    fn fixes_mtu(&self, index: usize) -> bool {
        let fixes = |it: &Descriptor| matches!(it, Descriptor::Socket(it) if it.connection() == Some(index) && it.options.fixed_mtu);
        self.descriptors.values().any(fixes)
    }

    fn on_segment(&mut self, tuple: Tuple, segment: Segment, arrival: Arrival) {
        let now = self.now;
        let opening = segment.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN;
        let mut isn = None;
        if let Some((index, me)) = self.find(tuple) {
            let connection = &mut self.endpoints[index].connection;
            if !opening || !connection.gives_way(me, &segment) {
                return self.on_known(index, me, segment, arrival);
            }
            isn = connection.end_time_wait(me, now);
        }
        if arrival.corrupted {
            return;
        }
        let token = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
            _ => None,
        });
        let listener = self.listener(tuple.local);
        if !opening || listener.is_none() {
            if let Some(reset) = refusal(&segment) {
                self.emit(tuple, &reset, None, Codepoint::NotEct);
            }
        } else if let Some(token) = token {
            let named = |it: &&mut Endpoint| {
                it.connection.token() == Some(token) && it.connection.accepts_joins()
            };
            if let Some(endpoint) = self.endpoints.iter_mut().find(named) {
                let joined = endpoint
                    .connection
                    .accept_join(tuple, (&segment, arrival.ecn), now);
                debug_assert!(joined.is_ok());
            } else if let Some(mut reset) = refusal(&segment) {
                let reason = ResetReason::MptcpSpecific as u8;
                reset
                    .rare_mut()
                    .mptcp
                    .push(MptcpOption::TcpRst { flags: 0, reason });
                self.emit(tuple, &reset, None, Codepoint::NotEct);
            }
        } else if let Some((fd, multipath, options)) = listener {
            let mut accept = Accept {
                isn,
                ..self.accept((tuple.local.ip(), tuple.remote.ip()), multipath, options)
            };
            Arc::make_mut(&mut accept.config).ecn = self.host.accepts_ecn();
            if let Ok(connection) = Connection::accept(accept, tuple, (&segment, arrival.ecn), now)
            {
                self.begin(connection, Some(fd));
            }
        }
    }

    fn listener(&self, address: SocketAddr) -> Option<(i32, bool, Options)> {
        self.descriptors
            .iter()
            .find_map(|(fd, descriptor)| match descriptor {
                Descriptor::Socket(socket) if socket.listens(address) => {
                    Some((*fd, socket.multipath, socket.options))
                }
                _ => None,
            })
    }

    fn on_known(&mut self, index: usize, me: usize, mut segment: Segment, arrival: Arrival) {
        let now = self.now;
        let endpoint = &mut self.endpoints[index];
        let connection = &mut endpoint.connection;
        segment.payload.offset = connection.locate(me, &segment).unwrap_or(0);
        if endpoint.orphan
            && segment.payload.len > 0
            && !connection.multipath()
            && brings_new(connection, &segment)
        {
            // Linux `tcp_rcv_state_process`, TCPABORTONDATA.
            let tuple = connection.subflows()[me].tuple;
            endpoint.gone = true;
            if let Some(reset) = refusal(&segment) {
                self.emit(tuple, &reset, None, Codepoint::NotEct);
            }
            return;
        }
        connection.take_in(me, &segment, arrival, now);
        connection.run_processes(now);
    }

    fn emit(&mut self, tuple: Tuple, segment: &Segment, dsn: Option<u64>, ecn: Codepoint) {
        if let Some(bytes) = self.builder.build(tuple, segment, dsn, ecn) {
            // Not earlier than what packetdrill takes for the end of the call: it asks for the time then, which goes on by one.
            let at = self.now + MICROSECOND;
            self.packets.push_back(Departure { at, bytes });
        }
    }

    // Time.

    /// When something happens by itself.
    fn next_time(&self) -> Nanos {
        let deadlines = self
            .endpoints
            .iter()
            .filter(|it| !it.gone)
            .map(|it| it.connection.next_deadline());
        let waiting = self.waiting.as_ref().map_or(NEVER, Waiting::deadline);
        deadlines.min().unwrap_or(NEVER).min(waiting)
    }

    /// Lets time pass up to `until`.
    pub fn advance(&mut self, until: Nanos) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Lets time pass up to the next event. False: there is none up to `until`.
    pub fn step(&mut self, until: Nanos) -> bool {
        let next = self.next_time().max(self.now);
        if next > until {
            return false;
        }
        self.now = next;
        for endpoint in &mut self.endpoints {
            if !endpoint.gone && endpoint.connection.next_deadline() <= next {
                endpoint.connection.on_time(next);
            }
        }
        self.settle();
        true
    }

    /// The next packet that leaves; time passes until one does. Nothing: none would.
    pub fn next_packet(&mut self) -> Option<Departure> {
        let limit = self.now + PATIENCE;
        loop {
            if let Some(packet) = self.packets.pop_front() {
                return Some(packet);
            }
            if !self.step(limit) {
                return None;
            }
        }
    }

    /// After anything happened: sends, tells, and lets the call go on that waits.
    pub fn settle(&mut self) {
        self.follow_up();
        if let Some(mut waiting) = self.waiting.take() {
            waiting.go_on(self);
            self.waiting = Some(waiting);
            self.follow_up();
        }
    }

    /// After a call has read: the window's announcement leaves.
    pub fn settle_after_read(&mut self) {
        self.follow_up();
    }

    fn follow_up(&mut self) {
        for index in 0..self.endpoints.len() {
            self.transmit(index);
            let events = std::mem::take(self.endpoints[index].connection.events());
            for event in events {
                self.on_event(index, event.kind);
            }
            self.endpoints[index].count_wakes();
            self.endpoints[index].note_limit(self.now);
        }
    }

    fn transmit(&mut self, index: usize) {
        let connection = &mut self.endpoints[index].connection;
        for transmit in std::mem::take(connection.transmits()) {
            let connection = &self.endpoints[index].connection;
            let subflow = &connection.subflows()[transmit.subflow];
            let segment = &transmit.segment;
            let dsn = connection.data_sequence(segment.payload.offset);
            let ecn = connection.ecn_field(transmit.subflow, segment, transmit.purpose);
            self.emit(subflow.tuple, segment, dsn, ecn);
        }
    }

    fn on_event(&mut self, index: usize, event: EventKind) {
        match event {
            EventKind::ConnectionEstablished => {
                let fd = self.endpoints[index].listener;
                if let Some(Descriptor::Socket(listener)) =
                    fd.and_then(|fd| self.descriptors.get_mut(&fd))
                    && let Role::Listening(queue) = &mut listener.role
                {
                    queue.push_back(index);
                }
            }
            EventKind::ConnectionClosed(reason) => self.endpoints[index].fail(reason),
            _ => {}
        }
    }
}

impl Endpoint {
    /// The connection is over: what the next call is told (Linux `tcp_reset`, `tcp_write_err`).
    fn fail(&mut self, reason: CloseReason) {
        self.error = match reason {
            CloseReason::Finished | CloseReason::Aborted => None,
            CloseReason::Reset if !self.connection.established() => Some(libc::ECONNREFUSED),
            CloseReason::Reset if self.connection.at_end() => Some(libc::EPIPE),
            CloseReason::Reset => Some(libc::ECONNRESET),
            CloseReason::TimedOut | CloseReason::Unreachable => Some(libc::ETIMEDOUT),
        };
    }

    /// Readers wake when data or an end came, writers when there is room again.
    fn count_wakes(&mut self) {
        let connection = &self.connection;
        let over = connection.at_end() || connection.ended().is_some();
        let now = (connection.available(), over, connection.writable());
        self.wakes.0 += u64::from(now.0 > self.known.0 || now.1 && !self.known.1);
        self.wakes.1 += u64::from(now.2 && !self.known.2 || now.1 && !self.known.1);
        self.known = now;
    }

    /// Counts the time since the last event to what limited sending then (`tcp_get_info_chrono_stats`); it changes only at events.
    pub fn note_limit(&mut self, now: Nanos) {
        let (limit, since) = std::mem::replace(&mut self.limit, (self.connection.limit(), now));
        let passed = now.saturating_sub(since);
        self.limited[0] += if limit == Limit::Idle { 0 } else { passed };
        match limit {
            Limit::ReceiveWindow => self.limited[1] += passed,
            Limit::SendBuffer => self.limited[2] += passed,
            Limit::Idle | Limit::Busy => {}
        }
    }

    pub fn readable(&self) -> bool {
        self.connection.available() > 0 || self.shut_read || self.error.is_some() || self.over()
    }

    /// Nothing more comes.
    pub fn over(&self) -> bool {
        self.connection.at_end() || self.connection.ended().is_some()
    }
}

/// Whether a segment's payload is beyond what came.
fn brings_new(connection: &Connection, segment: &Segment) -> bool {
    let socket = connection.subflows()[0].socket();
    let next = socket
        .peer_initial_sequence()
        .wrapping_add(socket.received() as u32);
    let end = segment.seq.wrapping_add(segment.payload.len);
    end.wrapping_sub(next) as i32 > 0
}

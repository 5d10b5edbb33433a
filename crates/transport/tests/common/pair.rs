//! A client and a server, with what lies between them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_transport::{
    Arrival, CloseReason, Codepoint, Config, Connection, Event, EventKind, Mib, NEVER, Nanos,
    Purpose, Segment, Tuple,
};
use polypath_wire::mptcp::{MpJoin, MptcpOption, ResetReason};
use polypath_wire::tcp::Flags;

use super::{client_address, first_tuple, host, reversed, server_address};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What a hook does with a packet. Edits are made in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Drop,
    /// Arrives this much later.
    Delay(Nanos),
    /// Arrives twice, the second time this much later.
    Duplicate(Nanos),
    /// Arrives with a wrong checksum.
    Corrupt,
    /// Arrives with the ECN field set to "congestion experienced".
    Mark,
}

/// A packet on its way.
#[derive(Clone, Debug)]
pub struct Packet {
    pub at: Nanos,
    pub from: Side,
    /// Addresses as the sender sees them.
    pub tuple: Tuple,
    /// The sender's number of the subflow.
    pub subflow: usize,
    pub path: usize,
    pub segment: Segment,
    pub purpose: Purpose,
    pub ecn: Codepoint,
    /// The hook let it through, unharmed.
    pub passed: bool,
}

impl Packet {
    pub fn is(&self, from: Side, flags: Flags) -> bool {
        self.from == from && self.segment.flags.contains(flags)
    }

    pub fn carries_data(&self) -> bool {
        self.segment.payload.len > 0
    }

    pub fn options(&self) -> &[MptcpOption] {
        self.segment.mptcp()
    }
}

/// One path, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// One-way delay.
    pub delay: Nanos,
    /// Bits per second; 0: no limit.
    pub rate: u64,
    /// Packets that find this much waiting time are dropped.
    pub longest_queue: Nanos,
    pub up: bool,
    free_at: [Nanos; 2],
}

impl Link {
    pub fn new(delay: Nanos) -> Self {
        Self {
            delay,
            rate: 0,
            longest_queue: NEVER,
            up: true,
            free_at: [0; 2],
        }
    }

    pub fn limited(delay: Nanos, rate: u64, longest_queue: Nanos) -> Self {
        Self {
            rate,
            longest_queue,
            ..Self::new(delay)
        }
    }

    /// When a packet that enters now leaves at the other end.
    fn carry(&mut self, now: Nanos, from: Side, bytes: u64) -> Option<Nanos> {
        if !self.up {
            return None;
        }
        let free = &mut self.free_at[from as usize];
        let start = now.max(*free);
        if start - now > self.longest_queue {
            return None;
        }
        if let Some(time) = (bytes * 8 * super::SECOND).checked_div(self.rate) {
            *free = start + time;
            return Some(*free + self.delay);
        }
        Some(start + self.delay)
    }
}

/// One host's side of the connection.
pub struct End {
    pub connection: Option<Connection>,
    pub config: Config,
    pub events: Vec<Event>,
    /// Bytes read so far.
    pub read: u64,
    /// Whether the application reads what arrives.
    pub reading: bool,
    pub finished_at: Option<Nanos>,
    addresses: Vec<IpAddr>,
}

impl End {
    pub fn connection(&self) -> &Connection {
        self.connection
            .as_ref()
            .expect("the connection began on this side")
    }

    pub fn happened(&self, wanted: impl Fn(&EventKind) -> bool) -> usize {
        self.events
            .iter()
            .filter(|event| wanted(&event.kind))
            .count()
    }
}

/// What one step of an instant had an end do: which subflows sent, and what its writer wrote.
#[derive(Clone, Debug)]
pub struct Step {
    pub side: Side,
    /// The subflow whose packet was taken in. None: the end's processes ran.
    pub heard: Option<usize>,
    pub sent: Vec<usize>,
    pub written: u64,
}

type Hook = Box<dyn FnMut(&mut Packet) -> Fate>;

pub struct Pair {
    pub now: Nanos,
    pub client: End,
    pub server: End,
    pub links: Vec<Link>,
    /// Every packet sent, in order.
    pub log: Vec<Packet>,
    /// Packets of one instant are taken in before processes run.
    pub together: bool,
    /// What came of that.
    pub steps: Vec<Step>,
    hook: Hook,
    queue: BTreeMap<(Nanos, u64), (Packet, Arrival)>,
    sequence: u64,
}

impl Pair {
    /// A connection from a host with one address per link to a host with `server_addresses`.
    pub fn with(
        client: &Config,
        server: &Config,
        links: Vec<Link>,
        server_addresses: usize,
        seed: u64,
    ) -> Self {
        let end = |config: &Config, addresses| End {
            connection: None,
            config: config.clone(),
            events: Vec::new(),
            read: 0,
            reading: true,
            finished_at: None,
            addresses,
        };
        let mut pair = Self {
            now: 0,
            client: end(client, (0..links.len()).map(client_address).collect()),
            server: end(server, (0..server_addresses).map(server_address).collect()),
            links,
            log: Vec::new(),
            together: false,
            steps: Vec::new(),
            hook: Box::new(|_| Fate::Pass),
            queue: BTreeMap::new(),
            sequence: 0,
        };
        let accept = host(
            client,
            pair.client.addresses.clone(),
            u128::from(seed) << 8 | 1,
        );
        pair.client.connection = Some(
            Connection::connect(accept, first_tuple(), 0).expect("the configuration is valid"),
        );
        pair.sequence = seed << 20;
        pair
    }

    /// Both hosts alike, one link for each delay.
    pub fn new(config: &Config, delays: &[Nanos]) -> Self {
        Self::with(
            config,
            config,
            delays.iter().copied().map(Link::new).collect(),
            1,
            7,
        )
    }

    /// From now on `hook` sees every packet as it leaves.
    pub fn hook(&mut self, hook: impl FnMut(&mut Packet) -> Fate + 'static) {
        self.hook = Box::new(hook);
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    pub fn connection(&mut self, side: Side) -> &mut Connection {
        self.end(side)
            .connection
            .as_mut()
            .expect("the connection began on this side")
    }

    pub fn counter(&self, side: Side, mib: Mib) -> u32 {
        let end = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        end.connection
            .as_ref()
            .map_or(0, |connection| connection.counters().value(mib))
    }

    pub fn write(&mut self, side: Side, bytes: u64) {
        let now = self.now;
        self.connection(side).write(bytes, now);
        self.follow_up();
    }

    pub fn close(&mut self, side: Side) {
        let now = self.now;
        self.connection(side).close(now);
        self.follow_up();
    }

    pub fn abort(&mut self, side: Side) {
        let now = self.now;
        self.connection(side).abort(now);
        self.follow_up();
    }

    /// Any other call on a connection, followed by what it sends.
    pub fn act(&mut self, side: Side, action: impl FnOnce(&mut Connection, Nanos)) {
        let now = self.now;
        action(self.connection(side), now);
        self.follow_up();
    }

    /// Takes what both ends have to send, to tell and to read.
    fn follow_up(&mut self) {
        for side in [Side::Client, Side::Server] {
            let now = self.now;
            let end = self.end(side);
            let Some(connection) = &mut end.connection else {
                continue;
            };
            if end.reading && !connection.processes_wait() {
                end.read += connection.read(connection.available(), now);
            }
            end.events.append(connection.events());
            if connection.ended().is_some() && end.finished_at.is_none() {
                end.finished_at = Some(now);
            }
            let sent: Vec<_> = std::mem::take(connection.transmits());
            let tuples: Vec<Tuple> = connection
                .subflows()
                .iter()
                .map(|info| info.tuple)
                .collect();
            let fields: Vec<_> = sent
                .iter()
                .map(|it| connection.ecn_field(it.subflow, &it.segment, it.purpose))
                .collect();
            for (transmit, field) in sent.into_iter().zip(fields) {
                self.send(
                    side,
                    transmit.subflow,
                    tuples[transmit.subflow],
                    transmit.segment,
                    transmit.purpose,
                    field,
                );
            }
        }
    }

    fn send(
        &mut self,
        from: Side,
        subflow: usize,
        tuple: Tuple,
        segment: Segment,
        purpose: Purpose,
        ecn: Codepoint,
    ) {
        let of_client = match from {
            Side::Client => tuple.local.ip(),
            Side::Server => tuple.remote.ip(),
        };
        let path = self
            .client
            .addresses
            .iter()
            .position(|&address| address == of_client)
            .unwrap_or(0);
        let mut packet = Packet {
            at: self.now,
            from,
            tuple,
            subflow,
            path,
            segment,
            purpose,
            ecn,
            passed: false,
        };
        let fate = (self.hook)(&mut packet);
        let bytes = 40 + u64::from(packet.segment.payload.len);
        let arrives = match fate {
            Fate::Drop => None,
            _ => self.links[path].carry(self.now, from, bytes),
        };
        packet.passed = arrives.is_some() && fate != Fate::Corrupt;
        self.log.push(packet.clone());
        let Some(at) = arrives else { return };
        let arrival = Arrival {
            ecn: match fate {
                Fate::Mark => Codepoint::Ce,
                _ => packet.ecn,
            },
            corrupted: fate == Fate::Corrupt,
            purpose: packet.purpose,
        };
        match fate {
            Fate::Delay(extra) => self.enqueue(at + extra, packet, arrival),
            Fate::Duplicate(extra) => {
                self.enqueue(at, packet.clone(), arrival);
                self.enqueue(at + extra, packet, arrival);
            }
            _ => self.enqueue(at, packet, arrival),
        }
    }

    fn enqueue(&mut self, at: Nanos, packet: Packet, arrival: Arrival) {
        self.sequence += 1;
        self.queue.insert((at, self.sequence), (packet, arrival));
    }

    /// A packet that nobody here sent comes to `to` now, from the addresses of `tuple` as its receiver sees them. How many packets answer it.
    pub fn inject(&mut self, to: Side, tuple: Tuple, segment: Segment) -> usize {
        let before = self.log.len();
        let packet = Packet {
            at: self.now,
            from: to.other(),
            tuple: reversed(tuple),
            subflow: usize::MAX,
            path: 0,
            segment,
            purpose: Purpose::Data,
            ecn: Codepoint::NotEct,
            passed: true,
        };
        self.arrive(packet, Arrival::default());
        self.follow_up();
        self.log.len() - before
    }

    fn arrive(&mut self, packet: Packet, arrival: Arrival) {
        let side = packet.from.other();
        let tuple = reversed(packet.tuple);
        let (now, together) = (self.now, self.together);
        if let Some(connection) = &mut self.end(side).connection {
            if let Some(me) = connection
                .subflows()
                .iter()
                .position(|info| info.tuple == tuple)
            {
                if !together {
                    return connection.on_segment(me, &packet.segment, arrival, now);
                }
                let take_in = |it: &mut Connection| it.take_in(me, &packet.segment, arrival, now);
                return self.note_step(side, Some(me), take_in);
            }
        }
        if arrival.corrupted || packet.segment.flags.contains(Flags::RST) {
            return;
        }
        let fresh_syn = packet.segment.flags & (Flags::SYN | Flags::ACK) == Flags::SYN;
        if !(fresh_syn
            && side == Side::Server
            && self.take_syn(tuple, &packet.segment, arrival.ecn))
        {
            self.refuse(side, tuple, &packet.segment);
        }
    }

    fn note_step(&mut self, side: Side, heard: Option<usize>, act: impl FnOnce(&mut Connection)) {
        let connection = self.connection(side);
        let before = connection.written();
        act(connection);
        let step = Step {
            side,
            heard,
            sent: connection.transmits().iter().map(|it| it.subflow).collect(),
            written: connection.written() - before,
        };
        self.steps.push(step);
    }

    /// After the last packet of an instant.
    fn run_processes(&mut self) {
        let now = self.now;
        for side in [Side::Client, Side::Server] {
            let connection = self.end(side).connection.as_ref();
            if connection.is_some_and(Connection::processes_wait) {
                self.note_step(side, None, |it| it.run_processes(now));
            }
        }
        self.follow_up();
    }

    fn take_syn(&mut self, tuple: Tuple, syn: &Segment, ecn: Codepoint) -> bool {
        let now = self.now;
        let token = syn.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
            _ => None,
        });
        match (token, &mut self.server.connection) {
            (Some(token), Some(connection)) => {
                connection.token() == Some(token)
                    && connection.accepts_joins()
                    && matches!(connection.accept_join(tuple, (syn, ecn), now), Ok(Some(_)))
            }
            (None, none @ None) => {
                let accept = host(&self.server.config, self.server.addresses.clone(), 0x5eed);
                *none = Some(
                    Connection::accept(accept, tuple, (syn, ecn), now)
                        .expect("the configuration is valid"),
                );
                true
            }
            _ => false,
        }
    }

    /// A host without a matching connection answers with a reset (RFC 9293 section 3.10.7.1).
    fn refuse(&mut self, side: Side, tuple: Tuple, segment: &Segment) {
        let mut reset = Segment {
            flags: Flags::RST | Flags::ACK,
            ack: segment.seq.wrapping_add(segment.seq_len()),
            ..Segment::default()
        };
        if segment.flags.contains(Flags::ACK) {
            reset.flags = Flags::RST;
            reset.seq = segment.ack;
        }
        reset.rare_mut().mptcp = vec![MptcpOption::TcpRst {
            flags: 0,
            reason: ResetReason::MptcpSpecific as u8,
        }];
        self.send(
            side,
            usize::MAX,
            tuple,
            reset,
            Purpose::Control,
            Codepoint::NotEct,
        );
    }

    /// A deadline that has passed may be an early one: asked to handle it, the connection names the true one.
    fn settle(&mut self) {
        let now = self.now;
        for side in [Side::Client, Side::Server] {
            if let Some(connection) = &mut self.end(side).connection
                && connection.next_deadline() <= now
            {
                connection.on_time(now);
            }
        }
        self.follow_up();
    }

    fn next_wake(&self) -> Nanos {
        let timer = |end: &End| {
            end.connection
                .as_ref()
                .map_or(NEVER, Connection::next_deadline)
        };
        let arrival = self.queue.keys().next().map_or(NEVER, |key| key.0);
        arrival.min(timer(&self.client)).min(timer(&self.server))
    }

    /// Goes to the next arrival or deadline and handles it. False: nothing is pending.
    pub fn step(&mut self) -> bool {
        self.settle();
        let wake = self.next_wake();
        if wake == NEVER {
            return false;
        }
        self.now = self.now.max(wake);
        self.settle();
        let now = self.now;
        while let Some(entry) = self
            .queue
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            let (packet, arrival) = entry.remove();
            self.arrive(packet, arrival);
            self.follow_up();
        }
        self.run_processes();
        true
    }

    /// Runs until `time`.
    pub fn run_until(&mut self, time: Nanos) {
        self.settle();
        while self.next_wake() <= time && self.step() {
            self.settle();
        }
        self.now = self.now.max(time);
    }

    pub fn run_for(&mut self, time: Nanos) {
        self.run_until(self.now + time);
    }

    /// Runs until `done`, at most until `limit`. Whether it came to that.
    pub fn run_until_that(&mut self, limit: Nanos, done: impl Fn(&Self) -> bool) -> bool {
        self.settle();
        while !done(self) && self.next_wake() <= limit && self.step() {
            self.settle();
        }
        done(self)
    }

    /// Runs until both ends ended.
    pub fn run_to_end(&mut self, limit: Nanos) -> bool {
        let ended = |end: &End| {
            end.connection
                .as_ref()
                .is_some_and(|connection| connection.ended().is_some())
        };
        self.run_until_that(limit, |pair| ended(&pair.client) && ended(&pair.server))
    }

    /// Sends `bytes` from the client, closes both directions and runs to the end.
    #[track_caller]
    pub fn transfer(&mut self, bytes: u64, limit: Nanos) {
        self.write(Side::Client, bytes);
        self.close(Side::Client);
        assert!(
            self.run_until_that(limit, |pair| pair
                .server
                .connection
                .as_ref()
                .is_some_and(Connection::at_end)),
            "only {} of {bytes} bytes by {} ns",
            self.server.read,
            self.now
        );
        self.close(Side::Server);
        assert!(self.run_to_end(limit), "not ended by {} ns", self.now);
        self.assert_whole(Side::Server, bytes);
        for side in [Side::Client, Side::Server] {
            assert_eq!(
                self.connection(side).ended(),
                Some(CloseReason::Finished),
                "{side:?}"
            );
        }
    }

    /// `side` read exactly `bytes`, each where it belongs.
    #[track_caller]
    pub fn assert_whole(&mut self, side: Side, bytes: u64) {
        assert_eq!(self.end(side).read, bytes, "bytes read by the {side:?}");
        assert_eq!(
            self.counter(side, Mib::PayloadMismatch),
            0,
            "misplaced bytes at the {side:?}"
        );
    }

    pub fn sent(&self, from: Side) -> impl Iterator<Item = &Packet> {
        self.log.iter().filter(move |packet| packet.from == from)
    }

    pub fn data(&self, from: Side) -> impl Iterator<Item = &Packet> {
        self.sent(from).filter(|packet| packet.carries_data())
    }

    pub fn established_subflows(&self) -> usize {
        self.client
            .connection()
            .paths()
            .iter()
            .filter(|path| path.established)
            .count()
    }

    /// Prints the last `count` packets, for a test that failed.
    pub fn print_log(&self, count: usize) {
        println!("----");
        for packet in &self.log[self.log.len().saturating_sub(count)..] {
            let segment = &packet.segment;
            println!(
                "{:>12.6} {:?} {} path {} {:?} seq {} ack {} win {} len {} sack {:?} {:?} {:?} {}",
                packet.at as f64 / 1e9,
                packet.from,
                packet.subflow,
                packet.path,
                segment.flags,
                segment.seq,
                segment.ack,
                segment.window,
                segment.payload.len,
                segment.sack.as_slice(),
                segment.dss,
                segment.mptcp(),
                if packet.passed { "" } else { "LOST" },
            );
        }
    }
}

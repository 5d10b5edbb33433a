//! A run: the loop that moves packets between the network and the endpoints.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub use polypath_net::Totals;
use polypath_net::{ChannelId, Ecn, Network, Output, Packet, TimerId, random};
use polypath_trace::Recording;
use polypath_transport::{
    Accept, Arrival, CloseReason, Config, Connection, EventKind, NEVER, Nanos, Ports, Transmit,
    Tuple,
};
use polypath_wire::mptcp::{MpJoin, MptcpOption};
use polypath_wire::tcp::{Flags, header_len};

use crate::PlanError;
use crate::application::{Datagrams, Io, Request, Session, Side, session};
use crate::build::{self, Built, build};
use crate::capture::{CaptureMode, Captures};
use crate::endpoint::Endpoint;
use crate::flow::{Body, Content, End, Flow, ip_header_len};
use crate::plan::{self, Action, Plan, Transport};
use crate::record::{Recorder, sampled};

/// Whose timer fired.
#[derive(Clone, Copy)]
enum Owner {
    Start(usize),
    Endpoint(usize),
    Datagrams(usize),
    Event(usize),
    Sample,
}

/// An application in the run.
struct App {
    session: Option<Box<dyn Session>>,
    datagrams: Option<Datagrams>,
    /// Index of its client's endpoint; the server's follows.
    endpoint: Option<usize>,
    configs: Option<[Arc<Config>; 2]>,
    requests: Vec<Request>,
    addresses: (SocketAddr, SocketAddr),
    /// Of a datagram application: there and back.
    flows: Option<(u32, u32)>,
    timer: TimerId,
    finished: bool,
}

/// A run of a plan in the simulator.
pub struct Simulation {
    plan: Plan,
    network: Network<Body>,
    channels: Vec<(ChannelId, ChannelId)>,
    captures: Captures,
    apps: Vec<App>,
    endpoints: Vec<Endpoint>,
    /// By node, own address and peer's.
    demultiplexer: BTreeMap<(usize, SocketAddr, SocketAddr), End>,
    /// MPTCP connections by node and token.
    tokens: BTreeMap<(usize, u32), usize>,
    ports: Vec<Ports>,
    timers: Vec<Owner>,
    recorder: Recorder,
    sample_timer: TimerId,
    unfinished: usize,
    ended: bool,
    transmits: Vec<Transmit>,
}

/// UDP's header and ICMP's echo header alike.
const DATAGRAM_HEADER: u32 = 8;
/// Where datagram applications' source ports begin.
const FIRST_PRIVATE_PORT: u16 = 49_152;

impl Simulation {
    /// Prepares the run of a plan in JSON. Captures are written to `directory`.
    ///
    /// # Errors
    /// Why the plan cannot run, or why captures cannot be written.
    pub fn new(
        plan: &str,
        captures: CaptureMode,
        directory: Option<PathBuf>,
    ) -> Result<Self, PlanError> {
        let plan: Plan = serde_json::from_str(plan)?;
        Self::from_plan(plan, captures, directory)
    }

    /// As [`Simulation::new`] with a plan already read.
    ///
    /// # Errors
    /// As there.
    pub fn from_plan(
        plan: Plan,
        captures: CaptureMode,
        directory: Option<PathBuf>,
    ) -> Result<Self, PlanError> {
        if plan.version != plan::VERSION {
            return Err(PlanError::Version {
                found: plan.version,
                expected: plan::VERSION,
            });
        }
        if plan.record.interval_ns == 0 {
            return Err(PlanError::invalid(
                "record",
                "the sampling interval must be above 0",
            ));
        }
        let Built {
            mut network,
            channels,
            ..
        } = build(&plan)?;
        let sample_timer = network.new_timer();
        let mut simulation = Self {
            captures: Captures::open(&plan, captures, directory.as_deref())?,
            recorder: Recorder::new(&plan),
            ports: plan.nodes.iter().map(|_| Ports::default()).collect(),
            channels,
            apps: Vec::new(),
            endpoints: Vec::new(),
            demultiplexer: BTreeMap::new(),
            tokens: BTreeMap::new(),
            timers: Vec::new(),
            sample_timer,
            unfinished: plan.applications.len(),
            ended: false,
            transmits: Vec::new(),
            network,
            plan,
        };
        simulation.own(sample_timer, Owner::Sample);
        simulation
            .network
            .set_timer(sample_timer, simulation.plan.record.interval_ns);
        for index in 0..simulation.plan.applications.len() {
            simulation.add_application(index)?;
        }
        for index in 0..simulation.plan.events.len() {
            if !matches!(simulation.plan.events[index].action, Action::Link { .. }) {
                let timer = simulation.new_timer(Owner::Event(index));
                simulation
                    .network
                    .set_timer(timer, simulation.plan.events[index].at_ns);
            }
        }
        Ok(simulation)
    }

    fn new_timer(&mut self, owner: Owner) -> TimerId {
        let timer = self.network.new_timer();
        self.own(timer, owner);
        timer
    }

    fn own(&mut self, timer: TimerId, owner: Owner) {
        let index = timer.index();
        if self.timers.len() <= index {
            self.timers.resize(index + 1, Owner::Sample);
        }
        self.timers[index] = owner;
    }

    fn add_application(&mut self, index: usize) -> Result<(), PlanError> {
        let settings = &self.plan.applications[index];
        let place = format!("application {}", settings.name);
        let node = |id: usize| {
            self.plan.nodes.get(id).ok_or(PlanError::Index {
                place: place.clone(),
                kind: "node",
                index: id,
            })
        };
        let (client, server) = (node(settings.client)?, node(settings.server)?);
        let first = |node: &plan::Node| {
            let address = node
                .interfaces
                .iter()
                .flat_map(|interface| &interface.addresses)
                .next()
                .copied();
            address.ok_or_else(|| {
                PlanError::invalid(&*place, format!("host {} has no address", node.name))
            })
        };
        let source = settings.source.map_or_else(|| first(client), Ok)?;
        let destination = settings.destination.map_or_else(|| first(server), Ok)?;
        let work = &settings.work;
        let datagrams = Datagrams::new(work, settings.start_ns, self.plan.seed, index);
        let over_connection = matches!(settings.transport, Transport::Tcp | Transport::Mptcp);
        if over_connection == datagrams.is_some() {
            return Err(PlanError::invalid(
                &*place,
                format!("{:?} cannot do this work", settings.transport).to_lowercase(),
            ));
        }
        let configs = if over_connection {
            let mptcp = settings.transport == Transport::Mptcp;
            let stack = |own: &Option<plan::Stack>, node: &plan::Node| {
                let stack = own.as_ref().or(node.stack.as_ref());
                let stack = stack.ok_or_else(|| {
                    PlanError::invalid(&*place, format!("{} is not a host", node.name))
                })?;
                build::config(stack, mptcp, &place)
            };
            Some([
                stack(&settings.client_stack, client)?,
                stack(&settings.server_stack, server)?,
            ])
        } else {
            None
        };
        let (start, session) = (settings.start_ns, session(work, settings.start_ns));
        let ports = if over_connection {
            (0, settings.port)
        } else {
            (FIRST_PRIVATE_PORT + index as u16, settings.port)
        };
        self.network
            .route(
                polypath_net::NodeId(settings.client as u32),
                source,
                destination,
                0,
            )
            .map_err(|error| PlanError::Route {
                place: place.clone(),
                error,
            })?;
        let timer = self.new_timer(Owner::Start(index));
        self.network.set_timer(timer, start);
        self.apps.push(App {
            session,
            datagrams,
            endpoint: None,
            configs,
            requests: Vec::new(),
            addresses: ((source, ports.0).into(), (destination, ports.1).into()),
            flows: None,
            timer,
            finished: false,
        });
        Ok(())
    }

    /// Simulated time in nanoseconds.
    pub fn now(&self) -> Nanos {
        self.network.now()
    }

    /// Where all packets of the network went.
    pub fn totals(&self) -> Totals {
        self.network.totals()
    }

    /// Bytes that applications received in order so far.
    pub fn delivered_bytes(&self) -> u64 {
        self.endpoints
            .iter()
            .map(|endpoint| endpoint.received)
            .sum()
    }

    /// Packets that left a link's queue so far.
    pub fn packet_hops(&mut self) -> u64 {
        let network = &mut self.network;
        let pairs = self.channels.iter();
        pairs
            .flat_map(|&(forward, backward)| [forward, backward])
            .map(|channel| network.stats(channel).sent_packets)
            .sum()
    }

    /// Runs up to `until` nanoseconds. True: the run is over, because every application ended or its duration is up.
    pub fn step_until(&mut self, until: Nanos) -> bool {
        let until = until.min(self.plan.duration_ns);
        while !self.ended {
            let output = if self.captures.active() {
                self.network.poll(until, &mut self.captures)
            } else {
                self.network.poll(until, &mut ())
            };
            match output {
                Some(Output::Delivered { packet, .. }) => self.on_packet(packet),
                Some(Output::Timer(timer)) => self.on_timer(timer),
                Some(Output::Changed(channel)) => self.on_change(channel),
                None => break,
            }
            self.ended = self.unfinished == 0;
        }
        self.ended |= self.network.now() >= self.plan.duration_ns;
        self.ended
    }

    fn on_timer(&mut self, timer: TimerId) {
        let now = self.network.now();
        match self.timers[timer.index()] {
            Owner::Start(application) => self.start(application),
            Owner::Datagrams(application) => self.tick_datagrams(application),
            Owner::Event(event) => self.on_event(event),
            Owner::Sample => {
                self.sample();
                self.network
                    .set_timer(self.sample_timer, now + self.plan.record.interval_ns);
            }
            Owner::Endpoint(index) => {
                let endpoint = &mut self.endpoints[index];
                endpoint.timer_at = NEVER;
                if let Some(connection) = endpoint
                    .connection
                    .as_mut()
                    .filter(|connection| connection.next_deadline() <= now)
                {
                    connection.on_time(now);
                }
                self.follow_up(index);
            }
        }
    }

    fn start(&mut self, application: usize) {
        if self.apps[application].datagrams.is_some() {
            return self.start_datagrams(application);
        }
        let settings = &self.plan.applications[application];
        let (client, server) = (settings.client, settings.server);
        let first = self.endpoints.len();
        for (offset, (side, node)) in [(Side::Client, client), (Side::Server, server)]
            .into_iter()
            .enumerate()
        {
            let timer = self.new_timer(Owner::Endpoint(first + offset));
            self.endpoints
                .push(Endpoint::new(node, side, timer, application));
        }
        let (source, destination) = self.apps[application].addresses;
        let tuple = Tuple {
            local: (source.ip(), self.ports[client].next()).into(),
            remote: destination,
        };
        self.apps[application].endpoint = Some(first);
        let now = self.network.now();
        let connection = self.make(first, |host| Connection::connect(host, tuple, now));
        self.begin(first, connection, 0);
        self.follow_up(first);
    }

    /// Makes an endpoint's connection; its key is drawn again until its token is the host's only one (RFC 8684 section 3.1).
    fn make<E: std::fmt::Debug>(
        &self,
        index: usize,
        with: impl Fn(Accept) -> Result<Connection, E>,
    ) -> Connection {
        let endpoint = &self.endpoints[index];
        let app = &self.apps[endpoint.application];
        let [client, server] = app
            .configs
            .as_ref()
            .expect("only applications over connections have endpoints");
        let node = &self.plan.nodes[endpoint.node];
        for attempt in 0u64.. {
            let host = Accept {
                config: if endpoint.side == Side::Client {
                    client.clone()
                } else {
                    server.clone()
                },
                addresses: node
                    .interfaces
                    .iter()
                    .flat_map(|interface| {
                        interface
                            .addresses
                            .iter()
                            .map(|address| (*address, interface.backup))
                    })
                    .collect(),
                ports: self.ports[endpoint.node].clone(),
                random: random::stream(
                    self.plan.seed,
                    "endpoint",
                    index as u64 | attempt << 32,
                    "transport",
                ),
            };
            let mut connection =
                with(host).expect("the plan's algorithms were checked before the run");
            let taken = connection
                .token()
                .is_some_and(|token| self.tokens.contains_key(&(endpoint.node, token)));
            if !taken {
                if self.plan.record.decisions {
                    connection.record_decisions();
                }
                return connection;
            }
        }
        unreachable!("a free token is found long before the attempts run out")
    }

    fn begin(&mut self, index: usize, connection: Connection, number: u32) {
        let endpoint = &mut self.endpoints[index];
        if let Some(token) = connection.token() {
            self.tokens.insert((endpoint.node, token), index);
        }
        endpoint.connection = Some(connection);
        endpoint.numbers.push(number);
    }

    fn on_packet(&mut self, packet: Packet<Body>) {
        let flow = packet.flow as usize;
        match packet.body.content {
            Content::Tcp(ref segment) => {
                let end = match self.captures.flows[flow].receiver {
                    Some(end) => Some(end),
                    None => self.find_receiver(flow, &packet),
                };
                let Some(End::Subflow { endpoint, subflow }) = end else {
                    return;
                };
                let arrival = Arrival {
                    congestion_experienced: packet.ecn == Ecn::Ce,
                    corrupted: packet.corrupted,
                };
                let now = self.network.now();
                if let Some(connection) = &mut self.endpoints[endpoint as usize].connection {
                    connection.on_segment(subflow as usize, segment, arrival, now);
                }
                self.follow_up(endpoint as usize);
            }
            Content::Udp { .. } | Content::Echo { .. } => self.on_datagram(flow, &packet),
        }
    }

    /// Finds the endpoint that a flow's first packet is for; a SYN makes one. A SYN's own packet is dealt with here.
    fn find_receiver(&mut self, flow: usize, packet: &Packet<Body>) -> Option<End> {
        let Flow {
            source,
            destination,
            receiver_node,
            sender,
            ..
        } = self.captures.flows[flow];
        let node = receiver_node as usize;
        if let Some(&end) = self.demultiplexer.get(&(node, destination, source)) {
            self.captures.flows[flow].receiver = Some(end);
            return Some(end);
        }
        let Content::Tcp(segment) = &packet.body.content else {
            return None;
        };
        if packet.corrupted
            || !segment.flags.contains(Flags::SYN)
            || segment.flags.contains(Flags::ACK)
        {
            return None;
        }
        let (now, tuple) = (
            self.network.now(),
            Tuple {
                local: destination,
                remote: source,
            },
        );
        let End::Subflow {
            endpoint: peer,
            subflow: number,
        } = sender
        else {
            return None;
        };
        let token = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
            _ => None,
        });
        let (index, subflow) = match token {
            Some(token) => {
                let &index = self.tokens.get(&(node, token))?;
                let connection = self.endpoints[index]
                    .connection
                    .as_mut()
                    .filter(|connection| connection.accepts_joins())?;
                let subflow = connection.accept_join(tuple, segment, now).ok()??;
                self.endpoints[index].numbers.push(number);
                (index, subflow)
            }
            None => {
                let index = self.listener(node, destination.port(), peer as usize)?;
                let connection =
                    self.make(index, |host| Connection::accept(host, tuple, segment, now));
                self.begin(index, connection, number);
                (index, 0)
            }
        };
        let end = End::Subflow {
            endpoint: index as u32,
            subflow: subflow as u32,
        };
        self.demultiplexer.insert((node, destination, source), end);
        self.captures.flows[flow].receiver = Some(end);
        self.follow_up(index);
        None
    }

    /// The endpoint that waits at `node` and `port` for the client `peer`.
    fn listener(&self, node: usize, port: u16, peer: usize) -> Option<usize> {
        let index = peer + 1;
        let endpoint = self.endpoints.get(index)?;
        let settings = &self.plan.applications[endpoint.application];
        (endpoint.side == Side::Server
            && endpoint.node == node
            && settings.port == port
            && endpoint.connection.is_none())
        .then_some(index)
    }

    /// Does what follows from an endpoint's change: its application, what it sends, what it tells, its timer.
    fn follow_up(&mut self, index: usize) {
        self.run_application(index);
        self.tell_events(index);
        self.transmit(index);
        let endpoint = &mut self.endpoints[index];
        let at = endpoint.next_deadline();
        if at < endpoint.timer_at {
            endpoint.timer_at = at;
            self.network.set_timer(endpoint.timer, at);
        }
    }

    fn run_application(&mut self, index: usize) {
        let now = self.network.now();
        let endpoint = &mut self.endpoints[index];
        let Some(connection) = &mut endpoint.connection else {
            return;
        };
        let arrived = connection.read(connection.available(), now);
        if arrived > 0 {
            endpoint.received += arrived;
            endpoint.first_byte_at.get_or_insert(now);
            endpoint.last_byte_at = Some(now);
        }
        let newly_established = connection.established() && endpoint.established_at.is_none();
        if newly_established {
            endpoint.established_at = Some(now);
        }
        let newly_at_end = !endpoint.end_seen && connection.at_end();
        endpoint.end_seen |= newly_at_end;
        let woken = endpoint.wake <= now;
        if !(arrived > 0 || newly_established || newly_at_end || woken) {
            return;
        }
        endpoint.wake = if woken { NEVER } else { endpoint.wake };
        let app = &mut self.apps[endpoint.application];
        if let Some(session) = &mut app.session {
            session.run(&mut Io {
                now,
                side: endpoint.side,
                connection,
                arrived,
                wake: &mut endpoint.wake,
                requests: &mut app.requests,
            });
        }
    }

    fn transmit(&mut self, index: usize) {
        let mut transmits = std::mem::take(&mut self.transmits);
        if let Some(connection) = &mut self.endpoints[index].connection {
            std::mem::swap(connection.transmits(), &mut transmits);
        }
        for Transmit {
            subflow,
            mut segment,
            purpose,
        } in transmits.drain(..)
        {
            let flow = self.flow_of(index, subflow);
            let endpoint = &self.endpoints[index];
            let Some(connection) = &endpoint.connection else {
                continue;
            };
            let socket = &connection.sockets()[subflow];
            if self.plan.record.segments {
                let id = index as u32 / 2;
                let initial = (socket.initial_sequence(), socket.peer_initial_sequence());
                let number = endpoint
                    .numbers
                    .get(subflow)
                    .copied()
                    .unwrap_or(subflow as u32);
                let sent = Transmit {
                    subflow,
                    segment,
                    purpose,
                };
                self.recorder.segment(
                    self.network.now(),
                    id,
                    endpoint.side,
                    number,
                    &sent,
                    initial,
                );
                segment = sent.segment;
            }
            let flow_state = &mut self.captures.flows[flow as usize];
            let Some(route) = flow_state.route else {
                continue;
            };
            flow_state.sent = flow_state.sent.wrapping_add(1);
            let identification = flow_state.sent;
            let len = ip_header_len(flow_state.source)
                + header_len(&segment) as u32
                + segment.payload.len;
            let ecn = if segment.payload.len > 0 && socket.ecn_capable() {
                Ecn::Ect0
            } else {
                Ecn::NotEct
            };
            let body = Body {
                identification,
                content: Content::Tcp(segment),
            };
            self.inject(route, len, flow, ecn, body);
        }
        self.transmits = transmits;
    }

    fn inject(&mut self, route: polypath_net::RouteId, len: u32, flow: u32, ecn: Ecn, body: Body) {
        if self.captures.active() {
            self.network
                .inject(route, len, flow, ecn, body, &mut self.captures);
        } else {
            self.network.inject(route, len, flow, ecn, body, &mut ());
        }
    }

    /// The flow of a subflow in the direction from an endpoint; made at its first segment.
    fn flow_of(&mut self, index: usize, subflow: usize) -> u32 {
        if let Some(&flow) = self.endpoints[index].flows.get(subflow) {
            return flow;
        }
        for subflow in self.endpoints[index].flows.len()..=subflow {
            let endpoint = &mut self.endpoints[index];
            let Some(connection) = &endpoint.connection else {
                break;
            };
            let tuple = connection.subflows()[subflow].tuple;
            if endpoint.numbers.len() <= subflow {
                endpoint.numbers.push(subflow as u32);
            }
            let (node, end) = (
                endpoint.node,
                End::Subflow {
                    endpoint: index as u32,
                    subflow: subflow as u32,
                },
            );
            let number = endpoint.numbers[subflow];
            let sender = End::Subflow {
                endpoint: index as u32,
                subflow: number,
            };
            let first_dsn = connection.data_sequence(0);
            let flow = self.new_flow(node, tuple.local, tuple.remote, sender, index as u64);
            self.captures.flows[flow as usize].first_dsn = first_dsn;
            self.demultiplexer
                .insert((node, tuple.local, tuple.remote), end);
            self.endpoints[index].flows.push(flow);
        }
        self.endpoints[index].flows[subflow]
    }

    fn new_flow(
        &mut self,
        node: usize,
        source: SocketAddr,
        destination: SocketAddr,
        sender: End,
        stream: u64,
    ) -> u32 {
        let mut flow = Flow {
            source,
            destination,
            route: None,
            receiver_node: 0,
            sender,
            receiver: None,
            stream: random::mix(stream),
            first_dsn: None,
            sent: 0,
            identifier: source.port(),
        };
        let label = flow.label();
        flow.route = self
            .network
            .route(
                polypath_net::NodeId(node as u32),
                source.ip(),
                destination.ip(),
                label,
            )
            .ok();
        let topology = self.network.topology();
        if let Some(interface) = topology.owner(destination.ip())
            && let Ok(receiver) = topology.node_of(interface)
        {
            flow.receiver_node = receiver.0;
        }
        self.captures.flows.push(flow);
        (self.captures.flows.len() - 1) as u32
    }

    fn tell_events(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        let Some(connection) = &mut endpoint.connection else {
            return;
        };
        if connection.events().is_empty() {
            return;
        }
        let id = index as u32 / 2;
        for event in std::mem::take(connection.events()) {
            let numbers = &endpoint.numbers;
            let number = |subflow: usize| numbers.get(subflow).copied().unwrap_or(subflow as u32);
            self.recorder
                .transport_event(event.at, id, endpoint.node, &event.kind, number);
            if let Some(subflow) = sampled(&event.kind) {
                self.recorder.sample_subflow(
                    event.at,
                    id,
                    endpoint.side,
                    number(subflow),
                    subflow,
                    connection,
                );
            }
            if let EventKind::ConnectionClosed(reason) = event.kind {
                endpoint.ended_at = Some(event.at);
                let (application, side) = (endpoint.application, endpoint.side);
                let failed = reason != CloseReason::Finished && side == Side::Client;
                let peer = &self.endpoints[index ^ 1];
                if failed || peer.ended_at.is_some() {
                    self.finish_application(application);
                }
                return;
            }
        }
    }

    fn finish_application(&mut self, application: usize) {
        let app = &mut self.apps[application];
        if !app.finished {
            app.finished = true;
            self.unfinished -= 1;
        }
    }

    fn sample(&mut self) {
        let now = self.network.now();
        for (index, endpoint) in self.endpoints.iter_mut().enumerate() {
            self.recorder
                .sample_endpoint(now, index as u32 / 2, endpoint);
        }
        self.recorder
            .sample_links(now, &self.channels, &mut self.network);
    }

    fn on_change(&mut self, channel: ChannelId) {
        let link = self
            .channels
            .iter()
            .position(|&(forward, backward)| forward == channel || backward == channel);
        let Some(link) = link else { return };
        let direction = if self.channels[link].0 == channel {
            "forward"
        } else {
            "backward"
        };
        let detail = self
            .network
            .config(channel)
            .map_or(String::new(), |config| {
                format!(
                    "{direction}: rate {:?} bit/s, delay {} ns, loss {:?}, up {}",
                    config.rate_bps.unwrap_or(0),
                    config.delay,
                    config.loss,
                    config.up
                )
            });
        self.recorder.event(
            self.network.now(),
            "link-changed",
            "",
            Some(link as u32),
            detail,
        );
    }

    /// A change that a host is told of.
    fn on_event(&mut self, event: usize) {
        let now = self.network.now();
        let (node, interface, up, backup) = match self.plan.events[event].action {
            Action::Interface {
                node,
                interface,
                up,
            } => (node, interface, Some(up), None),
            Action::Priority {
                node,
                interface,
                backup,
            } => (node, interface, None, Some(backup)),
            Action::Link { .. } => return,
        };
        let host = self.plan.nodes[node].name.clone();
        let settings = &self.plan.nodes[node].interfaces[interface];
        let (addresses, name) = (settings.addresses.clone(), settings.name.clone());
        let what = match (up, backup) {
            (Some(up), _) => format!("{name} {}", if up { "up" } else { "down" }),
            (_, backup) => format!(
                "{name} {}",
                if backup == Some(true) {
                    "backup"
                } else {
                    "normal"
                }
            ),
        };
        self.recorder
            .event(now, "interface-changed", &host, None, what);
        for index in 0..self.endpoints.len() {
            if self.endpoints[index].node != node {
                continue;
            }
            if let Some(connection) = &mut self.endpoints[index].connection {
                for &address in &addresses {
                    if let Some(up) = up {
                        connection.set_address_up(address, up, now);
                    }
                    if let Some(backup) = backup {
                        connection.set_backup(address, backup, now);
                    }
                }
            }
            self.follow_up(index);
        }
    }

    fn start_datagrams(&mut self, application: usize) {
        let settings = &self.plan.applications[application];
        let (client, server) = (settings.client, settings.server);
        let (source, destination) = self.apps[application].addresses;
        let sender = End::Datagrams {
            application: application as u32,
        };
        let stream = u64::MAX - application as u64;
        let there = self.new_flow(client, source, destination, sender, stream);
        let back = self.new_flow(server, destination, source, sender, stream);
        self.captures.flows[back as usize].identifier = source.port();
        self.apps[application].flows = Some((there, back));
        let timer = self.apps[application].timer;
        self.own(timer, Owner::Datagrams(application));
        self.tick_datagrams(application);
    }

    fn tick_datagrams(&mut self, application: usize) {
        let now = self.network.now();
        let app = &mut self.apps[application];
        let (Some(datagrams), Some((there, _))) = (&mut app.datagrams, app.flows) else {
            return;
        };
        let (due, next) = datagrams.tick(now);
        let (sequence, len, echo) = (
            datagrams.sent.wrapping_sub(1),
            datagrams.payload(),
            datagrams.echo(),
        );
        match next {
            Some(at) => self.network.set_timer(app.timer, at),
            None => self.finish_application(application),
        }
        if due {
            let content = if echo {
                Content::Echo {
                    reply: false,
                    sequence: sequence as u16,
                    sent_at: now,
                    len,
                }
            } else {
                Content::Udp {
                    sequence,
                    sent_at: now,
                    len,
                }
            };
            self.send_datagram(there, content, len);
        }
    }

    fn send_datagram(&mut self, flow: u32, content: Content, payload: u32) {
        let state = &mut self.captures.flows[flow as usize];
        let Some(route) = state.route else { return };
        state.sent = state.sent.wrapping_add(1);
        let body = Body {
            identification: state.sent,
            content,
        };
        let len = ip_header_len(state.source) + DATAGRAM_HEADER + payload;
        self.inject(route, len, flow, Ecn::NotEct, body);
    }

    fn on_datagram(&mut self, flow: usize, packet: &Packet<Body>) {
        let End::Datagrams { application } = self.captures.flows[flow].sender else {
            return;
        };
        if packet.corrupted {
            return;
        }
        let now = self.network.now();
        let app = &mut self.apps[application as usize];
        let (Some(datagrams), Some((there, back))) = (&mut app.datagrams, app.flows) else {
            return;
        };
        match packet.body.content {
            Content::Echo {
                reply: false,
                sequence,
                sent_at,
                len,
            } if flow == there as usize => {
                self.send_datagram(
                    back,
                    Content::Echo {
                        reply: true,
                        sequence,
                        sent_at,
                        len,
                    },
                    len,
                );
            }
            Content::Echo {
                sequence,
                sent_at,
                len,
                ..
            } => datagrams.arrived(u64::from(sequence), len, now - sent_at),
            Content::Udp {
                sequence,
                sent_at,
                len,
            } => datagrams.arrived(sequence, len, now - sent_at),
            Content::Tcp(_) => {}
        }
    }

    /// Ends the run where it stands and gives what was recorded.
    ///
    /// # Errors
    /// Why captures could not be written.
    pub fn finish(mut self) -> Result<Recording, PlanError> {
        self.sample();
        self.recorder
            .link_ends(&self.plan, &self.channels, &mut self.network);
        for (index, app) in self.apps.iter().enumerate() {
            if let Some(datagrams) = &app.datagrams {
                self.recorder.requests(index as u32, &datagrams.requests);
                self.recorder.datagrams(index as u32, datagrams);
            }
            self.recorder.requests(index as u32, &app.requests);
            if let Some(first) = app.endpoint {
                let (client, server) = (&self.endpoints[first], &self.endpoints[first + 1]);
                let id = first as u32 / 2;
                self.recorder
                    .connection_end(&self.plan, index, id, client, server);
                self.recorder.subflow_ends(&self.plan, id, client, server);
            }
        }
        for node in 0..self.plan.nodes.len() {
            if self.plan.nodes[node].kind == plan::NodeKind::Host {
                let own = self
                    .endpoints
                    .iter()
                    .filter(|endpoint| endpoint.node == node);
                self.recorder.counters(
                    node,
                    own.filter_map(|endpoint| endpoint.connection.as_ref()),
                );
            }
        }
        self.captures.finish()?;
        Ok(self.recorder.recording)
    }
}

//! Connections in the run: how they begin, what becomes of packets and of what endpoints send and tell.

use std::net::{IpAddr, SocketAddr};

use polypath_net::{Ecn, InterfaceId, NodeId, Packet, Parcel, random};
use polypath_transport::{
    Accept, Arrival, CloseReason, Connection, EventKind, NEVER, Nanos, Segment, Transmit, Tuple,
};
use polypath_wire::tcp::header_len;

use crate::application::{Frames, Io, Side};
use crate::carrier::Carrier;
use crate::endpoint::Endpoint;
use crate::flow::{Body, Content, End, Flow, ip_header_len};
use crate::origins::Origins;
use crate::record::sampled;

use super::{Owner, Simulation};

/// Room for so many segments stays with a connection that sent them; bursts are rare, and their room goes.
const KEPT_TRANSMITS: usize = 4;

/// In-order bytes that came: all of them, and by stream of QUIC.
pub(super) struct Came<'a> {
    pub bytes: u64,
    /// What QUIC brought, if anything.
    pub frames: Option<&'a mut Frames>,
}

/// Where a connection draws from.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    pub of: &'static str,
    pub number: usize,
}

impl Stream {
    pub fn endpoint(number: usize) -> Self {
        let of = "endpoint";
        Self { of, number }
    }
}

impl Simulation {
    pub(super) fn start(&mut self, application: usize) {
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
        if self.plan.applications[application].transport.is_quic() {
            return self.start_quic(first, tuple);
        }
        let connection = self.make(Stream::endpoint(first), first, |host| {
            Connection::connect(host, tuple, now)
        });
        self.begin(first, connection, 0);
        self.follow_up(first);
    }

    /// Makes a connection as an endpoint's host and application have them; its key is drawn again until its token is the host's only one (RFC 8684 section 3.1).
    pub(super) fn make<E: std::fmt::Debug>(
        &self,
        stream: Stream,
        index: usize,
        with: impl Fn(Accept) -> Result<Connection, E>,
    ) -> Connection {
        let endpoint = &self.endpoints[index];
        for attempt in 0u64.. {
            let host = self.host(stream, index, attempt);
            let mut connection =
                with(host).expect("the plan's algorithms were checked before the run");
            let taken = connection
                .token()
                .is_some_and(|token| self.tokens.contains_key(&(endpoint.node, token)));
            if !taken {
                if self.plan.record.decisions {
                    connection.record_decisions();
                }
                let ways = &self.apps[endpoint.application].ways;
                connection.learn_ways(ways[endpoint.side as usize].clone());
                return connection;
            }
        }
        unreachable!("a free token is found long before the attempts run out")
    }

    /// What an endpoint's connection takes from its host.
    pub(super) fn host(&self, stream: Stream, index: usize, attempt: u64) -> Accept {
        let endpoint = &self.endpoints[index];
        let [client, server] = self.apps[endpoint.application]
            .configs
            .as_ref()
            .expect("only applications over connections have endpoints");
        let config = match endpoint.side {
            Side::Client => client,
            Side::Server => server,
        };
        let interfaces = self.plan.nodes[endpoint.node].interfaces.iter();
        Accept {
            config: config.clone(),
            algorithms: self.algorithms.clone(),
            addresses: interfaces
                .enumerate()
                .flat_map(|(number, interface)| {
                    let changed = self.changed.backup(endpoint.node, number);
                    let backup = changed.unwrap_or(interface.backup);
                    let addresses = interface.addresses.iter();
                    addresses.map(move |address| (*address, backup))
                })
                .collect(),
            mtus: self.interface_mtus[endpoint.node].clone(),
            ports: self.ports[endpoint.node].clone(),
            sessions: self.sessions[endpoint.node].clone(),
            random: random::stream(
                self.plan.seed,
                stream.of,
                stream.number as u64 | attempt << 32,
                "transport",
            ),
            isn: None,
        }
    }

    pub(super) fn begin(&mut self, index: usize, connection: Connection, number: u32) {
        let endpoint = &mut self.endpoints[index];
        if let Some(token) = connection.token() {
            self.tokens.insert((endpoint.node, token), index);
        }
        endpoint.connection = Some(Carrier::Tcp(connection));
        endpoint.numbers.push(number);
        self.tell_what_is_down(index);
    }

    /// A packet arrived at the end of its route. A segment of TCP whose receiver is known is looked at where it lies.
    #[inline(always)]
    pub(super) fn on_parcel(&mut self, parcel: Parcel, interface: InterfaceId) {
        if let Some(packet) = self.network.look_into(&parcel)
            && let Content::Tcp(segment) = &packet.body.content
            && !packet.body.altered
            && let Some(End::Subflow { endpoint, subflow }) =
                self.captures.flows[packet.flow as usize].receiver
        {
            let arrival = Arrival {
                congestion_experienced: packet.ecn == Ecn::Ce,
                corrupted: packet.corrupted,
                purpose: packet.body.purpose,
            };
            let now = self.network.now();
            let endpoint = endpoint as usize;
            let owns_nothing = segment.owns_nothing();
            let mut waits = false;
            if self.network.is_crowded() {
                self.prefetch(endpoint, subflow as usize);
            }
            if let Some(connection) = self.endpoints[endpoint].tcp_mut() {
                connection.take_in(subflow as usize, segment, arrival, now);
                waits = connection.processes_wait();
            }
            if owns_nothing {
                self.network.forget(parcel);
            } else {
                drop(self.network.take(parcel));
            }
            if !(waits && self.wait_for_others(endpoint)) {
                self.follow_up(endpoint);
            }
        } else {
            self.on_other_parcel(parcel, interface);
        }
    }

    #[inline(never)]
    fn on_other_parcel(&mut self, parcel: Parcel, interface: InterfaceId) {
        if let Some(packet) = self.network.take(parcel) {
            self.on_packet(packet, Some(interface));
        }
    }

    #[inline(always)]
    pub(super) fn on_packet(&mut self, mut packet: Packet<Body>, interface: Option<InterfaceId>) {
        let flow = packet.flow as usize;
        let receiver = match self.captures.flows[flow].receiver {
            Some(End::Middlebox { stand, forward }) => {
                return self.on_middlebox(stand as usize, forward, packet);
            }
            known => known,
        };
        if packet.body.altered {
            displace(&mut packet.body.content);
        }
        match packet.body.content {
            Content::Tcp(ref segment) => {
                let end = match receiver {
                    Some(end) => Some(end),
                    None => self.find_receiver(flow, &packet, interface),
                };
                let arrival = Arrival {
                    congestion_experienced: packet.ecn == Ecn::Ce,
                    corrupted: packet.corrupted,
                    purpose: packet.body.purpose,
                };
                let Some(End::Subflow { endpoint, subflow }) = end else {
                    return self.on_extra(end, segment, arrival);
                };
                let now = self.network.now();
                if let Some(connection) = self.endpoints[endpoint as usize].tcp_mut() {
                    connection.take_in(subflow as usize, segment, arrival, now);
                    if connection.processes_wait() && self.wait_for_others(endpoint as usize) {
                        return;
                    }
                }
                self.follow_up(endpoint as usize);
            }
            Content::Quic(_) => self.on_quic(flow, &mut packet),
            Content::Udp { .. } | Content::Echo { .. } => self.on_datagram(flow, &packet),
            Content::TooBig { .. } => self.on_too_big(&packet),
            Content::Frame(_) => {}
        }
    }

    /// Does what follows from an endpoint's change: its application, what it sends, what it tells, its timer.
    pub(super) fn follow_up(&mut self, index: usize) {
        if let Some(Carrier::Quic(_)) = self.endpoints[index].connection {
            return self.follow_up_quic(index);
        }
        self.run_application(index);
        let (told, sends) = match self.endpoints[index].tcp_mut() {
            Some(it) => (!it.events().is_empty(), !it.transmits().is_empty()),
            None => (false, false),
        };
        if told {
            self.tell_events(index);
        }
        if sends {
            self.transmit(index);
        }
        let endpoint = &self.endpoints[index];
        let deadline = endpoint.tcp().map_or(NEVER, Connection::next_deadline);
        self.set_timer(index, deadline);
    }

    /// Has an endpoint called when its connection's deadline comes, or its application wants it.
    #[inline(always)]
    pub(super) fn set_timer(&mut self, index: usize, deadline: Nanos) {
        let endpoint = &mut self.endpoints[index];
        let at = deadline.min(endpoint.wake);
        if at < endpoint.timer_at {
            endpoint.timer_at = at;
            self.network.set_timer(endpoint.timer, at);
        }
    }

    pub(super) fn run_application(&mut self, index: usize) {
        let now = self.network.now();
        let endpoint = &mut self.endpoints[index];
        let Some(connection) = endpoint.tcp_mut() else {
            return;
        };
        let arrived = connection.read(connection.available(), now);
        let established = connection.established();
        let at_end = connection.at_end();
        let came = Came {
            bytes: arrived,
            frames: None,
        };
        self.call_session(index, came, established, at_end);
    }

    /// Lets the application know of what came, if it is news.
    #[inline(always)]
    pub(super) fn call_session(
        &mut self,
        index: usize,
        came: Came,
        established: bool,
        at_end: bool,
    ) {
        let now = self.network.now();
        let endpoint = &mut self.endpoints[index];
        if came.bytes > 0 {
            endpoint.received += came.bytes;
            endpoint.first_byte_at.get_or_insert(now);
            endpoint.last_byte_at = Some(now);
        }
        let newly_established = established && endpoint.established_at.is_none();
        if newly_established {
            endpoint.established_at = Some(now);
        }
        let newly_at_end = !endpoint.end_seen && at_end;
        endpoint.end_seen |= newly_at_end;
        let woken = endpoint.wake <= now;
        let anything = came.bytes > 0 || came.frames.is_some();
        if !(anything || newly_established || newly_at_end || woken) {
            return;
        }
        if woken {
            endpoint.wake = NEVER;
        }
        let app = &mut self.apps[endpoint.application];
        if let (Some(session), Some(connection)) = (&mut app.session, &mut endpoint.connection) {
            session.run(&mut Io {
                now,
                side: endpoint.side,
                connection,
                written: &mut endpoint.written,
                captures: &mut self.captures,
                endpoint: index,
                arrived: came.bytes,
                frames: came.frames,
                wake: &mut endpoint.wake,
                requests: &mut app.requests,
                roused: &mut self.roused,
            });
            if !self.roused.is_empty() {
                self.rouse();
            }
        }
    }

    /// Calls the clients of applications that another application has news for.
    #[cold]
    fn rouse(&mut self) {
        let now = self.network.now();
        for application in std::mem::take(&mut self.roused) {
            if let Some(client) = self.apps[application].endpoint {
                self.endpoints[client].wake = now;
                self.set_timer(client, NEVER);
            }
        }
    }

    pub(super) fn transmit(&mut self, index: usize) {
        let mut transmits = std::mem::take(&mut self.transmits);
        if let Some(connection) = self.endpoints[index].tcp_mut() {
            std::mem::swap(connection.transmits(), &mut transmits);
        }
        for transmit in &mut transmits {
            self.transmit_one(index, transmit);
        }
        // What they owned was taken.
        transmits.drain(..).for_each(std::mem::forget);
        if transmits.capacity() <= KEPT_TRANSMITS {
            self.transmits = transmits;
        }
    }

    #[inline(always)]
    fn transmit_one(&mut self, index: usize, transmit: &mut Transmit) {
        let (subflow, purpose) = (transmit.subflow, transmit.purpose);
        let flow = self.flow_of(index, subflow);
        if self.host_queues || self.plan.record.segments {
            self.record_segment(index, transmit);
        }
        let endpoint = &self.endpoints[index];
        let Some(connection) = endpoint.tcp() else {
            transmit.segment = Segment::default();
            return;
        };
        let segment = &transmit.segment;
        let capable = connection.ecn_capable(subflow, segment, purpose);
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let flow_state = &mut self.captures.flows[flow as usize];
        let route = flow_state.route;
        if route.is_none() && !flow_state.here {
            let transmit = Transmit {
                segment: std::mem::take(&mut transmit.segment),
                ..*transmit
            };
            return self.transmit_to_queue(index, flow, transmit);
        }
        flow_state.sent = flow_state.sent.wrapping_add(1);
        let identification = flow_state.sent;
        let len =
            ip_header_len(flow_state.source) + header_len(segment) as u32 + segment.payload.len;
        let mut make = || Body {
            identification,
            altered: false,
            purpose,
            // What has a destructor is taken, and the rest copied, so that nothing is left to be written.
            content: Content::Tcp(Segment {
                rare: transmit.segment.rare.take(),
                sack: std::mem::take(&mut transmit.segment.sack),
                ..transmit.segment
            }),
        };
        match route {
            Some(route) if self.unwatched => {
                (self.network).inject_made(route, len, flow, ecn, make, &mut ());
            }
            route => self.dispatch(route, len, flow, ecn, make()),
        }
    }

    /// Records a segment that leaves, unless the host's queue gives it back.
    #[inline(never)]
    fn record_segment(&mut self, index: usize, transmit: &Transmit) {
        let subflow = transmit.subflow;
        let unsent = self.host_queues && self.taken_back(index, subflow, &transmit.segment);
        let endpoint = &self.endpoints[index];
        let Some(connection) = endpoint.tcp() else {
            return;
        };
        let socket = connection.subflows()[subflow].socket();
        if self.plan.record.segments && !unsent {
            let id = index as u32 / 2;
            let number = endpoint.number(subflow);
            self.recorder.segment(
                self.network.now(),
                id,
                endpoint.side,
                number,
                transmit,
                Origins {
                    sequence: (socket.initial_sequence(), socket.peer_initial_sequence()),
                    data: (
                        connection.data_sequence(0),
                        connection.peer_data_sequence(0),
                    ),
                    received: endpoint.received,
                    reached: (socket.totals().sent, socket.received()),
                },
            );
        }
    }

    /// The flow of a subflow in the direction from an endpoint; made at its first segment.
    #[inline(always)]
    pub(super) fn flow_of(&mut self, index: usize, subflow: usize) -> u32 {
        match self.endpoints[index].flows.get(subflow) {
            Some(&flow) => flow,
            None => self.make_flows(index, subflow),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_flows(&mut self, index: usize, subflow: usize) -> u32 {
        self.number_subflows(index);
        for subflow in self.endpoints[index].flows.len()..=subflow {
            let endpoint = &self.endpoints[index];
            let Some(connection) = &endpoint.connection else {
                break;
            };
            let tuple = connection.tuple(subflow);
            let (node, end) = (
                endpoint.node,
                End::Subflow {
                    endpoint: index as u32,
                    subflow: subflow as u32,
                },
            );
            let number = endpoint.number(subflow);
            let sender = End::Subflow {
                endpoint: index as u32,
                subflow: number,
            };
            let first_dsn = connection.tcp().and_then(|it| it.data_sequence(0));
            // A controller reads the first segment of TCP before it places the flow.
            let waits = self.controller.is_some() && connection.tcp().is_some();
            let gateways = self.gateways(index, subflow);
            let flow =
                self.unrouted_flow((tuple.local, tuple.remote), gateways, sender, index as u64);
            if !waits {
                self.route_flow(flow, node);
            }
            self.captures.flows[flow as usize].first_dsn = first_dsn;
            self.demultiplexer
                .insert(node, tuple.local, tuple.remote, end);
            self.find_host_queue(index, subflow, flow);
            self.endpoints[index].flows.push(flow);
            self.recall_mtu(index, subflow);
        }
        self.endpoints[index].flows[subflow]
    }

    /// Numbers the subflows that an endpoint opened: the next one of its connection each, whichever end opens it.
    pub(super) fn number_subflows(&mut self, index: usize) {
        let endpoint = &self.endpoints[index];
        let subflows = endpoint.tcp().map_or(0, |it| it.subflows().len());
        for _ in endpoint.numbers.len()..subflows {
            let known = [index, index ^ 1].map(|end| self.endpoints[end].numbers.iter().max());
            let next = known.into_iter().flatten().max().map_or(0, |last| last + 1);
            self.endpoints[index].numbers.push(next);
        }
    }

    /// The routers that a subflow is steered through: the server's answers come back the client's way (RFC 1122 section 4.2.3.8).
    fn gateways(&self, index: usize, subflow: usize) -> Vec<IpAddr> {
        let of = |endpoint: usize, subflow: usize| {
            let connection = self.endpoints[endpoint].connection.as_ref()?;
            connection.gateways(subflow)
        };
        match self.endpoints[index].side {
            Side::Client => of(index, subflow).map(<[_]>::to_vec).unwrap_or_default(),
            Side::Server => self.endpoints[index ^ 1]
                .numbered(self.endpoints[index].number(subflow))
                .and_then(|opposite| of(index ^ 1, opposite))
                .map(|way| way.iter().rev().copied().collect())
                .unwrap_or_default(),
        }
    }

    pub(super) fn new_flow(
        &mut self,
        node: usize,
        source: SocketAddr,
        destination: SocketAddr,
        gateways: Vec<IpAddr>,
        sender: End,
        stream: u64,
    ) -> u32 {
        let flow = self.unrouted_flow((source, destination), gateways, sender, stream);
        self.route_flow(flow, node);
        flow
    }

    fn unrouted_flow(
        &mut self,
        (source, destination): (SocketAddr, SocketAddr),
        gateways: Vec<IpAddr>,
        sender: End,
        stream: u64,
    ) -> u32 {
        self.captures.flows.push(Flow {
            gateways,
            sender,
            stream: random::mix(stream),
            receiver_node: self.receiver_node(destination.ip()),
            ..Flow::new(source, destination)
        });
        (self.captures.flows.len() - 1) as u32
    }

    /// Finds a flow's way from a node.
    pub(super) fn route_flow(&mut self, number: u32, node: usize) {
        if self.control.is_some() {
            // Its way is found when its first packet leaves, on whose protocol it depends.
            let here = self.is_local(&self.captures.flows[number as usize]);
            self.captures.flows[number as usize].here = here;
            return;
        }
        let mut flow = self.captures.flows[number as usize].clone();
        let node = NodeId(node as u32);
        if self.stands.is_empty() && self.controller.is_none() {
            let (label, ends) = (flow.label(), (flow.source.ip(), flow.destination.ip()));
            let found = (self.network).route_via(node, ends.0, &flow.gateways, ends.1, label);
            flow.route = found.ok();
        } else if let Some(path) = self.path(node, &flow) {
            self.lay(&mut flow, &path, None);
        }
        self.captures.flows[number as usize] = flow;
    }

    /// The node that owns an address.
    pub(super) fn receiver_node(&self, address: IpAddr) -> u32 {
        let topology = self.network.topology();
        let owner = topology
            .owner(address)
            .map(|interface| topology.node_of(interface));
        owner.and_then(Result::ok).map_or(0, |node| node.0)
    }

    pub(super) fn tell_events(&mut self, index: usize) {
        self.number_subflows(index);
        let endpoint = &mut self.endpoints[index];
        let Some(connection) = &mut endpoint.connection else {
            return;
        };
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
                // Of an abort the other end is still to hear.
                let ends = matches!(reason, CloseReason::Finished | CloseReason::Aborted);
                let failed = !ends && side == Side::Client;
                let peer = &self.endpoints[index ^ 1];
                if failed || peer.ended_at.is_some() {
                    self.finish_application(application);
                }
                return;
            }
        }
    }
}

/// To an endpoint, payload that a middlebox changed is that of another place in the stream.
#[cold]
fn displace(content: &mut Content) {
    if let Content::Tcp(segment) = content {
        segment.payload.offset = segment.payload.offset.wrapping_add(1);
    }
}

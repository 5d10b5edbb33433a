//! Connections in the run: how they begin, and where their packets and events go.

use polypath_net::{InterfaceId, Packet, Parcel, random};
use polypath_transport::{
    Accept, Arrival, CloseReason, Connection, EventKind, NEVER, Segment, Transmit, Tuple,
    connect_without_route,
};
use polypath_wire::tcp::header_len;

use crate::application::{Frames, Io, Side};
use crate::carrier::Carrier;
use crate::endpoint::{ALL, Endpoint};
use crate::flow::{Body, Content, End, codepoint, ecn, ip_header_len};
use crate::record::sampled;
use crate::stream_offsets::Origins;

use super::Hosts;
use super::events::{is_down, lacks_address};
use super::tunnel_entry::enter;
use crate::simulation::apps::Apps;
use crate::simulation::world::Owner;
use crate::simulation::world::{World, route_unbound};

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

impl Hosts {
    pub fn start(&mut self, world: &mut World, application: usize) {
        let settings = &self.plan.applications[application];
        let (client, server) = (settings.client, settings.server);
        if self.apps[application].datagrams.is_some() {
            let nodes = (client, server);
            return self.apps.start_datagrams(world, application, nodes);
        }
        if !settings.transport.has_connection() {
            let ends = (client, self.apps[application].addresses);
            return self.tunnels.begin(world, application, ends);
        }
        let first = self.endpoints.len();
        for (offset, (side, node)) in [(Side::Client, client), (Side::Server, server)]
            .into_iter()
            .enumerate()
        {
            let timer = world.new_timer(Owner::Endpoint(first + offset));
            let mut endpoint = Endpoint::new(node, side, timer, application);
            let session = self.apps[application].session.as_ref();
            endpoint.holds = session.and_then(|it| it.holds(side)).unwrap_or(ALL);
            self.endpoints.push(endpoint);
        }
        let (source, destination) = self.apps[application].addresses;
        let tuple = Tuple {
            local: (source.ip(), self.hosts[client].ports.next()).into(),
            remote: destination,
        };
        self.apps[application].endpoint = Some(first);
        if world.keeps_accounts() {
            self.open_accounts(world, first);
        }
        let now = world.net.now();
        if self.plan.applications[application].transport.is_quic() {
            return self.start_quic(world, first, tuple);
        }
        let down = is_down(self, client, source.ip());
        let connection = self.make(Stream::endpoint(first), first, |host| {
            if down && host.config.profile.connects_by_route() {
                return connect_without_route(host, tuple, now);
            }
            Connection::connect(host, tuple, now)
        });
        self.begin(world, first, connection, 0);
        self.follow_up(world, first);
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
                .is_some_and(|token| self.hosts[endpoint.node].named(token).is_some());
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
        let host = &self.hosts[endpoint.node];
        let interfaces = self.plan.nodes[endpoint.node].interfaces.iter();
        Accept {
            config: config.clone(),
            algorithms: self.algorithms.clone(),
            addresses: interfaces
                .enumerate()
                .flat_map(|(number, interface)| {
                    let changed = host.interfaces.backup(number);
                    let backup = changed.unwrap_or(interface.backup);
                    let addresses = interface.addresses.iter().filter(|address| {
                        let (application, side) = (endpoint.application, endpoint.side);
                        !self.tunnels.leaves_out(application, side, **address)
                    });
                    addresses.map(move |address| (*address, backup))
                })
                .collect(),
            mtus: host.mtus.clone(),
            ports: host.ports.clone(),
            black_holes: host.black_holes.clone(),
            sessions: host.sessions.clone(),
            retained: host.retained.clone(),
            random: random::stream(
                self.plan.seed,
                stream.of,
                stream.number as u64 | attempt << 32,
                "transport",
            ),
            isn: None,
        }
    }

    pub(super) fn begin(
        &mut self,
        world: &mut World,
        index: usize,
        connection: Connection,
        number: u32,
    ) {
        let endpoint = &mut self.endpoints[index];
        if let Some(token) = connection.token() {
            self.hosts[endpoint.node].add_token(token, index);
        }
        endpoint.connection = Some(Carrier::Tcp(connection));
        endpoint.numbers.push(number);
        self.tell_what_changed(world, index);
    }

    /// A packet arrived at the end of its route. A segment of TCP whose receiver is known is looked at where it lies.
    #[inline(always)]
    pub fn on_parcel(&mut self, world: &mut World, parcel: Parcel, interface: InterfaceId) {
        if let Some(packet) = world.net.look_into(&parcel)
            && let Content::Tcp(segment) = &packet.body.content
            && !packet.body.altered
            && let Some(End::Subflow { endpoint, subflow }) = world.net.flow(packet.flow).receiver
        {
            let arrival = Arrival {
                ecn: codepoint(packet.ecn),
                corrupted: packet.corrupted,
                purpose: packet.body.purpose,
            };
            let now = world.net.now();
            let endpoint = endpoint as usize;
            let owns_nothing = segment.owns_nothing();
            let mut waits = false;
            if world.net.is_crowded() {
                world
                    .net
                    .prefetch(&self.endpoints[endpoint], subflow as usize);
            }
            if let Some(connection) = self.endpoints[endpoint].tcp_mut() {
                connection.take_in(subflow as usize, segment, arrival, now);
                waits = connection.processes_wait();
            }
            if owns_nothing {
                world.net.forget(parcel);
            } else {
                drop(world.net.take(parcel));
            }
            if !(waits && self.wait_for_others(world, endpoint)) {
                self.follow_up(world, endpoint);
            }
        } else {
            self.on_other_parcel(world, parcel, interface);
        }
    }

    #[inline(never)]
    fn on_other_parcel(&mut self, world: &mut World, parcel: Parcel, interface: InterfaceId) {
        if let Some(packet) = world.net.take(parcel) {
            self.on_packet(world, packet, Some(interface));
        }
    }

    #[inline(always)]
    pub fn on_packet(
        &mut self,
        world: &mut World,
        mut packet: Packet<Body>,
        interface: Option<InterfaceId>,
    ) {
        let flow = packet.flow;
        let receiver = match world.net.flow(flow).receiver {
            Some(End::Middlebox { stand, forward }) => {
                return world.on_middlebox(stand as usize, forward, packet);
            }
            Some(End::Tunnel { tunnel, to_server }) => {
                return enter(self, world, (tunnel as usize, to_server), packet);
            }
            known => known,
        };
        if self.any_went_down && lacks_address(self, world, flow, interface) {
            return;
        }
        if packet.body.altered {
            displace(&mut packet.body.content);
        }
        match packet.body.content {
            Content::Tcp(ref segment) => {
                let end = match receiver {
                    Some(end) => Some(end),
                    None => self.find_receiver(world, flow, &packet, interface),
                };
                let arrival = Arrival {
                    ecn: codepoint(packet.ecn),
                    corrupted: packet.corrupted,
                    purpose: packet.body.purpose,
                };
                let Some(End::Subflow { endpoint, subflow }) = end else {
                    return self.on_extra(world, end, segment, arrival);
                };
                let now = world.net.now();
                if let Some(connection) = self.endpoints[endpoint as usize].tcp_mut() {
                    connection.take_in(subflow as usize, segment, arrival, now);
                    if connection.processes_wait() && self.wait_for_others(world, endpoint as usize)
                    {
                        return;
                    }
                }
                self.follow_up(world, endpoint as usize);
            }
            Content::Quic(_) => self.on_quic(world, flow, &mut packet),
            Content::Udp { .. } | Content::Echo { .. } => {
                if !(self.tunnels.any() && self.tunnels.on_line(world, &packet)) {
                    self.apps.on_datagram(world, flow, &packet);
                }
            }
            Content::TooBig { .. } => self.on_too_big(world, &packet),
            Content::Frame(_) => {}
        }
    }

    /// Does what follows from an endpoint's change: its application, what it sends, what it tells, its timer.
    pub(super) fn follow_up(&mut self, world: &mut World, index: usize) {
        let now = world.net.now();
        let endpoint = &mut self.endpoints[index];
        let Some(Carrier::Tcp(connection)) = &mut endpoint.connection else {
            return self.follow_up_other(world, index);
        };
        let came = Came {
            bytes: connection.read(endpoint.holds, now),
            frames: None,
        };
        let (established, at_end) = (connection.established(), connection.at_end());
        let called = call_session(
            (index, endpoint),
            &mut self.apps,
            world,
            came,
            established,
            at_end,
        );
        let (told, sends) = match endpoint.tcp_mut() {
            Some(it) => (!it.events().is_empty(), it.has_transmits()),
            None => (false, false),
        };
        if called && self.apps.rouses() {
            self.rouse(world);
        }
        if told {
            self.tell_events(world, index);
        }
        if sends {
            self.transmit(world, index);
        }
        let endpoint = &mut self.endpoints[index];
        let deadline = endpoint.tcp().map_or(NEVER, Connection::next_deadline);
        world.net.call_at(endpoint, deadline);
        if world.keeps_accounts() {
            world.note_in_account(index, &self.endpoints[index]);
        }
    }

    /// As [`Hosts::follow_up`], where there is no connection of TCP.
    #[inline(never)]
    fn follow_up_other(&mut self, world: &mut World, index: usize) {
        match self.endpoints[index].connection {
            Some(_) => self.follow_up_quic(world, index),
            None => world.net.call_at(&mut self.endpoints[index], NEVER),
        }
    }

    /// Calls ends of applications that another application has news for. A relay's connection begins with that.
    #[cold]
    pub(super) fn rouse(&mut self, world: &mut World) {
        let now = world.net.now();
        for (application, side) in self.apps.take_roused() {
            if let Some(first) = self.apps[application].endpoint {
                let end = &mut self.endpoints[first + side as usize];
                end.wake = now;
                world.net.call_at(end, NEVER);
            } else if self.plan.applications[application].work.relays().is_some() {
                self.start(world, application);
            }
        }
    }

    pub(super) fn transmit(&mut self, world: &mut World, index: usize) {
        let mut transmits = std::mem::take(&mut self.room.transmits);
        if let Some(connection) = self.endpoints[index].tcp_mut() {
            std::mem::swap(connection.transmits(), &mut transmits);
        }
        for transmit in &mut transmits {
            self.transmit_one(world, index, transmit);
        }
        // What they owned was taken.
        transmits.drain(..).for_each(std::mem::forget);
        if transmits.capacity() <= KEPT_TRANSMITS {
            self.room.transmits = transmits;
        }
    }

    #[inline(always)]
    fn transmit_one(&mut self, world: &mut World, index: usize, transmit: &mut Transmit) {
        let endpoint = &self.endpoints[index];
        match (endpoint.flows.get(transmit.subflow), endpoint.tcp()) {
            (Some(&flow), Some(connection)) if !self.looks_at_segments => {
                if !put_on_route(connection, world, flow, transmit) {
                    self.transmit_to_queue(world, index, flow, taken(transmit));
                }
            }
            _ => self.transmit_first(world, index, transmit),
        }
    }

    /// As [`Hosts::transmit_one`], for the first segment of a subflow, and where segments are looked at.
    #[inline(never)]
    fn transmit_first(&mut self, world: &mut World, index: usize, transmit: &mut Transmit) {
        let flow = self.flow_of(world, index, transmit.subflow);
        if self.looks_at_segments {
            self.record_segment(world, index, transmit);
        }
        let Some(connection) = self.endpoints[index].tcp() else {
            transmit.segment = Segment::default();
            return;
        };
        if !put_on_route(connection, world, flow, transmit) {
            self.transmit_to_queue(world, index, flow, taken(transmit));
        }
    }

    /// Records a segment that leaves, unless the host's queue gives it back.
    #[inline(never)]
    fn record_segment(&mut self, world: &mut World, index: usize, transmit: &Transmit) {
        let subflow = transmit.subflow;
        let unsent =
            self.host_queues && self.endpoints[index].took_back(subflow, &transmit.segment);
        let endpoint = &self.endpoints[index];
        let Some(connection) = endpoint.tcp() else {
            return;
        };
        let socket = connection.subflows()[subflow].socket();
        if self.plan.record.segments && !unsent {
            let id = index as u32 / 2;
            let number = endpoint.number(subflow);
            let now = world.net.now();
            world.recorder().segment(
                now,
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
                    received: endpoint.received.bytes,
                    reached: (socket.totals().sent, socket.received()),
                },
            );
        }
    }

    /// The flow of a subflow in the direction from an endpoint; made at its first segment.
    #[inline(always)]
    pub(super) fn flow_of(&mut self, world: &mut World, index: usize, subflow: usize) -> u32 {
        match self.endpoints[index].flows.get(subflow) {
            Some(&flow) => flow,
            None => self.make_flows(world, index, subflow),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_flows(&mut self, world: &mut World, index: usize, subflow: usize) -> u32 {
        self.endpoints.number_subflows(index);
        self.endpoints.number_paths(index);
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
            let waits = world.reads_first_segments() && connection.tcp().is_some();
            let answers = (connection.tcp()).is_some_and(|it| !it.subflows()[subflow].opened_here);
            let gateways = self.endpoints.gateways(index, subflow);
            let flow =
                world.unrouted_flow((tuple.local, tuple.remote), gateways, sender, index as u64);
            if !waits && answers {
                route_unbound(world, flow, node);
            } else if !waits {
                world.route_flow(flow, node);
            }
            world.net.flow_mut(flow).first_dsn = first_dsn;
            self.demultiplexer
                .insert(node, tuple.local, tuple.remote, end);
            self.find_host_queue(world, index, subflow, flow);
            self.endpoints[index].flows.push(flow);
            world.place_in_account(index, number, flow);
            self.recall_mtu(index, subflow);
        }
        self.endpoints[index].flows[subflow]
    }

    pub(super) fn tell_events(&mut self, world: &mut World, index: usize) {
        self.endpoints.number_subflows(index);
        let endpoint = &mut self.endpoints[index];
        let Some(connection) = &mut endpoint.connection else {
            return;
        };
        let id = index as u32 / 2;
        for event in std::mem::take(connection.events()) {
            let numbers = &endpoint.numbers;
            let number = |subflow: usize| numbers.get(subflow).copied().unwrap_or(subflow as u32);
            world
                .recorder()
                .transport_event(event.at, id, endpoint.node, &event.kind, number);
            if let Some(subflow) = sampled(&event.kind) {
                world.recorder().sample_subflow(
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
                    self.apps.finish(application);
                }
                return;
            }
        }
    }
}

/// A transmit with its segment, of which it keeps nothing that is owned.
fn taken(transmit: &mut Transmit) -> Transmit {
    Transmit {
        segment: std::mem::take(&mut transmit.segment),
        ..*transmit
    }
}

/// Puts a segment on its flow's route. False: that has none of its own.
#[inline(always)]
fn put_on_route(
    connection: &Connection,
    world: &mut World,
    flow: u32,
    transmit: &mut Transmit,
) -> bool {
    let (segment, purpose) = (&transmit.segment, transmit.purpose);
    let ecn = ecn(connection.ecn_field(transmit.subflow, segment, purpose));
    let state = world.net.flow_mut(flow);
    let route = state.route;
    if route.is_none() && !state.here {
        return false;
    }
    state.sent = state.sent.wrapping_add(1);
    let identification = state.sent;
    let len = ip_header_len(state.source) + header_len(segment) as u32 + segment.payload.len;
    let make = || Body {
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
    world.dispatch_made(route, len, flow, ecn, make);
    true
}

/// Lets an endpoint's application know of what came, if it is news. True: it was called.
#[inline(always)]
pub(super) fn call_session(
    (index, endpoint): (usize, &mut Endpoint),
    apps: &mut Apps,
    world: &mut World,
    came: Came,
    established: bool,
    at_end: bool,
) -> bool {
    let now = world.net.now();
    endpoint.received.add(came.bytes, now);
    let newly_established = established && endpoint.established_at.is_none();
    if newly_established {
        endpoint.established_at = Some(now);
    }
    let newly_at_end = !endpoint.end_seen && at_end;
    endpoint.end_seen |= newly_at_end;
    let woken = endpoint.wake <= now;
    let anything = came.bytes > 0 || came.frames.is_some();
    let news = anything || newly_established || newly_at_end || woken;
    if !news && endpoint.holds == ALL && !endpoint.wants_stream {
        return false;
    }
    if woken {
        endpoint.wake = NEVER;
    }
    let (app, roused) = apps.with_roused(endpoint.application);
    let (Some(session), Some(connection)) = (&mut app.session, &mut endpoint.connection) else {
        return false;
    };
    session.run(&mut Io {
        now,
        side: endpoint.side,
        connection,
        written: &mut endpoint.written,
        captures: world.net.captures_mut(),
        endpoint: index,
        arrived: came.bytes,
        frames: came.frames,
        wake: &mut endpoint.wake,
        holds: &mut endpoint.holds,
        wants_stream: &mut endpoint.wants_stream,
        requests: &mut app.requests,
        roused,
    });
    true
}

/// To an endpoint, payload that a middlebox changed is that of another place in the stream.
#[cold]
fn displace(content: &mut Content) {
    if let Content::Tcp(segment) = content {
        segment.payload.offset = segment.payload.offset.wrapping_add(1);
    }
}

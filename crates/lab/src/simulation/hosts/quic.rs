//! Connections of QUIC in the run: the receiver of a datagram, and the path of the datagrams that endpoints send.

use polypath_net::{Ecn, Packet, random};
use polypath_transport::quic::bytes::first_destination;
use polypath_transport::quic::{Connection, Greeting, Listener, Transmit, answer_bytes};
use polypath_transport::{Purpose, Tuple};
use polypath_wire::quic::Datagram;

use super::Hosts;
use super::connections::{Came, Stream, call_session};
use crate::carrier::Carrier;
use crate::flow::{
    Body, Content, DATAGRAM_HEADER, End, Sealed, codepoint, ecn as network_ecn, ip_header_len,
};
use crate::names::Names;
use crate::other_stack::Departure;
use crate::qlog::Owner;
use crate::quic::Quic;
use crate::simulation::world::World;

impl Hosts {
    /// Begins an application's connection at its client.
    pub(super) fn start_quic(&mut self, world: &mut World, index: usize, tuple: Tuple) {
        let host = self.host(Stream::endpoint(index), index, 0);
        let now = world.net.now();
        let connection = match self.stacks.of(&self.endpoints[index]) {
            Some(stack) => Quic::Other(stack.connect(host, tuple, Names::of(index), now)),
            None => self.ours(world, index, Connection::connect(host, tuple, now)),
        };
        self.begin_quic(world, index, connection);
        self.follow_up(world, index);
    }

    fn ours<E: std::fmt::Debug>(
        &self,
        world: &mut World,
        index: usize,
        made: Result<Connection, E>,
    ) -> Quic {
        let mut connection = made.expect("the plan's algorithms were checked before the run");
        if self.plan.record.decisions {
            connection.record_decisions();
        }
        let real = self.stacks.of(&self.endpoints[index ^ 1]).is_some();
        Quic::ours(
            connection,
            Names::of(index),
            world.net.captures().shows_bytes(),
            real,
        )
    }

    fn begin_quic(&mut self, world: &mut World, index: usize, mut connection: Quic) {
        let endpoint = &mut self.endpoints[index];
        let owner = Owner {
            name: &self.plan.applications[endpoint.application].name,
            host: &self.plan.nodes[endpoint.node].name,
            side: endpoint.side,
        };
        let now = world.net.now();
        if let Some(connection) = connection.own_mut() {
            world.qlogs().begin(index, &owner, connection, now);
        }
        endpoint.connection = Some(Carrier::Quic(Box::new(connection)));
        endpoint.numbers.push(0);
        self.tell_what_changed(world, index);
    }

    /// As [`Hosts::follow_up`], for a connection of QUIC.
    #[inline(never)]
    pub(super) fn follow_up_quic(&mut self, world: &mut World, index: usize) {
        let now = world.net.now();
        let endpoint = &mut self.endpoints[index];
        let Some(Carrier::Quic(connection)) = &mut endpoint.connection else {
            return;
        };
        let frames = self.room.frames.get_or_insert_default();
        let news = connection.read(now, frames);
        let (established, at_end) = connection.standing();
        let came = match news {
            true => Came {
                bytes: frames.streams.iter().map(|stream| stream.1).sum(),
                frames: Some(&mut *frames),
            },
            false => Came {
                bytes: 0,
                frames: None,
            },
        };
        let end = (index, &mut *endpoint);
        let called = call_session(end, &mut self.apps, world, came, established, at_end);
        if news {
            if self.tunnels.any() {
                let end = (endpoint.application, endpoint.side);
                self.tunnels.on_frames(world, end, frames);
            }
            endpoint
                .received
                .add(std::mem::take(&mut frames.taken), now);
            frames.streams.clear();
            frames.datagrams.clear();
        }
        let told = endpoint.quic().is_some_and(Quic::has_events);
        if called && self.apps.rouses() {
            self.rouse(world);
        }
        if told {
            self.endpoints.number_paths(index);
            self.tell_events(world, index);
        }
        self.transmit_quic(world, index);
        if world.qlogs().active()
            && let Some(own) = self.endpoints[index].quic().and_then(Quic::own)
        {
            world.qlogs().with(index, |log| log.measure(own, now));
        }
        let endpoint = &mut self.endpoints[index];
        if let Some(deadline) = endpoint.quic().map(Quic::deadline) {
            world.net.call_at(endpoint, deadline);
        }
        if world.keeps_accounts() {
            world.note_in_account(index, &self.endpoints[index]);
        }
    }

    /// A datagram came to the end of its flow.
    #[inline(never)]
    pub(super) fn on_quic(&mut self, world: &mut World, flow: u32, packet: &mut Packet<Body>) {
        let Content::Quic(sealed) = &mut packet.body.content else {
            return;
        };
        // Packet protection finds what was spoiled (RFC 9001 section 5.3).
        if packet.corrupted || packet.body.altered {
            let (to, now) = (world.net.flow(flow).sender.opposite(), world.net.now());
            if let (Some(index), Some(datagram)) = (to.endpoint(), &sealed.datagram) {
                world
                    .qlogs()
                    .with(index as usize, |log| log.spoiled(datagram, now));
            }
            return;
        }
        let known = world.net.flow(flow);
        let tuple = Tuple {
            local: known.destination,
            remote: known.source,
        };
        let (node, sender) = (known.receiver_node as usize, known.sender);
        let len = packet.len - DATAGRAM_HEADER - ip_header_len(tuple.local);
        let Some(index) = self.quic_endpoint(world, node, sender, &tuple, sealed, len) else {
            return;
        };
        let now = world.net.now();
        let ecn = codepoint(packet.ecn);
        if let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection {
            connection.receive(tuple, sealed, len, ecn, packet.body.purpose, now);
            if world.qlogs().active()
                && let (Some(own), Some(datagram)) = (connection.own_mut(), &sealed.datagram)
            {
                world
                    .qlogs()
                    .with(index, |log| log.received(own, datagram, now));
            }
        }
        if let Some(datagram) = sealed.datagram.take() {
            self.room.spares.put(datagram);
        }
        self.follow_up_quic(world, index);
    }

    /// Whose a datagram is: by its destination connection id, which a listener makes a connection for where it is a client's first
    /// (RFC 9000 section 5.2). A stack by others keeps its ids to itself: there it is the application that the datagram comes from.
    #[inline(always)]
    fn quic_endpoint(
        &mut self,
        world: &mut World,
        node: usize,
        sender: End,
        tuple: &Tuple,
        sealed: &Sealed,
        len: u32,
    ) -> Option<usize> {
        let first = match &sealed.datagram {
            Some(datagram) => Some(datagram.packets.first()?),
            None => None,
        };
        let real = sealed.datagram.is_none();
        let knows = |index: usize| {
            let endpoint = &self.endpoints[index];
            let connection = endpoint.quic();
            endpoint.node == node
                && connection.is_some_and(|it| first.is_none_or(|packet| it.knows(packet)))
        };
        let likely = sender.opposite().endpoint().map(|index| index as usize);
        if let Some(index) = likely.filter(|&index| knows(index)) {
            return Some(index);
        }
        let other = (0..self.endpoints.len()).find(|&index| !real && knows(index));
        other.or_else(|| self.greet_quic(world, node, likely, *tuple, sealed, len))
    }

    /// The endpoint that a listener makes for a client's first datagram.
    #[cold]
    fn greet_quic(
        &mut self,
        world: &mut World,
        node: usize,
        likely: Option<usize>,
        tuple: Tuple,
        sealed: &Sealed,
        len: u32,
    ) -> Option<usize> {
        let index = likely.filter(|&index| {
            let endpoint = &self.endpoints[index];
            endpoint.connection.is_none() && endpoint.listens(&self.plan, node, tuple.local.port())
        })?;
        let now = world.net.now();
        let host = self.host(Stream::endpoint(index), index, 0);
        if let Some(stack) = self.stacks.of(&self.endpoints[index]) {
            first_destination(&sealed.bytes)?;
            let connection = stack.accept(host, tuple, Names::of(index));
            self.begin_quic(world, index, Quic::Other(connection));
            return Some(index);
        }
        let seed = random::mix(self.plan.seed ^ random::mix(node as u64));
        let listener = Listener::new(host.config.retry, seed);
        let greeting = match &sealed.datagram {
            Some(datagram) => listener.greet(tuple, datagram, len, now),
            None => listener.greet_bytes(tuple, &sealed.bytes, now),
        };
        match greeting {
            Greeting::Accept(admission) => {
                let connection =
                    self.ours(world, index, Connection::admit(host, tuple, admission, now));
                self.begin_quic(world, index, connection);
                Some(index)
            }
            Greeting::Answer(answer) => {
                self.answer_quic(world, index, tuple, answer);
                None
            }
            Greeting::Ignore => None,
        }
    }

    /// What a listener says before there is a connection.
    fn answer_quic(&mut self, world: &mut World, index: usize, tuple: Tuple, datagram: Datagram) {
        let node = self.endpoints[index].node;
        let sender = End::Subflow {
            endpoint: index as u32,
            subflow: 0,
        };
        let ends = (tuple.local, tuple.remote);
        let flow = world.new_flow(node, ends.0, ends.1, Vec::new(), sender, index as u64);
        let real = self.stacks.of(&self.endpoints[index ^ 1]).is_some();
        let bytes = match world.net.captures().shows_bytes() || real {
            true => answer_bytes(&datagram),
            false => Vec::new(),
        };
        let len = datagram.len();
        let datagram = (!real).then_some(datagram);
        let sealed = Sealed { datagram, bytes };
        world.send_quic(flow, len, Ecn::NotEct, Purpose::Control, sealed);
    }

    /// Puts the datagrams that an endpoint sends on their routes.
    fn transmit_quic(&mut self, world: &mut World, index: usize) {
        let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection else {
            return;
        };
        let now = world.net.now();
        let Some(own) = connection.own_mut() else {
            return self.transmit_bytes(world, index);
        };
        let logs = world.qlogs().active();
        if logs {
            world.qlogs().with(index, |log| log.notice(own, now));
        }
        if own.transmits().is_empty() {
            if world.net.captures().active() {
                self.log_secrets(world, index);
            }
            return;
        }
        let mut departing = std::mem::take(&mut self.room.departing);
        std::mem::swap(own.transmits(), &mut departing);
        own.spares().replenish(&mut self.room.spares);
        if logs {
            world.qlogs().with(index, |log| {
                departing
                    .iter()
                    .try_for_each(|each| log.sent(own, each.path, each.len, &each.datagram, now))
            });
        }
        let (seals, real) = (connection.seals(), connection.real());
        // A capture has the secrets before the packets that they decrypt.
        if world.net.captures().active() {
            self.log_secrets(world, index);
        }
        if self.looks_at_segments && self.plan.record.segments {
            self.endpoints.number_paths(index);
            let endpoint = &self.endpoints[index];
            for sent in &departing {
                let number = endpoint.number(sent.path);
                let (id, side, purpose) = (index as u32 / 2, endpoint.side, sent.purpose);
                world
                    .recorder()
                    .packets(now, id, side, number, purpose, &sent.datagram);
            }
        }
        for transmit in departing.drain(..) {
            let Transmit {
                path,
                ref tuple,
                datagram,
                len,
                purpose,
                ecn,
                steady,
            } = transmit;
            let bytes = match self.endpoints[index].quic_mut() {
                Some(connection) if seals => connection.seal(&datagram),
                _ => Vec::new(),
            };
            let made = self.endpoints[index].flows.get(path);
            let flow = match made {
                Some(&flow) if steady => flow,
                _ => self.quic_flow(world, index, path, *tuple),
            };
            let ecn = network_ecn(ecn);
            let datagram = (!real).then_some(datagram);
            world.send_quic(flow, len, ecn, purpose, Sealed { datagram, bytes });
        }
        self.room.departing = departing;
    }

    #[cold]
    fn log_secrets(&mut self, world: &mut World, index: usize) {
        if let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection {
            let secrets = connection.take_secrets();
            world.net.captures_mut().secrets(&secrets);
        }
    }

    fn transmit_bytes(&mut self, world: &mut World, index: usize) {
        let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection else {
            return;
        };
        let departures = connection.departures();
        if world.net.captures().active() {
            self.log_secrets(world, index);
        }
        self.endpoints.number_paths(index);
        for departure in departures {
            let Departure {
                lane,
                tuple,
                bytes,
                ecn,
            } = departure;
            let flow = self.quic_flow(world, index, lane, tuple);
            let ecn = network_ecn(ecn);
            let len = bytes.len() as u32;
            let datagram = None;
            let sealed = Sealed { datagram, bytes };
            world.send_quic(flow, len, ecn, Purpose::Data, sealed);
        }
    }

    /// The flow of a datagram: its path's, or another one once the peer's address has changed (RFC 9000 section 9).
    fn quic_flow(&mut self, world: &mut World, index: usize, lane: usize, tuple: Tuple) -> u32 {
        let flow = self.flow_of(world, index, lane);
        let known = world.net.flow(flow);
        if (known.source, known.destination) == (tuple.local, tuple.remote) {
            return flow;
        }
        let (gateways, sender) = (known.gateways.clone(), known.sender);
        let node = self.endpoints[index].node;
        let flow = world.new_flow(
            node,
            tuple.local,
            tuple.remote,
            gateways,
            sender,
            index as u64,
        );
        self.endpoints[index].flows[lane] = flow;
        world.place_in_account(index, self.endpoints[index].number(lane), flow);
        flow
    }
}

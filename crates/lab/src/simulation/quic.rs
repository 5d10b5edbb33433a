//! Connections of QUIC in the run: whose a datagram is, and what becomes of those that endpoints send.

use polypath_net::{Ecn, Packet, random};
use polypath_transport::quic::bytes::first_destination;
use polypath_transport::quic::{Codepoint, Connection, Greeting, Listener, Transmit, answer_bytes};
use polypath_transport::{Purpose, Tuple};
use polypath_wire::quic::Datagram;

use super::Simulation;
use super::connections::{Came, Stream};
use super::switches::UDP;
use crate::application::Side;
use crate::carrier::Carrier;
use crate::endpoint::Endpoint;
use crate::flow::{Body, Content, End, Sealed, ip_header_len};
use crate::names::Names;
use crate::other_stack::{Departure, OtherStack};
use crate::qlog::Owner;
use crate::quic::Quic;

const UDP_HEADER: u32 = 8;

impl Simulation {
    /// Begins an application's connection at its client.
    pub(super) fn start_quic(&mut self, index: usize, tuple: Tuple) {
        let host = self.host(Stream::endpoint(index), index, 0);
        let now = self.network.now();
        let connection = match self.other_stack(index) {
            Some(stack) => Quic::Other(stack.connect(host, tuple, Names::of(index), now)),
            None => self.ours(index, Connection::connect(host, tuple, now)),
        };
        self.begin_quic(index, connection);
        self.follow_up(index);
    }

    /// An endpoint's stack, where that is one by others.
    fn other_stack(&self, index: usize) -> Option<&dyn OtherStack> {
        let endpoint = &self.endpoints[index];
        self.stacks.get(&endpoint.application)?[endpoint.side as usize].as_deref()
    }

    fn ours<E: std::fmt::Debug>(&self, index: usize, made: Result<Connection, E>) -> Quic {
        let mut connection = made.expect("the plan's algorithms were checked before the run");
        if self.plan.record.decisions {
            connection.record_decisions();
        }
        let real = self.other_stack(index ^ 1).is_some();
        Quic::ours(
            connection,
            Names::of(index),
            self.captures.shows_bytes(),
            real,
        )
    }

    fn begin_quic(&mut self, index: usize, mut connection: Quic) {
        let endpoint = &mut self.endpoints[index];
        let owner = Owner {
            name: &self.plan.applications[endpoint.application].name,
            host: &self.plan.nodes[endpoint.node].name,
            side: endpoint.side,
        };
        let now = self.network.now();
        if let Some(connection) = connection.own_mut() {
            self.qlogs.begin(index, &owner, connection, now);
        }
        endpoint.connection = Some(Carrier::Quic(Box::new(connection)));
        endpoint.numbers.push(0);
        self.tell_what_is_down(index);
    }

    /// As [`Simulation::follow_up`], for a connection of QUIC.
    #[inline(never)]
    pub(super) fn follow_up_quic(&mut self, index: usize) {
        let now = self.network.now();
        let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection else {
            return;
        };
        let frames = self.frames.get_or_insert_default();
        let news = connection.read(now, frames);
        let (established, at_end) = connection.standing();
        if news {
            self.hand_over(index, established, at_end);
        } else {
            let came = Came {
                bytes: 0,
                frames: None,
            };
            self.call_session(index, came, established, at_end);
        }
        if let Some(Carrier::Quic(connection)) = &self.endpoints[index].connection
            && connection.has_events()
        {
            self.tell_events(index);
        }
        self.transmit_quic(index);
        if self.qlogs.active() {
            self.log_measures(index);
        }
        if let Some(Carrier::Quic(connection)) = &self.endpoints[index].connection {
            self.set_timer(index, connection.deadline());
        }
    }

    #[cold]
    fn log_measures(&mut self, index: usize) {
        let now = self.network.now();
        if let Some(Carrier::Quic(connection)) = &self.endpoints[index].connection
            && let Some(own) = connection.own()
        {
            self.qlogs.with(index, |log| log.measure(own, now));
        }
    }

    /// Hands what a connection brought to its application.
    fn hand_over(&mut self, index: usize, established: bool, at_end: bool) {
        let Some(mut frames) = self.frames.take() else {
            return;
        };
        let came = Came {
            bytes: frames.streams.iter().map(|stream| stream.1).sum(),
            frames: Some(&mut frames),
        };
        self.call_session(index, came, established, at_end);
        let taken = std::mem::take(&mut frames.taken);
        if taken > 0 {
            let now = self.network.now();
            let endpoint = &mut self.endpoints[index];
            endpoint.received += taken;
            endpoint.first_byte_at.get_or_insert(now);
            endpoint.last_byte_at = Some(now);
        }
        frames.streams.clear();
        frames.datagrams.clear();
        self.frames = Some(frames);
    }

    /// A datagram came to the end of its flow.
    #[inline(never)]
    pub(super) fn on_quic(&mut self, flow: usize, packet: &mut Packet<Body>) {
        let Content::Quic(sealed) = &mut packet.body.content else {
            return;
        };
        // Packet protection finds what was spoiled (RFC 9001 section 5.3).
        if packet.corrupted || packet.body.altered {
            let (to, now) = (
                self.captures.flows[flow].sender.opposite(),
                self.network.now(),
            );
            if let (Some(index), Some(datagram)) = (to.endpoint(), &sealed.datagram) {
                self.qlogs
                    .with(index as usize, |log| log.spoiled(datagram, now));
            }
            return;
        }
        let known = &self.captures.flows[flow];
        let tuple = Tuple {
            local: known.destination,
            remote: known.source,
        };
        let (node, sender) = (known.receiver_node as usize, known.sender);
        let len = packet.len - UDP_HEADER - ip_header_len(tuple.local);
        let Some(index) = self.quic_endpoint(node, sender, &tuple, sealed, len) else {
            return;
        };
        let now = self.network.now();
        let ecn = match packet.ecn {
            Ecn::NotEct => Codepoint::NotEct,
            Ecn::Ect0 => Codepoint::Ect0,
            Ecn::Ect1 => Codepoint::Ect1,
            Ecn::Ce => Codepoint::Ce,
        };
        if let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection {
            connection.receive(tuple, sealed, len, ecn, packet.body.purpose, now);
            if self.qlogs.active()
                && let (Some(own), Some(datagram)) = (connection.own_mut(), &sealed.datagram)
            {
                self.qlogs
                    .with(index, |log| log.received(own, datagram, now));
            }
        }
        if let Some(datagram) = sealed.datagram.take() {
            self.spares.put(datagram);
        }
        self.number_paths(index);
        self.follow_up_quic(index);
    }

    /// Whose a datagram is: by its destination connection id, which a listener makes a connection for where it is a client's first
    /// (RFC 9000 section 5.2). A stack by others keeps its ids to itself: there it is the application that the datagram comes from.
    #[inline(always)]
    fn quic_endpoint(
        &mut self,
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
            let connection = endpoint.connection.as_ref().and_then(Carrier::quic);
            endpoint.node == node
                && connection.is_some_and(|it| first.is_none_or(|packet| it.knows(packet)))
        };
        let likely = sender.opposite().endpoint().map(|index| index as usize);
        if let Some(index) = likely.filter(|&index| knows(index)) {
            return Some(index);
        }
        let other = (0..self.endpoints.len()).find(|&index| !real && knows(index));
        other.or_else(|| self.greet_quic(node, likely, *tuple, sealed, len))
    }

    /// The endpoint that a listener makes for a client's first datagram.
    #[cold]
    fn greet_quic(
        &mut self,
        node: usize,
        likely: Option<usize>,
        tuple: Tuple,
        sealed: &Sealed,
        len: u32,
    ) -> Option<usize> {
        let index = self.quic_listener(tuple.local.port(), node, likely)?;
        let now = self.network.now();
        let host = self.host(Stream::endpoint(index), index, 0);
        if let Some(stack) = self.other_stack(index) {
            first_destination(&sealed.bytes)?;
            let connection = stack.accept(host, tuple, Names::of(index));
            self.begin_quic(index, Quic::Other(connection));
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
                let connection = self.ours(index, Connection::admit(host, tuple, admission, now));
                self.begin_quic(index, connection);
                Some(index)
            }
            Greeting::Answer(answer) => {
                self.answer_quic(index, tuple, answer);
                None
            }
            Greeting::Ignore => None,
        }
    }

    /// What a listener says before there is a connection.
    fn answer_quic(&mut self, index: usize, tuple: Tuple, datagram: Datagram) {
        let node = self.endpoints[index].node;
        let sender = End::Subflow {
            endpoint: index as u32,
            subflow: 0,
        };
        let ends = (tuple.local, tuple.remote);
        let flow = self.new_flow(node, ends.0, ends.1, Vec::new(), sender, index as u64);
        let real = self.other_stack(index ^ 1).is_some();
        let bytes = match self.captures.shows_bytes() || real {
            true => answer_bytes(&datagram),
            false => Vec::new(),
        };
        let len = datagram.len();
        let datagram = (!real).then_some(datagram);
        let sealed = Sealed { datagram, bytes };
        self.put_on_route(flow, len, Ecn::NotEct, Purpose::Control, sealed);
    }

    /// The server's endpoint of the datagram's own application, where it listens and has no connection yet.
    fn quic_listener(&self, port: u16, node: usize, likely: Option<usize>) -> Option<usize> {
        likely.filter(|&index| {
            let endpoint = &self.endpoints[index];
            endpoint.side == Side::Server
                && endpoint.node == node
                && endpoint.connection.is_none()
                && self.plan.applications[endpoint.application].port == port
        })
    }

    /// Gives the paths that an endpoint has come to know the numbers that the client has for them.
    #[inline]
    fn number_paths(&mut self, index: usize) {
        let endpoint = &self.endpoints[index];
        let lanes = match &endpoint.connection {
            Some(Carrier::Quic(connection)) => connection.lanes(),
            _ => 0,
        };
        if lanes != endpoint.numbers.len() {
            self.number_new_paths(index);
        }
    }

    #[cold]
    fn number_new_paths(&mut self, index: usize) {
        let ids = |endpoint: &Endpoint| -> Vec<u64> {
            let connection = endpoint.connection.as_ref().and_then(Carrier::quic);
            connection.map_or_else(Vec::new, Quic::path_ids)
        };
        let own = ids(&self.endpoints[index]);
        let client = ids(&self.endpoints[index & !1]);
        for (path, id) in own
            .iter()
            .enumerate()
            .skip(self.endpoints[index].numbers.len())
        {
            let number = client.iter().position(|known| known == id).unwrap_or(path);
            self.endpoints[index].numbers.push(number as u32);
        }
    }

    /// Puts the datagrams that an endpoint sends on their routes.
    fn transmit_quic(&mut self, index: usize) {
        let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection else {
            return;
        };
        let now = self.network.now();
        let Some(own) = connection.own_mut() else {
            return self.transmit_bytes(index);
        };
        self.qlogs.with(index, |log| log.notice(own, now));
        if own.transmits().is_empty() {
            return self.log_secrets(index);
        }
        let mut departing = std::mem::take(&mut self.departing);
        std::mem::swap(own.transmits(), &mut departing);
        own.spares().replenish(&mut self.spares);
        self.qlogs.with(index, |log| {
            departing
                .iter()
                .try_for_each(|each| log.sent(own, each.path, each.len, &each.datagram, now))
        });
        let (seals, real) = (connection.seals(), connection.real());
        // A capture has the secrets before the packets that they decrypt.
        self.log_secrets(index);
        self.number_paths(index);
        if self.plan.record.segments {
            for transmit in &departing {
                self.record_packets(index, transmit);
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
            let bytes = if seals {
                self.seal(index, &datagram)
            } else {
                Vec::new()
            };
            let made = self.endpoints[index].flows.get(path);
            let flow = match made {
                Some(&flow) if steady => flow,
                _ => self.quic_flow(index, path, *tuple),
            };
            let ecn = if ecn { Ecn::Ect0 } else { Ecn::NotEct };
            let datagram = (!real).then_some(datagram);
            self.put_on_route(flow, len, ecn, purpose, Sealed { datagram, bytes });
        }
        self.departing = departing;
    }

    #[cold]
    fn seal(&mut self, index: usize, datagram: &Datagram) -> Vec<u8> {
        match &mut self.endpoints[index].connection {
            Some(Carrier::Quic(connection)) => connection.seal(datagram),
            _ => Vec::new(),
        }
    }

    #[inline(always)]
    fn log_secrets(&mut self, index: usize) {
        if self.captures.active() {
            self.log_new_secrets(index);
        }
    }

    #[cold]
    fn log_new_secrets(&mut self, index: usize) {
        if let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection {
            let secrets = connection.take_secrets();
            self.captures.secrets(&secrets);
        }
    }

    fn transmit_bytes(&mut self, index: usize) {
        let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection else {
            return;
        };
        let departures = connection.departures();
        self.log_secrets(index);
        self.number_paths(index);
        for departure in departures {
            let Departure {
                lane,
                tuple,
                bytes,
                ecn,
            } = departure;
            let flow = self.quic_flow(index, lane, tuple);
            let ecn = if ecn == Codepoint::NotEct {
                Ecn::NotEct
            } else {
                Ecn::Ect0
            };
            let len = bytes.len() as u32;
            let datagram = None;
            let sealed = Sealed { datagram, bytes };
            self.put_on_route(flow, len, ecn, Purpose::Data, sealed);
        }
    }

    /// Sends a payload of UDP on its flow, if that leads anywhere.
    #[inline(always)]
    fn put_on_route(&mut self, flow: u32, len: u32, ecn: Ecn, purpose: Purpose, sealed: Sealed) {
        self.refresh_way(flow, UDP);
        let state = &mut self.captures.flows[flow as usize];
        let route = state.route.or(state.queued_route);
        if route.is_none() && !state.here {
            return;
        }
        state.sent = state.sent.wrapping_add(1);
        let body = Body {
            identification: state.sent,
            altered: false,
            purpose,
            content: Content::Quic(sealed),
        };
        let len = ip_header_len(state.source) + UDP_HEADER + len;
        self.dispatch(route, len, flow, ecn, body);
    }

    /// The flow of a datagram: its path's, or another one once the peer's address has changed (RFC 9000 section 9).
    fn quic_flow(&mut self, index: usize, lane: usize, tuple: Tuple) -> u32 {
        let flow = self.flow_of(index, lane);
        let known = &self.captures.flows[flow as usize];
        if (known.source, known.destination) == (tuple.local, tuple.remote) {
            return flow;
        }
        let (gateways, sender) = (known.gateways.clone(), known.sender);
        let node = self.endpoints[index].node;
        let flow = self.new_flow(
            node,
            tuple.local,
            tuple.remote,
            gateways,
            sender,
            index as u64,
        );
        self.endpoints[index].flows[lane] = flow;
        flow
    }

    fn record_packets(&mut self, index: usize, sent: &Transmit) {
        let endpoint = &self.endpoints[index];
        let number = endpoint.numbers.get(sent.path).copied();
        let number = number.unwrap_or(sent.path as u32);
        let now = self.network.now();
        let (id, side, purpose) = (index as u32 / 2, endpoint.side, sent.purpose);
        self.recorder
            .packets(now, id, side, number, purpose, &sent.datagram);
    }
}

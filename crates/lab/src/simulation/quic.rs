//! Connections of QUIC in the run: whose a datagram is, and what becomes of those that endpoints send.

use polypath_net::{Ecn, Packet, random};
use polypath_transport::quic::{Codepoint, Connection, Greeting, Listener, Transmit, answer_bytes};
use polypath_transport::{Purpose, Tuple};
use polypath_wire::quic::Datagram;

use super::Simulation;
use super::connections::{Came, Stream};
use crate::application::Side;
use crate::carrier::{Carrier, Sealer};
use crate::endpoint::Endpoint;
use crate::flow::{Body, Content, End, Sealed, ip_header_len};
use crate::qlog::Owner;

const UDP_HEADER: u32 = 8;

impl Simulation {
    /// Begins an application's connection at its client.
    pub(super) fn start_quic(&mut self, index: usize, tuple: Tuple) {
        let host = self.host(Stream::endpoint(index), index, 0);
        let now = self.network.now();
        let connection = Connection::connect(host, tuple, now);
        self.begin_quic(index, connection);
        self.follow_up(index);
    }

    fn begin_quic<E: std::fmt::Debug>(&mut self, index: usize, made: Result<Connection, E>) {
        let mut connection = made.expect("the plan's algorithms were checked before the run");
        if self.plan.record.decisions {
            connection.record_decisions();
        }
        let endpoint = &mut self.endpoints[index];
        if self.captures.active() {
            endpoint.sealer = Some(Box::new(Sealer::new(
                &connection,
                random::mix(index as u64),
            )));
        }
        let owner = Owner {
            name: &self.plan.applications[endpoint.application].name,
            host: &self.plan.nodes[endpoint.node].name,
            side: endpoint.side,
        };
        let now = self.network.now();
        self.qlogs.begin(index, &owner, &mut connection, now);
        endpoint.connection = Some(Carrier::Quic(Box::new(connection)));
        endpoint.numbers.push(0);
    }

    /// As [`Simulation::follow_up`], for a connection of QUIC.
    #[inline(never)]
    pub(super) fn follow_up_quic(&mut self, index: usize) {
        let now = self.network.now();
        let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection else {
            return;
        };
        let mut streams = std::mem::take(&mut self.arrivals);
        for stream in connection.readable() {
            streams.push((stream, connection.read_from(stream, u64::MAX, now)));
        }
        let datagrams = connection.received_datagrams();
        connection.announce_limits(now);
        let (established, at_end) = (connection.established(), connection.at_end());
        let came = Came {
            bytes: streams.iter().map(|stream| stream.1).sum(),
            streams: &streams,
            datagrams: &datagrams,
        };
        self.call_session(index, came, established, at_end);
        streams.clear();
        self.arrivals = streams;
        self.tell_events(index);
        self.transmit_quic(index);
        if let Some(Carrier::Quic(connection)) = &self.endpoints[index].connection {
            self.qlogs.with(index, |log| log.measure(connection, now));
            self.set_timer(index, connection.next_deadline());
        }
    }

    /// A datagram came to the end of its flow.
    #[inline(never)]
    pub(super) fn on_quic(&mut self, flow: usize, packet: &Packet<Body>) {
        let Content::Quic(sealed) = &packet.body.content else {
            return;
        };
        let datagram = &sealed.datagram;
        // Packet protection finds what was spoiled (RFC 9001 section 5.3).
        if packet.corrupted || packet.body.altered {
            let (to, now) = (
                self.captures.flows[flow].sender.opposite(),
                self.network.now(),
            );
            if let Some(index) = to.endpoint() {
                self.qlogs
                    .with(index as usize, |log| log.spoiled(datagram, now));
            }
            return;
        }
        let destination = self.captures.flows[flow].destination;
        let len = packet.len - UDP_HEADER - ip_header_len(destination);
        let Some(index) = self.quic_endpoint(flow, datagram, len) else {
            return;
        };
        let tuple = Tuple {
            local: self.captures.flows[flow].destination,
            remote: self.captures.flows[flow].source,
        };
        let now = self.network.now();
        let ecn = match packet.ecn {
            Ecn::NotEct => Codepoint::NotEct,
            Ecn::Ect0 => Codepoint::Ect0,
            Ecn::Ect1 => Codepoint::Ect1,
            Ecn::Ce => Codepoint::Ce,
        };
        if let Some(Carrier::Quic(connection)) = &mut self.endpoints[index].connection {
            connection.on_datagram(tuple, datagram, len, ecn, now);
            self.qlogs
                .with(index, |log| log.received(connection, datagram, now));
        }
        self.number_paths(index);
        self.follow_up(index);
    }

    /// Whose a datagram is: by its destination connection id, which a listener makes a connection for where it is a client's first
    /// (RFC 9000 section 5.2).
    fn quic_endpoint(&mut self, flow: usize, datagram: &Datagram, len: u32) -> Option<usize> {
        let destination = datagram.packets.first()?.header.destination;
        let node = self.captures.flows[flow].receiver_node as usize;
        let knows = |index: usize| {
            let endpoint = &self.endpoints[index];
            let connection = endpoint.connection.as_ref().and_then(Carrier::quic);
            endpoint.node == node && connection.is_some_and(|it| it.knows(&destination))
        };
        let sender = self.captures.flows[flow].sender;
        let likely = sender.opposite().endpoint().map(|index| index as usize);
        let known = likely
            .filter(|&index| knows(index))
            .or_else(|| (0..self.endpoints.len()).find(|&index| knows(index)));
        if known.is_some() {
            return known;
        }
        let index = self.quic_listener(flow, node, likely)?;
        let now = self.network.now();
        let tuple = Tuple {
            local: self.captures.flows[flow].destination,
            remote: self.captures.flows[flow].source,
        };
        let host = self.host(Stream::endpoint(index), index, 0);
        let seed = random::mix(self.plan.seed ^ random::mix(node as u64));
        let listener = Listener::new(host.config.retry, seed);
        match listener.greet(tuple, datagram, len, now) {
            Greeting::Accept(admission) => {
                self.begin_quic(index, Connection::admit(host, tuple, admission, now));
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
        let bytes = match self.captures.active() {
            true => answer_bytes(&datagram),
            false => Vec::new(),
        };
        let len = datagram.len();
        let content = Content::Quic(Box::new(Sealed { datagram, bytes }));
        self.put_on_route(flow, len, Ecn::NotEct, Purpose::Control, content);
    }

    /// The server's endpoint of the datagram's own application, where it listens and has no connection yet.
    fn quic_listener(&self, flow: usize, node: usize, likely: Option<usize>) -> Option<usize> {
        let port = self.captures.flows[flow].destination.port();
        likely.filter(|&index| {
            let endpoint = &self.endpoints[index];
            endpoint.side == Side::Server
                && endpoint.node == node
                && endpoint.connection.is_none()
                && self.plan.applications[endpoint.application].port == port
        })
    }

    /// Gives the paths that an endpoint has come to know the numbers that the client has for them.
    fn number_paths(&mut self, index: usize) {
        let members = |endpoint: &Endpoint| {
            let connection = endpoint.connection.as_ref().and_then(Carrier::quic);
            connection.map_or(0, |it| it.members().len())
        };
        if members(&self.endpoints[index]) == self.endpoints[index].numbers.len() {
            return;
        }
        let ids = |endpoint: &Endpoint| -> Vec<u64> {
            let connection = endpoint.connection.as_ref().and_then(Carrier::quic);
            let members = connection.map_or(&[][..], Connection::members);
            members.iter().map(|member| member.id).collect()
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
        let mut transmits = std::mem::take(&mut self.datagrams_out);
        std::mem::swap(connection.transmits(), &mut transmits);
        let now = self.network.now();
        self.qlogs.with(index, |log| {
            log.notice(connection, now)?;
            transmits
                .iter()
                .try_for_each(|transmit| log.sent(connection, transmit, now))
        });
        self.number_paths(index);
        for transmit in transmits.drain(..) {
            let flow = self.quic_flow(index, &transmit);
            if self.plan.record.segments {
                self.record_packets(index, &transmit);
            }
            let bytes = self.seal(index, &transmit.datagram);
            let Transmit {
                datagram,
                len,
                purpose,
                ecn,
                ..
            } = transmit;
            let ecn = if ecn { Ecn::Ect0 } else { Ecn::NotEct };
            let content = Content::Quic(Box::new(Sealed { datagram, bytes }));
            self.put_on_route(flow, len, ecn, purpose, content);
        }
        self.datagrams_out = transmits;
    }

    /// Sends a payload of UDP on its flow, if that leads anywhere.
    fn put_on_route(&mut self, flow: u32, len: u32, ecn: Ecn, purpose: Purpose, content: Content) {
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
            content,
        };
        let len = ip_header_len(state.source) + UDP_HEADER + len;
        self.dispatch(route, len, flow, ecn, body);
    }

    /// The flow of a datagram: its path's, or another one once the peer's address has changed (RFC 9000 section 9).
    fn quic_flow(&mut self, index: usize, transmit: &Transmit) -> u32 {
        let Transmit { path, tuple, .. } = *transmit;
        let flow = self.flow_of(index, path);
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
        self.endpoints[index].flows[path] = flow;
        flow
    }

    /// A datagram as it is on the wire, if somebody captures.
    fn seal(&mut self, index: usize, datagram: &Datagram) -> Vec<u8> {
        let Endpoint {
            sealer: Some(sealer),
            connection: Some(Carrier::Quic(connection)),
            ..
        } = &mut self.endpoints[index]
        else {
            return Vec::new();
        };
        let (bytes, secrets) = sealer.seal(connection, datagram);
        self.captures.secrets(&secrets);
        bytes
    }

    fn record_packets(&mut self, index: usize, transmit: &Transmit) {
        let endpoint = &self.endpoints[index];
        let number = endpoint.numbers.get(transmit.path).copied();
        let number = number.unwrap_or(transmit.path as u32);
        let now = self.network.now();
        self.recorder
            .packets(now, index as u32 / 2, endpoint.side, number, transmit);
    }
}

//! Who takes a flow's first packets: a connection, a listener, or nobody.
//!
//! A host listens for all of the run where an application's server does. What each application's own client opens is its server's
//! connection. Others are extra: a join that lost its option on the way, or the client's SYN once more from another address or port,
//! behind a NAT that forgot. They are answered like any (RFC 9293 section 3.10.7.2); the first that completes its handshake is the
//! application's, and one too many is closed.

use std::net::IpAddr;

use polypath_net::{InterfaceId, Packet};
use polypath_transport::{Arrival, Connection, Counters, NEVER, Segment, Transmit, Tuple};
use polypath_wire::mptcp::{MpJoin, MptcpOption};
use polypath_wire::tcp::Flags;

use super::connections::Stream;
use super::extra::Extra;
use super::refusal::Refusal;
use super::{Owner, Simulation};
use crate::application::Side;
use crate::carrier::Carrier;
use crate::flow::{Body, Content, End, Flow};

/// A SYN, and what is known of where it came to.
struct Opening<'a> {
    flow: usize,
    node: usize,
    tuple: Tuple,
    /// The endpoint and the subflow that sent it.
    peer: (usize, u32),
    syn: &'a Segment,
    /// Where the answer's sequence numbers begin, if not at random.
    isn: Option<u32>,
}

impl Simulation {
    /// Finds who a flow's first packets are for; a SYN is dealt with here if it begins something.
    #[cold]
    pub(super) fn find_receiver(
        &mut self,
        flow: usize,
        packet: &Packet<Body>,
        interface: Option<InterfaceId>,
    ) -> Option<End> {
        let Flow {
            source,
            destination,
            receiver_node,
            sender,
            ..
        } = self.captures.flows[flow];
        let node = receiver_node as usize;
        let Content::Tcp(segment) = &packet.body.content else {
            return None;
        };
        let syn = segment.flags.contains(Flags::SYN);
        let opens = syn && !segment.flags.intersects(Flags::ACK | Flags::RST) && !packet.corrupted;
        let known = self.demultiplexer.get(node, destination, source);
        if let Some(end) = known
            && !(opens && self.gives_way(end, segment))
        {
            if self.is_bound_elsewhere(end, destination.ip(), interface) {
                self.refuse(flow, segment, Refusal::UnknownConnection);
                return None;
            }
            // Another client's packets may be for another connection the next time, and so may a SYN.
            if !syn && end.endpoint() == sender.opposite().endpoint() {
                self.captures.flows[flow].receiver = Some(end);
            }
            return Some(end);
        }
        if packet.corrupted {
            return None;
        }
        if !opens {
            self.refuse(flow, segment, Refusal::UnknownConnection);
            return None;
        }
        let End::Subflow { endpoint, subflow } = sender else {
            return None;
        };
        let isn = known.and_then(|end| self.end_time_wait(end));
        let opening = Opening {
            flow,
            node,
            tuple: Tuple {
                local: destination,
                remote: source,
            },
            peer: (endpoint as usize, subflow),
            syn: segment,
            isn,
        };
        let token = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
            _ => None,
        });
        match token {
            Some(token) => self.take_join(&opening, token),
            None => self.take_syn(&opening),
        }
        None
    }

    /// Whether a path manager bound the subflow to the interface of its address, and this is another one.
    fn is_bound_elsewhere(
        &self,
        end: End,
        address: IpAddr,
        interface: Option<InterfaceId>,
    ) -> bool {
        let End::Subflow { endpoint, subflow } = end else {
            return false;
        };
        let endpoint = &self.endpoints[endpoint as usize];
        let binds = |connection: &Connection| connection.binds_subflows();
        subflow > 0
            && endpoint.side == Side::Client
            && endpoint.tcp().is_some_and(binds)
            && interface.is_some_and(|at| self.network.topology().owner(address) != Some(at))
    }

    fn gives_way(&self, end: End, syn: &Segment) -> bool {
        match end {
            End::Subflow { endpoint, subflow } => {
                let connection = self.endpoints[endpoint as usize].tcp();
                connection.is_some_and(|connection| connection.gives_way(subflow as usize, syn))
            }
            End::Extra { index } => self.extras[index as usize].connection.gives_way(0, syn),
            End::Datagrams { .. } | End::Middlebox { .. } => false,
        }
    }

    /// Ends a connection in TIME-WAIT for one that takes its place, whose sequence numbers are to begin at what this gives.
    fn end_time_wait(&mut self, end: End) -> Option<u32> {
        let now = self.network.now();
        match end {
            End::Subflow { endpoint, subflow } => {
                let (endpoint, subflow) = (endpoint as usize, subflow as usize);
                let connection = self.endpoints[endpoint].tcp_mut()?;
                let isn = connection.end_time_wait(subflow, now);
                self.follow_up(endpoint);
                isn
            }
            End::Extra { index } => {
                let extra = &mut self.extras[index as usize];
                extra.connection.end_time_wait(0, now)
            }
            End::Datagrams { .. } | End::Middlebox { .. } => None,
        }
    }

    fn take_join(&mut self, opening: &Opening<'_>, token: u32) {
        let named = self.tokens.get(&(opening.node, token)).copied();
        let Some(index) = named.filter(|&index| self.holds_token(index)) else {
            return self.refuse(opening.flow, opening.syn, Refusal::UnknownToken);
        };
        if self.needs_listener(index, opening) && self.listener(opening).is_none() {
            return self.refuse(opening.flow, opening.syn, Refusal::Unheard);
        }
        self.number_subflows(index);
        let now = self.network.now();
        let connection = self.endpoints[index].tcp_mut();
        let Some(connection) = connection.filter(|connection| connection.accepts_joins()) else {
            return self.refuse(opening.flow, opening.syn, Refusal::FellBack);
        };
        let Ok(Some(subflow)) = connection.accept_join(opening.tuple, opening.syn, now) else {
            return;
        };
        self.endpoints[index].numbers.push(opening.peer.1);
        let end = End::Subflow {
            endpoint: index as u32,
            subflow: subflow as u32,
        };
        self.receive_by(end, opening);
        self.follow_up(index);
    }

    /// Whether the token of an endpoint's connection is known: in Linux a client's from its SYN on, a server's once the handshake is done.
    fn holds_token(&self, index: usize) -> bool {
        let endpoint = &self.endpoints[index];
        let connection = endpoint.tcp();
        connection.is_some_and(|connection| {
            connection.ended().is_none()
                && (endpoint.side == Side::Client || connection.established())
        })
    }

    /// Whether an MP_JOIN needs a server at its port, as any other SYN, although the token says whose it is.
    fn needs_listener(&self, index: usize, opening: &Opening<'_>) -> bool {
        let connection = self.endpoints[index].tcp();
        connection.is_some_and(|connection| {
            connection.config().profile.joins_at_listeners()
                && !connection.listens(opening.tuple.local)
        })
    }

    fn take_syn(&mut self, opening: &Opening<'_>) {
        let Some(index) = self.listener(opening) else {
            return self.refuse(opening.flow, opening.syn, Refusal::Unheard);
        };
        if index != opening.peer.0 + 1 || !self.is_free(index) {
            return self.take_extra(index, opening);
        }
        let connection = self.accept(Stream::endpoint(index), index, opening);
        self.vacate(index);
        self.begin(index, connection, opening.peer.1);
        let end = End::Subflow {
            endpoint: index as u32,
            subflow: 0,
        };
        self.receive_by(end, opening);
        self.follow_up(index);
    }

    /// The endpoint of a server that listens where a SYN came: that of the SYN's own application, else of the first that began.
    fn listener(&self, opening: &Opening<'_>) -> Option<usize> {
        let listens = |&index: &usize| {
            self.endpoints.get(index).is_some_and(|endpoint| {
                let settings = &self.plan.applications[endpoint.application];
                endpoint.side == Side::Server
                    && endpoint.node == opening.node
                    && settings.port == opening.tuple.local.port()
            })
        };
        let own = opening.peer.0 + 1;
        let mut all = std::iter::once(own).chain(0..self.endpoints.len());
        all.find(listens)
    }

    /// Whether a server's connection has not begun, or failed before it was established.
    fn is_free(&self, index: usize) -> bool {
        let connection = self.endpoints[index].tcp();
        connection
            .is_none_or(|connection| connection.ended().is_some() && !connection.established())
    }

    /// Forgets a connection that came to nothing, but for what it counted.
    fn vacate(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        let Some(old) = endpoint.connection.take() else {
            return;
        };
        endpoint.flows.clear();
        endpoint.numbers.clear();
        endpoint.ended_at = None;
        let node = endpoint.node;
        let Carrier::Tcp(old) = old else {
            return;
        };
        if let Some(token) = old.token() {
            self.tokens.remove(&(node, token));
        }
        self.host_counters(node).absorb(old.counters());
    }

    fn receive_by(&mut self, end: End, opening: &Opening<'_>) {
        let Tuple { local, remote } = opening.tuple;
        self.demultiplexer.insert(opening.node, local, remote, end);
    }

    fn accept(&self, stream: Stream, index: usize, opening: &Opening<'_>) -> Connection {
        let now = self.network.now();
        self.make(stream, index, |mut host| {
            host.isn = opening.isn;
            Connection::accept(host, opening.tuple, opening.syn, now)
        })
    }

    fn take_extra(&mut self, endpoint: usize, opening: &Opening<'_>) {
        let index = self.extras.len();
        let stream = Stream {
            of: "extra",
            number: index,
        };
        let connection = self.accept(stream, endpoint, opening);
        let flow = self.answering_flow(opening.flow);
        self.captures.flows[flow as usize].first_dsn = connection.data_sequence(0);
        let timer = self.new_timer(Owner::Extra(index));
        self.extras.push(Extra {
            connection,
            endpoint,
            flow,
            timer,
            timer_at: NEVER,
        });
        let end = End::Extra {
            index: index as u32,
        };
        self.receive_by(end, opening);
        self.follow_extra(index);
    }

    /// A segment for a connection that no application has, if `end` is one.
    #[cold]
    pub(super) fn on_extra(&mut self, end: Option<End>, segment: &Segment, arrival: Arrival) {
        let Some(End::Extra { index }) = end else {
            return;
        };
        let (index, now) = (index as usize, self.network.now());
        let extra = &mut self.extras[index];
        let before = extra.connection.established();
        extra.connection.on_segment(0, segment, arrival, now);
        if extra.connection.established() && !before {
            let (endpoint, flow) = (extra.endpoint, extra.flow);
            if self.awaits_client(endpoint, flow) {
                self.promote(index);
                self.follow_up(endpoint);
            } else {
                self.extras[index].connection.close(now);
            }
        }
        self.follow_extra(index);
    }

    pub(super) fn on_extra_timer(&mut self, index: usize) {
        let now = self.network.now();
        let extra = &mut self.extras[index];
        extra.timer_at = NEVER;
        if extra.connection.next_deadline() <= now {
            extra.connection.on_time(now);
        }
        self.follow_extra(index);
    }

    fn follow_extra(&mut self, index: usize) {
        let now = self.network.now();
        let extra = &mut self.extras[index];
        let flow = extra.flow;
        let connection = &mut extra.connection;
        connection.read(connection.available(), now);
        connection.events().clear();
        for transmit in std::mem::take(connection.transmits()) {
            let Transmit {
                segment, purpose, ..
            } = transmit;
            self.answer(flow, segment, purpose);
        }
        let extra = &mut self.extras[index];
        let at = extra.connection.next_deadline();
        if at < extra.timer_at {
            extra.timer_at = at;
            self.network.set_timer(extra.timer, at);
        }
    }

    /// Whether the connection at the end of `flow` is from the application's own client, whom its server still awaits.
    fn awaits_client(&self, endpoint: usize, flow: u32) -> bool {
        let peer = self.captures.flows[flow as usize].sender.endpoint();
        let connection = self.endpoints[endpoint].tcp();
        peer == Some(endpoint as u32)
            && connection.is_some_and(|connection| !connection.established())
    }

    /// An extra connection that is established takes the place of the one that its endpoint began and that is not.
    fn promote(&mut self, index: usize) {
        let extra = &mut self.extras[index];
        let number = extra.endpoint;
        let endpoint = &mut self.endpoints[number];
        let Some(half_open) = endpoint.tcp_mut() else {
            return;
        };
        let (old, new) = (half_open.token(), extra.connection.token());
        std::mem::swap(half_open, &mut extra.connection);
        endpoint.ended_at = None;
        for flow in &mut endpoint.flows {
            std::mem::swap(flow, &mut extra.flow);
        }
        let node = endpoint.node;
        if let Some(token) = old {
            self.tokens.remove(&(node, token));
        }
        if let Some(token) = new {
            self.tokens.insert((node, token), number);
        }
        let extra = End::Extra {
            index: index as u32,
        };
        let own = End::Subflow {
            endpoint: number as u32,
            subflow: 0,
        };
        self.demultiplexer.exchange(extra, own);
        for flow in &mut self.captures.flows {
            flow.receiver = flow.receiver.map(|end| end.exchanged(extra, own));
        }
        self.recall_mtu(number, 0);
    }

    pub(super) fn host_counters(&mut self, node: usize) -> &mut Counters {
        self.counters.entry(node).or_default()
    }
}

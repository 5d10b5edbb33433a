//! Who takes a flow's first packets: a connection, a listener, or nobody.
//!
//! A host listens during the whole run at the port of an application's server. The connection that an application's
//! client opens belongs to its server. Others are extra: a join that lost its option, or the client's SYN from another
//! address or port, behind a NAT that forgot it.
//!
//! All are answered alike (RFC 9293 section 3.10.7.2). The first to complete its handshake is the application's, and
//! surplus ones are closed.

use std::net::IpAddr;

use polypath_net::{InterfaceId, Packet};
use polypath_transport::{Arrival, Codepoint, Connection, Segment, Tuple};
use polypath_wire::mptcp::{MpJoin, MptcpOption};
use polypath_wire::tcp::Flags;

use super::Hosts;
use super::connections::Stream;
use super::extra::Extra;
use super::refusal::Refusal;
use crate::alarm::Alarm;
use crate::carrier::Carrier;
use crate::flow::{Body, Content, End, Flow, codepoint};
use crate::simulation::world::Owner;
use crate::simulation::world::World;

/// A SYN, and what is known of where it came to.
struct Opening<'a> {
    flow: u32,
    node: usize,
    tuple: Tuple,
    /// The endpoint and the subflow that sent it.
    peer: (usize, u32),
    syn: &'a Segment,
    ecn: Codepoint,
    /// Where the answer's sequence numbers begin, if not at random.
    isn: Option<u32>,
}

impl Opening<'_> {
    /// The endpoint of a server that listens where the SYN came: that of its own application, else of the first that began.
    fn listener(&self, hosts: &Hosts) -> Option<usize> {
        let own = self.peer.0 + 1;
        (hosts.endpoints).listener(&hosts.plan, self.node, self.tuple.local, own)
    }
}

impl Hosts {
    /// Finds who a flow's first packets are for; a SYN is dealt with here if it begins something.
    #[cold]
    pub(super) fn find_receiver(
        &mut self,
        world: &mut World,
        flow: u32,
        packet: &Packet<Body>,
        interface: Option<InterfaceId>,
    ) -> Option<End> {
        let Flow {
            source,
            destination,
            receiver_node,
            sender,
            ..
        } = *world.net.flow(flow);
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
            if self.is_bound_elsewhere(world, end, destination.ip(), interface) {
                self.refuse(world, flow, segment, Refusal::UnknownConnection);
                return None;
            }
            // Another client's packets may be for another connection the next time, and so may a SYN.
            if !syn && end.endpoint() == sender.opposite().endpoint() {
                world.net.flow_mut(flow).receiver = Some(end);
            }
            return Some(end);
        }
        if packet.corrupted {
            return None;
        }
        if !opens {
            self.refuse(world, flow, segment, Refusal::UnknownConnection);
            return None;
        }
        let End::Subflow { endpoint, subflow } = sender else {
            return None;
        };
        let isn = known.and_then(|end| self.end_time_wait(world, end));
        let opening = Opening {
            flow,
            node,
            tuple: Tuple {
                local: destination,
                remote: source,
            },
            peer: (endpoint as usize, subflow),
            syn: segment,
            ecn: codepoint(packet.ecn),
            isn,
        };
        let token = segment.mptcp().iter().find_map(|option| match option {
            MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
            _ => None,
        });
        match token {
            Some(token) => self.take_join(world, &opening, token),
            None => self.take_syn(world, &opening),
        }
        None
    }

    /// Whether a path manager bound the subflow to the interface of its address, and this is another one.
    fn is_bound_elsewhere(
        &self,
        world: &mut World,
        end: End,
        address: IpAddr,
        interface: Option<InterfaceId>,
    ) -> bool {
        let End::Subflow { endpoint, subflow } = end else {
            return false;
        };
        let endpoint = &self.endpoints[endpoint as usize];
        let bound = |connection: &Connection| connection.subflows()[subflow as usize].bound;
        endpoint.tcp().is_some_and(bound)
            && interface.is_some_and(|at| world.net.topology().owner(address) != Some(at))
    }

    fn gives_way(&self, end: End, syn: &Segment) -> bool {
        match end {
            End::Subflow { endpoint, subflow } => {
                let connection = self.endpoints[endpoint as usize].tcp();
                connection.is_some_and(|connection| connection.gives_way(subflow as usize, syn))
            }
            End::Extra { index } => self.extras[index as usize].connection.gives_way(0, syn),
            End::Datagrams { .. } | End::Middlebox { .. } | End::Tunnel { .. } => false,
        }
    }

    /// Ends a connection in TIME-WAIT for one that takes its place, whose sequence numbers are to begin at what this gives.
    fn end_time_wait(&mut self, world: &mut World, end: End) -> Option<u32> {
        let now = world.net.now();
        match end {
            End::Subflow { endpoint, subflow } => {
                let (endpoint, subflow) = (endpoint as usize, subflow as usize);
                let connection = self.endpoints[endpoint].tcp_mut()?;
                let isn = connection.end_time_wait(subflow, now);
                self.follow_up(world, endpoint);
                isn
            }
            End::Extra { index } => {
                let extra = &mut self.extras[index as usize];
                extra.connection.end_time_wait(0, now)
            }
            End::Datagrams { .. } | End::Middlebox { .. } | End::Tunnel { .. } => None,
        }
    }

    fn take_join(&mut self, world: &mut World, opening: &Opening<'_>, token: u32) {
        let named = self.hosts[opening.node].named(token);
        let needs_listener = match named {
            Some(index) => self.endpoints[index].needs_listener(opening.tuple.local),
            None => {
                let stack = self.plan.nodes[opening.node].stack.as_ref();
                stack.is_some_and(|stack| stack.config.profile.joins_at_listeners())
            }
        };
        if needs_listener && opening.listener(self).is_none() {
            return self.refuse(world, opening.flow, opening.syn, Refusal::Unheard);
        }
        let Some(index) = named.filter(|&index| self.endpoints[index].holds_token()) else {
            return self.refuse(world, opening.flow, opening.syn, Refusal::UnknownToken);
        };
        self.endpoints.number_subflows(index);
        let now = world.net.now();
        let connection = self.endpoints[index].tcp_mut();
        let Some(connection) = connection.filter(|connection| connection.accepts_joins()) else {
            return self.refuse(world, opening.flow, opening.syn, Refusal::FellBack);
        };
        let Ok(Some(subflow)) =
            connection.accept_join(opening.tuple, (opening.syn, opening.ecn), now)
        else {
            return;
        };
        self.endpoints[index].numbers.push(opening.peer.1);
        let end = End::Subflow {
            endpoint: index as u32,
            subflow: subflow as u32,
        };
        self.demultiplexer
            .insert(opening.node, opening.tuple.local, opening.tuple.remote, end);
        self.follow_up(world, index);
    }

    fn take_syn(&mut self, world: &mut World, opening: &Opening<'_>) {
        let Some(index) = opening.listener(self) else {
            return self.refuse(world, opening.flow, opening.syn, Refusal::Unheard);
        };
        if index != opening.peer.0 + 1 || !self.endpoints[index].is_free() {
            return self.take_extra(world, index, opening);
        }
        let connection = self.accept(world, Stream::endpoint(index), index, opening);
        self.vacate(index);
        self.begin(world, index, connection, opening.peer.1);
        let end = End::Subflow {
            endpoint: index as u32,
            subflow: 0,
        };
        self.demultiplexer
            .insert(opening.node, opening.tuple.local, opening.tuple.remote, end);
        self.follow_up(world, index);
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
            self.hosts[node].remove_token(token);
        }
        self.hosts[node].counters_mut().absorb(old.counters());
    }

    fn accept(
        &self,
        world: &mut World,
        stream: Stream,
        index: usize,
        opening: &Opening<'_>,
    ) -> Connection {
        let now = world.net.now();
        self.make(stream, index, |mut host| {
            host.isn = opening.isn;
            Connection::accept(host, opening.tuple, (opening.syn, opening.ecn), now)
        })
    }

    fn take_extra(&mut self, world: &mut World, endpoint: usize, opening: &Opening<'_>) {
        let index = self.extras.len();
        let stream = Stream {
            of: "extra",
            number: index,
        };
        let connection = self.accept(world, stream, endpoint, opening);
        let flow = world.answering_flow(opening.flow);
        world.net.flow_mut(flow).first_dsn = connection.data_sequence(0);
        let timer = world.new_timer(Owner::Extra(index));
        self.extras.push(Extra {
            connection,
            endpoint,
            flow,
            alarm: Alarm::new(timer),
        });
        let end = End::Extra {
            index: index as u32,
        };
        self.demultiplexer
            .insert(opening.node, opening.tuple.local, opening.tuple.remote, end);
        self.extras[index].follow_up(world);
    }

    /// A segment for a connection that no application has, if `end` is one.
    #[cold]
    pub(super) fn on_extra(
        &mut self,
        world: &mut World,
        end: Option<End>,
        segment: &Segment,
        arrival: Arrival,
    ) {
        let Some(End::Extra { index }) = end else {
            return;
        };
        let (index, now) = (index as usize, world.net.now());
        let extra = &mut self.extras[index];
        let before = extra.connection.established();
        extra.connection.on_segment(0, segment, arrival, now);
        if extra.connection.established() && !before {
            let (endpoint, flow) = (extra.endpoint, extra.flow);
            if self.awaits_client(world, endpoint, flow) {
                self.promote(world, index);
                self.follow_up(world, endpoint);
            } else {
                self.extras[index].connection.close(now);
            }
        }
        self.extras[index].follow_up(world);
    }

    /// Whether the connection at the end of `flow` is from the application's own client, whom its server still awaits.
    fn awaits_client(&self, world: &mut World, endpoint: usize, flow: u32) -> bool {
        let peer = world.net.flow(flow).sender.endpoint();
        let connection = self.endpoints[endpoint].tcp();
        peer == Some(endpoint as u32)
            && connection.is_some_and(|connection| !connection.established())
    }

    /// An extra connection that is established takes the place of the one that its endpoint began and that is not.
    fn promote(&mut self, world: &mut World, index: usize) {
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
            self.hosts[node].remove_token(token);
        }
        if let Some(token) = new {
            self.hosts[node].add_token(token, number);
        }
        let extra = End::Extra {
            index: index as u32,
        };
        let own = End::Subflow {
            endpoint: number as u32,
            subflow: 0,
        };
        self.demultiplexer.exchange(extra, own);
        world.net.exchange_receivers(extra, own);
        self.recall_mtu(number, 0);
    }
}

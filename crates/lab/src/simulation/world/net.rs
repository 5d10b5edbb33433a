//! The network, its flows, and their captures.

use std::net::IpAddr;

use polypath_net::{
    ChannelId, DropReason, Network, NodeId, Packet, Parcel, RouteError, TimerId, Topology, Totals,
};
use polypath_prefetch::prefetch;
use polypath_transport::Nanos;

use crate::alarm::Alarm;
use crate::capture::Captures;
use crate::endpoint::Endpoint;
use crate::flow::{Body, End, Flow, Quoted};

/// That of Ethernet (RFC 894), where a link says none.
const USUAL_MTU: u32 = 1500;

pub(in crate::simulation) struct Net {
    pub(super) network: Network<Body>,
    /// By link: forward, backward.
    pub(super) channels: Vec<(ChannelId, ChannelId)>,
    pub(super) captures: Captures,
}

impl Net {
    /// The channels of a link, forward and backward.
    pub fn pair(&self, link: usize) -> (ChannelId, ChannelId) {
        self.channels[link]
    }

    /// Simulated time in nanoseconds.
    #[inline(always)]
    pub fn now(&self) -> Nanos {
        self.network.now()
    }

    pub fn topology(&self) -> &Topology {
        self.network.topology()
    }

    pub fn totals(&self) -> Totals {
        self.network.totals()
    }

    pub fn captures(&self) -> &Captures {
        &self.captures
    }

    pub fn captures_mut(&mut self) -> &mut Captures {
        &mut self.captures
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

    /// By which of its addresses a node reaches another one's.
    pub fn sources(&mut self, node: usize, to: IpAddr) -> Vec<IpAddr> {
        self.network.sources(NodeId(node as u32), to)
    }

    /// The longest packet that every link on a flow's way takes.
    pub fn mtu_of(&self, flow: u32) -> u32 {
        let flow = self.flow(flow);
        let route = flow.route.or(flow.queued_route);
        let path = route
            .into_iter()
            .flat_map(|route| self.topology().path(route));
        let configs = path.filter_map(|channel| self.network.config(channel).ok());
        let mtus = configs.filter_map(|config| config.mtu);
        mtus.min().unwrap_or(USUAL_MTU).min(USUAL_MTU)
    }

    /// The channels from a node's address to another one.
    pub fn way(
        &mut self,
        node: usize,
        from: IpAddr,
        to: IpAddr,
    ) -> Result<Vec<ChannelId>, RouteError> {
        self.network.way(NodeId(node as u32), from, to)
    }

    /// Whether a node reaches an address from one of its own.
    pub fn leads(&mut self, node: usize, from: IpAddr, to: IpAddr) -> Result<(), RouteError> {
        self.way(node, from, to).map(|_| ())
    }

    #[inline(always)]
    pub fn set_timer(&mut self, timer: TimerId, at: Nanos) {
        self.network.set_timer(timer, at);
    }

    /// Has an alarm fire at `at` at the latest.
    #[inline(always)]
    pub fn set_alarm(&mut self, alarm: &mut Alarm, at: Nanos) {
        if let Some(timer) = alarm.advance(at) {
            self.network.set_timer(timer, at);
        }
    }

    /// Has an endpoint called when its connection's deadline comes, or its application wants it.
    #[inline(always)]
    pub fn call_at(&mut self, endpoint: &mut Endpoint, deadline: Nanos) {
        self.set_alarm(&mut endpoint.alarm, deadline.min(endpoint.wake));
    }

    /// Something else may happen at this instant.
    pub fn another_now(&mut self) -> bool {
        self.network.another_now()
    }

    /// So many packets are under way that fetching what they need ahead pays.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.network.is_crowded()
    }

    #[inline(always)]
    pub fn look_into(&self, parcel: &Parcel) -> Option<&Packet<Body>> {
        self.network.look_into(parcel)
    }

    #[inline(always)]
    pub fn take(&mut self, parcel: Parcel) -> Option<Packet<Body>> {
        self.network.take(parcel)
    }

    /// Has fetched what a segment that arrived at an endpoint is dealt with by, and the flow by which it is answered.
    #[inline(never)]
    pub fn prefetch(&self, endpoint: &Endpoint, subflow: usize) {
        if let Some(&flow) = endpoint.flows.get(subflow)
            && let Some(flow) = self.captures.flows.get(flow as usize)
        {
            prefetch(flow);
        }
        if let Some(connection) = endpoint.tcp() {
            connection.prefetch(subflow);
        }
    }

    /// Frees a packet that owns nothing.
    #[inline(always)]
    pub fn forget(&mut self, parcel: Parcel) {
        self.network.forget(parcel);
    }

    /// Why the last packet was refused by the queue of its host, if it was.
    pub fn refusal(&self) -> Option<DropReason> {
        self.network.refusal()
    }

    #[inline(always)]
    pub fn flow(&self, number: u32) -> &Flow {
        &self.captures.flows[number as usize]
    }

    #[inline(always)]
    pub fn flow_mut(&mut self, number: u32) -> &mut Flow {
        &mut self.captures.flows[number as usize]
    }

    /// What the flows of one receiver become those of another, and the other way round.
    pub fn exchange_receivers(&mut self, one: End, other: End) {
        for flow in &mut self.captures.flows {
            flow.receiver = flow.receiver.map(|end| end.exchanged(one, other));
        }
    }

    /// Who receives what is sent to these addresses is to be found for each packet, until it is known again.
    pub fn forget_receivers(&mut self, addresses: &[IpAddr]) {
        for flow in &mut self.captures.flows {
            let connection = matches!(flow.receiver, Some(End::Subflow { .. }));
            if connection && addresses.contains(&flow.destination.ip()) {
                flow.receiver = None;
            }
        }
    }

    pub fn add_flow(&mut self, flow: Flow) -> u32 {
        self.captures.flows.push(flow);
        (self.captures.flows.len() - 1) as u32
    }

    /// The node that owns an address.
    pub fn receiver_node(&self, address: IpAddr) -> u32 {
        let topology = self.network.topology();
        let owner = topology
            .owner(address)
            .map(|interface| topology.node_of(interface));
        owner.and_then(Result::ok).map_or(0, |node| node.0)
    }

    /// Has a flow whose first link has its queue in the host begin there. True: the host's stack is told when packets leave that queue.
    pub fn begin_in_host_queue(&mut self, number: u32) -> bool {
        let flow = &mut self.captures.flows[number as usize];
        let path = flow.route.map(|route| self.network.topology().path(route));
        let first = path.and_then(|mut channels| channels.next());
        let config = first.and_then(|channel| self.network.config(channel).ok());
        let Some(config) = config.filter(|config| config.of_sender) else {
            return false;
        };
        flow.queued_route = flow.route.take();
        if config.tells_leaving {
            flow.held_by = first;
        }
        config.tells_leaving
    }

    /// When the queue of a channel will be empty if nothing more comes.
    pub fn queue_clear_at(&self, channel: ChannelId) -> Nanos {
        self.network.queue_clear_at(channel).unwrap_or(0)
    }

    /// Whether a flow ends where it begins.
    pub fn is_local(&self, flow: &Flow) -> bool {
        let topology = self.network.topology();
        let of = |address| topology.node_of(topology.owner(address)?).ok();
        of(flow.source.ip()) == of(flow.destination.ip())
    }

    /// The packet that a report is about.
    pub fn reported(&self, number: u32) -> Option<&Quoted> {
        self.captures.quoted.get(number as usize)
    }
}

//! Two hosts, one link, and a log of what happens.
#![allow(dead_code)]

use std::net::{IpAddr, Ipv4Addr};

use polypath_net::events::{EventQueue, Wheel};
use polypath_net::{
    ChannelConfig, ChannelId, DropReason, DropTailConfig, Ecn, Nanos, Network, NodeKind, Observer,
    Output, Packet, QueueConfig, RouteId, Topology,
};

pub const MS: Nanos = 1_000_000;

pub fn ip(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

/// 8 Mbit/s, so that a byte takes 1 us; no overhead; 1 ms of delay.
pub fn config() -> ChannelConfig {
    ChannelConfig {
        rate_bps: Some(8_000_000),
        delay: MS,
        overhead: 0,
        ..ChannelConfig::default()
    }
}

pub fn drop_tail(packets: Option<u64>, bytes: Option<u64>) -> QueueConfig {
    QueueConfig::DropTail(DropTailConfig { packets, bytes })
}

/// What an observer saw and what the owner was told. Packets are known by their bodies.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Enqueued(Nanos, u32),
    Dropped(Nanos, u32, DropReason),
    Delivered(Nanos, u32),
    Changed(Nanos),
    Local(Nanos, u32),
    Refused(Nanos, ChannelId, u32),
}

#[derive(Default)]
pub struct Log(pub Vec<Event>);

impl Observer<u32> for Log {
    fn enqueued(&mut self, at: Nanos, _: ChannelId, packet: &Packet<u32>) {
        self.0.push(Event::Enqueued(at, packet.body));
    }

    fn dropped(&mut self, at: Nanos, _: ChannelId, packet: &Packet<u32>, reason: DropReason) {
        self.0.push(Event::Dropped(at, packet.body, reason));
    }
}

pub struct Pair<Q = Wheel> {
    pub network: Network<u32, Q>,
    pub route: RouteId,
    pub log: Log,
    pub packets: Vec<Packet<u32>>,
    sent: u32,
}

pub const FORWARD: ChannelId = ChannelId(0);

impl Pair {
    pub fn new(forward: ChannelConfig) -> Self {
        Self::with_seed(forward, 1)
    }

    pub fn with_seed(forward: ChannelConfig, seed: u64) -> Self {
        Self::on_queue(forward, seed)
    }
}

impl<Q: EventQueue> Pair<Q> {
    pub fn on_queue(forward: ChannelConfig, seed: u64) -> Self {
        let mut topology = Topology::new();
        let hosts = [NodeKind::Host; 2].map(|kind| topology.add_node(kind));
        let [a, b] = hosts.map(|host| topology.add_interface(host));
        topology.add_address(a, ip(1)).unwrap();
        topology.add_address(b, ip(2)).unwrap();
        let backward = ChannelConfig {
            rate_bps: if forward.wifi.is_some() {
                None
            } else {
                config().rate_bps
            },
            wifi: forward.wifi.clone(),
            ..config()
        };
        topology.connect(a, b, forward, backward).unwrap();
        let route = topology.route(hosts[0], ip(1), ip(2), 0).unwrap();
        Self {
            network: Network::with_event_queue(topology, seed),
            route,
            log: Log::default(),
            packets: Vec::new(),
            sent: 0,
        }
    }

    /// Sends packets of these lengths now; their bodies count up from 0.
    pub fn send(&mut self, lengths: &[u32]) {
        self.send_ecn(lengths, Ecn::NotEct);
    }

    pub fn send_ecn(&mut self, lengths: &[u32], ecn: Ecn) {
        self.send_of(0, lengths, ecn);
    }

    /// The same of a flow.
    pub fn send_of(&mut self, flow: u32, lengths: &[u32], ecn: Ecn) {
        for len in lengths {
            let (body, log) = (self.sent, &mut self.log);
            self.network.inject(self.route, *len, flow, ecn, body, log);
            self.sent += 1;
        }
    }

    pub fn run(&mut self, until: Nanos) {
        while let Some(output) = self.network.poll(until, &mut self.log) {
            let now = self.network.now();
            match output {
                Output::Delivered { packet, .. } => {
                    self.log.0.push(Event::Delivered(now, packet.body));
                    self.packets.push(packet);
                }
                Output::Changed(_) => self.log.0.push(Event::Changed(now)),
                Output::Local(packet) => self.log.0.push(Event::Local(now, packet.body)),
                Output::Refused { channel, packet } => {
                    self.log.0.push(Event::Refused(now, channel, packet.body));
                }
                Output::Timer(_) => {}
            }
        }
        assert_eq!(self.network.now(), until);
        self.check();
    }

    /// Every packet is accounted for.
    pub fn check(&self) {
        let totals = self.network.totals();
        assert_eq!(
            totals.injected + totals.duplicated,
            totals.delivered + totals.dropped + totals.lost + totals.in_flight,
            "{totals:?}"
        );
    }

    pub fn delivered(&self) -> Vec<(Nanos, u32)> {
        let delivered = |event: &Event| match event {
            Event::Delivered(at, body) => Some((*at, *body)),
            _ => None,
        };
        self.log.0.iter().filter_map(delivered).collect()
    }

    pub fn dropped(&self) -> Vec<(Nanos, u32, DropReason)> {
        let dropped = |event: &Event| match event {
            Event::Dropped(at, body, reason) => Some((*at, *body, *reason)),
            _ => None,
        };
        self.log.0.iter().filter_map(dropped).collect()
    }
}

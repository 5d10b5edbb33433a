//! Random networks with random tables that change.
//!
//! Packets that follow walked ways fare as packets that ask each switch's tables. No packet disappears unaccounted for.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use polypath_net::{
    Change, ChannelConfig, ChannelId, DropTailConfig, Ecn, InterfaceId, Nanos, Network, NodeId,
    NodeKind, Output, Packet, QueueConfig, TimerId, Topology,
};
use polypath_switch::{
    Action, Bucket, Counts, Destination, Entry, Fabric, Fields, Group, GroupKind, Instructions,
    Limits, Match, Port, Start, Switch, TTL, Timeouts, WHOLE, Wanted,
};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
const UDP: u8 = 17;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Body {
    id: u32,
    fields: Fields,
    /// Links crossed before its present route.
    crossed: u16,
}

#[derive(Clone, Debug)]
struct Shape {
    switches: usize,
    hosts: Vec<usize>,
    /// Links between switches.
    links: Vec<(usize, usize)>,
}

#[derive(Clone, Debug)]
enum Step {
    Add(
        usize,
        u8,
        Match,
        u16,
        Instructions,
        Option<Nanos>,
        Option<Nanos>,
    ),
    Modify(usize, Match, Instructions),
    Delete(usize, Match),
    Group(usize, Group),
    Ungroup(usize),
    Send(usize, usize, u16, u32),
}

fn address(host: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1).into()
}

fn end(host: usize, port: u16) -> SocketAddr {
    (address(host), port).into()
}

/// Where packets ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fate {
    arrived: Vec<(Nanos, u32, NodeId)>,
    /// By switches, for which reason.
    refused: Vec<(Nanos, u32, &'static str)>,
    sent: u64,
    copies: u64,
}

struct Run {
    network: Network<Body>,
    fabric: Fabric,
    hosts: Vec<(NodeId, ChannelId)>,
    timer: TimerId,
    expiry: TimerId,
    /// Packets follow walked ways; if not, they stop at every switch.
    walked: bool,
    fate: Fate,
}

impl Run {
    fn new(shape: &Shape, downs: &[(usize, Nanos, bool)], walked: bool) -> Self {
        let mut topology = Topology::new();
        let switches: Vec<NodeId> = (0..shape.switches)
            .map(|_| topology.add_node(NodeKind::Switch))
            .collect();
        let config = |millis: u64| ChannelConfig {
            rate_bps: Some(20_000_000),
            delay: millis * MS / 2,
            queue: QueueConfig::DropTail(DropTailConfig {
                packets: Some(4),
                bytes: None,
            }),
            ..ChannelConfig::default()
        };
        let mut hosts = Vec::new();
        for (number, &switch) in shape.hosts.iter().enumerate() {
            let host = topology.add_node(NodeKind::Host);
            let near: InterfaceId = topology.add_interface(host);
            topology.add_address(near, address(number)).unwrap();
            let far = topology.add_interface(switches[switch % switches.len()]);
            let pair = topology.connect(near, far, config(1), config(1)).unwrap();
            hosts.push((host, pair.0));
        }
        let mut channels = Vec::new();
        for (number, &(a, b)) in shape.links.iter().enumerate() {
            let (a, b) = (a % switches.len(), b % switches.len());
            if a != b {
                let ends = [a, b].map(|node| topology.add_interface(switches[node]));
                let delay = config(number as u64 % 3 + 1);
                let made = topology.connect(ends[0], ends[1], delay.clone(), delay);
                channels.push(made.unwrap().0);
            }
        }
        let fabric = Fabric::new(
            &topology,
            7,
            Limits {
                tables: 2,
                ..Limits::default()
            },
            |node| node.index() < shape.switches,
        );
        let mut network = Network::new(topology, 7);
        for &(link, at, up) in downs {
            if !channels.is_empty() {
                let channel = channels[link % channels.len()];
                let change = Change {
                    up: Some(up),
                    ..Change::default()
                };
                network.schedule(at, channel, change).unwrap();
            }
        }
        let (timer, expiry) = (network.new_timer(), network.new_timer());
        let fate = Fate::default();
        Self {
            network,
            fabric,
            hosts,
            timer,
            expiry,
            walked,
            fate,
        }
    }

    fn put(&mut self, channel: ChannelId, len: u32, body: Body) {
        let start = Start {
            channel,
            fields: body.fields,
            crossed: body.crossed,
        };
        let route = if self.walked {
            self.fabric.route(&mut self.network, start, body.id)
        } else {
            self.network.route_over(&[channel])
        };
        let route = route.unwrap();
        self.network
            .inject(route, len, 0, Ecn::NotEct, body, &mut self.fabric.hits);
    }

    fn send(&mut self, from: usize, to: usize, port: u16, len: u32) {
        let (from, to) = (from % self.hosts.len(), to % self.hosts.len());
        let fields = Fields::new(0, UDP, end(from, port), end(to, 9));
        let id = self.fate.sent as u32;
        self.fate.sent += 1;
        self.put(
            self.hosts[from].1,
            len,
            Body {
                id,
                fields,
                crossed: 0,
            },
        );
    }

    fn deliver(&mut self, node: NodeId, interface: InterfaceId, packet: Packet<Body>) {
        let (now, id) = (self.network.now(), packet.body.id);
        let crossed = packet.body.crossed + packet.hop;
        assert!(crossed <= TTL, "a packet went on without end");
        if self.fabric.switch(node).is_none() {
            return self.fate.arrived.push((now, id, node));
        }
        if crossed >= TTL {
            return self.fate.refused.push((now, id, "ttl"));
        }
        let fields = packet.body.fields.at(self.fabric.port(interface));
        let decision = self.fabric.arrive(now, node, &fields, packet.len);
        let count = decision.destinations.len();
        self.fate.copies += count.saturating_sub(1) as u64;
        if count == 0 {
            self.fate
                .refused
                .push((now, id, if decision.missed { "miss" } else { "drop" }));
        }
        for destination in decision.destinations {
            let channel = match destination {
                Destination::Controller { .. } => {
                    self.fate.refused.push((now, id, "controller"));
                    continue;
                }
                Destination::Port(port) => Fabric::channel(self.network.topology(), node, port),
            };
            self.put(
                channel.unwrap(),
                packet.len,
                Body {
                    crossed,
                    ..packet.body
                },
            );
        }
    }

    fn change(&mut self, step: &Step) {
        let count = self.fabric.switches().count();
        let node = |switch: &usize| NodeId((*switch % count) as u32);
        let network = &mut self.network;
        match step {
            Step::Add(switch, table, matching, priority, given, idle, hard) => {
                let timeouts = Timeouts {
                    idle: *idle,
                    hard: *hard,
                };
                let entry = Entry {
                    timeouts,
                    ..Switch::entry(*matching, *priority, given.clone())
                };
                let _ = self.fabric.add(network, node(switch), *table, entry, false);
            }
            Step::Modify(switch, matching, given) => {
                let wanted = Wanted::included(*matching);
                let _ = self
                    .fabric
                    .modify(network, node(switch), 0, &wanted, given, false);
            }
            Step::Delete(switch, matching) => {
                let wanted = Wanted::included(*matching);
                let _ = self.fabric.delete(network, node(switch), 0, &wanted);
            }
            Step::Group(switch, group) => {
                let node = node(switch);
                if self.fabric.add_group(node, 1, group.clone()).is_err() {
                    let _ = self.fabric.modify_group(network, node, 1, group.clone());
                }
            }
            Step::Ungroup(switch) => {
                self.fabric.delete_group(network, node(switch), 1);
            }
            Step::Send(from, to, port, len) => self.send(*from, *to, *port, *len),
        }
    }

    /// Does one step each half millisecond, and then lets the network run.
    fn run(mut self, steps: &[Step]) -> (Fate, polypath_net::Totals, Vec<(Counts, Nanos)>) {
        let mut steps = steps.iter();
        self.network.set_timer(self.timer, MS / 2);
        let (timer, expiry) = (self.timer, self.expiry);
        loop {
            let output = self.network.poll(60 * MS, &mut self.fabric.hits);
            match output {
                Some(Output::Delivered {
                    node,
                    interface,
                    packet,
                }) => self.deliver(node, interface, packet),
                Some(Output::Timer(fired)) if fired == timer => {
                    for step in steps.by_ref().take(3) {
                        self.change(step);
                    }
                    self.network.set_timer(timer, self.network.now() + MS / 2);
                }
                Some(Output::Timer(_)) => {
                    self.fabric.expire(&mut self.network);
                }
                Some(Output::Changed(channel)) => {
                    self.fabric.link_changed(&mut self.network, channel);
                }
                Some(_) => {}
                None => break,
            }
            if let Some(at) = self.fabric.next_deadline() {
                self.network.set_timer(expiry, at);
            }
        }
        self.fabric.settle();
        let switches = self.fabric.switches();
        let entries = switches.flat_map(|(_, switch)| (0..2).flat_map(|table| switch.table(table)));
        let counts = entries.map(|entry| (entry.counts, entry.used_at)).collect();
        (self.fate, self.network.totals(), counts)
    }
}

fn matches() -> impl Strategy<Value = Match> {
    let port = proptest::option::of(1..4u32);
    let host = || proptest::option::of(0..4usize);
    (port, host(), host(), proptest::option::of(0..3u16)).prop_map(
        |(port, source, destination, number)| {
            let mut made = Match::any();
            made = port.map_or(made, |port| made.in_port(port));
            made = source.map_or(made, |host| made.source(address(host), 32));
            made = destination.map_or(made, |host| made.destination(address(host), 31));
            number.map_or(made, |number| made.source_port(number, u16::MAX))
        },
    )
}

/// A match of one flow, as reactive controllers use it.
fn flows() -> impl Strategy<Value = Match> {
    (0..4usize, 0..4usize, 0..3u16)
        .prop_map(|(from, to, port)| Match::flow(&Fields::new(0, UDP, end(from, port), end(to, 9))))
}

fn instructions() -> impl Strategy<Value = Instructions> {
    let action = prop_oneof![
        8 => (1..5u32).prop_map(Action::port),
        6 => Just(Action::Group(1)),
        1 => Just(Action::Output(Port::All)),
        1 => Just(Action::Output(Port::In)),
        1 => Just(Action::Output(Port::Controller(WHOLE))),
    ];
    let apply = prop_oneof![
        10 => action.prop_map(|action| vec![action]),
        1 => Just(vec![]),
        1 => Just(vec![Action::port(1), Action::port(2)]),
    ];
    (apply, prop::bool::weighted(0.1)).prop_map(|(apply, goto)| Instructions {
        apply,
        goto: goto.then_some(1),
        ..Instructions::default()
    })
}

fn groups() -> impl Strategy<Value = Group> {
    let kind = prop_oneof![
        Just(GroupKind::All),
        Just(GroupKind::Select),
        Just(GroupKind::FastFailover),
    ];
    let buckets = proptest::collection::vec((1..4u32, 1..4u16), 1..4);
    (kind, buckets).prop_map(|(kind, buckets)| Group {
        kind,
        buckets: buckets
            .into_iter()
            .map(|(port, weight)| Bucket::out(port, weight))
            .collect(),
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let time = || proptest::option::weighted(0.3, (1..20u64).prop_map(|time| time * MS / 3));
    let switch = || 0..5usize;
    let matching = || prop_oneof![matches(), flows()];
    prop_oneof![
        6 => (switch(), 0..2u8, matching(), 0..4u16, instructions(), time(), time()).prop_map(
            |(switch, table, matching, priority, given, idle, hard)| {
                Step::Add(switch, table, matching, priority, given, idle, hard)
            }
        ),
        1 => (switch(), matching(), instructions())
            .prop_map(|(switch, matching, given)| Step::Modify(switch, matching, given)),
        1 => (switch(), matching()).prop_map(|(switch, matching)| Step::Delete(switch, matching)),
        4 => (switch(), groups()).prop_map(|(switch, group)| Step::Group(switch, group)),
        1 => switch().prop_map(Step::Ungroup),
        12 => (0..4usize, 0..4usize, 0..3u16, 64..1500u32)
            .prop_map(|(from, to, port, len)| Step::Send(from, to, port, len)),
    ]
}

fn shapes() -> impl Strategy<Value = Shape> {
    let links = proptest::collection::vec((0..5usize, 0..5usize), 0..8);
    (1..5usize, proptest::collection::vec(0..5usize, 2..5), links).prop_map(
        |(switches, hosts, links)| Shape {
            switches,
            hosts,
            links,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn packets_fare_on_walked_ways_as_table_by_table_and_none_is_missing(
        shape in shapes(),
        // Tables that lead somewhere, so that packets get on.
        spread in proptest::collection::vec(groups(), 5),
        first in proptest::collection::vec((0..5usize, matches(), 1..5u32), 4..16),
        steps in proptest::collection::vec(steps(), 10..80),
        downs in proptest::collection::vec((0..8usize, 1..40u64, any::<bool>()), 0..16),
    ) {
        let spread = spread.into_iter().enumerate().flat_map(|(switch, group)| {
            let given = Instructions::apply(&[Action::Group(1)]);
            [Step::Group(switch, group), Step::Add(switch, 0, Match::any(), 0, given, None, None)]
        });
        let first = first.into_iter().map(|(switch, matching, port)| {
            Step::Add(switch, 0, matching, 1, Instructions::out(port), None, None)
        });
        let steps: Vec<Step> = spread.chain(first).chain(steps).collect();
        let downs: Vec<_> = downs.into_iter().map(|(link, at, up)| (link, at * MS / 2, up)).collect();
        let (fate, totals, counts) = Run::new(&shape, &downs, true).run(&steps);
        let (plain, plain_totals, plain_counts) = Run::new(&shape, &downs, false).run(&steps);
        prop_assert_eq!(&fate, &plain);
        prop_assert_eq!(counts, plain_counts);
        for (fate, totals) in [(fate, totals), (plain, plain_totals)] {
            let ends = fate.arrived.len() as u64 + fate.refused.len() as u64;
            let on_the_way = totals.dropped + totals.lost + totals.in_flight;
            prop_assert_eq!(fate.sent + fate.copies, ends + on_the_way);
        }
    }
}

/// Two switches that send a packet to each other.
#[test]
fn a_loop_ends_with_the_ttl() {
    let shape = Shape {
        switches: 2,
        hosts: vec![0, 1],
        links: vec![(0, 1), (0, 1)],
    };
    // Both switches have their host at port 1 and the links at ports 2 and 3.
    let round = |switch: usize| {
        Step::Add(
            switch,
            0,
            Match::any().in_port(2),
            1,
            Instructions::out(3),
            None,
            None,
        )
    };
    let back = |switch: usize| {
        Step::Add(
            switch,
            0,
            Match::any().in_port(3),
            1,
            Instructions::out(2),
            None,
            None,
        )
    };
    let steps = [
        round(0),
        round(1),
        back(0),
        back(1),
        Step::Add(
            0,
            0,
            Match::any().in_port(1),
            1,
            Instructions::out(2),
            None,
            None,
        ),
        Step::Send(0, 1, 5, 100),
    ];
    for walked in [true, false] {
        let (fate, totals, counts) = Run::new(&shape, &[], walked).run(&steps);
        assert_eq!(
            fate.refused.iter().map(|it| it.2).collect::<Vec<_>>(),
            ["ttl"]
        );
        assert!(fate.arrived.is_empty());
        assert_eq!((totals.in_flight, totals.dropped, totals.lost), (0, 0, 0));
        // Sent over 64 links, it is forwarded by 63 switches and ends at the next.
        assert_eq!(counts.iter().map(|it| it.0.packets).sum::<u64>(), 63);
    }
}

/// Packets that are on their way to a switch as a port of it goes down leave by the other.
#[test]
fn packets_on_their_way_fail_over_too() {
    let shape = Shape {
        switches: 2,
        hosts: vec![0, 1],
        links: vec![(0, 1), (0, 1)],
    };
    let failover = Group {
        kind: GroupKind::FastFailover,
        buckets: vec![Bucket::out(2, 0), Bucket::out(3, 0)],
    };
    let to_host = Step::Add(1, 0, Match::any(), 1, Instructions::out(1), None, None);
    let to_group = Instructions::apply(&[Action::Group(1)]);
    let steps = [
        Step::Group(0, failover),
        Step::Add(0, 0, Match::any(), 1, to_group, None, None),
        to_host,
        Step::Send(0, 1, 5, 1250),
        Step::Send(0, 1, 5, 1250),
        Step::Send(0, 1, 5, 1250),
    ];
    // Sent at 1 ms, they reach the first switch at 2 ms, 2.5 ms and 3 ms, the second by the first link 1 ms later.
    for (down, lost) in [(4, 0), (5, 1), (7, 2)] {
        for walked in [true, false] {
            let (fate, totals, _) =
                Run::new(&shape, &[(0, down * MS / 2 - 1, false)], walked).run(&steps);
            assert_eq!((fate.arrived.len(), totals.lost), (3 - lost, lost as u64));
        }
    }
}

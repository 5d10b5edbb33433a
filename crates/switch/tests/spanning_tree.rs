//! Bridges on links with a delay: the forwarding links form a tree, for every graph and every failure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use polypath_switch::spanning_tree::{Bridge, Output, PortSettings, Role, Settings, State};
use polypath_wire::bpdu::{Bpdu, BridgeId};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const DELAY: u64 = MS;

const HOLD_COUNT: u32 = 6;
/// BPDUs are never held back.
const UNLIMITED: u32 = 100_000;

fn settings(rapid: bool, hold_count: u32) -> Settings {
    Settings {
        rapid,
        hello_time: 2 * 256,
        max_age: 20 * 256,
        forward_delay: 15 * 256,
        hold_count,
    }
}

/// Two ends: bridge and port.
type Link = ((usize, u32), (usize, u32));
/// A link's delay, and what it costs.
type Kind = (u64, u32);
const ALIKE: Kind = (DELAY, 20_000);

/// Over which link, to which bridge and port.
type Flying = (usize, (usize, u32), Bpdu);

struct Net {
    now: u64,
    bridges: Vec<Bridge>,
    links: Vec<Link>,
    delays: Vec<u64>,
    up: Vec<bool>,
    flying: BTreeMap<(u64, u64), Flying>,
    sent: u64,
    flushed: BTreeSet<(usize, u32)>,
    /// Whether there must be no loop at any instant.
    strict: bool,
}

impl Net {
    fn new(bridges: usize, edges: &[(usize, usize)], rapid: bool, hold_count: u32) -> Self {
        Self::of(bridges, edges, &vec![ALIKE; edges.len()], rapid, hold_count)
    }

    fn of(
        bridges: usize,
        edges: &[(usize, usize)],
        kinds: &[Kind],
        rapid: bool,
        hold_count: u32,
    ) -> Self {
        let mut count = vec![0; bridges];
        let mut face = |bridge: usize| {
            count[bridge] += 1;
            (bridge, count[bridge])
        };
        let links: Vec<Link> = edges.iter().map(|&(a, b)| (face(a), face(b))).collect();
        let mut ports = vec![Vec::new(); bridges];
        for (&(a, b), &(_, path_cost)) in edges.iter().zip(kinds) {
            for bridge in [a, b] {
                ports[bridge].push(PortSettings {
                    priority: 0x80,
                    path_cost,
                    admin_edge: false,
                });
            }
        }
        let made = (0..).zip(&ports).map(|(number, ports)| {
            let id = BridgeId {
                priority: 0x8000,
                address: [2, 0, 0, 0, 0, number],
            };
            Bridge::new(id, settings(rapid, hold_count), ports, 0)
        });
        let mut net = Self {
            now: 0,
            bridges: made.collect(),
            up: vec![false; links.len()],
            links,
            delays: kinds.iter().map(|(delay, _)| *delay).collect(),
            flying: BTreeMap::new(),
            sent: 0,
            flushed: BTreeSet::new(),
            strict: !rapid
                || (hold_count == UNLIMITED && kinds.iter().all(|kind| kind.0 == kinds[0].0)),
        };
        for link in 0..net.links.len() {
            net.set(link, true);
        }
        net
    }

    fn set(&mut self, link: usize, up: bool) {
        self.up[link] = up;
        if !up {
            self.flying.retain(|_, (over, ..)| *over != link);
        }
        for (bridge, port) in [self.links[link].0, self.links[link].1] {
            self.bridges[bridge].set_up(self.now, port, up);
        }
        for (bridge, _) in [self.links[link].0, self.links[link].1] {
            self.deliver(bridge);
        }
    }

    fn deliver(&mut self, bridge: usize) {
        for output in self.bridges[bridge].take() {
            match output {
                Output::Send { port, bpdu } => {
                    let from = (bridge, port);
                    let link = self
                        .links
                        .iter()
                        .position(|(a, b)| *a == from || *b == from);
                    let link = link.expect("a port has a link");
                    let (a, b) = self.links[link];
                    let to = if a == from { b } else { a };
                    if self.up[link] {
                        self.sent += 1;
                        let key = (self.now + self.delays[link], self.sent);
                        self.flying.insert(key, (link, to, bpdu));
                    }
                }
                Output::Flush { port } => {
                    self.flushed.insert((bridge, port));
                }
                Output::Port { .. } => {}
            }
        }
    }

    fn run(&mut self, until: u64) {
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let timer = self.bridges.iter().filter_map(Bridge::next_deadline).min();
            let next = [arrival, timer].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= until) else {
                break;
            };
            self.now = next;
            if arrival == Some(next) {
                let (_, (_, (bridge, port), bpdu)) = self.flying.pop_first().expect("it is there");
                self.bridges[bridge].receive(next, port, &bpdu);
                self.deliver(bridge);
                continue;
            }
            for bridge in 0..self.bridges.len() {
                if self.bridges[bridge].next_deadline() == Some(next) {
                    self.bridges[bridge].on_time(next);
                    self.deliver(bridge);
                }
            }
            if self.strict {
                self.no_loop();
            }
        }
        self.now = until;
    }

    fn forwards(&self, link: usize) -> bool {
        let (a, b) = self.links[link];
        let both = [a, b];
        let mut states = both
            .iter()
            .map(|&(bridge, port)| self.bridges[bridge].port(port).1);
        self.up[link] && states.all(|state| state == State::Forwarding)
    }

    /// The links that frames cross, over which no bridge is reached by two ways.
    fn no_loop(&self) -> Vec<usize> {
        let active: Vec<usize> = (0..self.links.len())
            .filter(|&it| self.forwards(it))
            .collect();
        let mut part: Vec<usize> = (0..self.bridges.len()).collect();
        for &link in &active {
            let ((a, _), (b, _)) = self.links[link];
            assert_ne!(
                part[a], part[b],
                "a loop over link {link} at {} ns",
                self.now
            );
            let (from, to) = (part[a], part[b]);
            part.iter_mut()
                .filter(|it| **it == from)
                .for_each(|it| *it = to);
        }
        active
    }

    /// All that links join is joined by those that forward, and the least bridge of each part is its root.
    fn converged(&self) {
        let active = self.no_loop();
        let reach = |from: usize, links: &mut dyn Iterator<Item = usize>| {
            let links: Vec<usize> = links.collect();
            let mut seen = BTreeSet::from([from]);
            let mut queue = VecDeque::from([from]);
            while let Some(at) = queue.pop_front() {
                for &link in &links {
                    let ((a, _), (b, _)) = self.links[link];
                    for (here, there) in [(a, b), (b, a)] {
                        if here == at && seen.insert(there) {
                            queue.push_back(there);
                        }
                    }
                }
            }
            seen
        };
        for bridge in 0..self.bridges.len() {
            let all = reach(bridge, &mut (0..self.links.len()).filter(|&it| self.up[it]));
            let tree = reach(bridge, &mut active.iter().copied());
            assert_eq!(all, tree, "bridge {bridge} at {} ns", self.now);
            let root = self.bridges[*all.first().expect("itself")].id();
            assert_eq!(self.bridges[bridge].root(), root);
        }
    }
}

fn graphs() -> impl Strategy<Value = (usize, Vec<(usize, usize)>)> {
    (2..9usize).prop_flat_map(|bridges| {
        let edge = (0..bridges, 0..bridges).prop_filter("two ends", |(a, b)| a != b);
        (Just(bridges), proptest::collection::vec(edge, 1..16))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// At every instant, unless rapid bridges hold BPDUs back or some links are slower than others: where a part is cut off from the root, old
    /// information of it goes around until it is too old, and as long as a bridge waits to tell of it, or what it told is on its way, a
    /// loop can forward (Elmeleegy, Cox and Ng, INFOCOM 2006).
    #[test]
    fn what_forwards_is_a_tree_whatever_fails(
        (bridges, edges) in graphs(),
        kinds in proptest::collection::vec((MS / 100..50 * MS, 1..5u32), 16),
        alike in any::<bool>(),
        rapid in any::<bool>(),
        hold_count in prop_oneof![Just(HOLD_COUNT), Just(UNLIMITED)],
        failures in proptest::collection::vec((any::<prop::sample::Index>(), 1..8000u64), 0..6),
    ) {
        let delay = |own: u64| if alike { kinds[0].0 } else { own };
        let kinds: Vec<Kind> = kinds.iter().map(|&(own, cost)| (delay(own), cost)).collect();
        let mut net = Net::of(bridges, &edges, &kinds[..edges.len()], rapid, hold_count);
        let settle = if rapid { 60 * SECOND } else { 120 * SECOND };
        net.run(settle);
        net.converged();
        let mut at = settle;
        for (link, wait) in failures {
            let link = link.index(edges.len());
            let up = net.up[link];
            net.set(link, !up);
            if net.strict {
                net.no_loop();
            }
            at += wait * MS;
            net.run(at);
        }
        net.run(at + settle);
        net.converged();
    }
}

/// Three bridges in a ring, as they come up: proposal and agreement over each link, once the ports have said what they are.
#[test]
fn a_rapid_ring_converges_in_milliseconds() {
    let mut net = Net::new(3, &[(0, 1), (1, 2), (2, 0)], true, HOLD_COUNT);
    net.run(20 * MS);
    net.converged();
    let (role, state) = net.bridges[2].port(1);
    assert_eq!((role, state), (Role::Alternate, State::Discarding));
    assert_eq!(net.bridges[2].port(2), (Role::Root, State::Forwarding));
    // The root port fails: the alternate takes its place at once, and addresses are learned anew.
    net.flushed.clear();
    let failed = net.now;
    net.set(2, false);
    assert_eq!(net.bridges[2].port(1), (Role::Root, State::Forwarding));
    net.run(failed + 5 * MS);
    net.converged();
    assert!(net.flushed.contains(&(1, 1)), "the other end's entries go");
}

/// A link from the root to the far end of a line: each bridge blocks what it has behind it before it agrees (clause 17.29, sync), so that the
/// cut moves along the line, at the pace of the links.
#[test]
fn a_new_link_is_agreed_on_along_the_line() {
    let line: Vec<_> = (0..7).map(|bridge| (bridge, bridge + 1)).collect();
    let edges: Vec<_> = line.into_iter().chain([(0, 7)]).collect();
    let mut net = Net::new(8, &edges, true, UNLIMITED);
    net.set(7, false);
    net.run(10 * SECOND);
    net.converged();
    assert!((0..7).all(|link| net.forwards(link)));
    net.set(7, true);
    net.run(10 * SECOND + 30 * MS);
    net.converged();
    // The middle of the ring is blocked now, and what is behind the new link goes over it.
    assert!(net.forwards(7));
    let blocked: Vec<_> = (0..7).filter(|link| !net.forwards(*link)).collect();
    assert_eq!(blocked, [4]);
}

/// Clause 17.13.4: a port forwards a newly enabled link after max age to hear of others, and twice after forward delay once it has.
#[test]
fn the_classic_protocol_waits_for_its_timers() {
    let mut net = Net::new(3, &[(0, 1), (1, 2), (2, 0)], false, HOLD_COUNT);
    net.run(34 * SECOND);
    assert!((0..3).all(|link| !net.forwards(link)));
    net.run(36 * SECOND);
    net.converged();
    let failed = net.now;
    net.set(2, false);
    net.run(failed + 29 * SECOND);
    assert!(!net.forwards(1));
    net.run(failed + 31 * SECOND);
    net.converged();
}

/// Where the way to the root is lost without a link going down, what was heard counts for three hello times.
#[test]
fn silence_is_noticed_after_three_hello_times() {
    let mut net = Net::new(2, &[(0, 1)], true, HOLD_COUNT);
    net.run(10 * SECOND);
    assert_eq!(net.bridges[1].root(), net.bridges[0].id());
    let mut alone = net.bridges.remove(1);
    let mut heard = 10 * SECOND;
    while alone.root() != alone.id() {
        heard = alone.next_deadline().expect("timers run");
        alone.on_time(heard);
    }
    assert!(
        (14 * SECOND..=16 * SECOND + DELAY).contains(&heard),
        "{heard}"
    );
}

/// A port has sent its limit: what is to be said waits for the next second.
#[test]
fn a_port_sends_no_more_than_the_hold_count_in_a_second() {
    let mut net = Net::new(2, &[(0, 1)], true, HOLD_COUNT);
    net.run(10 * SECOND);
    let before = net.sent;
    for _ in 0..20 {
        let other = net.links[0].0;
        net.bridges[other.0].set_up(net.now, 1, false);
        net.bridges[other.0].set_up(net.now, 1, true);
        net.deliver(other.0);
    }
    assert!(net.sent - before <= 6, "{}", net.sent - before);
}

//! In a network larger than caches, the owner hears of packets shortly before they arrive. This does not change what
//! happens.

mod common;

use std::cell::RefCell;
use std::collections::BTreeSet;

use common::{MS, config};
use polypath_net::events::{EventQueue, Heap};
use polypath_net::{Ecn, Network, NodeKind, Observer, Output, Packet, RouteId, Topology};

/// Bodies of packets that were expected, and to arrive next.
#[derive(Default)]
struct Expected([RefCell<BTreeSet<u32>>; 2]);

impl Observer<u32> for Expected {
    const ACTIVE: bool = false;

    fn expects(&self, packet: &Packet<u32>, next: bool) {
        self.0[usize::from(next)].borrow_mut().insert(packet.body);
    }
}

/// So many chains of three links, and the way over each.
fn chains(count: usize) -> (Topology, Vec<Vec<polypath_net::ChannelId>>) {
    let mut topology = Topology::new();
    let kinds = [
        NodeKind::Host,
        NodeKind::Switch,
        NodeKind::Switch,
        NodeKind::Host,
    ];
    let ways = (0..count).map(|_| {
        let nodes = kinds.map(|kind| topology.add_node(kind));
        let links = nodes.windows(2).map(|ends| {
            let [a, b] = [ends[0], ends[1]].map(|node| topology.add_interface(node));
            topology.connect(a, b, config(), config()).unwrap().0
        });
        links.collect()
    });
    let ways = ways.collect();
    (topology, ways)
}

/// Three packets over each chain, all sent at once.
fn run<Q: EventQueue>(
    mut network: Network<u32, Q>,
    ways: &[Vec<polypath_net::ChannelId>],
) -> (Vec<(u64, Output<u32>)>, Expected) {
    let mut expected = Expected::default();
    let routes: Vec<RouteId> = ways
        .iter()
        .map(|way| network.route_over(way).unwrap())
        .collect();
    for number in 0..3 * routes.len() {
        let route = routes[number % routes.len()];
        network.inject(route, 500, 0, Ecn::NotEct, number as u32, &mut expected);
    }
    let mut outputs = Vec::new();
    while let Some(output) = network.poll(100 * MS, &mut expected) {
        outputs.push((network.now(), output));
    }
    assert_eq!(outputs.len(), 3 * routes.len());
    (outputs, expected)
}

#[test]
fn arrivals_are_expected_in_large_networks_alone_and_nothing_else_differs() {
    for (count, crowded) in [(600, false), (700, true)] {
        let (topology, ways) = chains(count);
        let (wheel, expected) = run(Network::new(topology, 1), &ways);
        let (topology, ways) = chains(count);
        let heap = Network::<u32, Heap>::with_event_queue(topology, 1);
        let (heap, never) = run(heap, &ways);
        assert_eq!(wheel, heap);
        for expected in expected.0.map(RefCell::into_inner) {
            let share = expected.len() as f64 / (3 * count) as f64;
            assert_eq!(share > 0.9, crowded, "{share}");
            assert!(crowded || expected.is_empty());
        }
        assert!(never.0.iter().all(|none| none.borrow().is_empty()));
    }
}

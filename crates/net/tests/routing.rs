//! Routes.

use std::net::IpAddr;

use polypath_net::{
    ChannelConfig, ChannelId, EqualPaths, InterfaceId, NodeId, NodeKind, Prefix, RouteError,
    Topology, TopologyError,
};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn prefix(text: &str, length: u8) -> Prefix {
    Prefix::new(ip(text), length).unwrap()
}

fn delay(ms: u64) -> ChannelConfig {
    ChannelConfig {
        delay: ms * 1_000_000,
        ..ChannelConfig::default()
    }
}

/// Links two nodes by new interfaces.
fn link(topology: &mut Topology, a: NodeId, b: NodeId, ms: u64) -> [InterfaceId; 2] {
    let ends = [a, b].map(|node| topology.add_interface(node));
    topology
        .connect(ends[0], ends[1], delay(ms), delay(ms))
        .unwrap();
    ends
}

/// The nodes on a route, the first one left out.
fn nodes(topology: &mut Topology, from: NodeId, src: &str, dst: &str, label: u64) -> Vec<u32> {
    let route = topology.route(from, ip(src), ip(dst), label).unwrap();
    let path: Vec<ChannelId> = topology.path(route).collect();
    let end = |channel| {
        topology
            .node_of(topology.ends(channel).unwrap().1)
            .unwrap()
            .0
    };
    path.into_iter().map(end).collect()
}

/// A host 0 with two interfaces, 10.0.1.1 and 10.0.2.1, by routers 1 and 2 to router 3 and host 4 with 10.0.9.1 and fd00::9.
fn diamond() -> (Topology, [NodeId; 5], Vec<[InterfaceId; 2]>) {
    let mut topology = Topology::new();
    let client = topology.add_node(NodeKind::Host);
    let [left, right, last] = [NodeKind::Router; 3].map(|kind| topology.add_node(kind));
    let server = topology.add_node(NodeKind::Host);
    let links = vec![
        link(&mut topology, client, left, 1),
        link(&mut topology, client, right, 1),
        link(&mut topology, left, last, 5),
        link(&mut topology, right, last, 1),
        link(&mut topology, left, right, 1),
        link(&mut topology, last, server, 1),
    ];
    for (interface, address) in [
        (links[0][0], "10.0.1.1"),
        (links[1][0], "10.0.2.1"),
        (links[5][1], "10.0.9.1"),
        (links[5][1], "fd00::9"),
        (links[0][0], "fd00::1"),
    ] {
        topology.add_address(interface, ip(address)).unwrap();
    }
    (topology, [client, left, right, last, server], links)
}

#[test]
fn packets_leave_by_the_interface_of_their_source() {
    let (mut topology, [client, .., server], _) = diamond();
    assert_eq!(
        nodes(&mut topology, client, "10.0.1.1", "10.0.9.1", 0),
        [1, 3, 4]
    );
    assert_eq!(
        nodes(&mut topology, client, "10.0.2.1", "10.0.9.1", 0),
        [2, 3, 4]
    );
    assert_eq!(
        nodes(&mut topology, client, "fd00::1", "fd00::9", 0),
        [1, 3, 4]
    );
    // Back to the interface that owns the address, though the other is as near.
    assert_eq!(
        nodes(&mut topology, server, "10.0.9.1", "10.0.2.1", 0),
        [3, 2, 0]
    );
    let route = topology
        .route(client, ip("10.0.1.1"), ip("10.0.9.1"), 0)
        .unwrap();
    assert_eq!(topology.delay(route), 7_000_000);
}

#[test]
fn the_same_path_is_the_same_route() {
    let (mut topology, [client, ..], _) = diamond();
    let mut route = |src, dst, label| topology.route(client, ip(src), ip(dst), label).unwrap();
    let first = route("10.0.1.1", "10.0.9.1", 0);
    assert_eq!(route("10.0.1.1", "10.0.9.1", 7), first);
    assert_eq!(route("fd00::1", "fd00::9", 0), first);
    assert_ne!(route("10.0.2.1", "10.0.9.1", 0), first);
}

#[test]
fn of_paths_with_the_fewest_hops_the_least_delay_counts_then_the_lowest_id() {
    for (delays, middle) in [([3, 2, 2], 2), ([1, 2, 2], 1), ([2, 2, 2], 1)] {
        let mut topology = Topology::new();
        let hosts = [NodeKind::Host; 2].map(|kind| topology.add_node(kind));
        let ends = [NodeKind::Switch; 2].map(|kind| topology.add_node(kind));
        let up = link(&mut topology, hosts[0], ends[0], 0)[0];
        let down = link(&mut topology, ends[1], hosts[1], 0)[1];
        for ms in delays {
            let switch = topology.add_node(NodeKind::Switch);
            link(&mut topology, ends[0], switch, ms);
            link(&mut topology, switch, ends[1], ms);
        }
        topology.add_address(up, ip("10.0.0.1")).unwrap();
        topology.add_address(down, ip("10.0.0.2")).unwrap();
        assert_eq!(
            nodes(&mut topology, hosts[0], "10.0.0.1", "10.0.0.2", 0),
            [2, 3 + middle, 3, 1]
        );
    }
}

#[test]
fn static_routes_count_first_the_most_specific_one_of_them() {
    let (mut topology, [client, left, right, ..], links) = diamond();
    let any = prefix("0.0.0.0", 0);
    let mut add = |node, source, destination, out| {
        topology.add_route(node, source, destination, out).unwrap();
    };
    // At the client, against the source's interface.
    add(client, Some(prefix("10.0.2.0", 24)), any, links[0][0]);
    // At the left router: a longer destination loses against a source.
    add(left, None, prefix("10.0.9.1", 32), links[2][0]);
    add(
        left,
        Some(prefix("10.0.2.0", 24)),
        prefix("10.0.0.0", 8),
        links[4][0],
    );
    assert_eq!(
        nodes(&mut topology, client, "10.0.2.1", "10.0.9.1", 0),
        [1, 2, 3, 4]
    );
    assert_eq!(
        nodes(&mut topology, client, "10.0.1.1", "10.0.9.1", 0),
        [1, 3, 4]
    );
    // A longer destination wins; the first of two equal ones stays.
    topology
        .add_route(left, None, prefix("10.0.9.0", 24), links[4][0])
        .unwrap();
    topology
        .add_route(left, None, prefix("10.0.9.1", 32), links[4][0])
        .unwrap();
    assert_eq!(
        nodes(&mut topology, client, "10.0.1.1", "10.0.9.1", 0),
        [1, 3, 4]
    );

    topology
        .add_route(right, Some(prefix("10.0.2.1", 32)), any, links[4][1])
        .unwrap();
    let error = topology
        .route(client, ip("10.0.2.1"), ip("10.0.9.1"), 0)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "static routes from node 0 to 10.0.9.1 form a loop through node 1, node 2"
    );
}

#[test]
fn ecmp_uses_every_shortest_path_about_equally() {
    let mut topology = Topology::new();
    let hosts = [NodeKind::Host; 2].map(|kind| topology.add_node(kind));
    let ends = [NodeKind::Switch; 2].map(|kind| topology.add_node(kind));
    let up = link(&mut topology, hosts[0], ends[0], 0)[0];
    let down = link(&mut topology, ends[1], hosts[1], 0)[1];
    for ms in [1, 2, 3, 4] {
        let switch = topology.add_node(NodeKind::Switch);
        link(&mut topology, ends[0], switch, ms);
        link(&mut topology, switch, ends[1], ms);
    }
    topology.add_address(up, ip("10.0.0.1")).unwrap();
    topology.add_address(down, ip("10.0.0.2")).unwrap();
    topology.set_equal_paths(EqualPaths::Ecmp { seed: 3 });
    let mut counts = [0u32; 4];
    let pick = |topology: &mut Topology, label| {
        nodes(topology, hosts[0], "10.0.0.1", "10.0.0.2", label)[1] as usize - 4
    };
    for label in 0..4000 {
        counts[pick(&mut topology, label)] += 1;
    }
    assert!(
        counts.iter().all(|count| (890..1110).contains(count)),
        "{counts:?}"
    );
    let before: Vec<usize> = (0..50).map(|label| pick(&mut topology, label)).collect();
    topology.set_equal_paths(EqualPaths::Ecmp { seed: 4 });
    let after: Vec<usize> = (0..50).map(|label| pick(&mut topology, label)).collect();
    assert_ne!(before, after);
    topology.set_equal_paths(EqualPaths::InTurn);
    let turns: Vec<usize> = (0..9).map(|_| pick(&mut topology, 7)).collect();
    assert_eq!(turns, [0, 1, 2, 3, 0, 1, 2, 3, 0]);
    // Who only asks takes no turn.
    topology
        .way(hosts[0], ip("10.0.0.1"), ip("10.0.0.2"))
        .unwrap();
    assert_eq!(pick(&mut topology, 7), 1);
}

#[test]
fn flows_have_a_choice_where_shortest_paths_branch_and_no_static_route_decides() {
    let (mut topology, [client, left, right, last, _], links) = diamond();
    let (here, there) = (ip("10.0.1.1"), ip("10.0.9.1"));
    let choice = |topology: &mut Topology| topology.has_choice(client, here, there).unwrap();
    // From the left router over the right one takes a hop more.
    assert!(!choice(&mut topology));
    let [out, _] = link(&mut topology, left, last, 9);
    assert!(choice(&mut topology));
    topology
        .add_route(left, None, prefix("10.0.9.0", 24), out)
        .unwrap();
    assert!(!choice(&mut topology));
    // Hosts choose nothing themselves: their packets leave by the source's interface.
    link(&mut topology, client, left, 1);
    assert!(!choice(&mut topology));
    let [out, _] = links[4];
    topology
        .add_route(
            left,
            Some(prefix("10.0.1.1", 32)),
            prefix("10.0.9.1", 32),
            out,
        )
        .unwrap();
    link(&mut topology, right, last, 1);
    assert!(choice(&mut topology));
    assert!(topology.has_choice(client, here, ip("192.0.2.1")).is_err());
}

#[test]
fn hosts_do_not_forward_and_errors_name_the_nodes() {
    let mut topology = Topology::new();
    let [a, b, c] = [NodeKind::Host; 3].map(|kind| topology.add_node(kind));
    let router = topology.add_node(NodeKind::Router);
    let first = link(&mut topology, a, b, 1);
    let second = link(&mut topology, b, c, 1);
    let third = link(&mut topology, c, router, 1);
    let lone = topology.add_interface(a);
    for (interface, address) in [
        (first[0], "10.0.0.1"),
        (first[1], "10.0.0.2"),
        (second[0], "10.0.0.3"),
        (second[1], "10.0.0.4"),
        (third[0], "10.0.0.5"),
        (lone, "10.0.0.6"),
    ] {
        topology.add_address(interface, ip(address)).unwrap();
    }
    let mut route = |from, src, dst| topology.route(from, ip(src), ip(dst), 0);
    assert!(route(a, "10.0.0.1", "10.0.0.2").is_ok());
    assert_eq!(
        route(a, "10.0.0.1", "10.0.0.4").unwrap_err().to_string(),
        "the path from node 0 to 10.0.0.4 ends at node 1, a host that does not forward"
    );
    assert_eq!(
        route(a, "10.0.0.1", "10.0.0.6"),
        Err(RouteError::Local {
            node: a,
            destination: ip("10.0.0.6")
        })
    );
    assert_eq!(
        route(a, "10.0.0.6", "10.0.0.2").unwrap_err().to_string(),
        "interface 6 of node 0 has no link, on the path from node 0 to 10.0.0.2"
    );
    assert_eq!(
        route(a, "10.0.0.3", "10.0.0.2").unwrap_err().to_string(),
        "node 0 has neither the address 10.0.0.3 nor a static route for it"
    );
    assert_eq!(
        route(a, "10.0.0.1", "10.9.9.9"),
        Err(RouteError::UnknownDestination(ip("10.9.9.9")))
    );
    assert_eq!(
        route(router, "10.0.0.1", "10.0.0.2")
            .unwrap_err()
            .to_string(),
        "node 3 has no route to 10.0.0.2, on the path from node 3 to node 1"
    );
    assert_eq!(
        route(NodeId(9), "10.0.0.1", "10.0.0.2"),
        Err(RouteError::UnknownNode(NodeId(9)))
    );
}

#[test]
fn building_refuses_what_cannot_be() {
    let (mut topology, [client, left, ..], links) = diamond();
    let [a, b] = links[0];
    assert!(matches!(
        topology.add_address(b, ip("10.0.1.1")),
        Err(TopologyError::AddressTaken { owner, .. }) if owner == a
    ));
    assert_eq!(
        topology.connect(a, b, delay(0), delay(0)),
        Err(TopologyError::Connected(a))
    );
    assert_eq!(
        topology.connect(a, a, delay(0), delay(0)),
        Err(TopologyError::SelfLink(a))
    );
    assert!(matches!(
        topology.add_route(left, None, prefix("10.0.0.0", 8), a),
        Err(TopologyError::ForeignInterface { .. })
    ));
    let lost = topology.add_interface(NodeId(99));
    let fresh = topology.add_interface(client);
    assert_eq!(
        topology.connect(fresh, lost, delay(0), delay(0)),
        Err(TopologyError::UnknownNode(NodeId(99)))
    );
    for bad in [
        ChannelConfig {
            rate_bps: Some(0),
            ..delay(0)
        },
        ChannelConfig {
            burst: u64::MAX,
            ..delay(0)
        },
        ChannelConfig {
            reorder: 1.5,
            ..delay(0)
        },
        ChannelConfig {
            corrupt: f64::NAN,
            ..delay(0)
        },
    ] {
        let other = topology.add_interface(left);
        assert!(matches!(
            topology.connect(fresh, other, bad, delay(0)),
            Err(TopologyError::Config(_))
        ));
    }
    assert!(Prefix::new(ip("10.0.0.0"), 33).is_err());
    assert!(!prefix("0.0.0.0", 0).contains(ip("fd00::1")));
    assert!(prefix("fd00::", 8).contains(ip("fd00::1")));
}

#[test]
fn a_route_through_waypoints_passes_them_in_their_order() {
    let (mut topology, [client, left, right, last, _], links) = diamond();
    for (link, end, address) in [(0, 1, "10.0.1.2"), (3, 0, "10.8.3.1"), (2, 1, "10.8.2.2")] {
        topology.add_address(links[link][end], ip(address)).unwrap();
    }
    let mut through = |via: &[&str]| {
        let via: Vec<IpAddr> = via.iter().map(|text| ip(text)).collect();
        let route = topology
            .route_via(client, ip("10.0.1.1"), &via, ip("10.0.9.1"), 0)
            .map(|route| topology.path(route).collect::<Vec<_>>())?;
        let end = |channel| topology.node_of(topology.ends(channel).unwrap().1).unwrap();
        Ok::<Vec<NodeId>, RouteError>(route.into_iter().map(end).collect())
    };
    let server = NodeId(4);
    // 10.8.3.1 is on the far side of the right router: it is reached there, without going past it first.
    assert_eq!(through(&["10.8.3.1"]).unwrap(), [left, right, last, server]);
    assert_eq!(through(&["10.0.1.2"]).unwrap()[0], left);
    assert_eq!(
        through(&["10.8.2.2", "10.8.3.1"]).unwrap()[..],
        [left, last, right, last, server]
    );
    assert_eq!(
        through(&["10.7.7.7"]),
        Err(RouteError::UnknownDestination(ip("10.7.7.7")))
    );
}

/// Two paths without a link in common: the second address of the server is reached over its first interface, and the answer leaves by the
/// interface that owns its source.
#[test]
fn a_host_takes_packets_to_any_of_its_addresses_on_every_interface() {
    let mut topology = Topology::new();
    let [client, server] = [0, 1].map(|_| topology.add_node(NodeKind::Host));
    let switches = [0, 1].map(|_| topology.add_node(NodeKind::Switch));
    for (index, switch) in switches.into_iter().enumerate() {
        let [near, _] = link(&mut topology, client, switch, 1);
        topology
            .add_address(near, ip(&format!("10.0.{index}.1")))
            .unwrap();
        let [_, far] = link(&mut topology, switch, server, 1);
        topology
            .add_address(far, ip(&format!("10.0.{index}.2")))
            .unwrap();
    }
    let mut through = |from, src, dst| nodes(&mut topology, from, src, dst, 0)[0];
    assert_eq!(through(client, "10.0.0.1", "10.0.0.2"), switches[0].0);
    assert_eq!(through(client, "10.0.0.1", "10.0.1.2"), switches[0].0);
    assert_eq!(through(server, "10.0.1.2", "10.0.0.1"), switches[1].0);
}

/// BCube of n = 2 and k = 1: servers 0 to 3 that forward, switch 4 + i between servers 2i and 2i + 1 on level 0, switch 6 + i between servers
/// i and i + 2 on level 1. A server's address of level l is 10.s.l.1.
fn bcube() -> (Topology, [NodeId; 4]) {
    let mut topology = Topology::new();
    let servers = [NodeKind::ForwardingHost; 4].map(|kind| topology.add_node(kind));
    let switches = [NodeKind::Switch; 4].map(|kind| topology.add_node(kind));
    for (number, server) in servers.into_iter().enumerate() {
        for (level, switch) in [switches[number / 2], switches[2 + number % 2]]
            .into_iter()
            .enumerate()
        {
            let [own, _] = link(&mut topology, server, switch, 1);
            let address = format!("10.{number}.{level}.1");
            topology.add_address(own, ip(&address)).unwrap();
        }
    }
    (topology, servers)
}

#[test]
fn servers_that_forward_are_on_the_way_of_others() {
    let (mut topology, [first, .., last]) = bcube();
    let way = |topology: &mut Topology, src, dst| nodes(topology, first, src, dst, 0);
    assert_eq!(way(&mut topology, "10.0.0.1", "10.3.1.1"), [4, 1, 7, 3]);
    assert_eq!(way(&mut topology, "10.0.1.1", "10.3.0.1"), [6, 2, 5, 3]);
    let unsent = topology.route(last, ip("10.1.0.1"), ip("10.0.0.1"), 0);
    assert!(matches!(unsent, Err(RouteError::ForeignSource { .. })));
}

#[test]
fn a_way_leads_through_neither_of_its_own_ends() {
    let (mut topology, [first, second, ..]) = bcube();
    // The first and the second server share switch 4 alone; a way between their links of level 1 goes round by 2 and 3.
    assert_eq!(
        nodes(&mut topology, first, "10.0.1.1", "10.1.1.1", 0),
        [6, 2, 5, 3, 7, 1]
    );
    assert_eq!(
        nodes(&mut topology, first, "10.0.0.1", "10.1.0.1", 0),
        [4, 1]
    );
    assert_eq!(
        nodes(&mut topology, second, "10.1.1.1", "10.0.1.1", 0),
        [7, 3, 5, 2, 6, 0]
    );
    for label in 0..20 {
        topology.set_equal_paths(EqualPaths::Ecmp { seed: label });
        let way = nodes(&mut topology, first, "10.0.0.1", "10.3.0.1", label);
        assert_eq!(way.last(), Some(&3));
        assert!(!way[..way.len() - 1].contains(&3) && !way.contains(&0));
    }
}

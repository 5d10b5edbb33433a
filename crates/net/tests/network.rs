//! Clock, timers, and the two ways to own the loop.

mod common;

use common::{FORWARD, MS, Pair, config};
use polypath_net::{Change, ChannelConfig, ChannelId, Ecn, Network, NodeKind, Output, Topology};

#[test]
fn timers_fire_once_at_the_time_they_were_last_set_to() {
    let mut network = Pair::new(config()).network;
    let [first, second, third] = [(); 3].map(|()| network.new_timer());
    network.set_timer(first, 5);
    network.set_timer(second, 5);
    network.set_timer(third, 9);
    // Later, earlier, gone.
    network.set_timer(first, 7);
    network.set_timer(second, 3);
    network.set_timer(third, 4);
    network.cancel_timer(third);
    assert_eq!(network.next_event_time(), Some(3));
    let mut fired = Vec::new();
    while let Some(output) = network.poll(100, &mut ()) {
        fired.push((network.now(), output));
    }
    assert_eq!(
        fired,
        [(3, Output::Timer(second)), (7, Output::Timer(first))]
    );
    assert_eq!(network.next_event_time(), None);
    // A time that is past counts as now.
    network.set_timer(first, 1);
    assert_eq!(network.poll(200, &mut ()), Some(Output::Timer(first)));
    assert_eq!(network.now(), 100);
}

#[test]
fn the_next_event_is_not_one_that_was_moved_or_cancelled() {
    let mut network = Pair::new(config()).network;
    let [first, second] = [(); 2].map(|()| network.new_timer());
    network.set_timer(first, 5);
    network.set_timer(second, 6);
    network.set_timer(first, 50);
    network.cancel_timer(second);
    assert_eq!(network.next_event_time(), Some(50));
    assert_eq!(network.advance_to(80), 50);
    assert_eq!(network.poll(50, &mut ()), Some(Output::Timer(first)));
}

#[test]
fn a_removed_timer_is_used_again_and_does_not_fire_for_its_old_owner() {
    let mut network = Pair::new(config()).network;
    let timer = network.new_timer();
    network.set_timer(timer, 5);
    network.remove_timer(timer);
    network.remove_timer(timer);
    let again = network.new_timer();
    assert_eq!(again, timer);
    assert_ne!(network.new_timer(), timer);
    assert_eq!(network.poll(10, &mut ()), None);
    network.set_timer(again, 20);
    assert_eq!(network.poll(30, &mut ()), Some(Output::Timer(again)));
}

#[test]
fn channels_come_before_timers_at_the_same_time() {
    let mut pair = Pair::new(config());
    let timer = pair.network.new_timer();
    pair.network.set_timer(timer, 2 * MS);
    pair.send(&[1000]);
    let change = Change {
        delay: Some(0),
        ..Change::default()
    };
    pair.network.schedule(2 * MS, FORWARD, change).unwrap();
    let mut kinds = Vec::new();
    while let Some(output) = pair.network.poll(2 * MS, &mut ()) {
        kinds.push(match output {
            Output::Changed(_) => "change",
            Output::Delivered { .. } => "packet",
            Output::Timer(_) => "timer",
            Output::Local(_) => "local",
            Output::Refused { .. } => "refusal",
        });
    }
    assert_eq!(kinds, ["change", "packet", "timer"]);
}

/// A chain of local packets is as long as its owner likes: each is told of on its own, before time goes on.
#[test]
fn local_packets_come_one_by_one_before_anything_else_at_the_same_time() {
    let mut network = Pair::new(config()).network;
    let timer = network.new_timer();
    network.set_timer(timer, 5);
    network.inject_local(40, 0, Ecn::NotEct, 0);
    let mut bodies = Vec::new();
    while let Some(Output::Local(packet)) = network.poll(5, &mut ()) {
        bodies.push(packet.body);
        if packet.body < 3 {
            network.inject_local(40, 0, Ecn::NotEct, packet.body + 1);
        }
        assert_eq!(network.now(), 0);
    }
    assert_eq!(bodies, [0, 1, 2, 3]);
    assert_eq!(network.now(), 5, "the timer was next");
    network.inject_local(40, 0, Ecn::NotEct, 9);
    network.set_timer(timer, 5);
    let next = network.poll(5, &mut ());
    assert!(matches!(next, Some(Output::Local(_))), "{next:?}");
    assert_eq!(network.poll(5, &mut ()), Some(Output::Timer(timer)));
}

#[test]
fn a_real_time_owner_steps_and_drains() {
    let mut pair = Pair::new(config());
    pair.send(&[1000, 1000]);
    assert_eq!(pair.network.next_event_time(), Some(2 * MS));
    pair.network.step_until(5 * MS / 2, &mut ());
    assert_eq!(pair.network.now(), 5 * MS / 2);
    pair.send(&[500]);
    pair.network.step_until(10 * MS, &mut ());
    let times: Vec<u64> = pair.network.drain_egress().map(|(at, _)| at).collect();
    assert_eq!(times, [2 * MS, 3 * MS, 4 * MS]);
    assert_eq!(pair.network.drain_egress().count(), 0);
}

#[test]
fn the_clock_goes_forward_only_and_not_past_an_event() {
    let mut pair = Pair::new(ChannelConfig {
        rate_bps: None,
        ..config()
    });
    assert_eq!(pair.network.advance_to(7), 7);
    assert_eq!(pair.network.advance_to(3), 7);
    pair.send(&[100]);
    assert_eq!(pair.network.advance_to(2 * MS), MS + 7);
    assert_eq!(pair.network.poll(0, &mut ()), None);
    pair.run(2 * MS);
    assert_eq!(pair.delivered(), [(MS + 7, 0)]);
}

/// Over two links of 1 ms each, the second of which nothing takes after the cut.
#[test]
fn a_packet_on_a_route_that_is_cut_ends_at_the_next_node() {
    for cut_at in [0, 3 * MS / 2, 5 * MS / 2] {
        let mut topology = Topology::new();
        let kinds = [NodeKind::Host, NodeKind::Switch, NodeKind::Host];
        let nodes = kinds.map(|kind| topology.add_node(kind));
        let path: Vec<ChannelId> = nodes
            .windows(2)
            .map(|ends| {
                let [a, b] = [ends[0], ends[1]].map(|node| topology.add_interface(node));
                topology.connect(a, b, config(), config()).unwrap().0
            })
            .collect();
        let mut network: Network<u32> = Network::new(topology, 1);
        let route = network.lay(&path).unwrap();
        network.inject(route, 1000, 0, Ecn::NotEct, 7, &mut ());
        network.step_until(cut_at, &mut ());
        network.cut(route);
        network.step_until(10 * MS, &mut ());
        let ended: Vec<u64> = network.drain_egress().map(|(at, _)| at).collect();
        let on_the_second = cut_at > 2 * MS;
        assert_eq!(ended, [if on_the_second { 4 * MS } else { 2 * MS }]);
    }
}

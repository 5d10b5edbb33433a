//! The network of a random plan: hosts, links and what goes wrong on them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use polypath_lab::plan::{
    Attachment, Channel, Interface, Link, Loss, Node, NodeKind, Plan, Queue, QueueAt, Record,
    Routing, Stack, VERSION,
};
use polypath_transport::{Buffer, Config, Profile};

use polypath_net::{
    CodelConfig, DropTailConfig, DrrConfig, DualPi2Config, FqCodelConfig, FqPieConfig,
    GilbertElliottConfig, PeriodicConfig, PieConfig, RandomConfig, RedConfig,
    TimedGilbertElliottConfig,
};
use serde_json::{Value, json};

use crate::draw::{Draw, GATEWAY, MS, SECOND, entries};
use crate::scenario::{CLIENT, SERVER};

/// Long enough for fifteen timeouts in a row of up to 120 s each, from any time before the last change.
const DURATION: u64 = 4_000 * SECOND;

/// How many interfaces hosts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// One to four paths.
    Small,
    /// Up to eight on each side, which a full mesh makes 64 subflows of.
    Crowded,
}

/// Several paths, either links between two hosts or, through a router each, all to all.
pub fn network(draw: &mut Draw, seed: u64, size: Size) -> Plan {
    let crowded = size == Size::Crowded;
    let (fewest, most) = if crowded { (5, 8) } else { (1, 4) };
    let paths = draw.integer(fewest, most) as usize;
    let routed = draw.chance(0.6) || crowded;
    let server_interfaces = if routed {
        draw.integer(1, if crowded { 8 } else { 2 }) as usize
    } else {
        paths
    };
    let families = draw.pick(&[[true, false], [true, false], [false, true], [true, true]]);
    let mut plan = Plan {
        version: VERSION,
        name: format!("integrity {seed}"),
        seed,
        duration_ns: DURATION,
        nodes: vec![
            host(draw, "client", 1, paths, families),
            host(draw, "server", 2, server_interfaces, families),
        ],
        links: Vec::new(),
        media: Vec::new(),
        routes: Vec::new(),
        routing: draw.pick(&[Routing::ShortestPath, Routing::Ecmp, Routing::InTurn]),
        controller: None,
        bridging: None,
        applications: Vec::new(),
        events: Vec::new(),
        record: Record {
            interval_ns: 10 * SECOND,
            segments: false,
            decisions: draw.chance(0.1),
            ..Record::default()
        },
    };
    if !routed {
        for path in 0..paths {
            let link = link(draw, path, (CLIENT, path), (SERVER, path));
            plan.links.push(link);
        }
        return plan;
    }
    let core = plan.nodes.len();
    let mut router = forwarder("core", NodeKind::Router, paths + server_interfaces);
    router.interfaces[0].addresses.push(GATEWAY.into());
    plan.nodes.push(router);
    for path in 0..paths {
        let access = plan.nodes.len();
        let kind = draw.pick(&[NodeKind::Router, NodeKind::Switch]);
        plan.nodes
            .push(forwarder(&format!("access{path}"), kind, 2));
        let number = plan.links.len();
        plan.links
            .push(link(draw, number, (CLIENT, path), (access, 0)));
        plan.links
            .push(clean_link(number + 1, (access, 1), (core, path)));
    }
    for interface in 0..server_interfaces {
        let number = plan.links.len();
        let ends = ((core, paths + interface), (SERVER, interface));
        plan.links.push(clean_link(number, ends.0, ends.1));
    }
    plan
}

fn host(draw: &mut Draw, name: &str, number: u8, interfaces: usize, [v4, v6]: [bool; 2]) -> Node {
    let addresses = |interface: usize| -> Vec<IpAddr> {
        let net = interface as u8;
        let four = IpAddr::from(Ipv4Addr::new(10, net, number, 1));
        let six = IpAddr::from(Ipv6Addr::new(
            0xfd00,
            net.into(),
            number.into(),
            0,
            0,
            0,
            0,
            1,
        ));
        [(v4, four), (v6, six)]
            .into_iter()
            .filter_map(|(wanted, address)| wanted.then_some(address))
            .collect()
    };
    Node {
        name: name.into(),
        kind: NodeKind::Host,
        forwards: false,
        interfaces: (0..interfaces)
            .map(|index| Interface {
                name: format!("eth{index}"),
                addresses: addresses(index),
                backup: draw.chance(0.15),
            })
            .collect(),
        stack: Some(Box::new(stack(draw, !v6))),
    }
}

fn forwarder(name: &str, kind: NodeKind, interfaces: usize) -> Node {
    Node {
        name: name.into(),
        kind,
        forwards: false,
        interfaces: (0..interfaces)
            .map(|index| Interface {
                name: format!("eth{index}"),
                addresses: Vec::new(),
                backup: false,
            })
            .collect(),
        stack: None,
    }
}

pub fn stack(draw: &mut Draw, small_mtu: bool) -> Stack {
    // Two segments at the low end; some stacks offer only half of the buffer as window.
    let buffer = |draw: &mut Draw| {
        let default = draw.magnitude(2_900, 300_000);
        let minimum = draw.pick(&[default, 2_900]);
        Buffer::from([minimum, default, default * draw.pick(&[1, 1, 8])])
    };
    Stack {
        stack: None,
        config: Config {
            profile: draw.pick(&Profile::ALL),
            scheduler: draw.choice("scheduler"),
            path_manager: draw.choice("path-manager"),
            congestion: draw.choice("congestion"),
            receive_buffer: buffer(draw),
            send_buffer: buffer(draw),
            autotuning: draw.chance(0.5),
            mtu: match small_mtu {
                true => draw.pick(&[1500, 1500, 576, 9000]),
                false => draw.pick(&[1500, 1500, 1280, 9000]),
            },
            initial_window: draw.pick(&[10, 10, 1, 2, 40]),
            sack: draw.chance(0.8),
            timestamps: draw.chance(0.8),
            window_scaling: draw.chance(0.8),
            ecn: draw.chance(0.5),
            checksum: draw.chance(0.4),
            nagle: draw.chance(0.5),
            cork: draw.chance(0.2),
            rto_min_ns: draw.pick(&[200 * MS, 200 * MS, SECOND]),
            rto_initial_ns: SECOND,
            delayed_ack_ns: draw.pick(&[40 * MS, 40 * MS, 200 * MS, MS]),
            ..Config::default()
        },
    }
}

fn link(draw: &mut Draw, number: usize, a: (usize, usize), b: (usize, usize)) -> Link {
    Link {
        name: format!("link{number}"),
        a: attachment(a),
        b: attachment(b),
        forward: channel(draw),
        backward: channel(draw),
        middleboxes: Vec::new(),
        price_per_gb: None,
        cap_bytes: None,
    }
}

fn clean_link(number: usize, a: (usize, usize), b: (usize, usize)) -> Link {
    let channel = Channel {
        rate_bps: Some(1_000_000_000),
        trace: None,
        wifi: None,
        delay_ns: MS / 2,
        overhead_bytes: 14,
        burst_bytes: 0,
        queue: Queue::default(),
        queue_at: QueueAt::Link,
        bypass_bytes: 0,
        loss: Loss::None,
        jitter_ns: 0,
        reorder: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
        mtu: None,
        icmp: true,
        up: true,
    };
    Link {
        name: format!("link{number}"),
        a: attachment(a),
        b: attachment(b),
        forward: channel.clone(),
        backward: channel,
        middleboxes: Vec::new(),
        price_per_gb: None,
        cap_bytes: None,
    }
}

fn attachment((node, interface): (usize, usize)) -> Attachment {
    Attachment { node, interface }
}

fn channel(draw: &mut Draw) -> Channel {
    let delay_ns = draw.magnitude(MS / 2, 200 * MS);
    let rate_bps = draw.maybe(0.9, |draw| draw.magnitude(500_000, 100_000_000));
    let calm = draw.chance(0.3);
    let fault = |draw: &mut Draw, most: f64| {
        if calm || draw.chance(0.5) {
            0.0
        } else {
            draw.number(0.0, most)
        }
    };
    Channel {
        rate_bps,
        trace: None,
        wifi: None,
        delay_ns,
        overhead_bytes: 14,
        burst_bytes: match rate_bps {
            Some(_) if draw.chance(0.2) => draw.magnitude(10_000, 100_000),
            _ => 0,
        },
        queue: queue(draw),
        queue_at: QueueAt::Link,
        bypass_bytes: 0,
        loss: if calm { Loss::None } else { loss(draw) },
        jitter_ns: match calm || draw.chance(0.6) {
            true => 0,
            false => draw.integer(0, delay_ns / 3),
        },
        reorder: fault(draw, 0.3),
        duplicate: fault(draw, 0.2),
        corrupt: fault(draw, 0.05),
        mtu: None,
        icmp: true,
        up: true,
    }
}

/// What the queues of every scenario are drawn from; the others are in [`later_queue`], so that they do not shift these draws.
const FIRST_QUEUES: [&str; 3] = ["drop-tail", "red", "codel"];

pub fn queue(draw: &mut Draw) -> Queue {
    match Some(draw.pick(&FIRST_QUEUES)) {
        Some("drop-tail") => Queue::DropTail(DropTailConfig {
            packets: draw.maybe(0.5, |draw| draw.magnitude(2, 200)),
            bytes: draw.maybe(0.3, |draw| draw.magnitude(20_000, 300_000)),
        }),
        Some("red") => {
            let min = draw.number(1.0, 20.0).floor();
            Queue::Red(RedConfig {
                min,
                max: (min * draw.number(1.5, 4.0)).ceil(),
                probability: draw.number(0.01, 0.3),
                weight: draw.pick(&[1.0, 0.1, 0.002]),
                gentle: draw.chance(0.5),
                limit: draw.integer(20, 200),
                ecn: draw.chance(0.7),
            })
        }
        Some("codel") => Queue::Codel(CodelConfig {
            target_ns: draw.magnitude(MS, 20 * MS),
            interval_ns: draw.magnitude(50 * MS, 200 * MS),
            limit: draw.integer(10, 1_000),
            ecn: draw.chance(0.7),
        }),
        name => unreachable!("{name:?}"),
    }
}

/// A queue of a kind that is not among the first ones.
pub fn later_queue(draw: &mut Draw) -> Queue {
    let mut kinds = entries("queue");
    kinds.retain(|kind| {
        kind["name"]
            .as_str()
            .is_none_or(|name| !FIRST_QUEUES.contains(&name))
    });
    let quantum = |draw: &mut Draw| draw.magnitude(256, 9_000) as u32;
    let flows = |draw: &mut Draw| draw.pick(&[1, 2, 1024]);
    let kind = draw.pick(&kinds);
    match kind["name"].as_str() {
        Some("pie") => Queue::Pie(PieConfig {
            target_ns: draw.magnitude(MS, 30 * MS),
            tupdate_ns: draw.magnitude(MS, 30 * MS),
            alpha: draw.number(0.0, 2.0),
            beta: draw.number(0.0, 2.0),
            limit: draw.integer(10, 1_000),
            ecn: draw.chance(0.7),
        }),
        Some("fq-pie") => Queue::FqPie(FqPieConfig {
            quantum_bytes: quantum(draw),
            flows: flows(draw),
            target_ns: draw.magnitude(MS, 30 * MS),
            tupdate_ns: draw.magnitude(MS, 30 * MS),
            alpha: draw.number(0.0, 2.0),
            beta: draw.number(0.0, 2.0),
            limit: draw.integer(10, 1_000),
            ecn: draw.chance(0.7),
            ecn_prob: draw.pick(&[0.0, 0.1, 1.0]),
        }),
        Some("dualpi2") => Queue::DualPi2(DualPi2Config {
            target_ns: draw.magnitude(MS, 30 * MS),
            tupdate_ns: draw.magnitude(MS, 30 * MS),
            alpha: draw.number(0.0, 2.0),
            beta: draw.number(0.0, 10.0),
            step_ns: draw.magnitude(MS / 2, 5 * MS),
            step_from: draw.integer(1, 4),
            coupling: draw.integer(1, 4) as u32,
            classic_share: draw.pick(&[0.0, 0.1, 0.5, 1.0]),
            limit: draw.integer(10, 1_000),
            drop_overload: draw.chance(0.7),
        }),
        Some("drr") => Queue::Drr(DrrConfig {
            limit: draw.integer(10, 500),
            quantum_bytes: quantum(draw),
            flows: flows(draw),
        }),
        Some("fq-codel") => Queue::FqCodel(FqCodelConfig {
            target_ns: draw.magnitude(MS, 20 * MS),
            interval_ns: draw.magnitude(50 * MS, 200 * MS),
            limit: draw.integer(10, 1_000),
            quantum_bytes: quantum(draw),
            flows: flows(draw),
            drop_batch: draw.pick(&[1, 64]),
            ecn: draw.chance(0.7),
        }),
        _ => drawn(draw, &kind),
    }
}

/// Settings of a model that nothing is known of but its entry in the registry.
fn drawn<M: serde::de::DeserializeOwned>(draw: &mut Draw, model: &Value) -> M {
    let mut made = json!({ "kind": model["name"] });
    for parameter in model["parameters"].as_array().expect("a list") {
        let bound = |key: &str| parameter[key].as_f64();
        let least = bound("minimum").unwrap_or(0.0).ceil() as u64;
        let most = |usual: u64| bound("maximum").map_or(least + usual, |most| most as u64);
        let value = match parameter["kind"].as_str() {
            Some("boolean") => json!(draw.chance(0.5)),
            Some("share") => json!(draw.number(0.0, 0.3)),
            Some("number") => json!(draw.number(
                bound("minimum").unwrap_or(0.0) + 0.01,
                bound("maximum").unwrap_or(2.0).min(2.0)
            )),
            Some("period") => json!(draw.magnitude(MS, 100 * MS)),
            Some("size") => json!(draw.magnitude(least.max(100), 100_000)),
            _ => json!(draw.integer(least, most(1_000))),
        };
        let field = parameter["field"].as_str().expect("a field");
        made[field] = value;
    }
    serde_json::from_value(made).expect("what the registry says is enough to make a model")
}

pub fn loss(draw: &mut Draw) -> Loss {
    let kind = draw.pick(&entries("loss"));
    match kind["name"].as_str() {
        Some("none") => Loss::None,
        Some("random") => Loss::Random(RandomConfig {
            probability: draw.number(0.0, 0.2),
        }),
        Some("periodic") => Loss::Periodic(PeriodicConfig {
            every: draw.integer(5, 1_000),
        }),
        Some("gilbert-elliott") => Loss::GilbertElliott(GilbertElliottConfig {
            good_to_bad: draw.number(0.0, 0.05),
            bad_to_good: draw.number(0.3, 1.0),
            good_loss: draw.pick(&[0.0, 0.01]),
            bad_loss: draw.number(0.3, 1.0),
        }),
        Some("timed-gilbert-elliott") => Loss::TimedGilbertElliott(TimedGilbertElliottConfig {
            good_time_ns: draw.pick(&[200 * MS, SECOND]),
            bad_time_ns: draw.pick(&[MS, 20 * MS]),
            good_loss: draw.pick(&[0.0, 0.01]),
            bad_loss: draw.number(0.3, 1.0),
        }),
        _ => drawn(draw, &kind),
    }
}

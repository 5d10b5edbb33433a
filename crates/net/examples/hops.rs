//! The cost of a hop: windows of packets and their acknowledgements across a fat-tree, without any transport.
//!
//! `cargo run --release -p polypath-net --example hops -- [k] [milliseconds] [routes a host] [window]`
//!
//! Every host sends to one other host. An acknowledgement of 40 bytes answers each packet of 1500 bytes, and lets the
//! next one go. A dropped packet is sent again 10 ms later, by timer. To find the instructions per hop, count those of
//! runs of two lengths, with `valgrind --tool=cachegrind` or `perf stat -e instructions:u`. Then divide the
//! differences.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use polypath_net::{
    ChannelConfig, ChannelId, DropReason, DropTailConfig, Ecn, EqualPaths, InterfaceId, Network,
    NodeId, NodeKind, Observer, Output, Packet, QueueConfig, RouteId, TimerId, Topology,
};

const DATA: u32 = 1500;
const ACK: u32 = 40;
const RETRY: u64 = 10_000_000;

/// Stands in for a transport's segment.
#[derive(Clone, Copy)]
struct Body {
    ack: bool,
    _fields: [u64; 10],
}

struct Flow {
    forth: RouteId,
    back: RouteId,
    retry: TimerId,
    lost: u32,
}

/// Flows that lost a packet since they were last looked at.
#[derive(Default)]
struct Losses(Vec<u32>);

impl Observer<Body> for Losses {
    const ACTIVE: bool = false;

    fn dropped(&mut self, _: u64, _: ChannelId, packet: &Packet<Body>, _: DropReason) {
        self.0.push(packet.flow);
    }
}

fn link() -> ChannelConfig {
    ChannelConfig {
        rate_bps: Some(100_000_000),
        delay: 10_000,
        overhead: 0,
        queue: QueueConfig::DropTail(DropTailConfig {
            packets: Some(100),
            bytes: None,
        }),
        ..ChannelConfig::default()
    }
}

fn address(host: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + host as u32))
}

/// A fat-tree of k-port switches (Al-Fares, Loukissas and Vahdat 2008).
fn fat_tree(k: usize) -> Result<(Topology, Vec<NodeId>), Box<dyn Error>> {
    let half = k / 2;
    let mut topology = Topology::new();
    let mut switches = |count| -> Vec<NodeId> {
        (0..count)
            .map(|_| topology.add_node(NodeKind::Switch))
            .collect()
    };
    let core = switches(half * half);
    let aggregation = switches(k * half);
    let edge = switches(k * half);
    let hosts: Vec<NodeId> = (0..k * half * half)
        .map(|_| topology.add_node(NodeKind::Host))
        .collect();
    let connect = |topology: &mut Topology, a, b| -> Result<InterfaceId, Box<dyn Error>> {
        let (a, b) = (topology.add_interface(a), topology.add_interface(b));
        topology.connect(a, b, link(), link())?;
        Ok(a)
    };
    for (number, host) in hosts.iter().enumerate() {
        let interface = connect(&mut topology, *host, edge[number / half])?;
        topology.add_address(interface, address(number))?;
    }
    for pod in 0..k {
        for upper in 0..half {
            let switch = aggregation[pod * half + upper];
            for other in 0..half {
                connect(&mut topology, edge[pod * half + other], switch)?;
                connect(&mut topology, switch, core[upper * half + other])?;
            }
        }
    }
    topology.set_equal_paths(EqualPaths::Ecmp { seed: 1 });
    Ok((topology, hosts))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .map(|argument| argument.parse())
        .collect::<Result<_, _>>()?;
    let argument = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (k, milliseconds) = (argument(0, 8), argument(1, 500));
    let (routes, window) = (argument(2, 8), argument(3, 10));

    let start = Instant::now();
    let (topology, hosts) = fat_tree(k)?;
    let channels = topology.channels() as u32;
    let mut network: Network<Body> = Network::new(topology, 1);
    let mut flows = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let peer = (number + hosts.len() / 2 + 1) % hosts.len();
        for label in 0..routes as u64 {
            let label = label << 32 | number as u64;
            flows.push(Flow {
                forth: network.route(*host, address(number), address(peer), label)?,
                back: network.route(hosts[peer], address(peer), address(number), label)?,
                retry: network.new_timer(),
                lost: 0,
            });
        }
    }
    println!(
        "set-up {:.3} s, {} flows",
        start.elapsed().as_secs_f64(),
        flows.len()
    );

    let body = |ack| Body {
        ack,
        _fields: [0; 10],
    };
    let mut losses = Losses::default();
    for (id, flow) in flows.iter().enumerate() {
        for _ in 0..window {
            network.inject(
                flow.forth,
                DATA,
                id as u32,
                Ecn::NotEct,
                body(false),
                &mut losses,
            );
        }
    }
    let start = Instant::now();
    let until = milliseconds as u64 * 1_000_000;
    while let Some(output) = network.poll(until, &mut losses) {
        match output {
            Output::Delivered { packet, .. } => {
                let flow = &flows[packet.flow as usize];
                let (route, len) = if packet.body.ack {
                    (flow.forth, DATA)
                } else {
                    (flow.back, ACK)
                };
                let next = body(!packet.body.ack);
                network.inject(route, len, packet.flow, Ecn::NotEct, next, &mut losses);
            }
            Output::Timer(timer) => {
                let id = timer.0;
                let flow = &mut flows[id as usize];
                for _ in 0..std::mem::take(&mut flow.lost) {
                    network.inject(flow.forth, DATA, id, Ecn::NotEct, body(false), &mut losses);
                }
            }
            Output::Changed(_) | Output::Local(_) | Output::Refused { .. } => {}
        }
        for id in losses.0.drain(..) {
            let flow = &mut flows[id as usize];
            flow.lost += 1;
            network.set_timer(flow.retry, network.now() + RETRY);
        }
    }
    let elapsed = start.elapsed().as_nanos() as f64;
    let hops: u64 = (0..channels)
        .map(|channel| network.stats(ChannelId(channel)).sent_packets)
        .sum();
    let totals = network.totals();
    println!("{totals:?}");
    println!("{hops} hops, {:.1} ns a hop", elapsed / hops as f64);
    Ok(())
}

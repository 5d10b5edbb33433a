//! The benchmark's works, as plans. They measure the simulator's speed.
//!
//! The caller measures the time that a work takes. [`run`] returns the number of packet-hops.

use std::net::{IpAddr, Ipv4Addr};

use polypath_net::{DropTailConfig, random};
use rand_pcg::rand_core::RngCore;
use serde::Serialize;

use polypath_transport::{Buffer, Config, Profile};

use crate::plan::{
    Application, Attachment, Bulk, Channel, Choice, Controller, Interface, Link, Loss, Mode, Node,
    NodeKind, Plan, Queue, QueueAt, Record, Routing, Stack, Transport, VERSION, Work,
};
use crate::{CaptureMode, PlanError, Simulation};

/// A work: its name, what it is, how long it runs by default.
pub struct Definition {
    pub name: &'static str,
    pub description: &'static str,
    pub seconds: f64,
    /// Bits a second that a pair of hosts could get at most.
    pub capacity: f64,
    pub plan: fn(f64) -> Plan,
}

/// Every work, under the names of the project's performance goals.
pub static WORKS: [Definition; 10] = [
    Definition {
        name: "W1",
        description: "fat-tree k=8, permutation, MPTCP with 8 subflows, LIA",
        seconds: 3.0,
        capacity: 100e6,
        plan: |seconds| fat_tree(8, 8, seconds),
    },
    Definition {
        name: "W2",
        description: "fat-tree k=8, permutation, TCP",
        seconds: 3.0,
        capacity: 100e6,
        plan: |seconds| fat_tree(8, 1, seconds),
    },
    Definition {
        name: "W3",
        description: "two paths of 100 Mbps and 10 ms, 16 MPTCP connections of 2 subflows, LIA",
        seconds: 30.0,
        capacity: 100e6,
        plan: |seconds| two_paths(Transport::Mptcp, seconds),
    },
    Definition {
        name: "W4",
        description: "fat-tree k=16, permutation, MPTCP with 8 subflows, LIA",
        seconds: 0.05,
        capacity: 100e6,
        plan: |seconds| fat_tree(16, 8, seconds),
    },
    Definition {
        name: "W5",
        description: "fat-tree k=32, permutation, MPTCP with 8 subflows, LIA",
        seconds: 0.01,
        capacity: 100e6,
        plan: |seconds| fat_tree(32, 8, seconds),
    },
    Definition {
        name: "W6",
        description: "dumbbell of 100 Mbps and 10 ms, 16 TCP connections",
        seconds: 30.0,
        capacity: 100e6,
        plan: dumbbell,
    },
    Definition {
        name: "W7",
        description: "one TCP connection over 10 Gbps and 100 ms, which loses packets when slow start ends",
        seconds: 2.0,
        capacity: 10e9,
        plan: |seconds| long_fat_pipe(Transport::Tcp, 10_000_000_000, seconds),
    },
    Definition {
        name: "W8",
        description: "as W3, with 16 Multipath QUIC connections of 2 paths",
        seconds: 30.0,
        capacity: 100e6,
        plan: |seconds| two_paths(Transport::Mpquic, seconds),
    },
    Definition {
        name: "W9",
        description: "as W2, through the flow tables of a controller",
        seconds: 3.0,
        capacity: 100e6,
        plan: |seconds| ruled(fat_tree(8, 1, seconds)),
    },
    Definition {
        name: "W10",
        description: "as W7, with one QUIC connection over 1 Gbps",
        seconds: 4.0,
        capacity: 1e9,
        plan: |seconds| long_fat_pipe(Transport::Quic, 1_000_000_000, seconds),
    },
];

/// What a work did.
#[derive(Debug, Serialize)]
pub struct Report {
    pub work: &'static str,
    pub description: &'static str,
    pub simulated_seconds: f64,
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// Bytes delivered to applications, per second and per host pair, as a share of the work's capacity.
    pub share_of_capacity: f64,
    pub subflows: usize,
}

/// Runs a work for `seconds` of simulated time, or its default; nothing for an unknown name.
///
/// # Errors
/// Those of [`Simulation::from_plan`].
pub fn run(name: &str, seconds: Option<f64>) -> Option<Result<Report, PlanError>> {
    let prepared = prepare(name, seconds)?;
    Some(prepared.and_then(|mut prepared| {
        prepared.simulate()?;
        prepared.report()
    }))
}

/// A work that is set up and not yet run, for who measures the two apart.
pub struct Prepared {
    work: &'static Definition,
    seconds: f64,
    pairs: usize,
    simulation: Simulation,
}

/// Sets a work up; nothing for an unknown name.
///
/// # Errors
/// Those of [`Simulation::from_plan`].
pub fn prepare(name: &str, seconds: Option<f64>) -> Option<Result<Prepared, PlanError>> {
    let work = WORKS.iter().find(|work| work.name == name)?;
    Some(Prepared::new(work, seconds.unwrap_or(work.seconds)))
}

impl Prepared {
    fn new(work: &'static Definition, seconds: f64) -> Result<Self, PlanError> {
        let plan = (work.plan)(seconds);
        let pairs = plan.applications.len();
        let simulation = Simulation::from_plan(plan, CaptureMode::None, None)?;
        Ok(Self {
            work,
            seconds,
            pairs,
            simulation,
        })
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// Those of [`Simulation::step_until`].
    pub fn simulate(&mut self) -> Result<(), PlanError> {
        self.simulation.step_until(u64::MAX)?;
        Ok(())
    }

    /// What it did.
    ///
    /// # Errors
    /// Those of [`Simulation::finish`].
    pub fn report(mut self) -> Result<Report, PlanError> {
        let packet_hops = self.simulation.packet_hops();
        let delivered = self.simulation.delivered_bytes();
        let recording = self.simulation.finish()?;
        let capacity = self.work.capacity * self.pairs as f64;
        Ok(Report {
            work: self.work.name,
            description: self.work.description,
            simulated_seconds: self.seconds,
            packet_hops,
            share_of_capacity: delivered as f64 * 8.0 / self.seconds / capacity,
            subflows: recording.subflow_ends.len(),
        })
    }
}

fn address(number: usize) -> IpAddr {
    Ipv4Addr::from(0x0a00_0001 + number as u32).into()
}

fn stack(congestion: &str, subflows: u64) -> Stack {
    let mut path_manager = Choice::from(if subflows > 1 {
        "ndiffports"
    } else {
        "default"
    });
    if subflows > 1 {
        let parameters = &mut path_manager.parameters;
        parameters.insert("num_subflows".into(), subflows.into());
    }
    let buffer = Buffer::from([1 << 22; 3]);
    Stack {
        stack: None,
        config: Config {
            path_manager,
            congestion: congestion.into(),
            receive_buffer: buffer,
            send_buffer: buffer,
            autotuning: false,
            timestamps: false,
            checksum: false,
            ..Profile::MptcpOrg.config()
        },
    }
}

fn channel(rate_bps: u64, delay_ns: u64, packets: u64) -> Channel {
    Channel {
        rate_bps: Some(rate_bps),
        trace: None,
        wifi: None,
        delay_ns,
        overhead_bytes: 0,
        burst_bytes: 0,
        queue_at: QueueAt::Link,
        bypass_bytes: 0,
        queue: Queue::DropTail(DropTailConfig {
            packets: Some(packets),
            bytes: None,
        }),
        loss: Loss::None,
        jitter_ns: 0,
        reorder: 0.0,
        duplicate: 0.0,
        corrupt: 0.0,
        mtu: None,
        icmp: true,
        up: true,
    }
}

/// A plan in the making.
struct Builder {
    plan: Plan,
    stack: Stack,
}

impl Builder {
    fn new(name: &str, seconds: f64, stack: Stack) -> Self {
        let duration_ns = (seconds * 1e9) as u64;
        let plan = Plan {
            version: VERSION,
            name: name.into(),
            seed: 1,
            duration_ns,
            nodes: Vec::new(),
            links: Vec::new(),
            media: Vec::new(),
            routes: Vec::new(),
            routing: Routing::Ecmp,
            controller: None,
            bridging: None,
            applications: Vec::new(),
            events: Vec::new(),
            record: Record {
                interval_ns: duration_ns.max(1),
                ..Record::default()
            },
        };
        Self { plan, stack }
    }

    fn node(&mut self, kind: NodeKind) -> usize {
        let id = self.plan.nodes.len();
        let stack = (kind == NodeKind::Host).then(|| Box::new(self.stack.clone()));
        self.plan.nodes.push(Node {
            name: format!("n{id}"),
            kind,
            forwards: false,
            interfaces: Vec::new(),
            stack,
        });
        id
    }

    fn interface(&mut self, node: usize) -> Attachment {
        let host = self.plan.nodes[node].kind == NodeKind::Host;
        let interfaces = &mut self.plan.nodes[node].interfaces;
        let interface = interfaces.len();
        let addresses = if host {
            vec![address(node * 16 + interface)]
        } else {
            Vec::new()
        };
        interfaces.push(Interface {
            name: format!("eth{interface}"),
            addresses,
            backup: false,
        });
        Attachment { node, interface }
    }

    fn link(&mut self, a: usize, b: usize, both: &Channel) {
        let (a, b) = (self.interface(a), self.interface(b));
        let name = format!("l{}", self.plan.links.len());
        self.plan.links.push(Link {
            name,
            a,
            b,
            forward: both.clone(),
            backward: both.clone(),
            middleboxes: Vec::new(),
            price_per_gb: None,
            cap_bytes: None,
        });
    }

    fn bulk(&mut self, client: usize, server: usize, transport: Transport) {
        let number = self.plan.applications.len();
        self.plan.applications.push(Application {
            name: format!("bulk{number}"),
            client,
            server,
            transport,
            source: None,
            destination: None,
            port: 5001,
            start_ns: 0,
            client_stack: None,
            program: None,
            group: None,
            server_stack: None,
            work: Work::Bulk(Bulk {
                duration_ns: None,
                size_bytes: None,
                reverse: false,
                reverse_bytes: None,
                abort: false,
                first_bytes: 0,
                pause_ns: 0,
            }),
        });
    }
}

/// A k-ary fat-tree (Al-Fares et al., SIGCOMM 2008) in which every host sends to one other and none to itself.
fn fat_tree(k: usize, subflows: u64, seconds: f64) -> Plan {
    let congestion = if subflows > 1 { "lia" } else { "reno" };
    let mut builder = Builder::new("fat-tree", seconds, stack(congestion, subflows));
    let wire = channel(100_000_000, 10_000, 100);
    let half = k / 2;
    let core: Vec<usize> = (0..half * half)
        .map(|_| builder.node(NodeKind::Router))
        .collect();
    let mut hosts = Vec::new();
    for _ in 0..k {
        let aggregation: Vec<usize> = (0..half).map(|_| builder.node(NodeKind::Router)).collect();
        for (index, &switch) in aggregation.iter().enumerate() {
            for &above in &core[index * half..(index + 1) * half] {
                builder.link(switch, above, &wire);
            }
        }
        for _ in 0..half {
            let edge = builder.node(NodeKind::Router);
            for &switch in &aggregation {
                builder.link(edge, switch, &wire);
            }
            for _ in 0..half {
                let host = builder.node(NodeKind::Host);
                builder.link(host, edge, &wire);
                hosts.push(host);
            }
        }
    }
    let transport = if subflows > 1 {
        Transport::Mptcp
    } else {
        Transport::Tcp
    };
    for (client, server) in derangement(hosts.len()).into_iter().enumerate() {
        builder.bulk(hosts[client], hosts[server], transport);
    }
    builder.plan
}

/// The same network under a controller that fills the tables as flows begin.
fn ruled(plan: Plan) -> Plan {
    let controller = Controller {
        routing: Some(Choice {
            name: "hashed".into(),
            parameters: Default::default(),
        }),
        app: None,
        mode: Mode::Reactive,
        rate_bps: Some(1_000_000_000),
        delay_ns: 10_000,
        processing_ns: 0,
        idle_timeout_ns: Some(10_000_000_000),
    };
    Plan {
        routing: Routing::ShortestPath,
        controller: Some(controller),
        ..plan
    }
}

/// A permutation without fixed points: a single cycle (Sattolo's algorithm).
fn derangement(count: usize) -> Vec<usize> {
    let mut random = random::stream(1, "bench", 0, "permutation");
    let mut order: Vec<usize> = (0..count).collect();
    for index in (1..count).rev() {
        order.swap(index, (random.next_u64() % index as u64) as usize);
    }
    order
}

fn two_paths(transport: Transport, seconds: f64) -> Plan {
    let mut stack = stack("lia", 1);
    stack.config.path_manager.name = "fullmesh".into();
    let mut builder = Builder::new("two-paths", seconds, stack);
    let access = channel(10_000_000_000, 1_000, 10_000);
    let bottleneck = channel(100_000_000, 10_000_000, 166);
    let join = builder.node(NodeKind::Router);
    let paths: Vec<usize> = (0..2)
        .map(|_| {
            let path = builder.node(NodeKind::Router);
            builder.link(path, join, &bottleneck);
            path
        })
        .collect();
    for _ in 0..16 {
        let (client, server) = (builder.node(NodeKind::Host), builder.node(NodeKind::Host));
        for path in &paths {
            builder.link(client, *path, &access);
        }
        builder.link(server, join, &access);
        builder.bulk(client, server, transport);
    }
    builder.plan
}

fn dumbbell(seconds: f64) -> Plan {
    let mut builder = Builder::new("dumbbell", seconds, stack("reno", 1));
    let access = channel(1_000_000_000, 1_000_000, 1_000);
    let (left, right) = (
        builder.node(NodeKind::Router),
        builder.node(NodeKind::Router),
    );
    builder.link(left, right, &channel(100_000_000, 10_000_000, 100));
    for _ in 0..16 {
        let (client, server) = (builder.node(NodeKind::Host), builder.node(NodeKind::Host));
        builder.link(client, left, &access);
        builder.link(server, right, &access);
        builder.bulk(client, server, Transport::Tcp);
    }
    builder.plan
}

/// Its queue holds 8,000 packets at 10 Gbps, and in proportion.
fn long_fat_pipe(transport: Transport, rate_bps: u64, seconds: f64) -> Plan {
    let mut stack = stack("cubic", 1);
    stack.config.receive_buffer = [1 << 29; 3].into();
    stack.config.send_buffer = [1 << 29; 3].into();
    let mut builder = Builder::new("long-fat-pipe", seconds, stack);
    let (client, server) = (builder.node(NodeKind::Host), builder.node(NodeKind::Host));
    let pipe = channel(rate_bps, 50_000_000, rate_bps / 1_250_000);
    builder.link(client, server, &pipe);
    builder.bulk(client, server, transport);
    builder.plan
}

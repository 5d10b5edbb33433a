//! How the cost of a packet-hop changes as one thing grows, in a connection over 10 Gbps: `growth [PART OF A ROW'S NAME]`.
//!
//! Each row has the CPU time of a packet-hop in ns, and how often the row's first it is. Machines differ, so only
//! that last figure means much.

mod spent;

use polypath_lab::bench::WORKS;
use polypath_lab::plan::{Loss, Plan, Queue, Transport};
use polypath_lab::transport::Buffer;
use polypath_lab::{CaptureMode, Simulation};
use polypath_net::{DropTailConfig, RandomConfig};
use spent::cpu_seconds;

/// One thing that grows.
struct Row {
    name: &'static str,
    /// Values it takes, and a plan for each.
    values: &'static [u32],
    plan: fn(u32) -> Plan,
}

const MILLISECOND: u64 = 1_000_000;
const AMPLE: u64 = 1 << 30;

static ROWS: [Row; 6] = [
    Row {
        name: "seconds, TCP, 200 ms",
        values: &[4, 10, 20, 40, 60],
        plan: |seconds| pipe(Transport::Tcp, "cubic", seconds, 100, 20_000),
    },
    Row {
        name: "seconds, TCP with BBR, 200 ms, loss 0.1 %",
        values: &[4, 10, 20],
        plan: |seconds| lossy(pipe(Transport::Tcp, "bbr", seconds, 100, 100_000)),
    },
    Row {
        name: "seconds, QUIC, 200 ms",
        values: &[4, 10, 20],
        plan: |seconds| pipe(Transport::Quic, "cubic", seconds, 100, 20_000),
    },
    Row {
        name: "packets of queue, TCP, 100 ms",
        values: &[100, 1_000, 10_000, 100_000],
        plan: |packets| pipe(Transport::Tcp, "cubic", 8, 50, packets.into()),
    },
    Row {
        name: "packets of queue, QUIC, 100 ms",
        values: &[100, 1_000, 10_000, 100_000],
        plan: |packets| pipe(Transport::Quic, "cubic", 8, 50, packets.into()),
    },
    Row {
        name: "subflows of MPTCP, 20 ms",
        values: &[1, 4, 16, 64],
        plan: |subflows| {
            let mut plan = pipe(Transport::Mptcp, "lia", 4, 10, 8_000);
            for stack in plan.nodes.iter_mut().filter_map(|it| it.stack.as_mut()) {
                let manager = &mut stack.config.path_manager;
                manager.name = "ndiffports".into();
                (manager.parameters).insert("num_subflows".into(), u64::from(subflows).into());
            }
            plan
        },
    },
];

/// W7 with another transport and controller, length, one-way delay and queue.
fn pipe(transport: Transport, congestion: &str, seconds: u32, delay_ms: u64, packets: u64) -> Plan {
    let Some(work) = WORKS.iter().find(|work| work.name == "W7") else {
        unreachable!("it is one of the works")
    };
    let mut plan = (work.plan)(f64::from(seconds));
    for application in &mut plan.applications {
        application.transport = transport;
    }
    for stack in plan.nodes.iter_mut().filter_map(|it| it.stack.as_mut()) {
        stack.config.congestion = congestion.into();
        stack.config.receive_buffer = Buffer::from([AMPLE; 3]);
        stack.config.send_buffer = Buffer::from([AMPLE; 3]);
    }
    for link in &mut plan.links {
        for channel in [&mut link.forward, &mut link.backward] {
            channel.delay_ns = delay_ms * MILLISECOND;
            channel.queue = Queue::DropTail(DropTailConfig {
                packets: Some(packets),
                bytes: None,
            });
        }
    }
    plan
}

fn lossy(mut plan: Plan) -> Plan {
    for link in &mut plan.links {
        link.forward.loss = Loss::Random(RandomConfig { probability: 0.001 });
    }
    plan
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let part = std::env::args().nth(1).unwrap_or_default();
    for row in ROWS.iter().filter(|row| row.name.contains(&part)) {
        println!("{}", row.name);
        let mut first = None;
        for &value in row.values {
            let mut simulation = Simulation::from_plan((row.plan)(value), CaptureMode::None, None)?;
            let began = cpu_seconds();
            simulation.step_until(u64::MAX)?;
            let spent = cpu_seconds() - began;
            let hops = simulation.packet_hops();
            let nanoseconds = spent * 1e9 / hops as f64;
            let times = nanoseconds / *first.get_or_insert(nanoseconds);
            println!("  {value:>7} {hops:>11} packet-hops {nanoseconds:>7.0} ns {times:>6.2}");
        }
    }
    Ok(())
}

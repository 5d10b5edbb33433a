//! Scenarios over QUIC: those of TCP with QUIC connections, and features that only QUIC has.

use serde_json::Map;

use polypath_lab::plan::{AckFrequency, Choice, Plan, Stack, Streams, Transport, Work};
use polypath_transport::{AckPath, Config, ControlPath};
use serde_json::{Value, json};

use crate::draw::{Draw, PACER, entries};
use crate::scenario::LATER_QUEUES;

/// Scenarios from this number on are about QUIC. Those below are as they were before QUIC was.
pub const FIRST: u64 = 1_000_000_000_000;

/// A path of QUIC takes packets of 1228 or 1248 bytes (RFC 9000 section 14).
const LEAST_MTU: u32 = 1_280;

/// The share of applications that stay with TCP beside others over QUIC.
const STAYS: f64 = 0.15;

/// From this number on, some hosts ask the scheduler about packets of control frames, and some their peers for fewer acknowledgements.
const CONTROL_FIRST: u64 = FIRST + LATER_QUEUES;

/// Turns a plan of TCP into one of QUIC.
pub fn turn(plan: &mut Plan, seed: u64) {
    let draw = &mut Draw::of(seed, "quic");
    for stack in stacks(plan) {
        fit(draw, &mut stack.config);
    }
    for (index, application) in plan.applications.iter_mut().enumerate() {
        let stays = draw.chance(STAYS) && index > 0;
        application.transport = match application.transport {
            Transport::Tcp if !stays => Transport::Quic,
            Transport::Mptcp if !stays => Transport::Mpquic,
            other => other,
        };
        if application.transport.is_quic() {
            files(draw, &mut application.work);
        }
    }
    translate(draw, plan);
    wait_for_pacers(&mut Draw::of(seed, "pacer"), plan);
    if seed >= CONTROL_FIRST {
        place_control(&mut Draw::of(seed, "control path"), plan);
        ask_for_acks(&mut Draw::of(seed, "ack frequency"), plan);
    }
}

/// Two hosts in three want to be acknowledged more or less often than by default, and offer their peers the same.
fn ask_for_acks(draw: &mut Draw, plan: &mut Plan) {
    for stack in stacks(plan) {
        stack.config.ack_frequency = draw.maybe(0.67, |draw| AckFrequency {
            packets: draw.integer(1, 40) as u32,
            max_delay: draw.maybe(0.5, |draw| draw.integer(1, 200) * 1_000_000),
            reordering: draw.integer(0, 6) as u32,
        });
    }
}

/// On one host in three, control frames go where the scheduler wants them.
fn place_control(draw: &mut Draw, plan: &mut Plan) {
    for stack in stacks(plan) {
        let scheduled = draw.maybe(0.33, |_| ControlPath::Scheduler);
        stack.config.control_path = scheduled.unwrap_or_default();
    }
}

/// Half of the schedulers that can wait for pacers are told whether to.
fn wait_for_pacers(draw: &mut Draw, plan: &mut Plan) {
    let known = entries("scheduler");
    let waits = |name: &str| {
        let mut entry = known.iter().filter(|entry| entry["name"] == name);
        let parameters = entry
            .next()
            .and_then(|entry| entry["parameters"].as_array());
        parameters.is_some_and(|all| all.iter().any(|each| each["name"] == PACER))
    };
    for stack in stacks(plan) {
        let scheduler = &mut stack.config.scheduler;
        if waits(&scheduler.name)
            && let Some(value) = draw.maybe(0.5, |draw| draw.chance(0.5))
        {
            scheduler.parameters.insert(PACER.into(), value.into());
        }
    }
}

/// Those of the hosts, and those that applications have of their own.
fn stacks(plan: &mut Plan) -> impl Iterator<Item = &mut Stack> {
    let hosts = plan
        .nodes
        .iter_mut()
        .filter_map(|node| node.stack.as_deref_mut());
    let applications = plan.applications.iter_mut();
    let own = applications.flat_map(|each| [&mut each.client_stack, &mut each.server_stack]);
    hosts.chain(own.filter_map(Option::as_deref_mut))
}

/// What QUIC does not have is drawn again.
fn fit(draw: &mut Draw, config: &mut Config) {
    let barred = |name: &str| {
        let all = entries("scheduler");
        let found = all.into_iter().find(|entry| entry["name"] == name);
        found.is_some_and(|entry| entry["not_over_quic"].is_string())
    };
    while barred(&config.scheduler.name) {
        config.scheduler = draw.choice("scheduler");
    }
    config.mtu = config.mtu.max(LEAST_MTU);
    let drawn = draw.maybe(0.5, |draw| {
        draw.pick(&[AckPath::Same, AckPath::Fastest, AckPath::Scheduler])
    });
    config.ack_path = drawn.unwrap_or_default();
    config.retry = draw.chance(0.2);
    if draw.chance(0.1) {
        config.send_paths = vec![draw.integer(0, 2)];
    }
}

/// More files than over TCP, on streams of their own or on one.
fn files(draw: &mut Draw, work: &mut Work) {
    if let Work::Fetch(fetch) = work {
        fetch.tls = None;
        fetch.size_bytes = fetch.size_bytes.max(1);
        fetch.parallel = draw.integer(1, 8);
        fetch.streams = draw.pick(&[Streams::Each, Streams::Each, Streams::One]);
        if draw.chance(0.2) {
            // More streams than the peer admits at first.
            fetch.count = draw.integer(100, 300);
            fetch.size_bytes = 1 + fetch.size_bytes % 1_000;
        }
    }
}

/// In one network of four, translators that forget a client after a short silence and give it another port then.
fn translate(draw: &mut Draw, plan: &mut Plan) {
    let tcp = |transport| matches!(transport, Transport::Tcp | Transport::Mptcp);
    let mut transports = plan.applications.iter().map(|each| each.transport);
    if !draw.chance(0.25) || transports.any(tcp) {
        return;
    }
    let link = draw.integer(0, plan.links.len() as u64 - 1) as usize;
    let parameters: Map<String, Value> = [
        ("timeout_s".to_owned(), json!(draw.number(1.0, 4.0))),
        ("keep_ports".to_owned(), json!(false)),
    ]
    .into_iter()
    .collect();
    plan.links[link].middleboxes.push(Choice {
        name: "nat".into(),
        parameters,
    });
    // Its reports would not get through.
    for link in &mut plan.links {
        (link.forward.mtu, link.backward.mtu) = (None, None);
    }
}

/// Whether a translator forgets a client that is silent for less than QUIC puts up with.
pub fn forgets(plan: &Plan) -> bool {
    let boxes = plan.links.iter().flat_map(|link| &link.middleboxes);
    boxes.filter(|choice| choice.name == "nat").any(|nat| {
        let timeout = nat.parameters.get("timeout_s").and_then(Value::as_f64);
        timeout.is_some_and(|timeout| timeout < 30.0)
    })
}

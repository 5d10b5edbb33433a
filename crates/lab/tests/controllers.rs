//! Networks under a controller: no packet is missing, for any network, routing, mode and failure.

use std::collections::BTreeMap;

use arrow_cast::display::array_value_to_string;
use polypath_lab::{CaptureMode, Recording, Simulation};
use proptest::prelude::*;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const BYTES: u64 = 60_000;

/// A random network: hosts at switches of a ring with chords, so that one link can fail.
#[derive(Clone, Debug)]
struct Shape {
    switches: usize,
    hosts: Vec<usize>,
    chords: Vec<(usize, usize)>,
}

#[derive(Clone, Debug)]
struct Ruled {
    routing: &'static str,
    mode: &'static str,
    delay_ns: u64,
    rate_bps: Option<u64>,
    processing_ns: u64,
    idle_timeout_ns: Option<u64>,
}

fn row(recording: &Recording, table: &str) -> Vec<BTreeMap<String, String>> {
    let tables = recording.tables();
    let Some((_, batch)) = tables.iter().find(|(name, _)| *name == table) else {
        return Vec::new();
    };
    let value = |column: usize, row: usize| array_value_to_string(batch.column(column), row);
    let schema = batch.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    let names: Vec<String> = names.collect();
    let cells = |row: usize| {
        let names = names.iter().enumerate();
        names
            .map(|(column, name)| (name.clone(), value(column, row).expect("a value")))
            .collect()
    };
    (0..batch.num_rows()).map(cells).collect()
}

fn plan(shape: &Shape, ruled: &Ruled, transport: &str, failures: &[(usize, u64, u64)]) -> Value {
    let choice = |name: &str| json!({"name": name});
    let stack = json!({
        "profile": "rfc", "scheduler": choice("default"),
        "path_manager": {"name": "ndiffports", "parameters": {"num_subflows": 2}},
        "congestion": choice("reno"), "receive_buffer": [4096, 131_072, 6_291_456],
        "send_buffer": [4096, 16_384, 4_194_304], "autotuning": true, "mtu": 1500, "initial_window": 10,
        "sack": true, "timestamps": true, "window_scaling": true, "ecn": false, "checksum": false,
        "nagle": true, "rto_min_ns": 200 * MS, "rto_initial_ns": 1000 * MS, "delayed_ack_ns": 40 * MS,
    });
    let mut faces = vec![0; shape.switches];
    let mut face = |switch: usize| {
        faces[switch] += 1;
        faces[switch] - 1
    };
    let channel = json!({"rate_bps": 20_000_000, "delay_ns": MS, "queue": {"kind": "drop-tail", "packets": 20}});
    let link = |name: String, a: (usize, usize), b: (usize, usize)| {
        let end = |(node, interface): (usize, usize)| json!({"node": node, "interface": interface});
        json!({"name": name, "a": end(a), "b": end(b), "forward": channel, "backward": channel})
    };
    let mut links = Vec::new();
    for (host, &at) in shape.hosts.iter().enumerate() {
        let at = at % shape.switches;
        links.push(link(
            format!("h{host}"),
            (shape.switches + host, 0),
            (at, face(at)),
        ));
    }
    let ring = (0..shape.switches).map(|a| (a, (a + 1) % shape.switches));
    for (number, (a, b)) in ring.chain(shape.chords.clone()).enumerate() {
        let (a, b) = (a % shape.switches, b % shape.switches);
        if a != b {
            links.push(link(format!("l{number}"), (a, face(a)), (b, face(b))));
        }
    }
    let interface =
        |name: usize, addresses: Value| json!({"name": format!("i{name}"), "addresses": addresses});
    let mut nodes = Vec::new();
    for (number, count) in faces.iter().enumerate() {
        let interfaces: Vec<_> = (0..*count).map(|each| interface(each, json!([]))).collect();
        nodes.push(
            json!({"name": format!("s{number}"), "kind": "switch", "interfaces": interfaces}),
        );
    }
    for host in 0..shape.hosts.len() {
        let own = interface(0, json!([format!("10.0.0.{}", host + 1)]));
        nodes.push(json!({"name": format!("h{host}"), "kind": "host", "interfaces": [own], "stack": stack}));
    }
    let count = shape.hosts.len();
    let applications: Vec<_> = (0..count)
        .map(|host| {
            let work = match transport {
                "udp" => json!({"kind": "cbr", "rate_bps": 2_000_000, "packet_bytes": 500, "duration_ns": 100 * MS}),
                _ => json!({"kind": "bulk", "size_bytes": BYTES}),
            };
            json!({
                "name": format!("a{host}"), "client": shape.switches + host,
                "server": shape.switches + (host + 1) % count, "transport": transport, "port": 80,
                "start_ns": host as u64 * 3 * MS, "work": work,
            })
        })
        .collect();
    let first = shape.hosts.len();
    let events: Vec<_> = failures
        .iter()
        .flat_map(|&(number, at, length)| {
            let link = first + number % (links.len() - first);
            [(at, false), (at + length, true)].map(|(at, up)| {
                let action = json!({"kind": "link", "link": link, "direction": "both", "up": up});
                json!({"at_ns": at, "action": action})
            })
        })
        .collect();
    json!({
        "version": 1, "name": "ruled", "seed": 3, "duration_ns": 60_000 * MS, "nodes": nodes, "links": links,
        "applications": applications, "events": events,
        "controller": {
            "routing": choice(ruled.routing), "mode": ruled.mode, "rate_bps": ruled.rate_bps,
            "delay_ns": ruled.delay_ns, "processing_ns": ruled.processing_ns,
            "idle_timeout_ns": ruled.idle_timeout_ns,
        },
    })
}

/// Where all packets went, step by step and at the end.
fn run(plan: &Value) -> Recording {
    let mut simulation = Simulation::new(&plan.to_string(), CaptureMode::None, None)
        .unwrap_or_else(|error| panic!("{error}"));
    for until in (1..).map(|step| step * 7 * MS) {
        let over = simulation
            .step_until(until)
            .unwrap_or_else(|error| panic!("{error}"));
        let (all, at) = (
            simulation.totals(),
            simulation.switch_totals().expect("a controller rules"),
        );
        assert_eq!(
            all.injected + all.duplicated,
            all.delivered + all.dropped + all.lost + all.in_flight
        );
        // What stopped at switches left them again, was dropped there, or is held by the controller.
        assert_eq!(
            at.stopped + at.copied,
            at.forwarded - at.sent_out + at.handed + at.dropped_at_tables
        );
        assert_eq!(at.handed, at.sent_out + at.held + at.unroutable);
        let sent = all.injected - at.forwarded;
        let arrived = all.delivered - at.stopped - at.strays;
        let dropped = all.dropped + all.lost + at.dropped_at_tables + at.unroutable + at.strays;
        assert_eq!(
            sent + at.copied + all.duplicated,
            arrived + dropped + all.in_flight + at.held
        );
        if over {
            break;
        }
    }
    simulation.finish().expect("nothing is written")
}

fn shapes() -> impl Strategy<Value = Shape> {
    let chords = proptest::collection::vec((0..6usize, 0..6usize), 0..5);
    (
        3..6usize,
        proptest::collection::vec(0..6usize, 2..6),
        chords,
    )
        .prop_map(|(switches, hosts, chords)| Shape {
            switches,
            hosts,
            chords,
        })
}

fn ruled() -> impl Strategy<Value = Ruled> {
    let routing = prop_oneof![
        Just(("hashed", "proactive")),
        Just(("hashed", "reactive")),
        Just(("hashed", "hybrid")),
        Just(("random", "proactive")),
        Just(("random", "reactive")),
        Just(("random", "hybrid")),
        Just(("shortest-path", "proactive")),
        Just(("shortest-path", "reactive")),
        Just(("shortest-path", "hybrid")),
        Just(("spanning-tree", "proactive")),
        Just(("spanning-tree", "reactive")),
        Just(("spanning-tree", "hybrid")),
        Just(("spread", "reactive")),
    ];
    let rate = proptest::option::of(1_000_000..100_000_000u64);
    let idle = proptest::option::of(10 * MS..200 * MS);
    (routing, 0..5 * MS, rate, 0..MS / 4, idle).prop_map(
        |((routing, mode), delay_ns, rate_bps, processing_ns, idle_timeout_ns)| Ruled {
            routing,
            mode,
            delay_ns,
            rate_bps,
            processing_ns,
            idle_timeout_ns,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn connections_end_and_packets_are_accounted_for(
        shape in shapes(),
        ruled in ruled(),
        transport in prop_oneof![Just("tcp"), Just("mptcp"), Just("udp")],
        failures in proptest::collection::vec((0..12usize, 1..100u64, 1..300u64), 0..3),
    ) {
        let failures: Vec<_> =
            failures.into_iter().map(|(link, at, length)| (link, at * MS, length * MS)).collect();
        let plan = plan(&shape, &ruled, transport, &failures);
        let recording = run(&plan);
        prop_assert_eq!(recording.hash(), run(&plan).hash());
        for end in row(&recording, "connection_ends") {
            prop_assert_eq!(&end["state"], "finished", "{:?}", ruled);
            prop_assert_eq!(&end["server_received_bytes"], &BYTES.to_string());
        }
        for switch in row(&recording, "switch_ends") {
            prop_assert_eq!(&switch["errors"], "0", "{:?}", switch);
            prop_assert_eq!(&switch["ttl_exceeded_packets"] == "0", true);
        }
    }
}

fn two_hosts(ruled: &Ruled) -> Recording {
    let shape = Shape {
        switches: 3,
        hosts: vec![0, 1],
        chords: vec![],
    };
    let mut plan = plan(&shape, ruled, "tcp", &[]);
    plan["applications"]
        .as_array_mut()
        .expect("a list")
        .truncate(1);
    run(&plan)
}

/// A packet-in of a SYN of 60 bytes, and the packet-out; 10 ms each way.
#[test]
fn a_reactive_set_up_takes_the_control_links_time_twice() {
    let ruled = Ruled {
        routing: "shortest-path",
        mode: "reactive",
        delay_ns: 10 * MS,
        rate_bps: Some(8_000_000),
        processing_ns: MS,
        idle_timeout_ns: None,
    };
    let recording = two_hosts(&ruled);
    let setups = row(&recording, "flow_setups");
    let seen: Vec<_> = setups
        .iter()
        .map(|it| (&*it["switch"], &*it["packet_ins"]))
        .collect();
    assert_eq!(seen, [("0", "1"), ("1", "1")]);
    // 1 us a byte: packet-in and packet-out are 66 bytes of TCP/IP, 42 and 40 of OpenFlow, and the frame of 14 and the SYN. The packet-out
    // is the only message to the last switch but the flow-mod before it, of 186 bytes.
    let syn: u64 = 20 + 20 + 20;
    let expected = 20 * MS + MS + 1000 * (66 + 42 + 14 + syn) + 1000 * (186 + 66 + 40 + 14 + syn);
    assert_eq!(setups[0]["delay_ns"], expected.to_string());
    let ends = row(&recording, "switch_ends");
    let told: Vec<_> = ends.iter().map(|it| &*it["flow_mods"]).collect();
    // The table-miss entries, and those for both directions.
    assert_eq!(told, ["3", "3", "1"]);
}

#[test]
fn a_proactive_network_asks_nobody() {
    let ruled = Ruled {
        routing: "hashed",
        mode: "proactive",
        delay_ns: 10 * MS,
        rate_bps: None,
        processing_ns: 0,
        idle_timeout_ns: None,
    };
    let recording = two_hosts(&ruled);
    assert!(row(&recording, "flow_setups").is_empty());
    let ends = row(&recording, "switch_ends");
    assert!(
        ends.iter()
            .all(|it| it["packet_ins"] == "0" && it["entries"] == "2")
    );
}

/// Entries that nobody uses go, and the next flow is set up again.
#[test]
fn idle_entries_go() {
    let ruled = Ruled {
        routing: "hashed",
        mode: "reactive",
        delay_ns: MS,
        rate_bps: None,
        processing_ns: 0,
        idle_timeout_ns: Some(20 * MS),
    };
    let shape = Shape {
        switches: 3,
        hosts: vec![0, 1],
        chords: vec![],
    };
    let mut plan = plan(&shape, &ruled, "udp", &[]);
    plan["applications"]
        .as_array_mut()
        .expect("a list")
        .truncate(1);
    // A packet each 40 ms.
    plan["applications"][0]["work"] =
        json!({"kind": "cbr", "rate_bps": 100_000, "packet_bytes": 500, "duration_ns": 200 * MS});
    plan["duration_ns"] = json!(400 * MS);
    let recording = run(&plan);
    let ends = row(&recording, "switch_ends");
    let sent: u64 = row(&recording, "datagrams")[0]["received_packets"]
        .parse()
        .expect("a count");
    assert!(sent >= 5, "{sent}");
    assert_eq!(row(&recording, "flow_setups").len() as u64, sent);
    assert_eq!(ends[0]["packet_ins"], sent.to_string());
    assert_eq!((&*ends[0]["max_entries"], &*ends[0]["entries"]), ("2", "1"));
    assert_eq!(ends[0]["flows_removed"], sent.to_string());
}

//! Networks of bridges: once the tree is found, every host reaches every other, and each packet arrives exactly once.

use std::collections::{BTreeMap, BTreeSet};

use arrow_cast::display::array_value_to_string;
use polypath_lab::{CaptureMode, Recording, Simulation};
use proptest::prelude::*;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

type Row = BTreeMap<String, String>;

fn rows(recording: &Recording, table: &str) -> Vec<Row> {
    let tables = recording.tables();
    let Some((_, batch)) = tables.iter().find(|(name, _)| *name == table) else {
        return Vec::new();
    };
    let schema = batch.schema();
    let names: Vec<_> = schema.fields().iter().map(|it| it.name()).collect();
    let cell = |column: usize, row: usize| {
        let value = array_value_to_string(batch.column(column), row);
        (names[column].clone(), value.expect("a value"))
    };
    let row = |row: usize| (0..names.len()).map(|column| cell(column, row)).collect();
    (0..batch.num_rows()).map(row).collect()
}

/// Bridges joined by `edges`, and a host at each that `hosts` names.
#[derive(Clone, Debug)]
struct Shape {
    bridges: usize,
    edges: Vec<(usize, usize)>,
    hosts: Vec<usize>,
}

struct Network {
    plan: Value,
    /// Links of hosts come first.
    hosts: usize,
    bridges: usize,
}

impl Network {
    fn new(shape: &Shape, protocol: &str) -> Self {
        let choice = |name: &str| json!({"name": name});
        let stack = json!({
            "profile": "rfc", "scheduler": choice("default"),
            "path_manager": choice("default"), "congestion": choice("reno"),
            "receive_buffer": [4096, 131_072, 6_291_456], "send_buffer": [4096, 16_384, 4_194_304],
            "autotuning": true, "mtu": 1500, "initial_window": 10, "sack": true, "timestamps": true,
            "window_scaling": true, "ecn": false, "checksum": false, "nagle": true,
            "rto_min_ns": 200 * MS, "rto_initial_ns": 1000 * MS, "delayed_ack_ns": 40 * MS,
        });
        let channel = json!({"rate_bps": 100_000_000, "delay_ns": MS, "queue": {"kind": "drop-tail", "packets": 1000}});
        let mut faces = vec![0; shape.bridges];
        let mut face = |bridge: usize| {
            faces[bridge] += 1;
            json!({"node": bridge, "interface": faces[bridge] - 1})
        };
        let mut links = Vec::new();
        let mut join = |name: String, a: Value, b: Value| {
            links.push(
                json!({"name": name, "a": a, "b": b, "forward": channel, "backward": channel}),
            );
        };
        for (host, &at) in shape.hosts.iter().enumerate() {
            let a = json!({"node": shape.bridges + host, "interface": 0});
            join(format!("h{host}"), a, face(at));
        }
        for (number, &(a, b)) in shape.edges.iter().enumerate() {
            join(format!("l{number}"), face(a), face(b));
        }
        let interface = |name: usize, addresses: Value| json!({"name": format!("p{name}"), "addresses": addresses});
        let mut nodes = Vec::new();
        for (number, count) in faces.iter().enumerate() {
            let own: Vec<_> = (1..=*count)
                .map(|port| interface(port, json!([])))
                .collect();
            nodes.push(json!({"name": format!("s{number}"), "kind": "switch", "interfaces": own}));
        }
        for host in 0..shape.hosts.len() {
            let own = interface(0, json!([format!("10.0.0.{}", host + 1)]));
            nodes.push(json!({"name": format!("h{host}"), "kind": "host", "interfaces": [own], "stack": stack}));
        }
        let plan = json!({
            "version": 1, "name": "bridged", "seed": 3, "duration_ns": 60_000 * MS, "nodes": nodes,
            "links": links, "applications": [], "events": [],
            "bridging": {"protocol": choice(protocol), "ageing_ns": 300_000 * MS},
        });
        Self {
            plan,
            hosts: shape.hosts.len(),
            bridges: shape.bridges,
        }
    }

    fn list(&mut self, name: &str) -> &mut Vec<Value> {
        self.plan[name].as_array_mut().expect("a list")
    }

    /// Some datagrams from one host to another.
    fn datagrams(&mut self, from: usize, to: usize, start: u64, length: u64) {
        let work =
            json!({"kind": "cbr", "rate_bps": 400_000, "packet_bytes": 500, "duration_ns": length});
        let (client, server) = (self.bridges + from, self.bridges + to);
        let application = json!({
            "name": format!("{from}-{to}-{start}"), "client": client, "server": server, "transport": "udp",
            "port": 80, "start_ns": start, "work": work,
        });
        self.list("applications").push(application);
    }

    fn set(&mut self, link: usize, at: u64, up: bool) {
        let link = self.hosts + link;
        let action = json!({"kind": "link", "link": link, "direction": "both", "up": up});
        self.list("events")
            .push(json!({"at_ns": at, "action": action}));
    }

    fn simulation(&self) -> Simulation {
        Simulation::new(&self.plan.to_string(), CaptureMode::None, None)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Where all packets went, step by step, and what was recorded.
    fn run(&self) -> Recording {
        let mut simulation = self.simulation();
        for until in (1..).map(|step| step * 101 * MS) {
            let over = simulation
                .step_until(until)
                .unwrap_or_else(|error| panic!("{error}"));
            let all = simulation.totals();
            let at = simulation.switch_totals().expect("there are bridges");
            assert_eq!(
                all.injected + all.duplicated,
                all.delivered + all.dropped + all.lost + all.in_flight
            );
            // What stopped at bridges left them again, was dropped there, or was for them.
            assert_eq!(
                at.stopped + at.copied + at.bpdus_sent,
                at.forwarded + at.dropped_at_tables + at.bpdus_received
            );
            assert_eq!(at.handed + at.held + at.sent_out, 0);
            if over {
                break;
            }
        }
        simulation.finish().expect("nothing is written")
    }
}

/// The states of all ports at a time, by node and port.
fn states(recording: &Recording, at: u64) -> BTreeMap<(usize, usize), String> {
    let mut states = BTreeMap::new();
    for row in rows(recording, "bridge_ports") {
        let number = |name: &str| row[name].parse::<usize>().expect("a number");
        if number("time_ns") as u64 <= at {
            states.insert((number("switch"), number("port")), row["state"].clone());
        }
    }
    states
}

/// The links between bridges that carry frames at a time: no more than a tree needs.
fn tree(shape: &Shape, recording: &Recording, at: u64, down: &BTreeSet<usize>) {
    let states = states(recording, at);
    let mut faces = vec![0; shape.bridges];
    let mut face = |bridge: usize| {
        faces[bridge] += 1;
        (bridge, faces[bridge])
    };
    for &bridge in &shape.hosts {
        assert_eq!(
            states[&face(bridge)],
            "forwarding",
            "hosts are always heard"
        );
    }
    let mut part: Vec<usize> = (0..shape.bridges).collect();
    let mut whole = part.clone();
    for (link, &(a, b)) in shape.edges.iter().enumerate() {
        let ends = [face(a), face(b)];
        if down.contains(&link) {
            continue;
        }
        let join = |part: &mut Vec<usize>| {
            let (from, to) = (part[a], part[b]);
            part.iter_mut()
                .filter(|it| **it == from)
                .for_each(|it| *it = to);
            from != to
        };
        join(&mut whole);
        if ends.iter().all(|end| states[end] == "forwarding") {
            assert!(join(&mut part), "a loop over l{link}");
        }
    }
    let count = |part: &[usize]| part.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(count(&part), count(&whole), "the tree reaches all");
}

fn shapes() -> impl Strategy<Value = Shape> {
    (2..7usize).prop_flat_map(|bridges| {
        let extra = (0..bridges, 0..bridges).prop_filter("two ends", |(a, b)| a != b);
        let parents: Vec<_> = (1..bridges)
            .map(|bridge| (Just(bridge), 0..bridge))
            .collect();
        (
            parents,
            proptest::collection::vec(extra, 0..5),
            proptest::collection::vec(0..bridges, 2..5),
        )
            .prop_map(move |(tree, extra, hosts)| Shape {
                bridges,
                edges: tree.into_iter().chain(extra).collect(),
                hosts,
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_host_reaches_every_other_and_each_packet_arrives_once(
        shape in shapes(),
        rapid in any::<bool>(),
        failed in any::<prop::sample::Index>(),
    ) {
        let mut network = Network::new(&shape, if rapid { "rstp" } else { "stp" });
        // Twice the forward delay, and max age before it; a failure in between; once more. Rapid bridges that lose their root count its
        // information out by hops, and each may hold a BPDU back for a second (Elmeleegy, Cox and Ng, INFOCOM 2006).
        let (converged, failure, again) = match rapid {
            true => (3_000 * MS, 5_000 * MS, 65_000 * MS),
            false => (40_000 * MS, 45_000 * MS, 110_000 * MS),
        };
        network.plan["duration_ns"] = json!(again + 3_000 * MS);
        let link = failed.index(shape.edges.len());
        network.set(link, failure, false);
        let down = BTreeSet::from([link]);
        let hosts = shape.hosts.len();
        let pairs: Vec<_> = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b))).collect();
        for start in [converged, again] {
            for &(a, b) in pairs.iter().filter(|(a, b)| a != b) {
                network.datagrams(a, b, start, 100 * MS);
            }
        }
        let recording = network.run();
        prop_assert_eq!(recording.hash(), network.run().hash());
        tree(&shape, &recording, converged, &BTreeSet::new());
        tree(&shape, &recording, again, &down);
        let cut = split(&shape, &down);
        let half = rows(&recording, "datagrams").len() / 2;
        for (number, row) in rows(&recording, "datagrams").into_iter().enumerate() {
            let (a, b) = pairs.iter().filter(|(a, b)| a != b).nth(number % half).expect("it is there");
            let reached = number < half || cut[shape.hosts[*a]] == cut[shape.hosts[*b]];
            let expected = if reached { row["sent_packets"].clone() } else { "0".into() };
            prop_assert_eq!(&row["received_packets"], &expected, "{} to {} of {:?}", a, b, row);
        }
        for bridge in rows(&recording, "bridge_ends") {
            prop_assert_eq!(&bridge["ttl_exceeded_packets"], "0");
        }
    }
}

/// The part that each bridge is in without some links.
fn split(shape: &Shape, down: &BTreeSet<usize>) -> Vec<usize> {
    let mut part: Vec<usize> = (0..shape.bridges).collect();
    for (link, &(a, b)) in shape.edges.iter().enumerate() {
        if !down.contains(&link) {
            let (from, to) = (part[a], part[b]);
            part.iter_mut()
                .filter(|it| **it == from)
                .for_each(|it| *it = to);
        }
    }
    part
}

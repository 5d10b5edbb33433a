//! Tunnels: the packets of a link in DATAGRAM frames or in a stream of a QUIC connection.

#[allow(dead_code, reason = "each file of tests uses different parts")]
mod common;

use std::collections::BTreeMap;

use common::{Lab, MS, Outcome, SECOND};
use polypath_lab::{CaptureMode, Simulation};
use serde_json::{Value, json};

const BYTES: u64 = 5_000_000;

fn host(name: &str, interfaces: &[&str]) -> Value {
    let lab = Lab::new(1).plan();
    let own: Vec<Value> = (interfaces.iter().enumerate())
        .map(|(number, address)| json!({"name": format!("eth{number}"), "addresses": [address]}))
        .collect();
    json!({"name": name, "kind": "host", "forwards": interfaces.len() > 1, "interfaces": own, "stack": lab["nodes"][0]["stack"]})
}

fn link(name: &str, a: (usize, usize), b: (usize, usize), channel: &Value) -> Value {
    json!({
        "name": name, "a": {"node": a.0, "interface": a.1}, "b": {"node": b.0, "interface": b.1},
        "forward": channel, "backward": channel,
    })
}

fn line(mbps: u64, delay_ms: u64, mtu: u32) -> Value {
    let queue = json!({"kind": "drop-tail", "packets": 60});
    json!({"rate_bps": mbps * 1_000_000, "delay_ns": delay_ms * MS, "queue": queue, "mtu": mtu})
}

const TUN: usize = 3;
const BULK: usize = 1;

/// A client behind a home gateway with two lines to an operator's proxy, and a server behind that.
fn plan(tunnel: &Value, work: &Value) -> Value {
    let router = |name: &str| {
        let faces: Vec<Value> = (0..3)
            .map(|face| json!({"name": format!("r{face}")}))
            .collect();
        json!({"name": name, "kind": "router", "interfaces": faces})
    };
    let application = |name: &str,
                       ends: (usize, usize),
                       transport: &str,
                       addresses: (&str, &str)| {
        json!({
            "name": name, "client": ends.0, "server": ends.1, "transport": transport, "port": 443,
            "source": addresses.0, "destination": addresses.1, "start_ns": 0,
        })
    };
    let mut outer = application("tunnel", (1, 2), "mpquic", ("10.1.0.1", "10.3.0.2"));
    outer["work"] = json!({"kind": "tunnel", "link": TUN});
    for (name, value) in tunnel.as_object().expect("a table") {
        outer["work"][name] = value.clone();
    }
    let mut inner = application("bulk", (0, 3), "tcp", ("10.0.0.1", "10.4.0.2"));
    inner["work"] = work.clone();
    // after the handshake and the search for the paths' MTU
    inner["start_ns"] = json!(2 * SECOND);
    json!({
        "version": 1, "name": "tunnels", "seed": 1, "duration_ns": 60 * SECOND,
        "nodes": [
            host("client", &["10.0.0.1"]), host("gw", &["10.0.0.2", "10.1.0.1", "10.2.0.1", "10.9.0.1"]),
            host("proxy", &["10.3.0.2", "10.4.0.1", "10.9.0.2"]), host("server", &["10.4.0.2"]), router("r"),
        ],
        "links": [
            link("lan", (0, 0), (1, 0), &line(100, 1, 1500)), link("dsl", (1, 1), (4, 0), &line(10, 10, 1500)),
            link("lte", (1, 2), (4, 1), &line(10, 20, 1500)), link("tun", (1, 3), (2, 2), &json!({})),
            link("wan", (4, 2), (2, 0), &line(1000, 1, 1500)), link("core", (2, 1), (3, 0), &line(1000, 1, 1500)),
        ],
        "applications": [outer, inner],
    })
}

fn bulk(reverse: bool) -> Value {
    json!({"kind": "bulk", "size_bytes": BYTES, "reverse": reverse})
}

fn number(row: &BTreeMap<String, String>, column: &str) -> u64 {
    let value = &row[column];
    value
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

fn sum(outcome: &Outcome, column: &str) -> u64 {
    let rows = outcome.rows("tunnels");
    rows.iter().map(|row| number(row, column)).sum()
}

fn last_byte(outcome: &Outcome) -> u64 {
    let ends = outcome.rows("connection_ends");
    let bulk = ends
        .iter()
        .find(|row| row["application"] == BULK.to_string());
    let bulk = bulk.expect("the transfer began");
    assert_eq!(
        number(bulk, "client_received_bytes") + number(bulk, "server_received_bytes"),
        BYTES,
        "{bulk:?}"
    );
    number(bulk, "last_byte_ns") - 2 * SECOND
}

#[test]
fn a_transfer_crosses_both_lines_in_datagrams() {
    for reverse in [false, true] {
        let tunnel = json!({"reorder_ns": 60 * MS});
        let outcome = Lab::run_plan(&plan(&tunnel, &bulk(reverse)));
        // 40 Mbit over 20 Mbps, headers and slow start beside; one line alone would take more than 4 s
        let took = last_byte(&outcome);
        assert!((2 * SECOND..4 * SECOND).contains(&took), "{took}");
        for row in outcome.rows("tunnels") {
            let carried = number(&row, "carried_packets");
            let refused: u64 = ["unconnected", "queue_full", "too_long", "unfit"]
                .iter()
                .map(|why| number(&row, &format!("{why}_packets")))
                .sum();
            assert_eq!(
                number(&row, "entered_packets"),
                carried + refused,
                "{row:?}"
            );
            assert!(number(&row, "left_packets") <= carried, "{row:?}");
            assert!(carried > 1000, "{row:?}");
        }
        assert!(sum(&outcome, "reordered_packets") > 0);
    }
}

/// The sender is told of packets that no DATAGRAM frame takes, and sends shorter ones.
#[test]
fn what_does_not_fit_is_told_to_its_sender() {
    let outcome = Lab::run_plan(&plan(&json!({}), &bulk(false)));
    let told: Vec<String> = (outcome.rows("events").into_iter())
        .filter(|row| row["kind"] == "packet-too-big")
        .map(|row| row["detail"].clone())
        .collect();
    // 1500 of the line - 20 - 8 (IP, UDP) - 27 (short header, tag) - 8 (kept free) - 3 (frame) - 2 (stream, context) = 1432
    assert!(!told.is_empty());
    assert!(
        // The search for the path's MTU ends within 8 bytes.
        told.iter().all(|detail| (1424..=1432)
            .any(|mtu| *detail == format!("1500 bytes before {mtu}, sender told"))),
        "{told:?}"
    );
    assert_eq!(sum(&outcome, "too_long_packets"), told.len() as u64);
    last_byte(&outcome);
}

/// What a line carries more or less in all, if nothing but the fields before a packet differ.
#[test]
fn a_packet_takes_its_own_length_and_the_fields_before_it() {
    let work =
        json!({"kind": "cbr", "rate_bps": 1_000_000, "packet_bytes": 972, "duration_ns": SECOND});
    let through = |tunnel: Value| {
        let mut plan = plan(&tunnel, &work);
        plan["applications"][0]["transport"] = json!("quic");
        plan["applications"][BULK]["transport"] = json!("udp");
        let outcome = Lab::run_plan(&plan);
        let sent = &outcome.rows("datagrams")[0];
        assert_eq!(sent["sent_packets"], sent["received_packets"]);
        let links = outcome.rows("link_ends");
        let line = links.iter().find(|row| row["name"] == "dsl");
        (
            number(line.expect("a line"), "sent_bytes"),
            number(sent, "sent_packets"),
        )
    };
    let (whole, packets) = through(json!({}));
    let (numbered, _) = through(json!({"reorder_ns": MS}));
    let (payloads, _) = through(json!({"framing": "connect-udp"}));
    assert!(packets > 100);
    assert_eq!(numbered - whole, 4 * packets);
    assert_eq!(whole - payloads, 28 * packets);
    // IP, UDP, short header and tag, frame, stream and context; beside them the handshake and the search for the MTU
    let least = packets * (1000 + 14 + 28 + 27 + 3 + 2);
    assert!((least..least + 15_000).contains(&whole), "{whole} {least}");
}

#[test]
fn copies_of_a_redundant_scheduler_come_out_once() {
    let mut plan = plan(&json!({}), &bulk(false));
    plan["nodes"][1]["stack"]["scheduler"] = json!({"name": "redundant"});
    let outcome = Lab::run_plan(&plan);
    last_byte(&outcome);
    assert!(sum(&outcome, "left_packets") <= sum(&outcome, "carried_packets"));
}

#[test]
fn a_stream_repeats_what_is_lost_and_keeps_order() {
    let mut plan = plan(&json!({"carriage": "stream"}), &bulk(false));
    plan["links"][1]["forward"]["loss"] = json!({"kind": "random", "probability": 0.01});
    let outcome = Lab::run_plan(&plan);
    last_byte(&outcome);
    assert_eq!(
        sum(&outcome, "left_packets"),
        sum(&outcome, "carried_packets")
    );
    assert_eq!(sum(&outcome, "reordered_packets"), 0);
}

#[test]
fn whatever_runs_over_ip_runs_through_a_tunnel() {
    for transport in ["tcp", "mptcp", "quic", "mpquic"] {
        let mut plan = plan(&json!({}), &bulk(true));
        plan["applications"][BULK]["transport"] = json!(transport);
        last_byte(&Lab::run_plan(&plan));
    }
}

#[test]
fn payloads_of_udp_go_through_and_nothing_else_does() {
    let mut plan = plan(&json!({"framing": "connect-udp"}), &bulk(true));
    plan["applications"][BULK]["transport"] = json!("quic");
    let outcome = Lab::run_plan(&plan);
    last_byte(&outcome);
    assert_eq!(sum(&outcome, "unfit_packets"), 0);
    plan["applications"][BULK]["transport"] = json!("tcp");
    let outcome = Lab::run_plan(&plan);
    assert_eq!(sum(&outcome, "carried_packets"), 0);
    assert!(sum(&outcome, "unfit_packets") > 0);
}

#[test]
fn the_queue_before_the_connection_is_bounded() {
    let work = json!({"kind": "cbr", "rate_bps": 40_000_000, "packet_bytes": 1000, "duration_ns": 4 * SECOND});
    let mut delays = Vec::new();
    for queue in [20, 500] {
        let mut plan = plan(&json!({"queue": queue}), &work);
        plan["applications"][BULK]["transport"] = json!("udp");
        let outcome = Lab::run_plan(&plan);
        assert!(sum(&outcome, "queue_full_packets") > 1000);
        delays.push(number(&outcome.rows("datagrams")[0], "delay_mean_ns"));
    }
    // 480 packets of 1000 bytes more at 20 Mbps
    let more = delays[1] - delays[0];
    assert!((100 * MS..300 * MS).contains(&more), "{delays:?}");
}

fn bond(tunnel: &Value, work: &Value) -> Value {
    let mut plan = plan(tunnel, work);
    plan["applications"][0]["transport"] = json!("udp");
    plan
}

/// Per-packet round robin without any transport: packets keep their number, and nothing their order.
#[test]
fn lines_take_turns_by_weight() {
    let work = json!({"kind": "cbr", "rate_bps": 8_000_000, "packet_bytes": 972, "duration_ns": 2 * SECOND});
    for (weights, share) in [(None, 1), (Some([3, 1]), 3)] {
        let tunnel = weights.map_or(json!({}), |weights| json!({"weights": weights}));
        let mut plan = bond(&tunnel, &work);
        plan["applications"][BULK]["transport"] = json!("udp");
        let outcome = Lab::run_plan(&plan);
        let forward = |name: &str, column: &str| {
            let rows = outcome.rows("link_ends");
            let row = rows
                .iter()
                .find(|row| row["name"] == name && row["direction"] == "forward");
            number(row.expect("a line"), column)
        };
        let (dsl, lte) = (
            forward("dsl", "sent_packets"),
            forward("lte", "sent_packets"),
        );
        assert!(dsl.abs_diff(share * lte) <= share, "{dsl} {lte}");
        // IP, UDP, no more
        assert_eq!(forward("dsl", "sent_bytes"), dsl * (1000 + 28 + 14));
        let [tunnel, load] = [0, 1].map(|row| outcome.rows("datagrams")[row].clone());
        assert_eq!(load["sent_packets"], load["received_packets"]);
        assert_eq!(tunnel["received_packets"], load["received_packets"]);
        // the second line is 10 ms longer
        assert!(sum(&outcome, "late_packets") > 100);
    }
}

#[test]
fn the_reorder_buffer_puts_the_packets_of_lines_in_order() {
    let work = json!({"kind": "cbr", "rate_bps": 8_000_000, "packet_bytes": 972, "duration_ns": 2 * SECOND});
    for (wait, late) in [(9, true), (11, false)] {
        let mut plan = bond(&json!({"reorder_ns": wait * MS}), &work);
        plan["applications"][BULK]["transport"] = json!("udp");
        let outcome = Lab::run_plan(&plan);
        assert_eq!(sum(&outcome, "late_packets") > 0, late, "{wait} ms");
        assert_eq!(
            sum(&outcome, "left_packets"),
            sum(&outcome, "carried_packets")
        );
    }
}

#[test]
fn a_transfer_goes_over_lines() {
    for reverse in [false, true] {
        let mut plan = bond(&json!({"reorder_ns": 100 * MS}), &bulk(reverse));
        plan["links"][2]["forward"]["mtu"] = json!(1400);
        plan["links"][2]["backward"]["mtu"] = json!(1400);
        let outcome = Lab::run_plan(&plan);
        let took = last_byte(&outcome);
        assert!((2 * SECOND..4 * SECOND).contains(&took), "{took}");
        let events = outcome.rows("events");
        let mut told = events.iter().filter(|row| row["kind"] == "packet-too-big");
        assert!(told.all(|row| row["detail"] == "1500 bytes before 1368, sender told"));
        assert!(sum(&outcome, "too_long_packets") > 0);
    }
}

/// Tunnels of all kinds under all that lines do to packets: what is inside comes whole, counts add up, and the same plan has the same rows.
#[test]
fn random_tunnels_carry_what_is_inside() {
    let mut state = 7u64;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for case in 0..24 {
        let outer = ["mpquic", "quic", "udp"][draw(3) as usize];
        let inner = ["tcp", "mptcp", "quic", "mpquic"][draw(4) as usize];
        let mut tunnel = json!({"queue": 1 + draw(300), "reorder_ns": draw(3) * 40 * MS, "reorder_packets": 1 + draw(100)});
        if outer != "udp" && draw(3) == 0 {
            tunnel = json!({"carriage": "stream"});
        } else if outer != "udp" && inner.contains("quic") && draw(2) == 0 {
            tunnel["framing"] = json!("connect-udp");
        }
        let work = json!({"kind": "bulk", "size_bytes": 200_000, "reverse": draw(2) == 0});
        let mut plan = plan(&tunnel, &work);
        plan["seed"] = json!(case);
        plan["applications"][0]["transport"] = json!(outer);
        plan["applications"][BULK]["transport"] = json!(inner);
        let schedulers = ["default", "roundrobin", "redundant", "blest"];
        let scheduler = json!({"name": schedulers[draw(4) as usize]});
        for node in [1, 2] {
            plan["nodes"][node]["stack"]["scheduler"] = scheduler.clone();
        }
        for line in [1, 2] {
            for side in ["forward", "backward"] {
                let channel = &mut plan["links"][line][side];
                channel["delay_ns"] = json!(draw(60) * MS);
                channel["loss"] = json!({"kind": "random", "probability": draw(3) as f64 / 100.0});
                channel["duplicate"] = json!(draw(3) as f64 / 100.0);
                channel["corrupt"] = json!(draw(2) as f64 / 100.0);
                channel["reorder"] = json!(draw(2) as f64 / 20.0);
                channel["mtu"] = json!(1300 + draw(300));
            }
        }
        let outcome = Lab::run_plan(&plan);
        let ends = outcome.rows("connection_ends");
        let bulk = ends
            .iter()
            .find(|row| row["application"] == "1")
            .expect("it began");
        let came = number(bulk, "client_received_bytes") + number(bulk, "server_received_bytes");
        assert_eq!(came, 200_000, "{plan}");
        for row in outcome.rows("tunnels") {
            let refused: u64 = ["unconnected", "queue_full", "too_long", "unfit"]
                .iter()
                .map(|why| number(&row, &format!("{why}_packets")))
                .sum();
            let carried = number(&row, "carried_packets");
            assert_eq!(
                number(&row, "entered_packets"),
                carried + refused,
                "{row:?}"
            );
            assert!(number(&row, "left_packets") <= carried, "{row:?}");
        }
        let again = Lab::run_plan(&plan);
        for table in ["tunnels", "connection_ends", "link_ends"] {
            assert_eq!(outcome.rows(table), again.rows(table), "{plan}");
        }
    }
}

type Change = fn(&mut Value);

#[test]
fn tunnels_that_are_none_are_refused() {
    let refusal = |change: Change| {
        let mut plan = plan(&json!({}), &bulk(false));
        change(&mut plan);
        let made = Simulation::new(&plan.to_string(), CaptureMode::None, None);
        made.err().expect("no tunnel").to_string()
    };
    let cases: [(Change, &str); 6] = [
        (
            |plan| {
                plan["applications"][0]["transport"] = json!("udp");
                plan["applications"][0]["work"]["weights"] = json!([1, 2, 3]);
            },
            "3 weights for 2 lines",
        ),
        (
            |plan| plan["applications"][0]["work"]["weights"] = json!([1, 0]),
            "weights are 1 to 16 numbers above 0",
        ),
        (
            |plan| plan["applications"][0]["work"]["link"] = json!(9),
            "there is no link 9",
        ),
        (
            |plan| plan["applications"][0]["work"]["link"] = json!(0),
            "link lan is not between its hosts",
        ),
        (
            |plan| {
                let first = plan["applications"][0].clone();
                plan["applications"]
                    .as_array_mut()
                    .expect("a list")
                    .push(first);
            },
            "link tun has a tunnel already",
        ),
        (
            |plan| plan["applications"][0]["source"] = json!("10.9.0.1"),
            "its own packets would go through it",
        ),
    ];
    for (change, words) in cases {
        let told = refusal(change);
        assert!(told.contains(words), "{told}");
    }
}

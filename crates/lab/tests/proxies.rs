//! Applications over proxies: a chain of connections with flow control and multipath of their own.

#[allow(dead_code, reason = "each file of tests uses different parts")]
mod common;

use std::collections::BTreeMap;

use common::{Lab, MS, Outcome, SECOND};
use polypath_lab::{CaptureMode, Simulation};
use serde_json::{Value, json};

const BYTES: u64 = 10_000_000;

fn host(name: &str, interfaces: &[&str]) -> Value {
    let lab = Lab::new(1).plan();
    let own: Vec<Value> = (interfaces.iter().enumerate())
        .map(|(number, address)| json!({"name": format!("eth{number}"), "addresses": [address]}))
        .collect();
    json!({"name": name, "kind": "host", "interfaces": own, "stack": lab["nodes"][0]["stack"]})
}

fn link(name: &str, a: (usize, usize), b: (usize, usize), mbps: u64) -> Value {
    let channel = json!({"rate_bps": mbps * 1_000_000, "delay_ns": 10 * MS, "queue": {"kind": "drop-tail", "packets": 60}});
    json!({
        "name": name, "a": {"node": a.0, "interface": a.1}, "b": {"node": b.0, "interface": b.1},
        "forward": channel, "backward": channel,
    })
}

/// A client behind a home gateway with two lines to an operator's proxy, and a server behind that.
fn plan(work: &Value, last_mbps: u64) -> Value {
    let leg = |name: &str, ends: (usize, usize), transport: &str, addresses: (&str, &str)| {
        json!({
            "name": name, "client": ends.0, "server": ends.1, "transport": transport, "port": 80, "start_ns": 0,
            "source": addresses.0, "destination": addresses.1, "work": work,
        })
    };
    let mut legs = vec![
        leg("load", (0, 1), "tcp", ("10.0.0.1", "10.0.0.2")),
        leg("load-gw", (1, 2), "mptcp", ("10.1.0.1", "10.1.0.2")),
        leg("load-proxy", (2, 3), "tcp", ("10.3.0.1", "10.3.0.2")),
    ];
    for leg in &mut legs[1..] {
        leg["work"] = json!({"kind": "relay", "of": 0});
    }
    let gateway = host("gw", &["10.0.0.2", "10.1.0.1", "10.2.0.1"]);
    json!({
        "version": 1, "name": "proxies", "seed": 1, "duration_ns": 60 * SECOND,
        "nodes": [
            host("client", &["10.0.0.1"]), gateway,
            host("proxy", &["10.1.0.2", "10.2.0.2", "10.3.0.1"]), host("server", &["10.3.0.2"]),
        ],
        "links": [
            link("lan", (0, 0), (1, 0), 100), link("dsl", (1, 1), (2, 0), 10), link("lte", (1, 2), (2, 1), 10),
            link("core", (2, 2), (3, 0), last_mbps),
        ],
        "applications": legs,
    })
}

fn ends(outcome: &Outcome) -> Vec<BTreeMap<String, String>> {
    outcome.rows("connection_ends")
}

fn number(row: &BTreeMap<String, String>, column: &str) -> u64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

fn bulk(reverse: bool) -> Value {
    json!({"kind": "bulk", "size_bytes": BYTES, "reverse": reverse})
}

#[test]
fn two_proxies_carry_a_transfer_over_both_lines() {
    for reverse in [false, true] {
        let outcome = Lab::run_plan(&plan(&bulk(reverse), 100));
        let ends = ends(&outcome);
        let transports: Vec<&str> = ends.iter().map(|row| row["transport"].as_str()).collect();
        assert_eq!(transports, ["tcp", "mptcp", "tcp"]);
        let side = if reverse { "client" } else { "server" };
        for row in &ends {
            assert_eq!(
                number(row, &format!("{side}_received_bytes")),
                BYTES,
                "{row:?}"
            );
        }
        // 80 Mbit over 20 Mbps, headers and slow start beside
        let arrived = ends.iter().map(|row| number(row, "last_byte_ns"));
        let latest = arrived.max().expect("three");
        assert!((4 * SECOND..6 * SECOND).contains(&latest), "{latest}");
    }
}

/// The buffers of the last leg and of the relays fill, and then the client is as slow as the last leg.
#[test]
fn a_slow_leg_holds_back_those_before_it() {
    let outcome = Lab::run_plan(&plan(&bulk(false), 4));
    let ends = ends(&outcome);
    let last: Vec<u64> = (ends.iter())
        .map(|row| number(row, "last_byte_ns"))
        .collect();
    assert!(last[0] < last[1] && last[1] < last[2], "{last:?}");
    // send buffers of up to 4 MiB at each proxy, and windows of as much: less than the whole at 4 Mbps
    assert!(last[0] > 2 * SECOND, "{last:?}");
    assert!(last[2] > 20 * SECOND, "{last:?}");
}

#[test]
fn what_goes_back_and_forth_is_answered_through_the_chain() {
    let work = json!({"kind": "ping-pong", "count": 5, "bytes": 1000});
    let outcome = Lab::run_plan(&plan(&work, 100));
    let requests = outcome.rows("requests");
    assert_eq!(requests.len(), 5);
    for row in &requests {
        assert_eq!(row["application"], "0");
        let delay = number(row, "delay_ns");
        // three legs of 20 ms each; the first has to open the others
        assert!(delay >= 60 * MS, "{row:?}");
    }
    let delays: Vec<u64> = requests.iter().map(|row| number(row, "delay_ns")).collect();
    assert!(delays[4] < 65 * MS, "{delays:?}");
    assert!(
        delays[0] > 90 * MS,
        "the other legs shake hands first: {delays:?}"
    );
}

#[test]
fn a_connection_that_fails_takes_the_others_along() {
    let work = json!({"kind": "bulk", "duration_ns": 2 * SECOND, "abort": true});
    let outcome = Lab::run_plan(&plan(&work, 100));
    let ended: Vec<u64> = (ends(&outcome).iter())
        .map(|row| number(row, "end_ns"))
        .collect();
    assert!(ended.iter().all(|at| *at < 3 * SECOND), "{ended:?}");
}

#[test]
fn chains_that_are_none_are_refused() {
    let refusal = |change: &dyn Fn(&mut Value)| {
        let mut plan = plan(&bulk(false), 100);
        change(&mut plan["applications"]);
        let made = Simulation::new(&plan.to_string(), CaptureMode::None, None);
        made.err().expect("no chain").to_string()
    };
    type Change = dyn Fn(&mut Value);
    let cases: [(&Change, &str); 4] = [
        (
            &|legs| legs[1]["work"]["of"] = json!(2),
            "load-proxy does not begin where load ends",
        ),
        (
            &|legs| legs[2]["client"] = json!(1),
            "load-proxy does not begin where load-gw ends",
        ),
        (
            &|legs| legs[1]["transport"] = json!("mpquic"),
            "proxies relay TCP and Multipath TCP",
        ),
        (
            &|legs| (1..3).for_each(|leg| legs[leg]["work"]["of"] = json!(7)),
            "no application before it begins the chain",
        ),
    ];
    for (change, words) in cases {
        let told = refusal(change);
        assert!(told.contains(words), "{told}");
    }
}

//! SYNs beyond the one of each application's client, and joins that are refused (RFC 9293 sections 3.5.1 and 3.10.7,
//! RFC 8684 section 3.2).

#[allow(dead_code, reason = "each file of tests uses different parts")]
mod common;

use common::{BYTES, Lab, MS, Outcome, SECOND};
use serde_json::{Value, json};

/// A time of a row in nanoseconds.
#[track_caller]
fn time(row: &std::collections::BTreeMap<String, String>, column: &str) -> u64 {
    row[column].parse().expect("a time")
}

/// The server answers as it does any SYN, and the client resets what has no MP_JOIN: the path is known to be of no use at once.
#[test]
fn a_join_without_its_option_is_answered() {
    let outcome = Lab::new(2)
        .with(1, "strip-options", json!({"on": "syn"}))
        .run();
    outcome.assert_whole("mptcp");
    let join = &outcome.rows("subflow_ends")[1];
    assert_eq!(join["established_ns"], "");
    // The handshake of the first path, its first data and the answer to it, and the join's round trip.
    let closed = time(join, "closed_ns");
    assert!((60 * MS..200 * MS).contains(&closed), "{closed}");
    assert_eq!(outcome.counter("TcpPassiveOpens"), 2);
    assert_eq!(outcome.counter("TcpAttemptFails"), 1);
}

/// The SYN/ACKs are lost, and the NAT forgets between two SYNs: the third comes from another port than the server's half-open connection.
#[test]
fn a_syn_from_another_port_is_answered() {
    for transport in ["tcp", "mptcp"] {
        let lab = Lab {
            transport,
            ..Lab::new(1).with(0, "nat", json!({"timeout_s": 1.5, "keep_ports": false}))
        };
        let mut plan = lab.plan();
        let last = plan["links"].as_array().expect("links").len() - 1;
        let turn = |at: u64, up: bool| json!({"at_ns": at, "action": {"kind": "link", "link": last, "direction": "backward", "up": up}});
        plan["events"] = json!([turn(0, false), turn(2_500 * MS, true)]);
        let outcome = Lab::run_plan(&plan);
        outcome.assert_whole(transport);
        let end = &outcome.rows("connection_ends")[0];
        let established = time(end, "established_ns");
        assert!(
            (3 * SECOND..3 * SECOND + 100 * MS).contains(&established),
            "{established}"
        );
        assert_eq!(outcome.counter("TcpPassiveOpens"), 2);
    }
}

/// Two clients behind a NAT that keeps ports: both begin with the same one, so that the second's SYN, 30 s later, comes from where the
/// first's connection came.
fn two_clients(first: &Value, reverse: bool, timestamps: bool) -> Outcome {
    let mut plan = Lab::new(1).plan();
    let router = 2;
    let face = json!({"name": "r2", "addresses": [], "backup": false});
    plan["nodes"][router]["interfaces"]
        .as_array_mut()
        .expect("interfaces")
        .push(face);
    let mut second = plan["nodes"][0].clone();
    second["name"] = json!("second");
    second["interfaces"][0]["addresses"] = json!(["10.2.0.1"]);
    let nodes = plan["nodes"].as_array_mut().expect("nodes");
    nodes.push(second);
    let added = nodes.len() - 1;
    for node in nodes.iter_mut().filter(|node| node["kind"] == "host") {
        node["stack"]["timestamps"] = json!(timestamps);
    }
    let links = plan["links"].as_array_mut().expect("links");
    let mut access = links[0].clone();
    access["name"] = json!("second");
    access["a"] = json!({"node": added, "interface": 0});
    access["b"] = json!({"node": router, "interface": 2});
    links[1]["middleboxes"] = json!([{"name": "nat", "parameters": {"timeout_s": 5}}]);
    links.push(access);
    let mut application = plan["applications"][0].clone();
    application["transport"] = json!("tcp");
    application["work"] = json!({"kind": "bulk", "size_bytes": 100_000, "reverse": reverse});
    let mut other = application.clone();
    if !first.is_null() {
        application["work"] = first.clone();
    }
    other["name"] = json!("second");
    other["client"] = json!(added);
    other["start_ns"] = json!(30 * SECOND);
    plan["applications"] = json!([application, other]);
    Lab::run_plan(&plan)
}

#[track_caller]
fn assert_second(outcome: &Outcome, round_trips: u64) {
    let end = &outcome.rows("connection_ends")[1];
    assert_eq!(end["state"], "finished", "{end:?}");
    let took = time(end, "established_ns") - time(end, "start_ns");
    let round_trip = 60 * MS;
    assert!(
        (round_trip..round_trips * round_trip + 10 * MS).contains(&took),
        "{took}"
    );
}

#[test]
fn addresses_and_ports_of_a_connection_that_is_over_serve_another() {
    for timestamps in [true, false] {
        // The server's connection is closed.
        let outcome = two_clients(&Value::Null, false, timestamps);
        assert_eq!(outcome.rows("connection_ends")[0]["state"], "finished");
        assert_second(&outcome, 1);
        // It is in TIME-WAIT, and the SYN is newer by its timestamp; without, its number may be older, and a reset ends TIME-WAIT.
        let outcome = two_clients(&Value::Null, true, timestamps);
        assert_eq!(outcome.rows("connection_ends")[0]["state"], "finished");
        assert_second(&outcome, if timestamps { 1 } else { 2 });
    }
}

/// RFC 9293 section 3.5.1, figure 9: the SYN finds a connection in use, the challenge to it a client that knows nothing of it, and its reset
/// ends the connection.
#[test]
fn a_syn_to_a_forgotten_connection_ends_it() {
    let thinks = json!({
        "kind": "request-response", "count": 1, "interval_ns": 50 * MS, "request_bytes": 100, "response_bytes": 100,
        "think_ns": 60 * SECOND,
    });
    let outcome = two_clients(&thinks, false, true);
    assert_second(&outcome, 2);
    assert_eq!(outcome.counter("TcpExtTCPSYNChallenge"), 1);
    assert_eq!(outcome.counter("TcpExtTCPChallengeACK"), 1);
    assert_ne!(outcome.rows("connection_ends")[0]["state"], "finished");
}

/// A client that falls back on bare ACKs tells the server with its next data only. Before, the server asks it for another subflow.
#[test]
fn a_join_of_a_connection_that_fell_back_is_refused() {
    let work = json!({
        "kind": "request-response", "count": 1, "interval_ns": 200 * MS, "request_bytes": 100, "response_bytes": 100,
        "think_ns": 3 * SECOND,
    });
    let lab = Lab {
        work,
        ..Lab::new(1).with(
            0,
            "strip-options",
            json!({"on": "data", "direction": "backward"}),
        )
    };
    let mut plan = lab.plan();
    plan["nodes"][1]["stack"]["path_manager"] = json!({
        "name": "scripted", "parameters": {"steps": ["1 s open 10.1.0.1 10.0.0.1"]},
    });
    let outcome = Lab::run_plan(&plan);
    assert_eq!(outcome.end("transport"), "fallback");
    assert_eq!(
        outcome.refused("client", "MP_JOIN of a connection that fell back"),
        1
    );
    let count = |name| outcome.counter_of("client", name);
    assert_eq!(count("MPTcpExtMPJoinSynRx"), 1);
    assert_eq!(count("MPTcpExtMPJoinRejected"), 1);
    assert_eq!(count("TcpOutRsts"), 1);
}

/// In Linux a join comes to its connection by a listener (`subflow_check_req`), of which a client has none; RFC 8684 section 3.2 and mptcp.org go by
/// the token alone.
#[test]
fn a_join_that_leads_to_a_client() {
    for (profile, taken) in [("linux", 0), ("mptcp.org", 1), ("rfc", 1)] {
        let mut plan = Lab::new(1).plan();
        plan["nodes"][0]["stack"]["profile"] = json!(profile);
        plan["nodes"][1]["stack"]["path_manager"] = json!({
            "name": "scripted", "parameters": {"steps": ["1 ms open 10.1.0.1 10.0.0.1"]},
        });
        let outcome = Lab::run_plan(&plan);
        outcome.assert_whole("mptcp");
        let joins = outcome.counter_of("client", "MPTcpExtMPJoinSynRx");
        assert_eq!(joins, taken, "{profile}");
        let refused = outcome.refused("client", "SYN to where nobody listens");
        assert_eq!(refused, usize::from(taken == 0), "{profile}");
    }
}

/// What a host refuses is counted like what its connections do, though it belongs to none.
#[test]
fn refusals_are_counted() {
    let lab = Lab::new(2).with(1, "strip-options", json!({"on": "syn"}));
    let mut plan = lab.plan();
    plan["nodes"][0]["stack"]["path_manager"] = json!({
        "name": "scripted", "parameters": {"steps": ["10 ms announce 10.0.1.1"]},
    });
    plan["nodes"][1]["stack"]["path_manager"] = json!({
        "name": "scripted", "parameters": {"steps": ["100 ms open 10.1.0.1 10.0.1.1"]},
    });
    let refused = Lab::run_plan(&plan);
    refused.assert_whole("mptcp");
    assert_eq!(refused.refused("client", "SYN to where nobody listens"), 1);
    assert_eq!(refused.counter_of("client", "TcpOutRsts"), 1);
    assert_eq!(BYTES, refused.received());
}

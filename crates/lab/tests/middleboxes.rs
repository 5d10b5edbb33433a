//! Middleboxes on one of two paths, or on the only one (RFC 8684 sections 3.7 and 6).
//!
//! Some connections fall back, some survive without the path, and some never notice.

#[allow(dead_code, reason = "each file of tests uses different parts")]
mod common;

use common::{BYTES, Lab, MS, SECOND};
use polypath_lab::{CaptureMode, Simulation};
use serde_json::json;

#[test]
fn without_middleboxes_both_paths_are_used() {
    let outcome = Lab::new(2).run();
    outcome.assert_whole("mptcp");
    outcome.assert_both_used();
}

#[test]
fn a_nat_translates_and_joins_pass_by_their_token() {
    for keep_ports in [true, false] {
        let outcome = Lab::new(2)
            .with(0, "nat", json!({"keep_ports": keep_ports}))
            .with(1, "nat", json!({"keep_ports": keep_ports}))
            .run();
        outcome.assert_whole("mptcp");
        outcome.assert_both_used();
        for report in &outcome.reports {
            assert!(
                report.tally.changed > 0 && report.tally.dropped == 0,
                "{report:?}"
            );
        }
    }
}

#[test]
fn moved_sequence_numbers_do_not_matter() {
    let lab =
        Lab::new(2)
            .with(0, "rewrite-sequence", json!({}))
            .with(1, "rewrite-sequence", json!({}));
    let outcome = lab.run();
    outcome.assert_whole("mptcp");
    outcome.assert_both_used();
    assert!(outcome.reports[0].tally.changed > 1_000);
}

#[test]
fn options_stripped_from_syns_leave_tcp() {
    let outcome = Lab::new(2)
        .with(0, "strip-options", json!({"on": "syn"}))
        .run();
    outcome.assert_whole("fallback");
    assert_eq!(outcome.shares().len(), 1);
    assert_eq!(outcome.reports[0].tally.changed, 1);
}

/// RFC 8684 section 3.1: after some SYNs with MP_CAPABLE one goes without it. Linux waits a second for each, the others twice as long each time.
#[test]
fn a_path_that_drops_what_has_an_option_leaves_tcp() {
    for (profile, lost, seconds) in [("linux", 3, 3), ("mptcp.org", 4, 15), ("rfc", 4, 15)] {
        let lab = Lab::new(2).with(0, "drop-options", json!({}));
        let outcome = Lab { profile, ..lab }.run();
        outcome.assert_whole("fallback");
        assert_eq!(outcome.shares().len(), 1, "{profile}");
        assert_eq!(outcome.reports[0].tally.dropped, lost, "{profile}");
        assert_eq!(outcome.counter("MPTcpExtMPCapableSYNTXDrop"), 1);
        let established: u64 = outcome.end("established_ns").parse().expect("a time");
        let range = seconds * SECOND..seconds * SECOND + 100 * MS;
        assert!(range.contains(&established), "{profile}: {established}");
    }
}

#[test]
fn a_further_path_that_drops_what_has_an_option_is_never_joined() {
    let outcome = Lab::new(2).with(1, "drop-options", json!({})).run();
    outcome.assert_whole("mptcp");
    assert!(outcome.reports[0].tally.dropped > 0);
    assert_eq!(outcome.counter("MPTcpExtMPCapableSYNTXDrop"), 0);
    assert_eq!(outcome.counter("MPTcpExtMPJoinSynRx"), 0);
}

/// RFC 8684 section 3.2: a join without its option is reset, and the connection stays.
#[test]
fn options_stripped_from_a_join_leave_the_first_path() {
    let outcome = Lab::new(2)
        .with(1, "strip-options", json!({"on": "syn"}))
        .run();
    outcome.assert_whole("mptcp");
    assert_eq!(outcome.shares()[1], 0, "{:?}", outcome.shares());
}

/// RFC 8684 section 3.7: the third ACK shows the server that options do not pass, bare ACKs show it to the client.
#[test]
fn options_stripped_from_data_leave_tcp() {
    for reverse in [false, true] {
        let lab = Lab {
            reverse,
            ..Lab::new(1).with(0, "strip-options", json!({"on": "data"}))
        };
        let outcome = lab.run();
        assert_eq!(outcome.end("transport"), "fallback");
        assert_eq!(outcome.end("state"), "finished");
        assert_eq!(outcome.counter("PayloadMismatch"), 0);
    }
}

#[test]
fn options_stripped_from_a_joined_path_end_it_alone() {
    let outcome = Lab::new(2)
        .with(1, "strip-options", json!({"on": "data"}))
        .run();
    outcome.assert_whole("mptcp");
    assert!(
        outcome.shares()[0] > BYTES * 9 / 10,
        "{:?}",
        outcome.shares()
    );
}

#[test]
fn all_options_stripped_leave_plain_tcp() {
    let outcome = Lab::new(1)
        .with(0, "strip-options", json!({"options": "all"}))
        .run();
    outcome.assert_whole("fallback");
    assert_eq!(outcome.counter("TcpExtTCPSackRecovery"), 0);
}

#[test]
fn split_segments_keep_their_mapping() {
    for copy_options in [true, false] {
        let outcome = Lab::new(2)
            .with(
                0,
                "split",
                json!({"bytes": 600, "copy_options": copy_options}),
            )
            .run();
        outcome.assert_whole("mptcp");
        outcome.assert_both_used();
        assert!(
            outcome.reports[0].tally.made > 1_000,
            "{:?}",
            outcome.reports
        );
    }
}

/// The second segment's mapping is lost, so that its bytes belong nowhere: the subflow ends (RFC 8684 section 3.7).
#[test]
fn coalesced_segments_end_their_subflow() {
    let outcome = Lab::new(2).with(1, "coalesce", json!({})).run();
    outcome.assert_whole("mptcp");
    assert!(outcome.reports[0].tally.absorbed > 0);
    assert!(
        outcome.shares()[0] > BYTES * 9 / 10,
        "{:?}",
        outcome.shares()
    );
    assert!(outcome.counter("MPTcpExtDSSNoMatchTCP") > 0);
}

#[test]
fn coalesced_segments_do_not_matter_to_tcp() {
    let lab = Lab {
        transport: "tcp",
        ..Lab::new(1).with(0, "coalesce", json!({}))
    };
    let outcome = lab.run();
    outcome.assert_whole("tcp");
    let tally = outcome.reports[0].tally;
    assert!(tally.absorbed > 100);
    assert!(
        0 < tally.changed && tally.changed <= tally.sent,
        "{tally:?}"
    );
}

#[test]
fn a_checksum_finds_an_altered_payload_on_one_of_two_paths() {
    let lab = Lab {
        checksum: true,
        ..Lab::new(2).with(1, "alter-payload", json!({}))
    };
    let outcome = lab.run();
    outcome.assert_whole("mptcp");
    assert_eq!(outcome.counter("MPTcpExtDataCsumErr"), 1);
    assert_eq!(outcome.counter("MPTcpExtMPFailRx"), 1);
    assert!(
        outcome.shares()[0] > BYTES * 9 / 10,
        "{:?}",
        outcome.shares()
    );
}

#[test]
fn a_checksum_finds_an_altered_payload_on_the_only_path() {
    let lab = Lab {
        checksum: true,
        ..Lab::new(1).with(0, "alter-payload", json!({}))
    };
    let outcome = lab.run();
    assert_eq!(outcome.received(), BYTES);
    assert_eq!(outcome.end("transport"), "fallback");
    // And its answer.
    assert_eq!(outcome.counter("MPTcpExtMPFailTx"), 2);
}

/// Nothing but the reader can tell.
#[test]
fn without_checksums_an_altered_payload_is_delivered() {
    for transport in ["tcp", "mptcp"] {
        let lab = Lab {
            transport,
            ..Lab::new(1).with(0, "alter-payload", json!({"count": 3}))
        };
        let outcome = lab.run();
        assert_eq!(
            (outcome.received(), outcome.counter("PayloadMismatch")),
            (BYTES, 3)
        );
        assert_eq!(outcome.end("transport"), transport);
    }
}

#[test]
fn a_proxy_on_the_first_path_leaves_tcp() {
    for reverse in [false, true] {
        let outcome = Lab {
            reverse,
            ..Lab::new(2).with(0, "proxy", json!({}))
        }
        .run();
        assert_eq!(
            (&*outcome.end("transport"), &*outcome.end("state")),
            ("fallback", "finished")
        );
        assert_eq!(outcome.counter("PayloadMismatch"), 0);
        let column = if reverse {
            "client_received_bytes"
        } else {
            "server_received_bytes"
        };
        assert_eq!(outcome.end(column), BYTES.to_string());
        assert!(outcome.reports[0].tally.absorbed > 1_000);
    }
}

#[test]
fn a_proxy_on_the_second_path_refuses_the_join() {
    let outcome = Lab::new(2).with(1, "proxy", json!({})).run();
    outcome.assert_whole("mptcp");
    assert_eq!(outcome.shares()[1], 0);
}

/// A flow that is idle for longer than the NAT remembers comes back under another port, which the server does not know.
#[test]
fn a_nat_that_forgets_breaks_an_idle_subflow() {
    let work = json!({"kind": "request-response", "count": 4, "interval_ns": 20 * SECOND, "request_bytes": 100, "response_bytes": 100});
    let lasting = Lab {
        work: work.clone(),
        ..Lab::new(1).with(0, "nat", json!({"timeout_s": 30, "keep_ports": false}))
    };
    assert_eq!(lasting.run().end("state"), "finished");
    let forgetful = Lab {
        work,
        ..Lab::new(1).with(0, "nat", json!({"timeout_s": 10, "keep_ports": false}))
    };
    let outcome = forgetful.run();
    assert_eq!(outcome.end("state"), "reset");
    // RFC 9293 section 3.10.7.1: the first request goes out after 20 s, and the server resets what it knows nothing of.
    let ended: u64 = outcome.end("end_ns").parse().expect("a time");
    assert!(
        (20 * SECOND..20 * SECOND + 200 * MS).contains(&ended),
        "{ended}"
    );
    assert!(outcome.refused("server", "segment of an unknown connection") > 0);
}

/// RFC 8684 section 3.2: whoever knows no connection by the token answers the join with a reset and its reason.
#[test]
fn a_join_of_a_connection_that_is_over_is_refused() {
    // The server thinks for long. Its probes meet a NAT that forgot the subflow, so that it gives the connection up; the client waits.
    let work = json!({
        "kind": "request-response", "count": 1, "interval_ns": 50 * MS, "request_bytes": 100, "response_bytes": 100,
        "think_ns": 40 * SECOND,
    });
    let lab = Lab {
        work,
        ..Lab::new(2).with(0, "nat", json!({"timeout_s": 5, "keep_ports": false}))
    };
    let mut plan = lab.plan();
    plan["nodes"][1]["stack"]["keepalive"] =
        json!({"time_ns": 8 * SECOND, "interval_ns": SECOND, "probes": 2});
    plan["nodes"][0]["stack"]["path_manager"] = json!({
        "name": "scripted", "parameters": {"steps": ["15 s open 10.0.1.1 10.1.0.1"]},
    });
    let outcome = Lab::run_plan(&plan);
    assert_eq!(
        outcome.refused("server", "MP_JOIN of an unknown connection"),
        1
    );
    for (host, name) in [
        ("server", "MPTcpExtMPJoinSynRx"),
        ("server", "MPTcpExtMPJoinNoTokenFound"),
        ("client", "MPTcpExtMPRstRx"),
    ] {
        assert_eq!(outcome.counter_of(host, name), 1, "{name}");
    }
    let join = &outcome.rows("subflow_ends")[1];
    let closed: u64 = join["closed_ns"].parse().expect("a time");
    assert_eq!(join["established_ns"], "");
    assert!(
        (15 * SECOND..15 * SECOND + 300 * MS).contains(&closed),
        "{closed}"
    );
}

/// A join that a middlebox made a SYN of plain TCP reaches a client, which listens nowhere.
#[test]
fn a_syn_to_where_nobody_listens_is_refused() {
    let lab = Lab::new(2).with(1, "strip-options", json!({"on": "syn"}));
    let mut plan = lab.plan();
    plan["nodes"][0]["stack"]["path_manager"] = json!({
        "name": "scripted", "parameters": {"steps": ["10 ms announce 10.0.1.1"]},
    });
    plan["nodes"][1]["stack"]["path_manager"] = json!({
        "name": "scripted", "parameters": {"steps": ["100 ms open 10.1.0.1 10.0.1.1"]},
    });
    let outcome = Lab::run_plan(&plan);
    outcome.assert_whole("mptcp");
    assert_eq!(outcome.refused("client", "SYN to where nobody listens"), 1);
}

#[test]
fn several_middleboxes_stand_in_a_row() {
    let outcome = Lab::new(2)
        .with(0, "nat", json!({}))
        .with(0, "rewrite-sequence", json!({}))
        .with(0, "split", json!({"bytes": 700}))
        .with(1, "nat", json!({"address": "198.51.100.7"}))
        .run();
    outcome.assert_whole("mptcp");
    outcome.assert_both_used();
    assert_eq!(outcome.reports.len(), 4);
}

#[test]
fn datagrams_pass_a_nat_there_and_back() {
    let work = json!({"kind": "ping", "interval_ns": 100 * MS, "payload_bytes": 56, "count": 10});
    let outcome = Lab {
        work,
        transport: "icmp",
        ..Lab::new(1).with(0, "nat", json!({"keep_ports": false}))
    }
    .run();
    let delays = outcome.rows("requests");
    let delays: Vec<u64> = delays
        .iter()
        .filter_map(|row| row["delay_ns"].parse().ok())
        .collect();
    assert_eq!(delays.len(), 10);
    assert!(
        delays.iter().all(|delay| *delay > 6 * 10 * MS),
        "{delays:?}"
    );
}

#[test]
fn bad_parameters_are_refused() {
    for (name, parameters, problem) in [
        ("nta", json!({}), "no middlebox is called \"nta\""),
        (
            "nat",
            json!({"address": "home"}),
            "address must be an IP address",
        ),
        ("nat", json!({"address": "10.1.0.1"}), "10.1.0.1 belongs to"),
        ("split", json!({"bytes": 0}), "'bytes' of split must be"),
    ] {
        let plan = Lab::new(1).with(0, name, parameters).plan().to_string();
        let error = Simulation::new(&plan, CaptureMode::None, None)
            .err()
            .expect("refused")
            .to_string();
        assert!(
            error.contains("link access0") && error.contains(problem),
            "{error}"
        );
    }
}

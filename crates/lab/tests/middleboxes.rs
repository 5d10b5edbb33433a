//! Middleboxes on one of two paths, or on the only one: what falls back, what survives without the path, what never notices
//! (RFC 8684 sections 3.7 and 6).

use std::collections::BTreeMap;

use arrow_cast::display::array_value_to_string;
use polypath_lab::{CaptureMode, MiddleboxReport, Recording, Simulation};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const BYTES: u64 = 5_000_000;

/// A client with an interface for each path, each over a router of its own to a server with one or as many.
struct Lab {
    paths: usize,
    middleboxes: BTreeMap<usize, Value>,
    transport: &'static str,
    checksum: bool,
    profile: &'static str,
    reverse: bool,
    work: Value,
}

impl Lab {
    fn new(paths: usize) -> Self {
        Self {
            paths,
            middleboxes: BTreeMap::new(),
            transport: "mptcp",
            checksum: false,
            profile: "rfc",
            reverse: false,
            work: Value::Null,
        }
    }

    /// Puts a middlebox on the client's link of a path.
    fn with(mut self, path: usize, name: &str, parameters: Value) -> Self {
        let choice = json!({"name": name, "parameters": parameters});
        let list = self.middleboxes.entry(path).or_insert_with(|| json!([]));
        list.as_array_mut().expect("a list").push(choice);
        self
    }

    fn plan(&self) -> Value {
        let choice = |name: &str| json!({"name": name});
        let stack = json!({
            "profile": self.profile, "scheduler": choice("default"), "path_manager": choice("fullmesh"),
            "congestion": choice("reno"), "receive_buffer": [4096, 131_072, 6_291_456],
            "send_buffer": [4096, 16_384, 4_194_304], "autotuning": true, "mtu": 1500, "initial_window": 10,
            "sack": true, "timestamps": true, "window_scaling": true, "ecn": false, "checksum": self.checksum,
            "nagle": true, "rto_min_ns": 200 * MS, "rto_initial_ns": SECOND, "delayed_ack_ns": 40 * MS,
        });
        let interface = |name: String, address: Option<String>| json!({"name": name, "addresses": address.into_iter().collect::<Vec<_>>(), "backup": false});
        let own = |host: usize, count: usize| -> Vec<Value> {
            (0..count)
                .map(|path| interface(format!("eth{path}"), Some(format!("10.{host}.{path}.1"))))
                .collect()
        };
        let mut nodes = vec![
            json!({"name": "client", "kind": "host", "interfaces": own(0, self.paths), "stack": stack}),
            json!({"name": "server", "kind": "host", "interfaces": own(1, 1), "stack": stack}),
        ];
        let core = 2 + self.paths;
        let mut links = Vec::new();
        let channel = json!({"rate_bps": 20_000_000, "delay_ns": 10 * MS, "queue": {"kind": "drop-tail", "packets": 60}});
        let link = |name: String, a: (usize, usize), b: (usize, usize), boxes: Value| {
            json!({
                "name": name, "a": {"node": a.0, "interface": a.1}, "b": {"node": b.0, "interface": b.1},
                "forward": channel, "backward": channel, "middleboxes": boxes,
            })
        };
        for path in 0..self.paths {
            let faces: Vec<_> = (0..2)
                .map(|face| interface(format!("r{face}"), None))
                .collect();
            nodes.push(
                json!({"name": format!("router{path}"), "kind": "router", "interfaces": faces}),
            );
            let boxes = self
                .middleboxes
                .get(&path)
                .cloned()
                .unwrap_or_else(|| json!([]));
            links.push(link(
                format!("access{path}"),
                (0, path),
                (2 + path, 0),
                boxes,
            ));
            links.push(link(
                format!("path{path}"),
                (2 + path, 1),
                (core, path),
                json!([]),
            ));
        }
        let faces: Vec<_> = (0..=self.paths)
            .map(|face| interface(format!("r{face}"), None))
            .collect();
        nodes.push(json!({"name": "core", "kind": "router", "interfaces": faces}));
        links.push(link("last".into(), (core, self.paths), (1, 0), json!([])));
        let work = match &self.work {
            Value::Null => json!({"kind": "bulk", "size_bytes": BYTES, "reverse": self.reverse}),
            work => work.clone(),
        };
        json!({
            "version": 1, "name": "middleboxes", "seed": 1, "duration_ns": 100 * SECOND, "nodes": nodes, "links": links,
            "applications": [{
                "name": "bulk", "client": 0, "server": 1, "transport": self.transport, "port": 80, "start_ns": 0, "work": work,
            }],
        })
    }

    fn run(&self) -> Outcome {
        Self::run_plan(&self.plan())
    }

    fn run_plan(plan: &Value) -> Outcome {
        let mut simulation = Simulation::new(&plan.to_string(), CaptureMode::None, None)
            .unwrap_or_else(|error| panic!("{error}"));
        simulation.step_until(u64::MAX);
        let reports = simulation.middleboxes();
        for report in &reports {
            let tally = report.tally;
            assert_eq!(
                tally.received + tally.made,
                tally.sent + tally.dropped + tally.absorbed + report.held,
                "{report:?}"
            );
        }
        Outcome {
            reports,
            recording: simulation.finish().expect("nothing is written"),
        }
    }
}

struct Outcome {
    reports: Vec<MiddleboxReport>,
    recording: Recording,
}

impl Outcome {
    fn rows(&self, table: &str) -> Vec<BTreeMap<String, String>> {
        let tables = self.recording.tables();
        let (_, batch) = tables
            .iter()
            .find(|(name, _)| *name == table)
            .expect("a table");
        let schema = batch.schema();
        let row = |row: usize| {
            let columns = schema.fields().iter().enumerate();
            columns
                .map(|(column, field)| {
                    let cell = array_value_to_string(batch.column(column), row);
                    (field.name().clone(), cell.expect("plain columns"))
                })
                .collect()
        };
        (0..batch.num_rows()).map(row).collect()
    }

    fn end(&self, column: &str) -> String {
        self.rows("connection_ends")[0][column].clone()
    }

    /// How many segments a host refused for this reason.
    fn refused(&self, host: &str, why: &str) -> usize {
        let rows = self.rows("events");
        let refused = rows.iter().filter(|row| {
            row["kind"] == "refused" && row["host"] == host && row["detail"].starts_with(why)
        });
        refused.count()
    }

    fn received(&self) -> u64 {
        self.end("server_received_bytes").parse().expect("a count")
    }

    /// The sum of a counter over both hosts.
    fn counter(&self, name: &str) -> u64 {
        let rows = self.rows("counters");
        let own = rows.iter().filter(|row| row["name"] == name);
        own.map(|row| row["value"].parse::<u64>().expect("a count"))
            .sum()
    }

    /// Bytes that the client sent on each subflow.
    fn shares(&self) -> Vec<u64> {
        let rows = self.rows("subflow_ends");
        rows.iter()
            .map(|row| row["client_sent_bytes"].parse().expect("a count"))
            .collect()
    }

    #[track_caller]
    fn assert_whole(&self, transport: &str) {
        assert_eq!(self.received(), BYTES);
        assert_eq!(
            (&*self.end("transport"), &*self.end("state")),
            (transport, "finished")
        );
        assert_eq!(self.counter("PayloadMismatch"), 0);
    }

    /// Both paths carried data all along.
    #[track_caller]
    fn assert_both_used(&self) {
        let shares = self.shares();
        assert!(
            shares.len() == 2 && shares.iter().all(|bytes| *bytes > BYTES / 20),
            "{shares:?}"
        );
    }
}

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
    assert!(outcome.reports[0].tally.absorbed > 100);
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
    assert_eq!(outcome.counter("MPTcpExtMPFailTx"), 1);
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
    let answered = outcome
        .rows("requests")
        .iter()
        .filter(|row| !row["delay_ns"].is_empty())
        .count();
    assert_eq!(answered, 10);
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
        ("split", json!({"bytes": 0}), "bytes must be"),
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

//! A client with an interface for each path to a server, and the outcome of a run.

use std::collections::BTreeMap;

use arrow_cast::display::array_value_to_string;
use polypath_lab::{CaptureMode, MiddleboxReport, Recording, Simulation};
use serde_json::{Value, json};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
pub const BYTES: u64 = 5_000_000;

/// A client with an interface for each path, each over a router of its own to a server with one or as many.
pub struct Lab {
    pub paths: usize,
    pub middleboxes: BTreeMap<usize, Value>,
    pub transport: &'static str,
    pub checksum: bool,
    pub profile: &'static str,
    pub reverse: bool,
    pub work: Value,
}

impl Lab {
    pub fn new(paths: usize) -> Self {
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
    pub fn with(mut self, path: usize, name: &str, parameters: Value) -> Self {
        let choice = json!({"name": name, "parameters": parameters});
        let list = self.middleboxes.entry(path).or_insert_with(|| json!([]));
        list.as_array_mut().expect("a list").push(choice);
        self
    }

    pub fn plan(&self) -> Value {
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

    pub fn run(&self) -> Outcome {
        Self::run_plan(&self.plan())
    }

    pub fn run_plan(plan: &Value) -> Outcome {
        let mut simulation = Simulation::new(&plan.to_string(), CaptureMode::None, None)
            .unwrap_or_else(|error| panic!("{error}"));
        if let Err(error) = simulation.step_until(u64::MAX) {
            panic!("{error}");
        }
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

pub struct Outcome {
    pub reports: Vec<MiddleboxReport>,
    pub recording: Recording,
}

impl Outcome {
    pub fn rows(&self, table: &str) -> Vec<BTreeMap<String, String>> {
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

    pub fn end(&self, column: &str) -> String {
        self.rows("connection_ends")[0][column].clone()
    }

    /// How many segments a host refused for this reason.
    pub fn refused(&self, host: &str, why: &str) -> usize {
        let rows = self.rows("events");
        let refused = rows.iter().filter(|row| {
            row["kind"] == "refused" && row["host"] == host && row["detail"].starts_with(why)
        });
        refused.count()
    }

    pub fn received(&self) -> u64 {
        self.end("server_received_bytes").parse().expect("a count")
    }

    /// The sum of a counter over both hosts.
    pub fn counter(&self, name: &str) -> u64 {
        let rows = self.rows("counters");
        let own = rows.iter().filter(|row| row["name"] == name);
        own.map(|row| row["value"].parse::<u64>().expect("a count"))
            .sum()
    }

    /// A counter of a host.
    pub fn counter_of(&self, host: &str, name: &str) -> u64 {
        let rows = self.rows("counters");
        let mut own = (rows.iter()).filter(|row| row["host"] == host && row["name"] == name);
        let row = own.next().expect("a counter");
        row["value"].parse().expect("a count")
    }

    /// Bytes that the client sent on each subflow.
    pub fn shares(&self) -> Vec<u64> {
        let rows = self.rows("subflow_ends");
        rows.iter()
            .map(|row| row["client_sent_bytes"].parse().expect("a count"))
            .collect()
    }

    #[track_caller]
    pub fn assert_whole(&self, transport: &str) {
        assert_eq!(self.received(), BYTES);
        assert_eq!(
            (&*self.end("transport"), &*self.end("state")),
            (transport, "finished")
        );
        assert_eq!(self.counter("PayloadMismatch"), 0);
    }

    /// Both paths carried data all along.
    #[track_caller]
    pub fn assert_both_used(&self) {
        let shares = self.shares();
        assert!(
            shares.len() == 2 && shares.iter().all(|bytes| *bytes > BYTES / 20),
            "{shares:?}"
        );
    }
}

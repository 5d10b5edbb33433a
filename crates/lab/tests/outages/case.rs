//! A transfer over two paths that go dark and come back. A number determines the case, and the time by which it must be
//! over.

use polypath_lab::Simulation;
use serde_json::{Value, json};

use crate::draw::{Draw, MS, SECOND, entries};

/// Probe timeouts that a run may take beyond what its working path explains: a path is given up after three (one, and twice as long again),
/// the other side may have to find out by itself, a second path may fail in the same way, and the window grows again.
const TIMEOUTS: u64 = 16;
/// Headers and what is sent twice, in hundredths of the data.
const OVERHEAD: u64 = 15;
/// Nothing goes dark before the paths are open.
const OPEN: u64 = 600 * MS;

/// Schedulers that Multipath QUIC has not, and those that keep to shares.
const QUEUEING: &[&str] = &["linux", "otias", "daps"];
const SHARING: &[&str] = &["balanced", "equal", "weighted-roundrobin"];

/// When one path is dark, and in which direction.
#[derive(Clone, Debug)]
pub struct Outage {
    pub direction: &'static str,
    pub from: u64,
    /// Absent: for good.
    pub to: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub scheduler: String,
    pub congestion: String,
    pub ack_paths: [&'static str; 2],
    pub control_path: &'static str,
    pub work: Value,
    pub bytes: u64,
    pub rates: [u64; 2],
    pub delays: [u64; 2],
    pub queue: u64,
    pub outages: [Vec<Outage>; 2],
}

fn name(draw: &mut Draw, kind: &str, barred: &[&str]) -> String {
    let names = entries(kind);
    let names = names.iter().filter_map(|entry| entry["name"].as_str());
    let names: Vec<&str> = names.filter(|name| !barred.contains(name)).collect();
    draw.pick(&names).to_owned()
}

/// Those of a path, one after the other; `dies`: the last one is for good.
fn outages(draw: &mut Draw, dies: bool) -> Vec<Outage> {
    let mut at = OPEN;
    let count = draw.integer(u64::from(dies), 2);
    let mut outages = Vec::new();
    for index in 0..count {
        let from = at + draw.integer(0, 1_500 * MS);
        let to = from + draw.magnitude(50 * MS, 5 * SECOND);
        let last = index + 1 == count;
        outages.push(Outage {
            direction: draw.pick(&["both", "forward", "backward"]),
            from,
            to: (!(dies && last)).then_some(to),
        });
        at = to + 10 * MS;
    }
    outages
}

impl Case {
    pub fn new(seed: u64) -> Self {
        let draw = &mut Draw::of(seed, "outages");
        let ack_paths = ["same", "fastest", "scheduler"];
        let size = draw.integer(200_000, 1_000_000);
        let (work, bytes) = match draw.integer(0, 2) {
            0 => (
                json!({"kind": "fetch", "size_bytes": size, "count": 2, "parallel": 1}),
                2 * size,
            ),
            1 => (
                json!({"kind": "bulk", "size_bytes": 2 * size, "reverse": true}),
                2 * size,
            ),
            _ => (
                json!({"kind": "bulk", "size_bytes": 2 * size, "reverse": false}),
                2 * size,
            ),
        };
        let scheduler = name(draw, "scheduler", QUEUEING);
        // A window of two packets, at which `coupled` keeps one path, holds back the others where all are to carry as much.
        let tied: &[&str] = match SHARING.contains(&&*scheduler) {
            true => &["coupled"],
            false => &[],
        };
        let alike = draw.chance(0.5);
        let rates = [0; 2].map(|_| draw.integer(4_000_000, 12_000_000));
        let delays = [0; 2].map(|_| draw.integer(5, 40) * MS);
        let dead = draw.pick(&[None, Some(0), Some(1)]);
        Self {
            seed,
            congestion: name(draw, "congestion", tied),
            scheduler,
            ack_paths: [draw.pick(&ack_paths), draw.pick(&ack_paths)],
            control_path: draw.pick(&["fastest", "scheduler"]),
            work,
            bytes,
            rates: if alike { [rates[0]; 2] } else { rates },
            delays: if alike { [delays[0]; 2] } else { delays },
            queue: draw.integer(20_000, 60_000),
            outages: [0, 1].map(|path| outages(draw, dead == Some(path))),
        }
    }

    /// The longest probe timeout that either path may have (RFC 9002 section 6.2.1): the round trip behind a full queue, four times its variation,
    /// which is half of it at first, and the delay of acknowledgements.
    fn timeout(&self) -> u64 {
        let round_trip = 2 * self.delays[0].max(self.delays[1]) + self.drain();
        3 * round_trip + 25 * MS
    }

    fn rate(&self) -> u64 {
        self.rates[0].min(self.rates[1])
    }

    fn drain(&self) -> u64 {
        self.queue * 8 * SECOND / self.rate()
    }

    /// By when a path that works from some time on has carried everything, at the rate of the slower one and without a timeout. It is found to
    /// work within as long again as it did not, since probe timeouts double.
    fn explained(&self, path: usize) -> Option<u64> {
        let (mut dark, mut works) = (0, 0);
        for outage in &self.outages[path] {
            works = outage.to?;
            dark = if dark == 0 { outage.from } else { dark };
        }
        let found = works + (works - dark);
        let carried = self.bytes * (100 + OVERHEAD) / 100 * 8 * SECOND / self.rate();
        Some(found.max(OPEN) + carried)
    }

    fn carried(&self) -> u64 {
        let explained = [0, 1].into_iter().filter_map(|path| self.explained(path));
        explained.min().expect("one path works in the end")
    }

    /// By when the run must be over.
    pub fn bound(&self) -> u64 {
        self.carried() + TIMEOUTS * self.timeout()
    }

    pub fn plan(&self) -> Value {
        let choice = |name: &str| json!({"name": name});
        let stack = |ack_path: &str| {
            json!({
                "profile": "rfc", "scheduler": choice(&self.scheduler), "path_manager": choice("fullmesh"),
                "congestion": choice(&self.congestion), "receive_buffer": [4096, 131_072, 6_291_456],
                "send_buffer": [4096, 16_384, 4_194_304], "autotuning": true, "mtu": 1500, "initial_window": 10,
                "sack": true, "timestamps": true, "window_scaling": true, "ecn": false, "checksum": false,
                "nagle": true, "rto_min_ns": 200 * MS, "rto_initial_ns": SECOND, "delayed_ack_ns": 40 * MS,
                "ack_path": ack_path, "control_path": self.control_path,
            })
        };
        let interface = |name: String, addresses: &[&str]| json!({"name": name, "addresses": addresses, "backup": false});
        let router: Vec<Value> = (0..3)
            .map(|face| interface(format!("r{face}"), &[]))
            .collect();
        let nodes = json!([
            {"name": "client", "kind": "host", "stack": stack(self.ack_paths[0]),
             "interfaces": [interface("eth0".into(), &["10.0.0.1"]), interface("eth1".into(), &["10.0.1.1"])]},
            {"name": "server", "kind": "host", "stack": stack(self.ack_paths[1]),
             "interfaces": [interface("eth0".into(), &["10.1.0.1"])]},
            {"name": "router", "kind": "router", "interfaces": router},
        ]);
        let link = |name: &str,
                    a: (usize, usize),
                    b: (usize, usize),
                    rate: Option<u64>,
                    delay: u64| {
            let queue = match rate {
                Some(_) => json!({"kind": "drop-tail", "packets": null, "bytes": self.queue}),
                None => json!({"kind": "drop-tail", "packets": null, "bytes": null}),
            };
            let channel = json!({"rate_bps": rate, "delay_ns": delay, "queue": queue});
            json!({
                "name": name, "a": {"node": a.0, "interface": a.1}, "b": {"node": b.0, "interface": b.1},
                "forward": channel, "backward": channel,
            })
        };
        let links = json!([
            link("p0", (0, 0), (2, 0), Some(self.rates[0]), self.delays[0]),
            link("p1", (0, 1), (2, 1), Some(self.rates[1]), self.delays[1]),
            link("server", (2, 2), (1, 0), None, 0),
        ]);
        let mut events = Vec::new();
        for (path, outages) in self.outages.iter().enumerate() {
            for outage in outages {
                let mut event = |at: u64, up: bool| {
                    let action = json!({"kind": "link", "link": path, "direction": outage.direction, "up": up});
                    events.push(json!({"at_ns": at, "action": action}));
                };
                event(outage.from, false);
                if let Some(to) = outage.to {
                    event(to, true);
                }
            }
        }
        events.sort_by_key(|event| event["at_ns"].as_u64());
        json!({
            "version": 1, "name": "outages", "seed": self.seed, "duration_ns": self.bound() + 60 * SECOND,
            "nodes": nodes, "links": links, "events": events,
            "applications": [{
                "name": "transfer", "client": 0, "server": 1, "transport": "mpquic", "port": 443, "start_ns": 0, "work": self.work,
            }],
        })
    }

    /// Probe timeouts that the run took beyond what its working path explains, or what is wrong with it.
    pub fn judge(&self) -> Result<u64, String> {
        let plan = self.plan().to_string();
        let mut simulation = Simulation::new(&plan, polypath_lab::CaptureMode::None, None)
            .map_err(|error| error.to_string())?;
        simulation
            .step_until(u64::MAX)
            .map_err(|error| error.to_string())?;
        let recording = simulation.finish().map_err(|error| error.to_string())?;
        let ends = End::of(&recording);
        let whole = ends.received >= self.bytes;
        let seconds = |time: u64| time as f64 / SECOND as f64;
        if ends.state != "finished" || !whole {
            return Err(format!(
                "{} after {} of {} bytes",
                ends.state, ends.received, self.bytes
            ));
        }
        let (over, bound) = (ends.last_byte, self.bound());
        if over > bound {
            let (over, bound) = (seconds(over), seconds(bound));
            return Err(format!("over at {over:.3} s, bound {bound:.3} s"));
        }
        Ok(over.saturating_sub(self.carried()).div_ceil(self.timeout()))
    }
}

struct End {
    state: String,
    received: u64,
    last_byte: u64,
}

impl End {
    fn of(recording: &polypath_lab::Recording) -> Self {
        let tables = recording.tables();
        let (_, batch) = (tables.iter())
            .find(|(name, _)| *name == "connection_ends")
            .expect("a table");
        let cell = |column: &str| {
            let column = batch.column_by_name(column).expect("a column");
            arrow_cast::display::array_value_to_string(column, 0).expect("a plain column")
        };
        let number = |column: &str| cell(column).parse().unwrap_or(0);
        Self {
            state: cell("state"),
            received: number("client_received_bytes").max(number("server_received_bytes")),
            last_byte: number("last_byte_ns"),
        }
    }
}

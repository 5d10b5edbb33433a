//! The parts of a scenario, drawn from one seeded stream.

use serde_json::Map;
use std::net::Ipv4Addr;

use polypath_lab::plan::Choice;
use polypath_net::random;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore;
use serde_json::{Value, json};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

/// The router between the paths and the server.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 200, 0, 1);

/// The parameter of schedulers that says whether data waits for pacers.
pub const PACER: &str = "waits_for_pacer";

/// The parameter of path manager `endpoints` that names addresses.
pub const ENDPOINTS: &str = "endpoints";

pub struct Draw(Pcg64Mcg);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self::of(seed, "scenario")
    }

    /// For what came later, so that it does not shift what was drawn before.
    pub fn of(seed: u64, purpose: &str) -> Self {
        Self(random::stream(seed, "integrity", 0, purpose))
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        random::chance(&mut self.0, probability)
    }

    /// From `low` to `high`, both included.
    pub fn integer(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    /// From `low` to `high` such that each order of magnitude is as likely as the others.
    pub fn magnitude(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low as f64, high as f64);
        (low * (high / low).powf(random::uniform(&mut self.0))) as u64
    }

    pub fn number(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * random::uniform(&mut self.0)
    }

    pub fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.integer(0, among.len() as u64 - 1) as usize].clone()
    }

    /// Something, with the given probability.
    pub fn maybe<T>(&mut self, probability: f64, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(probability).then(|| draw(self))
    }

    /// One of a registry's entries with any of its parameters.
    pub fn choice(&mut self, kind: &str) -> Choice {
        let entry = self.pick(&entries(kind));
        let declared = entry["parameters"].as_array().cloned().unwrap_or_default();
        let mut parameters = Map::new();
        // What came later is drawn apart, so that it does not shift the rest.
        let later = [PACER, ENDPOINTS];
        let earlier = declared.iter();
        let earlier = earlier.filter(|each| !later.iter().any(|name| each["name"] == **name));
        for parameter in earlier {
            if let Some(value) = self.maybe(0.5, |draw| draw.parameter(parameter)) {
                parameters.insert(text(&parameter["name"]), value);
            }
        }
        Choice {
            name: text(&entry["name"]),
            parameters,
        }
    }

    /// A line of a parameter that has a grammar of its own, with addresses as the drawn hosts and routers have them.
    fn line(&mut self, parameter: &str) -> String {
        match parameter {
            "gateways" => GATEWAY.to_string(),
            "steps" => self.step(),
            other => panic!("lines of {other} are not drawn yet"),
        }
    }

    fn step(&mut self) -> String {
        let mut address = |number: u64| format!("10.{}.{number}.1", self.integer(0, 2));
        let (client, server) = (address(1), address(2));
        let (own, other) = if self.chance(0.7) {
            (client, server)
        } else {
            (server, client)
        };
        let both = format!("{own} {other}");
        let (verb, addresses) = self.pick(&[
            ("open", &both),
            ("close", &both),
            ("backup", &both),
            ("normal", &both),
            ("announce", &own),
            ("withdraw", &own),
        ]);
        format!("{} ms {verb} {addresses}", self.integer(0, 5_000))
    }

    /// A value that the declaration allows; integers from the low end, where they still differ in effect.
    fn parameter(&mut self, declared: &Value) -> Value {
        let bound = |name: &str| declared[name].as_f64();
        match declared["kind"].as_str() {
            Some("boolean") => self.chance(0.5).into(),
            Some("text") => match declared["choices"].as_array() {
                Some(choices) => self.pick(choices),
                None => declared["default"].clone(),
            },
            Some("integer") => {
                let low = bound("minimum").unwrap_or(0.0) as u64;
                let high = bound("maximum").map_or(u64::MAX, |high| high as u64);
                self.integer(low, high.min(low + 3)).into()
            }
            Some("integers") => {
                let single = json!({"kind": "integer", "minimum": declared["minimum"], "maximum": declared["maximum"]});
                let count = self.integer(1, 3);
                (0..count).map(|_| self.parameter(&single)).collect()
            }
            Some("texts") => {
                let count = self.integer(0, 4);
                (0..count)
                    .map(|_| Value::from(self.line(&text(&declared["name"]))))
                    .collect()
            }
            Some("number") => match (bound("minimum"), bound("maximum")) {
                (Some(low), Some(high)) => self.number(low, high).into(),
                _ => declared["default"].clone(),
            },
            kind => panic!("parameters of kind {kind:?} are not drawn yet"),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The registry's entries of a kind, so that new ones take part by themselves.
pub fn entries(kind: &str) -> Vec<Value> {
    let json = polypath_lab::registry(kind).expect("a kind of the registry");
    serde_json::from_str(&json).expect("a JSON list")
}

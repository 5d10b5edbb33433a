//! The registries of all crates together, as JSON for front ends.

use polypath_net::{
    LossConfig, Phy, QueueConfig, Standard, WIFI_STANDARDS, loss_models, queue_models,
};
use polypath_transport::{Profile, congestion, path_manager, scheduler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::application::{self, Work};
#[cfg(feature = "noq")]
use crate::noq;
use crate::{bridging, control, middlebox};

/// The entries of a kind (`scheduler`, `congestion`, `path-manager`, `queue`, `loss`, `wifi`, `middlebox`, `controller`,
/// `spanning-tree`, `application`, `profile`) as a JSON list of
/// `{name, description, source, parameters}`; nothing for another kind.
pub fn registry(kind: &str) -> Option<String> {
    let entries = match kind {
        "scheduler" => schedulers()?,
        "congestion" => serde_json::to_value(congestion::REGISTRY.describe()).ok()?,
        "path-manager" => serde_json::to_value(path_manager::REGISTRY.describe()).ok()?,
        "queue" => serde_json::to_value(queue_models()).ok()?,
        "loss" => serde_json::to_value(loss_models()).ok()?,
        "wifi" => standards(),
        "middlebox" => serde_json::to_value(middlebox::REGISTRY.describe()).ok()?,
        "controller" => serde_json::to_value(control::REGISTRY.describe()).ok()?,
        "spanning-tree" => serde_json::to_value(bridging::protocol::REGISTRY.describe()).ok()?,
        "profile" => serde_json::to_value(Profile::ALL.map(Profile::describe)).ok()?,
        "application" => serde_json::to_value(application::ENTRIES).ok()?,
        _ => return None,
    };
    #[cfg(feature = "noq")]
    let entries = marked(kind, entries);
    Some(entries.to_string())
}

/// The entries, each with the reason why noq cannot have it, if there is one.
#[cfg(feature = "noq")]
fn marked(kind: &str, mut entries: Value) -> Value {
    for entry in entries.as_array_mut().into_iter().flatten() {
        let reason = entry["name"]
            .as_str()
            .and_then(|name| noq::lacks(kind, name));
        if let Some(reason) = reason {
            entry["not_on_noq"] = json!(reason);
        }
    }
    entries
}

/// The schedulers, each with the reason why a connection of QUIC cannot have it, if there is one.
fn schedulers() -> Option<Value> {
    let mut entries = serde_json::to_value(scheduler::REGISTRY.describe()).ok()?;
    for entry in entries.as_array_mut()? {
        let name = entry["name"].as_str()?;
        let made = scheduler::REGISTRY.make(name, &Map::new()).ok()?;
        if made.fills_queues() {
            entry["not_over_quic"] = json!(NO_QUEUES);
        }
    }
    Some(entries)
}

const NO_QUEUES: &str = "it hands data to the queues of subflows, and a path of QUIC has none";

/// What is wrong with the parameters (a JSON object) of an algorithm that the transport has, of a spanning tree protocol, or of a model of the network or an
/// application, whose fields these are; nothing where they fit, or for other kinds.
pub fn fault(kind: &str, name: &str, parameters: &str) -> Option<String> {
    let given: Map<String, Value> = serde_json::from_str(parameters).ok()?;
    let error = match kind {
        "scheduler" => scheduler::REGISTRY.make(name, &given).err(),
        "congestion" => congestion::REGISTRY.make(name, &given).err(),
        "path-manager" => path_manager::REGISTRY.make(name, &given).err(),
        "spanning-tree" => match bridging::protocol::REGISTRY.make(name, &given) {
            Ok(made) => return made.0.as_ref().and_then(bridging::protocol::fault),
            Err(error) => Some(error),
        },
        "queue" => return misfit(name, given, QueueConfig::check),
        "loss" => return misfit(name, given, LossConfig::check),
        "application" => return misfit(name, given, Work::check),
        _ => None,
    };
    error.map(|error| error.to_string())
}

/// What is wrong with the settings of a model of the network or of an application.
fn misfit<M: DeserializeOwned, E: ToString>(
    name: &str,
    mut given: Map<String, Value>,
    check: impl Fn(&M) -> Result<(), E>,
) -> Option<String> {
    given.insert("kind".to_owned(), name.into());
    match serde_json::from_value(given.into()) {
        Ok(model) => check(&model).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

fn standards() -> Value {
    let described = |standard: &Standard| {
        let (name, summary, source) = (standard.name, standard.summary, standard.source);
        json!({ "name": name, "description": summary, "source": source, "parameters": [] })
    };
    WIFI_STANDARDS.iter().map(described).collect()
}

/// The rate in bit/s of each MCS of a Wi-Fi standard, where there is one; nothing for another standard.
pub fn wifi_rates(
    standard: &str,
    width_mhz: u32,
    streams: u32,
    short_guard: bool,
) -> Option<Vec<Option<u64>>> {
    let standard = Standard::by_name(standard)?;
    let phy = Phy {
        width: width_mhz,
        streams,
        short_guard,
    };
    let rate = |index| standard.rate(phy, index).map(|rate| rate.bps());
    Some((0..standard.indices()).map(rate).collect())
}

//! Why a plan cannot run.

use std::path::{Path, PathBuf};

use polypath_net::{ChangeError, ConfigError, NodeId, PrefixError, RouteError, TopologyError};
use polypath_settings::RegistryError;

use crate::plan::Plan;

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("not a plan: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the plan has version {found}, but this engine runs version {expected}")]
    Version { found: u32, expected: u32 },
    #[error("{place}: there is no {kind} {index}")]
    Index {
        place: String,
        kind: &'static str,
        index: usize,
    },
    #[error("{place}: {problem}")]
    Invalid { place: String, problem: String },
    #[error("{place}: {error}")]
    Registry { place: String, error: RegistryError },
    #[error("{place}: {error}")]
    Stack {
        place: String,
        error: polypath_transport::ConfigError,
    },
    #[error("{place}: {error}")]
    Channel { place: String, error: ConfigError },
    #[error("{place}: {error}")]
    Topology { place: String, error: TopologyError },
    #[error("{place}: {error}")]
    Change { place: String, error: ChangeError },
    #[error("{place}: {problem}")]
    Route { place: String, problem: String },
    #[error("{place}: {error}")]
    Prefix { place: String, error: PrefixError },
    #[error(
        "time stands still at {seconds} s: {handled} packets and timers were handled at that instant; give {links} a rate or a delay"
    )]
    StandsStill {
        seconds: f64,
        handled: u64,
        links: String,
    },
    #[error(
        "the run takes more than {} MB of memory at {seconds} s, most of it for {largest}; {remedy}, or allow more with [record] memory",
        limit / 1_000_000
    )]
    Memory {
        seconds: f64,
        limit: u64,
        largest: &'static str,
        remedy: &'static str,
    },
    #[error("{} holds files; name a new or empty folder for qlogs", .0.display())]
    Occupied(PathBuf),
    #[error(transparent)]
    File(#[from] Unwritten),
}

/// A file of a run that cannot be written, and what the system says of it.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {file}: {reason}")]
pub struct Unwritten {
    file: String,
    reason: String,
}

impl Unwritten {
    pub(crate) fn new(path: &Path, error: &std::io::Error) -> Self {
        let text = error.to_string();
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self {
            file: name.to_string_lossy().into_owned(),
            reason: text
                .split(" (os error")
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

/// A route error with the plan's names for nodes and interfaces.
pub(crate) fn route_problem(error: &RouteError, plan: &Plan) -> String {
    let node = |id: &NodeId| {
        let found = plan.nodes.get(id.0 as usize);
        found.map_or_else(|| id.to_string(), |node| format!("'{}'", node.name))
    };
    match error {
        RouteError::UnknownNode(id) => format!("there is no {id}"),
        RouteError::UnknownDestination(_) => error.to_string(),
        RouteError::Local {
            node: at,
            destination,
        } => format!("{destination} is an address of {} itself", node(at)),
        RouteError::ForeignSource {
            node: at,
            source_address,
        } => format!(
            "{} has neither the address {source_address} nor a static route for it",
            node(at)
        ),
        RouteError::NoLink {
            interface,
            node: at,
            from,
            destination,
        } => {
            // Interfaces are numbered node by node.
            let mut names = plan.nodes.iter().flat_map(|node| &node.interfaces);
            let name = names.nth(interface.0 as usize).map_or("", |own| &own.name);
            let (at, from) = (node(at), node(from));
            format!(
                "interface '{name}' of {at} has no link, on the path from {from} to {destination}"
            )
        }
        RouteError::Unreachable {
            at,
            from,
            to,
            destination,
        } => format!(
            "{} has no route to {destination}, on the path from {} to {}; add one",
            node(at),
            node(from),
            node(to)
        ),
        RouteError::EndsAtHost {
            host,
            from,
            destination,
        } => format!(
            "the path from {} to {destination} ends at {}, a host that does not forward",
            node(from),
            node(host)
        ),
        RouteError::Loop {
            from,
            destination,
            nodes,
        } => {
            let through: Vec<_> = nodes.iter().map(node).collect();
            format!(
                "static routes from {} to {destination} form a loop through {}",
                node(from),
                through.join(", ")
            )
        }
    }
}

impl PlanError {
    /// What a plan refers to by its index, and does not have.
    pub(crate) fn missing(place: impl Into<String>, kind: &'static str, index: usize) -> Self {
        Self::Index {
            place: place.into(),
            kind,
            index,
        }
    }

    pub fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            place: place.into(),
            problem: problem.into(),
        }
    }
}

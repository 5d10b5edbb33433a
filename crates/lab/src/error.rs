//! Why a plan cannot run.

use polypath_net::{ChangeError, ConfigError, PrefixError, RouteError, TopologyError};
use polypath_transport::registry::RegistryError;

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("not a plan: {0}")]
    Json(#[from] serde_json::Error),
    #[error("plan version {found}, this engine runs version {expected}")]
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
    Channel { place: String, error: ConfigError },
    #[error("{place}: {error}")]
    Topology { place: String, error: TopologyError },
    #[error("{place}: {error}")]
    Change { place: String, error: ChangeError },
    #[error("{place}: {error}")]
    Route { place: String, error: RouteError },
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
        "the run takes more than {} MB of memory at {seconds} s, most of it for {largest}; {remedy}, or allow more by [record] memory",
        limit / 1_000_000
    )]
    Memory {
        seconds: f64,
        limit: u64,
        largest: &'static str,
        remedy: &'static str,
    },
    #[error("captures cannot be written: {0}")]
    Capture(#[from] std::io::Error),
}

impl PlanError {
    pub fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            place: place.into(),
            problem: problem.into(),
        }
    }
}

//! From a [`plan::Plan`] to a [`Recording`]: endpoints, applications and probes on the network.

mod account;
mod alarm;
mod application;
mod aside;
pub mod bench;
mod bridging;
mod build;
mod capture;
mod carrier;
mod control;
mod endpoint;
mod error;
mod flow;
mod lane;
mod middlebox;
mod names;
#[cfg(feature = "noq")]
mod noq;
mod other_stack;
pub mod plan;
mod plan_schema;
mod planned_routes;
mod qlog;
mod quic;
mod record;
mod registry;
mod simulation;
mod spreading;
mod stream_offsets;
mod tunnel;
pub mod written;

pub use aside::Aside;
pub use build::{Built, build};
pub use capture::CaptureMode;
pub use control::{Chooser, Choosers, NewFlow};
pub use error::PlanError;
pub use flow::label;
pub use middlebox::{MiddleboxReport, Tally};
pub use plan_schema::plan_schema;
pub use planned_routes::{Undetermined, Way, Ways};
pub use polypath_trace::Recording;
pub use polypath_transport as transport;
pub use registry::{fault, registry, wifi_rates};
pub use simulation::{Simulation, Step, SwitchTotals, Totals, check};

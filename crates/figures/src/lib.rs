//! The figures of a run, computed from the tables of a recording of any engine. Python and the page in a browser both
//! use this crate.

mod account;
mod asked;
mod chart;
mod charts;
mod connection;
mod delays;
mod figures;
mod links;
mod plan;
mod rates;
mod reasons;
mod samples;
mod subflow;
mod summary;
mod table;
mod uplinks;

pub use account::{Account, Charge};
pub use asked::Asked;
pub use chart::{Chart, MOST_VALUES, Packed};
pub use charts::{Charts, QueueOf, Queues};
pub use connection::{Connection, Side};
pub use delays::Delays;
pub use figures::Figures;
pub use links::LinkCourses;
pub use plan::Plan;
pub use rates::Course;
pub use reasons::{causes, title};
pub use samples::Sampled;
pub use subflow::{Subflow, lasts_until_ns};
pub use summary::{ConnectionSummary, LinkSummary, RequestSummary, Spread, SubflowSummary};
pub use table::{NAMES, Table, TableError};
pub use uplinks::uplink;

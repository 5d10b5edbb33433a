//! Sinks of a run: typed columns, packet captures, time-sequence plots. Knows no simulator.

mod columns;
mod recording;
mod table;

pub use recording::*;
pub use table::Text;

//! Sinks of a run: typed columns, packet captures, time-sequence plots. Knows no simulator.

mod columns;
pub mod frame;
pub mod pcapng;
mod recording;
mod table;
pub mod xplot;

pub use frame::{Envelope, FrameBuilder, Mac};
pub use recording::*;
pub use table::Text;

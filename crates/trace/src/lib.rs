//! Sinks of a run: typed columns, packet captures, qlogs. This crate does not depend on any simulator.

mod columns;
pub mod frame;
mod header;
pub mod pcapng;
pub mod qlog;
mod recording;
mod table;

pub use frame::{Envelope, FrameBuilder, Mac};
pub use recording::*;
pub use table::{Column, Described, Text};

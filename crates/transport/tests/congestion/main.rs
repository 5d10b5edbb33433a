//! Each congestion controller alone, without a network.
//!
//! | module | what it shows |
//! |---|---|
//! | `rounds` | one path and two, round by round: slow start, losses, recovery, avoidance, timeouts; what a loss leaves, how much a round trip adds |
//! | `fixed_points` | the rates at which random losses hold each controller, against Reno's on the same path |
//! | `delay` | controllers that look at the RTT, on a path with a rate and a queue |
//!
//! The tables are snapshots: a change of behaviour shows as a difference to be reviewed.

mod delay;
mod fixed_points;
mod lab;
mod rounds;

//! Each congestion controller alone, without a network.
//!
//! | module | what it shows |
//! |---|---|
//! | `rounds` | one path and two, round by round: slow start, losses, recovery, avoidance, timeouts; what a loss leaves, how much a round trip adds |
//! | `fixed_points` | the rates at which random losses hold each controller, against Reno's on the same path |
//! | `delay` | controllers that look at the RTT, on a path with a rate and a queue |
//! | `westwood`, `htcp`, `illinois`, `cdg`, `dctcp`, `prague`, `xmp` | these, with figures worked out from the kernel's files |
//! | `abe` | what a mark leaves, against a loss (RFC 8511) |
//! | `copa` | Copa: the packets that it queues, and what it takes for a signal |
//! | `vivace`, `mpcc` | PCC: what makes its rate grow and shrink, and what paths tell each other |
//! | `bbr`, `bbr3` | BBR, which needs endpoints and a link: its states, its queue, its rate |
//!
//! The tables are snapshots: a change of behaviour shows as a difference to be reviewed.

#[allow(dead_code, reason = "the modules of tests use different parts")]
#[path = "../common/mod.rs"]
mod common;

mod abe;
mod bbr;
mod bbr3;
mod cdg;
mod copa;
mod dctcp;
mod delay;
mod fixed_points;
mod htcp;
mod illinois;
mod lab;
mod mpcc;
mod prague;
mod rounds;
mod vivace;
mod westwood;
mod xmp;

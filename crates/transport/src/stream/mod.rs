//! An incoming stream of bytes: reassembly, the receive window and its growth, and how long bytes waited for others.
//!
//! TCP, the connection level of Multipath TCP, and QUIC streams share it.

mod blocking;
mod receiver;

pub(crate) use blocking::Blocking;
pub use blocking::{Blocked, Cause, Level, Waited};
pub use receiver::{Read, Receiver};

//! A stream of bytes on its way in: reassembly, the receive window and its growth, and how long bytes waited for others. What TCP, the
//! connection level of Multipath TCP and a QUIC stream have in common.

mod blocking;
mod receiver;

pub(crate) use blocking::Blocking;
pub use blocking::{Blocked, Cause, Level, Waited};
pub use receiver::{Read, Receiver};

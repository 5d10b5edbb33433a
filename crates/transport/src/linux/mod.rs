//! State that upstream Linux keeps beside the protocols' own: the cost of buffers, how they are cut, and the windows
//! that follow.

pub(crate) mod fragments;
pub mod receive_window;
pub(crate) mod send_memory;
pub(crate) mod small_queue;
pub(crate) mod write_queue;

/// Bytes that an application writes or reads in a call, as the programs of the kernel engines do.
pub(crate) const CALL: u64 = 1 << 16;

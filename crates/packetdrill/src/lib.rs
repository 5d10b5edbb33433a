//! Our TCP and Multipath TCP endpoints as a shared object for packetdrill (option `--so_filename`).
//!
//! packetdrill calls sockets, sends and receives IP packets, and asks for the time. This crate answers all of these in
//! virtual time. It does not carry bytes: buffers of reading calls keep what they held, and sent data is a function of
//! its offset in the stream.
//!
//! | module | one idea |
//! |---|---|
//! | `interface` | the table of functions as C sees it: the only unsafe code |
//! | `shim` | two threads that call one machine, and calls that block |
//! | `machine` | clock, connections, packets |
//! | `call` | calls that may block: when they are done, and what they return |
//! | `descriptor` | the objects behind descriptors |
//! | `options` | socket options |
//! | `epoll` | sets of descriptors to wait for |
//! | `host` | the settings that the script's commands (`sysctl`, `ip`) make |
//! | `route` | the settings that `ip route` makes for a destination |
//! | `packet` | IP packets from and to segments |

mod call;
mod descriptor;
mod epoll;
mod host;
mod interface;
mod machine;
mod options;
mod packet;
mod route;
mod shim;

/// An `errno`.
pub(crate) type Errno = i32;

/// Says what a script asks for and this library does not have; the runner looks for this line.
pub(crate) fn unsupported(what: &str) -> Errno {
    eprintln!("polypath: {what} is not supported");
    libc::EOPNOTSUPP
}

//! The project's endpoints and its network in real time, on packets that are bytes.
//!
//! A [`Peer`] is one connection of our Multipath TCP against a real stack: it takes and gives IP packets. [`run`] moves
//! them between it and a TUN interface. Payload is the same function of the stream's offset as in captures, so the data
//! can be checked on arrival.
//!
//! [`quic`] is our QUIC endpoint over UDP sockets, which carries files.
//!
//! A [`Carrier`] is the reverse: the simulated network between real stacks. [`carry`] moves frames between it and TAP
//! interfaces.

use std::net::{IpAddr, SocketAddr};

mod carrier;
mod carry;
mod peer;
pub mod quic;
mod run;
mod settings;

pub use carrier::{Carrier, Delivery, Port, Tally};
pub use carry::{Clock, carry};
pub use peer::Peer;
pub use run::run;
pub use settings::{Action, Deed, Outcome, Role, Settings, Subflow};

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error("{0}")]
    Settings(#[from] serde_json::Error),
    #[error("{0}")]
    Algorithm(#[from] polypath_transport::RegistryError),
    #[error(transparent)]
    Config(#[from] polypath_transport::ConfigError),
    #[error("{0}")]
    Plan(#[from] polypath_lab::PlanError),
    #[error("node {0} has no interface {1}")]
    Port(usize, usize),
    #[error("{0}")]
    Interface(#[from] std::io::Error),
    #[error("{0} cannot be used: {1}")]
    Bind(IpAddr, std::io::Error),
    #[error("{0} stands for every address; name each one to listen at")]
    Unspecified(IpAddr),
    #[error("{0} and the server's {1} are of different families")]
    Family(IpAddr, IpAddr),
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    #[error("no answer from {0}")]
    Unanswered(SocketAddr),
    #[error("{0} was silent for too long; {1} bytes of the file had arrived")]
    Silent(SocketAddr, u64),
    #[error("{0} no longer knows the connection; {1} bytes of the file had arrived")]
    Forgotten(SocketAddr, u64),
    #[error("{0} closed the connection with error {1:#x}{2}; {3} bytes of the file had arrived")]
    Refused(SocketAddr, u64, String, u64),
    #[error("{0} violated the protocol (error {1:#x}{2}); {3} bytes of the file had arrived")]
    Violated(SocketAddr, u64, String, u64),
    #[error("{0} gave up the file after {1} bytes: {2} (error {3:#x})")]
    GivenUp(SocketAddr, u64, &'static str, u64),
    #[error("stopped")]
    Stopped,
}

//! The project's endpoints and its network in real time, on packets that are bytes.
//!
//! A [`Peer`] is one connection of our Multipath TCP against a real stack: it takes IP packets and gives IP packets; [`run`] moves them
//! between it and a TUN interface. Payload is the same function of the stream's offset as in captures, so that what arrives can be checked.
//!
//! A [`Carrier`] is the reverse: the simulated network between real stacks. [`carry`] moves frames between it and TAP interfaces.

mod carrier;
mod carry;
mod peer;
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
    Algorithm(#[from] polypath_transport::registry::RegistryError),
    #[error("{0}")]
    Plan(#[from] polypath_lab::PlanError),
    #[error("node {0} has no interface {1}")]
    Port(usize, usize),
    #[error("{0}")]
    Interface(#[from] std::io::Error),
}

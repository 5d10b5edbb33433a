//! The endpoints in real time, on packets that are bytes: what the simulator's Multipath TCP says to a real stack.
//!
//! A [`Peer`] is one connection. It takes IP packets and gives IP packets; [`run`] moves them between it and a TUN interface. Payload is
//! the same function of the stream's offset as in captures, so that what arrives can be checked.

mod peer;
mod run;
mod settings;

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
    Interface(#[from] std::io::Error),
}

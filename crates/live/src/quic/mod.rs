//! Our QUIC endpoint over UDP sockets, in real time and with real bytes. It exchanges files by HTTP/0.9, as QUIC's
//! interoperability tests do.
//!
//! | piece | what it is for |
//! |---|---|
//! | [`fetch`], [`serve`] | a client and a server, until they are done |
//! | `peer` | a connection, and the content of its streams |
//! | `content` | the bytes of a stream that is sent or received |
//! | `sockets` | a UDP socket for each local address |
//!
//! The certificate's key is in the source, so it proves no server's identity. Datagrams are not marked with ECN.

mod client;
mod content;
mod peer;
mod request;
mod server;
mod sockets;

use std::net::SocketAddr;
use std::sync::Arc;

use polypath_transport::ConfigError;
use polypath_transport::{Config, SECOND};
use serde::{Deserialize, Serialize};

pub use client::{Fetch, Fetched, fetch};
pub use server::{News, Serve, serve};

/// A wait ends after so long at the latest, to see whether the caller wants to stop.
const LONGEST_WAIT: u64 = SECOND / 5;

/// Asked now and then whether to stop.
pub type Stop<'a> = &'a mut dyn FnMut() -> bool;

/// Algorithms of an endpoint, by name; what is left out is the default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Algorithms {
    pub scheduler: Option<String>,
    pub congestion: Option<String>,
    pub path_manager: Option<String>,
    /// One path only.
    pub single: bool,
}

impl Algorithms {
    fn config(&self) -> Result<Arc<Config>, ConfigError> {
        let mut config = Config {
            multipath: !self.single,
            ..Config::default()
        };
        let chosen = [
            (&mut config.scheduler, &self.scheduler),
            (&mut config.congestion, &self.congestion),
            (&mut config.path_manager, &self.path_manager),
        ];
        for (setting, name) in chosen {
            if let Some(name) = name {
                *setting = name.as_str().into();
            }
        }
        polypath_transport::Algorithms::default().check(&config)?;
        Ok(Arc::new(config))
    }
}

/// What went over a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathReport {
    pub id: u64,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Bytes of streams that were acknowledged, and that came.
    pub acked: u64,
    pub received: u64,
}

//! The task of one connection, and its outcome, both as JSON.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Opens the connection to `remote`.
    Connect,
    /// Waits for one at `remote`'s port on the first local address.
    Accept,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub role: Role,
    /// The host's addresses, the first one that of the first subflow.
    pub local: Vec<IpAddr>,
    /// The peer's address and port; of a server the port to listen at.
    pub remote: SocketAddr,
    /// Nothing is written before this number of subflows can carry data. The remote side must send first if this is more than 1: without
    /// data it never confirms the first subflow's handshake.
    #[serde(default)]
    pub subflows: usize,
    /// Bytes that are then written.
    pub send: u64,
    /// Bytes that are written after the last action. Then the stream is closed.
    #[serde(default)]
    pub held: u64,
    #[serde(default = "fullmesh")]
    pub path_manager: String,
    #[serde(default)]
    pub checksum: bool,
    /// They run in this order.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// Milliseconds after which the connection is aborted.
    pub limit_ms: u64,
    pub seed: u64,
}

fn fullmesh() -> String {
    "fullmesh".into()
}

/// Something done to a local address once its subflows have carried enough.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub address: IpAddr,
    /// Bytes that the remote side acknowledged on the address's subflows.
    pub acked: u64,
    pub deed: Deed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// MP_PRIO: its subflows become backups.
    Backup,
    /// Its packets are lost in both directions.
    BlackHole,
    /// REMOVE_ADDR.
    Remove,
}

#[derive(Debug, Serialize)]
pub struct Outcome {
    /// `finished`, `reset`, `timed-out`..; absent: still open at the limit.
    pub ended: Option<String>,
    pub multipath: bool,
    pub received: u64,
    pub subflows: Vec<Subflow>,
    /// Those that are not 0, by their names in Linux's MIB.
    pub counters: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
pub struct Subflow {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub established: bool,
    pub acked: u64,
    pub received: u64,
}

//! A subflow: its addresses, its socket, and what joined it to the connection.

use std::net::IpAddr;

use super::retransmission::Silence;
use super::session::Join;
use crate::tcp::Socket;
use crate::{Nanos, Tuple};

/// One subflow of a connection; plain TCP has just the first.
pub struct Subflow {
    pub tuple: Tuple,
    pub local_id: u8,
    pub remote_id: u8,
    /// Addresses of routers through which its packets are steered.
    pub gateways: Vec<IpAddr>,
    /// This host asked for it to be a backup, or the peer did.
    pub backup_local: bool,
    pub backup_remote: bool,
    pub established_at: Option<Nanos>,
    pub closed_at: Option<Nanos>,
    pub(super) socket: Socket,
    /// Absent on the first subflow.
    pub(super) join: Option<Box<Join>>,
    /// Mappings that cover more than the segment they came with: subflow sequence number, stream offset, length.
    pub(super) mappings: Vec<(u64, u64, u32)>,
    pub(super) silence: Silence,
}

impl Subflow {
    pub(super) fn new(tuple: Tuple, ids: (u8, u8), socket: Socket, join: Option<Join>) -> Self {
        Self {
            tuple,
            local_id: ids.0,
            remote_id: ids.1,
            gateways: Vec::new(),
            backup_local: false,
            backup_remote: false,
            established_at: None,
            closed_at: None,
            socket,
            join: join.map(Box::new),
            mappings: Vec::new(),
            silence: Silence::default(),
        }
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }
}

//! A subflow: its addresses, its socket, and what joined it to the connection.

use std::net::IpAddr;

use super::session::Join;
use crate::path::Path;
use crate::tcp::{Socket, State};
use crate::{Nanos, Tuple};

/// Mappings that are kept of a subflow: more than a window of segments has, each cut in two.
const MOST_MAPPINGS: usize = 4_096;

/// A mapping: subflow sequence number, stream offset, length.
pub(super) type Mapped = (u64, u64, u32);

/// Those that cover more than the segment they came with.
#[derive(Default)]
struct Mappings(Vec<Mapped>);

/// Periods without an answer on a subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    pub periods: u32,
    pub heard_at: Nanos,
}

/// One subflow of a connection; plain TCP has just the first.
pub struct Subflow {
    pub tuple: Tuple,
    pub local_id: u8,
    pub remote_id: u8,
    /// Addresses of routers through which its packets are steered.
    pub gateways: Box<[IpAddr]>,
    /// This host asked for it to be a backup, or the peer did.
    pub backup_local: bool,
    pub backup_remote: bool,
    /// This host asked for it.
    pub opened_here: bool,
    /// It takes only what arrives at its address's interface.
    pub bound: bool,
    pub established_at: Option<Nanos>,
    pub closed_at: Option<Nanos>,
    pub(super) socket: Socket,
    /// Absent on the first subflow.
    pub(super) join: Option<Box<Join>>,
    /// Absent while each mapping is of the segment that it comes with.
    mappings: Option<Box<Mappings>>,
    pub(super) silence: Silence,
}

impl Subflow {
    /// Its peer hears what it sends.
    pub(super) fn reaches(&self, path: &Path) -> bool {
        path.established && self.socket.state().synchronised()
    }

    pub(super) fn new(tuple: Tuple, ids: (u8, u8), socket: Socket, join: Option<Join>) -> Self {
        Self {
            tuple,
            local_id: ids.0,
            remote_id: ids.1,
            gateways: Box::default(),
            backup_local: false,
            backup_remote: false,
            opened_here: false,
            bound: false,
            established_at: None,
            closed_at: None,
            socket,
            join: join.map(Box::new),
            mappings: None,
            silence: Silence::default(),
        }
    }

    /// Whether the connection still counts on it.
    pub(super) fn is_open(&self) -> bool {
        self.closed_at.is_none() && self.socket.state() != State::Closed
    }

    /// It is more than a join that the peer asked for and has not confirmed (Linux: a request socket).
    pub(super) fn is_known(&self) -> bool {
        self.join.is_none() || self.socket.state() != State::SynReceived
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The mappings that are kept.
    pub(super) fn mappings(&self) -> &[Mapped] {
        self.mappings.as_ref().map_or(&[], |mappings| &mappings.0)
    }

    /// Keeps a mapping that is of more than the segment it came with.
    #[cold]
    #[inline(never)]
    pub(super) fn remember(&mut self, mapping: Mapped) {
        let received = self.socket.receiver.next();
        let known = &mut self.mappings.get_or_insert_default().0;
        if !known.contains(&mapping) {
            known.retain(|&(from, _, len)| from + u64::from(len) > received);
            if known.len() < MOST_MAPPINGS {
                known.push(mapping);
            }
        }
    }
}

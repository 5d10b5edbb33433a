//! A subflow as its owner sees it.

use std::net::IpAddr;

use crate::{Nanos, Tuple};

/// A subflow as its owner sees it.
pub struct SubflowInfo {
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
    /// Mappings that cover more than the segment they came with: subflow sequence number, stream offset, length.
    pub(super) mappings: Vec<(u64, u64, u32)>,
}

impl SubflowInfo {
    pub(super) fn new(tuple: Tuple, local_id: u8, remote_id: u8) -> Self {
        Self {
            tuple,
            local_id,
            remote_id,
            gateways: Vec::new(),
            backup_local: false,
            backup_remote: false,
            established_at: None,
            closed_at: None,
            mappings: Vec::new(),
        }
    }
}

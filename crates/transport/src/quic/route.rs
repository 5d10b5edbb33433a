//! The addresses of a path's two ends.

use std::net::{IpAddr, SocketAddr};

use crate::Tuple;
use crate::path_manager::Pair;

/// The addresses of a path, with the ids that path managers know them by.
#[derive(Debug)]
pub(super) struct Route {
    tuple: Tuple,
    ids: Pair,
    /// All datagrams of the path so far went between the same addresses.
    steady: bool,
    /// Addresses of routers through which its packets are steered.
    gateways: Vec<IpAddr>,
}

impl Route {
    pub fn new(tuple: Tuple, ids: Pair) -> Self {
        Self {
            tuple,
            ids,
            steady: true,
            gateways: Vec::new(),
        }
    }

    pub fn tuple(&self) -> Tuple {
        self.tuple
    }

    /// Without a copy: it is asked of each packet.
    pub fn is_between(&self, tuple: &Tuple) -> bool {
        self.tuple == *tuple
    }

    /// Whether a packet from these addresses may be on the path at all: a server's address does not change (RFC 9000 section 9).
    pub fn may_become(&self, tuple: &Tuple, client: bool) -> bool {
        !client || self.tuple.remote == tuple.remote
    }

    pub fn ids(&self) -> Pair {
        self.ids
    }

    pub fn steady(&self) -> bool {
        self.steady
    }

    pub fn gateways(&self) -> &[IpAddr] {
        &self.gateways
    }

    pub fn steer(&mut self, gateways: Vec<IpAddr>) {
        self.gateways = gateways;
    }

    /// A datagram goes elsewhere.
    pub fn stray(&mut self) {
        self.steady = false;
    }

    /// It goes between other addresses from now on. Gives those that it leaves.
    pub fn change(&mut self, tuple: Tuple) -> Tuple {
        self.steady = false;
        std::mem::replace(&mut self.tuple, tuple)
    }

    /// It goes from another address of this host. Gives the addresses that it leaves.
    pub fn change_local(&mut self, local: SocketAddr) -> Tuple {
        let tuple = Tuple {
            local,
            ..self.tuple
        };
        self.change(tuple)
    }

    pub fn set_ids(&mut self, ids: Pair) {
        self.ids = ids;
    }

    pub fn set_local_id(&mut self, id: u8) {
        self.ids.local = id;
    }
}

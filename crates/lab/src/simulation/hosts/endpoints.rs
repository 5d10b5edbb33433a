//! Both ends of all connections. Each application's client comes first, then its server.

use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};

use crate::application::Side;
use crate::carrier::Carrier;
use crate::endpoint::Endpoint;
use crate::plan::Plan;
use crate::quic::Quic;

#[derive(Default)]
pub(in crate::simulation) struct Endpoints(Vec<Endpoint>);

impl Endpoints {
    pub fn push(&mut self, endpoint: Endpoint) {
        self.0.push(endpoint);
    }

    /// Subflows and paths that their clients know to be established.
    pub fn established_lanes(&self) -> usize {
        let clients = self.0.iter().step_by(2);
        let lanes = |it: &Carrier| {
            (0..it.lanes())
                .filter(|&lane| it.lane(lane).established_at.is_some())
                .count()
        };
        clients
            .filter_map(|client| client.connection.as_ref())
            .map(lanes)
            .sum()
    }

    /// Bytes that applications received in order so far.
    pub fn delivered_bytes(&self) -> u64 {
        self.0.iter().map(|endpoint| endpoint.received.bytes).sum()
    }

    /// Numbers the subflows that an endpoint opened: the next one of its connection each, whichever end opens it.
    pub fn number_subflows(&mut self, index: usize) {
        let endpoint = &self.0[index];
        let subflows = endpoint.tcp().map_or(0, |it| it.subflows().len());
        for _ in endpoint.numbers.len()..subflows {
            let known = [index, index ^ 1].map(|end| self.0[end].numbers.iter().max());
            let next = known.into_iter().flatten().max().map_or(0, |last| last + 1);
            self.0[index].numbers.push(next);
        }
    }

    /// Gives the paths of QUIC that an endpoint has come to know the numbers that the client has for them.
    #[inline]
    pub fn number_paths(&mut self, index: usize) {
        let endpoint = &self.0[index];
        let lanes = endpoint.quic().map_or(0, Quic::lanes);
        if lanes != endpoint.numbers.len() {
            self.number_new_paths(index);
        }
    }

    #[cold]
    fn number_new_paths(&mut self, index: usize) {
        let ids = |endpoint: &Endpoint| endpoint.quic().map_or_else(Vec::new, Quic::path_ids);
        let own = ids(&self.0[index]);
        let client = ids(&self.0[index & !1]);
        let known = self.0[index].numbers.len();
        for (path, id) in own.iter().enumerate().skip(known) {
            let number = client.iter().position(|known| known == id).unwrap_or(path);
            self.0[index].numbers.push(number as u32);
        }
    }

    /// The routers that a subflow is steered through: the server's answers come back the client's way (RFC 1122 section 4.2.3.8).
    pub fn gateways(&self, index: usize, subflow: usize) -> Vec<IpAddr> {
        let of = |endpoint: usize, subflow: usize| {
            let connection = self.0[endpoint].connection.as_ref()?;
            connection.gateways(subflow)
        };
        match self.0[index].side {
            Side::Client => of(index, subflow).map(<[_]>::to_vec).unwrap_or_default(),
            Side::Server => self.0[index ^ 1]
                .numbered(self.0[index].number(subflow))
                .and_then(|opposite| of(index ^ 1, opposite))
                .map(|way| way.iter().rev().copied().collect())
                .unwrap_or_default(),
        }
    }

    /// The endpoint of a server that listens at a node's address: `own` if that does, else of the first that began.
    pub fn listener(&self, plan: &Plan, node: usize, at: SocketAddr, own: usize) -> Option<usize> {
        let listens = |&index: &usize| {
            self.0
                .get(index)
                .is_some_and(|endpoint| endpoint.listens(plan, node, at.port()))
        };
        let mut all = std::iter::once(own).chain(0..self.0.len());
        all.find(listens)
    }
}

impl Deref for Endpoints {
    type Target = [Endpoint];

    #[inline(always)]
    fn deref(&self) -> &[Endpoint] {
        &self.0
    }
}

impl DerefMut for Endpoints {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Endpoint] {
        &mut self.0
    }
}

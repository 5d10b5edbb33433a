//! Finds the receiver of a conversation's packets (RFC 9293 section 3.3.1).
//!
//! The key is the node where they arrive, its address and port, and the address and port of the sender.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rustc_hash::FxHashMap;

use crate::flow::End;

/// Of these there are many: those of IPv4 take less room in a table of their own.
#[derive(Default)]
pub(super) struct Demultiplexer {
    v4: FxHashMap<Place<Ipv4Addr>, End>,
    any: FxHashMap<Place<IpAddr>, End>,
}

#[derive(PartialEq, Eq, Hash)]
struct Place<A> {
    node: u32,
    addresses: [A; 2],
    ports: [u16; 2],
}

enum Key {
    V4(Place<Ipv4Addr>),
    Any(Place<IpAddr>),
}

fn key(node: usize, own: SocketAddr, peer: SocketAddr) -> Key {
    let node = node as u32;
    let ports = [own.port(), peer.port()];
    match [own.ip(), peer.ip()] {
        [IpAddr::V4(own), IpAddr::V4(peer)] => Key::V4(Place {
            node,
            addresses: [own, peer],
            ports,
        }),
        addresses => Key::Any(Place {
            node,
            addresses,
            ports,
        }),
    }
}

impl Demultiplexer {
    pub fn insert(&mut self, node: usize, own: SocketAddr, peer: SocketAddr, end: End) {
        match key(node, own, peer) {
            Key::V4(place) => self.v4.insert(place, end),
            Key::Any(place) => self.any.insert(place, end),
        };
    }

    pub fn get(&self, node: usize, own: SocketAddr, peer: SocketAddr) -> Option<End> {
        match key(node, own, peer) {
            Key::V4(place) => self.v4.get(&place).copied(),
            Key::Any(place) => self.any.get(&place).copied(),
        }
    }

    /// Has `one` take what `other` took, and the other way round.
    pub fn exchange(&mut self, one: End, other: End) {
        for end in self.v4.values_mut().chain(self.any.values_mut()) {
            *end = end.exchanged(one, other);
        }
    }
}

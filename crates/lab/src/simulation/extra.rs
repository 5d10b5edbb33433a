//! Connections of listeners that no application has, and what hosts count with them.

use std::collections::BTreeMap;

use polypath_net::TimerId;
use polypath_transport::{Connection, Counters, Nanos};

use crate::endpoint::Endpoint;

/// A listener's connection that no application has.
pub(super) struct Extra {
    pub connection: Connection,
    /// Of the server whose listener took it.
    pub endpoint: usize,
    /// The flow from here to the client.
    pub flow: u32,
    pub timer: TimerId,
    pub timer_at: Nanos,
}

/// What was counted at each node: by its connections, and by itself.
pub(super) fn counted<'a>(
    endpoints: &'a [Endpoint],
    extras: &'a [Extra],
    hosts: &'a BTreeMap<usize, Counters>,
) -> BTreeMap<usize, Vec<&'a Counters>> {
    let own = endpoints
        .iter()
        .filter_map(|endpoint| Some((endpoint.node, endpoint.tcp()?.counters())));
    let extras = extras.iter().map(|extra| {
        let node = endpoints[extra.endpoint].node;
        (node, extra.connection.counters())
    });
    let itself = hosts.iter().map(|(&node, counters)| (node, counters));
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (node, counters) in own.chain(extras).chain(itself) {
        found.entry(node).or_default().push(counters);
    }
    found
}

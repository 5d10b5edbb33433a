//! Connections of listeners that belong to no application, and what hosts count with them.

use std::collections::BTreeMap;

use polypath_transport::{Connection, Counters, Transmit};

use super::host::Host;
use crate::alarm::Alarm;
use crate::endpoint::Endpoint;
use crate::simulation::world::World;

/// A listener's connection that no application has.
pub(super) struct Extra {
    pub connection: Connection,
    /// Of the server whose listener took it.
    pub endpoint: usize,
    /// The flow from here to the client.
    pub flow: u32,
    pub alarm: Alarm,
}

impl Extra {
    /// The time that it waited for has come.
    pub fn on_time(&mut self, world: &mut World) {
        let now = world.net.now();
        self.alarm.on_fired();
        if self.connection.next_deadline() <= now {
            self.connection.on_time(now);
        }
        self.follow_up(world);
    }

    /// Sends what it wants to, and has it called again when it asks for that.
    pub fn follow_up(&mut self, world: &mut World) {
        let now = world.net.now();
        let connection = &mut self.connection;
        connection.read(connection.available(), now);
        connection.events().clear();
        for transmit in std::mem::take(connection.transmits()) {
            let Transmit {
                segment, purpose, ..
            } = transmit;
            world.answer(self.flow, segment, purpose);
        }
        let at = self.connection.next_deadline();
        world.net.set_alarm(&mut self.alarm, at);
    }
}

/// What was counted at each node: by its connections, and by itself.
pub(super) fn counted<'a>(
    endpoints: &'a [Endpoint],
    extras: &'a [Extra],
    hosts: &'a [Host],
) -> BTreeMap<usize, Vec<&'a Counters>> {
    let own = endpoints
        .iter()
        .filter_map(|endpoint| Some((endpoint.node, endpoint.tcp()?.counters())));
    let extras = extras.iter().map(|extra| {
        let node = endpoints[extra.endpoint].node;
        (node, extra.connection.counters())
    });
    let hosts = hosts.iter().enumerate();
    let itself = hosts.filter_map(|(node, host)| Some((node, host.counters()?)));
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (node, counters) in own.chain(extras).chain(itself) {
        found.entry(node).or_default().push(counters);
    }
    found
}

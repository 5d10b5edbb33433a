//! Tunnels in the network: flows end at their entries, and others begin at their exits.

use polypath_net::{ChannelId, Packet};

use super::World;
use super::middleboxes::Behind;
use crate::flow::{Body, End, Flow};

/// Has flows that are led over a channel from now on end at its tunnel's entry.
pub fn open_tunnel(world: &mut World, channel: ChannelId, entry: End) {
    world.tunnelled.insert(channel, entry);
}

/// The flow that begins at the exit of a tunnel, for packets of `entered`.
pub fn beyond_tunnel(world: &mut World, entered: u32) -> u32 {
    let came = world.net.flow(entered).clone();
    let route = came.route.or(came.queued_route);
    let leg = route.map_or(0, |route| world.net.topology().path(route).count());
    let mut flow = Flow {
        gateways: came.gateways,
        crossed: came.crossed + leg as u16,
        receiver_node: came.receiver_node,
        sender: came.sender,
        stream: came.stream,
        first_dsn: came.first_dsn,
        identifier: came.identifier,
        ..Flow::new(came.source, came.destination)
    };
    world.lay(&mut flow, &came.rest, Behind::Tunnel);
    world.net.add_flow(flow)
}

/// A packet came out of a tunnel.
pub fn leave_tunnel(world: &mut World, flow: u32, packet: Packet<Body>) {
    let state = world.net.flow(flow);
    let route = state.route;
    if route.is_some() || state.here {
        world.dispatch(route, packet.len, flow, packet.ecn, packet.body);
    }
}

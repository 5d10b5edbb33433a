//! Packets that are longer than a link's MTU.
//!
//! The router before the link reports to the sender. The sender's host remembers the report per destination, as in
//! Linux's route exceptions. Those last for ten minutes in Linux, and for the whole run here.

use polypath_net::Packet;
use polypath_wire::quic::ConnectionId;

use super::Hosts;
use crate::flow::{Body, Content, End, Flow};
use crate::quic::Quic;
use crate::simulation::world::World;

impl Hosts {
    /// A host hears that a packet of its own was too long.
    #[cold]
    pub(super) fn on_too_big(&mut self, world: &mut World, packet: &Packet<Body>) {
        let Content::TooBig { mtu, about } = &packet.body.content else {
            return;
        };
        let Some(about) = world.net.reported(*about) else {
            return;
        };
        if packet.corrupted {
            return;
        }
        let node = world.net.flow(packet.flow).receiver_node as usize;
        let Flow {
            source,
            destination,
            ..
        } = *world.net.flow(about.flow);
        self.hosts[node].learn_path_mtu(source.ip(), destination.ip(), *mtu);
        if let Content::Quic(sealed) = &about.body.content {
            let (first, len) = (sealed.destination(), sealed.len());
            return self.tell_quic_too_big(world, about.flow, first, len, *mtu);
        }
        let end = self.demultiplexer.get(node, source, destination);
        let (Content::Tcp(segment), Some(End::Subflow { endpoint, subflow })) =
            (&about.body.content, end)
        else {
            return;
        };
        let now = world.net.now();
        if let Some(connection) = self.endpoints[endpoint as usize].tcp_mut() {
            connection.on_packet_too_big(subflow as usize, segment.seq, *mtu, now);
        }
        self.follow_up(world, endpoint as usize);
    }

    /// As [`Hosts::on_too_big`], about a datagram of QUIC on a flow. Stacks by others ignore it.
    fn tell_quic_too_big(
        &mut self,
        world: &mut World,
        flow: u32,
        first: Option<ConnectionId>,
        len: u32,
        mtu: u32,
    ) {
        let sender = world.net.flow(flow).sender.endpoint();
        let (Some(index), Some(first)) = (sender.map(|index| index as usize), first) else {
            return;
        };
        let now = world.net.now();
        let endpoint = &mut self.endpoints[index];
        let lane = endpoint.flows.iter().position(|&known| known == flow);
        let connection = endpoint.quic_mut();
        if let (Some(lane), Some(own)) = (lane, connection.and_then(Quic::own_mut)) {
            own.on_packet_too_big(lane, &first, len, mtu, now);
            self.follow_up(world, index);
        }
    }

    /// A new subflow begins with what its host knows of the path.
    pub(super) fn recall_mtu(&mut self, endpoint: usize, subflow: usize) {
        let node = self.endpoints[endpoint].node;
        let Some(connection) = self.endpoints[endpoint].tcp_mut() else {
            return;
        };
        let tuple = connection.subflows()[subflow].tuple;
        if let Some(mtu) = self.hosts[node].path_mtu(tuple.local.ip(), tuple.remote.ip()) {
            connection.limit_mtu(subflow, mtu);
        }
    }
}

//! Bridges in a run: what they learn from packets, and their BPDUs. BPDUs are frames on the links like any other.

use std::sync::Arc;

use polypath_net::{NodeId, Packet};
use polypath_switch::Fields;
use polypath_wire::bpdu;

use super::Switching;
use crate::bridging::Leaving;
use crate::control::Held;
use crate::flow::Body;
use crate::simulation::world::net::Net;

impl Switching {
    /// A frame for a bridge itself came in by a port.
    #[cold]
    pub(super) fn on_bpdu(
        &mut self,
        net: &mut Net,
        node: NodeId,
        port: u32,
        frame: &[u8],
        intact: bool,
    ) {
        let Ok(bpdu) = bpdu::parse(frame) else {
            return;
        };
        if let Some((bridges, mut ground)) = self.bridges(&mut net.network)
            && intact
        {
            let done = bridges.receive(node, port, &bpdu, &mut ground);
            self.tally(node).errors += u64::from(done.is_err());
        }
        self.send_bpdus(net);
        self.drop_ways(net);
        self.await_control(net);
    }

    /// A packet came from an address that its bridge does not know there: it is learned, and the packet goes where the tables say then.
    #[cold]
    pub(super) fn on_unknown_source(
        &mut self,
        net: &mut Net,
        node: NodeId,
        packet: &Packet<Body>,
        fields: Fields,
        crossed: u16,
    ) {
        let now = net.network.now();
        let Some((bridges, mut ground)) = self.bridges(&mut net.network) else {
            return;
        };
        let source = fields.ethernet_source;
        let learned = bridges.learn(node, fields.in_port, source, &mut ground);
        if let Ok(true) = learned {
            self.drop_ways(net);
            let decision = self.fabric.arrive(now, node, &fields, packet.len);
            self.go_where(net, node, packet, fields, crossed, decision);
            return;
        }
        let tally = self.tally(node);
        tally.dropped += 1;
        tally.errors += u64::from(learned.is_err());
    }

    /// Timers of bridges may have run out.
    pub(super) fn bridges_on_time(&mut self, net: &mut Net) {
        if let Some((bridges, mut ground)) = self.bridges(&mut net.network) {
            for node in bridges.on_time(&mut ground) {
                self.tally(node).errors += 1;
            }
            self.send_bpdus(net);
        }
    }

    /// Puts the BPDUs that bridges have made on their links.
    pub(super) fn send_bpdus(&mut self, net: &mut Net) {
        let Some((bridges, _)) = self.bridges(&mut net.network) else {
            return;
        };
        for leaving in bridges.take_leaving() {
            let Leaving {
                node,
                port,
                source,
                bpdu,
            } = leaving;
            let mut frame = Vec::new();
            bpdu::emit(source, &bpdu, &mut frame);
            let Held {
                fields,
                crossed,
                packet,
                ..
            } = self.own_frame(net, Arc::from(frame));
            self.tally(node).bpdus_sent += 1;
            self.send_on(net, node, port, fields, crossed, packet);
        }
    }
}

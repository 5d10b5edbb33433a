//! Bridges in a run: what they learn of packets, and their BPDUs, which are frames on the links as any others.

use std::sync::Arc;

use polypath_net::{NodeId, Packet};
use polypath_switch::Fields;
use polypath_wire::bpdu;

use super::Simulation;
use crate::bridging::Leaving;
use crate::control::Held;
use crate::flow::Body;

impl Simulation {
    /// A frame for a bridge itself came in by a port.
    #[cold]
    pub(super) fn on_bpdu(&mut self, node: NodeId, port: u32, frame: &[u8], intact: bool) {
        let Some(control) = &mut self.control else {
            return;
        };
        let Ok(bpdu) = bpdu::parse(frame) else {
            return;
        };
        if let Some((bridges, mut ground)) = control.bridges(&mut self.network)
            && intact
        {
            let done = bridges.receive(node, port, &bpdu, &mut ground);
            control.tally(node).errors += u64::from(done.is_err());
        }
        self.send_bpdus();
        self.drop_ways();
        self.await_control();
    }

    /// A packet came from an address that its bridge does not know there: it is learned, and the packet goes where the tables say then.
    #[cold]
    pub(super) fn on_unknown_source(
        &mut self,
        node: NodeId,
        packet: &Packet<Body>,
        fields: Fields,
        crossed: u16,
    ) {
        let now = self.network.now();
        let Some(control) = &mut self.control else {
            return;
        };
        let Some((bridges, mut ground)) = control.bridges(&mut self.network) else {
            return;
        };
        let source = fields.ethernet_source;
        let learned = bridges.learn(node, fields.in_port, source, &mut ground);
        if let Ok(true) = learned {
            self.drop_ways();
            if let Some(control) = &mut self.control {
                let decision = control.fabric.arrive(now, node, &fields, packet.len);
                self.go_where(node, packet, fields, crossed, decision);
            }
            return;
        }
        let tally = control.tally(node);
        tally.dropped += 1;
        tally.errors += u64::from(learned.is_err());
    }

    /// Timers of bridges may have run out.
    pub(super) fn bridges_on_time(&mut self) {
        let Some(control) = &mut self.control else {
            return;
        };
        if let Some((bridges, mut ground)) = control.bridges(&mut self.network) {
            for node in bridges.on_time(&mut ground) {
                control.tally(node).errors += 1;
            }
            self.send_bpdus();
        }
    }

    /// Puts the BPDUs that bridges have made on their links.
    pub(super) fn send_bpdus(&mut self) {
        let Some(control) = &mut self.control else {
            return;
        };
        let Some((bridges, _)) = control.bridges(&mut self.network) else {
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
            } = self.own_frame(Arc::from(frame));
            if let Some(control) = &mut self.control {
                control.tally(node).bpdus_sent += 1;
            }
            self.send_on(node, port, fields, crossed, packet);
        }
    }
}

//! Flows: which segments belong to one TCP connection, each pair of addresses and ports once for each time that it is used.

use std::collections::HashMap;
use std::net::SocketAddr;

use polypath_wire::tcp::Flags;

use crate::packet::Packet;

/// Position of a flow, in the order of their first segments.
pub type FlowId = usize;

/// The two ends of a flow, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends(SocketAddr, SocketAddr);

/// A pair of ends. What changes sequence numbers on the way makes two flows of one: each file has its own.
#[derive(Debug, Default)]
struct Uses {
    /// Each flow with the initial sequence number of the end that opened it; none where that was not seen.
    flows: Vec<(FlowId, Option<u32>)>,
    /// The flow that a file is at, and the one that it began with.
    current: Vec<(u16, FlowId)>,
    first: Vec<(u16, FlowId)>,
}

impl Uses {
    fn at(&self, file: u16) -> Option<FlowId> {
        self.current
            .iter()
            .find(|(of, _)| *of == file)
            .map(|(_, flow)| *flow)
    }

    fn turn(&mut self, file: u16, flow: FlowId) {
        match self.current.iter_mut().find(|(of, _)| *of == file) {
            Some((_, current)) => *current = flow,
            None => {
                self.current.push((file, flow));
                self.first.push((file, flow));
            }
        }
    }
}

/// Tells flows apart.
#[derive(Debug, Default)]
pub struct Flows {
    uses: HashMap<Ends, Uses>,
    count: usize,
}

impl Flows {
    /// The flow of a segment, and whether the end with the lower address sent it. A SYN with another initial sequence
    /// number is that of another flow.
    pub fn locate(&mut self, packet: &Packet) -> (FlowId, bool) {
        let forward = packet.source <= packet.destination;
        let ends = if forward {
            Ends(packet.source, packet.destination)
        } else {
            Ends(packet.destination, packet.source)
        };
        let segment = &packet.segment;
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        let uses = self.uses.entry(ends).or_default();
        let file = packet.tap.file;
        let current = uses.at(file);
        if !opens && let Some(flow) = current {
            return (flow, forward);
        }
        let known = if opens {
            let opened = uses.flows.iter();
            opened
                .rev()
                .find(|(_, with)| *with == Some(segment.seq))
                .map(|(flow, _)| *flow)
        } else {
            uses.flows.last().map(|(flow, _)| *flow)
        };
        let flow = known.unwrap_or_else(|| {
            uses.flows.push((self.count, opens.then_some(segment.seq)));
            self.count += 1;
            self.count - 1
        });
        uses.turn(file, flow);
        (flow, forward)
    }

    /// Begins again with the files' first segments, whose flows are known now. Each pair for itself: their order is of no matter.
    pub fn rewind(&mut self) {
        for uses in self.uses.values_mut() {
            uses.current.clone_from(&uses.first);
        }
    }
}

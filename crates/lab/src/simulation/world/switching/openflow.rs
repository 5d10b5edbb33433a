//! A controller outside of the simulator: the messages between it and the switches' agents.

use std::sync::Arc;

use polypath_net::{Ecn, NodeId, Packet};
use polypath_trace::Mac;
use polypath_transport::Purpose;

use super::Switching;
use super::switches::Asking;
use crate::control::openflow::{Ground, Sending, Step, What, fields};
use crate::control::{Down, Held, Order, Up, asked};
use crate::flow::{Body, Content, Flow};
use crate::simulation::world::net::Net;

const ETHERNET_HEADER: usize = 14;

impl Switching {
    /// To be called before the run. Where somebody outside rules, switches say hello; there and between bridges hosts have Ethernet addresses.
    pub fn open_channels(&mut self, net: &mut Net) {
        let outside = self.agents().is_some();
        let bridged = self.frames().is_some() && !outside;
        if outside || bridged {
            let topology = net.network.topology();
            let known = topology.addresses().filter_map(|(address, interface)| {
                let channel = topology.channel_of(interface)?;
                Some((address, Mac::local(channel.0 + 1)))
            });
            net.captures.ethernet = Some(known.collect());
            net.captures.heard = outside;
            self.send_bpdus(net);
            self.await_control(net);
        }
    }

    /// Whether messages have come to a controller outside, which is to be heard before time goes on.
    pub fn is_asking(&mut self) -> bool {
        let agents = self.agents();
        agents.is_some_and(|agents| !agents.arrived.is_empty())
    }

    /// What switches have sent to a controller outside and has arrived there: the datapath and a message's bytes, in order.
    pub fn controller_receives(&mut self) -> Vec<(u64, Vec<u8>)> {
        let agents = self.agents();
        agents.map_or_else(Vec::new, |agents| agents.take_arrived())
    }

    /// A controller outside sends bytes to a datapath now. False: there is none of this number.
    pub fn controller_sends(&mut self, net: &mut Net, datapath: u64, bytes: Vec<u8>) -> bool {
        let now = net.network.now();
        let Some(node) = self.agents().and_then(|agents| agents.node(datapath)) else {
            return false;
        };
        let down = Down::Bytes(bytes);
        self.wires.send_down(now, Order { node, down });
        self.await_control(net);
        true
    }

    /// Bytes of the controller have come to a switch.
    pub(super) fn hear(&mut self, net: &mut Net, node: NodeId, bytes: &[u8]) {
        let now = net.network.now();
        let agents = self.agents();
        if let Some(agent) = agents.and_then(|agents| agents.get_mut(node)) {
            agent.receive(bytes);
        }
        loop {
            let Some((agents, fabric)) = self.agents_and_fabric() else {
                return;
            };
            let mut ground = Ground {
                fabric,
                network: &mut net.network,
            };
            let Some(outcome) = agents.next(node, &mut ground) else {
                return;
            };
            let (tally, did) = (self.tally(node), outcome.counted);
            tally.packet_outs += did.packet_outs;
            tally.flow_mods += did.flow_mods;
            tally.group_mods += did.group_mods;
            tally.flows_removed += did.flows_removed;
            tally.errors += did.errors;
            for reply in outcome.replies {
                self.wires.send_up(now, node, Up::Bytes(reply));
            }
            self.drop_ways(net);
            if let Some(sending) = outcome.sending {
                self.send_out(net, node, sending);
            }
        }
    }

    /// The controller sends a packet by a switch.
    fn send_out(&mut self, net: &mut Net, node: NodeId, sending: Sending) {
        let now = net.network.now();
        let held = match sending.what {
            What::Held(held) => *held,
            What::Frame(frame) => self.own_frame(net, frame),
        };
        let Held {
            fields,
            crossed,
            packet,
            ..
        } = held;
        let fields = fields.at(sending.in_port);
        self.end_setup(now, &fields);
        // A packet that is there for one decision; each further one is about a copy.
        self.tally(node).copied += (sending.steps.len() as u64).saturating_sub(1);
        if sending.steps.is_empty() {
            self.tally(node).dropped += 1;
        }
        for step in sending.steps {
            let (fabric, len) = (&mut self.fabric, packet.len);
            let decision = match step {
                Step::Actions(actions) => fabric.execute(now, node, &actions, &fields, len),
                Step::Table => fabric.arrive(now, node, &fields, len),
            };
            self.go_where(net, node, &packet, fields, crossed, decision);
        }
    }

    /// A frame that no packet of the network is: no host takes it.
    pub(super) fn own_frame(&mut self, net: &mut Net, frame: Arc<[u8]>) -> Held {
        let nobody = (std::net::Ipv4Addr::UNSPECIFIED, 0).into();
        let captures = &mut net.captures;
        let make = || {
            captures.flows.push(Flow {
                receiver_node: u32::MAX,
                ..Flow::new(nobody, nobody)
            });
            captures.own.push(frame.clone());
            (
                captures.flows.len() as u32 - 1,
                captures.own.len() as u32 - 1,
            )
        };
        let frames = self.frames();
        let (flow, number) = frames.map_or((0, 0), |frames| frames.own(&frame, make));
        let seed = self.seed;
        Held {
            flow: asked(seed, nobody, nobody, 0),
            fields: fields(&frame).unwrap_or_default(),
            crossed: 0,
            packet: Packet {
                len: frame.len().saturating_sub(ETHERNET_HEADER) as u32,
                flow,
                route: polypath_net::RouteId::default(),
                hop: 0,
                ecn: Ecn::NotEct,
                corrupted: false,
                body: Body {
                    identification: 0,
                    altered: false,
                    purpose: Purpose::Control,
                    content: Content::Frame(number),
                },
            },
        }
    }

    /// A packet goes to the controller as bytes.
    pub(super) fn packet_in(&mut self, net: &mut Net, node: NodeId, held: Held, how: Asking) {
        let now = net.network.now();
        // The packet is one that its endpoint could send, and so has a form on the wire.
        let Ok(frame) = net.captures.frame(&held.packet) else {
            return;
        };
        let frame = frame.to_vec();
        let known = how.entry.and_then(|(table, id)| {
            let entry = self.fabric.switch(node)?.get(table, id)?;
            Some((table, entry.cookie))
        });
        // Of a packet that the controller itself sent there: no table (0) and no cookie (-1).
        let place = known.unwrap_or((0, u64::MAX));
        let message = self.agents().and_then(|agents| {
            agents.packet_in(node, held, &frame, (how.miss, how.max_len), place)
        });
        if let Some(bytes) = message {
            self.wires.send_up(now, node, Up::Bytes(bytes));
        }
    }
}

//! Switches that speak OpenFlow 1.3.5 with a controller outside of the simulator. The bytes of control channels come in
//! and go out here.

mod agent;
mod frames;
mod ground;
mod statistics;
mod translate;

use std::collections::BTreeMap;

use polypath_net::{Network, NodeId};
use polypath_switch::Fabric;
use polypath_trace::Mac;
use polypath_wire::openflow::Port;

pub(crate) use agent::{Agent, Outcome, Sending, Step, What};
pub(crate) use frames::Frames;
pub(crate) use ground::Ground;
pub(crate) use translate::fields;

use super::Held;
use crate::flow::Body;
use crate::plan::Plan;

/// The switches' ends of all control channels.
#[derive(Debug)]
pub(crate) struct Agents {
    agents: BTreeMap<NodeId, Agent>,
    pub frames: Frames,
    /// What has come to the controller and was not taken by it.
    pub arrived: Vec<(NodeId, Vec<u8>)>,
}

impl Agents {
    /// Datapaths are numbered from 1 on in the order of the plan's nodes.
    pub fn new(plan: &Plan, network: &Network<Body>, fabric: &Fabric) -> Self {
        let topology = network.topology();
        let agents = (1..).zip(fabric.switches()).map(|(datapath, (node, _))| {
            let described = &plan.nodes[node.index()];
            let interfaces = described.interfaces.iter();
            let interfaces = interfaces.zip(topology.interfaces(node));
            let ports = interfaces.map(|(interface, id)| {
                let channel = topology.channel_of(*id);
                let rate = channel.and_then(|channel| network.config(channel).ok()?.rate_bps);
                let speed = rate.map_or(0, |rate| u32::try_from(rate / 1000).unwrap_or(u32::MAX));
                Port {
                    number: fabric.port(*id),
                    address: channel.map_or([0; 6], |channel| Mac::local(channel.0 + 1).0),
                    name: interface.name.bytes().take(15).collect(),
                    current_speed: speed,
                    max_speed: speed,
                    ..Port::default()
                }
            });
            let agent = Agent::new(node, datapath, described.name.clone(), ports.collect());
            (node, agent)
        });
        Self {
            agents: agents.collect(),
            frames: Frames::default(),
            arrived: Vec::new(),
        }
    }

    pub fn get_mut(&mut self, node: NodeId) -> Option<&mut Agent> {
        self.agents.get_mut(&node)
    }

    /// Does what the next whole message to a switch says.
    pub fn next(&mut self, node: NodeId, ground: &mut Ground<'_>) -> Option<Outcome> {
        self.agents.get_mut(&node)?.next(&self.frames, ground)
    }

    /// As [`Agent::packet_in`].
    pub fn packet_in(
        &mut self,
        node: NodeId,
        held: Held,
        frame: &[u8],
        how: (bool, u16),
        place: (u8, u64),
    ) -> Option<Vec<u8>> {
        let agent = self.agents.get_mut(&node)?;
        agent.packet_in(held, frame, how, place, &mut self.frames)
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut Agent)> {
        self.agents.iter_mut().map(|(node, agent)| (*node, agent))
    }

    /// The switch of this datapath.
    pub fn node(&self, datapath: u64) -> Option<NodeId> {
        let mut all = self.agents.iter();
        all.find(|(_, agent)| agent.datapath == datapath)
            .map(|(node, _)| *node)
    }

    /// What has come to the controller since the last call, by datapath.
    pub fn take_arrived(&mut self) -> Vec<(u64, Vec<u8>)> {
        let arrived = std::mem::take(&mut self.arrived).into_iter();
        let known = arrived.filter_map(|(node, bytes)| {
            let agent = self.agents.get(&node)?;
            Some((agent.datapath, bytes))
        });
        known.collect()
    }
}

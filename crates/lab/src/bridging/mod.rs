//! Switches as Ethernet bridges (IEEE 802.1D-2004). Each learns where addresses are, and together they find a tree by
//! BPDUs on the links.

pub(crate) mod protocol;
mod relay;

use std::collections::BTreeMap;

use polypath_net::{Nanos, Network, NodeId};
use polypath_switch::spanning_tree::{Bridge, Output, PortSettings, Role, State};
use polypath_switch::{Fabric, Removed, Switch, SwitchError};
use polypath_trace::Mac;
use polypath_transport::Choice;
use polypath_wire::bpdu::{Bpdu, BridgeId};

use crate::PlanError;
use crate::control::openflow::Frames;
use crate::flow::Body;
use crate::plan::{self, Plan};
use protocol::{Protocol, REGISTRY};
pub(crate) use relay::Relay;

/// The most ports of a bridge: twelve bits number them (clause 9.2.7).
const MOST_PORTS: usize = 4095;
/// A bridge's priority unless it has one (table 17-2).
const PRIORITY: u16 = 32_768;
/// A port's, likewise.
const PORT_PRIORITY: u8 = 128;
/// Bridges have addresses apart from those of interfaces, in the order of the plan.
const BRIDGES: u32 = 1 << 31;

/// A role or a state that a port took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub at: Nanos,
    pub node: NodeId,
    pub port: u32,
    pub role: Role,
    pub state: State,
}

/// A BPDU on its way out: the port, its address, the frame's content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub node: NodeId,
    pub port: u32,
    pub source: [u8; 6],
    pub bpdu: Bpdu,
}

/// One bridge.
#[derive(Debug)]
struct Member {
    /// Absent: no protocol.
    bridge: Option<Bridge>,
    relay: Relay,
    /// By port, from 1 on.
    addresses: Vec<[u8; 6]>,
}

/// All bridges of a run.
#[derive(Debug)]
pub(crate) struct Bridges {
    members: BTreeMap<NodeId, Member>,
    /// When each bridge's timers are to be looked at.
    deadlines: BTreeMap<NodeId, Nanos>,
    pub frames: Frames,
    pub taken: Vec<Taken>,
    leaving: Vec<Leaving>,
}

/// What bridges work on.
pub(crate) struct Ground<'a> {
    pub fabric: &'a mut Fabric,
    pub network: &'a mut Network<Body>,
}

impl Bridges {
    /// The bridges of a plan, whose ports come up with [`Bridges::start`].
    pub fn new(
        plan: &Plan,
        settings: &plan::Bridging,
        ground: &mut Ground<'_>,
    ) -> Result<Self, PlanError> {
        let protocol = protocol(settings)?;
        let mut bridges = Self {
            members: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            frames: Frames::default(),
            taken: Vec::new(),
            leaving: Vec::new(),
        };
        let nodes: Vec<NodeId> = ground.fabric.switches().map(|(node, _)| node).collect();
        for node in nodes {
            let described = &plan.nodes[node.index()];
            let place = format!("switch {}", described.name);
            if described.interfaces.len() > MOST_PORTS {
                let problem = format!("a bridge can have at most {MOST_PORTS} ports");
                return Err(PlanError::invalid(&*place, problem));
            }
            let given = settings.priorities.iter();
            let priority = given.rev().find(|own| own.node == node.index());
            let priority = priority.map_or(PRIORITY, |own| own.priority);
            if priority % 4096 != 0 {
                let problem =
                    format!("a bridge's priority must be a multiple of 4096, not {priority}");
                return Err(PlanError::invalid(&*place, problem));
            }
            let id = BridgeId {
                priority,
                address: Mac::local(BRIDGES | node.0).0,
            };
            let topology = ground.network.topology();
            let channels = topology.interfaces(node).iter();
            let channels: Vec<_> = channels.map(|own| topology.channel_of(*own)).collect();
            let ports: Vec<PortSettings> = channels
                .iter()
                .map(|channel| PortSettings {
                    priority: PORT_PRIORITY,
                    path_cost: channel.map_or(1, |channel| path_cost(plan, channel.index())),
                    admin_edge: channel.is_some_and(|it| leads_to_host(plan, it.index())),
                })
                .collect();
            let address = |channel: &Option<polypath_net::ChannelId>| {
                channel.map_or([0; 6], |channel| Mac::local(channel.0 + 1).0)
            };
            let relay = Relay::new(node, settings.ageing_ns, ground.fabric, ground.network);
            let member = Member {
                bridge: protocol.map(|settings| Bridge::new(id, settings, &ports, 0)),
                relay: relay.map_err(|error| refused(&place, error))?,
                addresses: channels.iter().map(address).collect(),
            };
            bridges.members.insert(node, member);
        }
        bridges
            .start(ground)
            .map_err(|error| refused("bridging", error))?;
        Ok(bridges)
    }

    fn start(&mut self, ground: &mut Ground<'_>) -> Result<(), SwitchError> {
        let nodes: Vec<NodeId> = self.members.keys().copied().collect();
        for node in nodes {
            let ports = ground.fabric.switch(node).into_iter();
            let ports: Vec<(u32, bool)> = ports.flat_map(Switch::ports).collect();
            for (port, up) in ports {
                self.link_changed(node, port, up, ground)?;
            }
        }
        Ok(())
    }

    /// A port's link comes up or goes down.
    pub fn link_changed(
        &mut self,
        node: NodeId,
        port: u32,
        up: bool,
        ground: &mut Ground<'_>,
    ) -> Result<(), SwitchError> {
        let now = ground.network.now();
        let Some(member) = self.members.get_mut(&node) else {
            return Ok(());
        };
        if let Some(bridge) = &mut member.bridge {
            bridge.set_up(now, port, up);
            return self.follow(node, ground);
        }
        let (role, state) = match up {
            true => (Role::Designated, State::Forwarding),
            false => (Role::Disabled, State::Discarding),
        };
        member.relay.flush(port, ground.fabric, ground.network)?;
        self.take(node, port, role, state, ground)
    }

    /// A BPDU came in by a port.
    pub fn receive(
        &mut self,
        node: NodeId,
        port: u32,
        bpdu: &Bpdu,
        ground: &mut Ground<'_>,
    ) -> Result<(), SwitchError> {
        let now = ground.network.now();
        let bridge = self
            .members
            .get_mut(&node)
            .and_then(|it| it.bridge.as_mut());
        if let Some(bridge) = bridge {
            bridge.receive(now, port, bpdu);
        }
        self.follow(node, ground)
    }

    /// Timers of some bridges may have run out. Gives those whose tables refused what follows.
    pub fn on_time(&mut self, ground: &mut Ground<'_>) -> Vec<NodeId> {
        let now = ground.network.now();
        let due = self.deadlines.iter().filter(|(_, at)| **at <= now);
        let due: Vec<NodeId> = due.map(|(node, _)| *node).collect();
        let refused = |node: &NodeId| {
            let member = self.members.get_mut(node);
            if let Some(bridge) = member.and_then(|it| it.bridge.as_mut()) {
                bridge.on_time(now);
            }
            self.follow(*node, ground).is_err()
        };
        due.into_iter().filter(refused).collect()
    }

    /// Does what a bridge wants done.
    fn follow(&mut self, node: NodeId, ground: &mut Ground<'_>) -> Result<(), SwitchError> {
        let Some(member) = self.members.get_mut(&node) else {
            return Ok(());
        };
        let Some(bridge) = &mut member.bridge else {
            return Ok(());
        };
        let outputs = bridge.take();
        match bridge.next_deadline() {
            Some(at) => self.deadlines.insert(node, at),
            None => self.deadlines.remove(&node),
        };
        for output in outputs {
            match output {
                Output::Send { port, bpdu } => {
                    let source = self.members.get(&node);
                    let source = source.and_then(|it| it.addresses.get(port as usize - 1));
                    self.leaving.push(Leaving {
                        node,
                        port,
                        source: source.copied().unwrap_or_default(),
                        bpdu,
                    });
                }
                Output::Flush { port } => {
                    if let Some(member) = self.members.get_mut(&node) {
                        member.relay.flush(port, ground.fabric, ground.network)?;
                    }
                }
                Output::Port { port, role, state } => {
                    self.take(node, port, role, state, ground)?;
                }
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        node: NodeId,
        port: u32,
        role: Role,
        state: State,
        ground: &mut Ground<'_>,
    ) -> Result<(), SwitchError> {
        let at = ground.network.now();
        self.taken.push(Taken {
            at,
            node,
            port,
            role,
            state,
        });
        let member = self.members.get_mut(&node);
        member.map_or(Ok(()), |it| {
            it.relay
                .set_state(port, state, ground.fabric, ground.network)
        })
    }

    /// As [`Relay::learn`].
    pub fn learn(
        &mut self,
        node: NodeId,
        port: u32,
        address: u64,
        ground: &mut Ground<'_>,
    ) -> Result<bool, SwitchError> {
        let member = self.members.get_mut(&node);
        member.map_or(Ok(false), |it| {
            it.relay.learn(port, address, ground.fabric, ground.network)
        })
    }

    /// As [`Relay::expired`].
    pub fn expired(
        &mut self,
        node: NodeId,
        removed: &Removed,
        ground: &mut Ground<'_>,
    ) -> Result<(), SwitchError> {
        let member = self.members.get_mut(&node);
        member.map_or(Ok(()), |it| {
            it.relay.expired(removed, ground.fabric, ground.network)
        })
    }

    /// BPDUs to send, in order.
    pub fn take_leaving(&mut self) -> Vec<Leaving> {
        std::mem::take(&mut self.leaving)
    }

    pub fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.values().min().copied()
    }

    /// A node's relay, and whether it is the root of its tree.
    pub fn at(&self, node: NodeId) -> Option<(&Relay, bool)> {
        let member = self.members.get(&node)?;
        let is_root = member
            .bridge
            .as_ref()
            .is_some_and(|bridge| bridge.root() == bridge.id());
        Some((&member.relay, is_root))
    }
}

fn refused(place: &str, error: SwitchError) -> PlanError {
    PlanError::invalid(place, error.to_string())
}

fn protocol(
    settings: &plan::Bridging,
) -> Result<Option<polypath_switch::spanning_tree::Settings>, PlanError> {
    let choice = Choice {
        name: settings.protocol.name.clone(),
        parameters: settings.protocol.parameters.clone().into_iter().collect(),
    };
    let made = REGISTRY.make(&choice.name, &choice.parameters);
    let Protocol(settings) = *made.map_err(|error| PlanError::Registry {
        place: "bridging".into(),
        error,
    })?;
    match settings.as_ref().and_then(protocol::fault) {
        Some(problem) => Err(PlanError::invalid("bridging", problem)),
        None => Ok(settings),
    }
}

/// What the port at which a channel begins costs: 20 Tbit/s over its rate (clause 17.14, table 17-3).
fn path_cost(plan: &Plan, channel: usize) -> u32 {
    let link = &plan.links[channel / 2];
    let side = match channel % 2 {
        0 => &link.forward,
        _ => &link.backward,
    };
    let rate = side.rate_bps.unwrap_or(u64::MAX).max(1);
    (20_000_000_000_000 / rate).clamp(1, 200_000_000) as u32
}

fn leads_to_host(plan: &Plan, channel: usize) -> bool {
    let link = &plan.links[channel / 2];
    let far = match channel % 2 {
        0 => link.b,
        _ => link.a,
    };
    plan.nodes[far.node].kind == plan::NodeKind::Host
}

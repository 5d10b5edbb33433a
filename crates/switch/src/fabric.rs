//! The switches of a network, and the routes that their tables give to packets.
//!
//! A packet's way is walked through the tables where it begins, and then followed as a route. So it costs no more per
//! hop than any other route.
//!
//! A switch's decision for a flow is therefore kept. Every change of a switch looks for the walks that it affects, and
//! retires them. Wherever the packets of a retired walk are, they stop at the next switch that they reach, and each
//! asks the tables there again. A packet thus always goes as the tables say at the instant when it arrives at the
//! switch.

use std::collections::{BTreeMap, BTreeSet};

use polypath_net::{
    ChannelConfig, ChannelId, InterfaceId, Nanos, Network, NodeId, RouteId, Topology, random,
};

use crate::fields::{Fields, Match};
use crate::group::Group;
use crate::hits::Hits;
use crate::pipeline::{Decision, Limits, Switch, SwitchError};
use crate::table::{Action, Counts, Entry, EntryId, Instructions, Removed};
use crate::wanted::Wanted;

/// The most links that a packet crosses: the TTL that hosts give it, which each switch lowers by one (`OFPAT_DEC_NW_TTL`, section 5.12).
pub const TTL: u16 = 64;

/// Where a walk begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    /// The first channel to cross.
    pub channel: ChannelId,
    /// Of the packet; its port plays no part.
    pub fields: Fields,
    /// Links that the packet has crossed before.
    pub crossed: u16,
}

/// A switch on a walk.
#[derive(Clone, Debug)]
struct Step {
    node: NodeId,
    in_port: u32,
    decision: Decision,
    /// The way leads through it. If not, packets are delivered there, and counted one by one.
    passes: bool,
    /// What was credited of the packets that passed.
    credited: Counts,
}

/// A walked way: `steps[i]` is at the end of its i-th channel.
#[derive(Clone, Debug)]
struct Walk {
    start: Start,
    route: RouteId,
    first_position: u32,
    steps: Vec<Step>,
    /// Who is told when the way is no longer so.
    users: BTreeSet<u32>,
}

impl Walk {
    /// The position that packets reach as they come to the switch of a step.
    fn position(&self, step: usize) -> u32 {
        self.first_position + step as u32 + 1
    }
}

/// All switches of a network.
#[derive(Debug)]
pub struct Fabric {
    /// What passed on walked ways; the network is to run with it.
    pub hits: Hits,
    /// By node; absent: no switch.
    switches: Vec<Option<Switch>>,
    /// The number of each interface's port.
    ports: Vec<u32>,
    walks: Vec<Option<Walk>>,
    free: Vec<u32>,
    known: BTreeMap<Start, u32>,
    by_flow: BTreeMap<Fields, BTreeSet<u32>>,
    /// By node.
    through: Vec<BTreeSet<u32>>,
    uses: BTreeMap<(NodeId, EntryId), BTreeSet<u32>>,
    /// By time and node, when entries are to be looked at; and of each node the time there.
    deadlines: BTreeSet<(Nanos, NodeId)>,
    deadline: Vec<Option<Nanos>>,
    stale: Vec<u32>,
}

impl Fabric {
    /// Makes switches of the nodes that `is_switch` says, with empty tables. Their ports are their interfaces in order, from 1 on; a port
    /// without a link is down.
    pub fn new(
        topology: &Topology,
        seed: u64,
        limits: Limits,
        is_switch: impl Fn(NodeId) -> bool,
    ) -> Self {
        let mut ports = Vec::new();
        let mut switches = Vec::new();
        for node in (0..topology.nodes() as u32).map(NodeId) {
            let interfaces = topology.interfaces(node);
            for (number, interface) in (1..).zip(interfaces) {
                let length = ports.len().max(interface.index() + 1);
                ports.resize(length, 0);
                ports[interface.index()] = number;
            }
            switches.push(is_switch(node).then(|| {
                let hash = random::mix(random::mix(seed) ^ u64::from(node.0));
                let mut switch = Switch::new(interfaces.len() as u32, hash, limits);
                for (number, interface) in (1..).zip(interfaces) {
                    switch.set_port(number, topology.channel_of(*interface).is_some());
                }
                switch
            }));
        }
        Self {
            hits: Hits::default(),
            ports,
            walks: Vec::new(),
            free: Vec::new(),
            known: BTreeMap::new(),
            by_flow: BTreeMap::new(),
            through: vec![BTreeSet::new(); switches.len()],
            uses: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            deadline: vec![None; switches.len()],
            stale: Vec::new(),
            switches,
        }
    }

    pub fn switch(&self, node: NodeId) -> Option<&Switch> {
        self.switches.get(node.index())?.as_ref()
    }

    /// Every switch with its node, in the nodes' order.
    pub fn switches(&self) -> impl Iterator<Item = (NodeId, &Switch)> {
        let all = (0u32..).map(NodeId).zip(&self.switches);
        all.filter_map(|(node, switch)| Some((node, switch.as_ref()?)))
    }

    /// The number of an interface's port at its node.
    pub fn port(&self, interface: InterfaceId) -> u32 {
        self.ports.get(interface.index()).copied().unwrap_or(0)
    }

    /// The channel that leaves by a port.
    pub fn channel(topology: &Topology, node: NodeId, port: u32) -> Option<ChannelId> {
        let index = (port as usize).checked_sub(1)?;
        let interface = topology.interfaces(node).get(index)?;
        topology.channel_of(*interface)
    }

    /// The route of packets that begin so: as far as the tables lead them now, which is to a host or to a switch where they stop.
    /// `user` is told by [`Fabric::stale`] when that is no longer so. Nothing if there is no such channel.
    pub fn route<B: Clone>(
        &mut self,
        network: &mut Network<B>,
        start: Start,
        user: u32,
    ) -> Option<RouteId> {
        let start = Start {
            fields: start.fields.at(0),
            ..start
        };
        let known = self.known.get(&start).copied();
        let number = match known {
            Some(number) => number,
            None => self.walk(network, start)?,
        };
        let walk = self.walks[number as usize].as_mut()?;
        walk.users.insert(user);
        Some(walk.route)
    }

    /// Those of whom a way changed since the last call, each once for each way.
    pub fn stale(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.stale)
    }

    fn walk<B: Clone>(&mut self, network: &mut Network<B>, start: Start) -> Option<u32> {
        let topology = network.topology();
        let (mut path, mut steps) = (vec![start.channel], Vec::<Step>::new());
        let mut channel = start.channel;
        loop {
            let (_, interface) = topology.ends(channel)?;
            let node = topology.node_of(interface).ok()?;
            let Some(switch) = self.switch(node) else {
                break;
            };
            let in_port = self.port(interface);
            let decision = switch.decide(&start.fields.at(in_port));
            let out = decision.only_port();
            let out = out.and_then(|port| Self::channel(topology, node, port));
            let out = out.filter(|_| path.len() + usize::from(start.crossed) < usize::from(TTL));
            steps.push(Step {
                node,
                in_port,
                decision,
                passes: out.is_some(),
                credited: Counts::default(),
            });
            let Some(next) = out else {
                break;
            };
            path.push(next);
            channel = next;
        }
        let route = network.lay(&path)?;
        let positions = network.positions(route);
        self.hits.extend(positions.end);
        let number = self.free.pop().unwrap_or(self.walks.len() as u32);
        for step in &steps {
            self.through[step.node.index()].insert(number);
            for (_, entry) in &step.decision.entries {
                let users = self.uses.entry((step.node, *entry)).or_default();
                users.insert(number);
            }
        }
        self.known.insert(start, number);
        let flow = start.fields.flow();
        self.by_flow.entry(flow).or_default().insert(number);
        let walk = Some(Walk {
            start,
            route,
            first_position: positions.start,
            steps,
            users: BTreeSet::new(),
        });
        match self.walks.get_mut(number as usize) {
            Some(place) => *place = walk,
            None => self.walks.push(walk),
        }
        Some(number)
    }

    /// A packet is delivered at a switch: what becomes of it, which is counted.
    pub fn arrive(&mut self, at: Nanos, node: NodeId, fields: &Fields, len: u32) -> Decision {
        let Some(switch) = self.switches.get_mut(node.index()).and_then(Option::as_mut) else {
            return Decision::default();
        };
        let decision = switch.decide(fields);
        let counts = Counts {
            packets: 1,
            bytes: u64::from(len),
        };
        switch.credit(&decision, counts, at);
        decision
    }

    /// What becomes of a packet that a controller has actions done with, which is counted.
    pub fn execute(
        &mut self,
        at: Nanos,
        node: NodeId,
        actions: &[Action],
        fields: &Fields,
        len: u32,
    ) -> Decision {
        let Some(switch) = self.switch_mut(node) else {
            return Decision::default();
        };
        let decision = switch.execute(actions, fields);
        let counts = Counts {
            packets: 1,
            bytes: u64::from(len),
        };
        switch.credit(&decision, counts, at);
        decision
    }

    /// Credits entries with what passed on walked ways. To be called before counters are read.
    pub fn settle(&mut self) {
        for number in 0..self.walks.len() as u32 {
            self.settle_walk(number, None);
        }
    }

    fn settle_walk(&mut self, number: u32, only: Option<NodeId>) {
        let Some(walk) = self.walks[number as usize].as_mut() else {
            return;
        };
        for index in 0..walk.steps.len() {
            let hit = self.hits.at(walk.position(index));
            let step = &mut walk.steps[index];
            let here = only.is_none_or(|node| node == step.node);
            if !step.passes || !here || hit.counts == step.credited {
                continue;
            }
            let more = Counts {
                packets: hit.counts.packets - step.credited.packets,
                bytes: hit.counts.bytes - step.credited.bytes,
            };
            step.credited = hit.counts;
            if let Some(switch) = &mut self.switches[step.node.index()] {
                switch.credit(&step.decision, more, hit.last);
            }
        }
    }

    fn retire<B: Clone>(&mut self, network: &mut Network<B>, number: u32) {
        self.settle_walk(number, None);
        let Some(walk) = self.walks[number as usize].take() else {
            return;
        };
        network.cut(walk.route);
        self.free.push(number);
        self.known.remove(&walk.start);
        let flow = walk.start.fields.flow();
        if let Some(alike) = self.by_flow.get_mut(&flow) {
            alike.remove(&number);
            if alike.is_empty() {
                self.by_flow.remove(&flow);
            }
        }
        for step in &walk.steps {
            self.through[step.node.index()].remove(&number);
            for (_, entry) in &step.decision.entries {
                let key = (step.node, *entry);
                if let Some(users) = self.uses.get_mut(&key) {
                    users.remove(&number);
                    if users.is_empty() {
                        self.uses.remove(&key);
                    }
                }
            }
        }
        self.stale.extend(walk.users);
    }

    /// Retires those of some walks for which a switch decides otherwise than it did.
    fn recheck<B: Clone>(
        &mut self,
        network: &mut Network<B>,
        node: NodeId,
        numbers: impl IntoIterator<Item = u32>,
    ) {
        let Some(switch) = self.switch(node) else {
            return;
        };
        let changed = |number: &u32| {
            let walk = self.walks[*number as usize].as_ref();
            walk.is_some_and(|walk| {
                let mut here = walk.steps.iter().filter(|step| step.node == node);
                here.any(|step| switch.decide(&walk.start.fields.at(step.in_port)) != step.decision)
            })
        };
        let changed: Vec<u32> = numbers.into_iter().filter(changed).collect();
        for number in changed {
            self.retire(network, number);
        }
    }

    /// Looks at every walk through a switch again.
    fn recheck_all<B: Clone>(&mut self, network: &mut Network<B>, node: NodeId) {
        let through = self.through.get(node.index()).cloned().unwrap_or_default();
        self.recheck(network, node, through);
    }

    /// Retires the walks that used entries which are gone.
    fn forget<B: Clone>(&mut self, network: &mut Network<B>, node: NodeId, gone: &[EntryId]) {
        for entry in gone {
            for number in self.uses.get(&(node, *entry)).cloned().unwrap_or_default() {
                self.retire(network, number);
            }
        }
        self.note_deadline(node);
    }

    fn switch_mut(&mut self, node: NodeId) -> Option<&mut Switch> {
        self.switches.get_mut(node.index())?.as_mut()
    }

    /// As [`Switch::add`]; at a node that is no switch nothing happens.
    ///
    /// # Errors
    /// As there.
    pub fn add<B: Clone>(
        &mut self,
        network: &mut Network<B>,
        node: NodeId,
        table: u8,
        entry: Entry,
        check_overlap: bool,
    ) -> Result<(), SwitchError> {
        let (matching, now) = (entry.matching, network.now());
        let Some(switch) = self.switch_mut(node) else {
            return Ok(());
        };
        let (_, replaced) = switch.add(table, entry, check_overlap, now)?;
        let gone: Vec<EntryId> = replaced.iter().map(|entry| entry.id).collect();
        self.forget(network, node, &gone);
        match matching.only_flow() {
            Some(flow) => {
                let alike = self.by_flow.get(&flow).cloned().unwrap_or_default();
                self.recheck(network, node, alike);
            }
            None => self.recheck_all(network, node),
        }
        Ok(())
    }

    /// As [`Switch::modify`].
    ///
    /// # Errors
    /// As there.
    pub fn modify<B: Clone>(
        &mut self,
        network: &mut Network<B>,
        node: NodeId,
        table: u8,
        wanted: &Wanted,
        instructions: &Instructions,
        reset_counts: bool,
    ) -> Result<usize, SwitchError> {
        if reset_counts {
            self.settle_matching(node, &wanted.matching);
        }
        let Some(switch) = self.switch_mut(node) else {
            return Ok(0);
        };
        let count = switch.modify(table, wanted, instructions, reset_counts)?;
        self.recheck_all(network, node);
        Ok(count)
    }

    /// As [`Switch::delete`].
    ///
    /// # Errors
    /// As there.
    pub fn delete<B: Clone>(
        &mut self,
        network: &mut Network<B>,
        node: NodeId,
        table: u8,
        wanted: &Wanted,
    ) -> Result<Vec<Removed>, SwitchError> {
        self.settle_matching(node, &wanted.matching);
        let Some(switch) = self.switch_mut(node) else {
            return Ok(Vec::new());
        };
        let gone = switch.delete(table, wanted)?;
        let ids: Vec<EntryId> = gone.iter().map(|removed| removed.entry.id).collect();
        self.forget(network, node, &ids);
        Ok(gone)
    }

    /// What the entry of this match and priority has done; nothing where there is none.
    pub fn done(&mut self, node: NodeId, table: u8, matching: Match, priority: u16) -> Counts {
        let wanted = Wanted::strictly(matching, priority);
        let found = self
            .switch(node)
            .and_then(|it| it.selected(table, &wanted).ok());
        let Some(&id) = found.iter().flatten().next() else {
            return Counts::default();
        };
        self.settle_matching(node, &matching);
        let entry = self.switch(node).and_then(|it| it.get(table, id));
        entry.map_or_else(Counts::default, |entry| entry.counts)
    }

    /// Credits what entries that may go have done, so that it goes with them.
    fn settle_matching(&mut self, node: NodeId, matching: &Match) {
        let walks = match matching.only_flow() {
            Some(flow) => self.by_flow.get(&flow).cloned(),
            None => self.through.get(node.index()).cloned(),
        };
        for number in walks.unwrap_or_default() {
            self.settle_walk(number, Some(node));
        }
    }

    /// As [`Switch::add_group`].
    ///
    /// # Errors
    /// As there.
    pub fn add_group(
        &mut self,
        node: NodeId,
        number: u32,
        group: Group,
    ) -> Result<(), SwitchError> {
        let switch = self.switch_mut(node);
        switch.map_or(Ok(()), |switch| switch.add_group(number, group))
    }

    /// As [`Switch::modify_group`].
    ///
    /// # Errors
    /// As there.
    pub fn modify_group<B: Clone>(
        &mut self,
        network: &mut Network<B>,
        node: NodeId,
        number: u32,
        group: Group,
    ) -> Result<(), SwitchError> {
        let Some(switch) = self.switch_mut(node) else {
            return Ok(());
        };
        switch.modify_group(number, group)?;
        self.recheck_all(network, node);
        Ok(())
    }

    /// As [`Switch::delete_group`].
    pub fn delete_group<B: Clone>(
        &mut self,
        network: &mut Network<B>,
        node: NodeId,
        number: u32,
    ) -> Vec<Removed> {
        self.settle_matching(node, &Match::any());
        let switch = self.switch_mut(node);
        let gone = switch.map_or_else(Vec::new, |switch| switch.delete_group(number));
        let ids: Vec<EntryId> = gone.iter().map(|removed| removed.entry.id).collect();
        self.forget(network, node, &ids);
        gone
    }

    /// A channel's state has changed: ports are up where both directions of their link are. Gives the ports of switches that changed.
    pub fn link_changed<B: Clone>(
        &mut self,
        network: &mut Network<B>,
        channel: ChannelId,
    ) -> Vec<(NodeId, u32, bool)> {
        let both = [channel, network.topology().opposite(channel)];
        let up = both
            .iter()
            .all(|channel| network.config(*channel).is_ok_and(ChannelConfig::works));
        let Some((from, to)) = network.topology().ends(channel) else {
            return Vec::new();
        };
        let mut changed = Vec::new();
        for interface in [from, to] {
            let Ok(node) = network.topology().node_of(interface) else {
                continue;
            };
            let port = self.port(interface);
            let switch = self.switch_mut(node);
            if switch.is_some_and(|switch| switch.set_port(port, up)) {
                self.recheck_all(network, node);
                changed.push((node, port, up));
            }
        }
        changed
    }

    /// When entries are to be looked at by [`Fabric::expire`].
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    fn note_deadline(&mut self, node: NodeId) {
        let next = self.switch(node).and_then(Switch::next_deadline);
        let Some(known) = self.deadline.get_mut(node.index()) else {
            return;
        };
        if *known != next {
            if let Some(at) = known {
                self.deadlines.remove(&(*at, node));
            }
            self.deadlines.extend(next.map(|at| (at, node)));
            *known = next;
        }
    }

    /// Removes the entries that have outlived their timeouts.
    pub fn expire<B: Clone>(&mut self, network: &mut Network<B>) -> Vec<(NodeId, Removed)> {
        let now = network.now();
        let mut all = Vec::new();
        while let Some(&(_, node)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
            let due = self.switch(node).map_or_else(Vec::new, |it| it.due(now));
            for (_, entry) in due {
                for number in self.uses.get(&(node, entry)).cloned().unwrap_or_default() {
                    self.settle_walk(number, Some(node));
                }
            }
            let switch = self.switch_mut(node);
            let gone = switch.map_or_else(Vec::new, |switch| switch.expire(now));
            let ids: Vec<EntryId> = gone.iter().map(|removed| removed.entry.id).collect();
            self.forget(network, node, &ids);
            all.extend(gone.into_iter().map(|removed| (node, removed)));
        }
        all
    }
}

//! A bridge's filtering database and relay (IEEE 802.1D-2004 clauses 7.7 to 7.9) as two flow tables.
//!
//! The first table knows the port behind which each address is heard, and what each port may do. The second knows the
//! port by which a frame to an address leaves.

use std::collections::BTreeMap;

use polypath_net::{Nanos, Network, NodeId};
use polypath_switch::spanning_tree::State;
use polypath_switch::{
    Action, Bucket, Entry, Fabric, Fields, Group, GroupKind, Instructions, Match, Removed, Switch,
    SwitchError, Timeouts, Wanted,
};
use polypath_wire::bpdu::GROUP_ADDRESS;

use crate::flow::Body;

const INGRESS: u8 = 0;
const FILTERING: u8 = 1;
/// Out by every port that forwards.
const FLOOD: u32 = 1;

const MISS: u16 = 0;
const HEARD: u16 = 1;
const BLOCKED: u16 = 2;
const RESERVED: u16 = 3;
/// All bits of an Ethernet address.
const ADDRESS: u64 = 0xffff_ffff_ffff;
/// Those that the reserved addresses have alike (clause 7.12.6, table 7-10).
const RESERVED_BITS: u64 = ADDRESS & !0xf;

/// What the relay of one bridge does with frames.
#[derive(Debug)]
pub(crate) struct Relay {
    node: NodeId,
    ageing: Nanos,
    /// By port, from 1 on.
    states: BTreeMap<u32, State>,
    /// The port of each address.
    stations: BTreeMap<u64, u32>,
    pub learned: u64,
    pub flushed: u64,
    pub most_stations: usize,
}

fn to(address: u64, mask: u64) -> Match {
    let value = Fields::default().between(0, address);
    Match::new(&value, &Fields::default().between(0, mask))
}

fn heard(port: u32, address: u64) -> Match {
    let value = Fields::default().between(address, 0);
    Match::new(&value, &Fields::default().between(ADDRESS, 0)).in_port(port)
}

/// An Ethernet address as the tables have it.
pub(super) fn number(address: [u8; 6]) -> u64 {
    address
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

impl Relay {
    /// A relay all of whose ports discard.
    pub fn new(
        node: NodeId,
        ageing: Nanos,
        fabric: &mut Fabric,
        network: &mut Network<Body>,
    ) -> Result<Self, SwitchError> {
        let ports = fabric.switch(node).into_iter().flat_map(Switch::ports);
        let states = ports.map(|(port, _)| (port, State::Discarding)).collect();
        let relay = Self {
            node,
            ageing,
            states,
            stations: BTreeMap::new(),
            learned: 0,
            flushed: 0,
            most_stations: 0,
        };
        fabric.add_group(node, FLOOD, relay.flood())?;
        let local = Instructions::controller();
        let reserved = to(number(GROUP_ADDRESS), RESERVED_BITS);
        let mut add = |table, matching, priority, instructions| {
            let entry = Switch::entry(matching, priority, instructions);
            fabric.add(network, node, table, entry, false)
        };
        add(INGRESS, reserved, RESERVED, local.clone())?;
        add(INGRESS, Match::any(), MISS, local)?;
        let flood = Instructions::apply(&[Action::Group(FLOOD)]);
        add(FILTERING, Match::any(), MISS, flood)?;
        let ports: Vec<u32> = relay.states.keys().copied().collect();
        for port in ports {
            let blocked = Match::any().in_port(port);
            add(INGRESS, blocked, BLOCKED, Instructions::default())?;
        }
        Ok(relay)
    }

    fn flood(&self) -> Group {
        let forwarding = self.states.iter();
        let forwarding = forwarding.filter(|(_, state)| **state == State::Forwarding);
        Group {
            kind: GroupKind::All,
            buckets: forwarding.map(|(port, _)| Bucket::out(*port, 1)).collect(),
        }
    }

    /// A port's state is another (clause 7.4).
    pub fn set_state(
        &mut self,
        port: u32,
        state: State,
        fabric: &mut Fabric,
        network: &mut Network<Body>,
    ) -> Result<(), SwitchError> {
        let before = self.states.insert(port, state).unwrap_or_default();
        if before == state {
            return Ok(());
        }
        let node = self.node;
        let blocked = Match::any().in_port(port);
        if before == State::Discarding {
            let wanted = Wanted::strictly(blocked, BLOCKED);
            fabric.delete(network, node, INGRESS, &wanted)?;
        } else if state == State::Discarding {
            let entry = Switch::entry(blocked, BLOCKED, Instructions::default());
            fabric.add(network, node, INGRESS, entry, false)?;
        }
        let wanted = Wanted::included(blocked);
        if state != State::Discarding {
            let forward = onward(state);
            fabric.modify(network, node, INGRESS, &wanted, &forward, false)?;
        }
        fabric.modify_group(network, node, FLOOD, self.flood())
    }

    /// The learning process (clause 7.8): a frame from this address came in by this port. False: it is not learned.
    pub fn learn(
        &mut self,
        port: u32,
        address: u64,
        fabric: &mut Fabric,
        network: &mut Network<Body>,
    ) -> Result<bool, SwitchError> {
        let state = self.states.get(&port).copied().unwrap_or_default();
        // An address of one station, and a port that is to learn.
        if state == State::Discarding || address == 0 || address >> 40 & 1 == 1 {
            return Ok(false);
        }
        let before = self.stations.insert(address, port);
        if before == Some(port) {
            return Ok(false);
        }
        let node = self.node;
        if let Some(before) = before {
            let wanted = Wanted::strictly(heard(before, address), HEARD);
            fabric.delete(network, node, INGRESS, &wanted)?;
        }
        let entry = Switch::entry(to(address, ADDRESS), HEARD, Instructions::out(port));
        fabric.add(network, node, FILTERING, entry, false)?;
        // Clause 7.9.2: it goes when no frame came from there for the ageing time.
        let entry = Entry {
            timeouts: Timeouts {
                idle: Some(self.ageing),
                hard: None,
            },
            ..Switch::entry(heard(port, address), HEARD, onward(state))
        };
        fabric.add(network, node, INGRESS, entry, false)?;
        self.learned += 1;
        self.most_stations = self.most_stations.max(self.stations.len());
        Ok(true)
    }

    /// All that was learned by a port goes.
    pub fn flush(
        &mut self,
        port: u32,
        fabric: &mut Fabric,
        network: &mut Network<Body>,
    ) -> Result<(), SwitchError> {
        let gone: Vec<u64> = self
            .stations
            .iter()
            .filter_map(|(address, at)| (*at == port).then_some(*address))
            .collect();
        for address in gone {
            let wanted = Wanted::strictly(heard(port, address), HEARD);
            fabric.delete(network, self.node, INGRESS, &wanted)?;
            self.forget(address, fabric, network)?;
            self.flushed += 1;
        }
        Ok(())
    }

    /// An entry has aged.
    pub fn expired(
        &mut self,
        removed: &Removed,
        fabric: &mut Fabric,
        network: &mut Network<Body>,
    ) -> Result<(), SwitchError> {
        let address = removed.entry.matching.value().ethernet_source;
        if removed.table != INGRESS || !self.stations.contains_key(&address) {
            return Ok(());
        }
        self.forget(address, fabric, network)
    }

    fn forget(
        &mut self,
        address: u64,
        fabric: &mut Fabric,
        network: &mut Network<Body>,
    ) -> Result<(), SwitchError> {
        self.stations.remove(&address);
        let wanted = Wanted::strictly(to(address, ADDRESS), HEARD);
        fabric.delete(network, self.node, FILTERING, &wanted)?;
        Ok(())
    }

    /// Addresses that it knows.
    pub fn stations(&self) -> usize {
        self.stations.len()
    }
}

/// What becomes of frames from a known address at a port in this state.
fn onward(state: State) -> Instructions {
    Instructions {
        goto: (state == State::Forwarding).then_some(FILTERING),
        ..Instructions::default()
    }
}

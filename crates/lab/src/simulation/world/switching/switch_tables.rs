//! The recording's tables on switches and their controller.

use polypath_switch::spanning_tree::{Role, State};
use polypath_trace::{
    BridgeEndRow, BridgePortRow, FlowSetupRow, Recording, SwitchEndRow, SwitchRow,
};
use polypath_transport::Nanos;

use super::{Mind, Switching};
use crate::bridging::Bridges;
use crate::plan::Plan;

impl Switching {
    /// One row for each switch. A second sample at the same instant takes the place of the first.
    pub fn sample(&mut self, now: Nanos, recording: &mut Recording) {
        if let Mind::Bridges(_) = &self.mind {
            return;
        }
        let table = &mut recording.switches;
        if let Some((at, begin)) = self.last_sample
            && at == now
        {
            table.remove(begin..table.len());
        }
        self.last_sample = Some((now, table.len()));
        for (node, switch) in self.fabric.switches() {
            let tally = self.tallies.get(&node).copied().unwrap_or_default();
            table.push(SwitchRow {
                time_ns: now as i64,
                switch: node.0,
                entries: switch.entries() as u64,
                packet_ins: tally.packet_ins,
                packet_outs: tally.packet_outs,
                flow_mods: tally.flow_mods,
            });
        }
    }

    /// The totals of the switches, and how flows were set up.
    pub fn ends(&self, plan: &Plan, recording: &mut Recording) {
        if let Mind::Bridges(bridges) = &self.mind {
            return self.bridge_ends(bridges, plan, recording);
        }
        for (node, switch) in self.fabric.switches() {
            let tally = self.tallies.get(&node).copied().unwrap_or_default();
            recording.switch_ends.push(SwitchEndRow {
                switch: node.0,
                name: plan.nodes[node.index()].name.clone().into(),
                entries: switch.entries() as u64,
                max_entries: switch.most_entries() as u64,
                packet_ins: tally.packet_ins,
                packet_outs: tally.packet_outs,
                flow_mods: tally.flow_mods,
                group_mods: tally.group_mods,
                flows_removed: tally.flows_removed,
                port_statuses: tally.port_statuses,
                dropped_packets: tally.dropped,
                ttl_exceeded_packets: tally.expired,
                errors: tally.errors,
            });
        }
        for setup in &self.setups {
            recording.flow_setups.push(FlowSetupRow {
                time_ns: setup.at as i64,
                switch: setup.node.0,
                source: setup.source.ip().to_string().into(),
                source_port: setup.source.port().into(),
                destination: setup.destination.ip().to_string().into(),
                destination_port: setup.destination.port().into(),
                protocol: setup.protocol.into(),
                packet_ins: setup.packet_ins,
                delay_ns: setup.delay.map(|delay| delay as i64),
            });
        }
    }

    /// What became of bridges' ports, and their totals.
    fn bridge_ends(&self, bridges: &Bridges, plan: &Plan, recording: &mut Recording) {
        for taken in &bridges.taken {
            let interfaces = &plan.nodes[taken.node.index()].interfaces;
            let interface = &interfaces[taken.port as usize - 1];
            recording.bridge_ports.push(BridgePortRow {
                time_ns: taken.at as i64,
                switch: taken.node.0,
                port: taken.port,
                interface: interface.name.clone().into(),
                role: role(taken.role).into(),
                state: state(taken.state).into(),
            });
        }
        for (node, _) in self.fabric.switches() {
            let tally = self.tallies.get(&node).copied().unwrap_or_default();
            let Some((relay, root)) = bridges.at(node) else {
                continue;
            };
            recording.bridge_ends.push(BridgeEndRow {
                switch: node.0,
                name: plan.nodes[node.index()].name.clone().into(),
                root,
                addresses: relay.stations() as u64,
                max_addresses: relay.most_stations as u64,
                learned: relay.learned,
                flushed: relay.flushed,
                bpdus_sent: tally.bpdus_sent,
                bpdus_received: tally.bpdus_received,
                flooded_packets: tally.copied,
                dropped_packets: tally.dropped,
                ttl_exceeded_packets: tally.expired,
            });
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Disabled => "disabled",
        Role::Root => "root",
        Role::Designated => "designated",
        Role::Alternate => "alternate",
        Role::Backup => "backup",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Discarding => "discarding",
        State::Learning => "learning",
        State::Forwarding => "forwarding",
    }
}

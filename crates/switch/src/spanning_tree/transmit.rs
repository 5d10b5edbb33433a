//! Port Transmit (clause 17.26): when a port sends a BPDU, and its content.

use polypath_wire::bpdu::{Bpdu, Flags, Message, PortRole};

use super::{Bridge, Output, Role, SECOND};

impl Bridge {
    pub(super) fn transmit(&mut self, number: usize) -> bool {
        let (now, hello) = (self.now, self.delay(self.settings.hello_time));
        let hold_count = self.settings.hold_count;
        let port = &mut self.ports[number];
        if !port.enabled || !port.selected || port.update {
            return false;
        }
        let designated = port.role == Role::Designated;
        let root = port.role == Role::Root;
        // `TRANSMIT_PERIODIC`
        if port.hello_when <= now {
            port.new_info |= designated || (root && port.tc_while > now);
            port.hello_when = hello;
        }
        if !port.new_info || port.tx_count >= hold_count {
            return false;
        }
        let rapid = port.send_rapid;
        if !rapid && !designated && !root {
            return false;
        }
        port.new_info = false;
        port.tx_count += 1;
        port.hello_when = hello;
        let bpdu = match (rapid, designated) {
            (true, _) => Bpdu::Rapid(self.message(number)),
            (false, true) => Bpdu::Configuration(self.message(number)),
            (false, false) => Bpdu::TopologyChange,
        };
        self.ports[number].tc_ack = false;
        self.tick = self.tick.or(Some((now / SECOND + 1) * SECOND));
        let port = number as u32 + 1;
        self.outputs.push(Output::Send { port, bpdu });
        true
    }

    /// Clauses 17.21.19 and 17.21.20, txConfig and txRstp.
    fn message(&self, number: usize) -> Message {
        let port = &self.ports[number];
        let priority = self.designated_priority(number);
        let classic = !port.send_rapid;
        Message {
            flags: Flags {
                topology_change: port.tc_while > self.now,
                proposal: port.proposing,
                role: match port.role {
                    Role::Disabled => PortRole::Unknown,
                    Role::Root => PortRole::Root,
                    Role::Designated => PortRole::Designated,
                    Role::Alternate | Role::Backup => PortRole::AlternateOrBackup,
                },
                learning: port.learning,
                forwarding: port.forwarding,
                agreement: port.agree,
                acknowledgment: classic && port.tc_ack,
            },
            root: priority.root,
            root_path_cost: priority.cost,
            bridge: priority.bridge,
            port: priority.bridge_port,
            times: self.designated_times(),
        }
    }
}

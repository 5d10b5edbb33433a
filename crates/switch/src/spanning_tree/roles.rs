//! Port Role Selection (clause 17.28): the root, the path to it, and the role of each port.

use polypath_wire::bpdu::Times;

use super::port::Info;
use super::{Bridge, Role, SECOND_OF_TIMES, Vector};

impl Bridge {
    pub(super) fn select_roles(&mut self) -> bool {
        if !self.ports.iter().any(|port| port.reselect) {
            return false;
        }
        for port in &mut self.ports {
            port.reselect = false;
        }
        self.update_roles();
        for port in &mut self.ports {
            port.selected = true;
        }
        true
    }

    /// Clause 17.21.25, updtRolesTree.
    pub(super) fn update_roles(&mut self) {
        let own = Vector {
            root: self.id,
            cost: 0,
            bridge: self.id,
            bridge_port: 0,
            port: 0,
        };
        let mut best = (own, None);
        for (number, port) in self.ports.iter().enumerate() {
            let heard = self.is_received(number) && port.priority.bridge.address != self.id.address;
            let path = Vector {
                cost: port.priority.cost.saturating_add(port.settings.path_cost),
                ..port.priority
            };
            if heard && path < best.0 {
                best = (path, Some(number));
            }
        }
        let (priority, root_port) = best;
        self.root_priority = priority;
        self.root_port = root_port.map_or(0, |number| self.ports[number].id);
        self.root_times = match root_port {
            None => Times {
                message_age: 0,
                max_age: self.settings.max_age,
                hello_time: self.settings.hello_time,
                forward_delay: self.settings.forward_delay,
            },
            Some(number) => {
                let times = self.ports[number].times;
                let age = times.message_age.saturating_add(SECOND_OF_TIMES);
                // "Rounded to the nearest whole second."
                let age = age.saturating_add(SECOND_OF_TIMES / 2) / SECOND_OF_TIMES;
                Times {
                    message_age: age.saturating_mul(SECOND_OF_TIMES),
                    ..times
                }
            }
        };
        let times = self.designated_times();
        for number in 0..self.ports.len() {
            let designated = self.designated_priority(number);
            let id = self.id;
            let port = &mut self.ports[number];
            let (role, update) = match port.info {
                Info::Disabled => (Role::Disabled, port.update),
                Info::Aged => (Role::Designated, true),
                Info::Mine => {
                    let differs = port.priority != designated || port.times != times;
                    (Role::Designated, port.update || differs)
                }
                Info::Received if root_port == Some(number) => (Role::Root, false),
                Info::Received if designated < port.priority => (Role::Designated, true),
                Info::Received if port.priority.bridge.address == id.address => {
                    (Role::Backup, false)
                }
                Info::Received => (Role::Alternate, false),
            };
            (port.selected_role, port.update) = (role, update);
        }
    }
}

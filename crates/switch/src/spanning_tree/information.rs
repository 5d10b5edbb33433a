//! Port Information (clause 17.27): what a port holds about its link, and where that comes from.

use polypath_wire::bpdu::{PortRole, Times};

use super::port::{Info, Received};
use super::{Bridge, SECOND_OF_TIMES, Vector, nanos};

/// What a BPDU is to the port that received it (clause 17.21.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    SuperiorDesignated,
    RepeatedDesignated,
    InferiorDesignated,
    InferiorRootAlternate,
    Other,
}

impl Bridge {
    pub(super) fn inform(&mut self, number: usize) -> bool {
        let now = self.now;
        let port = &mut self.ports[number];
        if !port.enabled {
            port.message = None;
            if port.info == Info::Disabled {
                return false;
            }
            (port.proposing, port.proposed) = (false, false);
            (port.agree, port.agreed) = (false, false);
            port.received_info_while = now;
            port.info = Info::Disabled;
            (port.reselect, port.selected) = (true, false);
            return true;
        }
        if port.selected && port.update {
            self.update(number);
            return true;
        }
        let port = &mut self.ports[number];
        let aged = port.info == Info::Received && port.received_info_while <= now;
        if port.info == Info::Disabled || (aged && !port.update && port.message.is_none()) {
            port.info = Info::Aged;
            (port.reselect, port.selected) = (true, false);
            return true;
        }
        if port.update || port.info == Info::Aged {
            return false;
        }
        let Some(received) = port.message.take() else {
            return false;
        };
        self.look_at(number, &received);
        true
    }

    /// `UPDATE`: the link is this bridge's.
    fn update(&mut self, number: usize) {
        let (priority, times) = (self.designated_priority(number), self.designated_times());
        let port = &mut self.ports[number];
        (port.proposing, port.proposed) = (false, false);
        let no_worse = port.info == Info::Mine && priority <= port.priority;
        port.agreed &= no_worse;
        port.synced &= port.agreed;
        (port.priority, port.times) = (priority, times);
        port.update = false;
        port.info = Info::Mine;
        port.new_info = true;
    }

    fn look_at(&mut self, number: usize, received: &Received) {
        let (kind, vector) = self.kind(number, received);
        let rapid = self.settings.rapid;
        let port = &mut self.ports[number];
        let Some(message) = received.message else {
            port.received_tcn = true;
            return;
        };
        // Clause 17.21.17, setTcFlags.
        let tc = message.flags.topology_change;
        let tc_ack = message.flags.acknowledgment && !received.rapid;
        // Clause 17.21.9, recordAgreement.
        let agreement = rapid && received.rapid && message.flags.agreement;
        let proposal = received.rapid && message.flags.proposal;
        match kind {
            Kind::SuperiorDesignated => {
                (port.agreed, port.proposing) = (false, false);
                port.proposed |= proposal;
                port.received_tc |= tc;
                port.received_tc_ack |= tc_ack;
                port.agree &= port.info == Info::Received && vector <= port.priority;
                port.priority = vector;
                port.times = message.times;
                port.times.hello_time = port.times.hello_time.max(SECOND_OF_TIMES);
                self.update_received_info_while(number);
                let port = &mut self.ports[number];
                port.info = Info::Received;
                (port.reselect, port.selected) = (true, false);
            }
            Kind::RepeatedDesignated => {
                port.proposed |= proposal;
                port.received_tc |= tc;
                port.received_tc_ack |= tc_ack;
                port.agreed = agreement;
                port.proposing &= !agreement;
                self.update_received_info_while(number);
            }
            // Clause 17.21.10, recordDispute: the other port forwards though it should not.
            Kind::InferiorDesignated => {
                if received.rapid && message.flags.learning {
                    port.disputed = true;
                    port.agreed = false;
                }
            }
            Kind::InferiorRootAlternate => {
                port.agreed = agreement;
                port.proposing &= !agreement;
                port.received_tc |= tc;
                port.received_tc_ack |= tc_ack;
            }
            Kind::Other => {}
        }
    }

    /// Clause 17.21.8, rcvInfo, and the message's priority vector as the port sees it.
    fn kind(&self, number: usize, received: &Received) -> (Kind, Vector) {
        let port = &self.ports[number];
        let Some(message) = received.message else {
            return (Kind::Other, Vector::default());
        };
        let vector = Vector {
            root: message.root,
            cost: message.root_path_cost,
            bridge: message.bridge,
            bridge_port: message.port,
            port: port.id,
        };
        let role = match received.rapid {
            true => message.flags.role,
            false => PortRole::Designated,
        };
        let kind = match role {
            PortRole::Designated => {
                // Clause 17.6: what the designated port of the link says now takes the place of what it said.
                let same_port = vector.bridge.address == port.priority.bridge.address
                    && vector.bridge_port & 0x0fff == port.priority.bridge_port & 0x0fff;
                let same_times = same(&message.times, &port.times);
                if vector < port.priority || (vector != port.priority && same_port) {
                    Kind::SuperiorDesignated
                } else if vector != port.priority {
                    Kind::InferiorDesignated
                } else if !same_times {
                    Kind::SuperiorDesignated
                } else if port.info == Info::Received {
                    Kind::RepeatedDesignated
                } else {
                    Kind::InferiorDesignated
                }
            }
            PortRole::Root | PortRole::AlternateOrBackup if vector >= port.priority => {
                Kind::InferiorRootAlternate
            }
            _ => Kind::Other,
        };
        (kind, vector)
    }

    /// Clause 17.21.23: information counts for three hello times, unless it comes from too far.
    fn update_received_info_while(&mut self, number: usize) {
        let times = self.ports[number].times;
        let age = times.message_age.saturating_add(SECOND_OF_TIMES);
        let stays = match age <= times.max_age {
            true => 3 * nanos(times.hello_time),
            false => 0,
        };
        self.ports[number].received_info_while = self.now + stays;
    }
}

/// Whether a message's times are those that a port has recorded.
fn same(message: &Times, port: &Times) -> bool {
    let hello_time = message.hello_time.max(SECOND_OF_TIMES);
    Times {
        hello_time,
        ..*message
    } == *port
}

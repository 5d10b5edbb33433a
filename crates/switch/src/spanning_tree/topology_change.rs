//! Topology Change (clause 17.31): when learned addresses are out of date.

use polypath_net::Nanos;

use super::port::Change;
use super::{Bridge, Output, Role, SECOND, nanos};

impl Bridge {
    pub(super) fn note_change(&mut self, number: usize) -> bool {
        let port = &mut self.ports[number];
        let in_tree = matches!(port.role, Role::Root | Role::Designated);
        match port.change {
            Change::Inactive => {
                if port.learn {
                    port.change = Change::Learning;
                    port.forget_change();
                }
                port.learn
            }
            Change::Learning => {
                if in_tree && port.forward && !port.oper_edge {
                    // `DETECTED`
                    self.new_tc_while(number);
                    self.set_tc_prop(number);
                    self.ports[number].new_info = true;
                    self.ports[number].change = Change::Active;
                    return true;
                }
                let heard =
                    port.received_tc || port.received_tcn || port.received_tc_ack || port.tc_prop;
                if heard {
                    port.forget_change();
                    return true;
                }
                if !in_tree && !port.learn && !port.learning {
                    // `INACTIVE`
                    port.change = Change::Inactive;
                    port.tc_while = self.now;
                    port.tc_ack = false;
                    self.flush(number);
                    return true;
                }
                false
            }
            Change::Active => self.active(number, in_tree),
        }
    }

    fn active(&mut self, number: usize, in_tree: bool) -> bool {
        let port = &mut self.ports[number];
        if !in_tree || port.oper_edge {
            port.change = Change::Learning;
            port.forget_change();
            return true;
        }
        // `NOTIFIED_TCN`, `NOTIFIED_TC`
        if port.received_tcn || port.received_tc {
            if port.received_tcn {
                self.new_tc_while(number);
            }
            let port = &mut self.ports[number];
            (port.received_tcn, port.received_tc) = (false, false);
            if port.role == Role::Designated {
                port.tc_ack = true;
            }
            self.set_tc_prop(number);
            return true;
        }
        // `PROPAGATING`
        if port.tc_prop {
            port.tc_prop = false;
            self.new_tc_while(number);
            self.flush(number);
            return true;
        }
        // `ACKNOWLEDGED`
        if port.received_tc_ack {
            port.tc_while = self.now;
            port.received_tc_ack = false;
            return true;
        }
        false
    }

    /// Clause 17.21.7, newTcWhile.
    fn new_tc_while(&mut self, number: usize) {
        let settings = &self.settings;
        let port = &mut self.ports[number];
        if port.tc_while > self.now {
            return;
        }
        if port.send_rapid {
            port.tc_while = self.now + nanos(settings.hello_time) + SECOND;
            port.new_info = true;
        } else {
            let long: Nanos = nanos(settings.max_age) + nanos(settings.forward_delay);
            port.tc_while = self.now + long;
        }
    }

    /// Clause 17.21.18, setTcPropTree.
    fn set_tc_prop(&mut self, number: usize) {
        for (at, port) in self.ports.iter_mut().enumerate() {
            port.tc_prop |= at != number;
        }
    }

    fn flush(&mut self, number: usize) {
        self.outputs.push(Output::Flush {
            port: number as u32 + 1,
        });
    }
}

impl super::port::Port {
    fn forget_change(&mut self) {
        self.received_tc = false;
        self.received_tcn = false;
        self.received_tc_ack = false;
        self.tc_prop = false;
    }
}

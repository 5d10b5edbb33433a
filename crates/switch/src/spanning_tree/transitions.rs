//! Port Role Transitions (clause 17.29): how a port changes roles without a temporary loop.

use super::port::Transition;
use super::{Bridge, MIGRATE_TIME, Role};

impl Bridge {
    pub(super) fn change_role(&mut self, number: usize) -> bool {
        let port = &self.ports[number];
        if !port.selected || port.update {
            return false;
        }
        if port.transition == Transition::Stopping {
            return self.stop(number);
        }
        if port.role != port.selected_role {
            self.take_role(number);
            return true;
        }
        match port.transition {
            Transition::Stopping => false,
            Transition::Disabled => self.rest(number),
            Transition::Root => self.as_root(number),
            Transition::Designated => self.as_designated(number),
            Transition::Blocked => self.as_blocked(number),
        }
    }

    fn take_role(&mut self, number: usize) {
        let now = self.now;
        let port = &mut self.ports[number];
        port.role = port.selected_role;
        port.transition = match port.role {
            Role::Root => Transition::Root,
            Role::Designated => Transition::Designated,
            Role::Disabled | Role::Alternate | Role::Backup => {
                (port.learn, port.forward) = (false, false);
                Transition::Stopping
            }
        };
        port.hold_timers(now, &self.settings);
    }

    /// `DISABLE_PORT` and `BLOCK_PORT`.
    fn stop(&mut self, number: usize) -> bool {
        let now = self.now;
        let port = &mut self.ports[number];
        if port.role != port.selected_role {
            self.take_role(number);
            return true;
        }
        if port.learning || port.forwarding {
            return false;
        }
        port.transition = match port.role {
            Role::Disabled => Transition::Disabled,
            _ => Transition::Blocked,
        };
        port.hold_timers(now, &self.settings);
        self.rest(number);
        true
    }

    /// `DISABLED_PORT` and `ALTERNATE_PORT`.
    fn rest(&mut self, number: usize) -> bool {
        let port = &mut self.ports[number];
        let moved = port.sync || port.re_root || !port.synced;
        port.synced = true;
        port.rr_while = self.now;
        (port.sync, port.re_root) = (false, false);
        moved
    }

    /// Clauses 17.21.1 and 17.20.3, allSynced: every other port does as this bridge's role asks.
    fn all_synced(&self, number: usize) -> bool {
        let settled =
            |port: &super::Port| port.selected && port.role == port.selected_role && !port.update;
        self.ports.iter().all(settled)
            && self.all_others(number, |port| port.role == Role::Root || port.synced)
    }

    /// Clause 17.21.14, setSyncTree.
    fn set_sync(&mut self) {
        for port in &mut self.ports {
            port.sync = true;
        }
    }

    fn as_root(&mut self, number: usize) -> bool {
        let (now, rapid) = (self.now, self.settings.rapid);
        let others_synced = self.all_synced(number);
        // Clause 17.20.9, reRooted: no other port was root until just now.
        let re_rooted = self.all_others(number, |port| port.rr_while <= now);
        let times = self.designated_times();
        let port = &mut self.ports[number];
        // `ROOT_PROPOSED`
        if port.proposed && !port.agree {
            port.proposed = false;
            self.set_sync();
            return true;
        }
        // `ROOT_AGREED`
        if (others_synced && !port.agree) || (port.proposed && port.agree) {
            (port.proposed, port.sync) = (false, false);
            port.agree = true;
            port.new_info = true;
            return true;
        }
        // `REROOT`
        if !port.forward && !port.re_root {
            for port in &mut self.ports {
                port.re_root = true;
            }
            return true;
        }
        let free = port.fd_while <= now || (re_rooted && port.rb_while <= now && rapid);
        // `ROOT_LEARN`
        if free && !port.learn {
            port.fd_while = now + port.forward_delay(&self.settings, &times);
            port.learn = true;
            return true;
        }
        // `ROOT_FORWARD`
        if free && port.learn && !port.forward {
            port.fd_while = now;
            port.forward = true;
            return true;
        }
        // `REROOTED`
        if port.re_root && port.forward {
            port.re_root = false;
            return true;
        }
        false
    }

    fn as_designated(&mut self, number: usize) -> bool {
        let now = self.now;
        let times = self.designated_times();
        let port = &mut self.ports[number];
        // `DESIGNATED_PROPOSE`
        if !port.forward && !port.agreed && !port.proposing && !port.oper_edge {
            port.proposing = true;
            port.edge_delay_while = now + MIGRATE_TIME;
            port.new_info = true;
            return true;
        }
        // `DESIGNATED_SYNCED`
        let still = !port.learning && !port.forwarding;
        if ((still || port.agreed || port.oper_edge) && !port.synced) || (port.sync && port.synced)
        {
            port.rr_while = now;
            port.synced = true;
            port.sync = false;
            return true;
        }
        // `DESIGNATED_RETIRED`
        if port.rr_while <= now && port.re_root {
            port.re_root = false;
            return true;
        }
        let old_root = port.re_root && port.rr_while > now;
        // `DESIGNATED_DISCARD`
        let unsynced = port.sync && !port.synced;
        if (unsynced || old_root || port.disputed)
            && !port.oper_edge
            && (port.learn || port.forward)
        {
            (port.learn, port.forward, port.disputed) = (false, false, false);
            port.fd_while = now + port.forward_delay(&self.settings, &times);
            return true;
        }
        let free =
            (port.fd_while <= now || port.agreed || port.oper_edge) && !old_root && !port.sync;
        // `DESIGNATED_LEARN`
        if free && !port.learn {
            port.learn = true;
            port.fd_while = now + port.forward_delay(&self.settings, &times);
            return true;
        }
        // `DESIGNATED_FORWARD`
        if free && port.learn && !port.forward {
            port.forward = true;
            port.fd_while = now;
            port.agreed = port.send_rapid;
            return true;
        }
        false
    }

    /// `ALTERNATE_PROPOSED`, `ALTERNATE_AGREED` and `BACKUP_PORT`.
    fn as_blocked(&mut self, number: usize) -> bool {
        let others_synced = self.all_synced(number);
        let port = &mut self.ports[number];
        if port.proposed && !port.agree {
            port.proposed = false;
            self.set_sync();
            return true;
        }
        if (others_synced && !port.agree) || (port.proposed && port.agree) {
            port.proposed = false;
            port.agree = true;
            port.new_info = true;
            return true;
        }
        self.rest(number)
    }
}

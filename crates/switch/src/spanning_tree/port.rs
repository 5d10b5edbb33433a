//! The state of a port (clause 17.19).

use polypath_net::Nanos;
use polypath_wire::bpdu::{Bpdu, BridgeId, Message, Times};

use super::{MIGRATE_TIME, Role, Settings, State, Vector, nanos};

/// How a port is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// 0 to 240 in steps of 16 (clause 9.2.7).
    pub priority: u8,
    /// What a frame that comes in by it pays (clause 17.13.11).
    pub path_cost: u32,
    /// There is no bridge behind it, unless one speaks up (clause 17.13.1).
    pub admin_edge: bool,
}

/// Where a port's information is from (`infoIs`, clause 17.19.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Info {
    Disabled,
    Aged,
    Mine,
    Received,
}

/// What a port's Port Role Transitions machine is at rest in (clause 17.29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// `DISABLE_PORT` and `BLOCK_PORT`: it goes on once it no longer learns and forwards.
    Stopping,
    Disabled,
    Root,
    Designated,
    /// Of alternate and backup ports.
    Blocked,
}

/// What a port's Topology Change machine is at rest in (clause 17.31).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Inactive,
    Learning,
    Active,
}

/// A port. Timers are given as the time at which they run out; one that is past is zero.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub settings: PortSettings,
    /// Priority and number.
    pub id: u16,
    pub enabled: bool,
    pub info: Info,
    pub priority: Vector,
    pub times: Times,
    pub role: Role,
    pub selected_role: Role,
    pub transition: Transition,
    pub change: Change,
    /// What the last BPDU said, until it is looked at.
    pub message: Option<Received>,
    pub agree: bool,
    pub agreed: bool,
    pub disputed: bool,
    pub proposed: bool,
    pub proposing: bool,
    pub selected: bool,
    pub reselect: bool,
    pub update: bool,
    pub sync: bool,
    pub synced: bool,
    pub re_root: bool,
    pub learn: bool,
    pub learning: bool,
    pub forward: bool,
    pub forwarding: bool,
    pub oper_edge: bool,
    pub new_info: bool,
    pub send_rapid: bool,
    pub received_rapid: bool,
    pub received_classic: bool,
    pub received_tc: bool,
    pub received_tcn: bool,
    pub received_tc_ack: bool,
    pub tc_prop: bool,
    pub tc_ack: bool,
    pub tx_count: u32,
    pub edge_delay_while: Nanos,
    pub fd_while: Nanos,
    pub hello_when: Nanos,
    pub mdelay_while: Nanos,
    pub rb_while: Nanos,
    pub received_info_while: Nanos,
    pub rr_while: Nanos,
    pub tc_while: Nanos,
    /// The role and state that the owner knows.
    pub told: (Role, State),
}

/// A BPDU that waits to be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// Absent of a topology change notification.
    pub message: Option<Message>,
    pub rapid: bool,
}

impl Port {
    pub fn new(number: u16, settings: PortSettings, parameters: &Settings, now: Nanos) -> Self {
        Self {
            settings,
            id: u16::from(settings.priority & 0xf0) << 8 | number & 0x0fff,
            enabled: false,
            info: Info::Disabled,
            priority: Vector::default(),
            times: Times::default(),
            role: Role::Disabled,
            selected_role: Role::Disabled,
            transition: Transition::Stopping,
            change: Change::Inactive,
            message: None,
            agree: false,
            agreed: false,
            disputed: false,
            proposed: false,
            proposing: false,
            selected: false,
            reselect: true,
            update: false,
            sync: true,
            synced: false,
            re_root: true,
            learn: false,
            learning: false,
            forward: false,
            forwarding: false,
            oper_edge: settings.admin_edge,
            new_info: true,
            send_rapid: parameters.rapid,
            received_rapid: false,
            received_classic: false,
            received_tc: false,
            received_tcn: false,
            received_tc_ack: false,
            tc_prop: false,
            tc_ack: false,
            tx_count: 0,
            edge_delay_while: now,
            fd_while: now,
            hello_when: now,
            mdelay_while: now,
            rb_while: now,
            received_info_while: now,
            rr_while: now,
            tc_while: now,
            told: (Role::Disabled, State::Discarding),
        }
    }

    pub fn state(&self) -> State {
        match (self.learning, self.forwarding) {
            (_, true) => State::Forwarding,
            (true, false) => State::Learning,
            (false, false) => State::Discarding,
        }
    }

    /// Port Receive (clause 17.23): a BPDU is there for Port Information.
    pub fn accept(&mut self, now: Nanos, bridge: BridgeId, bpdu: &Bpdu) {
        let (message, rapid) = match *bpdu {
            // Clause 9.3.4: too old, or this port's own.
            Bpdu::Configuration(message)
                if message.times.message_age >= message.times.max_age
                    || (message.bridge == bridge && message.port == self.id) =>
            {
                return;
            }
            Bpdu::Configuration(message) => (Some(message), false),
            Bpdu::TopologyChange => (None, false),
            Bpdu::Rapid(message) => (Some(message), true),
        };
        self.received_rapid |= rapid;
        self.received_classic |= !rapid;
        self.oper_edge = false;
        self.edge_delay_while = now + MIGRATE_TIME;
        self.message = Some(Received { message, rapid });
    }

    /// Port State Transition (clause 17.30).
    pub fn change_state(&mut self) -> bool {
        let forward = self.learn && self.forward;
        let moved = (self.learning, self.forwarding) != (self.learn, forward);
        (self.learning, self.forwarding) = (self.learn, forward);
        moved
    }

    /// forwardDelay (clause 17.20.5).
    pub fn forward_delay(&self, settings: &Settings, times: &Times) -> Nanos {
        nanos(match self.send_rapid {
            true => settings.hello_time,
            false => times.forward_delay,
        })
    }

    /// States that set a timer as long as it is not at its full length.
    pub fn hold_timers(&mut self, now: Nanos, settings: &Settings) {
        if !self.enabled {
            self.edge_delay_while = now + MIGRATE_TIME;
        }
        match self.transition {
            Transition::Stopping | Transition::Designated => {}
            Transition::Disabled => self.fd_while = now + nanos(settings.max_age),
            Transition::Root => self.rr_while = now + nanos(settings.forward_delay),
            Transition::Blocked => {
                let times = Times {
                    forward_delay: settings.forward_delay,
                    ..Times::default()
                };
                self.fd_while = now + self.forward_delay(settings, &times);
                if self.role == Role::Backup {
                    self.rb_while = now + 2 * nanos(settings.hello_time);
                }
            }
        }
    }

    /// The timers that run, which are those that no state holds.
    pub fn running(&self) -> impl Iterator<Item = Nanos> {
        let begins = matches!(self.role, Role::Root | Role::Designated) && !self.forward;
        let timers = [
            (self.proposing, self.edge_delay_while),
            (begins, self.fd_while),
            (true, self.hello_when),
            (true, self.mdelay_while),
            (self.role != Role::Backup, self.rb_while),
            (self.info == Info::Received, self.received_info_while),
            (self.transition != Transition::Root, self.rr_while),
            (true, self.tc_while),
        ];
        timers
            .into_iter()
            .filter_map(|(runs, at)| runs.then_some(at))
    }
}

//! The spanning tree protocols of bridges (IEEE 802.1D-2004 clause 17; the clauses below are of that text).
//!
//! A [`Bridge`] has the state machines of one bridge and its ports, under the standard's names. It knows no network and
//! no clock. Its input is the time, the state of ports and the BPDUs that arrive. Its output is BPDUs, the ports that
//! forward, and the ports whose filtering entries go ([`Bridge::take`]).
//!
//! The same machines run the rapid protocol and the classic one. The Force Protocol Version parameter is 0 for the
//! classic one (clause 17.13.4).
//!
//! # What it leaves out
//! Links are point-to-point. Timers run in nanoseconds, while the standard's decrement each second (clause 17.22). The
//! transmission limit is the exception: it does count whole seconds.

mod information;
mod port;
mod roles;
mod topology_change;
mod transitions;
mod transmit;

use polypath_net::Nanos;
use polypath_wire::bpdu::{Bpdu, BridgeId, Times};

pub use port::PortSettings;
use port::{Info, Port};

/// What a port is in the tree (clause 17.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    #[default]
    Disabled,
    Root,
    Designated,
    /// Another way to the root.
    Alternate,
    /// Another way to a link that the bridge itself is designated for.
    Backup,
}

/// What a port does with frames (clause 7.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    #[default]
    Discarding,
    Learning,
    Forwarding,
}

/// The protocol's parameters, which all bridges have alike. Times are in 1/256 s (table 17-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Force Protocol Version 2; false: 0, the classic protocol.
    pub rapid: bool,
    pub hello_time: u16,
    pub max_age: u16,
    pub forward_delay: u16,
    /// BPDUs that a port sends in a second at most (Transmit Hold Count).
    pub hold_count: u32,
}

/// What a bridge wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Sent by a port.
    Send { port: u32, bpdu: Bpdu },
    /// The entries learned at a port go (clause 17.19.7).
    Flush { port: u32 },
    /// A port's role or state is another.
    Port { port: u32, role: Role, state: State },
}

/// A spanning tree priority vector (clause 17.5); the least is the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Vector {
    root: BridgeId,
    cost: u32,
    bridge: BridgeId,
    bridge_port: u16,
    port: u16,
}

const SECOND: Nanos = 1_000_000_000;
/// Migrate Time (table 17-1).
const MIGRATE_TIME: Nanos = 3 * SECOND;
/// One second in the encoding of times.
const SECOND_OF_TIMES: u16 = 256;

/// A time as it is encoded, in nanoseconds.
fn nanos(time: u16) -> Nanos {
    Nanos::from(time) * SECOND / Nanos::from(SECOND_OF_TIMES)
}

/// One bridge's spanning tree entity. Ports are numbered from 1 on.
#[derive(Clone, Debug)]
pub struct Bridge {
    id: BridgeId,
    settings: Settings,
    now: Nanos,
    ports: Vec<Port>,
    root_port: u16,
    root_priority: Vector,
    root_times: Times,
    /// When the transmission counts go down next, while some are above 0.
    tick: Option<Nanos>,
    outputs: Vec<Output>,
}

impl Bridge {
    /// A bridge at a time, with all its ports down.
    pub fn new(id: BridgeId, settings: Settings, ports: &[PortSettings], now: Nanos) -> Self {
        let own = (1..).zip(ports);
        let own = own.map(|(number, port)| Port::new(number, *port, &settings, now));
        let mut bridge = Self {
            id,
            settings,
            now,
            ports: own.collect(),
            root_port: 0,
            root_priority: Vector::default(),
            root_times: Times::default(),
            tick: None,
            outputs: Vec::new(),
        };
        bridge.update_roles();
        bridge.settle();
        // Nothing was learned yet.
        bridge.outputs.clear();
        bridge
    }

    pub fn id(&self) -> BridgeId {
        self.id
    }

    /// The root of the tree as far as this bridge knows.
    pub fn root(&self) -> BridgeId {
        self.root_priority.root
    }

    pub fn root_path_cost(&self) -> u32 {
        self.root_priority.cost
    }

    /// A port's role and state.
    pub fn port(&self, number: u32) -> (Role, State) {
        let port = (number as usize).checked_sub(1);
        let port = port.and_then(|index| self.ports.get(index));
        port.map_or_else(Default::default, |port| (port.role, port.state()))
    }

    /// A port's link comes up or goes down.
    pub fn set_up(&mut self, now: Nanos, number: u32, up: bool) {
        self.now = self.now.max(now);
        if let Some(port) = self.port_mut(number) {
            port.enabled = up;
        }
        self.settle();
    }

    /// A BPDU came by a port.
    pub fn receive(&mut self, now: Nanos, number: u32, bpdu: &Bpdu) {
        self.now = self.now.max(now);
        let (now, id) = (self.now, self.id);
        let Some(port) = self.port_mut(number).filter(|port| port.enabled) else {
            return;
        };
        port.accept(now, id, bpdu);
        self.settle();
    }

    /// Timers ran out.
    pub fn on_time(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        // Clause 17.22: txCount goes down each second.
        while let Some(tick) = self.tick.filter(|tick| *tick <= self.now) {
            for port in &mut self.ports {
                port.tx_count = port.tx_count.saturating_sub(1);
            }
            let left = self.ports.iter().any(|port| port.tx_count > 0);
            self.tick = left.then_some(tick + SECOND);
        }
        self.settle();
    }

    /// When [`Bridge::on_time`] is to be called.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let enabled = self.ports.iter().filter(|port| port.enabled);
        let timers = enabled.flat_map(Port::running);
        timers.filter(|at| *at > self.now).chain(self.tick).min()
    }

    /// What it wants done, in order.
    pub fn take(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outputs)
    }

    fn port_mut(&mut self, number: u32) -> Option<&mut Port> {
        self.ports.get_mut((number as usize).checked_sub(1)?)
    }

    fn delay(&self, time: u16) -> Nanos {
        self.now + nanos(time)
    }

    /// Runs all machines until none moves on. Ports transmit once the tree is as it should be, so that one BPDU says it.
    fn settle(&mut self) {
        self.hold_timers();
        loop {
            while self.step() {}
            let mut sent = false;
            for port in 0..self.ports.len() {
                sent |= self.transmit(port);
            }
            if !sent {
                break;
            }
        }
        for (number, port) in (1..).zip(&mut self.ports) {
            let now = (port.role, port.state());
            if port.told != now {
                port.told = now;
                let (role, state) = now;
                self.outputs.push(Output::Port {
                    port: number,
                    role,
                    state,
                });
            }
        }
    }

    /// One transition of each machine at most. False: none had one.
    fn step(&mut self) -> bool {
        let mut moved = false;
        for port in 0..self.ports.len() {
            moved |= self.migrate(port);
            moved |= self.detect_edge(port);
            moved |= self.inform(port);
        }
        moved |= self.select_roles();
        for port in 0..self.ports.len() {
            moved |= self.change_role(port);
            moved |= self.ports[port].change_state();
            moved |= self.note_change(port);
        }
        moved
    }

    /// Port Protocol Migration (clause 17.24): which protocol a port speaks.
    fn migrate(&mut self, port: usize) -> bool {
        let (now, rapid) = (self.now, self.settings.rapid);
        let port = &mut self.ports[port];
        if !port.enabled {
            (port.send_rapid, port.mdelay_while) = (rapid, now + MIGRATE_TIME);
            (port.received_rapid, port.received_classic) = (false, false);
            return false;
        }
        if port.mdelay_while > now {
            return false;
        }
        let to_rapid = rapid && !port.send_rapid && port.received_rapid;
        let to_classic = port.send_rapid && port.received_classic;
        (port.received_rapid, port.received_classic) = (false, false);
        if to_rapid || to_classic {
            port.send_rapid = to_rapid;
            port.mdelay_while = now + MIGRATE_TIME;
        }
        to_rapid || to_classic
    }

    /// Bridge Detection (clause 17.25): whether there is no bridge behind a port.
    fn detect_edge(&mut self, port: usize) -> bool {
        let now = self.now;
        let port = &mut self.ports[port];
        let alone = port.edge_delay_while <= now && port.send_rapid && port.proposing;
        let edge = match (port.enabled, port.settings.admin_edge) {
            (false, admin_edge) => admin_edge,
            (true, _) => port.oper_edge || alone,
        };
        let moved = port.oper_edge != edge;
        port.oper_edge = edge;
        moved
    }

    /// Timers that a state keeps from running down start anew while the port is in it.
    fn hold_timers(&mut self) {
        for port in &mut self.ports {
            port.hold_timers(self.now, &self.settings);
        }
    }

    /// The priority vector that this bridge gives the link of a port (clause 17.6).
    fn designated_priority(&self, port: usize) -> Vector {
        let id = self.ports[port].id;
        Vector {
            root: self.root_priority.root,
            cost: self.root_priority.cost,
            bridge: self.id,
            bridge_port: id,
            port: id,
        }
    }

    /// What goes with it (clause 17.21.25, e).
    fn designated_times(&self) -> Times {
        Times {
            hello_time: self.settings.hello_time,
            ..self.root_times
        }
    }

    fn all_others(&self, port: usize, what: impl Fn(&Port) -> bool) -> bool {
        let others = self.ports.iter().enumerate();
        others.filter(|(at, _)| *at != port).all(|(_, it)| what(it))
    }

    /// Whether what a port holds is received and not aged.
    fn is_received(&self, port: usize) -> bool {
        self.ports[port].info == Info::Received
    }
}

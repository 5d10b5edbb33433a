//! Applications that run once all packets of an instant are taken in ([`polypath_transport::Connection::run_processes`]).

use polypath_net::TimerId;

use super::Simulation;

/// Endpoints whose applications wait, in the order in which their packets woke them.
pub(super) struct Processes {
    waiting: Vec<usize>,
    timer: TimerId,
}

impl Processes {
    pub fn new(timer: TimerId) -> Self {
        Self {
            waiting: Vec::new(),
            timer,
        }
    }

    pub fn timer(&self) -> TimerId {
        self.timer
    }
}

impl Simulation {
    /// An endpoint took a packet in. True: something else may happen at this instant, and its application runs after that; what the packet
    /// had it send leaves. Otherwise its processes have run.
    #[inline(never)]
    pub(super) fn wait_for_others(&mut self, index: usize) -> bool {
        let now = self.network.now();
        if !self.network.another_now() {
            if let Some(connection) = self.endpoints[index].tcp_mut() {
                connection.run_processes(now);
            }
            return false;
        }
        if !self.processes.waiting.contains(&index) {
            self.processes.waiting.push(index);
            self.network.set_timer(self.processes.timer, now);
        }
        self.tell_events(index);
        self.transmit(index);
        true
    }

    /// All packets of this instant were taken in.
    pub(super) fn run_processes(&mut self) {
        let now = self.network.now();
        let mut waiting = std::mem::take(&mut self.processes.waiting);
        for index in waiting.drain(..) {
            if let Some(connection) = self.endpoints[index].tcp_mut() {
                connection.run_processes(now);
            }
            self.follow_up(index);
        }
        self.processes.waiting = waiting;
    }
}

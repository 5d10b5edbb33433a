//! Applications that run once all packets of an instant are taken in ([`polypath_transport::Connection::run_processes`]).

use super::Simulation;

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
        if self.processes.wait(index) {
            self.network.set_timer(self.processes.timer(), now);
        }
        self.tell_events(index);
        self.transmit(index);
        true
    }

    /// All packets of this instant were taken in.
    pub(super) fn run_processes(&mut self) {
        let now = self.network.now();
        let mut waiting = self.processes.take();
        for index in waiting.drain(..) {
            if let Some(connection) = self.endpoints[index].tcp_mut() {
                connection.run_processes(now);
            }
            self.follow_up(index);
        }
        self.processes.put_back(waiting);
    }
}

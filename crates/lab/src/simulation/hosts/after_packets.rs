//! Applications that run once all packets of an instant are taken in ([`polypath_transport::Connection::run_processes`]).

use super::Hosts;
use crate::simulation::world::World;

impl Hosts {
    /// An endpoint took a packet in. True: something else may happen at this instant, and its application runs after that; what the packet
    /// had it send leaves. Otherwise its processes have run.
    #[inline(never)]
    pub(super) fn wait_for_others(&mut self, world: &mut World, index: usize) -> bool {
        let now = world.net.now();
        if !world.net.another_now() {
            if let Some(connection) = self.endpoints[index].tcp_mut() {
                connection.run_processes(now);
            }
            return false;
        }
        if self.processes.wait(index) {
            world.net.set_timer(self.processes.timer(), now);
        }
        self.tell_events(world, index);
        self.transmit(world, index);
        if world.keeps_accounts() {
            world.note_in_account(index, &self.endpoints[index]);
        }
        true
    }

    /// All packets of this instant were taken in.
    pub fn run_processes(&mut self, world: &mut World) {
        let now = world.net.now();
        let mut waiting = self.processes.take();
        for index in waiting.drain(..) {
            if let Some(connection) = self.endpoints[index].tcp_mut() {
                connection.run_processes(now);
            }
            self.follow_up(world, index);
        }
        self.processes.put_back(waiting);
    }
}

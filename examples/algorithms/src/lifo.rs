//! Last in, first out.

use polypath_net::{DropReason, Dropped, Marks, QueueDiscipline, Queued};
use polypath_settings::{Algorithm, algorithm};
use polypath_transport::Nanos;

algorithm! {
    "lifo",
    "last in, first out",
    "docs/extend.md";
    /// Settings of the stack.
    LifoConfig {
        /// Most packets.
        limit: u64 as Packets = Integer(100),
        /// How long a packet may have waited.
        patience_ns: Nanos as Period = Integer(7_000_000_000),
    }
}

impl Algorithm<dyn QueueDiscipline> for LifoConfig {
    fn make(self) -> Box<dyn QueueDiscipline> {
        Box::new(Lifo {
            config: self,
            stack: Vec::new(),
        })
    }
}

#[derive(Debug)]
struct Lifo {
    config: LifoConfig,
    stack: Vec<Queued>,
}

impl QueueDiscipline for Lifo {
    fn take(&mut self, packet: Queued, _flow: u32) {
        self.stack.push(packet);
    }

    fn make_room(&mut self, head: u64, dropped: &mut Dropped) {
        while head + self.stack.len() as u64 > self.config.limit {
            dropped.push((self.stack.remove(0).slot, DropReason::QueueFull));
        }
    }

    fn next(
        &mut self,
        now: Nanos,
        _marks: &mut dyn Marks,
        dropped: &mut Dropped,
    ) -> Option<Queued> {
        let latest = now.saturating_sub(self.config.patience_ns);
        let stale = self
            .stack
            .iter()
            .take_while(|packet| packet.entered < latest);
        let stale = stale.count();
        let gone = self.stack.drain(..stale);
        dropped.extend(gone.map(|packet| (packet.slot, DropReason::QueueFull)));
        self.stack.pop()
    }

    fn waiting(&self) -> (u64, u64) {
        let bytes = self.stack.iter().map(|packet| u64::from(packet.size));
        (self.stack.len() as u64, bytes.sum())
    }

    fn drain(&mut self) -> Vec<Queued> {
        std::mem::take(&mut self.stack)
    }
}

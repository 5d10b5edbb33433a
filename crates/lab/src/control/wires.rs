//! The links between switches and their controller: one for each switch, first come first served, without loss. The
//! controller's own time is here as well, one message after another.

use std::collections::BTreeMap;

use polypath_net::{Nanos, NodeId};

use super::message::{Down, Order, Up};

/// What arrives or is done at a time.
#[derive(Clone, Debug)]
pub(crate) enum Due {
    /// At the controller, which then has to find time for it.
    Reached(NodeId, Up),
    /// The controller has worked on it.
    Handled(NodeId, Up),
    /// At the switch.
    Told(Order),
}

#[derive(Debug)]
pub(crate) struct Wires {
    rate_bps: Option<u64>,
    delay: Nanos,
    processing: Nanos,
    /// Until when each switch's link is busy, to the controller and back.
    busy: BTreeMap<(NodeId, bool), Nanos>,
    free_at: Nanos,
    due: BTreeMap<(Nanos, u64), Due>,
    count: u64,
}

impl Wires {
    pub fn new(rate_bps: Option<u64>, delay: Nanos, processing: Nanos) -> Self {
        Self {
            rate_bps,
            delay,
            processing,
            busy: BTreeMap::new(),
            free_at: 0,
            due: BTreeMap::new(),
            count: 0,
        }
    }

    /// When a message sent now has arrived.
    fn arrival(&mut self, now: Nanos, node: NodeId, up: bool, bytes: u64) -> Nanos {
        let busy = self.busy.entry((node, up)).or_default();
        let bits = u128::from(bytes) * 8_000_000_000;
        let time = self
            .rate_bps
            .map_or(0, |rate| bits.div_ceil(u128::from(rate.max(1))));
        *busy = now.max(*busy).saturating_add(time as Nanos);
        busy.saturating_add(self.delay)
    }

    fn at(&mut self, at: Nanos, due: Due) {
        self.count += 1;
        self.due.insert((at, self.count), due);
    }

    pub fn send_up(&mut self, now: Nanos, node: NodeId, up: Up) {
        let at = self.arrival(now, node, true, up.bytes());
        self.at(at, Due::Reached(node, up));
    }

    pub fn send_down(&mut self, now: Nanos, order: Order) {
        let at = self.arrival(now, order.node, false, order.down.bytes());
        self.at(at, Due::Told(order));
    }

    /// The controller takes a message up as soon as it has done with those before.
    fn take_up(&mut self, now: Nanos, node: NodeId, up: Up) {
        self.free_at = now.max(self.free_at).saturating_add(self.processing);
        self.at(self.free_at, Due::Handled(node, up));
    }

    pub fn next(&self) -> Option<Nanos> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// What is next to be done by `now`.
    pub fn pop(&mut self, now: Nanos) -> Option<Due> {
        loop {
            if self.next()? > now {
                return None;
            }
            match self.due.pop_first()? {
                ((at, _), Due::Reached(node, up)) => self.take_up(at, node, up),
                (_, due) => return Some(due),
            }
        }
    }

    /// Packets that are on the way between switches and controller, or wait there.
    pub fn packets(&self) -> u64 {
        let packets = self.due.values().filter(|due| {
            matches!(
                due,
                Due::Reached(_, Up::PacketIn(_))
                    | Due::Handled(_, Up::PacketIn(_))
                    | Due::Told(Order {
                        down: Down::PacketOut { .. },
                        ..
                    })
            )
        });
        packets.count() as u64
    }
}

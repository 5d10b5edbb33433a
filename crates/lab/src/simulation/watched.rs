//! The network's loop where somebody watches: captures, or switches, which count. What stops at a switch is dealt with before the run hears
//! of anything.

use polypath_net::{ChannelId, DropReason, Ecn, Nanos, Observer, Output, Packet, RouteId};
use polypath_switch::Hits;

use super::Simulation;
use crate::capture::Captures;
use crate::flow::Body;

/// Captures and the counters of switches, in one run.
struct Both<'a>(&'a mut Captures, &'a mut Hits);

impl Observer<Body> for Both<'_> {
    const COUNTS: bool = true;

    fn crossed(&mut self, at: Nanos, position: u32, len: u32) {
        self.1.count(at, position, len);
    }

    fn enqueued(&mut self, at: Nanos, channel: ChannelId, packet: &Packet<Body>) {
        self.0.enqueued(at, channel, packet);
    }

    fn arrived(&mut self, at: Nanos, channel: ChannelId, packet: &Packet<Body>) {
        self.0.arrived(at, channel, packet);
    }

    fn dropped(
        &mut self,
        at: Nanos,
        channel: ChannelId,
        packet: &Packet<Body>,
        reason: DropReason,
    ) {
        self.0.dropped(at, channel, packet, reason);
    }
}

impl Simulation {
    #[inline(never)]
    pub(super) fn poll_watched(&mut self, until: Nanos) -> Option<Output<Body>> {
        loop {
            let Some(control) = &mut self.control else {
                return self.network.poll(until, &mut self.captures);
            };
            let hits = &mut control.fabric.hits;
            let output = if self.captures.active() {
                let mut both = Both(&mut self.captures, hits);
                self.network.poll(until, &mut both)
            } else {
                self.network.poll(until, hits)
            };
            match output {
                Some(Output::Delivered {
                    node,
                    interface,
                    packet,
                }) => {
                    return Some(match self.on_controlled(node, interface, packet) {
                        Some(packet) => Output::Local(packet),
                        // The run has nothing to do, but counts it: a storm of packets between switches must not keep it from looking up.
                        None => Output::Changed(ChannelId(0)),
                    });
                }
                Some(Output::Changed(channel)) => self.on_changed(channel),
                Some(Output::Timer(timer)) if timer == control.timer => {
                    self.on_control_timer();
                    if self.is_asking() {
                        return None;
                    }
                }
                output => return output,
            }
        }
    }

    #[inline(never)]
    pub(super) fn inject_watched(
        &mut self,
        route: RouteId,
        len: u32,
        flow: u32,
        ecn: Ecn,
        body: Body,
    ) {
        let Some(control) = &mut self.control else {
            return (self.network).inject(route, len, flow, ecn, body, &mut self.captures);
        };
        let hits = &mut control.fabric.hits;
        if self.captures.active() {
            let mut both = Both(&mut self.captures, hits);
            self.network.inject(route, len, flow, ecn, body, &mut both);
        } else {
            self.network.inject(route, len, flow, ecn, body, hits);
        }
    }

    /// Has a packet that stopped at a switch go on.
    pub(super) fn forward(&mut self, route: RouteId, packet: Packet<Body>) {
        let Some(control) = &mut self.control else {
            return;
        };
        let hits = &mut control.fabric.hits;
        if self.captures.active() {
            let mut both = Both(&mut self.captures, hits);
            self.network.forward(route, packet, &mut both);
        } else {
            self.network.forward(route, packet, hits);
        }
    }
}

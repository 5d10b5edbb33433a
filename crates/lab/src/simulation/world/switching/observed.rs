//! The network's loop while switches count packets. It handles packets that stop at a switch before the run hears of
//! anything.

use polypath_net::{ChannelId, DropReason, Ecn, Nanos, Observer, Output, Packet, RouteId};
use polypath_switch::Hits;

use super::Switching;
use crate::capture::Captures;
use crate::flow::Body;
use crate::simulation::world::net::Net;

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

impl Switching {
    /// What the run is to hear of next up to `until`.
    pub fn poll(&mut self, net: &mut Net, until: Nanos) -> Option<Output<Body>> {
        loop {
            let hits = &mut self.fabric.hits;
            let output = if net.captures.active() {
                let mut both = Both(&mut net.captures, hits);
                net.network.poll(until, &mut both)
            } else {
                net.network.poll(until, hits)
            };
            match output {
                Some(Output::Delivered {
                    node,
                    interface,
                    packet,
                }) => {
                    return Some(match self.on_controlled(net, node, interface, packet) {
                        Some(packet) => Output::Local(packet),
                        // The run has nothing to do, but counts it: a storm of packets between switches must not keep it from looking up.
                        None => Output::Changed(ChannelId(0)),
                    });
                }
                Some(Output::Changed(channel)) => self.on_changed(net, channel),
                Some(Output::Timer(timer)) if timer == self.timer => {
                    self.on_timer(net);
                    if self.is_asking() {
                        return None;
                    }
                }
                output => return output,
            }
        }
    }

    pub fn inject(
        &mut self,
        net: &mut Net,
        route: RouteId,
        len: u32,
        flow: u32,
        ecn: Ecn,
        body: Body,
    ) {
        let hits = &mut self.fabric.hits;
        if net.captures.active() {
            let mut both = Both(&mut net.captures, hits);
            net.network.inject(route, len, flow, ecn, body, &mut both);
        } else {
            net.network.inject(route, len, flow, ecn, body, hits);
        }
    }

    /// Has a packet that stopped at a switch go on.
    pub(super) fn forward(&mut self, net: &mut Net, route: RouteId, packet: Packet<Body>) {
        let hits = &mut self.fabric.hits;
        if net.captures.active() {
            let mut both = Both(&mut net.captures, hits);
            net.network.forward(route, packet, &mut both);
        } else {
            net.network.forward(route, packet, hits);
        }
    }
}

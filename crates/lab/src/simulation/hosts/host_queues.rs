//! Flows that begin in a queue of their host, which reports to the stack what it refuses.
//!
//! They have no route of their own, so other flows pass without a check.

use polypath_net::DropReason;
use polypath_transport::{Nanos, Transmit};
use polypath_wire::tcp::header_len;

use super::Hosts;
use crate::endpoint::Held;
use crate::flow::{Body, Content, ecn, ip_header_len};
use crate::simulation::world::World;

impl Hosts {
    /// A flow whose first link has its queue in the host goes there by way of [`Hosts::transmit_to_queue`].
    pub(super) fn find_host_queue(
        &mut self,
        world: &mut World,
        index: usize,
        subflow: usize,
        flow: u32,
    ) {
        if world.net.begin_in_host_queue(flow)
            && let Some(connection) = self.endpoints[index].tcp_mut()
        {
            connection.held_by_host(subflow);
        }
    }

    /// Hands a segment to the queue of its host, unless it follows one that was refused; or puts it on the way that a controller, which
    /// reads it first, gives its flow.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit_to_queue(
        &mut self,
        world: &mut World,
        index: usize,
        flow: u32,
        transmit: Transmit,
    ) {
        let node = self.endpoints[index].node;
        if world.show_to_controller(flow, node, &transmit.segment) || world.walk_lost_flow(flow) {
            self.find_host_queue(world, index, transmit.subflow, flow);
        }
        let Transmit {
            subflow,
            segment,
            purpose,
        } = transmit;
        let held = Held {
            subflow,
            bytes: segment.payload.len,
        };
        let queue = world.net.flow(flow).held_by;
        let queue = queue.filter(|_| held.bytes > 0);
        if self.endpoints[index].took_back(subflow, &segment) {
            return self.leaves(world, index, queue.map(|_| 0), held);
        }
        let leaves_at = queue.map(|queue| world.net.queue_clear_at(queue));
        let state = world.net.flow_mut(flow);
        let Some(route) = state.queued_route.or(state.route) else {
            return;
        };
        state.sent = state.sent.wrapping_add(1);
        let identification = state.sent;
        let len = ip_header_len(state.source) + header_len(&segment) as u32 + segment.payload.len;
        let seq = segment.seq;
        let connection = self.endpoints[index].tcp();
        let field = connection.map(|it| it.ecn_field(subflow, &segment, purpose));
        let ecn = ecn(field.unwrap_or_default());
        let body = Body {
            identification,
            altered: false,
            purpose,
            content: Content::Tcp(segment),
        };
        world.inject(route, len, flow, ecn, body);
        let refused = world.net.refusal().is_some();
        self.leaves(
            world,
            index,
            leaves_at.map(|at| if refused { 0 } else { at }),
            held,
        );
        let sent = match world.net.refusal() {
            Some(DropReason::QueueFull | DropReason::Pie) => false,
            Some(DropReason::Red) => true,
            _ => return,
        };
        let now = world.net.now();
        if let Some(connection) = self.endpoints[index].tcp_mut() {
            connection.on_local_drop(subflow, seq, sent, now);
        }
        // What it tells is looked at before time goes on.
        world.net.set_alarm(&mut self.endpoints[index].alarm, now);
    }

    /// Has the endpoint told that the host's queue holds a segment no longer, once it is so.
    fn leaves(&mut self, world: &mut World, index: usize, at: Option<Nanos>, held: Held) {
        let now = world.net.now();
        let Some(at) = at.map(|at| at.max(now)) else {
            return;
        };
        let endpoint = &mut self.endpoints[index];
        endpoint.leaving.add(at, held);
        world.net.set_alarm(&mut endpoint.alarm, at);
    }
}

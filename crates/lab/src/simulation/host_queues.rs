//! Flows that begin in a queue of their host, which tells the stack what it refuses. They have no route of their own, so that others pass
//! without a look at it.

use polypath_net::{DropReason, Ecn};
use polypath_transport::{Nanos, Segment, Transmit};
use polypath_wire::tcp::header_len;

use super::Simulation;
use crate::endpoint::Held;
use crate::flow::{Body, Content, ip_header_len};

use super::switches::TCP;

impl Simulation {
    /// A flow whose first link has its queue in the host goes there by way of [`Simulation::transmit_to_queue`].
    pub(super) fn find_host_queue(&mut self, index: usize, subflow: usize, flow: u32) {
        let flow = &mut self.captures.flows[flow as usize];
        let path = flow.route.map(|route| self.network.topology().path(route));
        let first = path.and_then(|mut channels| channels.next());
        let config = first.and_then(|channel| self.network.config(channel).ok());
        let Some(config) = config.filter(|config| config.of_sender) else {
            return;
        };
        flow.queued_route = flow.route.take();
        if config.tells_leaving {
            flow.held_by = first;
            if let Some(connection) = self.endpoints[index].tcp_mut() {
                connection.held_by_host(subflow);
            }
        }
    }

    /// Has a controller read the first segment of a flow and place it.
    fn show_to_controller(&mut self, index: usize, flow: u32, first: &Transmit) {
        let state = &self.captures.flows[flow as usize];
        let placed = state.route.or(state.queued_route).is_some();
        if let Some(controller) = self.controller.as_mut().filter(|_| !placed) {
            controller.read(state.source, state.destination, &first.segment);
            self.route_flow(flow, self.endpoints[index].node);
            self.find_host_queue(index, first.subflow, flow);
        }
    }

    /// Has a flow of TCP led by switches' tables as far as they know it.
    fn find_way(&mut self, index: usize, flow: u32, subflow: usize) {
        let state = &self.captures.flows[flow as usize];
        if self.control.is_some() && state.route.or(state.queued_route).is_none() {
            self.walk_flow(flow, TCP);
            self.find_host_queue(index, subflow, flow);
        }
    }

    /// Hands a segment to the queue of its host, unless it follows one that was refused; or puts it on the way that a controller, which
    /// reads it first, gives its flow.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit_to_queue(&mut self, index: usize, flow: u32, transmit: Transmit) {
        self.show_to_controller(index, flow, &transmit);
        self.find_way(index, flow, transmit.subflow);
        let Transmit {
            subflow,
            segment,
            purpose,
        } = transmit;
        let held = Held {
            subflow,
            bytes: segment.payload.len,
        };
        let queue = self.captures.flows[flow as usize].held_by;
        let queue = queue.filter(|_| held.bytes > 0);
        if self.taken_back(index, subflow, &segment) {
            return self.leaves(index, queue.map(|_| 0), held);
        }
        let state = &mut self.captures.flows[flow as usize];
        let Some(route) = state.queued_route.or(state.route) else {
            return;
        };
        let leaves_at = queue.map(|queue| self.network.queue_clear_at(queue).unwrap_or(0));
        state.sent = state.sent.wrapping_add(1);
        let identification = state.sent;
        let len = ip_header_len(state.source) + header_len(&segment) as u32 + segment.payload.len;
        let seq = segment.seq;
        let connection = self.endpoints[index].tcp();
        let capable = connection.is_some_and(|it| it.ecn_capable(subflow, &segment, purpose));
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let body = Body {
            identification,
            altered: false,
            purpose,
            content: Content::Tcp(segment),
        };
        self.inject(route, len, flow, ecn, body);
        let refused = self.network.refusal().is_some();
        self.leaves(
            index,
            leaves_at.map(|at| if refused { 0 } else { at }),
            held,
        );
        let sent = match self.network.refusal() {
            Some(DropReason::QueueFull | DropReason::Pie) => false,
            Some(DropReason::Red) => true,
            _ => return,
        };
        let now = self.network.now();
        if let Some(connection) = self.endpoints[index].tcp_mut() {
            connection.on_local_drop(subflow, seq, sent, now);
        }
        self.wake(index);
    }

    /// Whether a segment was taken back because one before it on its subflow was refused.
    pub(super) fn taken_back(&self, index: usize, subflow: usize, segment: &Segment) -> bool {
        let connection = self.endpoints[index].tcp();
        connection.is_some_and(|it| !it.subflows()[subflow].socket().has_sent(segment))
    }

    /// Has the endpoint told that the host's queue holds a segment no longer, once it is so.
    fn leaves(&mut self, index: usize, at: Option<Nanos>, held: Held) {
        let now = self.network.now();
        let Some(at) = at.map(|at| at.max(now)) else {
            return;
        };
        let endpoint = &mut self.endpoints[index];
        endpoint.leaving.add(at, held);
        if at < endpoint.timer_at {
            endpoint.timer_at = at;
            self.network.set_timer(endpoint.timer, at);
        }
    }

    /// Has the endpoint's timer fire when the next segment leaves the host's queue.
    pub(super) fn await_leaving(&mut self, index: usize) {
        let endpoint = &mut self.endpoints[index];
        let at = endpoint.leaving.first_at();
        if at < endpoint.timer_at {
            endpoint.timer_at = at;
            self.network.set_timer(endpoint.timer, at);
        }
    }

    /// Tells an endpoint what the host's queue holds no longer.
    pub(super) fn tell_left(&mut self, index: usize) {
        let now = self.network.now();
        let endpoint = &mut self.endpoints[index];
        while let Some(held) = endpoint.leaving.pop(now) {
            if let Some(connection) = endpoint.tcp_mut() {
                connection.on_left_host(held.subflow, held.bytes, now);
            }
        }
    }

    /// Has what an endpoint tells looked at before time goes on.
    fn wake(&mut self, index: usize) {
        let now = self.network.now();
        let endpoint = &mut self.endpoints[index];
        endpoint.timer_at = now;
        self.network.set_timer(endpoint.timer, now);
    }
}

//! Flows that begin in a queue of their host, which tells the stack what it refuses. They have no route of their own, so that others pass
//! without a look at it.

use polypath_net::{DropReason, Ecn};
use polypath_transport::{Segment, Transmit};
use polypath_wire::tcp::header_len;

use super::Simulation;
use crate::flow::{Body, Content, ip_header_len};

impl Simulation {
    /// A flow whose first link has its queue in the host goes there by way of [`Simulation::transmit_to_queue`].
    pub(super) fn find_host_queue(&mut self, flow: u32) {
        let flow = &mut self.captures.flows[flow as usize];
        let path = flow.route.map(|route| self.network.topology().path(route));
        let first = path.and_then(|mut channels| channels.next());
        let config = first.and_then(|channel| self.network.config(channel).ok());
        if config.is_some_and(|config| config.of_sender) {
            flow.queued_route = flow.route.take();
        }
    }

    /// Hands a segment to the queue of its host, unless it follows one that was refused.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit_to_queue(&mut self, index: usize, flow: u32, transmit: Transmit) {
        let Transmit {
            subflow,
            segment,
            purpose,
        } = transmit;
        if self.taken_back(index, subflow, &segment) {
            return;
        }
        let state = &mut self.captures.flows[flow as usize];
        let Some(route) = state.queued_route else {
            return;
        };
        state.sent = state.sent.wrapping_add(1);
        let identification = state.sent;
        let len = ip_header_len(state.source) + header_len(&segment) as u32 + segment.payload.len;
        let seq = segment.seq;
        let connection = self.endpoints[index].tcp();
        let marked = connection.is_some_and(|it| it.subflows()[subflow].socket().ecn_capable());
        let ecn = match segment.payload.len {
            1.. if marked => Ecn::Ect0,
            _ => Ecn::NotEct,
        };
        let body = Body {
            identification,
            altered: false,
            purpose,
            content: Content::Tcp(segment),
        };
        self.inject(route, len, flow, ecn, body);
        let sent = match self.network.refusal() {
            Some(DropReason::QueueFull) => false,
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

    /// Has what an endpoint tells looked at before time goes on.
    fn wake(&mut self, index: usize) {
        let now = self.network.now();
        let endpoint = &mut self.endpoints[index];
        endpoint.timer_at = now;
        self.network.set_timer(endpoint.timer, now);
    }
}

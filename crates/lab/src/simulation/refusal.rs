//! Segments that no connection of their host takes: it answers with a reset (RFC 9293 section 3.10.7.1), to an MP_JOIN with the reason
//! (RFC 8684 section 3.2, Linux `tcp_v4_send_reset` and `subflow_check_req`).

use polypath_net::Ecn;
use polypath_transport::{Purpose, Segment, tcp};
use polypath_wire::mptcp::{MptcpOption, ResetReason};
use polypath_wire::tcp::{Flags, header_len};

use super::Simulation;
use crate::flow::{Body, Content, Flow, ip_header_len};

impl Simulation {
    /// Answers a segment of `flow`; `join`: it asked to join a connection that is not there.
    #[cold]
    pub(super) fn refuse(&mut self, flow: usize, segment: &Segment, join: bool) {
        let Some(mut reset) = tcp::refusal(segment) else {
            return;
        };
        if join {
            reset.rare_mut().mptcp.push(MptcpOption::TcpRst {
                flags: 0,
                reason: ResetReason::MptcpSpecific as u8,
            });
        }
        let known = self.refusals.get(&(flow as u32)).copied();
        let answer = known.unwrap_or_else(|| {
            let answer = self.answering_flow(flow);
            self.refusals.insert(flow as u32, answer);
            answer
        });
        let state = &mut self.captures.flows[answer as usize];
        state.sent = state.sent.wrapping_add(1);
        let Flow {
            source,
            destination,
            route,
            here,
            sent,
            ..
        } = *state;
        let what = if join {
            "MP_JOIN of an unknown connection"
        } else if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            "SYN to where nobody listens"
        } else {
            "segment of an unknown connection"
        };
        let node = self.captures.flows[flow].receiver_node as usize;
        self.recorder.event(
            self.network.now(),
            "refused",
            &self.plan.nodes[node].name,
            None,
            format!("{what}, {destination} to {source}"),
        );
        if route.is_none() && !here {
            return;
        }
        let len = ip_header_len(source) + header_len(&reset) as u32;
        let body = Body {
            identification: sent,
            altered: false,
            purpose: Purpose::Control,
            content: Content::Tcp(reset),
        };
        self.dispatch(route, len, answer, Ecn::NotEct, body);
    }

    /// The flow from the receiver of `flow` back to its sender.
    fn answering_flow(&mut self, flow: usize) -> u32 {
        let Flow {
            source,
            destination,
            receiver_node,
            sender,
            ref gateways,
            ..
        } = self.captures.flows[flow];
        let gateways = gateways.iter().rev().copied().collect();
        let sender = sender.opposite();
        let stream = sender.endpoint().map_or(0, u64::from);
        self.new_flow(
            receiver_node as usize,
            destination,
            source,
            gateways,
            sender,
            stream,
        )
    }
}

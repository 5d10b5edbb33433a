//! Segments that no connection of their host takes: it answers with a reset (RFC 9293 section 3.10.7.1), to an MP_JOIN with the reason
//! (RFC 8684 section 3.2, Linux `tcp_v4_send_reset` and `subflow_check_req`).

use polypath_net::Ecn;
use polypath_transport::{Counters, Mib, Purpose, Segment, tcp};
use polypath_wire::mptcp::{MptcpOption, ResetReason};
use polypath_wire::tcp::header_len;

use super::Simulation;
use super::switches::TCP;
use crate::flow::{Body, Content, Flow, ip_header_len};

/// Why a segment is refused.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    UnknownConnection,
    Unheard,
    /// An MP_JOIN names no connection.
    UnknownToken,
    /// An MP_JOIN names a connection that fell back to TCP.
    FellBack,
}

impl Refusal {
    fn what(self) -> &'static str {
        match self {
            Self::UnknownConnection => "segment of an unknown connection",
            Self::Unheard => "SYN to where nobody listens",
            Self::UnknownToken => "MP_JOIN of an unknown connection",
            Self::FellBack => "MP_JOIN of a connection that fell back",
        }
    }

    fn joins(self) -> bool {
        matches!(self, Self::UnknownToken | Self::FellBack)
    }

    /// What a host counts of it (Linux `tcp_v4_rcv`, `tcp_v4_send_reset`, `subflow_check_req`).
    fn count(self, counters: &mut Counters, resets: bool) {
        counters.increment(Mib::TcpInSegs);
        counters.add(Mib::TcpOutSegs, resets.into());
        counters.add(Mib::TcpOutRsts, resets.into());
        counters.add(Mib::MPTcpExtMPJoinSynRx, self.joins().into());
        match self {
            Self::UnknownConnection | Self::Unheard => {}
            Self::UnknownToken => counters.increment(Mib::MPTcpExtMPJoinNoTokenFound),
            Self::FellBack => counters.increment(Mib::MPTcpExtMPJoinRejected),
        }
    }
}

impl Simulation {
    /// Answers a segment of `flow` with a reset, unless it is one.
    #[cold]
    pub(super) fn refuse(&mut self, flow: usize, segment: &Segment, refusal: Refusal) {
        let reset = tcp::refusal(segment);
        let node = self.captures.flows[flow].receiver_node as usize;
        refusal.count(self.host_counters(node), reset.is_some());
        let Some(mut reset) = reset else {
            return;
        };
        if refusal.joins() {
            reset.rare_mut().mptcp.push(MptcpOption::TcpRst {
                flags: 0,
                reason: ResetReason::MptcpSpecific as u8,
            });
        }
        let Flow {
            source,
            destination,
            ..
        } = self.captures.flows[flow];
        self.recorder.event(
            self.network.now(),
            "refused",
            &self.plan.nodes[node].name,
            None,
            format!("{}, {source} to {destination}", refusal.what()),
        );
        let answer = self.answering_flow(flow);
        self.answer(answer, reset, Purpose::Control);
    }

    /// Sends a segment that is no application's connection's.
    pub(super) fn answer(&mut self, flow: u32, segment: Segment, purpose: Purpose) {
        self.refresh_way(flow, TCP);
        let state = &mut self.captures.flows[flow as usize];
        state.sent = state.sent.wrapping_add(1);
        let Flow {
            source,
            route,
            here,
            sent,
            ..
        } = *state;
        if route.is_none() && !here {
            return;
        }
        let len = ip_header_len(source) + header_len(&segment) as u32 + segment.payload.len;
        let body = Body {
            identification: sent,
            altered: false,
            purpose,
            content: Content::Tcp(segment),
        };
        self.dispatch(route, len, flow, Ecn::NotEct, body);
    }

    /// The flow from the receiver of `flow` back to its sender.
    pub(super) fn answering_flow(&mut self, flow: usize) -> u32 {
        if let Some(&known) = self.answers.get(&(flow as u32)) {
            return known;
        }
        let answer = self.make_answering_flow(flow);
        self.answers.insert(flow as u32, answer);
        answer
    }

    fn make_answering_flow(&mut self, flow: usize) -> u32 {
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

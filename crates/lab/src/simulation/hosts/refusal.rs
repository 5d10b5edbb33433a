//! Segments that belong to no connection of their host. The host answers with a reset (RFC 9293 section 3.10.7.1). For
//! an MP_JOIN the reset has the reason (RFC 8684 section 3.2, Linux `tcp_v4_send_reset` and `subflow_check_req`).

use polypath_transport::{Counters, Mib, Purpose, Segment, tcp};
use polypath_wire::mptcp::{MpJoin, MptcpOption, ResetReason};

use super::Hosts;
use crate::flow::Flow;
use crate::simulation::world::World;

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
    fn count(self, counters: &mut Counters, resets: bool, segment: &Segment) {
        counters.increment(Mib::TcpInSegs);
        counters.add(Mib::TcpOutSegs, resets.into());
        counters.add(Mib::TcpOutRsts, resets.into());
        counters.add(Mib::MPTcpExtMPJoinSynRx, self.joins().into());
        let backup = self.joins() && segment.mptcp().iter().any(asks_for_backup);
        counters.add(Mib::MPTcpExtMPJoinSynBackupRx, backup.into());
        match self {
            Self::UnknownConnection | Self::Unheard => {}
            Self::UnknownToken => counters.increment(Mib::MPTcpExtMPJoinNoTokenFound),
            Self::FellBack => counters.increment(Mib::MPTcpExtMPJoinRejected),
        }
    }
}

fn asks_for_backup(option: &MptcpOption) -> bool {
    matches!(option, MptcpOption::Join(MpJoin::Syn { backup: true, .. }))
}

impl Hosts {
    /// Answers a segment of `flow` with a reset, unless it is one.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        world: &mut World,
        flow: u32,
        segment: &Segment,
        refusal: Refusal,
    ) {
        let reset = tcp::refusal(segment);
        let node = world.net.flow(flow).receiver_node as usize;
        let counters = self.hosts[node].counters_mut();
        refusal.count(counters, reset.is_some(), segment);
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
        } = *world.net.flow(flow);
        let now = world.net.now();
        world.recorder().event(
            now,
            "refused",
            &self.plan.nodes[node].name,
            None,
            format!("{}, {source} to {destination}", refusal.what()),
        );
        let answer = world.answering_flow(flow);
        world.answer(answer, reset, Purpose::Control);
    }
}

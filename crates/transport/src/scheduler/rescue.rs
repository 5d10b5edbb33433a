//! Help for a connection that is blocked although a path has room: opportunistic retransmission and penalisation (Raiciu et al., NSDI 2012,
//! section 4.2; mptcp.org `mptcp_rcv_buf_optimization`). Any scheduler can have it.

use super::lowest_rtt::choose;
use super::{Blocked, Next, PathSet, View};
use crate::Nanos;
use crate::path::CaState;
use crate::registry::{Parameter, Parameters};

const REPEAT: &str = "opportunistic_retransmission";
const PENALISE: &str = "penalisation";

/// Which schedulers have both unless a scenario says otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unasked {
    On,
    Off,
    /// In the variant `mptcp.org` only.
    AsVariant,
}

/// The parameters of a scheduler: its own, and those of the help.
pub(super) fn parameters(mut own: Vec<Parameter>, unasked: Unasked) -> Vec<Parameter> {
    let switch = |name, description, of_variant| match unasked {
        Unasked::AsVariant => Parameter::flag(name, of_variant),
        _ => Parameter::boolean(name, unasked == Unasked::On, description),
    };
    own.push(switch(
        REPEAT,
        "send the blocking segment again on a faster path (M1)",
        "send the blocking segment again on a faster path (M1); left out: in variant mptcp.org only",
    ));
    own.push(switch(
        PENALISE,
        "halve the window of the path that blocks (M2)",
        "halve the window of the path that blocks (M2); left out: in variant mptcp.org only",
    ));
    own
}

/// What to do for a blocked connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rescue {
    /// Send the head again on this path (opportunistic retransmission).
    pub repeat_head_on: Option<usize>,
    /// Halve this path's window (penalisation).
    pub penalise: Option<usize>,
}

/// Helps a blocked connection as far as its scheduler's parameters say.
#[derive(Clone, Debug, Default)]
pub struct Rescuer {
    repeats: bool,
    penalises: bool,
    /// When each path last had another one's window halved (mptcp.org `last_rbuf_opti`).
    last_penalty: Vec<Option<Nanos>>,
}

/// The holder of the head is left alone unless its window is this small or its RTT this many times the free path's (mptcp.org).
const SMALL_WINDOW: u32 = 4;
const MUCH_SLOWER: Nanos = 4;

impl Rescuer {
    pub(super) fn of(parameters: &Parameters) -> Self {
        let kernel = parameters.chosen("variant") == Some("mptcp.org");
        let asked = |name| parameters.flag(name).unwrap_or(kernel);
        Self {
            repeats: asked(REPEAT),
            penalises: asked(PENALISE),
            last_penalty: Vec::new(),
        }
    }

    pub fn rescue(&mut self, view: &View, cause: Blocked) -> Rescue {
        let mut rescue = Rescue::default();
        let Some(head) = view.head.filter(|_| self.repeats || self.penalises) else {
            return rescue;
        };
        let next = Next {
            offset: head.offset,
            len: 0,
            carried: PathSet::default(),
            reinjection: true,
        };
        let Some(free) = choose(view.paths, &next) else {
            return rescue;
        };
        let (fast, holder) = (&view.paths[free], &view.paths[head.holder]);
        let slower = free != head.holder && fast.srtt < holder.srtt;
        let last = self.last_penalty.get(free).copied().flatten();
        let due = last.is_none_or(|last| view.now - last >= fast.srtt);
        if self.penalises
            && cause == Blocked::ReceiveWindow
            && slower
            && holder.state == CaState::Open
            && due
        {
            self.last_penalty.resize(view.paths.len(), None);
            self.last_penalty[free] = Some(view.now);
            rescue.penalise = Some(head.holder);
        }
        let worthwhile = holder.cwnd <= SMALL_WINDOW || holder.srtt > MUCH_SLOWER * fast.srtt;
        if self.repeats && !head.carried.contains(free) && worthwhile {
            rescue.repeat_head_on = Some(free);
        }
        rescue
    }
}

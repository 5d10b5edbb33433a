//! Help for a connection that is blocked although a path has room: opportunistic retransmission and penalisation (Raiciu et al., NSDI 2012,
//! section 4.2; mptcp.org `mptcp_rcv_buf_optimization`). Any scheduler can have it.

use polypath_settings::{Given, Group, Measure, ModelError, Parameter, Value};

use super::lowest_rtt::choose;
use super::{Blocked, Next, PathSet, View};
use crate::Nanos;
use crate::path::CaState;

const REPEAT: &str = "opportunistic_retransmission";
const PENALISE: &str = "penalisation";

/// The settings of a scheduler that has both unless a scenario says otherwise, and of one that has neither.
pub(super) const ON: &[Parameter] = &switches(true);
pub(super) const OFF: &[Parameter] = &switches(false);

/// Those of a scheduler that has both in the variant `mptcp.org` unless a scenario says otherwise.
pub(super) const AS_VARIANT: &[Parameter] = &[
    Parameter::new::<Option<bool>>(
        REPEAT,
        Measure::Boolean,
        "send the blocking segment again on a faster path (M1); left out: in variant mptcp.org only",
    )
    .or(Value::Absent(())),
    Parameter::new::<Option<bool>>(
        PENALISE,
        Measure::Boolean,
        "halve the window of the path that blocks (M2); left out: in variant mptcp.org only",
    )
    .or(Value::Absent(())),
];

const fn switches(on: bool) -> [Parameter; 2] {
    [
        Parameter::new::<bool>(
            REPEAT,
            Measure::Boolean,
            "send the blocking segment again on a faster path (M1)",
        )
        .or(Value::Boolean(on)),
        Parameter::new::<bool>(
            PENALISE,
            Measure::Boolean,
            "halve the window of the path that blocks (M2)",
        )
        .or(Value::Boolean(on)),
    ]
}

/// What of it a scheduler has; left out: as its variant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Help {
    repeats: Option<bool>,
    penalises: Option<bool>,
}

impl Group for Help {
    fn take(given: &Given) -> Result<Self, ModelError> {
        Ok(Self {
            repeats: given.take(REPEAT)?,
            penalises: given.take(PENALISE)?,
        })
    }
}

impl Help {
    /// What was left out is as said.
    pub fn or(self, both: bool) -> Self {
        Self {
            repeats: self.repeats.or(Some(both)),
            penalises: self.penalises.or(Some(both)),
        }
    }

    pub fn rescuer(self) -> Rescuer {
        Rescuer {
            repeats: self.repeats == Some(true),
            penalises: self.penalises == Some(true),
            last_penalty: Vec::new(),
        }
    }
}

/// What to do for a blocked connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rescue {
    /// Send the head again on this path (opportunistic retransmission).
    pub repeat_head_on: Option<usize>,
    /// Halve this path's window (penalisation).
    pub penalise: Option<usize>,
}

/// Helps a blocked connection as far as its scheduler's settings say.
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

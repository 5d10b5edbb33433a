//! Whether data waits for a path that only its pacer holds back, or goes on the next one.
//!
//! RFC 10069 section 5.5 has a scheduler choose among paths whose congestion window is open. The papers on lowest-RTT
//! schedulers do the same (Raiciu et al., NSDI 2012; De Coninck and Bonaventure, CoNEXT 2017), and so does xquic. In
//! contrast, picoquic and noq take a path whose pacer allows.
//!
//! When xquic hands a path as much as its window admits, the pacer lets it go bit by bit. Data beyond that goes on the
//! next path at once. Paths have no queues here, so as much data waits as the windows of the preferred paths admit.
//! Data beyond that does not wait.

use polypath_settings::{Given, Group, Measure, ModelError, Parameter, Value};

use super::{Next, View, admits, usable};
use crate::path::Path;

const NAME: &str = "waits_for_pacer";

/// The setting of a scheduler that prefers paths.
pub(super) const PREFERRING: &[Parameter] = &[Parameter::new::<Option<bool>>(
    NAME,
    Measure::Boolean,
    "data for which the windows of preferred paths have room waits for their pacers; else the next path takes it. Left out: over QUIC, where each path is paced",
)
.or(Value::Absent(()))];

/// The setting of a scheduler that prefers none, where waiting for one path would hold back the others.
pub(super) const TAKING_TURNS: &[Parameter] = &[Parameter::new::<bool>(
    NAME,
    Measure::Boolean,
    "data waits for a path whose window is open and whose pacer is not; else the next path takes it",
)
.or(Value::Boolean(false))];

/// What a scheduler's setting says; absent: it follows from the path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience(Option<bool>);

impl Group for Patience {
    fn take(given: &Given) -> Result<Self, ModelError> {
        given.take(NAME).map(Self)
    }
}

impl Patience {
    /// The windows of paced paths that are preferred to the open one, and that the scheduler `may` take, have room for all data, so that it
    /// waits for them.
    #[inline]
    pub fn holds(self, view: &View, next: &Next, open: usize, may: impl Fn(usize) -> bool) -> bool {
        let open = &view.paths[open];
        self.0.unwrap_or(open.paces) && fits(view, next, open, may)
    }

    /// The path may be chosen: it can carry data, or will once its pacer lets go, if that is to be waited for.
    #[inline]
    pub fn considers(self, path: &Path) -> bool {
        (!path.paced || self.0.unwrap_or(path.paces)) && admits(path)
    }
}

#[inline(never)]
fn fits(view: &View, next: &Next, open: &Path, may: impl Fn(usize) -> bool) -> bool {
    let waiting = match next.reinjection {
        true => next.len,
        false => view.unsent.max(next.len),
    };
    let preferred = view.paths.iter().enumerate().filter(|&(index, path)| {
        let better = path.srtt < open.srtt && path.backup == open.backup;
        path.paced && better && usable(path) && admits(path) && may(index)
    });
    let room = preferred
        .map(|(_, path)| u64::from(path.cwnd - path.in_flight) * u64::from(path.mss) - path.queued);
    waiting <= room.sum()
}

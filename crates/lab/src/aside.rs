//! Recordings that the plan does not ask for. They leave the recording's hash unchanged.

use crate::Recording;
use crate::plan::Plan;

#[derive(Clone, Copy, Debug, Default)]
pub struct Aside {
    segments: bool,
    account: bool,
}

impl Aside {
    /// Has a plan record segments or accounts that it does not ask for.
    pub fn ask(plan: &mut Plan, segments: bool, account: bool) -> Self {
        let record = &mut plan.record;
        let aside = Self {
            segments: segments && !record.segments,
            account: account && !record.account,
        };
        record.segments |= aside.segments;
        record.account |= aside.account;
        aside
    }

    /// The hash of the rest of a recording.
    pub fn hash(self, recording: &mut Recording) -> [u8; 32] {
        let mut without = Recording::default();
        self.exchange(recording, &mut without);
        let hash = recording.hash();
        self.exchange(recording, &mut without);
        hash
    }

    fn exchange(self, one: &mut Recording, other: &mut Recording) {
        if self.segments {
            std::mem::swap(&mut one.segments, &mut other.segments);
            std::mem::swap(&mut one.sack_blocks, &mut other.sack_blocks);
            std::mem::swap(&mut one.headers, &mut other.headers);
        }
        if self.account {
            std::mem::swap(&mut one.account, &mut other.account);
        }
    }
}

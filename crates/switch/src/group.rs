//! Groups: several outputs at once, or one of several (section 5.6).

use polypath_net::random::mix;

use crate::fields::Fields;
use crate::table::{Action, Counts};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Every bucket: a copy of the packet each.
    All,
    /// One bucket by a hash of the flow, in proportion to the weights.
    Select,
    /// The first bucket whose port is up.
    FastFailover,
    /// The only bucket.
    Indirect,
}

/// What a group may do with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its share in a `select` group; 0: it is not taken.
    pub weight: u16,
    /// The bucket counts as long as this port is up; absent: always.
    pub watch: Option<u32>,
    pub actions: Vec<Action>,
}

impl Bucket {
    /// A bucket that sends packets out by a port, as long as that is up.
    pub fn out(port: u32, weight: u16) -> Self {
        Self {
            weight,
            watch: Some(port),
            actions: vec![Action::port(port)],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub kind: GroupKind,
    pub buckets: Vec<Bucket>,
}

/// A group and what it did.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub group: Group,
    pub counts: Counts,
}

impl Group {
    /// The buckets that a packet goes through, where `up` says which ports are.
    pub(crate) fn chosen<'a>(
        &'a self,
        fields: &Fields,
        seed: u64,
        up: impl Fn(u32) -> bool,
    ) -> Vec<&'a Bucket> {
        let live = |bucket: &&'a Bucket| bucket.watch.is_none_or(&up);
        match self.kind {
            GroupKind::All => self.buckets.iter().filter(live).collect(),
            GroupKind::Indirect => self.buckets.iter().take(1).collect(),
            GroupKind::FastFailover => self.buckets.iter().find(live).into_iter().collect(),
            // Section 5.6.1: where a bucket's port is down, the selection may be restricted to the remaining ones.
            GroupKind::Select => {
                let total = self.buckets.iter().filter(live);
                let total: u64 = total.map(|bucket| u64::from(bucket.weight)).sum();
                let mut left = share(hash(fields, seed), total);
                let mut candidates = self.buckets.iter().filter(live);
                let found = candidates.find(|bucket| {
                    let weight = u64::from(bucket.weight);
                    let here = left < weight;
                    left = left.saturating_sub(weight);
                    here
                });
                found.into_iter().collect()
            }
        }
    }
}

/// A flow's hash at a switch: the same for all of its packets.
fn hash(fields: &Fields, seed: u64) -> u64 {
    let words = fields.words();
    words.iter().fold(mix(seed), |hash, word| mix(hash ^ word))
}

/// A hash as a number below `total`.
fn share(hash: u64, total: u64) -> u64 {
    ((u128::from(hash) * u128::from(total)) >> 64) as u64
}

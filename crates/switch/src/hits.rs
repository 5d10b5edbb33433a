//! The packets that passed each position of the table of paths: the counters of entries on ways that were walked
//! beforehand.

use polypath_net::{Nanos, Observer};

use crate::table::Counts;

/// What passed a position.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hit {
    pub counts: Counts,
    /// When the last packet did.
    pub last: Nanos,
}

/// Counts packets as they reach switches on their routes. A network that runs with it counts at each hop; any other does not know of it.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    by_position: Vec<Hit>,
}

impl Hits {
    /// Makes room for positions below `end`.
    pub(crate) fn extend(&mut self, end: u32) {
        self.by_position.resize(end as usize, Hit::default());
    }

    pub(crate) fn at(&self, position: u32) -> Hit {
        let hit = self.by_position.get(position as usize);
        hit.copied().unwrap_or_default()
    }

    /// As [`Observer::crossed`], for an observer that has this one inside.
    #[inline(always)]
    pub fn count(&mut self, at: Nanos, position: u32, len: u32) {
        if let Some(hit) = self.by_position.get_mut(position as usize) {
            hit.counts.packets += 1;
            hit.counts.bytes += u64::from(len);
            hit.last = at;
        }
    }
}

impl<B> Observer<B> for Hits {
    const ACTIVE: bool = false;
    const COUNTS: bool = true;

    #[inline(always)]
    fn crossed(&mut self, at: Nanos, position: u32, len: u32) {
        self.count(at, position, len);
    }
}

//! The paths of routes. Each path is in one table once.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::ids::{ChannelId, RouteId};
use crate::random::mix;

/// Follows the last channel of a path.
pub(crate) const END: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    /// By a hash of the path; where two have the same, the second has the next number.
    known: FxHashMap<u64, RouteId>,
    /// All paths, each followed by [`END`].
    pub table: Vec<u32>,
    /// Where each route's path starts in `table`.
    pub starts: Vec<u32>,
}

impl Paths {
    /// The route of a path: the same for the same path.
    pub(super) fn intern(&mut self, path: &[ChannelId]) -> RouteId {
        let mut key = (path.iter()).fold(0, |key, channel| mix(key ^ u64::from(channel.0)));
        while let Some(&route) = self.known.get(&key) {
            if self.leads_over(route, path) {
                return route;
            }
            key = key.wrapping_add(1);
        }
        let route = self.append(path);
        self.known.insert(key, route);
        route
    }

    fn leads_over(&self, route: RouteId, path: &[ChannelId]) -> bool {
        let laid = self.table[self.starts[route.index()] as usize..].iter();
        let own = path.iter().map(|channel| channel.0).chain([END]);
        own.zip(laid).all(|(own, laid)| own == *laid)
    }

    /// A route of its own.
    pub(super) fn append(&mut self, path: &[ChannelId]) -> RouteId {
        let route = RouteId(self.starts.len() as u32);
        self.starts.push(self.table.len() as u32);
        self.table.extend(path.iter().map(|channel| channel.0));
        self.table.push(END);
        route
    }

    /// Ends a route behind each of its channels. An interned one would stay cut for whoever asks next.
    pub(super) fn cut(&mut self, route: RouteId) {
        for position in self.positions(route).skip(1) {
            self.table[position as usize] = END;
        }
    }

    /// Where a route stands in the table, its end included; empty if there is no such route.
    pub(super) fn positions(&self, route: RouteId) -> Range<u32> {
        let end = self.table.len() as u32;
        let of = |index: usize| self.starts.get(index).copied().unwrap_or(end);
        of(route.index())..of(route.index() + 1)
    }

    /// Where a route's path starts in the table, and its first channel.
    #[inline]
    pub fn begin(&self, route: RouteId) -> Option<(u32, u32)> {
        let position = *self.starts.get(route.index())?;
        Some((position, self.table[position as usize]))
    }

    /// The channels of a route; empty if there is no such route.
    pub(super) fn of(&self, route: RouteId) -> impl Iterator<Item = ChannelId> + '_ {
        let start = self.positions(route).start as usize;
        self.table[start..]
            .iter()
            .take_while(|channel| **channel != END)
            .map(|channel| ChannelId(*channel))
    }
}

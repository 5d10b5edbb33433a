//! Prefetches the data of the next events while others are handled, for networks that are larger than caches.

use polypath_prefetch::prefetch;

use super::{FIRST_CHANNEL, Network};
use crate::channel::Channel;
use crate::events::EventQueue;
use crate::packet::Observer;
use crate::routing::END;

impl<B: Clone, Q: EventQueue> Network<B, Q> {
    /// Has fetched what the next events need, as far as they are known: of each, one after the other, its channel, the packet's header, the
    /// next place on its way, and the channel there, or where the packet is at the end of its way, all of it, the way back and what the owner
    /// needs for it.
    #[inline(always)]
    pub(super) fn look_ahead<O: Observer<B>>(&self, obs: &O) {
        let index = |after| Some(self.events.upcoming(after)?.wrapping_sub(FIRST_CHANNEL) as usize);
        let channel = |after| self.channels.get(index(after)?);
        if let Some(channel) = channel(11) {
            prefetch(channel);
        }
        if let Some(channel) = channel(8) {
            let (slot, behind) = channel.front();
            if let Some(header) = self.store.headers.get(slot as usize) {
                prefetch(header);
            }
            if let Some(entry) = behind {
                prefetch(entry);
            }
        }
        let table = &self.topology.routing.paths.table;
        let place = |after| {
            let (slot, _) = channel(after)?.front();
            let header = self.store.headers.get(slot as usize)?;
            Some((slot, table.get(header.position as usize + 1)?))
        };
        if let Some((_, place)) = place(6) {
            prefetch(place);
        }
        if let Some((slot, &next)) = place(4) {
            if next == END {
                self.store.prefetch(slot);
            }
            if let Some(next) = self.beyond(next, index(4)) {
                prefetch(next);
            }
        }
        if let Some((slot, &next)) = place(2) {
            if let Some(next) = self.beyond(next, index(2)) {
                next.prefetch_tail();
            }
            if next == END
                && let Some(packet) = self.store.packet(slot)
            {
                obs.expects(packet, false);
            }
        }
        if let Some((slot, &END)) = place(0)
            && let Some(packet) = self.store.packet(slot)
        {
            obs.expects(packet, true);
        }
    }

    /// The channel that a packet enters next, or the one by which its receiver is likely to answer.
    #[inline(always)]
    fn beyond(&self, next: u32, crossed: Option<usize>) -> Option<&Channel> {
        let next = if next == END {
            crossed? ^ 1
        } else {
            next as usize
        };
        self.channels.get(next)
    }
}
